"""Searches over graphs and along orders: against enumeration, plain versions of the same, and their sources."""

import functools
import itertools
import math

import networkx as nx
import numpy as np
import pytest

from scipy import stats
from tools.random_scores import RandomScore, enumerated

from bayesstruct.core.solution import ConvergenceWarning
from bayesstruct.data.errors import TableError
from bayesstruct.networks.exact.problem import network_problem
from bayesstruct.networks.kernels.dags import is_acyclic
from bayesstruct.networks.kernels.scores.named import network_score
from bayesstruct.networks.solvers.mmpc import log_chi_square
from bayesstruct.simulate import bayesian_network
from bayesstruct.solvers import (
    blanket_candidates,
    dag_search,
    k2,
    known_order,
    mmpc_candidates,
    optimal_dag,
)

OPTIONS = {
    "uniform": {},
    "edge": {"prior": "edge", "edge_probability": 0.1},
    "fair": {"prior": "fair", "max_parents": 2},
    "constrained": {"required": [("x0", "x1")], "forbidden": [("x2", "x3"), ("x3", "x2")]},
    "tiers": {"tiers": [["x2"], ["x0", "x1", "x3"]]},
}


class Counted:
    """A score that remembers for which families it was asked; arcs may have values of their own."""

    def __init__(self, score, arcs=0.0):
        self.d, self.subsets, self._score, self.asked = score.d, score.subsets, score, []
        self._arcs = np.broadcast_to(arcs, (score.d, score.d))

    def local(self, child, parents):
        self.asked.append((child, frozenset(parents)))
        return self._score.local(child, parents) + self._arcs[list(parents), child].sum()


def rows(candidates):
    return [row[row >= 0].tolist() for row in candidates]


# Hill climbing


@pytest.mark.parametrize("name", OPTIONS)
def test_restarts_find_the_best_of_all_graphs(name):
    for seed in range(3):
        score = RandomScore(4, seed)
        options = {"restarts": 60, "restart_from": "random", "random_seed": 0}
        found = dag_search(score, **options, **OPTIONS[name])
        graphs, weights, _ = enumerated(score, network_problem(score, **OPTIONS[name]).prior)
        np.testing.assert_allclose(found.objective, weights.max(), rtol=1e-12)
        assert (found.adjacency == graphs[weights.argmax()]).all()
        assert found.converged and not found.optimal and found.gap == np.inf
        assert len(found.optima) == 61
        assert found.objective == max(value for _, value in found.optima)


def neighbours(graph, may):
    """Acyclic graphs that differ by one arc."""
    for j, i in itertools.permutations(range(len(graph)), 2):
        if graph[j, i] or (may[j, i] and not graph[i, j]):
            yield toggled(graph, (j, i))
        if graph[j, i] and may[i, j]:
            yield toggled(graph, (j, i), (i, j))


def plain_climb(score, may):
    """Make the best move of all, all graphs being scored anew, until none helps."""
    local = functools.cache(score.local)

    def total(g):
        return sum(local(i, tuple(np.flatnonzero(g[:, i]))) for i in range(score.d))

    graph, arcs = np.zeros(may.shape, np.int8), [0]
    while True:
        best = max((g for g in neighbours(graph, may) if is_acyclic(g)), key=total)
        if total(best) <= total(graph):
            return graph, arcs
        graph = best
        arcs.append(int(graph.sum()))


def toggled(graph, *arcs):
    graph = graph.copy()
    for arc in arcs:
        graph[arc] ^= 1
    return graph


def test_a_climb_is_that_of_a_plain_version():
    others = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = bayesian_network(200, 6, expected_neighbours=3, random_seed=seed).data.to_numpy()
        tilt = 0.1 * rng.normal(size=(6, 6))  # or equivalent graphs score the same
        score = Counted(network_score(x, "gaussian"), tilt)
        may = rng.random((6, 6)) < (0.7 if seed % 4 == 0 else 1.1)
        np.fill_diagonal(may, False)
        lists = np.full((6, 5), -1)
        for own, column in zip(lists, may.T, strict=True):
            own[: column.sum()] = np.flatnonzero(column)
        found = dag_search(score, candidates=lists, restarts=0)
        # No family is scored twice.
        assert len(score.asked) == len(set(score.asked)) == found.evaluations
        assert found.optima == ((found.evaluations, found.objective),)
        graph, arcs = plain_climb(score, may)
        assert (found.adjacency == graph).all()
        assert found.iterations == len(arcs) - 1
        others += (np.diff(arcs) < 1).sum()
    assert others > 3  # reversals and deletions among the moves


def optima(score, restarts):
    return dag_search(score, restarts=restarts, restart_from="random", random_seed=0).optima


def test_climbs_end_where_no_move_helps():
    anything = ~np.eye(4, dtype=bool)
    for seed in range(2):
        score = RandomScore(4, seed)
        graphs, weights, _ = enumerated(score, network_problem(score).prior)
        total = {graph.tobytes(): w for graph, w in zip(graphs, weights, strict=True)}
        tops = []
        for graph, w in zip(graphs, weights, strict=True):
            around = [total.get(g.tobytes(), -np.inf) for g in neighbours(graph, anything)]
            tops += [w] if w >= max(around) else []
        reached = [value for _, value in optima(score, 200)]
        distance = abs(np.subtract.outer(reached, tops))
        assert distance.min(axis=1).max() < 1e-9
        assert distance.min(axis=0).max() < 1e-9  # all of them, in so many climbs
        assert len(tops) > 1


def test_restarts_from_parts_of_the_best_graph():
    better = 0
    for seed in range(4):
        x = bayesian_network(200, 8, expected_neighbours=3, random_seed=seed).data
        best = optimal_dag(x, score="gaussian").objective
        found = dag_search(x, score="gaussian", random_seed=0)
        assert found.objective <= best + 1e-6
        better += found.objective > found.optima[0][1] + 1e-3
        options = {"score": "gaussian", "random_seed": 0, "restart_from": "random"}
        assert dag_search(x, **options).evaluations > found.evaluations
    assert better  # the first climb does not always do


def test_the_seed_decides():
    score = RandomScore(7, 3)
    first, again, other = (dag_search(score, restarts=5, random_seed=s) for s in (1, 1, 2))
    assert first.optima == again.optima != other.optima
    assert first.optima[0] == other.optima[0]  # the first climb starts without arcs


def test_evaluations_are_limited():
    score = Counted(RandomScore(7, 4))
    with pytest.warns(ConvergenceWarning, match="Raise evaluations"):
        found = dag_search(score, evaluations=60)
    assert found.evaluations == len(score.asked) == 60
    assert not found.converged and not found.optima and is_acyclic(found.adjacency)
    empty = sum(score.local(i, ()) for i in range(7))
    assert found.iterations > 0 and found.objective > empty
    terms = [score.local(i, np.flatnonzero(column)) for i, column in enumerate(found.adjacency.T)]
    np.testing.assert_allclose(found.objective, sum(terms))
    full = dag_search(score, restarts=0)
    options = {"restarts": 50, "restart_from": "random", "random_seed": 0}
    later = dag_search(score, evaluations=full.evaluations + 40, **options)
    assert later.converged and later.evaluations == full.evaluations + 40
    assert later.objective >= full.objective


def test_impossible_families_are_left():
    score = RandomScore(6, 5)
    sizes = np.bitwise_count(np.arange(64))
    score.table[:, sizes > 2] = -np.inf
    options = {"restarts": 20, "restart_from": "random", "random_seed": 0}
    found = dag_search(score, **options)
    assert len(found.optima) == 21  # most random graphs have an impossible family
    assert np.isfinite([value for _, value in found.optima]).all()
    assert found.adjacency.sum(axis=0).max() <= 2
    np.testing.assert_allclose(
        found.objective,
        dag_search(RandomScore(6, 5), max_parents=2, **options).objective,
    )


@pytest.fixture(scope="module")
def simulated():
    """A table of zeros and ones, some of them set from outside, and its graph."""
    return bayesian_network(
        4_000, 8, kind="logistic", expected_neighbours=2.5, interventions=8 / 9, random_seed=2
    )


def test_blankets_prune_the_search_and_lose_no_arc(simulated):
    """Schmidt (2010, sections 4.6.1): fewer evaluations, the same graph; the true one with interventions."""
    x, set_ = simulated.data, simulated.interventions.to_numpy()
    truth = nx.to_numpy_array(simulated.graph)
    blankets = blanket_candidates(x, interventions=set_)
    lists = rows(blankets)
    assert all(set(np.flatnonzero(truth[:, i])) <= set(lists[i]) for i in range(8))
    options = {"score": "logistic", "interventions": set_, "restarts": 5, "random_seed": 0}
    pruned, full = dag_search(x, candidates=blankets, **options), dag_search(x, **options)
    assert (pruned.adjacency == truth).all()
    assert set(pruned.graph.edges) == set(simulated.graph.edges)
    assert pruned.objective >= full.objective - 1e-6
    assert pruned.optima[0][0] < 0.75 * full.optima[0][0]
    # With the order known, the regressions decide alone.
    order = list(nx.topological_sort(simulated.graph))
    sparse = known_order(x, order, method="sparse", score="logistic", interventions=set_)
    exact = known_order(x, order, score="logistic", interventions=set_)
    assert (sparse.adjacency == truth).all() and not sparse.optimal and sparse.gap == np.inf
    assert (exact.adjacency == truth).all() and exact.optimal and exact.gap == 0
    np.testing.assert_allclose([sparse.objective, exact.objective], pruned.objective, rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": "order"}, "no sum over parent sets"),
        ({"restarts": -1}, "`restarts` must be a whole number"),
        ({"restarts": 1.5}, "`restarts` must be a whole number"),
        ({"restart_from": "worst"}, "choose among \\('best', 'random'\\)"),
        ({"evaluations": 3}, "give at least 4"),
        ({"candidates": np.ones((4, 2))}, "whole numbers"),
        ({"candidates": np.zeros((3, 2), int)}, "each of 4 variables"),
        ({"candidates": np.full((4, 1), 4)}, "`candidates` has 4; the variables are 0 to 3"),
        ({"candidates": np.zeros((4, 1), int)}, "'x0' as a parent of itself"),
        ({"candidates": -2}, "`size` must not be negative"),
        ({"max_parents": -1}, "`max_parents` must be a whole number"),
    ],
)
def test_searches_that_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        dag_search(RandomScore(4, 0), **options)


def test_scores_that_are_refused():
    score = RandomScore(3, 0)
    score.table[1, 0] = np.nan
    with pytest.raises(ValueError, match="'x1' is not a number"):
        dag_search(score)
    score.table[1, 0] = -np.inf
    with pytest.raises(ValueError, match="no climb can start there"):
        dag_search(score)
    with pytest.raises(TableError, match="'x0' and 'x1'"):
        dag_search(np.random.default_rng(0).normal(size=(50, 2)), score="bdeu")


# Known orders


@pytest.mark.parametrize("name", OPTIONS)
def test_the_best_graph_of_an_order(name):
    for seed, order in [(0, [2, 0, 3, 1]), (1, [2, 3, 0, 1])]:
        score = RandomScore(4, seed)
        found = known_order(score, order, **OPTIONS[name])
        graphs, weights, _ = enumerated(score, network_problem(score, **OPTIONS[name]).prior)
        late = np.tril(np.ones((4, 4), bool))[np.ix_(np.argsort(order), np.argsort(order))]
        along = ~(graphs.astype(bool) & late).any(axis=(1, 2))
        np.testing.assert_allclose(found.objective, weights[along].max(), rtol=1e-12)
        assert (found.adjacency == graphs[along][weights[along].argmax()]).all()
        assert found.optimal
        named = known_order(score, [f"x{i}" for i in order], **OPTIONS[name])
        assert (named.adjacency == found.adjacency).all()


def test_many_predecessors():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(200, 19))
    x[:, 18] += x[:, [0, 4, 9]] @ [0.4, 0.5, 0.6]
    score, order = network_score(x, "gaussian"), list(range(19))
    few = known_order(score, order, max_parents=2)
    assert few.iterations == 1 + sum(1 + k + math.comb(k, 2) for k in (17, 18)) - 1 + sum(
        2**k for k in range(17)
    )
    pairs = [(), *((j,) for j in range(18)), *itertools.combinations(range(18), 2)]
    best = max(pairs, key=lambda parents: score.local(18, parents))
    assert tuple(np.flatnonzero(few.adjacency[:, 18])) == best
    some = known_order(score, order)
    assert some.iterations == sum(2 ** min(k, 16) for k in range(17)) + 2 * 2**14
    assert {0, 4, 9} <= set(np.flatnonzero(some.adjacency[:, 18]))
    everyone = known_order(score, order, candidates=18)
    assert everyone.iterations == 2**19 - 1
    assert everyone.objective >= some.objective >= few.objective
    assert (some.adjacency == everyone.adjacency).all()
    given = known_order(score, order, candidates=np.full((19, 1), 4) - 5 * np.eye(19, 1, -4, int))
    assert set(zip(*np.nonzero(given.adjacency), strict=True)) == {(4, 18)}


def test_sparse_regressions_along_an_order():
    x = np.random.default_rng(7).normal(size=(300, 6))
    for j in range(1, 6):
        x[:, j] = 0.8 * x[:, j - 1] + 0.6 * x[:, j]
    chain = known_order(1000 * x, range(6), method="sparse", score="gaussian")
    assert (chain.adjacency == np.eye(6, k=1)).all()
    score = network_score((x - x.mean(0)) / x.std(0, ddof=1), "gaussian")
    np.testing.assert_allclose(
        chain.objective, sum(score.local(j, range(max(j - 1, 0), j)) for j in range(6))
    )
    options = {"method": "sparse", "score": "gaussian"}
    back = known_order(x, range(5, -1, -1), forbidden=[("x5", "x4")], **options)
    assert back.adjacency[3, 2] and not back.adjacency[5, 4]
    assert not known_order(x, range(6), max_parents=0, **options).adjacency.any()


CASES = [[1, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 1], [0, 0, 0], [0, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 0, 0]]  # fmt: skip


def test_k2_of_its_source():
    """Cooper and Herskovits (1992, sections 1 and 2): ten cases, 2.23e-9 for the chain, a tenth for the fork."""
    found = k2(CASES, [0, 1, 2], max_parents=2)
    assert set(found.graph.edges) == {("x0", "x1"), ("x1", "x2")}
    assert np.exp(found.objective) == pytest.approx(2.23e-9, abs=0.005e-9)
    score = network_score(np.array(CASES), "bde")
    fork = score.local(0, ()) + score.local(1, (0,)) + score.local(2, (0,))
    assert np.exp(fork) == pytest.approx(2.23e-10, abs=0.005e-10)
    assert found.evaluations == 1 + 2 + (1 + 2 + 1)


def test_k2_takes_one_parent_after_the_other():
    score, order = RandomScore(6, 8), [3, 1, 5, 0, 2, 4]
    found, added = k2(score, order), 0
    for place, child in enumerate(order):
        parents = []
        while rest := [j for j in order[:place] if j not in parents]:
            best = max(rest, key=lambda j: score.local(child, [*parents, j]))
            if score.local(child, [*parents, best]) <= score.local(child, parents):
                break
            parents.append(best)
        assert sorted(parents) == np.flatnonzero(found.adjacency[:, child]).tolist()
        added += len(parents)
    assert found.iterations == added > 4
    assert found.objective <= known_order(score, order).objective
    limited = k2(score, order, max_parents=1, required=[("x3", "x4")])
    assert limited.adjacency[:, 4].tolist() == [0, 0, 0, 1, 0, 0]
    assert limited.adjacency.sum(axis=0).max() == 1


def test_k2_does_not_see_what_no_parent_shows_alone():
    x = np.array(list(itertools.product([0, 1], repeat=2)) * 20)
    x = np.column_stack([x, x.sum(axis=1) % 2])
    assert not k2(x, range(3)).adjacency.any()
    assert known_order(x, range(3), score="bde").adjacency[:, 2].tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("order", "options", "message"),
    [
        ([0, 1, 2], {}, "leaves out column 'x3'"),
        ([0, 1, 2, 2], {}, "leaves out column 'x3'"),
        ([0, 1, 2, 3, 3], {}, "column 'x3' more than once"),
        ([0, 1, 2, 4], {}, "position 4; columns are 0 to 3"),
        (["x0", "x1", "x2", "y"], {}, "unknown column 'y'"),
        ([0, 1, 2, 3], {"prior": "order"}, "no sum over parent sets"),
        ([0, 1, 2, 3], {"max_parents": -1}, "`max_parents` must be a whole number"),
        ([0, 1, 2, 3], {"required": [("x3", "x0")]}, "x3 -> x0 points against"),
    ],
)
def test_orders_that_are_refused(order, options, message):
    for search in (known_order, k2):
        with pytest.raises(ValueError, match=message):
            search(RandomScore(4, 0), order, **options)


def test_options_of_known_order_that_are_refused():
    x, score = np.random.default_rng(0).normal(size=(30, 3)), RandomScore(3, 0)
    sparse = {"method": "sparse", "score": "gaussian"}
    for options, message in [
        ({"method": "lasso"}, "choose 'exact' or 'sparse'"),
        ({"method": "sparse"}, "choose the score among"),
        ({**sparse, "candidates": 2}, "options of method='exact'"),
        ({**sparse, "prior": "fair"}, "options of method='exact'"),
        ({**sparse, "required": [("x0", "x1")]}, "'required': no options"),
        ({"score": "bdeu"}, "'x0', 'x1' and 'x2'"),
    ]:
        with pytest.raises(ValueError, match=message):
            known_order(x, range(3), **options)
    score.table[:] = -np.inf
    for search in (known_order, k2):
        with pytest.raises(ValueError, match="no graph has positive probability: columns 'x0'"):
            search(score, range(3))
    score = RandomScore(2, 0)
    score.d = 23
    with pytest.raises(ValueError, match="21 candidate parents of 'x21' have too many subsets"):
        known_order(
            score,
            range(23),
            candidates=np.tile(np.arange(22), (23, 1)) - 99 * np.eye(23, 22, dtype=int),
        )


# Parents and children by tests


def partial_correlation_p(x, a, b, given):
    """From residuals; the normal distribution of Fisher's z."""
    design = np.column_stack([np.ones(len(x)), x[:, list(given)]])
    a, b = (x[:, j] - design @ np.linalg.lstsq(design, x[:, j])[0] for j in (a, b))
    z = np.sqrt(len(x) - len(given) - 3) * np.arctanh(a @ b / np.sqrt(a @ a * (b @ b)))
    return 2 * stats.norm.sf(abs(z))


def g_square_p(x, a, b, given):
    """Sum over the layers of the table; left out where a cell has less than five rows."""
    states = x.max(axis=0) + 1
    if len(x) < 5 * math.prod(states[[a, b, *given]]):
        return 0.0
    statistic = freedom = 0
    for layer in np.unique(x[:, list(given)], axis=0):
        inside = x[(x[:, list(given)] == layer).all(axis=1)]
        table = np.zeros((states[a], states[b]))
        np.add.at(table, (inside[:, a], inside[:, b]), 1)
        table = table[np.ix_(table.any(axis=1), table.any(axis=0))]
        if min(table.shape) > 1:
            result = stats.chi2_contingency(table, lambda_="log-likelihood", correction=False)
            statistic, freedom = statistic + result.statistic, freedom + result.dof
    return stats.chi2.sf(statistic, freedom) if freedom else 1.0


def plain_mmpc(p_value, d, alpha, most):
    """Algorithms 1 and 2 of the source, every association anew."""
    p_value = functools.cache(p_value)

    def weakest(a, b, others):
        sets = (
            s for k in range(min(most, len(others)) + 1) for s in itertools.combinations(others, k)
        )
        return max(p_value(a, b, s) for s in sets)

    lists = []
    for target in range(d):
        chosen, rest = [], [j for j in range(d) if j != target]
        while rest:
            p = {j: weakest(target, j, chosen) for j in rest}
            new = min(rest, key=p.get)
            if p[new] > alpha:
                break
            chosen.append(new)
            rest.remove(new)
        for j in list(chosen):
            if weakest(target, j, [k for k in chosen if k != j]) > alpha:
                chosen.remove(j)
        lists.append(chosen)
    return lists, [[j for j in own if i in lists[j]] for i, own in enumerate(lists)]


@pytest.mark.parametrize("test", ["fisher_z", "g2"])
def test_lists_are_those_of_a_plain_version(test):
    kind, p_value = "gaussian", partial_correlation_p
    if test == "g2":
        kind, p_value = "logistic", g_square_p
    corrected = 0
    for seed in range(4):
        x = bayesian_network(150, 5, kind=kind, random_seed=seed).data.to_numpy(copy=True)
        x[::7, 4] += 1  # a third state, which is rare or absent in some layers
        for alpha, most in [(0.05, 5), (0.3, 1)]:
            before, after = plain_mmpc(functools.partial(p_value, x), 5, alpha, most)
            assert rows(mmpc_candidates(x, test=test, alpha=alpha, max_conditioning=most)) == after
            corrected += before != after
    assert corrected > 0  # the symmetry correction had something to do


def test_lists_are_candidates_of_a_search():
    x = np.random.default_rng(9).normal(size=(400, 5))
    x[:, 2] += x[:, 0] - x[:, 1]
    x[:, 3] += x[:, 2]
    lists = mmpc_candidates(x, alpha=0.01)
    assert lists.dtype == np.int64
    assert [sorted(own) for own in rows(lists)] == [[2], [2], [0, 1, 3], [2], []]
    assert set(dag_search(x, candidates=lists).graph.edges) == {
        ("x0", "x2"),
        ("x1", "x2"),
        ("x2", "x3"),
    }
    independent = mmpc_candidates(x[:, [0, 1, 4]], alpha=1e-6)
    assert independent.shape == (3, 0)


@pytest.mark.parametrize("freedom", [2, 12, 80, 2_000])
def test_tail_of_chi_square_far_out(freedom):
    """For even degrees of freedom the tail is a sum of Poisson probabilities."""
    for x in freedom * np.array([0.5, 1.0, 1.3, 3.0]), np.array([1.4e3, 2e4, 3e5]) + freedom:
        k = np.arange(freedom // 2)
        terms = k * np.log(x[:, None] / 2) - x[:, None] / 2 - np.cumsum(np.log(np.maximum(k, 1)))
        expected = np.logaddexp.reduce(terms, axis=1)
        # Both sides lose digits in the terms that cancel, of the size of x.
        np.testing.assert_allclose(
            [log_chi_square(v, freedom) for v in x], expected, rtol=1e-10, atol=1e-9
        )


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (None, {"test": "chi2"}, "choose 'fisher_z' or 'g2'"),
        (None, {"alpha": 1.0}, "between 0 and 1"),
        (None, {"max_conditioning": -1}, "`max_conditioning` must be"),
        (None, {"max_conditioning": 1.5}, "`max_conditioning` must be"),
        (None, {"test": "g2"}, "'x0', 'x1', 'x2' and 'x3'"),
        ("short", {}, "4 rows are too few"),
        ("gap", {}, "column 'x1': values are missing"),
        ("few", {"test": "g2"}, "columns 'x0' and 'x1' have 9 joint states, and G2 needs 5 rows"),
    ],
)
def test_lists_that_are_refused(change, options, message):
    x = np.random.default_rng(0).normal(size=(4 if change == "short" else 40, 4))
    if change == "gap":
        x[3, 1] = np.nan
    if change == "few":
        x = (x > -0.4).astype(int) + (x > 0.4)
    with pytest.raises(ValueError, match=message):
        mmpc_candidates(x, **options)


@pytest.mark.filterwarnings("ignore:.*linear combination:bayesstruct.data.errors.TableWarning")
def test_collinear_columns_are_named():
    x = np.random.default_rng(0).normal(size=(40, 4))
    x[:, 3] = x[:, 0] + 2 * x[:, 1]
    with pytest.raises(TableError, match="columns 'x0', 'x1' and 'x3': one is a linear function"):
        mmpc_candidates(x)
