"""Pictures of centrality and of communities."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

from matplotlib.axes import Axes
from tools.posteriors import sparse_posterior

import bayesstruct as bs

from bayesstruct.plots import plot_centrality, plot_co_membership


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_means_are_those_of_the_table(small):
    tree, _ = small
    panels = plot_centrality(tree, ["strength", "closeness"])
    assert [type(ax) for ax in panels] == [Axes, Axes]
    assert [ax.get_title() for ax in panels] == ["strength", "closeness"]
    table = bs.centrality(tree, ["strength", "closeness"])
    first, other = (own for _, own in table.groupby("measure", sort=False))
    assert names(panels[0]) == first["node"].tolist()
    np.testing.assert_allclose(panels[0].collections[1].get_offsets()[:, 0], first["mean"])
    order = {node: k for k, node in enumerate(first["node"])}
    rows = dict(np.array(panels[1].collections[1].get_offsets())[:, ::-1])
    for node, mean in zip(other["node"], other["mean"], strict=True):
        assert rows[order[node]] == pytest.approx(mean)


def test_several_results_have_a_legend(small):
    tree, _ = small
    table = bs.centrality(tree, ["degree", "strength"])
    panels = plot_centrality({"women": tree, "men": table}, "strength")
    assert [text.get_text() for text in panels[-1].get_legend().get_texts()] == ["women", "men"]
    heights = [dots.get_offsets()[:, 1] for dots in panels[0].collections[1::2]]
    assert (np.sort(heights[1]) - np.sort(heights[0]) > 0.2).all()
    assert plot_centrality(table)[0].get_legend() is None
    assert len(plot_centrality(table)) == 2


def test_a_panel_can_be_given(small):
    tree, _ = small
    _, ax = plt.subplots()
    assert plot_centrality(tree, "degree", axes=ax)[0] is ax
    with pytest.raises(ValueError, match=r"one for each measure \(degree, strength\), not 1"):
        plot_centrality(tree, ["degree", "strength"], axes=ax)


def test_names_of_many_nodes_are_apart(large):
    tree, _ = large
    ax = plot_centrality(tree, "strength")[0]
    ax.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert len(boxes) == 60
    assert all(a.y0 >= b.y1 for a, b in pairwise(boxes))
    assert boxes[0].x0 >= 0


def test_the_most_central_nodes_are_drawn_if_there_are_more(large):
    tree, _ = large
    ax = plot_centrality(tree, "degree", n=7)[0]
    table = bs.centrality(tree, "degree").head(7)
    assert ax.get_ylabel() == "7 of 60 nodes, largest degree"
    np.testing.assert_allclose(ax.collections[1].get_offsets()[:, 0], table["mean"])
    with pytest.raises(ValueError, match="`n` must be a whole number from 1 up"):
        plot_centrality(tree, n=0)


def test_what_cannot_be_drawn_is_refused(small):
    tree, _ = small
    table = bs.centrality(tree, "strength")
    with pytest.raises(ValueError, match="no measure 'degree' in a table, which has strength"):
        plot_centrality(table, "degree")
    with pytest.raises(ValueError, match="no measure in common"):
        plot_centrality({"a": table, "b": bs.centrality(tree, "degree")})
    with pytest.raises(ValueError, match="one to 5 results"):
        plot_centrality({str(k): table for k in range(6)})
    with pytest.raises(TypeError, match=r"`draws` is an option of bs\.communities"):
        plot_co_membership(bs.communities(tree), draws=5)


def test_co_membership_is_ordered_by_community(small):
    tree, _ = small
    found = bs.communities(tree)
    ax = plot_co_membership(found)
    nodes = found.table["node"].tolist()
    assert names(ax) == nodes
    np.testing.assert_array_equal(ax.images[0].get_array(), found.co_membership.loc[nodes, nodes])
    sizes = found.partition.value_counts()
    assert sorted(int(square.get_width()) for square in ax.patches) == sorted(sizes[sizes > 1])
    other = plot_co_membership(sparse_posterior(5, draws=10)[0], draws=4)
    assert len(names(other)) == 5


def test_bad_arguments_are_named(small):
    tree, _ = small
    nodes = bs.edge_table(tree)[["source", "target"]].stack().unique()
    with pytest.raises(ValueError, match="two finite numbers"):
        bs.plot_graph(tree, layout=dict.fromkeys(nodes, (np.nan, 0)))
    with pytest.raises(ValueError, match="`max_weight` must be above 0"):
        bs.plot_graph(tree, max_weight=-1)
    with pytest.raises(ValueError, match=r"set_index\('node'\)"):
        bs.plot_graph(tree, predictability=bs.centrality(tree, "strength"))
    with pytest.raises(TypeError, match="a name or a list of names"):
        bs.centrality(tree, 3)
    with pytest.raises(ValueError, match="two names"):
        bs.plot_comparison(bs.compare(tree, tree), ("x",))
    with pytest.raises(TypeError, match=r"bs\.bootstrap_support returns"):
        bs.plot_bootstrap_support(tree)
    with pytest.raises(TypeError, match=r"bs\.sensitivity returns"):
        bs.plot_sensitivity(tree)
