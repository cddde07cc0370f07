"""The distribution of spanning trees against all 125 trees of five nodes."""

import itertools

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from tools.enumeration import assert_matches_enumeration
from trees.test_exact import all_trees

import bayesstruct as bs

from bayesstruct.distributions import from_lower_triangle
from bayesstruct.graphs.spanning_trees.indicators import (
    indicators,
    is_spanning_tree,
    lines_of,
    node_count,
)
from bayesstruct.ops import log_tree_normaliser, tree_probabilities

PAIRS = list(itertools.combinations(range(5), 2))
TREES = np.array([[int(pair in lines) for pair in PAIRS] for lines, _ in all_trees()])


def log_weights(seed=0, spread=1.5):
    return np.random.default_rng(seed).normal(0, spread, len(PAIRS))


#: Two groups of nodes that light edges join: random walks would stay in one of them.
BOTTLENECK = np.where([(i < 2) == (j < 2) for i, j in PAIRS], 0.0, -9.0) + log_weights(1, 0.5)


def law(weights):
    """Probabilities of all trees."""
    logs = TREES @ np.where(np.isfinite(weights), weights, -1e6)
    return np.exp(logs - np.logaddexp.reduce(logs))


def square(values, diagonal=0.0):
    out = np.full((5, 5), diagonal)
    for (i, j), value in zip(PAIRS, values, strict=True):
        out[i, j] = out[j, i] = value
    return out


@pytest.mark.parametrize("as_matrix", [True, False])
def test_the_density_of_all_trees_is_the_product_of_their_weights(as_matrix):
    weights = log_weights()
    tree = bs.SpanningTree.dist(square(weights) if as_matrix else weights)
    logp = [pm.logp(tree, row).eval() for row in TREES[::9]]
    np.testing.assert_allclose(np.exp(logp), law(weights)[::9], rtol=1e-12)


@pytest.mark.parametrize("size", [1e9, 1e17, -1e17, 1e300])
def test_a_common_factor_of_any_size_leaves_all_trees_as_probable(size):
    tree = bs.SpanningTree.dist(np.full(10, size))
    logp = [pm.logp(tree, row).eval() for row in TREES[::25]]
    np.testing.assert_allclose(np.exp(logp), 1 / 125, rtol=1e-12)
    np.testing.assert_allclose(tree_probabilities(np.full(10, size)).eval(), 0.4, rtol=1e-12)
    np.testing.assert_allclose(log_tree_normaliser(np.full(10, size)).eval(), 4 * size, rtol=1e-8)
    assert all(map(is_spanning_tree, pm.draw(tree, 5, random_seed=1)))
    # A light line that no tree needs is no obstacle: 50 of 125 trees have it.
    light = np.full(10, size)
    light[0] -= 1e300
    tree = bs.SpanningTree.dist(light)
    logp = [pm.logp(tree, TREES[k]).eval() for k in TREES[:, 0].argsort()[[0, 1, -1]]]
    np.testing.assert_allclose(logp, [-np.log(75), -np.log(75), -1e300], rtol=1e-12)


def test_log_weights_that_differ_too_much_are_refused_or_have_no_density():
    far = np.where([j == 4 for _, j in PAIRS], -1e11, 0.0)
    with pytest.raises(ValueError, match=r"differ by more than 7e\+09.*take numpy\.log"):
        bs.SpanningTree.dist(far)
    with pytest.raises(ValueError, match=r"differ by more than.*take numpy\.log"):
        bs.SpanningForest.dist(far, -2e11)
    assert np.isfinite(pm.logp(bs.SpanningTree.dist(far / 1e3), TREES[0]).eval())
    random = pt.vector("w", shape=(10,))
    logp = pm.logp(bs.SpanningTree.dist(random), TREES[0])
    assert np.isnan(logp.eval({random: far})) and np.isfinite(logp.eval({random: far / 1e3}))


def test_densities_of_a_batch_are_those_of_its_trees():
    weights = log_weights()
    logp = pm.logp(bs.SpanningTree.dist(weights, size=125), TREES).eval()
    np.testing.assert_allclose(np.exp(logp), law(weights), rtol=1e-12)
    np.testing.assert_allclose(np.exp(logp).sum(), 1.0, rtol=1e-12)


def test_what_is_no_tree_has_density_zero():
    tree = bs.SpanningTree.dist(np.zeros(10))
    cycle = indicators(np.array([(0, 1), (0, 2), (1, 2), (3, 4)]), 5)
    short = indicators(np.array([(0, 1), (1, 2), (2, 3)]), 5)
    for value in (cycle, short, np.ones(10), 2 * TREES[0], np.zeros(10)):
        assert pm.logp(tree, value.astype(int)).eval() == -np.inf


def test_forbidden_edges_leave_the_law_of_the_other_trees():
    weights = log_weights()
    weights[[0, 3]] = -np.inf
    tree = bs.SpanningTree.dist(square(weights))
    allowed = TREES[(TREES[:, [0, 3]] == 0).all(axis=1)]
    logp = pm.logp(bs.SpanningTree.dist(weights, size=len(allowed)), allowed).eval()
    np.testing.assert_allclose(np.exp(logp).sum(), 1.0, rtol=1e-12)
    assert pm.logp(tree, TREES[TREES[:, 0] == 1][0]).eval() == -np.inf
    assert not pm.draw(tree, 200, random_seed=1)[:, [0, 3]].any()


def test_derivatives_of_the_normaliser_are_moments_of_the_edges():
    weights = log_weights()
    p = law(weights)
    mean = p @ TREES
    covariance = (TREES * p[:, None]).T @ TREES - np.outer(mean, mean)
    w = pt.vector("w", shape=(10,))
    total = log_tree_normaliser(w)
    gradient = pytensor.grad(total, w)
    hessian = pytensor.gradient.hessian(total, w)
    third = pytensor.grad(hessian[0, 1], w)
    run = pytensor.function([w], [total, gradient, hessian, third])
    found = run(weights)
    np.testing.assert_allclose(found[0], np.logaddexp.reduce(TREES @ weights), rtol=1e-12)
    np.testing.assert_allclose(found[1], mean, atol=1e-12)
    np.testing.assert_allclose(found[2], covariance, atol=1e-10)
    centred = TREES - mean
    moment = (p * centred[:, 0] * centred[:, 1]) @ centred
    np.testing.assert_allclose(found[3], moment, atol=1e-10)


def test_derivatives_agree_with_finite_differences():
    pytensor.gradient.verify_grad(
        log_tree_normaliser, [log_weights()], rng=np.random.default_rng(0)
    )
    pytensor.gradient.verify_grad(tree_probabilities, [log_weights()], rng=np.random.default_rng(0))
    batch = np.stack([log_weights(), log_weights(2)])
    pytensor.gradient.verify_grad(tree_probabilities, [batch], rng=np.random.default_rng(0))


@pytest.mark.compiled
def test_compiled_sums_are_those_of_the_interpreter():
    w = pt.vector("w", shape=(10,))
    total = log_tree_normaliser(w)
    run = pytensor.function([w], [total, pytensor.grad(total, w)])
    found = run(BOTTLENECK)
    np.testing.assert_allclose(found[0], np.logaddexp.reduce(TREES @ BOTTLENECK), rtol=1e-12)
    np.testing.assert_allclose(found[1], law(BOTTLENECK) @ TREES, atol=1e-12)


def greedy(rng, weights, draws):
    """Trees that grow from one edge by another in proportion to its weight: not the law, though all are trees."""
    out = np.zeros((draws, len(PAIRS)), int)
    for row in out:
        inside = set()
        for _ in range(4):
            w = np.array(
                [
                    np.exp(v) if not inside or (i in inside) != (j in inside) else 0.0
                    for v, (i, j) in zip(weights, PAIRS, strict=True)
                ]
            )
            k = rng.choice(len(PAIRS), p=w / w.sum())
            row[k] = 1
            inside.update(PAIRS[k])
    return out


@pytest.mark.statistical
@pytest.mark.parametrize("weights", [log_weights(), BOTTLENECK], ids=["plain", "bottleneck"])
def test_draws_have_the_law_of_the_trees(weights):
    draws = pm.draw(bs.SpanningTree.dist(weights, size=20_000), random_seed=3)
    assert_matches_enumeration(draws, law(weights), states=TREES)


@pytest.mark.statistical
def test_grown_trees_are_noticed():
    wrong = greedy(np.random.default_rng(0), log_weights(), 4000)
    with pytest.raises(AssertionError, match="worst z"):
        assert_matches_enumeration(wrong, law(log_weights()), states=TREES)


def test_weights_in_the_order_of_the_lower_triangle():
    # (0,1), (0,2), (1,2), (0,3), (1,3), (2,3): edge (i, j) is at i + j (j - 1) / 2
    logits = np.arange(6.0)
    matrix = from_lower_triangle(logits)
    for i, j in itertools.combinations(range(4), 2):
        assert matrix[i, j] == matrix[j, i] == logits[i + j * (j - 1) // 2]
    tree = bs.SpanningTree.dist(matrix)
    star = indicators(np.array([(0, 1), (0, 2), (0, 3)]), 4)
    chain = indicators(np.array([(0, 1), (1, 2), (2, 3)]), 4)
    gain = pm.logp(tree, chain).eval() - pm.logp(tree, star).eval()
    np.testing.assert_allclose(gain, (0 + 2 + 5) - (0 + 1 + 3), rtol=1e-12)
    with pytest.raises(
        ValueError, match="cannot have length 7: 4 nodes have 6 pairs and 5 have 10"
    ):
        from_lower_triangle(np.zeros(7))


def test_random_weights_get_the_gradient_of_the_whole_density():
    distance = np.abs(log_weights())
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, 1)
        bs.SpanningTree("tree", slope * distance, observed=TREES[7])
    slopes, step = np.array([-0.7, 0.0, 1.3]), 1e-6
    run, derivative = model.compile_logp(), model.compile_dlogp()
    for value in slopes:
        exact = -value - distance @ (law(value * distance) @ TREES - TREES[7])
        np.testing.assert_allclose(derivative({"slope": value}), [exact], atol=1e-10)
        up, down = (run({"slope": np.array(value + sign * step)}) for sign in (1, -1))
        np.testing.assert_allclose((up - down) / (2 * step), exact, atol=1e-6)


def test_a_tree_alone_is_drawn_from_its_prior_and_starts_at_the_best():
    weights = log_weights()
    with pm.Model() as model:
        bs.SpanningTree("tree", weights)
    best = TREES[law(weights).argmax()]
    np.testing.assert_array_equal(model.initial_point()["tree"], best)
    step = bs.steps.TreeDraws(model.free_RVs, model=model)
    step.setup_chain(np.random.default_rng(0), 0, 0)
    point, draws = model.initial_point(), []
    for _ in range(2000):
        point, _ = step.step(point)
        draws.append(point["tree"])
    assert_matches_enumeration(np.array(draws), law(weights), states=TREES)


def test_bad_weights_are_refused():
    with pytest.raises(ValueError, match="not symmetric, those of nodes 0 and 1 are 1 and 4"):
        bs.SpanningTree.dist(np.arange(16.0).reshape(4, 4))
    with pytest.raises(ValueError, match=r"no tree joins all nodes: .* nodes 0 and 1"):
        bs.SpanningTree.dist([-np.inf, -np.inf, 0.0])
    with pytest.raises(ValueError, match="cannot have length 4"):
        bs.SpanningTree.dist(np.zeros(4))
    with pytest.raises(
        ValueError, match="nodes 0 and 1 is nan, and weights are neither NaN nor infinite"
    ):
        bs.SpanningTree.dist([np.nan, 0.0, 0.0])
    with pytest.raises(ValueError, match="one node; a tree joins two or more"):
        bs.SpanningTree.dist(np.zeros((1, 1)))
    with pytest.raises(ValueError, match="specify_shape"):
        bs.SpanningTree.dist(pt.vector("w"))
    with pytest.raises(ValueError, match="square matrix"):
        bs.SpanningTree.dist(pt.matrix("w", shape=(3, 4)))


def test_a_tree_with_other_children_is_refused_and_not_drawn_wrongly():
    with pm.Model() as model:
        tree = bs.SpanningTree("tree", np.zeros(3))
        pm.Normal("y", tree[0], 1, observed=0.5)
    with pytest.raises(ValueError, match="'tree' cannot be drawn exactly"):
        bs.steps.TreeDraws(model.free_RVs, model=model)


def test_vectors_over_pairs():
    assert [node_count(k) for k in (0, 1, 3, 6, 10)] == [1, 2, 3, 4, 5]
    for row in TREES[::13]:
        assert is_spanning_tree(row)
        np.testing.assert_array_equal(indicators(lines_of(row), 5), row)
