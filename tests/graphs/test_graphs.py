import networkx as nx
import numpy as np
import pandas as pd
import pytest

from tools.posteriors import bernoulli_posterior, posterior

from bayesstruct.structure import (
    as_matrix,
    bayes_factors,
    graph_from_key,
    graph_probabilities,
    map_graph,
    median_graph,
    to_networkx,
    write_edge_list,
    write_graphml,
)

# five draws of a graph over three variables; edges v0-v1, v0-v2, v1-v2
FIVE = np.array([[[1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]]])


def test_median_graph():
    graph = median_graph(posterior(FIVE))
    assert list(graph.nodes) == ["v0", "v1", "v2"]
    assert list(graph.edges(data=True)) == [
        ("v0", "v1", {"probability": 0.8, "weight": pytest.approx(0.24)})
    ]
    assert len(median_graph(posterior(FIVE), threshold=0.4).edges) == 2


@pytest.mark.parametrize("threshold", [0, 1, 1.5])
def test_threshold_is_checked(threshold):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        median_graph(posterior(FIVE), threshold)


def test_map_graph_and_frequencies():
    tree = posterior(FIVE)
    graph = map_graph(tree)
    assert graph.graph == {"probability": 0.4, "visits": 2}
    assert list(graph.edges) == [("v0", "v1")]  # two graphs have two visits: the first seen
    table = graph_probabilities(tree)
    assert table.probability.tolist() == [0.4, 0.4, 0.2]
    assert table.edges.tolist() == [1, 2, 1]
    assert table.attrs["n_graphs"] == 3
    top = graph_probabilities(tree, top=1)
    assert len(top) == 1 and top.attrs["n_graphs"] == 3
    with pytest.raises(ValueError, match="top"):
        graph_probabilities(tree, top=0)


def test_key_gives_the_graph_back():
    tree = bernoulli_posterior(np.full(21, 0.4), draws=20)
    drawn = tree["posterior"]["edge"].values.reshape(-1, 21)
    for row in graph_probabilities(tree, top=10).itertuples():
        graph = graph_from_key(tree, row.key)
        assert graph.number_of_edges() == row.edges
        matrix = nx.to_numpy_array(graph, weight=None)[np.triu_indices(7, 1)]
        assert (drawn == matrix).all(axis=1).mean() == pytest.approx(row.probability)
    with pytest.raises(ValueError, match="21 possible edges"):
        graph_from_key(tree, "ff")


def test_many_large_graphs_are_counted():
    rng = np.random.default_rng(0)
    base = rng.integers(0, 2, (300, 4950))
    tree = posterior(base[rng.integers(0, 300, (4, 1000))], weight=np.zeros((4, 1000, 4950)))
    table = graph_probabilities(tree)
    assert len(table) == 300
    assert table.probability.sum() == pytest.approx(1)


def test_all_edges():
    tree = bernoulli_posterior([0.2, 0.9, 0.5])
    graph = to_networkx(tree)
    assert graph.number_of_edges() == 3
    edge = graph.edges["v0", "v2"]
    assert set(edge) == {"probability", "weight", "bayes_factor", "bayes_factor_shown"}
    assert edge["bayes_factor"] == pytest.approx(bayes_factors(tree).values[1])


def test_export_round_trip(tmp_path):
    names = ["a -- b", "c, d", "é"]
    tree = bernoulli_posterior([0.2, 0.9, 0.5], names=names)
    read = nx.read_graphml(write_graphml(tree, tmp_path / "all.graphml"))
    assert nx.utils.graphs_equal(nx.Graph(read), to_networkx(tree)) or (
        dict(read.edges["a -- b", "é"]) == to_networkx(tree).edges["a -- b", "é"]
    )
    median = nx.read_graphml(write_graphml(median_graph(tree), tmp_path / "median.graphml"))
    assert set(median.nodes) == set(names)
    table = pd.read_csv(write_edge_list(tree, tmp_path / "all.csv"))
    assert list(table) == [
        *"source target probability weight bayes_factor bayes_factor_shown".split()
    ]
    assert table.target.tolist() == ["c, d", "é", "é"]
    empty = pd.read_csv(write_edge_list(nx.empty_graph(3), tmp_path / "none.csv"))
    assert list(empty) == ["source", "target"]


def test_matrix_view_of_draws():
    tree = bernoulli_posterior([0.2, 0.9, 0.5], draws=5)
    weight = tree["posterior"]["weight"]
    matrix = as_matrix(weight.transpose("pair", ...), tree, diagonal=1)
    assert matrix.dims == ("chain", "draw", "node", "node_")
    np.testing.assert_array_equal(matrix.sel(node="v2", node_="v0"), weight[..., 1])
    assert as_matrix(np.arange(3), tree).sel(node="v1", node_="v2") == 2
    with pytest.raises(ValueError, match="3 values"):
        as_matrix(np.arange(4), tree)
