"""Priors of groups under nuclear norms: densities integrate to one, and draws follow them."""

import pickle

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor.compile.mode import Mode
from pytensor.gradient import verify_grad
from scipy import stats
from tools.modes import assert_is_mode

import bayesstruct as bs

from bayesstruct.distributions import GroupLaplace
from bayesstruct.penalties import Group
from bayesstruct.solvers import sparse_mode
from bayesstruct.sparse.kernels import norm_priors, nuclear

# Three interleaved groups of all kinds of sides, with weights.
SHAPES = [(2, 2), (3, 2), (1, 4)]
GROUPS = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [4, 6, 4]))
WEIGHTS = [1.0, 2.0, 0.5]


def prior(rate=1.0):
    return GroupLaplace.dist(GROUPS, rate, norm="nuclear", shapes=SHAPES, weights=WEIGHTS)


def penalty(rate=1.0):
    return Group(rate, GROUPS, norm="nuclear", shapes=SHAPES, weights=WEIGHTS)


def compiled_logp(shape):
    """Density of one matrix in each row, at the rate of each row."""
    rate, value = pt.dmatrix("rate"), pt.dmatrix("value")
    dist = GroupLaplace.dist([0] * np.prod(shape), rate, norm="nuclear", shapes=shape)
    return pytensor.function([value, rate], pm.logp(dist, value), mode="FAST_COMPILE")


def matrices(k, n, N, seed):
    """Draws of rate one, (N, k, n)."""
    size = N * k * n
    flat = norm_priors.draw_group_nuclear(
        np.random.default_rng(seed),
        np.ones(N),
        np.arange(size),
        np.arange(N + 1) * (k * n),
        size,
        np.tile(np.array([[k, n]]), (N, 1)),
    )
    return flat.reshape(N, k, n)


def test_the_density_integrates_to_one_by_quadrature():
    # sqrt(2) W = [[p + r, t - q], [t + q, p - r]] is a rotation of the coordinates to two points of
    # the plane, of radii a and b, and the nuclear norm is sqrt(2) max(a, b). The rate is random too.
    rates, mass = np.polynomial.laguerre.laggauss(12)
    radii, weight = np.polynomial.laguerre.laggauss(8)
    ratios, share = (x / 2 + y for x, y in zip(np.polynomial.legendre.leggauss(6), (0.5, 0.0)))
    rate, x, u = (m.ravel() for m in np.meshgrid(rates, radii, ratios, indexing="ij"))
    area = np.einsum("i,j,k->ijk", mass, weight * np.exp(radii), share).ravel()
    turn = np.random.default_rng(1).uniform(0, 2 * np.pi, (2, len(x)))  # nothing depends on them
    a = x / (rate * np.sqrt(2))
    b = a * u
    p, q, r, t = a * np.cos(turn[0]), a * np.sin(turn[0]), b * np.cos(turn[1]), b * np.sin(turn[1])
    w = np.stack([p + r, t - q, t + q, p - r], axis=1) / np.sqrt(2)
    density = np.exp(compiled_logp((2, 2))(w, rate[:, None])) * stats.gamma(3).pdf(rate)
    # Volume: 2 (for b > a) (2 pi)^2 a b da db, with da = dx / (sqrt(2) rate) and db = a du.
    volume = 2 * (2 * np.pi) ** 2 * a * b * a / (np.sqrt(2) * rate)
    # Polynomials times exponentials: the rules are exact. Laguerre's weight of the rate is in it.
    total = area @ (density * np.exp(rate) * volume)
    assert total == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("shape", [(2, 2), (2, 3)])
def test_the_density_integrates_to_one_by_importance_sampling(shape):
    # A random rate, and independent Laplace distributions half as wide again as the norm calls for.
    rng, N, d = np.random.default_rng(2), 200_000, np.prod(shape)
    rate = rng.gamma(3.0, size=(N, 1)) + 0.1
    w = rng.laplace(scale=1.5 / rate, size=(N, d))
    log = compiled_logp(shape)(w, rate) - stats.laplace(scale=1.5 / rate).logpdf(w).sum(axis=1)
    error = np.exp(log).std() / np.sqrt(N)
    assert error < 0.02
    assert abs(np.exp(log).mean() - 1.0) < 4.5 * error


def test_values_are_those_of_the_penalty():
    w = np.random.default_rng(3).normal(size=(3, 14))
    w[1, GROUPS == 0] = [1.0, 2.0, 2.0, 4.0]  # of rank one
    w[2, GROUPS == 1] = 0.0
    for rates, value in [(1.7, w[0]), (np.full((3, 3), 0.4), w)]:
        logp = pm.logp(prior(rates), value).eval(mode="FAST_COMPILE")
        same = penalty(np.ravel(rates)[0])
        expected = [-same.value(row) - same.log_normalizer() for row in np.atleast_2d(value)]
        np.testing.assert_allclose(np.atleast_1d(logp), expected, rtol=1e-12)


def test_gradients():
    rng = np.random.default_rng(4)
    w, rates = rng.normal(size=(2, 14)), rng.uniform(0.5, 2.0, size=(2, 3))

    def logp(w, rates):
        return pm.logp(prior(rates), w)

    def slope(w):
        return pytensor.grad(pm.logp(prior(), w), w)

    mode = Mode("py", "fast_compile")
    verify_grad(logp, [w, rates], rng=rng, mode=mode)
    verify_grad(slope, [w[0]], rng=rng, mode=mode)


def test_gradients_at_kinks():
    value = pt.dvector("value")
    gradient = pytensor.function(
        [value], pytensor.grad(pm.logp(prior(), value), value), mode="FAST_COMPILE"
    )
    np.testing.assert_array_equal(gradient(np.zeros(14)), 0.0)
    w, (u, v) = np.zeros(14), np.random.default_rng(5).normal(size=(2, 3))
    w[GROUPS == 1] = np.outer(u, v[:2]).ravel()
    expected = np.zeros(14)
    expected[GROUPS == 1] = w[GROUPS == 1] / np.linalg.norm(
        w
    )  # the missing directions are left out
    np.testing.assert_allclose(gradient(w), -2.0 * expected, atol=1e-13)
    np.testing.assert_allclose(gradient(1e-200 * w), -2.0 * expected, atol=1e-13)


@pytest.mark.statistical
@pytest.mark.parametrize("shape", [(2, 2), (4, 2), (2, 7)])
def test_draws_of_two_singular_values(shape):
    n, W = max(shape), matrices(*shape, 20_000, 6)
    s = np.linalg.svd(W, compute_uv=False)
    assert stats.kstest(s.sum(axis=1), stats.gamma(2 * n).cdf).pvalue > 1e-3
    # The density (s^2 - t^2) (s t)^(n - 2) exp(-s - t) without s, at the ratio u = t / s.
    ratio, u = s[:, 1] / s[:, 0], np.linspace(0.0, 1.0, 20_001)
    density = (1 - u**2) * u ** (n - 2) / (1 + u) ** (2 * n)
    cdf = np.cumsum(density) - density / 2
    assert stats.kstest(ratio, lambda x: np.interp(x, u, cdf / density.sum())).pvalue > 1e-3
    assert abs(stats.spearmanr(ratio, s.sum(axis=1)).statistic) < 0.03


@pytest.mark.statistical
def test_draws_by_rejection_are_those_of_sweeps():
    # Two ways to five singular values: from proposals, and from a start that is far off.
    k, n, N = 5, 6, 4000
    rng, chains = np.random.default_rng(7), np.tile(np.linspace(20.0, 0.1, k), (N, 1))
    for s in chains:
        nuclear.sweep_singular_values(rng, s, n, 40)
    exact = np.linalg.svd(matrices(k, n, N, 8), compute_uv=False)
    for f in (
        lambda s: s[:, 0] / s.sum(axis=1),
        lambda s: s[:, -1] / s.sum(axis=1),
        lambda s: np.log(s).sum(axis=1) - k * np.log(s.sum(axis=1)),
        lambda s: s.sum(axis=1),
    ):
        assert stats.ks_2samp(f(chains), f(exact)).pvalue > 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize("shape", [(3, 4), (10, 9)])
def test_directions_of_draws_are_uniform(shape):
    # One of them is drawn by rejection, the other by sweeps.
    U, s, V = np.linalg.svd(matrices(*shape, 1500, 9), full_matrices=False)
    assert stats.kstest(s.sum(axis=1), stats.gamma(np.prod(shape)).cdf).pvalue > 1e-3
    for vectors in (U[:, :, 0], U[:, :, -1], V[:, 0], V[:, -1]):
        distribution = stats.beta(0.5, 0.5 * (vectors.shape[1] - 1))
        for j in (0, -1):
            assert stats.kstest(vectors[:, j] ** 2, distribution.cdf).pvalue > 1e-3
    signs = np.sign(U[:, 0, 0] * V[:, 0, 0])  # a singular vector has no sign, a pair of them has
    assert stats.binomtest(int((signs > 0).sum()), len(signs)).pvalue > 1e-3


def test_sweeps_forget_their_start():
    # A fraction of the sweeps of a draw gives the same averages.
    k = n = 14
    full = nuclear.SWEEPS + nuclear.SWEEPS_VALUE * k

    def averages(sweeps, seed, N=400):
        rng, s = np.random.default_rng(seed), np.tile(np.linspace(2.0 * n, 0.1, k), (N, 1))
        for row in s:
            nuclear.sweep_singular_values(rng, row, n, sweeps)
        share = s / s.sum(axis=1, keepdims=True)
        x = np.stack([share[:, 0], np.log(share[:, -1]), share[:, : k // 2].sum(axis=1)])
        return x.mean(axis=1), x.std(axis=1) / np.sqrt(N)

    (few, e0), (some, e1), (all_of_them, e2) = (
        averages(sweeps, seed) for seed, sweeps in enumerate([1, full // 3, full])
    )
    assert np.abs((few - all_of_them) / np.hypot(e0, e2)).max() > 10
    assert np.abs((some - all_of_them) / np.hypot(e1, e2)).max() < 4


def test_draws_know_their_rates_and_order():
    rates = np.array([0.5, 2.0, 1.0])
    dist = GroupLaplace.dist(GROUPS, rates, norm="nuclear", shapes=SHAPES, shape=(4000, 14))
    w = pm.draw(dist, random_seed=10, mode="FAST_COMPILE")
    for g, shape in enumerate(SHAPES):
        s = np.linalg.svd(w[:, g == GROUPS].reshape(-1, *shape), compute_uv=False)
        distribution = stats.gamma(np.prod(shape), scale=1 / rates[g])
        assert stats.kstest(s.sum(axis=1), distribution.cdf).pvalue > 1e-3


def test_compiled_draws_are_the_same():
    dist = GroupLaplace.dist(GROUPS, 2.0, norm="nuclear", shapes=SHAPES)
    compiled = pm.draw(dist, 2, random_seed=5)
    np.testing.assert_allclose(compiled, pm.draw(dist, 2, random_seed=5, mode="FAST_COMPILE"))


def test_operations_know_their_shapes():
    # The same groups, other shapes: the disk cache must not mix them up.
    first, second, again = (
        GroupLaplace.dist([0] * 6, norm="nuclear", shapes=shape).owner.op
        for shape in [(2, 3), (3, 2), (2, 3)]
    )
    assert first == again != second
    assert repr(first.structure) != repr(second.structure)


@pytest.mark.chain
@pytest.mark.compiled
def test_posterior_against_importance_sampling():
    # Two noisy matrices and a random rate: NUTS against weighted draws of the prior.
    y = np.array([1.5, 0.4, -0.2, 1.0, 0.3, -0.2, 0.5, 0.1])
    groups = np.repeat([0, 1], 4)
    with pm.Model(coords={"term": list("abcdefgh")}) as model:
        rate = pm.Gamma("rate", 3, 2)
        w = bs.GroupLaplace("w", groups, rate, norm="nuclear", shapes=(2, 2), dims="term")
        pm.Normal("y", w, 1.0, observed=y)
    start = model.initial_point()
    np.testing.assert_array_equal(start["w"], np.zeros(8))
    assert pickle.loads(pickle.dumps(w.owner.op)) == w.owner.op
    with model:
        idata = pm.sample(
            1000,
            tune=500,
            chains=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
            nuts_sampler="pymc",
            target_accept=0.9,
        )
    posterior = idata["posterior"]
    assert posterior["w"].dims == ("chain", "draw", "term")
    rng, N = np.random.default_rng(11), 200_000
    rates = rng.gamma(3.0, 0.5, size=N)
    flat = (rng, np.repeat(rates, 2), np.arange(8 * N), np.arange(2 * N + 1) * 4, 8 * N)
    prior = norm_priors.draw_group_nuclear(*flat, np.full((2 * N, 2), 2)).reshape(N, 8)
    weight = stats.norm.pdf(prior - y).prod(axis=1)
    weight /= weight.sum()
    assert 1 / np.square(weight).sum() > 2000
    for draws, other in [
        (posterior["w"].values[0], prior),
        (np.log(posterior["rate"].values[0]), np.log(rates)),
    ]:
        mean = weight @ other
        sd = np.sqrt(weight @ (other - mean) ** 2)
        # A thousand draws worth some 300 independent ones, and more than 2,000 of the others.
        assert np.abs((draws.mean(axis=0) - mean) / sd).max() < 4 / np.sqrt(260)


@pytest.mark.statistical
def test_mode_of_the_model():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(40, 14))
    y = X @ penalty(8.0).prox(3.0 * rng.normal(size=14)) + rng.normal(size=40)
    with pm.Model() as model:
        w = bs.GroupLaplace("w", GROUPS, 8.0, norm="nuclear", shapes=SHAPES, weights=WEIGHTS)
        pm.Normal("y", X @ w, 1.0, observed=y)
    solution = sparse_mode(X, y, penalty=penalty(8.0), intercept=False, tol=1e-12)
    mode = solution.coefficients
    ranks = [np.linalg.matrix_rank(mode[g == GROUPS].reshape(s)) for g, s in enumerate(SHAPES)]
    assert min(ranks) < 2 and max(ranks) > 0
    # Singular values at zero are kinks in no coordinate's direction: the tool's slopes are not for
    # them, its perturbations are.
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        assert_is_mode(model, {"w": mode}, ["w"], gradient_tol=np.inf)


def test_messages():
    with pytest.raises(ValueError, match="needs shapes"):
        GroupLaplace.dist([0] * 4, norm="nuclear")
    with pytest.raises(ValueError, match="Group 1 has 3 coordinates, which is not 2 times 2"):
        GroupLaplace.dist([[0, 1, 2, 3], [4, 5, 6]], norm="nuclear", shapes=(2, 2))
    with pytest.raises(ValueError, match="norm='nuclear' only"):
        GroupLaplace.dist([0] * 4, shapes=(2, 2))
    with pytest.raises(ValueError, match="Improper prior"):
        GroupLaplace.dist([0, 0, 0, 0, -1], norm="nuclear", shapes=(2, 2))
    with pytest.raises(ValueError, match="must be positive"):
        GroupLaplace.dist([0] * 4, 0.0, norm="nuclear", shapes=(2, 2))
