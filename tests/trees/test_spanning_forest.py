"""The distribution of forests against all 291 forests of five nodes."""

import itertools

import networkx as nx
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from tools.enumeration import assert_matches_enumeration

import bayesstruct as bs

PAIRS = list(itertools.combinations(range(5), 2))


def all_forests():
    """0/1 vectors of the forests, and their components."""
    for size in range(5):
        for lines in itertools.combinations(PAIRS, size):
            graph = nx.Graph()
            graph.add_nodes_from(range(5))
            graph.add_edges_from(lines)
            if nx.is_forest(graph):
                yield [int(pair in lines) for pair in PAIRS], list(nx.connected_components(graph))


FOUND = list(all_forests())
FORESTS, COMPONENTS = np.array([row for row, _ in FOUND]), [parts for _, parts in FOUND]
WEIGHTS = np.random.default_rng(0).normal(0, 1.2, 10)
ROOTS = np.random.default_rng(1).normal(-0.5, 1.0, 5)


def law(weights=WEIGHTS, roots=ROOTS):
    """Probabilities of all forests."""
    own = [sum(np.log(sum(np.exp(roots[i]) for i in c)) for c in parts) for parts in COMPONENTS]
    logs = FORESTS @ weights + own
    return np.exp(logs - np.logaddexp.reduce(logs))


def test_the_density_sums_to_one_over_all_forests():
    assert len(FORESTS) == 291
    logp = pm.logp(bs.SpanningForest.dist(WEIGHTS, ROOTS, size=291), FORESTS).eval()
    np.testing.assert_allclose(np.exp(logp).sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.exp(logp), law(), rtol=1e-10)


def test_a_cycle_has_density_zero():
    forest = bs.SpanningForest.dist(np.zeros(10))
    cycle = [int(pair in [(0, 1), (0, 2), (1, 2)]) for pair in PAIRS]
    for value in (cycle, [2, *[0] * 9], [1] * 10):
        assert pm.logp(forest, np.array(value)).eval() == -np.inf


def test_derivatives_agree_with_finite_differences():
    row = FORESTS[60]

    def density(weights, roots):
        return pm.logp(bs.SpanningForest.dist(weights, roots), row)

    w, q = pt.vector("w", shape=(10,)), pt.vector("q", shape=(5,))
    total = density(w, q)
    run = pytensor.function([w, q], [total, *pytensor.grad(total, [w, q])])
    for k, given in enumerate((WEIGHTS, ROOTS)):
        for i in range(len(given)):
            step = np.zeros(len(given))
            step[i] = 1e-6
            up, down = (
                run(*(v + sign * step if m == k else v for m, v in enumerate((WEIGHTS, ROOTS))))[0]
                for sign in (1, -1)
            )
            np.testing.assert_allclose(run(WEIGHTS, ROOTS)[1 + k][i], (up - down) / 2e-6, atol=1e-7)


@pytest.mark.statistical
def test_draws_have_the_law_of_rooted_forests_and_not_that_of_forests_without_roots():
    draws = pm.draw(bs.SpanningForest.dist(WEIGHTS, ROOTS, size=20_000), random_seed=3)
    assert_matches_enumeration(draws, law(), states=FORESTS)
    draws = pm.draw(bs.SpanningForest.dist(WEIGHTS, -0.5, size=20_000), random_seed=4)
    assert_matches_enumeration(draws, law(roots=np.full(5, -0.5)), states=FORESTS)
    unrooted = np.exp(FORESTS @ WEIGHTS - 0.5 * np.array([len(parts) for parts in COMPONENTS]))
    with pytest.raises(AssertionError, match="worst z"):
        assert_matches_enumeration(draws, unrooted / unrooted.sum(), states=FORESTS)


def test_the_number_of_components_is_that_of_independent_trials():
    weights, root = np.exp(WEIGHTS), 0.7
    laplacian = np.zeros((5, 5))
    for (i, j), w in zip(PAIRS, weights, strict=True):
        laplacian[[i, j], [i, j]] += w
        laplacian[[i, j], [j, i]] -= w
    share = root / (root + np.linalg.eigvalsh(laplacian))
    wanted = np.ones(1)
    for q in share:
        wanted = np.convolve(wanted, [1 - q, q])
    number = np.array([len(parts) for parts in COMPONENTS])
    found = np.bincount(number, law(roots=np.full(5, np.log(root))), minlength=6)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_a_forest_alone_is_drawn_from_its_prior():
    with pm.Model() as model:
        bs.SpanningForest("forest", WEIGHTS, ROOTS)
    step = bs.steps.TreeDraws(model.free_RVs, model=model)
    step.setup_chain(np.random.default_rng(0), 0, 0)
    point, draws = model.initial_point(), []
    assert np.isfinite(model.compile_logp()(point))
    for _ in range(3000):
        point, _ = step.step(point)
        draws.append(point["forest"])
    assert_matches_enumeration(np.array(draws), law(), states=FORESTS)


def test_nodes_that_are_no_roots_are_never_alone():
    roots = np.array([0.0, -np.inf, -np.inf, -np.inf, 0.0])
    draws = pm.draw(bs.SpanningForest.dist(WEIGHTS, roots, size=500), random_seed=1)
    touching = np.array([[1 in pair, 2 in pair, 3 in pair] for pair in PAIRS])
    assert (draws @ touching >= 1).all()
    kept = np.array([all({0, 4} & c for c in parts) for parts in COMPONENTS])
    logp = pm.logp(bs.SpanningForest.dist(WEIGHTS, roots, size=291), FORESTS).eval()
    np.testing.assert_allclose(np.exp(logp[kept]).sum(), 1.0, rtol=1e-12)
    assert (logp[~kept] == -np.inf).all()


def test_bad_weights_are_refused():
    apart = np.where([2 in pair for pair in PAIRS], -np.inf, 0.0)
    bs.SpanningForest.dist(apart)
    with pytest.raises(ValueError, match="no forest is left"):
        bs.SpanningForest.dist(apart, [0, 0, -np.inf, 0, 0])
    with pytest.raises(ValueError, match="one number or a vector of 5"):
        bs.SpanningForest.dist(np.zeros(10), np.zeros(4))
    with pytest.raises(ValueError, match="root weight is NaN"):
        bs.SpanningForest.dist(np.zeros(10), np.nan)
    with pm.Model() as model:
        forest = bs.SpanningForest("forest", np.zeros(3))
        pm.Normal("y", forest[0], 1, observed=0.5)
    with pytest.raises(
        ValueError, match="'forest' cannot be drawn exactly: 'y' depends on 'forest'"
    ):
        bs.steps.TreeDraws(model.free_RVs, model=model)


@pytest.mark.parametrize("size", [1e17, -1e17, 1e300])
def test_a_common_factor_of_any_size_leaves_all_forests_as_probable(size):
    forest = bs.SpanningForest.dist(np.full(3, size), size)
    logp = [pm.logp(forest, row).eval() for row in ([0, 0, 0], [1, 0, 0], [1, 1, 0])]
    # Of 16 rooted forests on three nodes one has no edge; two roots may be in a pair, three in a tree.
    np.testing.assert_allclose(np.exp(logp), np.array([1, 2, 3]) / 16, rtol=1e-12)
