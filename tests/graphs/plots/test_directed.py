"""Pictures of directed graphs, and files of them for other programs."""

import itertools
import re

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgba
from matplotlib.patches import FancyArrowPatch
from tools.dags import dag_posterior, random_dags, to_graph

from bayesstruct import structure
from bayesstruct.graphs.plots.style import NEGATIVE, POSITIVE
from bayesstruct.graphs.posteriors.reading import read
from bayesstruct.plots import layout, plot_edges, plot_evidence, plot_graph


@pytest.fixture(scope="module")
def tree():
    rng = np.random.default_rng(4)
    base = random_dags(rng, 1, 8, density=0.4)[0]
    drawn = base & (rng.random((2, 40, 8, 8)) < rng.choice([0.6, 0.99], (8, 8)))
    return dag_posterior(drawn)


def arrows(ax):
    return [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]


# --- evidence and weights --------------------------------------------------------------------


def test_evidence_is_that_of_adjacencies():
    """v0 and v1 always joined, one way or the other; v0 and v2 half of the time; v1 and v2 never."""
    drawn = np.zeros((4, 100, 3, 3), bool)
    drawn[:, ::2, 0, 1] = drawn[:, 1::2, 1, 0] = True
    drawn[:, ::2, 0, 2] = True
    ax = plot_evidence(dag_posterior(drawn))
    counts = [text.get_text().rsplit(": ", 1)[1] for text in ax.get_legend().get_texts()]
    assert counts == ["1", "1", "1"]
    found = read(dag_posterior(drawn)).adjacencies()
    assert found["prior"].tolist() == [0.5] * 3  # of two arcs of 0.25, which exclude each other
    assert found["factor"][1] == pytest.approx(1.0)


def test_adjacencies_that_were_required_or_forbidden_are_counted_apart():
    drawn = np.zeros((2, 50, 3, 3), bool)
    drawn[:, ::2, 0, 1] = drawn[:, 1::2, 1, 0] = drawn[:, ::2, 1, 2] = True
    # Arcs in the order of `dag_posterior`: from 1, 2 to 0, from 0, 2 to 1, from 0, 1 to 2.
    prior = np.array([0.0, 0.0, 1.0, 0.25, 0.0, 0.25])
    texts = [
        text.get_text()
        for text in plot_evidence(dag_posterior(drawn, prior=prior)).get_legend().get_texts()
    ]
    assert "required (not tested): 1" in texts
    assert "forbidden (not tested): 1" in texts


def test_weights_of_arcs_have_arrows_in_their_names(tree):
    ax = plot_edges(tree, n=5)
    table = structure.arc_table(tree).head(5)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == [f"{a} → {b}" for a, b in zip(table.source, table.target, strict=True)]
    assert "P(arc)" in [text.get_text() for text in ax.texts]
    with pytest.raises(ValueError, match=r"between discrete columns.* have no coefficients"):
        plot_edges(dag_posterior(np.zeros((2, 20, 3, 3), bool), weighted=False))


# --- layout ----------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_parents_are_above_their_children(seed, p):
    graph = to_graph(random_dags(np.random.default_rng(seed), 1, p)[0])
    pos = layout(graph)
    assert list(pos) == list(graph.nodes)
    assert len(set(pos.values())) == p
    assert all(pos[a][1] > pos[b][1] for a, b in graph.edges)
    assert np.abs(list(pos.values())).max() <= 1 + 1e-9
    linked = [pos[node][1] for node in graph if graph.degree(node)]
    alone = [pos[node][1] for node in graph if not graph.degree(node)]
    assert not linked or not alone or max(alone) < min(linked)


def test_layers_have_no_avoidable_crossings():
    graph = nx.DiGraph(
        [("a", "y"), ("b", "x"), ("c", "z"), ("top", "c"), ("top", "b"), ("top", "a")]
    )
    pos = layout(graph, kind="layered")
    upper, lower = sorted("abc", key=lambda n: pos[n]), sorted("xyz", key=lambda n: pos[n])
    assert [next(iter(graph[node])) for node in upper] == lower


def test_layers_of_cyclic_and_essential_graphs():
    pos = layout(nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]))
    assert pos["a"][1] > pos["b"][1] > pos["c"][1]
    both = structure.cpdag(nx.DiGraph([("a", "b")]))
    assert len(set(layout(both).values())) == 2
    with pytest.raises(ValueError, match="undirected"):
        layout(nx.path_graph(3), kind="layered")
    assert layout(both, kind="circle")["a"] == pytest.approx((0, 1))


# --- pictures --------------------------------------------------------------------------------


def test_one_arrow_an_arc_coloured_by_sign(tree):
    tree = tree.copy(deep=True)
    tree["posterior"]["weight"][..., ::2] *= -1
    ax = plot_graph(tree)
    graph = structure.median_graph(tree)
    assert len(arrows(ax)) == graph.number_of_edges() > 0
    weights = sorted((about["weight"] for *_, about in graph.edges(data=True)), key=abs)
    expected = [to_rgba(NEGATIVE if w < 0 else POSITIVE)[:3] for w in weights]
    found = [arrow.get_edgecolor()[:3] for arrow in arrows(ax)]
    np.testing.assert_allclose(found, expected)
    widths = [arrow.get_linewidth() for arrow in arrows(ax)]
    assert (np.diff(widths) >= 0).all()
    assert "P(arc) ≥ 0.5" in ax.get_legend().get_title().get_text()


def test_fewer_arrows_at_a_higher_probability(tree):
    few = arrows(plot_graph(tree, min_probability=0.9))
    assert 0 < len(few) < len(arrows(plot_graph(tree)))


def test_paler_is_less_sure_also_without_weights(tree):
    plain = dag_posterior(tree["posterior"]["dag"].values, weighted=False)
    ax = plot_graph(plain)
    opacity = [arrow.get_edgecolor()[3] for arrow in arrows(ax)]
    assert min(opacity) < max(opacity)
    assert (np.diff(opacity) >= -1e-12).all()  # the surest are on top
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["P = 1", "P = 0.5"]


def test_arrows_go_from_border_to_border(tree):
    ax = plot_graph(tree)
    ax.figure.draw_without_rendering()
    names = [text.get_text() for text in ax.texts]
    boxes = [text.get_bbox_patch().get_window_extent() for text in ax.texts]
    found = []
    for arrow in arrows(ax):
        points = ax.transData.transform(arrow.get_path().vertices)
        apart = np.array([gap(points, box) for box in boxes])  # node, vertex
        parent = apart[:, 0].argmin()
        apart_from_others = np.delete(apart, parent, axis=0).min(axis=1)
        child = np.delete(np.arange(len(names)), parent)[apart_from_others.argmin()]
        found.append((names[parent], names[child]))
        for end in (parent, child):
            # pixels; a point of gap, and matplotlib leaves room for the mitre of the tip
            assert 0 < apart[end].min() < 8
    assert sorted(found) == sorted(structure.median_graph(tree).edges)


def gap(points, box):
    """Distance in pixels of points to a box; 0 inside."""
    return np.linalg.norm(np.maximum(np.maximum(box.min - points, points - box.max), 0), axis=1)


def test_arrows_bend_around_nodes_in_their_way():
    graph = nx.DiGraph([("a", "b"), ("b", "c"), ("a", "c")])
    pos = {"a": (0, 1), "b": (0, 0), "c": (0, -1)}
    bends = [arrow.get_connectionstyle().rad for arrow in arrows(plot_graph(graph, pos=pos))]
    assert sorted(map(bool, bends)) == [False, False, True]


def test_both_directions_are_one_line_without_heads():
    graph = structure.cpdag(nx.DiGraph([("a", "b"), ("c", "d"), ("e", "d")]))
    ax = plot_graph(graph)
    styles = [type(arrow.get_arrowstyle()).__name__ for arrow in arrows(ax)]
    assert sorted(styles) == ["Curve", "CurveFilledB", "CurveFilledB"]
    assert ax.get_legend() is None


def test_an_edge_of_undecided_direction_is_one_dark_line_without_head():
    """Half of the graphs have the arc, the others its reverse: the edge is certain."""
    graphs = np.zeros((1, 40, 3, 3), bool)
    graphs[:, ::2, 0, 1] = graphs[:, 1::2, 1, 0] = graphs[:, :, 2, 1] = True
    for weighted in (True, False):
        ax = plot_graph(dag_posterior(graphs, weighted=weighted), evidence=2)
        found = {type(arrow.get_arrowstyle()).__name__: arrow for arrow in arrows(ax)}
        assert {*found} == {"Curve", "CurveFilledB"} and len(arrows(ax)) == 2
        assert found["Curve"].get_edgecolor()[3] == found["CurveFilledB"].get_edgecolor()[3] == 1
        if weighted:  # as wide as an arc with this mean weight
            assert found["Curve"].get_linewidth() == pytest.approx(
                found["CurveFilledB"].get_linewidth(), rel=0.1
            )
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        assert "no head: direction undecided: 1" in texts
    one_way = plot_graph(dag_posterior(graphs[:, ::2]), evidence=2)
    assert not any("head" in text.get_text() for text in one_way.get_legend().get_texts())


def test_an_edge_is_drawn_whose_directions_are_both_less_probable_than_the_least():
    graphs = np.zeros((1, 100, 3, 3), bool)
    graphs[:, :45, 0, 1] = graphs[:, 45:90, 1, 0] = True
    graphs[:, :30, 1, 2] = True
    posterior = dag_posterior(graphs)
    (line,) = arrows(plot_graph(posterior))
    assert type(line.get_arrowstyle()).__name__ == "Curve"
    assert len(arrows(plot_graph(posterior, min_probability=0.2))) == 2
    assert not arrows(plot_graph(posterior, min_probability=0.95))


@pytest.mark.parametrize("p", [1, 2, 30])
def test_graphs_of_any_size_and_given_axes(p):
    _, ax = plt.subplots()
    graph = to_graph(random_dags(np.random.default_rng(p), 1, p, density=0.1)[0])
    assert plot_graph(graph, ax=ax) is ax
    assert len(arrows(ax)) == graph.number_of_edges()
    plot_graph(graph, pos=layout(graph, kind="circle"))
    with pytest.raises(ValueError, match="no position"):
        plot_graph(graph, pos={})


# --- export ----------------------------------------------------------------------------------

_NAME = r'"((?:[^"\\]|\\.)*)"'


def read_dot(text):
    """Read back what is written: header, nodes, and links with their options."""
    head, *lines, last = text.rstrip().split("\n")
    assert last == "}"
    nodes, links = [], {}
    for line in lines:
        if found := re.fullmatch(rf"  {_NAME};", line):
            nodes.append(unquoted(found[1]))
        else:
            found = re.fullmatch(rf"  {_NAME} (--|->) {_NAME}(?: \[(.*)\])?;", line)
            options = dict(re.findall(rf"(\w+)={_NAME}", found[4] or ""))
            links[unquoted(found[1]), found[2], unquoted(found[3])] = options
    return head, nodes, links


def unquoted(text):
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)


def test_dot_of_a_result_is_its_median_graph(tree, tmp_path):
    path = structure.write_dot(tree, tmp_path / "graph.dot")
    head, nodes, links = read_dot(path.read_text())
    graph = structure.median_graph(tree)
    assert head == "digraph {"
    assert nodes == list(graph.nodes)
    assert [(a, b) for a, _, b in links] == list(graph.edges)
    for (a, link, b), options in links.items():
        assert link == "->"
        assert float(options["label"]) == pytest.approx(graph.edges[a, b]["probability"], abs=6e-3)
        assert re.fullmatch("#[0-9a-f]{8}", options["color"])


def test_dot_names_may_hold_anything(tmp_path):
    names = ['say "a"', "back\\slash", "two\nlines", "a -> b;", "é"]
    graph = nx.DiGraph(itertools.pairwise(names))
    _, nodes, links = read_dot(structure.write_dot(graph, tmp_path / "g.dot").read_text("utf-8"))
    assert nodes == names
    assert [(a, b) for a, _, b in links] == list(graph.edges)


def test_dot_of_undirected_and_essential_graphs(tmp_path):
    head, _, links = read_dot(structure.write_dot(nx.path_graph(3), tmp_path / "u.dot").read_text())
    assert head == "graph {"
    assert list(links) == [("0", "--", "1"), ("1", "--", "2")]
    essential = structure.cpdag(nx.DiGraph([("a", "b"), ("c", "d"), ("e", "d")]))
    _, _, links = read_dot(structure.write_dot(essential, tmp_path / "e.dot").read_text())
    assert links[("a", "->", "b")] == {"dir": "none"}
    assert links[("c", "->", "d")] == {} and len(links) == 3


def test_graphml_keeps_directions(tree, tmp_path):
    path = structure.write_graphml(tree, tmp_path / "g.graphml")
    again = nx.read_graphml(path)
    assert again.is_directed()
    assert again.number_of_edges() == 56
    median = structure.median_graph(tree)
    again = nx.read_graphml(structure.write_graphml(median, path))
    assert set(again.edges) == set(median.edges)
    again = nx.read_graphml(structure.write_graphml(structure.cpdag(median), path))
    assert set(again.edges) == set(structure.cpdag(median).edges)
