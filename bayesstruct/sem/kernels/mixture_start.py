"""Where the search for the mode of a mixture of normals begins: several modes are common, and Newton's method finds the nearest one."""

import math

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import inner, vector_inner
from bayesstruct.sem.kernels.errors import BASE, LOCATIONS, WIDTHS
from bayesstruct.sem.kernels.factors import dot
from bayesstruct.sem.kernels.settings import SemSettings

__all__ = ["begin_mixture"]

_BINS, _REACH = 64, 4.0  # of a histogram of residuals, up to so many standard deviations
_SCALES = np.array([0.4, 0.55, 0.75, 1.0, 1.3])  # in standard deviations of the residuals
_SHIFTS = np.array([-1.4, -0.7, 0.0, 0.7, 1.4])  # in units of the scale
_UPDATES = 5
_NEAR_SCALE, _NEAR_SHIFT = 0.22, 0.5
_K = len(BASE)


def _densities():
    """Densities of the components at the bins, for each scale and shift: (scales, shifts, K, bins)."""
    x = 2.0 * _REACH * (np.arange(_BINS) + 0.5) / _BINS - _REACH
    e = x / _SCALES[:, None, None, None] - _SHIFTS[:, None, None]
    z = (e - LOCATIONS[:, None]) / WIDTHS[:, None]
    return np.exp(-0.5 * z * z) / (WIDTHS[:, None] * _SCALES[:, None, None, None])


_DENSITIES = _densities()


@inner
def begin_mixture(settings: SemSettings, e, theta, p):
    """Write intercept, log scale and weights of a mixture that fit a histogram of residuals best.

    Scales and shifts are tried on a grid, each with some updates of the weights (the EM algorithm, with their prior).

    Parameters
    ----------
    settings : SemSettings
    e : (n,) float array
        Residuals, not scaled.
    theta : (p + 1 + K,) float array
        Its intercept is that of the residuals; changed in place.
    p : int
        Place of the log scale.

    Returns
    -------
    bool
        Whether another mode than that near `theta` is likely: the best point of the grid is not one next to it.
    """
    n = len(e)
    mean, square = 0.0, 0.0
    for r in range(n):
        mean += e[r] / n
    for r in range(n):
        square += (e[r] - mean) ** 2 / n
    sd = math.sqrt(square)
    if not sd > 1e-12:
        return False
    at, old = 0.0, theta[p]
    counts = _histogram(e, mean, sd)
    weights, mixed, best = np.empty(_K), np.empty(_BINS), -np.inf
    for c in range(len(_SCALES)):
        for m in range(len(_SHIFTS)):
            value = _climb(settings, counts, _DENSITIES[c, m], weights, mixed)
            if value > best:
                best = value
                theta[p] = math.log(_SCALES[c] * sd)
                at = mean + _SHIFTS[m] * _SCALES[c] * sd
                for k in range(_K):
                    theta[p + 1 + k] = (settings.concentration * weights[k]) ** (1.0 / 3.0)
    theta[0] += at
    return abs(theta[p] - old) > _NEAR_SCALE or abs(at) > _NEAR_SHIFT * math.exp(old)


@vector_inner
def _histogram(e, mean, sd):
    counts = np.zeros(_BINS)
    for r in range(len(e)):
        b = math.floor(0.5 * _BINS * ((e[r] - mean) / (sd * _REACH) + 1.0))
        counts[min(max(b, 0), _BINS - 1)] += 1.0
    return counts


@vector_inner
def _climb(settings, counts, density, weights, mixed):
    """Update the weights; return the log posterior density then."""
    fresh = np.empty(_K)
    copy_vector(weights, BASE)
    for _ in range(_UPDATES):
        total = 0.0
        _mix(density, weights, mixed)
        for b in range(_BINS):
            mixed[b] = counts[b] / mixed[b]
        for k in range(_K):
            fresh[k] = settings.concentration * BASE[k] - 1.0 / 3.0
            fresh[k] += weights[k] * dot(mixed, density[k])
        for k in range(_K):
            total += max(fresh[k], 1e-3)
        for k in range(_K):
            weights[k] = max(fresh[k], 1e-3) / total
    value = 0.0
    for k in range(_K):
        value += (settings.concentration * BASE[k] - 1.0 / 3.0) * math.log(weights[k])
    _mix(density, weights, mixed)
    for b in range(_BINS):
        if counts[b] > 0.0:
            value += counts[b] * math.log(mixed[b])
    return value


@vector_inner
def _mix(density, weights, out):
    """Write the densities of a mixture at the bins."""
    for b in range(_BINS):
        out[b] = 1e-300
    for k in range(_K):
        for b in range(_BINS):
            out[b] += weights[k] * density[k, b]
