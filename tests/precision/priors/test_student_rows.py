"""Densities and draws of t rows against SciPy."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats

from bayesstruct.distributions import (
    GraphicalStudent,
    IncompleteGraphicalStudent,
    MissingStudentValues,
)

RNG = np.random.default_rng(0)
N, P, NU = 6, 3, 3.3
FACTOR = RNG.normal(size=(P, 5))
K = FACTOR @ FACTOR.T / 5
MEAN, LOCATION, SCALE = (
    np.array([0.2, -0.1, 0.4]),
    np.array([1.0, 2.0, -3.0]),
    np.array([2.0, 0.5, 1.0]),
)
CENTRE, SHAPE = LOCATION + SCALE * MEAN, np.linalg.inv(K) * np.outer(SCALE, SCALE)
X = LOCATION + SCALE * RNG.normal(size=(N, P))
MISSING = np.zeros((N, P), bool)
MISSING[0, 1] = MISSING[2, 0] = MISSING[2, 2] = True
ROWS = (MEAN, K, LOCATION, SCALE, NU)


def test_density_of_complete_rows():
    expected = stats.multivariate_t(CENTRE, SHAPE, NU).logpdf(X)
    np.testing.assert_allclose(pm.logp(GraphicalStudent.dist(*ROWS), X).eval(), expected)


def test_density_of_incomplete_rows_and_of_their_missing_values():
    incomplete = pm.logp(IncompleteGraphicalStudent.dist(*ROWS, missing=MISSING), X).eval()
    expected = stats.multivariate_t(CENTRE, SHAPE, NU).logpdf(X)
    expected[0] = stats.multivariate_t(CENTRE[[0, 2]], SHAPE[::2, ::2], NU).logpdf(X[0, [0, 2]])
    expected[2] = stats.t(NU, CENTRE[1], np.sqrt(SHAPE[1, 1])).logpdf(X[2, 1])
    np.testing.assert_allclose(incomplete, expected)
    missing = MissingStudentValues.dist(*ROWS, table=X, missing=MISSING)
    both = incomplete.sum() + pm.logp(missing, X[MISSING]).eval()
    np.testing.assert_allclose(both, stats.multivariate_t(CENTRE, SHAPE, NU).logpdf(X).sum())


@pytest.mark.statistical
def test_draws_of_rows():
    rows = pm.draw(GraphicalStudent.dist(MEAN, K, LOCATION, SCALE, 8.0, size=50_000), random_seed=1)
    e = (rows - CENTRE) / np.sqrt(np.diag(SHAPE))
    for column in e.T:
        assert stats.kstest(column, stats.t(8).cdf).pvalue > 1e-4
    np.testing.assert_allclose(np.cov(rows.T), SHAPE * 8 / 6, rtol=0.1, atol=0.05)
    quadratic = np.einsum("ij,jk,ik->i", rows - CENTRE, np.linalg.inv(SHAPE), rows - CENTRE)
    assert stats.kstest(quadratic / P, stats.f(P, 8).cdf).pvalue > 1e-4


@pytest.mark.statistical
def test_draws_of_missing_values():
    dist = MissingStudentValues.dist(*ROWS, table=X, missing=MISSING)
    draws = pm.draw(dist, 4_000, random_seed=1)[:, 0]
    # Value (0, 1) given the two others of its row, on a grid of its joint density.
    grid = np.linspace(-40, 40, 8_001)
    row = np.tile(X[0], (len(grid), 1))
    row[:, 1] = grid
    density = stats.multivariate_t(CENTRE, SHAPE, NU).pdf(row)
    cdf = np.cumsum(density) / density.sum()
    assert stats.kstest(np.interp(draws, grid, cdf), "uniform").pvalue > 1e-4
