"""Sweeps over coefficients with exact zeros, against all subsets of a few predictors."""

import numba
import numpy as np
import pytest

from scipy import stats
from tools.batches import mean_and_error
from tools.enumeration import assert_matches_enumeration
from tools.variable_selection import gaussian_subsets

from bayesstruct.sparse.kernels import spike_slab_regression as kernel

P = 8
INCLUSION = np.linspace(0.2, 0.6, P)
SLAB = np.linspace(0.5, 2.0, P)
NOISE = 1.1


def log_odds(q):
    with np.errstate(divide="ignore"):
        return np.log(q) - np.log1p(-np.asarray(q, float))


def table(kind, seed=1):
    """Predictors and responses; each kind is a difficulty."""
    rng = np.random.default_rng(seed)
    n = 5 if kind == "wide" else 20
    X = rng.normal(size=(n, P))
    X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
    if kind == "deficient":
        X[:, 3] = X[:, 2]  # a duplicate
        X[:, 5] = X[:, 4] - X[:, 6]  # a combination
        X[:, 7] = 0.0
    return X, X[:, 0] - 0.5 * X[:, 4] + rng.normal(size=n)


def run(X, y, draws, *, noise=NOISE, inclusion=INCLUSION, swaps=4, weights=None, seed=0, shift=0.0):
    """Coefficients of a chain, and the mean conditional inclusion probabilities."""
    rng, p = np.random.default_rng(seed), X.shape[1]
    w, chance, slab = np.zeros(p), np.zeros(p), SLAB[:p]
    odds = log_odds(inclusion) + shift
    gram, columns = X.T @ X, np.ascontiguousarray(X.T)
    diagonal, score = gram.diagonal().copy(), X.T @ y
    out = np.empty((draws, p))
    for t in range(draws):
        if weights is None:
            kernel.gaussian_sweep(rng, w, chance, gram, diagonal, score, noise, slab, odds, swaps)
        else:
            kernel.weighted_sweep(
                rng, w, chance, columns, columns**2, weights, weights * y, slab, odds, swaps
            )
        out[t] = w
    return out, chance / draws


def assert_moments(draws, first, second):
    """Means of coefficients and squares within 4.5 standard errors."""
    mean, error, _ = mean_and_error(np.hstack([draws, draws**2]), 60)
    z = (mean - np.concatenate([first, second])) / np.maximum(error, 1e-12)
    assert np.abs(z).max() < 4.5, z


@pytest.mark.statistical
@pytest.mark.parametrize("swaps", [0, 4])
@pytest.mark.parametrize("kind", ["tall", "wide", "deficient"])
def test_subsets_and_coefficients_have_their_posterior(kind, swaps):
    X, y = table(kind)
    states, exact, first, second = gaussian_subsets(
        X, y, inclusion=INCLUSION, slab=SLAB, noise=NOISE
    )
    draws, chance = run(X, y, 20_000, swaps=swaps)
    assert_matches_enumeration((draws != 0).astype(int), exact, states=states)
    assert_moments(draws, first, second)
    # Averages of probabilities vary less than those of indicators, whose error is below 0.0036.
    np.testing.assert_allclose(chance, exact @ states, atol=4 * 0.0036)


@pytest.mark.statistical
def test_a_shift_of_the_prior_odds_is_noticed():
    X, y = table("tall")
    states, exact, *_ = gaussian_subsets(X, y, inclusion=INCLUSION, slab=SLAB, noise=NOISE)
    draws, _ = run(X, y, 20_000, shift=0.2)
    with pytest.raises(AssertionError, match="worst z"):
        assert_matches_enumeration((draws != 0).astype(int), exact, states=states)


@pytest.mark.statistical
def test_required_and_forbidden_predictors():
    X, y = table("deficient")
    inclusion = INCLUSION.copy()
    inclusion[[1, 3]], inclusion[[0, 6]] = 1.0, 0.0
    states, exact, first, second = gaussian_subsets(
        X, y, inclusion=inclusion, slab=SLAB, noise=NOISE
    )
    draws, chance = run(X, y, 10_000, inclusion=inclusion)
    assert_matches_enumeration((draws != 0).astype(int), exact, states=states)
    assert_moments(draws, first, second)
    np.testing.assert_array_equal(chance[[0, 1, 3, 6]], [0.0, 1.0, 1.0, 0.0])


@pytest.mark.statistical
def test_unequal_noise():
    X, y = table("tall")
    noise = np.random.default_rng(3).uniform(0.5, 2.0, size=len(y))
    states, exact, first, second = gaussian_subsets(
        X, y, inclusion=INCLUSION, slab=SLAB, noise=noise
    )
    draws, _ = run(X, y, 20_000, weights=1 / noise**2)
    assert_matches_enumeration((draws != 0).astype(int), exact, states=states)
    assert_moments(draws, first, second)


def test_equal_weights_are_the_gaussian_sweep():
    X, y = table("tall")
    a, _ = run(X, y, 50, seed=3)
    b, _ = run(X, y, 50, seed=3, weights=np.full(len(y), NOISE**-2))
    np.testing.assert_array_equal(a != 0, b != 0)
    np.testing.assert_allclose(a, b, rtol=1e-8)


@pytest.mark.statistical
def test_a_shared_gram_with_the_response_forbidden_is_the_regression_on_the_others():
    X, _ = table("tall")
    inclusion = INCLUSION.copy()
    inclusion[2] = 0.0
    full, _ = run(X, X[:, 2], 2_000, inclusion=inclusion, seed=2)
    others = np.delete(np.arange(P), 2)
    states, exact, *_ = gaussian_subsets(
        X[:, others], X[:, 2], inclusion=INCLUSION[others], slab=SLAB[others], noise=NOISE
    )
    assert not full[:, 2].any()
    assert_matches_enumeration((full[:, others] != 0).astype(int), exact, states=states)


def direct(X, y, members, ridge):
    """``h``, ``r`` and the two solutions with A, by dense algebra."""
    G, b = X.T @ X, X.T @ y
    A = G[np.ix_(members, members)] + np.diag(ridge[members])
    h = np.diag(G) - np.einsum("ij,ji->i", G[:, members], np.linalg.solve(A, G[members]))
    return A, h, b - G[:, members] @ np.linalg.solve(A, b[members])


@numba.njit
def walk(gram, diagonal, score, ridge, nothing, picks):
    """Turn predictors on and off; returns everything that is kept up to date."""
    p = len(ridge)
    s = kernel._search(
        gram, np.arange(p), diagonal, score, np.empty((p, 0)), np.empty(0), ridge, nothing, p
    )
    kernel._rebuild(s)
    for j in picks:
        q = s.place[j]
        if q < 0:
            s = kernel._reserve(s)
            kernel._enter(s, j)
        else:
            spread, mean = kernel._without(s, q)
            kernel._open(s, q)
            kernel._leave(s, q, spread, mean)
    k = s.counts[0]
    return s.members[:k], s.place, s.factor[:k, :k], s.half[:k], s.left, s.pull


@pytest.mark.parametrize("near", [0.5, 1e-3])
def test_rank_one_updates_stay_close_to_dense_algebra(near):
    rng = np.random.default_rng(0)
    n, p = 60, 40
    X = rng.normal(size=(n, p))
    X[:, 1::2] = X[:, ::2] + near * X[:, 1::2]  # pairs of nearly equal columns
    y = rng.normal(size=n)
    G, ridge = X.T @ X, np.full(p, 0.5)
    picks = rng.integers(p, size=kernel._REBUILD)
    members, place, factor, half, left, pull = walk(
        G, np.diag(G).copy(), X.T @ y, ridge, np.empty(0, np.int64), picks
    )
    k = len(members)
    A, h, r = direct(X, y, members, ridge)
    out = np.setdiff1d(np.arange(p), members)
    factor = np.tril(factor)
    np.testing.assert_array_equal(place[members], np.arange(k))
    # Errors are relative to the elements of X'X, here about 100.
    np.testing.assert_allclose(factor @ factor.T, A, atol=1e-10)
    np.testing.assert_allclose(factor @ half, (X.T @ y)[members], atol=1e-10)
    np.testing.assert_allclose(left[out], h[out], atol=1e-10)
    np.testing.assert_allclose(pull[out], r[out], atol=1e-10)


def test_many_active_predictors():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 120))
    w = rng.normal(size=120)
    y = X @ w + 0.3 * rng.normal(size=300)
    coefficients, chance = np.zeros(120), np.zeros(120)
    gram = X.T @ X
    for _ in range(30):
        kernel.gaussian_sweep(
            rng,
            coefficients,
            chance,
            gram,
            gram.diagonal().copy(),
            X.T @ y,
            0.3,
            np.ones(120),
            np.zeros(120),
            10,
        )
    # The posterior standard deviation is about 0.3 / sqrt(180); five of them.
    np.testing.assert_allclose(coefficients, w, atol=5 * 0.3 / np.sqrt(180))


@pytest.mark.statistical
def test_without_data_the_prior_is_drawn():
    draws, _ = run(np.empty((0, P)), np.empty(0), 20_000)
    z = ((draws != 0).mean(0) - INCLUSION) / np.sqrt(INCLUSION * (1 - INCLUSION) / 20_000)
    assert np.abs(z).max() < 4.5
    for j in range(P):
        nonzero = draws[draws[:, j] != 0, j]
        assert stats.kstest(nonzero, stats.norm(scale=np.sqrt(SLAB[j])).cdf).pvalue > 1e-4


@pytest.mark.statistical
@pytest.mark.parametrize("size", [1e-12, 0.05, 1.0, 30.0])
def test_variances_of_the_laplace_slab(size):
    draws, scale, N = np.empty(20_000), 0.7, 20_000
    kernel.draw_slab_variances(np.random.default_rng(1), np.full(N, size), np.full(N, scale), draws)
    # 1/v is inverse Gaussian with mean 1/(s |w|) and shape 1/s^2; SciPy's mu is mean / shape.
    distribution = stats.invgauss(scale / size, scale=scale**-2)
    if size < 1e-6:  # v is s^2 chi-square_1 in the limit
        assert stats.kstest(draws / scale**2, stats.chi2(1).cdf).pvalue > 1e-3
    else:
        assert stats.kstest(1 / draws, distribution.cdf).pvalue > 1e-3


@pytest.mark.statistical
def test_variances_of_zero_coefficients_make_the_laplace_prior():
    rng, N = np.random.default_rng(2), 40_000
    variances, scale = np.empty(N), np.full(N, 0.7)
    kernel.draw_slab_variances(rng, np.zeros(N), scale, variances)
    w = np.sqrt(variances) * rng.normal(size=N)
    assert stats.kstest(w, stats.laplace(scale=0.7).cdf).pvalue > 1e-3


@pytest.mark.statistical
def test_laplace_slab_of_two_coefficients_against_quadrature():
    rng = np.random.default_rng(4)
    X, scale, q = rng.normal(size=(6, 2)), np.array([0.4, 0.9]), np.array([0.4, 0.6])
    X[:, 1] += X[:, 0]
    y = 0.8 * X[:, 0] + rng.normal(size=6)
    grid = np.linspace(-8, 8, 801)
    step = grid[1] - grid[0]
    w0, w1 = np.meshgrid(grid, grid, indexing="ij")
    likelihood = np.exp(
        -0.5 * ((y - w0[..., None] * X[:, 0] - w1[..., None] * X[:, 1]) ** 2).sum(-1)
    )
    slab = [np.exp(-np.abs(grid) / s) / (2 * s) for s in scale]
    middle = len(grid) // 2
    masses = np.array(
        [
            (1 - q[0]) * (1 - q[1]) * likelihood[middle, middle],
            (1 - q[0]) * q[1] * (slab[1] * likelihood[middle]).sum() * step,
            q[0] * (1 - q[1]) * (slab[0] * likelihood[:, middle]).sum() * step,
            q[0] * q[1] * (slab[0][:, None] * slab[1] * likelihood).sum() * step**2,
        ]
    )
    joint = q[0] * q[1] * slab[0][:, None] * slab[1] * likelihood * step**2
    alone = [
        q[0] * (1 - q[1]) * slab[0] * likelihood[:, middle] * step,
        (1 - q[0]) * q[1] * slab[1] * likelihood[middle] * step,
    ]
    first = [
        (alone[0] * grid).sum() + (joint * w0).sum(),
        (alone[1] * grid).sum() + (joint * w1).sum(),
    ]
    second = [
        (alone[0] * grid**2).sum() + (joint * w0**2).sum(),
        (alone[1] * grid**2).sum() + (joint * w1**2).sum(),
    ]
    total = masses.sum()
    gram = X.T @ X
    w, chance, variances, draws = np.zeros(2), np.zeros(2), np.empty(2), np.empty((20_000, 2))
    for t in range(len(draws)):
        kernel.draw_slab_variances(rng, w, scale, variances)
        kernel.gaussian_sweep(
            rng, w, chance, gram, gram.diagonal().copy(), X.T @ y, 1.0, variances, log_odds(q), 1
        )
        draws[t] = w
    # The kink of the Laplace density at a grid point costs the trapezoid rule step^2 / 12 only.
    states = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert_matches_enumeration((draws != 0).astype(int), masses / total, states=states)
    assert_moments(draws, np.array(first) / total, np.array(second) / total)
