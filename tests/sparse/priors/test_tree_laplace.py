"""The prior of nested groups: its constant, its draws, and its mode."""

import numpy as np
import pymc as pm
import pytensor
import pytest

from pytensor.gradient import verify_grad
from scipy import integrate, stats
from tools.modes import assert_is_mode

import bayesstruct as bs

from bayesstruct.distributions import SparseGroupLaplace, TreeLaplace
from bayesstruct.penalties import Group, SparseGroup, Tree
from bayesstruct.sparse.kernels import norm_priors
from bayesstruct.sparse.penalties.structure import Structure
from bayesstruct.sparse.priors.tree_constants import log_constant

NORMS = [2, np.inf]
NESTED = [[0, 1, 2, 3, 4, 5], [0, 1, 2], [3, 4, 5], [1], [4, 5], [5]]


def logp_of(distribution, value):
    return pm.logp(distribution, value).eval(mode="FAST_COMPILE")


def draws_of(make, N, seed, *args, **kwargs):
    """Independent draws, in Python; that compiled ones are the same is tested once."""
    size = 1 + max(max(group) for group in args[0]) if make == TreeLaplace.dist else len(args[0])
    dist = make(*args, shape=(N, size), **kwargs)
    return pm.draw(dist, random_seed=seed, mode="FAST_COMPILE")


def constant(groups, norm, weights=None):
    return log_constant(Structure.of(Tree(1.0, groups, norm=norm, weights=weights)))


@pytest.mark.parametrize("norm", NORMS)
def test_constants_of_groups_and_sparse_groups(norm):
    disjoint = Group(1.0, [0, 0, 0, 1, 1], norm=norm, weights=[2.0, 0.5]).log_normalizer()
    assert constant([[0, 1, 2], [3, 4]], norm, [2.0, 0.5]) == pytest.approx(disjoint, abs=1e-7)
    for d in (2, 5, 50, 300):
        groups = [list(range(d)), *([i] for i in range(d))]
        sparse = SparseGroup(3.0, [0] * d, group_rate=0.5, norm=norm).log_normalizer()
        assert abs(constant(groups, norm, [0.5] + [3.0] * d) - sparse) < 1e-8 * d


@pytest.mark.parametrize("norm", NORMS)
def test_the_density_integrates_to_one_in_two_dimensions(norm):
    dist = TreeLaplace.dist([[0, 1], [1]], 1.3, norm=norm, weights=[1.0, 0.6])
    value = pytensor.tensor.dvector("value")
    f = pytensor.function([value], pm.logp(dist, value), mode="FAST_COMPILE")
    # The density falls exponentially along each ray, and its kinks are rays.
    angles, weights = np.polynomial.legendre.leggauss(40)
    total = 0.0
    for low, high in [(0, np.pi / 4), (np.pi / 4, np.pi / 2)]:
        for angle, weight in zip(angles, weights, strict=True):
            theta = 0.5 * (high - low) * angle + 0.5 * (high + low)
            ray = np.array([np.cos(theta), np.sin(theta)])
            rate, at_zero = f(0 * ray) - f(ray), np.exp(f(0 * ray))
            radial = integrate.quad(lambda r, k=rate: r * np.exp(-k * r), 0, 100)[0]
            total += 4 * 0.5 * (high - low) * weight * at_zero * radial
    assert total == pytest.approx(1.0, abs=1e-7)


@pytest.mark.statistical
@pytest.mark.parametrize("norm", NORMS)
def test_the_density_integrates_to_one_in_many_dimensions(norm):
    rng = np.random.default_rng(1)
    w = rng.laplace(scale=0.5, size=(400_000, 6))
    ratio = np.exp(logp_of(TreeLaplace.dist(NESTED, 1.1, norm=norm), w))
    ratio /= stats.laplace(scale=0.5).pdf(w).prod(1)
    error = ratio.std() / np.sqrt(len(w))
    assert error < 0.02
    assert abs(ratio.mean() - 1.0) < 4.5 * error


@pytest.mark.parametrize("norm", NORMS)
def test_values_are_those_of_the_penalty(norm):
    w = np.random.default_rng(2).normal(size=6)
    weights = [1.0, 2.0, 0.0, 0.5, 1.0, 0.3]
    penalty = Tree(1.7, NESTED, norm=norm, weights=weights)
    dist = TreeLaplace.dist(NESTED, 1.7, norm=norm, weights=weights)
    expected = -penalty.value(w) - penalty.log_normalizer() - constant(NESTED, norm, weights)
    np.testing.assert_allclose(logp_of(dist, w), expected, rtol=1e-12)
    parents = [-1, 0, 0, 1, 1, 3]
    penalty = Tree.from_parents(0.7, parents, norm=norm)
    got = logp_of(TreeLaplace.dist(rate=0.7, parents=parents, norm=norm), w)
    got -= logp_of(TreeLaplace.dist(rate=0.7, parents=parents, norm=norm), 0 * w)
    np.testing.assert_allclose(got, -penalty.value(w), rtol=1e-10)


@pytest.mark.statistical
@pytest.mark.parametrize("norm", NORMS)
def test_draws_equal_those_of_sparse_groups(norm):
    # A tree of two levels, whose exact draws are known.
    d = 12
    groups = [list(range(d)), *([i] for i in range(d))]
    weights = [2.0] + [0.5] * d
    N = 20_000
    tree = draws_of(TreeLaplace.dist, N, 3, groups, 1.0, norm=norm, weights=weights)
    make = SparseGroupLaplace.dist
    exact = draws_of(make, N, 4, [0] * d, 0.5, group_rate=2.0, norm=norm)
    for f in (
        lambda x: np.abs(x[:, 0]),
        lambda x: np.abs(x).max(1),
        lambda x: np.abs(x).min(1),
        lambda x: np.abs(x).max(1) / np.abs(x).sum(1),
        lambda x: np.linalg.norm(x, axis=1),
    ):
        assert stats.ks_2samp(f(tree), f(exact)).pvalue > 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize("norm", NORMS)
def test_draws_of_three_levels(norm):
    # The outer norm as an importance weight of draws from the two trees inside it: with the scale
    # integrated out, a direction counts (1 + a r / inner)^-p.
    w = draws_of(TreeLaplace.dist, 20_000, 5, NESTED, 1.0, norm=norm)
    penalty = Tree(1.0, NESTED, norm=norm)
    values = np.array([penalty.value(row) for row in w[:4000]])
    assert stats.kstest(values, stats.gamma(6).cdf).pvalue > 1e-3

    inside = Tree(1.0, NESTED[1:], norm=norm)
    other = draws_of(TreeLaplace.dist, 60_000, 6, NESTED[1:], 1.0, norm=norm)
    inner = np.array([inside.value(row) for row in other])
    outer = np.linalg.norm(other, norm, axis=1)
    weight = (1 + outer / inner) ** -6.0
    other /= (inner + outer)[:, None]  # directions, of penalty 1
    directions = w / np.array([penalty.value(row) for row in w])[:, None]
    for f in (np.abs, lambda x: np.log(np.abs(x)), np.square):
        a, b = f(directions), f(other)
        expected = weight @ b / weight.sum()
        error = np.sqrt(weight**2 @ (b - expected) ** 2) / weight.sum()
        z = (a.mean(0) - expected) / np.hypot(error, a.std(0) / np.sqrt(len(a)))
        assert np.abs(z).max() < 4.5


@pytest.mark.compiled
@pytest.mark.parametrize("norm", NORMS)
def test_draws_are_the_same_when_compiled(norm):
    dist = TreeLaplace.dist(NESTED, 2.0, norm=norm)
    compiled = pm.draw(dist, 3, random_seed=5)
    np.testing.assert_allclose(compiled, pm.draw(dist, 3, random_seed=5, mode="FAST_COMPILE"))


@pytest.mark.statistical
@pytest.mark.parametrize("norm", NORMS)
def test_sweeps_forget_their_start(norm):
    # Half of the sweeps give the same averages, from a start that is far off.
    d = 40
    tree = Tree(1.0, [list(range(d)), list(range(d // 2)), [0, 1, 2], [0]], norm=norm)
    structure = Structure.of(tree)
    weights, order, start, parent = structure.arrays
    if norm == 2:
        sweep, full = norm_priors.sweep_tree_l2, norm_priors.SWEEPS_L2
    else:
        sweep = norm_priors.sweep_tree_linf
        full = norm_priors.SWEEPS_LINF + norm_priors.SWEEPS_LINF_COORDINATE * d

    def averages(sweeps, seed, N=3000):
        rng = np.random.default_rng(seed)
        args = (1.0, weights, order, start, parent, d, sweeps)
        x = np.abs([sweep(rng, *args) for _ in range(N)])
        logs = np.log([x[:, :20].max(1) / x.max(1), x[:, :3].max(1) / x.max(1), x[:, 0]])
        return logs.mean(1), logs.std(1) / np.sqrt(N)

    (none, e0), (some, e1), (all_of_them, e2) = (
        averages(sweeps, seed) for seed, sweeps in enumerate([0, full // 4, full])
    )
    assert np.abs((none - all_of_them) / np.hypot(e0, e2)).max() > 10
    assert np.abs((some - all_of_them) / np.hypot(e1, e2)).max() < 4


@pytest.mark.statistical
@pytest.mark.parametrize("norm", NORMS)
def test_random_rate_gradients_and_shapes(norm):
    def logp(w, rate):
        return pm.logp(TreeLaplace.dist(NESTED, rate, norm=norm), w)

    rng = np.random.default_rng(7)
    verify_grad(logp, [rng.normal(size=6), np.array(1.4)], rng=rng, mode="FAST_COMPILE")
    with pm.Model(coords={"term": range(6)}) as model:
        rate = pm.Gamma("rate", 3, 2)
        w = bs.TreeLaplace("w", NESTED, rate, norm=norm, dims="term")
        bs.TreeLaplace("v", NESTED, 2.0, norm=norm, shape=(2, 6))
        a, b = pm.draw([rate, w], 2000, random_seed=8, mode="FAST_COMPILE")
    penalty = Tree(1.0, NESTED, norm=norm)
    values = a * np.array([penalty.value(row) for row in b])
    assert stats.kstest(values, stats.gamma(6).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(a, values)[0, 1]) < 0.1
    start = model.initial_point()
    np.testing.assert_array_equal(start["w"], 0.0)
    gradient = model.compile_dlogp(mode="FAST_COMPILE")(start)
    assert np.isfinite(gradient).all()
    assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")(start))


@pytest.mark.parametrize("norm", NORMS)
def test_mode_of_the_model(norm):
    rng = np.random.default_rng(9)
    X = np.linalg.qr(rng.normal(size=(12, 6)))[0]
    y = X @ [3.0, 1.2, -2.0, 0.6, 0.3, 0.2] + 0.1 * rng.normal(size=12)
    penalty = Tree(0.4, NESTED, norm=norm)
    with pm.Model() as model:
        w = bs.TreeLaplace("w", NESTED, 0.4, norm=norm)
        pm.Normal("y", X @ w, 1.0, observed=y)
    mode = penalty.prox(X.T @ y)
    assert 0 < np.count_nonzero(mode) < 6
    assert penalty.residual(mode, mode - X.T @ y) < 1e-12
    tolerance = 1e-4 if norm == 2 else np.inf  # kinks away from zero
    assert_is_mode(model, {"w": mode}, ["w"], gradient_tol=tolerance)


def test_messages():
    with pytest.raises(ValueError, match="Improper prior"):
        TreeLaplace.dist([[0, 1], [3]])
    with pytest.raises(ValueError, match="neither nested nor disjoint"):
        TreeLaplace.dist([[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="either `groups` or `parents`"):
        TreeLaplace.dist(rate=1.0)
    with pytest.raises(ValueError, match="`rate` must be positive"):
        TreeLaplace.dist([[0, 1]], 0.0)
