"""Tables and best graphs: what lists by single effects miss, and searches that fail one at a time."""

import numpy as np
import pytest

from bayesstruct.networks.exact.problem import network_problem
from bayesstruct.networks.kernels import gaussian_order_search, order_search
from bayesstruct.networks.kernels.dags import is_acyclic
from bayesstruct.networks.kernels.parent_tables import family_scores, parent_tables
from bayesstruct.networks.solvers import parent_search
from bayesstruct.networks.solvers.candidate_parents import candidate_parents
from bayesstruct.networks.solvers.parent_search import (
    best_network,
    chain_start,
    good_network,
    log_weight,
)
from bayesstruct.simulate import bayesian_network
from bayesstruct.solvers import search_tables

#: Columns: the sum of cancelling effects, its parents, what they have in common, 14 children.
Y, A, B, COMMON, CHILDREN = 0, 1, 2, 3, np.arange(4, 18)


@pytest.fixture(scope="module")
def cancelling():
    """A and B, which are much the same, enter Y by their difference, which 14 children of Y show."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 18))
    x[:, [A, B]] = x[:, [COMMON]] + 0.3 * x[:, [A, B]]
    x[:, Y] = 4.0 * (x[:, A] - x[:, B]) + x[:, Y]
    x[:, CHILDREN] += rng.uniform(0.6, 1.2, len(CHILDREN)) * x[:, [Y]]
    # Without these an equivalent graph would have Y as a parent of A or B.
    forbidden = [(f"x{j}", f"x{i}") for i in (A, B) for j in range(18) if j not in (i, COMMON)]
    problem = network_problem(x, forbidden=forbidden)
    return problem, search_tables(problem)


@pytest.fixture(scope="module")
def states():
    """A network of states, whose scores know nothing of families."""
    x = bayesian_network(150, 13, kind="discrete", states=2, max_parents=2, random_seed=4).data
    problem = network_problem(x, score="bdeu")
    assert not hasattr(problem.score, "families")
    return problem, search_tables(problem)


def test_parents_that_nearly_cancel_become_candidates(cancelling):
    problem, tables = cancelling
    listed = candidate_parents(problem.score, 7)[Y]
    assert not {A, B} & set(listed.tolist())
    alone = [problem.score.local(Y, own) - problem.score.local(Y, ()) for own in [(A,), (B,)]]
    both = problem.score.local(Y, (A, B)) - problem.score.local(Y, ())
    assert 20 * max(alone) < both
    assert {A, B} <= set(tables.candidates(Y).tolist())
    graph = best_network(problem, np.random.default_rng(0), climbs=2)
    assert graph[[A, B], Y].all()
    assert is_acyclic(graph)


def graph_of_tables(problem, rng, climbs):
    return order_search.best_graph(search_tables(problem), rng, climbs=climbs * problem.d)[0]


def test_the_best_network_is_the_better_one_of_two_searches(cancelling, monkeypatch):
    problem, _ = cancelling

    def best():
        found = best_network(problem, np.random.default_rng(1), climbs=1)
        assert found.dtype == np.int8
        return log_weight(problem, found)

    both = best()
    by_tables = graph_of_tables(problem, np.random.default_rng(1), 1)
    found = parent_search._good_graphs(problem)
    values = [log_weight(problem, graph) for graph in found]
    assert values[0] >= max(values) - 1e-6
    assert both >= max(log_weight(problem, by_tables), *values)
    empty = np.zeros_like(by_tables)
    with monkeypatch.context() as patch:
        patch.setattr(order_search, "best_graph", lambda *_, **__: (empty.copy(), None, 0.0))
        assert best() == pytest.approx(values[0])
    with monkeypatch.context() as patch:
        patch.setattr(gaussian_order_search, "search_orders", lambda *_, **__: (empty, None, 0.0))
        assert best() > log_weight(problem, empty) + 10.0


def test_scores_without_families_are_searched_by_tables(states):
    problem, tables = states
    found = best_network(problem, np.random.default_rng(2), climbs=2)
    assert (found == graph_of_tables(problem, np.random.default_rng(2), 2)).all()
    assert found.any()
    start = chain_start(problem, tables, np.random.default_rng(3))
    climbed = order_search.best_graph(tables, np.random.default_rng(3), climbs=5)[0]
    assert (start == climbed).all()


def test_chains_start_at_graphs_of_the_tables(cancelling):
    problem, tables = cancelling
    starts = [chain_start(problem, tables, np.random.default_rng(seed)) for seed in range(4)]
    for seed, graph in enumerate(starts):
        assert graph.dtype == np.int8
        assert is_acyclic(graph)
        assert np.isfinite(family_scores(tables, graph)).all()
        value, good = good_network(problem, np.random.default_rng(seed), climbs=5)
        assert (graph == good).all()
        assert value == pytest.approx(log_weight(problem, graph))
    assert any((graph != starts[0]).any() for graph in starts)
    narrow = parent_tables(problem, None, [[] for _ in range(problem.d)])
    start = chain_start(problem, narrow, np.random.default_rng(0))
    assert np.isfinite(family_scores(narrow, start)).all()
    assert start.sum(axis=0).max() == 1


def test_constraints_are_those_of_the_tables_too():
    x = bayesian_network(80, 14, random_seed=1).data
    options = {"required": [("x0", "x1"), ("x2", "x1")], "forbidden": [("x3", "x4")]}
    for kind in ("bge", "gaussian"):
        problem = network_problem(x, score=kind, max_parents=3, **options)
        tables = search_tables(problem)
        graphs = [
            best_network(problem, np.random.default_rng(0), climbs=1),
            chain_start(problem, tables, np.random.default_rng(0)),
        ]
        for graph in graphs:
            assert graph[[0, 2], 1].all()
            assert not graph[3, 4]
            assert graph.sum(axis=0).max() <= 3
            assert np.isfinite(log_weight(problem, graph))
            assert is_acyclic(graph)


def test_few_variables_have_all_parents_as_candidates():
    problem = network_problem(bayesian_network(60, 5, random_seed=0).data)
    tables = search_tables(problem)
    assert all(len(tables.candidates(i)) == 4 for i in range(5))
    rng = np.random.default_rng(0)
    best = order_search.best_graph(tables, rng)[2]
    found = best_network(problem, np.random.default_rng(0), climbs=4)
    assert log_weight(problem, found) == pytest.approx(best)
    start = chain_start(problem, tables, np.random.default_rng(0))
    assert np.isfinite(family_scores(tables, start)).all()
