"""Essential graphs, and distances between directed graphs."""

import itertools

import networkx as nx
import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st
from tools.dags import all_dags, dag_posterior, random_dags

from bayesstruct import structure
from bayesstruct.graphs.ancestry import compelled_arcs, essential
from bayesstruct.graphs.distances import joined_differently, wrong_effects

SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def dags_of_four():
    dags = all_dags(4)
    assert len(dags) == 543  # Robinson's count
    return dags


def pattern(matrix):
    """Skeleton and v-structures, written down from their definitions."""
    p = len(matrix)
    joined = matrix | matrix.T
    colliders = frozenset(
        (a, c, b)
        for a, b in itertools.combinations(range(p), 2)
        for c in range(p)
        if matrix[a, c] and matrix[b, c] and not joined[a, b]
    )
    return joined.tobytes(), colliders


# --- essential graphs ------------------------------------------------------------------------


def test_essential_graphs_of_all_graphs_of_four_nodes(dags_of_four):
    """Compelled is what is the same in all graphs with this skeleton and these v-structures."""
    classes = {}
    for k, matrix in enumerate(dags_of_four):
        classes.setdefault(pattern(matrix), []).append(k)
    assert len(classes) == 185
    found = essential(dags_of_four)
    compelled = compelled_arcs(dags_of_four)
    for members in classes.values():
        union = dags_of_four[members].any(axis=0)
        for k in members:
            np.testing.assert_array_equal(found[k], union)
            np.testing.assert_array_equal(compelled[k], dags_of_four[k] & ~union.T)


@given(SEEDS, st.integers(2, 5))
@settings(max_examples=50, deadline=None)
def test_same_essential_graph_exactly_when_same_skeleton_and_v_structures(seed, p):
    graphs = random_dags(np.random.default_rng(seed), 12, p, density=0.7)
    found = [matrix.tobytes() for matrix in essential(graphs)]
    wanted = [pattern(matrix) for matrix in graphs]
    for i, j in itertools.combinations(range(len(graphs)), 2):
        assert (found[i] == found[j]) == (wanted[i] == wanted[j])


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_covered_arcs_can_be_reversed(seed):
    """Reversing an arc between nodes with the same other parents changes nothing (Chickering)."""
    graph = random_dags(np.random.default_rng(seed), 1, 12, density=0.5)[0]
    before = essential(graph[None])[0]
    for i, j in np.argwhere(graph):
        others = graph[:, j].copy()
        others[i] = False
        turned = graph.copy()
        turned[i, j], turned[j, i] = False, True
        covered = (others == graph[:, i]).all()
        if covered:
            np.testing.assert_array_equal(essential(turned[None])[0], before)
            assert before[j, i]


def test_cpdag_keeps_names_and_marks_compelled_arcs():
    graph = nx.DiGraph([("c", "b"), ("a", "b"), ("b", "d"), ("e", "f")])
    graph.add_node("alone")
    found = structure.cpdag(graph)
    assert list(found.nodes) == list(graph.nodes)
    assert set(found.edges) == {("c", "b"), ("a", "b"), ("b", "d"), ("e", "f"), ("f", "e")}
    assert found.edges["b", "d"]["compelled"] is True
    assert found.edges["f", "e"]["compelled"] is found.edges["e", "f"]["compelled"] is False


def test_cpdag_refuses_cycles_and_undirected_graphs():
    with pytest.raises(ValueError, match="a -> b -> a"):
        structure.cpdag(nx.DiGraph([("a", "b"), ("b", "a")]))
    with pytest.raises(TypeError, match=r"networkx\.DiGraph, got Graph"):
        structure.cpdag(nx.path_graph(3))


def test_essential_graph_probabilities():
    """v0 -> v1, its reverse, and the empty graph: the first two are one class."""
    drawn = np.zeros((2, 10, 3, 3), int)
    drawn[:, :3, 0, 1] = 1
    drawn[:, 3:5, 1, 0] = 1
    drawn[:, 5:9, 0, 2] = drawn[:, 5:9, 1, 2] = 1
    tree = dag_posterior(drawn)
    table = structure.essential_graph_probabilities(tree)
    assert table.attrs["n_classes"] == 3
    np.testing.assert_allclose(table["probability"], [0.5, 0.4, 0.1])
    assert table["arcs"].tolist() == [0, 2, 0]
    assert table["edges"].tolist() == [1, 0, 0]
    assert table["graphs"].tolist() == [2, 1, 1]
    first = structure.graph_from_key(tree, table["key"][0])
    assert set(first.edges) == {("v0", "v1"), ("v1", "v0")}
    assert len(structure.essential_graph_probabilities(tree, top=1)) == 1
    with pytest.raises(ValueError, match="at least 1"):
        structure.essential_graph_probabilities(tree, top=0)


# --- structural Hamming distance ---------------------------------------------------------------


def test_hamming_distance_counts_each_pair_once():
    truth = nx.DiGraph([("a", "b"), ("b", "c")])
    truth.add_node("d")
    for arcs, distance in [
        ([("a", "b"), ("b", "c")], 0),
        ([("b", "a"), ("b", "c")], 1),  # reversed
        ([("b", "c")], 1),  # missing
        ([("a", "b"), ("b", "c"), ("d", "a")], 1),  # extra
        ([("a", "b"), ("b", "a"), ("b", "c")], 1),  # undirected in one only
        ([("c", "b"), ("a", "d")], 3),
    ]:
        other = nx.DiGraph(arcs)
        other.add_nodes_from("dcba")
        assert structure.structural_hamming_distance(truth, other) == distance
    with pytest.raises(ValueError, match=r"different nodes: d\."):
        structure.structural_hamming_distance(truth, nx.DiGraph([("a", "b"), ("b", "c")]))


def test_hamming_distance_of_undirected_graphs():
    a, b = nx.path_graph(4), nx.cycle_graph(4)
    assert structure.structural_hamming_distance(a, b) == 1


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_hamming_distance_is_a_metric(seed):
    graphs = random_dags(np.random.default_rng(seed), 3, 5)
    graphs = np.concatenate([graphs, essential(graphs)])
    distance = np.array([joined_differently(graphs, graph) for graph in graphs])
    np.testing.assert_array_equal(distance, distance.T)
    assert (distance[:, None] <= distance[:, :, None] + distance[None]).all()
    same = (graphs[:, None] == graphs[None]).all(axis=(2, 3))
    np.testing.assert_array_equal(distance == 0, same)


# --- structural intervention distance ----------------------------------------------------------


def test_intervention_distance_of_the_example_of_the_paper():
    """Peters and Buehlmann (2015), section 2: one arc wrong in both, but 0 and 8 wrong effects."""
    ends = ["Y1", "Y2", "Y3"]
    truth = nx.DiGraph([("X1", "X2"), *itertools.product(["X1", "X2"], ends)])
    extra = nx.DiGraph([*truth.edges, ("Y1", "Y2")])
    turned = nx.DiGraph([("X2", "X1"), *itertools.product(["X1", "X2"], ends)])
    assert structure.structural_hamming_distance(truth, extra) == 1
    assert structure.structural_hamming_distance(truth, turned) == 1
    assert structure.structural_intervention_distance(truth, extra) == 0
    assert structure.structural_intervention_distance(truth, turned) == 8
    assert structure.structural_intervention_distance(extra, truth) > 0  # not symmetric


def test_wrong_effects_are_those_of_linear_gaussian_models(dags_of_four):
    """Adjusting is right exactly when it gives the total effect, for weights in general position.

    An accident at random weights has probability zero; 1e-8 is far above rounding errors.
    """
    rng = np.random.default_rng(3)
    for true, estimated in rng.choice(dags_of_four, (400, 2)):
        wrong = wrong_effects(true, estimated)
        effect, covariance = linear_gaussian(rng, true)
        for i, j in itertools.permutations(range(4), 2):
            adjusted = adjusted_effect(covariance, i, j, np.flatnonzero(estimated[:, i]))
            assert wrong[i, j] == (abs(adjusted - effect[i, j]) > 1e-8), (true, estimated, i, j)


def linear_gaussian(rng, graph):
    """Total effects (from row to column) and covariance of random weights on a graph."""
    p = len(graph)
    weights = graph * rng.uniform(0.5, 1.5, (p, p)) * rng.choice([-1, 1], (p, p))
    effect = np.linalg.inv(np.eye(p) - weights)
    return effect, effect.T @ np.diag(rng.uniform(0.5, 2, p)) @ effect


def adjusted_effect(covariance, i, j, given):
    """Coefficient of i in the regression of j on i and on what is given; 0 if j is given."""
    if j in given:
        return 0.0
    on = [i, *given]
    return np.linalg.solve(covariance[np.ix_(on, on)], covariance[on, j])[0]


@given(SEEDS, st.integers(3, 9))
@settings(max_examples=25, deadline=None)
def test_no_effect_is_wrong_with_extra_arcs_only(seed, p):
    rng = np.random.default_rng(seed)
    full = random_dags(rng, 1, p, density=0.8)[0]
    part = full & (rng.random((p, p)) < 0.5)
    assert not wrong_effects(full, full).any()
    assert not wrong_effects(part, full).any()


def test_intervention_distance_goes_by_names_and_refuses_cycles():
    truth = nx.DiGraph([("a", "b"), ("b", "c")])
    same = nx.DiGraph()
    same.add_nodes_from("cba")
    same.add_edges_from(truth.edges)
    assert structure.structural_intervention_distance(truth, same) == 0
    with pytest.raises(ValueError, match="estimated graph has a directed cycle"):
        structure.structural_intervention_distance(truth, nx.DiGraph([("a", "b"), ("b", "a")]))
    with pytest.raises(ValueError, match="different nodes"):
        structure.structural_intervention_distance(truth, nx.DiGraph([("a", "b")]))
