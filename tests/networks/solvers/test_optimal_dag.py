"""The best graph: against enumeration, one method against the other, certificates, refusals."""

import networkx as nx
import numpy as np
import pytest

from tools.random_scores import RandomScore, enumerated

from bayesstruct.core.solution import ConvergenceWarning
from bayesstruct.data.errors import TableError
from bayesstruct.networks.exact.problem import network_problem
from bayesstruct.networks.kernels.dags import is_acyclic
from bayesstruct.networks.solvers.optimal_dag import optimal_dag

OPTIONS = {
    "uniform": {},
    "edge": {"prior": "edge", "edge_probability": 0.1},
    "fair": {"prior": "fair", "max_parents": 2},
    "constrained": {"required": [("x0", "x1")], "forbidden": [("x2", "x3"), ("x3", "x2")]},
    "tiers": {"tiers": [["x2"], ["x0", "x1", "x3"]]},
}


def local_terms(score, prior, adjacency):
    return sum(
        score.local(i, np.flatnonzero(column)) + prior.local(i, np.flatnonzero(column))
        for i, column in enumerate(adjacency.T)
    )


@pytest.mark.parametrize("method", ["dynamic", "milp"])
@pytest.mark.parametrize("name", OPTIONS)
def test_the_best_of_all_graphs_is_found(name, method):
    for seed in range(3):
        score = RandomScore(4, seed)
        solution = optimal_dag(score, method=method, **OPTIONS[name])
        prior = network_problem(score, **OPTIONS[name]).prior
        graphs, weights, _ = enumerated(score, prior)
        # The program stops within 1e-6 of its bound; graphs differ by more.
        np.testing.assert_allclose(solution.objective, weights.max(), rtol=1e-12)
        assert (solution.adjacency == graphs[weights.argmax()]).all()
        assert solution.optimal and solution.gap <= 1e-6


def test_methods_agree_on_eight_variables():
    score = RandomScore(8, 1)
    dynamic, program = optimal_dag(score), optimal_dag(score, method="milp")
    assert (dynamic.adjacency == program.adjacency).all()
    assert dynamic.objective == program.objective
    assert program.optimal and program.iterations > 1  # cuts were needed
    assert is_acyclic(dynamic.adjacency)
    prior = network_problem(score).prior
    np.testing.assert_allclose(dynamic.objective, local_terms(score, prior, dynamic.adjacency))


def test_of_equal_sets_the_smallest_is_taken():
    score = RandomScore(5, 0, scale=0.0)
    for method in ("dynamic", "milp"):
        assert not optimal_dag(score, method=method).adjacency.any()


def test_candidates_restrict_the_search():
    score = RandomScore(6, 2)
    candidates = np.array([[1, 2], [0, -1], [3, 4], [4, 5], [5, 0], [0, 1]])
    solution = optimal_dag(score, method="milp", candidates=candidates)
    for i, row in enumerate(candidates):
        assert set(np.flatnonzero(solution.adjacency[:, i])) <= set(row.tolist())
    forbidden = [
        (f"x{j}", f"x{i}") for i in range(6) for j in range(6) if j != i and j not in candidates[i]
    ]
    np.testing.assert_allclose(
        solution.objective, optimal_dag(score, forbidden=forbidden).objective
    )


def test_the_time_limit_leaves_a_graph_and_a_bound():
    score = RandomScore(8, 3)
    with pytest.warns(ConvergenceWarning, match="Raise time_limit"):
        solution = optimal_dag(score, method="milp", time_limit=0.0)
    best = optimal_dag(score).objective
    assert is_acyclic(solution.adjacency) and not solution.optimal
    assert solution.objective <= best + 1e-9
    assert best <= solution.objective + solution.gap + 1e-9


def test_the_time_limit_keeps_required_arcs():
    required = [("x3", "x2"), ("x2", "x1"), ("x1", "x0")]
    with pytest.warns(ConvergenceWarning):
        solution = optimal_dag(RandomScore(4, 3), method="milp", time_limit=0.0, required=required)
    assert is_acyclic(solution.adjacency)
    assert all(solution.adjacency[j, j - 1] for j in (1, 2, 3))


def test_scores_without_an_acyclic_graph_are_refused():
    score = RandomScore(3, 0, scale=0.0)
    score.table[:, 0] = -np.inf  # everyone needs a parent
    for method in ("dynamic", "milp"):
        with pytest.raises(ValueError, match="no graph"):
            optimal_dag(score, method=method)


def test_a_table_gives_a_named_graph():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(400, 3))
    x[:, 2] += x[:, 0] - x[:, 1]  # a collider: no other graph is equivalent
    solution = optimal_dag(x)
    assert isinstance(solution.graph, nx.DiGraph)
    assert list(solution.graph.nodes) == ["x0", "x1", "x2"]
    assert set(solution.graph.edges) == {("x0", "x2"), ("x1", "x2")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": "order"}, "no sum over parent sets"),
        ({"method": "greedy"}, "choose 'dynamic' or 'milp'"),
        ({"candidates": 3}, "options of method='milp'"),
        ({"method": "milp", "candidates": np.zeros((4, 1), int)}, "without itself"),
        ({"method": "milp", "candidates": np.ones((2, 1), int)}, "a row for each"),
        (
            {
                "method": "milp",
                "candidates": np.array([[1], [2], [3], [-1]]),
                "required": [("x0", "x3")],
            },
            "no candidate parents of 'x3'",
        ),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        optimal_dag(RandomScore(4, 0), **options)


def test_too_much_is_refused():
    score = RandomScore(2, 0)
    score.d = 26
    with pytest.raises(TableError, match="at most 25"):
        optimal_dag(score, method="dynamic")
    with pytest.raises(ValueError, match="too many subsets"):
        optimal_dag(score, method="milp", candidates=25)
    score = RandomScore(3, 0)
    score.table[:] = -np.inf
    with pytest.raises(ValueError, match="no graph has positive probability"):
        optimal_dag(score)
