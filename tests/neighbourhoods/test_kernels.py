"""Draws of coefficients that are all required, against their normal distribution."""

import numpy as np
import pytest

from bayesstruct.sparse.kernels.required import required_draw, required_sweep


@pytest.mark.parametrize("slab", [[1.0, 0.3, 2.0], [1e-20, 0.5, 1e6]])
def test_distribution_of_required_coefficients(slab):
    rng = np.random.default_rng(0)
    X, slab = rng.normal(size=(10, 3)), np.array(slab)
    X[:, 1] += X[:, 0]
    y, variance = rng.normal(size=10), 0.7
    draws = np.empty((20_000, 3))
    for draw in draws:
        required_draw(rng, draw, X.T @ X, X.T @ y, variance, slab)
    covariance = np.linalg.inv(X.T @ X / variance + np.diag(1 / slab))
    mean = covariance @ X.T @ y / variance
    sd = np.sqrt(np.diag(covariance))
    z = (draws - mean) / sd
    np.testing.assert_allclose(z.mean(0), 0.0, atol=4.5 / np.sqrt(20_000))
    correlation = covariance / np.outer(sd, sd)
    # Standard error of an element below sqrt(2 / 20,000) = 0.01.
    np.testing.assert_allclose(z.T @ z / len(z), correlation, atol=0.045)


def test_forbidden_coefficients_are_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 3))
    w, inclusion = np.ones(3), np.zeros(3)
    odds = np.array([np.inf, -np.inf, np.inf])
    required_sweep(rng, w, inclusion, X.T @ X, X.T @ X[:, 1], 1.0, np.ones(3), odds)
    assert w[1] == 0
    assert (w[[0, 2]] != 0).all()
    np.testing.assert_array_equal(inclusion, [1, 0, 1])
