"""Matrices with the zeros of a known graph, log constants from them, and the search for the most probable graph."""

import networkx as nx
import numpy as np
import pytest

from scipy.special import betaln, logit

import bayesstruct as bs

from bayesstruct.exact import g_wishart_log_constant
from bayesstruct.precision.exact.graphs import graph_posterior
from bayesstruct.precision.kernels.g_wishart.prime_components import is_complete, prime_components
from bayesstruct.precision.solvers.covariance_selection import laplace_log_constant
from bayesstruct.precision.solvers.graph_search import (
    EdgePrior,
    GraphScores,
    climb_graph,
    probable_graph,
)
from bayesstruct.solvers import covariance_selection


def correlations(p, n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)) @ (np.eye(p) + 0.4 * rng.normal(size=(p, p)))
    return np.corrcoef(x.T)


def random_graph(p, share, seed):
    upper = np.triu(np.random.default_rng(seed).random((p, p)) < share, 1)
    return upper | upper.T


def decomposable(adjacency):
    return all(is_complete(adjacency[np.ix_(c, c)]) for c, _ in prime_components(adjacency))


@pytest.mark.parametrize("seed", range(5))
def test_a_matrix_with_zeros_is_optimal(seed):
    S, graph = correlations(7, 40, seed), random_graph(7, 0.4, seed)
    solution = covariance_selection(S, graph, tol=1e-18)
    allowed = graph | np.eye(7, dtype=bool)
    assert (solution.precision[~allowed] == 0).all()
    np.testing.assert_allclose(solution.covariance[allowed], S[allowed], atol=1e-8)
    np.testing.assert_allclose(solution.covariance @ solution.precision, np.eye(7), atol=1e-10)
    assert solution.converged and solution.gap <= 7e-18


@pytest.mark.statistical  # five seconds, of cvxpy
def test_agrees_with_cvxpy():
    import cvxpy as cp

    S, graph = correlations(4, 20, 1), nx.cycle_graph(4)
    K = cp.Variable((4, 4), PSD=True)
    problem = cp.Problem(cp.Maximize(cp.log_det(K) - cp.trace(S @ K)), [K[0, 2] == 0, K[1, 3] == 0])
    problem.solve(solver=cp.SCS, eps=1e-9, max_iters=100_000)
    solution = covariance_selection(S, graph, tol=1e-16)
    np.testing.assert_allclose(solution.precision, K.value, atol=1e-5)
    assert abs(solution.objective - problem.value) < 1e-6


def test_refuses_another_number_of_nodes_and_unbounded_problems():
    with pytest.raises(ValueError, match="has 3 nodes"):
        covariance_selection(np.eye(4), nx.path_graph(3))
    rows = np.random.default_rng(0).normal(size=(3, 5))
    with pytest.raises(ValueError, match="Unbounded"):
        covariance_selection(rows.T @ rows, nx.complete_graph(5))


def laplace(graph, freedom, scale):
    mode = covariance_selection(scale / (freedom - 2.0), graph, tol=1e-18).precision
    return laplace_log_constant(graph, freedom, scale, mode)


@pytest.mark.parametrize("freedom", [3.0, 30.0])
def test_log_constants_are_exact_on_decomposable_graphs(freedom):
    seen = 0
    for seed in range(40):
        graph, scale = random_graph(6, 0.4, seed), 5 * correlations(6, 20, seed)
        if decomposable(graph):
            seen += 1
            exact = g_wishart_log_constant(graph, freedom, scale)
            assert exact.standard_error == 0
            np.testing.assert_allclose(laplace(graph, freedom, scale), exact.value, atol=1e-7)
    assert seen > 5


@pytest.mark.parametrize("size", [4, 5])
def test_log_constants_of_cycles_are_near(size):
    graph = nx.to_numpy_array(nx.cycle_graph(size)) > 0
    for freedom, scale in (
        (3.0, np.eye(size)),
        (28.0, 25 * (0.7 * np.eye(size) + 0.3 * correlations(size, 25, 2))),
    ):
        exact = g_wishart_log_constant(graph, freedom, scale, draws=20_000)
        assert exact.standard_error < 0.15
        near = laplace(graph, freedom, scale)
        assert abs(near - exact.value) < 0.06 + 3 * exact.standard_error


def scatter_of(seed, n=40, p=4):
    rows = bs.simulate.gaussian_graphical(n, p, edge_probability=0.5, random_seed=seed).data
    return (n - 1) * np.corrcoef(rows.to_numpy().T)


def upper(graph):
    return graph[np.triu_indices(len(graph), 1)].astype(int)


def edges_of(text):
    return [int(f"{i} -- {j}" in text.split(", ")) for i, j in zip(*np.triu_indices(4, 1))]


@pytest.mark.parametrize("scale", [np.ones(4), np.array([1.0, 2.0, 0.5, 3.0])])
def test_the_most_probable_graph_of_four_columns(scale):
    prior = np.full((4, 4), 0.4)
    prior[0, 1] = prior[1, 0] = 0.1
    for seed in range(8):
        S, D = scatter_of(seed), np.diag(scale)
        exact = graph_posterior("0123", S, 39, prior, 4.0, D, 2_000, 1).graphs
        scores = GraphScores(S, 39, 4.0, D, EdgePrior(logit(prior)))
        graph, finished = probable_graph(scores)
        assert finished
        best = [edges_of(text) for text in exact["edges"][:2]]
        # The second one only where the two are equally probable.
        near = exact["probability"][1] > 0.9 * exact["probability"][0]
        assert upper(graph).tolist() in best[: 1 + near], seed
        # Differences of scores are those of the log posterior.
        other = np.zeros((4, 4), bool)
        low = scores.score(other, scores.mode(other))
        found = exact.set_index("edges")["probability"]
        named = exact["edges"][[edges_of(t) for t in exact["edges"]].index(upper(graph).tolist())]
        change = scores.score(graph, scores.mode(graph)) - low
        assert abs(change - np.log(found[named] / found[""])) < 0.1  # of four-cycles


def test_required_and_forbidden_edges_stay():
    prior = np.array([[0.5, 1, 0.5, 0], [1, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 1], [0, 0.5, 1, 0.5]])
    with np.errstate(divide="ignore"):
        scores = GraphScores(scatter_of(3), 39, 3.0, np.eye(4), EdgePrior(logit(prior)))
    graph, _ = probable_graph(scores)
    assert graph[0, 1] and graph[2, 3] and not graph[0, 3]


def test_a_beta_edge_probability_is_integrated_out():
    prior = EdgePrior(np.zeros((4, 4)), (1.0, 3.0))
    graph = np.zeros((4, 4), bool)
    empty = prior.log_probability(graph)
    graph[0, 1] = graph[1, 0] = True
    change = prior.log_probability(graph) - empty
    assert abs(change - betaln(2.0, 8.0) + betaln(1.0, 9.0)) < 1e-12
    odds = prior.odds_of_flips(graph)
    assert abs(odds[0, 1] - change) < 1e-12
    graph[0, 2] = graph[2, 0] = True
    more = prior.log_probability(graph) - empty - change
    assert abs(odds[0, 2] - more) < 1e-12


def test_a_climb_ends_where_no_flip_helps():
    p, n = 14, 100
    S = scatter_of(1, n, p)
    scores = GraphScores(S, n - 1, 3.0, np.eye(p), EdgePrior(np.full((p, p), logit(0.2))))
    graph, best, flips = climb_graph(scores, np.zeros((p, p), bool))
    assert 5 < flips < 60
    assert abs(scores.score(graph, scores.mode(graph)) - best) < 1e-9
    for i, j in zip(*np.triu_indices(p, 1)):
        other = graph.copy()
        other[i, j] = other[j, i] = not graph[i, j]
        assert scores.score(other, scores.mode(other)) < best + 1e-8
    _, _, stopped = climb_graph(scores, np.zeros((p, p), bool), 3)
    assert stopped == 3
