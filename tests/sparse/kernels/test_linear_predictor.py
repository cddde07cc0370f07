"""Likelihoods of a linear predictor, their slopes, and moves under them, against SciPy."""

import numpy as np
import pytest

from scipy import stats

from bayesstruct.sparse.kernels import linear_predictor as kernel

ETAS = np.array([-30.0, -3.0, 0.2, 2.5, 9.0])
CASES = {
    "poisson": (kernel.POISSON, (3.0, 0.0, 0.0), lambda e: stats.poisson.logpmf(3, np.exp(e))),
    "negative binomial": (
        kernel.NEGATIVE_BINOMIAL,
        (3.0, 1.5, 0.0),
        lambda e: stats.nbinom.logpmf(3, 1.5, 1.5 / (1.5 + np.exp(e))),
    ),
    "ordered logistic": (
        kernel.ORDERED_LOGISTIC,
        (-1.0, 0.5, 0.0),
        lambda e: np.log(np.diff(stats.logistic.cdf([-1.0 - e, 0.5 - e]))[0]),
    ),
    "highest state": (
        kernel.ORDERED_LOGISTIC,
        (0.5, np.inf, 0.0),
        lambda e: stats.logistic.logsf(0.5 - e),
    ),
    "ordered probit": (
        kernel.ORDERED_PROBIT,
        (-1.0, 0.5, 1.7),
        # differences of normal probabilities in the tail that is small
        lambda e: np.log(abs(np.diff(stats.norm.cdf(np.array([-1.0 - e, 0.5 - e]) / 1.7))[0])),
    ),
    "lowest state": (
        kernel.ORDERED_PROBIT,
        (-np.inf, 0.5, 1.7),
        lambda e: stats.norm.logcdf((0.5 - e) / 1.7),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_likelihoods_differ_as_those_of_scipy(case):
    family, values, right = CASES[case]
    etas = ETAS[1:-1]
    found = np.array([kernel.log_likelihood(family, eta, *values) for eta in etas])
    expected = np.array([right(eta) for eta in etas])
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_slopes_are_derivatives(case):
    family, values, _ = CASES[case]
    h = 1e-5
    for eta in ETAS:
        slope, curvature = kernel.slopes(family, eta, *values)
        high, low = (kernel.log_likelihood(family, eta + d, *values) for d in (h, -h))
        np.testing.assert_allclose(slope, (high - low) / (2 * h), rtol=1e-5, atol=1e-6)
        up, down = (kernel.slopes(family, eta + d, *values)[0] for d in (h, -h))
        np.testing.assert_allclose(curvature, (down - up) / (2 * h), rtol=1e-4, atol=1e-6)


def test_intervals_far_in_a_tail_have_a_logarithm():
    # Mills' ratio: log P(x > 40) is close to -800 - log(40) - log(2 pi) / 2
    value = kernel.log_likelihood(kernel.ORDERED_PROBIT, 0.0, 40.0, 41.0, 1.0)
    np.testing.assert_allclose(value, stats.norm.logsf(40), rtol=1e-6)
    mirrored = kernel.log_likelihood(kernel.ORDERED_PROBIT, 0.0, -41.0, -40.0, 1.0)
    np.testing.assert_allclose(value, mirrored, rtol=1e-12)


def test_a_mean_that_overflows_is_left_again():
    """A start from which all numbers are infinite would never be left."""
    n = 20
    values = np.zeros((3, n))
    values[0] = 2.0
    w, inclusion, columns = np.array([900.0]), np.zeros(1), np.ones((1, n))
    rng = np.random.default_rng(0)
    for _ in range(5):
        kernel.predictor_sweep(
            rng,
            w,
            inclusion,
            kernel.POISSON,
            columns,
            w @ columns,
            values,
            np.ones(1),
            np.zeros(1),
            np.arange(1),
            np.arange(2),
            0,
        )
    assert abs(w[0] - np.log(2)) < 1.0
