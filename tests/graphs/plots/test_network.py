import itertools

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from tools.posteriors import bernoulli_posterior, posterior

from bayesstruct.graphs.plots.style import NEGATIVE, POSITIVE, shorten
from bayesstruct.plots import layout, plot_evidence, plot_graph
from bayesstruct.structure import median_graph


def lines(ax):
    return [c for c in ax.collections if isinstance(c, LineCollection)]


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def assert_nothing_clipped_or_overlapping(ax):
    figure = ax.figure
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    frame = figure.bbox
    for box in [*boxes, ax.get_legend().get_window_extent()]:
        assert box.x0 >= frame.x0 - 1 and box.x1 <= frame.x1 + 1
        assert box.y0 >= frame.y0 - 1 and box.y1 <= frame.y1 + 1
    return boxes


def test_layout_depends_on_names_only(small):
    tree, _ = small
    other = bernoulli_posterior(np.full(45, 0.9), names=list(layout(tree)), seed=5)
    assert layout(tree) == layout(tree) == layout(other) == layout(median_graph(tree))


@pytest.mark.parametrize("kind", ["spring", "kamada_kawai", "tree"])
def test_layouts_by_edges_are_stable_and_fill_the_square(small, kind):
    tree, _ = small
    first, second = layout(tree, kind=kind), layout(tree, kind=kind)
    assert first == second
    assert list(first) == list(layout(tree))
    points = np.array(list(first.values()))
    np.testing.assert_allclose([points.min(axis=0), points.max(axis=0)], [[-1, -1], [1, 1]])
    with pytest.raises(ValueError, match="circle"):
        layout(tree, kind="trees")


def test_graph_draws_one_line_an_edge_coloured_by_sign(small):
    tree, _ = small
    ax = plot_graph(tree)
    assert isinstance(ax, Axes)
    (edges,) = lines(ax)
    graph = median_graph(tree)
    assert len(edges.get_segments()) == graph.number_of_edges()
    weights = sorted((d["weight"] for *_, d in graph.edges(data=True)), key=abs)
    expected = [to_rgba(NEGATIVE if w < 0 else POSITIVE)[:3] for w in weights]
    np.testing.assert_allclose(edges.get_colors()[:, :3], expected)
    assert (np.diff(edges.get_linewidths()) >= 0).all()
    assert [text.get_text() for text in ax.texts] == list(graph.nodes)


def test_graph_min_probability_and_given_axes(small):
    tree, _ = small
    _, (left, right) = plt.subplots(1, 2)
    assert plot_graph(tree, ax=left) is left
    plot_graph(tree, ax=right, min_probability=0.95, max_weight=1.0, legend=False)
    assert len(lines(right)[0].get_segments()) < len(lines(left)[0].get_segments())
    assert right.get_legend() is None
    with pytest.raises(ValueError, match="min_probability"):
        plot_graph(tree, min_probability=0)


def test_opacity_follows_probability():
    tree = posterior(np.tile([[1, 1, 0], [1, 0, 0], [1, 1, 0]], (2, 20, 1)))
    (edges,) = lines(plot_graph(tree))
    opacity = edges.get_colors()[:, 3]
    assert opacity.min() < opacity.max() == 1


def test_graph_positions_can_be_fixed(small):
    tree, _ = small
    pos = layout(tree, kind="spring")
    nodes = plot_graph(tree, pos=pos).collections[-1].get_offsets()
    np.testing.assert_allclose(nodes, list(pos.values()))
    with pytest.raises(ValueError, match="no position for praf"):
        plot_graph(tree, pos={name: at for name, at in pos.items() if name != "praf"})


def test_plain_networkx_graph():
    ax = plot_graph(nx.path_graph(4))
    assert len(lines(ax)[0].get_segments()) == 3
    assert ax.get_legend() is None


@pytest.mark.parametrize("p", [2, 3])
def test_tiny_and_empty_graphs(p):
    tree = posterior(np.zeros((2, 20, p * (p - 1) // 2), int))
    assert isinstance(plot_graph(tree), Axes)
    assert isinstance(plot_evidence(tree), Axes)
    layout(tree, kind="spring")


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("plot", [plot_graph, plot_evidence])
def test_nothing_is_clipped(size, plot, request):
    tree, _ = request.getfixturevalue(size)
    ax = plot(tree, pos=layout(tree), ax=plt.subplots(layout="constrained")[1])
    boxes = assert_nothing_clipped_or_overlapping(ax)
    if size == "small":  # turned names have loose bounding boxes, so only upright ones can be held
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    plot(tree, pos=layout(tree, kind="spring"))


def test_shortened_names_stay_distinct():
    names = [f"a_rather_long_name_{i}" for i in range(12)] + ["x"]
    short = shorten(names, 10)
    assert len(set(short)) == len(names)
    assert max(map(len, short)) <= 10
    same_ends = ["aaaaaaaaa1bbbbbbbbb", "aaaaaaaaa2bbbbbbbbb"]
    assert len(set(shorten(same_ends, 8))) == 2


WINE = (
    "alcohol malic_acid ash alcalinity_of_ash magnesium total_phenols flavanoids nonflavanoid_phenols "
    "proanthocyanins color_intensity hue od280/od315_of_diluted_wines proline"
).split()


@pytest.mark.parametrize("p", [5, 8, 12, 13, 20, 24])
def test_long_names_do_not_lie_over_each_other_and_leave_room_for_the_graph(p):
    graph = nx.Graph()
    graph.add_nodes_from(f"{WINE[i % 13]}{'_2' * (i >= 13)}" for i in range(p))
    ax = plot_graph(graph)
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    if not any(text.get_rotation() for text in ax.texts):  # boxes of turned names overlap
        assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    circle = np.ptp(ax.transData.transform(ax.collections[-1].get_offsets()), axis=0)
    assert circle.prod() > 0.3 * np.prod(ax.figure.bbox.size)
