r"""Missing values of linear structural equations, drawn given graph and parameters.

Each noise is normal given something latent,

.. math:: e_{ri} \mid m_{ri}, w_{ri} \sim N(m_{ri}, w_{ri}),

an exponential or an inverse gamma variance w for Laplace and t noise (Andrews and Mallows 1974), the component for a mixture. Given these, the
missing values of a row are jointly normal: with :math:`D = I - B` and the weights
:math:`v_{ri} = 1 / (s_i^2 w_{ri})` of the columns that were not set, 0 of the others, their precision is a block of
:math:`D' \mathrm{diag}(v_r) D`.

References
----------
Andrews, D. F. and Mallows, C. L. (1974). Scale mixtures of normal distributions. *JRSS B* 36, 99-102.
"""

import numpy as np

from scipy.special import gammaln, logsumexp

from bayesstruct.sem.kernels.errors import ALL_LOCATIONS, ALL_WIDTHS
from bayesstruct.sem.kernels.settings import LAPLACE, MIXTURE, STUDENT

__all__ = [
    "draw_latent",
    "draw_missing_cells",
    "log_noise",
    "noise_of_rows",
    "normal_cells",
]

_LEAST = 1e-10  # absolute noise below which it counts as this


def draw_latent(rng, noise, e, shape):
    """Draw means and variances given which noise is normal.

    Parameters
    ----------
    rng : numpy.random.Generator
    noise : int
        Code, see :mod:`bayesstruct.sem.kernels.settings`.
    e : (n, d) array
        Noise in units of its scale.
    shape : (d, k) or (n, d, k) array
        Degrees of freedom, or weights of the components of a mixture; where noise may be exactly normal, those of all
        components and of a standard normal one.

    Returns
    -------
    mean, variance : (n, d) arrays
    """
    mean, variance = np.zeros_like(e), np.ones_like(e)
    if noise == LAPLACE:
        variance = 1.0 / rng.wald(np.sqrt(2.0) / np.maximum(np.abs(e), _LEAST), 2.0)
    elif noise == STUDENT:
        nu = shape[..., 0]
        rate = 0.5 * (nu + e**2 * nu / (nu - 2.0))
        variance = (nu - 2.0) / (nu * rng.gamma(0.5 * (nu + 1.0), 1.0 / rate))
    elif noise == MIXTURE:
        at, wide = _components(shape)
        with np.errstate(divide="ignore"):
            logs = np.log(shape) - 0.5 * ((e[:, :, None] - at) / wide) ** 2 - np.log(wide)
        weights = np.exp(logs - logs.max(axis=2, keepdims=True)).cumsum(axis=2)
        u = rng.random(e.shape)[:, :, None] * weights[:, :, -1:]
        k = (u > weights).sum(axis=2)
        mean, variance = at[k], wide[k] ** 2
    return mean, variance


def _components(shape):
    """Means and standard deviations of the components that have weights."""
    size = shape.shape[-1]
    return ALL_LOCATIONS[:size], ALL_WIDTHS[:size]


def log_noise(noise, e, shape):
    """Log density of each noise, an array like `e`; arguments as of `draw_latent`."""
    if noise == LAPLACE:
        return -np.sqrt(2.0) * np.abs(e) - 0.5 * np.log(2.0)
    if noise == STUDENT:
        nu = shape[..., 0]
        constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log((nu - 2.0) * np.pi)
        return constant - 0.5 * (nu + 1.0) * np.log1p(e**2 / (nu - 2.0))
    if noise == MIXTURE:
        at, wide = _components(shape)
        with np.errstate(divide="ignore"):
            logs = np.log(shape) - 0.5 * ((e[..., None] - at) / wide) ** 2 - np.log(wide)
        return logsumexp(logs, axis=-1) - 0.5 * np.log(2.0 * np.pi)
    return -0.5 * (e**2 + np.log(2.0 * np.pi))


def normal_cells(mean, variance, intercept, coefficients, scales, free, z, missing):
    """Distribution of the missing values of each row if the noise is normal.

    Parameters
    ----------
    mean, variance : (n, d) arrays
        Of the noise in units of its scale.
    intercept, scales : (d,) or (n, d) arrays
    coefficients : (d, d) or (n, d, d) array
        Rows are children.
    free, missing : (n, d) arrays of bool
        Values that were not set, and missing ones; none of these was set.
    z : (n, d) array
        Rows; missing values are not used.

    Returns
    -------
    centre : (n, d) array
        Means of the missing values; zero elsewhere.
    block : (n, d, d) array
        Precision of the missing values, the identity elsewhere.
    """
    away = np.eye(z.shape[1]) - coefficients
    weight = free / (scales**2 * variance)
    turned = np.swapaxes(away, -1, -2)
    precision = (turned * weight[:, None, :]) @ away
    linear = (turned @ (weight * (intercept + scales * mean))[:, :, None])[:, :, 0]
    known = np.where(missing, 0.0, z)
    push = np.where(missing, linear - (precision @ known[:, :, None])[:, :, 0], 0.0)
    both = missing[:, :, None] & missing[:, None, :]
    block = np.where(both, precision, np.eye(z.shape[1]))
    return np.linalg.solve(block, push[:, :, None])[:, :, 0], block


def noise_of_rows(intercept, coefficients, scales, z):
    """Noise in units of its scale, (n, d); arguments as of `normal_cells`."""
    away = np.eye(z.shape[-1]) - coefficients
    return ((away @ z[..., None])[..., 0] - intercept) / scales


def draw_missing_cells(rng, noise, intercept, coefficients, scales, shape, free, z, missing):
    """Draw the missing values of each row given all else, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    noise : int
    intercept, coefficients, scales, free, z, missing
        As of `normal_cells`; `z` has the last draw in the places of missing values, and is changed.
    shape : (d, k) or (n, d, k) array
    """
    params = intercept, coefficients, scales
    latent = draw_latent(rng, noise, noise_of_rows(*params, z), shape)
    centre, block = normal_cells(*latent, *params, free, z, missing)
    factor = np.swapaxes(np.linalg.cholesky(block), 1, 2)
    spread = np.linalg.solve(factor, rng.standard_normal(z.shape)[:, :, None])[:, :, 0]
    z[missing] = (centre + spread)[missing]
