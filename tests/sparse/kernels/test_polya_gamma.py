"""Polya-Gamma draws against their known distribution; logistic sweeps against all subsets."""

import numpy as np
import pytest

from scipy import stats
from tools.enumeration import assert_matches_enumeration
from tools.variable_selection import logistic_subsets

from bayesstruct.sparse.kernels.polya_gamma import draw_polya_gammas, logistic_sweep

N = 40_000
TILTS = [0.0, 1e-6, 0.7, 3.0, 3.2, 9.0, 40.0, 900.0]  # z = 1 / t = 3.125 parts two proposals


def draws(z, size=N, seed=0):
    out = np.empty(size)
    draw_polya_gammas(np.random.default_rng(seed), np.full(size, z), out)
    return out


def log_laplace_transform(s, z):
    """``log E exp(-s w)``: Polson, Scott and Windle (2013), section 2.1, with b = 1."""

    def log_cosh(x):
        return np.logaddexp(x, -x) - np.log(2.0)

    return log_cosh(z / 2) - log_cosh(np.sqrt(z * z / 4 + s / 2))


def mean_and_variance(z):
    if z < 1e-3:
        return 0.25, 1 / 24
    mean = np.tanh(z / 2) / (2 * z)
    # (sinh z - z) / (4 z^3 cosh^2(z / 2)), divided through by exp(z).
    decay = np.exp(-z)
    ratio = 2 * (1 - decay**2 - 2 * z * decay) / (1 + decay) ** 2
    return mean, ratio / (4 * z**3)


@pytest.mark.parametrize("z", TILTS)
def test_moments(z):
    w = draws(z)
    mean, variance = mean_and_variance(z)
    kurtosis = stats.moment(w, 4)
    assert abs(w.mean() - mean) < 4.5 * np.sqrt(variance / N)
    assert abs(w.var() - variance) < 4.5 * np.sqrt((kurtosis - variance**2) / N)


@pytest.mark.parametrize("z", TILTS)
@pytest.mark.parametrize("s", [0.5, 4.0, 30.0])
def test_laplace_transform(z, s):
    values = np.exp(-s * draws(z, seed=1))
    exact = np.exp(log_laplace_transform(s, z))
    assert abs(values.mean() - exact) < 4.5 * values.std() / np.sqrt(N)


@pytest.mark.statistical
@pytest.mark.parametrize("z", [0.0, 0.7, 3.0, 3.2, 9.0])
def test_distribution(z):
    # The distribution is that of a sum of gamma variables (theorem 1); 300 terms and the mean of the rest,
    # whose standard deviation is below 2e-5 where that of the sum is at least 0.01.
    rng, size = np.random.default_rng(2), 20_000
    weights = 1 / (2 * np.pi**2 * ((np.arange(1, 301) - 0.5) ** 2 + z * z / (4 * np.pi**2)))
    oracle = rng.standard_exponential((size, 300)) @ weights
    oracle += mean_and_variance(z)[0] - weights.sum()
    assert stats.ks_2samp(draws(z), oracle).pvalue > 1e-3


def test_a_wrong_tilt_is_noticed():
    values = np.exp(-4.0 * draws(0.5))
    exact = np.exp(log_laplace_transform(4.0, 1.0))
    assert abs(values.mean() - exact) > 4.5 * values.std() / np.sqrt(N)


def test_the_sign_of_the_tilt_does_not_matter():
    np.testing.assert_array_equal(draws(-2.0, 100), draws(2.0, 100))


def run(X, y, sweeps, *, inclusion, slab, offset, swaps=3, seed=0, burn=200):
    rng, (n, p) = np.random.default_rng(seed), X.shape
    with np.errstate(divide="ignore"):
        odds = np.log(inclusion) - np.log1p(-inclusion)
    columns, w, chance = np.ascontiguousarray(X.T), np.zeros(p), np.zeros(p)
    out = np.empty((sweeps, p))
    for t in range(-burn, sweeps):
        logistic_sweep(
            rng, w, chance, columns, columns**2, y, np.full(n, offset), slab, odds, swaps
        )
        if t >= 0:
            out[t] = w
    return out


def table(kind):
    rng = np.random.default_rng(3)
    n, p = (6, 8) if kind == "wide" else (25, 8)
    X = rng.normal(size=(n, p))
    X[:, 1] = X[:, 0] + 0.4 * X[:, 1]
    y = (rng.random(n) < 1 / (1 + np.exp(-1.5 * X[:, 0] + X[:, 4]))) * 1.0
    if kind == "separable":
        y = (X[:, 0] > 0) * 1.0
    if kind == "deficient":
        X[:, 3], X[:, 7] = X[:, 2], 0.0
    return X, y


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["tall", "wide", "separable", "deficient"])
def test_subsets_have_their_posterior(kind):
    X, y = table(kind)
    inclusion, slab = np.linspace(0.2, 0.6, 8), np.linspace(1.0, 3.0, 8)
    options = {"inclusion": inclusion, "slab": slab, "offset": 0.3}
    states, exact, errors = logistic_subsets(X, y, **options)
    out = run(X, y, 20_000, **options)
    assert_matches_enumeration((out != 0).astype(int), exact, states=states, errors=errors)


@pytest.mark.statistical
def test_required_and_forbidden_predictors():
    X, y = table("tall")
    inclusion = np.array([0.0, 0.4, 1.0, 0.5, 0.5, 0.2, 0.0, 1.0])
    options = {"inclusion": inclusion, "slab": np.ones(8), "offset": -0.2}
    states, exact, errors = logistic_subsets(X, y, **options)
    out = run(X, y, 5_000, **options)
    assert_matches_enumeration((out != 0).astype(int), exact, states=states, errors=errors)


@pytest.mark.statistical
def test_ignoring_the_offset_is_noticed():
    X, y = table("tall")
    options = {"inclusion": np.linspace(0.2, 0.6, 8), "slab": np.linspace(1.0, 3.0, 8)}
    states, exact, errors = logistic_subsets(X, y, **options, offset=1.5)
    out = run(X, y, 10_000, **options, offset=0.0)
    with pytest.raises(AssertionError, match="worst z"):
        assert_matches_enumeration((out != 0).astype(int), exact, states=states, errors=errors)
