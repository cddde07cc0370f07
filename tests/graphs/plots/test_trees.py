"""Pictures of trees: branches around the middle, no lines that cross, hidden nodes drawn as such, no probabilities that are not known."""

import itertools

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import pytest

from graphs.plots.test_boxes import hold, names_of
from matplotlib.collections import PathCollection
from tools.posteriors import posterior

import bayesstruct as bs

from bayesstruct.graphs.plots.layouts.trees import crossings, spanning_lines
from bayesstruct.graphs.posteriors.reading import read
from bayesstruct.plots import layout, plot_graph


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def tree_of(p, length="short", *, reach=12):
    """Random tree in which a node has a parent among the `reach` before it."""
    rng, names = np.random.default_rng(p), names_of(p, length)
    tree = nx.Graph()
    tree.add_nodes_from(names)
    for k in range(1, p):
        parent = int(rng.integers(max(0, k - reach), k))
        tree.add_edge(names[k], names[parent], weight=rng.normal())
    return tree


def crossings_of(tree, pos):
    place = {name: k for k, name in enumerate(pos)}
    points = np.array([*pos.values()])
    return crossings(points, np.array([(place[a], place[b]) for a, b in tree.edges]))


def test_lines_that_cross_are_counted():
    square = np.array([[0, 0], [1, 1], [0, 1], [1, 0], [2, 2], [0.5, 3]], float)
    assert crossings(square, np.array([(0, 1), (2, 3)])) == 1
    assert crossings(square, np.array([(0, 2), (1, 3)])) == 0
    assert crossings(square, np.array([(0, 1), (1, 4), (0, 3)])) == 0
    every = np.array([*itertools.combinations(range(4), 2)])
    assert crossings(square, every) == 1
    assert crossings_of(tree_of(30), layout(tree_of(30), kind="circle")) > 20


SHAPES = {
    "random": tree_of,
    "star": lambda p: nx.star_graph([f"v{k}" for k in range(p)]),
    "chain": lambda p: nx.path_graph([f"v{k}" for k in range(p)]),
}


@pytest.mark.parametrize("p", [2, 3, 6, 13, 30, 60])
@pytest.mark.parametrize("shape", SHAPES)
def test_lines_of_trees_do_not_cross(shape, p):
    tree = SHAPES[shape](p)
    pos = layout(tree, kind="tree")
    assert list(pos) == list(tree) and crossings_of(tree, pos) == 0
    assert np.abs([*pos.values()]).max() <= 1 + 1e-9


@pytest.mark.parametrize(
    ("p", "length"),
    [
        *itertools.product((6, 13, 30), ("short", "long")),
        (60, "short"),
        pytest.param(60, "long", marks=pytest.mark.slow),
        (100, "short"),
        pytest.param(100, "long", marks=pytest.mark.slow),
    ],
)
def test_names_in_trees_are_apart(p, length):
    hold(plot_graph(tree_of(p, length), layout="tree"))


@pytest.mark.parametrize(("shape", "p"), [("star", 30), ("chain", 20)])
def test_names_in_stars_and_chains_are_apart(shape, p):
    hold(plot_graph(SHAPES[shape](p), layout="tree"), full=0.4)


def test_single_nodes_and_small_parts_of_a_forest_are_below_and_beside():
    forest = nx.disjoint_union(tree_of(20), nx.path_graph(3))
    forest = nx.relabel_nodes(forest, str)
    forest.add_nodes_from(["a", "b", "c"])
    pos = layout(forest, kind="tree")
    assert max(pos[k][1] for k in "abc") < min(pos[str(k)][1] for k in range(23))
    assert crossings_of(forest, pos) == 0
    hold(plot_graph(forest, layout="tree"))


def test_a_graph_with_cycles_is_placed_by_its_most_probable_then_strongest_edges():
    graph = nx.Graph()
    graph.add_edge("a", "b", probability=0.9, weight=0.1)
    graph.add_edge("b", "c", probability=0.6, weight=-0.5)
    graph.add_edge("a", "c", probability=0.6, weight=0.4)
    assert list(map(set, spanning_lines(graph))) == [{"a", "b"}, {"b", "c"}]
    both = nx.DiGraph()
    both.add_edge("a", "b", probability=0.2)
    both.add_edge("b", "a", probability=0.7)
    both.add_edge("b", "c", probability=0.5)
    assert list(map(set, spanning_lines(both))) == [{"a", "b"}, {"b", "c"}]


def numbers(p, n=60):
    x = np.random.default_rng(p).normal(size=(n, p))
    for j in range(1, p):
        x[:, j] += 0.6 * x[:, (j - 1) // 2]
    return pd.DataFrame(x, columns=[f"c{j}" for j in range(p)])


def texts(ax):
    legend = ax.get_legend()
    return [legend.get_title().get_text(), *(text.get_text() for text in legend.get_texts())]


def test_hidden_nodes_have_dashed_outlines_and_slanted_names():
    simulated = bs.simulate.latent_tree(500, p=8, shape="leaves", random_seed=1)
    found = bs.solvers.latent_tree(simulated.data)
    for graph in (found.graph, simulated.graph):
        ax = plot_graph(graph)
        hold(ax)
        title, *labels = texts(ax)
        assert title == "" and "hidden" in labels and not any("P" in label for label in labels)
        assert ax.get_axes_locator().pos == layout(graph, kind="tree")
        hidden = [bool(own) for _, own in graph.nodes(data="hidden")]
        slanted = [text.get_fontstyle() == "italic" for text in ax.texts[: len(graph)]]
        dashed = [text.get_bbox_patch().get_linestyle() != "-" for text in ax.texts[: len(graph)]]
        assert slanted == dashed == hidden and any(hidden) and not all(hidden)
    discs = plot_graph(graph, predictability=dict.fromkeys(graph, 0.5), layout="circle")
    scatter = [own for own in discs.collections if isinstance(own, PathCollection)][-1]
    assert [pattern is not None for _, pattern in scatter.get_linestyle()] == hidden
    coloured = plot_graph(found.graph, groups=found.kinds)
    assert texts(coloured).count("hidden") == 1
    plain = plot_graph(nx.relabel_nodes(found.graph, str), layout="circle")
    assert "hidden" in texts(plain)


def test_solvers_of_trees_have_pictures_of_trees_without_probabilities():
    table = numbers(9)
    for graph in (
        bs.solvers.chow_liu(table).graph,
        bs.solvers.chow_liu(table, penalty="bic").graph,
        bs.exact.tree_posterior(table).best,
    ):
        ax = plot_graph(graph)
        hold(ax)
        assert ax.get_axes_locator().pos == layout(graph, kind="tree")
        assert texts(ax)[0] == "" and "hidden" not in texts(ax)


def test_posteriors_of_trees_are_placed_by_their_likeliest_tree_whatever_is_drawn():
    """Of pairs ab, ac, ad, bc, bd, cd: ab and cd are in all trees, and ac in 40, bc in 35, bd in 25 % of them."""
    drawn = np.zeros((1, 100, 6), int)
    drawn[..., 0] = drawn[..., 5] = 1
    drawn[:, :40, 1] = drawn[:, 40:75, 3] = drawn[:, 75:, 4] = 1
    idata = posterior(drawn)
    assert layout(idata) == layout(idata, kind="circle")
    idata["constant_data"] = idata["constant_data"].to_dataset().assign(edge_acyclic=1)
    names = read(idata).variables
    tree = nx.Graph()
    tree.add_nodes_from(names)
    tree.add_edges_from([(names[i], names[j]) for i, j in ((0, 1), (2, 3), (0, 2))])
    pos = layout(tree, kind="tree")
    assert layout(idata) == pos and layout(idata, kind="circle") != pos
    for least in (0.1, 0.5, 0.9):
        ax = plot_graph(idata, min_probability=least)
        assert ax.get_axes_locator().pos == pos
        assert f"P(edge) ≥ {least}" in texts(ax)[0]
    assert bs.plot_evidence(idata).get_axes_locator().pos == pos
    assert bs.median_graph(idata).graph["forest"] is True
