"""Search over orders of Gaussian networks: scores anew, all graphs by enumeration, local optimality by definition."""

import itertools

import numpy as np
import pytest

from tools.random_scores import enumerated

from bayesstruct.networks.data.arcs import parent_prior
from bayesstruct.networks.kernels.dag_priors import ParentPrior
from bayesstruct.networks.kernels.gaussian_order_search import search_orders
from bayesstruct.networks.kernels.scores.named import network_score
from bayesstruct.simulate import bayesian_network
from bayesstruct.solvers import optimal_dag

D = 7
NAMES = tuple(f"x{j}" for j in range(D))
ARCS = np.random.default_rng(3).uniform(0.02, 0.7, (D, D))
CERTAIN = ARCS.copy()
CERTAIN[[0, 4], [1, 2]], CERTAIN[[1, 2, 5], [3, 3, 6]] = 1.0, 0.0
PRIORS = {
    "uniform": {},
    "arcs": {"kind": "edge", "edge_probability": ARCS},
    "certain arcs": {"kind": "edge", "edge_probability": CERTAIN},
    "fair": {"kind": "fair"},
    "few parents": {"kind": "fair", "max_parents": 2, "required": [("x0", "x1"), ("x2", "x1")]},
    "constraints": {
        "kind": "edge",
        "edge_probability": ARCS,
        "required": [("x4", "x6"), ("x6", "x0"), ("x0", "x3")],
        "forbidden": [("x1", "x2"), ("x2", "x1"), ("x5", "x4")],
        "max_parents": 3,
    },
    "tiers": {"tiers": [["x3"], ["x0", "x6"], ["x1", "x2", "x4", "x5"]]},
}


def table(seed, n=60, d=D):
    """A table of a dense random network, on the scale that BGe expects."""
    x = bayesian_network(
        n, d, expected_neighbours=min(d - 1, 3.5), random_seed=seed
    ).data.to_numpy()
    return (x - x.mean(0)) / x.std(0)


def mask(seed, n=60, d=D):
    """Cells that were set: of some columns in the same rows, of the last column in all rows."""
    out = np.zeros((n, d), bool)
    rows = np.random.default_rng(seed).random((n, 3)) < 0.3
    out[:, :3], out[:, 3] = rows, rows[:, 0]
    out[:, -1] = True
    return out


def case(kind, name, seed, *, interventions=False):
    """Local scores and prior, and what they give to the search."""
    cells = mask(seed) if interventions else None
    # A prior worth many rows: determinants of the prior alone are not 1.
    options = {"alpha_mu": 4.0} if kind == "bge" else {}
    score = network_score(table(seed), kind, interventions=cells, **options)
    prior = parent_prior(NAMES, **PRIORS[name])
    return score, prior, score.families(prior)


def family(score, prior, child, parents):
    """Score and log prior of one family."""
    return score.local(child, parents) + prior.local(child, parents)


def weight(score, prior, graph):
    """Log score plus log prior weight, from the definition."""
    return sum(family(score, prior, i, np.flatnonzero(own)) for i, own in enumerate(graph.T))


def shared(prior):
    """Return the terms that all graphs share: of absent arcs, and of required ones instead."""
    absent, present = prior.log_arc_weights
    off = ~np.eye(prior.d, dtype=bool)
    return np.where(prior.required, present, absent)[off].sum()


def check(score, prior, found, rtol=1e-9):
    """The score is that of the graph, the order one of it, and what has to hold does."""
    graph, order, value = found
    assert graph.dtype == np.int8
    np.testing.assert_allclose(value + shared(prior), weight(score, prior, graph), rtol=rtol)
    assert sorted(order) == list(range(prior.d))
    place = np.argsort(order)
    assert all(place[j] < place[i] for j, i in np.argwhere(graph))
    assert (graph[prior.required] == 1).all()
    assert (graph[~prior.allowed] == 0).all()
    if prior.max_parents is not None:
        assert graph.sum(axis=0).max() <= prior.max_parents


def neighbours(graph, order, prior, child):
    """Parent sets, possible given the order, with one or two parents more, or with one less."""
    own = set(np.flatnonzero(graph[:, child]).tolist())
    before = order[: list(order).index(child)].tolist()
    for j in own & set(np.flatnonzero(~prior.required[:, child]).tolist()):
        yield sorted(own - {j})
    others = [j for j in before if j not in own and prior.allowed[j, child]]
    for new in [*itertools.combinations(others, 1), *itertools.combinations(others, 2)]:
        yield sorted(own.union(new))


CASES = list(itertools.product(["bge", "gaussian"], PRIORS, [False, True]))


@pytest.mark.parametrize(("kind", "name", "interventions"), CASES)
def test_scores_constraints_and_local_optima(kind, name, interventions):
    for seed in range(3):
        score, prior, families = case(kind, name, seed, interventions=interventions)
        for climbs in (1, 4):
            rng = np.random.default_rng(seed)
            found = search_orders(rng, families, climbs=climbs)
            check(score, prior, found)
            graph, order, _ = found
            for child in range(D):
                now = family(score, prior, child, np.flatnonzero(graph[:, child]))
                for other in neighbours(graph, order, prior, child):
                    assert family(score, prior, child, other) <= now + 1e-6


FOUR = [
    ParentPrior(4),
    ParentPrior(4, "edge", ARCS[:4, :4]),
    ParentPrior(4, "fair", max_parents=2),
    ParentPrior(4, required=np.eye(4, k=2) > 0, allowed=np.eye(4, k=-3) == 0),
]


@pytest.mark.parametrize("kind", ["bge", "gaussian"])
def test_the_best_of_all_543_graphs(kind):
    """No graph is better than the best, and nearly all are the best (pairs of parents may be missed)."""
    best = 0
    for seed in range(24):
        prior, cells = FOUR[seed % 4], mask(seed, d=4) if seed % 3 == 2 else None
        score = network_score(table(seed, d=4), kind, interventions=cells)
        found = search_orders(np.random.default_rng(seed), score.families(prior), climbs=30)
        check(score, prior, found)
        top, value = enumerated(score, prior)[1].max(), found[2] + shared(prior)
        assert value <= top + 1e-6
        best += value >= top - 1e-6
    assert best >= 22


@pytest.mark.parametrize("name", PRIORS)
def test_the_best_graph_of_dynamic_programming(name):
    best = 0
    for seed in range(12):
        score, prior, families = case(("bge", "gaussian")[seed % 2], name, seed)
        options = {"prior" if k == "kind" else k: v for k, v in PRIORS[name].items()}
        top = optimal_dag(score, **options).objective
        rng = np.random.default_rng(seed)
        value = max(search_orders(rng, families, climbs=8)[2] for _ in range(6)) + shared(prior)
        assert value <= top + 1e-6
        best += value >= top - 1e-6
    assert best >= 10


@pytest.mark.parametrize("d", [1, 2, 3, 12])
def test_few_variables_and_more_parents_than_rows(d):
    x = np.random.default_rng(d).normal(size=(6, d))
    score, prior = network_score(x + 3 * x[:, :1], "bge"), ParentPrior(d)
    found = search_orders(np.random.default_rng(0), score.families(prior), climbs=3)
    check(score, prior, found)
    if d == 2:
        empty = score.local(0, ()) + score.local(1, ())
        arc = score.local(0, ()) + score.local(1, (0,))
        np.testing.assert_allclose(found[2], max(empty, arc), rtol=1e-12)


def test_no_variable_is_explained_by_what_determines_it():
    """Under a likelihood without bound: sums of columns, and columns that are constant in some rows."""
    x = table(5)
    x[:, 3] = x[:, 0] - x[:, 1]
    x[:, 4] = x[:, 2] + 3e-5 * x[:, 4]  # leaves a share of 1e-9: allowed, and badly conditioned
    cells = np.zeros(x.shape, bool)
    cells[:30, 5], x[30:, 6] = True, 1.0
    score, prior = network_score(x, "gaussian", interventions=cells), ParentPrior(D)
    assert score.local(3, (0, 1)) == score.local(5, (6,)) == -np.inf
    for seed in range(6):
        found = search_orders(np.random.default_rng(seed), score.families(prior), climbs=4)
        check(score, prior, found, rtol=1e-6)
        assert np.isfinite(found[2])
        assert found[0][2, 4] or found[0][4, 2]
    required = np.zeros((D, D), bool)
    required[[0, 1], 3] = True
    prior = ParentPrior(D, required=required)
    graph, _, value = search_orders(np.random.default_rng(0), score.families(prior), climbs=2)
    assert value == -np.inf
    assert graph[[0, 1], 3].all()


def many_parents(count, d=40, n=300):
    """The last variable is a sum of others."""
    x = np.random.default_rng(count).normal(size=(n, d))
    x[:, -1] = x[:, :count].sum(axis=1) + x[:, -1]
    return (x - x.mean(0)) / x.std(0)


def test_at_most_32_parents_unless_more_are_required():
    d, score = 40, network_score(many_parents(37), "bge")
    last = np.zeros((d, d), bool)
    last[:-1, -1] = True
    prior = ParentPrior(d, allowed=last)
    found = search_orders(np.random.default_rng(0), score.families(prior), climbs=1)
    check(score, prior, found)
    own = np.flatnonzero(found[0][:, -1])
    assert len(own) == 32
    more = [score.local(d - 1, [*own, j]) for j in set(range(d - 1)) - {*own}]
    assert max(more) > score.local(d - 1, own)
    required = last.copy()
    required[35:-1] = False
    prior = ParentPrior(d, allowed=last, required=required)
    found = search_orders(np.random.default_rng(0), score.families(prior), climbs=1)
    check(score, prior, found)
    assert found[0].sum() == found[0][:35, -1].sum() == 35


def test_full_sets_exchange_parents():
    """A child that may have one parent gets the best of 30, although others stood before it first."""
    d = 31
    x = np.random.default_rng(1).normal(size=(400, d))
    effects = np.linspace(0.3, 1.5, d - 1)
    x[:, -1] += x[:, :-1] @ effects
    score = network_score((x - x.mean(0)) / x.std(0), "bge")
    last = np.zeros((d, d), bool)
    last[:-1, -1] = True
    prior = ParentPrior(d, allowed=last, max_parents=1)
    singles = [score.local(d - 1, (j,)) for j in range(d - 1)]
    for seed in range(5):
        found = search_orders(np.random.default_rng(seed), score.families(prior), climbs=1)
        assert np.flatnonzero(found[0][:, -1]).tolist() == [np.argmax(singles)]


def test_a_seed_fixes_the_result():
    x = table(0, d=20)
    families = network_score(x, "bge").families(ParentPrior(20))
    values = set()
    for seed in range(4):
        first, again = (
            search_orders(np.random.default_rng(seed), families, climbs=1) for _ in range(2)
        )
        assert (first[0] == again[0]).all()
        assert (first[1] == again[1]).all()
        assert first[2] == again[2]
        values.add(first[2])
    assert len(values) > 1


def test_more_climbs_are_no_loss():
    families = network_score(table(1, d=20), "bge").families(ParentPrior(20))
    for seed in range(4):
        values = [
            search_orders(np.random.default_rng(seed), families, climbs=c)[2] for c in (1, 5, 25)
        ]
        assert values[0] <= values[1] + 1e-4 <= values[2] + 2e-4
        assert values[2] > values[0]


def test_climbs_that_are_refused():
    families = network_score(table(0), "bge").families(ParentPrior(D))
    with pytest.raises(ValueError, match="`climbs` must be at least 1, it is 0"):
        search_orders(np.random.default_rng(0), families, climbs=0)
