"""Draws of the weights of single values, and of the degrees of freedom with them, against quadrature."""

import numpy as np
import pytest

from scipy import stats

from bayesstruct.precision.kernels.marginals.value_weights import (
    draw_root,
    draw_value_degrees,
    draw_value_weights,
)

K = np.array([[1.5, -0.8, 0.2], [-0.8, 1.0, 0.0], [0.2, 0.0, 2.0]])


@pytest.mark.statistical
@pytest.mark.parametrize("degrees", [0.4, 3.0, 60.0])
@pytest.mark.parametrize("c", [-8.0, -0.5, 0.0, 0.5, 8.0])
def test_roots_have_their_density(degrees, c):
    rng, a = np.random.default_rng(1), 0.5 * (degrees + 1.3)
    draws = np.array([draw_root(rng, degrees, a, c) for _ in range(4_000)])
    grid = np.linspace(0.0, 1.2 * draws.max(), 20_001)[1:]
    log = degrees * np.log(grid) - a * grid**2 - c * grid
    cdf = np.cumsum(np.exp(log - log.max()))
    assert stats.kstest(np.interp(draws, grid, cdf / cdf[-1]), "uniform").pvalue > 1e-3


def test_a_value_of_zero_and_far_values_have_weights():
    rng = np.random.default_rng(0)
    residuals = np.array([[0.0, 0.0, 0.0], [1e8, -1e8, 1e-8]])
    roots, missing = np.ones((2, 3)), np.zeros((2, 3), bool)
    for degrees in (0.05, 3.0, 1e4):
        draw_value_weights(rng, K, residuals, roots, missing, degrees)
        assert (roots > 0).all()
        assert np.isfinite(roots).all()


def test_missing_values_move_with_their_weights():
    rng = np.random.default_rng(0)
    residuals, roots = rng.normal(size=(4, 3)), rng.gamma(2.0, size=(4, 3))
    missing = rng.random((4, 3)) < 0.4
    before, e = residuals.copy(), residuals * roots
    draw_value_weights(rng, K, residuals, roots, missing, 3.0)
    draw_value_degrees(rng, 3.0, K, residuals, roots, missing, 2.0, 0.1)
    np.testing.assert_allclose((residuals * roots)[missing], e[missing])
    np.testing.assert_array_equal(residuals[~missing], before[~missing])


@pytest.mark.statistical
def test_degrees_of_freedom_with_the_weights_against_quadrature():
    # One column: rows with one value are t, and the density of the degrees of freedom is known.
    rng = np.random.default_rng(3)
    r = rng.standard_t(4.0, size=(30, 1))
    grid = np.linspace(np.log(0.3), np.log(400.0), 3_000)
    log = stats.t.logpdf(r, np.exp(grid)).sum(axis=0) + stats.gamma.logpdf(
        np.exp(grid), 2.0, scale=10.0
    )
    density = np.exp(log + grid - (log + grid).max())
    density /= density.sum()
    mean = density @ grid
    sd = np.sqrt(density @ (grid - mean) ** 2)
    roots, missing, nu, kept = np.ones((30, 1)), np.zeros((30, 1), bool), 4.0, []
    for _ in range(20_000):
        draw_value_weights(rng, np.eye(1), r, roots, missing, nu)
        nu = draw_value_degrees(rng, nu, np.eye(1), r, roots, missing, 2.0, 0.1)
        kept.append(np.log(nu))
    error = sd * np.sqrt(8.0 / len(kept))  # some eight draws count as one
    np.testing.assert_allclose(np.mean(kept), mean, atol=4.0 * error)
    np.testing.assert_allclose(np.std(kept), sd, rtol=0.06)
