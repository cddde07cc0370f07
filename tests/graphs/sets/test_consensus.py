"""The graph of least expected distance, against all graphs."""

import networkx as nx
import numpy as np
import pytest

from tools.dags import all_dags, dag_posterior, random_dags, to_graph

import bayesstruct as bs

from bayesstruct.graphs.distances import joined_differently
from bayesstruct.graphs.sets import acyclic


def expected_distances(graphs):
    """Expected structural Hamming distance of every graph from some draws (chain, draw, p, p)."""
    p = graphs.shape[-1]
    drawn, candidates = graphs.reshape(-1, p, p), all_dags(p)
    return candidates, np.mean([joined_differently(candidates, one) for one in drawn], axis=0)


@pytest.mark.parametrize("p", [3, 4])
@pytest.mark.parametrize("seed", range(8))
def test_no_graph_is_nearer_to_the_draws(p, seed):
    graphs = random_dags(np.random.default_rng(seed), 9, p, 0.7).reshape(3, 3, p, p)
    _, distance = expected_distances(graphs)
    found = bs.consensus_graph(dag_posterior(graphs))
    assert nx.is_directed_acyclic_graph(found)
    assert found.graph["optimal"]
    assert found.graph["expected_shd"] == pytest.approx(distance.min())
    assert found.graph["least_shd"] == pytest.approx(distance.min())
    draws = [to_graph(matrix) for matrix in graphs.reshape(-1, p, p)]
    own = np.mean([bs.structural_hamming_distance(found, graph) for graph in draws])
    assert own == pytest.approx(distance.min())


def test_an_undirected_edge_is_included_where_the_median_graph_has_none():
    """Both directions have probability 0.45: no arc is wrong in 0.9 of the draws, either one in 0.55."""
    drawn = np.zeros((1, 20, 2, 2))
    drawn[:, :9, 0, 1] = drawn[:, 9:18, 1, 0] = 1
    tree = dag_posterior(drawn)
    assert not bs.median_graph(tree).edges
    found = bs.consensus_graph(tree)
    assert len(found.edges) == 1
    assert found.graph["expected_shd"] == pytest.approx(0.55)


def test_the_least_harmful_arc_of_a_cycle_is_left_out():
    """Three graphs, each two arcs of a triangle: all arcs gain, and one of them must go."""
    drawn = np.zeros((1, 10, 3, 3))
    for draws, arcs in [(range(4), (0, 1)), (range(4, 7), (1, 2)), (range(7, 10), (2, 0))]:
        for i in arcs:
            drawn[:, list(draws), i, (i + 1) % 3] = 1
    found = bs.consensus_graph(dag_posterior(drawn))
    # v0 -> v1 and v1 -> v2 have 0.7, v2 -> v0 has 0.6: distance 0.3 + 0.3 + 0.6
    assert sorted(found.edges) == [("v0", "v1"), ("v1", "v2")]
    assert found.graph["expected_shd"] == pytest.approx(1.2)


def test_required_arcs_stay():
    """One arc of five cycles: to leave it out would gain more, but all graphs have it."""
    p = 7
    drawn = np.zeros((1, 2, p, p))
    drawn[..., 0, 1] = 1
    drawn[0, 0, 1, 2:] = drawn[0, 1, 2:, 0] = 1
    prior = np.where(dag_posterior(drawn)["constant_data"]["arc_source"].values == 0, 1.0, 0.25)
    target = dag_posterior(drawn)["constant_data"]["arc_target"].values
    prior[target != 1] = 0.25
    gain = np.zeros((p, p))
    gain[0, 1], gain[1, 2:], gain[2:, 0] = 1, 0.9, 0.9
    assert not acyclic.best_acyclic(gain).arcs[0, 1]
    assert bs.consensus_graph(dag_posterior(drawn, prior=prior)).has_edge("v0", "v1")


def test_error_of_the_expected_distance():
    rng = np.random.default_rng(3)
    drawn = np.zeros((4, 500, 2, 2))
    drawn[..., 0, 1] = rng.random((4, 500)) < 0.7
    found = bs.consensus_graph(dag_posterior(drawn)).graph
    assert found["mcse"] == pytest.approx(np.sqrt(0.3 * 0.7 / 2000), rel=0.15)
    assert bs.consensus_graph(dag_posterior(np.zeros((2, 9, 2, 2)))).graph["mcse"] == 0


@pytest.mark.parametrize("solve", [acyclic._exact, acyclic._bounded])
def test_orders_of_one_component_are_the_best(solve):
    rng, candidates = np.random.default_rng(4), all_dags(4)
    for _ in range(10):
        gain = np.where(rng.random((4, 4)) < 0.8, rng.random((4, 4)), 0)
        np.fill_diagonal(gain, 0)
        order, bound = solve(gain)
        best = (candidates * gain).sum(axis=(1, 2)).max()
        assert bound == pytest.approx(best)
        assert acyclic._gain_of(gain, order) == pytest.approx(best)


@pytest.mark.parametrize("density", [0.4, 0.8])
def test_gain_and_bound_are_those_of_the_best_of_all_graphs(density):
    """Sparse gains have several components with arcs between them."""
    rng, candidates = np.random.default_rng(7), all_dags(4)
    for _ in range(20):
        gain = np.where(rng.random((4, 4)) < density, rng.random((4, 4)), -1.0)
        found = acyclic.best_acyclic(gain)
        best = (candidates * gain).sum(axis=(1, 2)).max()
        assert found.gain == pytest.approx(best)
        assert found.bound == pytest.approx(best)
        assert (gain * found.arcs).sum() == pytest.approx(best)


def test_integer_programs_agree_with_subsets():
    gain = np.random.default_rng(5).random((10, 10))
    np.fill_diagonal(gain, 0)
    (first, bound), (second, other) = acyclic._exact(gain), acyclic._bounded(gain)
    assert bound == pytest.approx(other)
    assert acyclic._gain_of(gain, first) == pytest.approx(acyclic._gain_of(gain, second))


def test_without_time_the_bound_is_not_reached(monkeypatch):
    """Then the certificate says so, and the bound is on the right side."""
    rng = np.random.default_rng(6)
    monkeypatch.setattr(acyclic, "MAX_EXACT", 2)
    graphs = random_dags(rng, 6, 9, 0.9).reshape(1, 6, 9, 9)
    best = bs.consensus_graph(dag_posterior(graphs)).graph
    monkeypatch.setattr(acyclic, "_SECONDS", 0.0)
    found = bs.consensus_graph(dag_posterior(graphs))
    assert best["optimal"] and not found.graph["optimal"]
    assert nx.is_directed_acyclic_graph(found)
    assert found.graph["least_shd"] <= best["expected_shd"] <= found.graph["expected_shd"]


def test_dependency_networks_have_no_consensus():
    tree = dag_posterior(np.zeros((2, 9, 2, 2)))
    tree["constant_data"] = tree["constant_data"].to_dataset().drop_vars("arc_acyclic")
    with pytest.raises(ValueError, match="dependency network"):
        bs.consensus_graph(tree)
