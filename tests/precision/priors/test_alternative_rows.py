"""Densities and draws of alternative t rows against SciPy and quadrature."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats
from scipy.integrate import dblquad

from bayesstruct.distributions import AlternativeStudent, MissingWeightedValues, ValueWeights

RNG = np.random.default_rng(0)
N, P, NU = 6, 3, 3.3
FACTOR = RNG.normal(size=(P, 5))
K = FACTOR @ FACTOR.T / 5
MEAN, LOCATION, SCALE = (
    np.array([0.2, -0.1, 0.4]),
    np.array([1.0, 2.0, -3.0]),
    np.array([2.0, 0.5, 1.0]),
)
X = LOCATION + SCALE * RNG.normal(size=(N, P))
W = RNG.gamma(2.0, size=(N, P))
MISSING = np.zeros((N, P), bool)
MISSING[0, 1] = MISSING[2, 0] = MISSING[2, 2] = True
ROWS = (MEAN, K, LOCATION, SCALE)


def normal_rows(w, kept):
    """Log density of the observed values of each row given the weights."""
    out = np.zeros(N)
    for i, (x, own, seen) in enumerate(zip(X, w, kept, strict=True)):
        spread = SCALE / np.sqrt(own)
        covariance = (np.linalg.inv(K) * np.outer(spread, spread))[np.ix_(seen, seen)]
        centre = (LOCATION + SCALE * MEAN)[seen]
        out[i] = stats.multivariate_normal(centre, covariance).logpdf(x[seen])
    return out


@pytest.mark.parametrize("missing", [None, MISSING])
def test_density_of_weights_and_observed_values(missing):
    kept = np.ones((N, P), bool) if missing is None else ~missing
    prior = stats.gamma(NU / 2, scale=2 / NU).logpdf(W).sum()
    found = pm.logp(ValueWeights.dist(*ROWS, NU, table=X, missing=missing), W).eval()
    np.testing.assert_allclose(found, prior + normal_rows(W, kept).sum())


def test_density_of_missing_values():
    dist = MissingWeightedValues.dist(*ROWS, W, table=X, missing=MISSING)
    expected = normal_rows(W, np.ones((N, P), bool)) - normal_rows(W, ~MISSING)
    np.testing.assert_allclose(pm.logp(dist, X[MISSING]).eval(), expected.sum())


def test_weights_that_are_not_positive_have_no_density():
    dist = ValueWeights.dist(*ROWS, NU, table=X)
    assert pm.logp(dist, np.where(W > 1, W, -W)).eval() == -np.inf


@pytest.mark.statistical
def test_draws_of_rows():
    rows = pm.draw(AlternativeStudent.dist(*ROWS, 8.0, size=50_000), random_seed=1)
    covariance = np.linalg.inv(K)
    e = (rows - LOCATION - SCALE * MEAN) / (SCALE * np.sqrt(np.diag(covariance)))
    for column in e.T:
        assert stats.kstest(column, stats.t(8).cdf).pvalue > 1e-4
    # Far values of one row are far in one column: squares of independent weights are all but uncorrelated.
    a, b = np.log(abs(e[:, 0])), np.log(abs(e[:, 1]))
    normal = RNG.multivariate_normal(np.zeros(2), covariance[:2, :2], size=50_000)
    expected = np.cov(*np.log(abs(normal / normal.std(axis=0))).T)[0, 1]
    np.testing.assert_allclose(np.cov(a, b)[0, 1], expected, atol=0.05)


@pytest.mark.statistical
def test_draws_of_missing_values():
    dist = MissingWeightedValues.dist(*ROWS, W, table=X, missing=MISSING)
    draws = pm.draw(dist, 4_000, random_seed=1)
    kept = np.array([True, False, True])
    spread = SCALE / np.sqrt(W[0])
    covariance = np.linalg.inv(K) * np.outer(spread, spread)
    slope = covariance[1, kept] @ np.linalg.inv(covariance[np.ix_(kept, kept)])
    centre = (LOCATION + SCALE * MEAN)[1] + slope @ (X[0] - LOCATION - SCALE * MEAN)[kept]
    sd = np.sqrt(covariance[1, 1] - slope @ covariance[kept, 1])
    assert stats.kstest(draws[:, 0], stats.norm(centre, sd).cdf).pvalue > 1e-4


@pytest.mark.statistical
def test_the_integral_over_weights_is_the_density_of_draws():
    matrix = np.array([[1.5, -0.8], [-0.8, 1.0]])
    prior = stats.gamma(4.0, scale=1 / 4.0)

    def density(x):
        def inside(a, b):
            spread = 1.0 / np.sqrt([a, b])
            covariance = np.linalg.inv(matrix) * np.outer(spread, spread)
            normal = stats.multivariate_normal(np.zeros(2), covariance).pdf(x)
            return normal * prior.pdf(a) * prior.pdf(b)

        return dblquad(inside, 0, 6, 0, 6, epsabs=1e-4)[0]

    rows = pm.draw(
        AlternativeStudent.dist(np.zeros(2), matrix, degrees=8.0, size=200_000), random_seed=1
    )
    for x in ((0.0, 0.0), (0.6, 1.0)):
        near = (abs(rows - x) < 0.15).all(axis=1).mean() / 0.3**2
        np.testing.assert_allclose(near, density(x), rtol=0.06)
