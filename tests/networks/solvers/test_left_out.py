"""The odds of parent sets that tables leave out, against all sets one by one."""

import math

import numpy as np
import pandas as pd
import pytest

from scipy.special import logsumexp

from bayesstruct.networks.exact.problem import network_problem
from bayesstruct.networks.kernels.parent_tables import parent_tables
from bayesstruct.networks.solvers import left_out as module
from bayesstruct.networks.solvers.left_out import left_out

D = 6
GRAPH = np.zeros((D, D), np.int8)
GRAPH[0, 1] = GRAPH[1, 2] = GRAPH[3, 2] = 1
ORDER = np.array([3, 0, 1, 5, 4, 2])
CANDIDATES = [[1], [0, 3], [1, 0], [5], [0], [3]]
CASES = {
    "numbers": {"score": "bge"},
    "few parents": {"score": "bge", "max_parents": 3},
    "states": {"score": "bdeu", "prior": "edge"},
    "known arcs": {"score": "bge", "required": [("v3", "v2")], "forbidden": [("v4", "v2")]},
}


@pytest.fixture(autouse=True)
def _look_more_often(monkeypatch):
    monkeypatch.setattr(module, "_SHARE", 0.8)


def problem_of(name):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(12, D)) + rng.normal(size=(12, 1))
    data = pd.DataFrame(x).add_prefix("v")
    if CASES[name]["score"] == "bdeu":
        data = (data > 0).astype(int)
    candidates = [list(own) for own in CANDIDATES]
    if "required" in CASES[name]:
        candidates[2] = [3, 0]
    return network_problem(data, **CASES[name]), candidates


def exact(problem, candidates, plus_one, before):
    """Sum of the odds over the variables; `before` has at [j, i] whether i may have the parent j."""
    total = 0.0
    for child, own in enumerate(candidates):
        others = np.delete(np.arange(D), child)
        weights = problem.subsets(child, others)
        held = np.arange(len(weights))[:, None] >> np.arange(D - 1) & 1 == 1
        possible = ~(held & ~before[others, child]).any(axis=1)
        outside = (held & ~np.isin(others, own)).sum(axis=1) > plus_one
        logs = [logsumexp(weights[possible & kind]) for kind in (outside, ~outside)]
        total += np.exp(logs[0] - logs[1])
    return total


def not_descendants():
    reach = np.linalg.matrix_power(np.eye(D) + GRAPH, D) > 0
    return ~reach.T


def earlier():
    position = np.argsort(ORDER)
    return position[:, None] < position


def z_score(name, *, plus_one=True, order=None, calls=4_000):
    problem, candidates = problem_of(name)
    tables = parent_tables(problem, None, candidates, plus_one=plus_one)
    before = not_descendants() if order is None else earlier()
    rng = np.random.default_rng(0)
    found = np.array([left_out(problem, tables, rng, GRAPH, order) for _ in range(calls)])
    wanted = exact(problem, candidates, plus_one, before)
    assert wanted > 0.01
    return (found.mean() - wanted) / (found.std() / np.sqrt(calls))


@pytest.mark.statistical
@pytest.mark.parametrize("plus_one", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_mean_is_that_of_all_sets(name, plus_one):
    assert abs(z_score(name, plus_one=plus_one)) < 4


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["numbers", "states"])
def test_the_mean_given_an_order_is_that_of_the_sets_before(name):
    assert abs(z_score(name, order=ORDER)) < 4


@pytest.mark.statistical
def test_sets_that_would_close_a_cycle_are_noticed(monkeypatch):
    monkeypatch.setattr(module, "_descendants", lambda graph, child: np.arange(len(graph)) == child)
    assert abs(z_score("numbers")) > 6


@pytest.mark.statistical
def test_sets_that_are_not_counted_are_noticed(monkeypatch):
    right = module._draw_some

    def uncounted(rng, others, least, most):
        drawn, log_chance = right(rng, others, least, most)
        return drawn, log_chance + math.log(math.comb(len(others), len(drawn)))

    monkeypatch.setattr(module, "_draw_some", uncounted)
    assert abs(z_score("numbers")) > 6


def test_nothing_is_left_out_of_whole_tables():
    problem, _ = problem_of("numbers")
    everyone = [np.delete(np.arange(D), i) for i in range(D)]
    rng = np.random.default_rng(0)
    for plus_one in (False, True):
        tables = parent_tables(problem, None, everyone, plus_one=plus_one)
        assert not any(left_out(problem, tables, rng, GRAPH) for _ in range(200))
