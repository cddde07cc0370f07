"""Densities of noise against SciPy, and their derivatives against differences."""

import numpy as np
import pytest

from scipy import stats

from bayesstruct.sem.kernels.errors import (
    BASE,
    LOCATIONS,
    WIDTHS,
    log_density,
    log_shape_prior,
    mixture_moments,
    mixture_weights,
    noise_terms,
    shape_size,
    start_shape,
)
from bayesstruct.sem.kernels.settings import NOISES, sem_settings

E = np.array([-14.0, -2.5, -0.3, 0.02, 0.9, 3.0, 30.0])


def _shape(noise):
    """Shape of a noise that is not the one where fits start."""
    start = start_shape(sem_settings(3, noise=noise))
    return start * np.linspace(0.7, 1.3, len(start))


def _scipy(noise, e, shape):
    if noise == "gaussian":
        return stats.norm.logpdf(e)
    if noise == "laplace":
        return stats.laplace.logpdf(e, scale=np.sqrt(0.5))
    if noise == "student":
        nu = 2.0 + np.exp(shape[0])
        return stats.t.logpdf(e, nu, scale=np.sqrt((nu - 2.0) / nu))
    weights = shape**3 / (shape**3).sum()
    return np.log(stats.norm.pdf(e[:, None], LOCATIONS, WIDTHS) @ weights)


@pytest.mark.parametrize("noise", NOISES)
def test_log_densities_are_those_of_scipy(noise):
    shape = _shape(noise)
    found = [log_density(NOISES.index(noise), np.array([e]), shape) for e in E]
    np.testing.assert_allclose(found, _scipy(noise, E, shape), rtol=1e-9)


@pytest.mark.parametrize("noise", NOISES)
def test_derivatives_are_those_of_differences(noise):
    code, shape = NOISES.index(noise), _shape(noise)
    e = np.array([-1.7, -0.2, 0.4, 2.1])
    size, n, width = shape_size(code), len(e), 0.3
    assert size == len(shape)

    def terms(e, shape):
        out = [
            np.empty(n),
            np.empty(n),
            np.empty((size, n)),
            np.empty(size),
            np.empty((size, size)),
        ]
        return noise_terms(code, e, shape, width, *out), *out

    value, slope, bend, cross, gradient, hessian = terms(e, shape)
    if noise != "laplace":  # absolute values are smoothed
        np.testing.assert_allclose(value, log_density(code, e, shape), rtol=1e-12)
    step = 1e-5
    for r in range(n):
        up, down = e.copy(), e.copy()
        up[r] += step
        down[r] -= step
        high, low = terms(up, shape), terms(down, shape)
        np.testing.assert_allclose(slope[r], (high[0] - low[0]) / (2 * step), atol=1e-6)
        np.testing.assert_allclose(bend[r], (high[1][r] - low[1][r]) / (2 * step), atol=1e-6)
        np.testing.assert_allclose(cross[:, r], (high[4] - low[4]) / (2 * step), atol=1e-5)
    for a in range(size):
        up, down = shape.copy(), shape.copy()
        up[a] += step
        down[a] -= step
        high, low = terms(e, up), terms(e, down)
        np.testing.assert_allclose(gradient[a], (high[0] - low[0]) / (2 * step), atol=1e-5)
        np.testing.assert_allclose(hessian[a], (high[4] - low[4]) / (2 * step), atol=1e-4)


def test_priors_of_shapes_are_gamma_and_dirichlet():
    settings = sem_settings(3, noise="student")
    u = np.array([0.7])
    expected = stats.gamma.logpdf(np.exp(u[0]), 2.0, scale=10.0) + u[0]
    assert log_shape_prior(settings, u) == pytest.approx(expected)
    settings = sem_settings(3, noise="mixture")
    y = _shape("mixture")
    cubes = stats.gamma.logpdf(y**3, settings.concentration * BASE) + np.log(3.0 * y**2)
    assert log_shape_prior(settings, y) == pytest.approx(cubes.sum())
    assert log_shape_prior(settings, -y) == -np.inf
    assert BASE.sum() == pytest.approx(1.0)


def test_moments_of_a_mixture():
    y = _shape("mixture")
    weights = mixture_weights(y)
    mean, log_sd, by_mean, by_log_sd = mixture_moments(y)
    assert mean == pytest.approx(weights @ LOCATIONS)
    square = weights @ (LOCATIONS**2 + WIDTHS**2)
    assert log_sd == pytest.approx(0.5 * np.log(square - mean**2))
    for k in range(len(y)):
        other = y.copy()
        other[k] += 1e-6
        moved = mixture_moments(other)
        assert (moved[0] - mean) / 1e-6 == pytest.approx(by_mean[k], abs=1e-5)
        assert (moved[1] - log_sd) / 1e-6 == pytest.approx(by_log_sd[k], abs=1e-5)


def test_densities_of_mixtures_are_sums_far_away_and_near():
    """Loops over rows clamp what is far away, and take logarithms of products: values far apart in one array."""
    e = np.r_[np.linspace(-60.0, 60.0, 481), np.zeros(2_000), np.full(2_000, 8.0)]
    shape = np.random.default_rng(0).gamma(1.0, size=len(BASE))
    shape[-1] = 0.05
    density = (mixture_weights(shape) * stats.norm.pdf(e[:, None], LOCATIONS, WIDTHS)).sum(1)
    near = density > 1e-250
    assert near.sum() > len(e) - 100
    found = log_density(NOISES.index("mixture"), e[near], shape)
    np.testing.assert_allclose(found, np.log(density[near]).sum(), rtol=1e-12)


@pytest.mark.parametrize("e", [-60.0, 69.5, 80.0, -1e4])
def test_wild_residuals_have_the_density_and_the_slope_of_the_wide_component(e):
    """Also where the density is too small for a number."""
    code, shape = NOISES.index("mixture"), _shape("mixture")
    out = np.empty(1), np.empty(1), np.empty((6, 1)), np.empty(6), np.empty((6, 6))
    value = noise_terms(code, np.array([e]), shape, 0.3, *out)
    expected = stats.norm.logpdf(e, scale=WIDTHS[-1]) + np.log(mixture_weights(shape)[-1])
    assert value == pytest.approx(expected, rel=1e-12)
    assert log_density(code, np.array([e]), shape) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(out[0], -e / WIDTHS[-1] ** 2, rtol=1e-12)
    np.testing.assert_allclose(out[1], -1.0 / WIDTHS[-1] ** 2, rtol=1e-6)
    np.testing.assert_allclose(out[2], 0.0, atol=1e-9)
