"""Degrees of nodes, hubs and density, against networkx and counts by hand."""

import networkx as nx
import numpy as np
import pytest

from tools.dags import dag_posterior, random_dags
from tools.posteriors import bernoulli_posterior, posterior

import bayesstruct as bs


def drawn(*graphs, p=4):
    """Result of one chain whose draws are graphs of these edges (i, j)."""
    upper = list(zip(*np.triu_indices(p, 1), strict=True))
    return posterior([[[edge in graph for edge in upper] for graph in graphs]])


STAR, CHAIN, EMPTY = [(0, 1), (0, 2), (0, 3)], [(0, 1), (1, 2), (2, 3)], []


def test_degrees_of_an_undirected_graph_are_those_of_networkx():
    tree = bernoulli_posterior(np.linspace(0.1, 0.9, 10), draws=30)
    degrees = []
    for edges in tree["posterior"]["edge"].values.reshape(-1, 10):
        matrix = np.zeros((5, 5))
        matrix[np.triu_indices(5, 1)] = edges
        degrees.append([d for _, d in nx.from_numpy_array(matrix).degree])
    table = bs.degree_table(tree, hub=3).set_index("node").loc[[f"v{k}" for k in range(5)]]
    degrees = np.array(degrees)
    np.testing.assert_allclose(table["degree"], degrees.mean(0))
    np.testing.assert_allclose(table["connected"], (degrees > 0).mean(0))
    np.testing.assert_allclose(table["hub"], (degrees >= 3).mean(0))
    assert table.attrs["density"]["mean"] == pytest.approx(degrees.sum(1).mean() / 20)
    assert table.attrs["hub"] == "a node of degree 3 or more"
    inside = (degrees >= table["hdi_low"].to_numpy()) & (degrees <= table["hdi_high"].to_numpy())
    assert (inside.mean(0) >= table.attrs["ci_prob"] - 0.01).all()


def test_degrees_of_a_directed_graph_are_those_of_networkx():
    graphs = random_dags(np.random.default_rng(1), 40, 5).reshape(2, 20, 5, 5)
    table = bs.degree_table(dag_posterior(graphs)).set_index("node")
    drawn_graphs = [
        nx.from_numpy_array(g, create_using=nx.DiGraph) for g in graphs.reshape(-1, 5, 5)
    ]
    for k in range(5):
        row = table.loc[f"v{k}"]
        assert row["in_degree"] == pytest.approx(np.mean([g.in_degree[k] for g in drawn_graphs]))
        assert row["out_degree"] == pytest.approx(np.mean([g.out_degree[k] for g in drawn_graphs]))
        assert row["degree"] == pytest.approx(row["in_degree"] + row["out_degree"])
        assert row["in_low"] <= row["in_degree"] <= row["in_high"]
    density = np.mean([g.number_of_edges() for g in drawn_graphs]) / 10
    assert table.attrs["density"]["mean"] == pytest.approx(density)


@pytest.mark.parametrize(
    ("hub", "expected"),
    [
        (0.1, [1 / 3, 1 / 3, 1 / 3, 0]),  # v0; v1 and v2, which are equal; no node has an edge
        (0.5, [1 / 3, 2 / 3, 2 / 3, 1 / 3]),  # degree 1 of the star, 2 of the chain
        (1, [2 / 3] * 4),
        (2, [1 / 3, 1 / 3, 1 / 3, 0]),
    ],
)
def test_hubs_have_the_largest_degrees_and_an_edge(hub, expected):
    table = bs.degree_table(drawn(STAR, CHAIN, EMPTY), hub=hub).set_index("node")
    np.testing.assert_allclose(table["hub"].loc[[f"v{k}" for k in range(4)]], expected)


def test_the_distribution_of_degrees():
    table = bs.degree_distribution(drawn(STAR, CHAIN, EMPTY))
    assert table["degree"].tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(table["share"] * 12, [4, 5, 2, 1])
    graphs = random_dags(np.random.default_rng(1), 40, 5).reshape(2, 20, 5, 5)
    table = bs.degree_distribution(dag_posterior(graphs))
    for side, axis in (("in", -2), ("out", -1)):
        own = table[table["direction"] == side]
        degrees = graphs.sum(axis)
        np.testing.assert_allclose(own["share"], [(degrees == k).mean() for k in own["degree"]])


@pytest.mark.parametrize(
    ("hub", "error", "message"),
    [
        (0, ValueError, "`hub` must be above 0"),
        (1.5, ValueError, "`hub` must be a whole number"),
        ("many", TypeError, "`hub` must be one number"),
        (True, TypeError, "`hub` must be one number"),
    ],
)
def test_a_wrong_definition_of_hubs_is_refused(hub, error, message):
    with pytest.raises(error, match=message):
        bs.degree_table(drawn(STAR), hub=hub)
