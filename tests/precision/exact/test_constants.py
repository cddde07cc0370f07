"""Constants of the G-Wishart distribution: closed forms, integrals by other means, splits of graphs."""

import networkx as nx
import numpy as np
import pytest

from scipy.special import gammaln

import bayesstruct as bs

from bayesstruct.precision.exact.constants import adjacency_matrix, core_log_constant
from bayesstruct.precision.kernels.g_wishart.draws import g_wishart
from bayesstruct.precision.kernels.g_wishart.prime_components import is_complete, prime_components

log_constant = bs.exact.g_wishart_log_constant
CYCLE = nx.to_numpy_array(nx.cycle_graph(4)) > 0
SCALE = np.array(
    [[2.0, 0.5, -0.3, 0.1], [0.5, 1.5, 0.4, 0.2], [-0.3, 0.4, 1.2, -0.5], [0.1, 0.2, -0.5, 1.0]]
)


def random_graph(rng, p, chance):
    upper = np.triu(rng.random((p, p)) < chance, 1)
    return upper | upper.T


def test_constant_of_a_complete_graph_is_that_of_a_wishart_distribution():
    # One node is a gamma distribution; two by the integral over K_11, K_22 and K_12.
    assert log_constant([[0]], 5.0, 3.0).value == pytest.approx(gammaln(2.5) - 2.5 * np.log(1.5))
    two = 0.5 * np.log(np.pi) + gammaln(2.0) + gammaln(1.5) + 4.0 * np.log(2.0)
    assert log_constant(nx.complete_graph(2), 3.0).value == pytest.approx(two)


@pytest.mark.parametrize("freedom", [2.5, 3.0, 10.0])
def test_constant_of_the_four_cycle_against_its_closed_form(freedom):
    # I_G / I_{G + e} is the density of K_e at 0 given G + e. With D = I, K_e is a sum of two products of standard normals and
    # of sqrt(chi2(b + 1)) times one: its characteristic function is (1 + t^2)^-(b + 3) / 2, integrated to a beta function.
    chord = CYCLE.copy()
    chord[0, 2] = chord[2, 0] = True
    half = 0.5 * freedom
    at_zero = 0.5 * np.log(np.pi) + gammaln(half + 1.0) - gammaln(half + 1.5) - np.log(2.0 * np.pi)
    found = log_constant(CYCLE, freedom)
    assert 0 < found.standard_error < 0.01
    exact = log_constant(chord, freedom).value + at_zero
    assert abs(found.value - exact) < 4 * found.standard_error


@pytest.mark.statistical
def test_constant_of_the_four_cycle_against_exact_draws_from_the_graph_with_a_chord():
    # The same density for a general D: the mean of the conditional density of K_e at 0 given all but its own Cholesky element.
    chord = CYCLE.copy()
    chord[0, 2] = chord[2, 0] = True
    rng = np.random.default_rng(3)
    values = []
    for _ in range(4000):
        precision = g_wishart(rng, 4.0, SCALE, chord)
        schur = np.linalg.inv(np.linalg.inv(precision)[np.ix_([0, 2], [0, 2])])
        root = np.sqrt(schur[0, 0])
        at_zero = -(precision[0, 2] - schur[0, 1]) / root
        mean = -SCALE[0, 2] * root / SCALE[2, 2]
        values.append(
            np.exp(-0.5 * SCALE[2, 2] * (at_zero - mean) ** 2)
            * np.sqrt(SCALE[2, 2] / (2 * np.pi))
            / root
        )
    ratio, error = np.mean(values), np.std(values) / np.sqrt(len(values))
    found = log_constant(CYCLE, 4.0, SCALE)
    difference = found.value - log_constant(chord, 4.0, SCALE).value - np.log(ratio)
    assert abs(difference) < 4 * np.hypot(found.standard_error, error / ratio)


def test_estimates_on_decomposable_graphs_are_the_closed_form():
    rng = np.random.default_rng(0)
    for graph in (nx.path_graph(4), nx.star_graph(3), nx.empty_graph(4)):
        adjacency = nx.to_numpy_array(graph) > 0
        exact = log_constant(graph, 3.0, SCALE)
        estimate = core_log_constant(adjacency, 3.0, SCALE, 5000, rng)
        assert exact.standard_error == 0.0
        assert abs(estimate.value - exact.value) < 4 * estimate.standard_error + 1e-9


def test_splitting_a_graph_does_not_change_its_constant():
    # Two four-cycles that share an edge, with a pending node, as three components or as one.
    graph = nx.ladder_graph(3)
    graph.add_edge(0, "end")
    split = log_constant(graph, 3.0)
    adjacency = nx.to_numpy_array(graph) > 0
    whole = core_log_constant(adjacency, 3.0, np.eye(7), 20_000, np.random.default_rng(1))
    assert len(prime_components(adjacency)) == 3
    assert abs(split.value - whole.value) < 4 * np.hypot(split.standard_error, whole.standard_error)


def test_a_multiple_of_the_scale_is_a_power_of_it():
    # K -> K / c: |K|^((b-2)/2) dK changes by c^-(p b / 2 + edges).
    one, four = (log_constant(CYCLE, 3.0, c) for c in (1.0, 4.0))
    assert four.value - one.value == pytest.approx(-(4 * 1.5 + 4) * np.log(4.0))


@pytest.mark.parametrize("seed", range(6))
def test_components_are_prime_and_cover_the_graph(seed):
    rng = np.random.default_rng(seed)
    for chance in (0.2, 0.4, 0.6):
        adjacency = random_graph(rng, 9, chance)
        parts = prime_components(adjacency)
        covered = np.zeros_like(adjacency)
        for nodes, separator in parts:
            covered[np.ix_(nodes, nodes)] = True
            assert is_complete(adjacency[np.ix_(separator, separator)])
            assert not has_complete_separator(adjacency[np.ix_(nodes, nodes)])
        assert not (adjacency & ~covered).any()
        assert sum(len(nodes) - len(separator) for nodes, separator in parts) == 9
        decomposable = all(is_complete(adjacency[np.ix_(nodes, nodes)]) for nodes, _ in parts)
        assert decomposable == nx.is_chordal(nx.from_numpy_array(adjacency))


def has_complete_separator(adjacency):
    """By trying every complete set of nodes."""
    graph = nx.from_numpy_array(adjacency)
    cliques = [[], *nx.enumerate_all_cliques(graph)]
    return any(
        len(rest) > 1 and not nx.is_connected(graph.subgraph(rest))
        for clique in cliques
        if (rest := set(graph) - set(clique))
    )


def test_numbered_nodes_are_rows_in_the_order_of_their_numbers():
    graph = nx.Graph([(2, 3), (1, 2)])
    graph.add_node(0)
    assert np.argwhere(np.triu(adjacency_matrix(graph))).tolist() == [[1, 2], [2, 3]]
    named = nx.Graph([("b", "c"), ("c", "a")])
    assert np.argwhere(np.triu(adjacency_matrix(named))).tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (nx.DiGraph([(0, 1)]), {}, "directed"),
        (nx.Graph([(0, 0), (0, 1)]), {}, "loop"),
        ([[0, 1], [0, 0]], {}, "not symmetric"),
        ([0, 1], {}, "networkx graph or a"),
        (nx.Graph(), {}, "no nodes"),
        (nx.path_graph(2), {"degrees_of_freedom": 2.0}, "degrees_of_freedom"),
        (nx.path_graph(2), {"scale": np.eye(3)}, "shape"),
        (nx.path_graph(2), {"scale": [[1, 2], [2, 1]]}, "positive definite"),
    ],
)
def test_wrong_arguments_are_named(graph, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        log_constant(graph, **options)
