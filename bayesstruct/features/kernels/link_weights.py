"""Draws of the weights of features of pairs, one at a time.

See :mod:`bayesstruct.features.kernels.link_features` for the model. Under the normal likelihood a weight is normal
given all others. Otherwise, and where weights are positive, it is drawn by a univariate slice sampler that
steps out and shrinks.

References
----------
Neal, R. M. (2003). Slice sampling. *Annals of Statistics* 31, 705-767, section 4.
"""

import math

import numpy as np

from bayesstruct.core.jit import numpy_inner, numpy_kernel
from bayesstruct.features.kernels.link_features import Slab, draw_slab
from bayesstruct.features.kernels.link_likelihoods import Likelihood, ObservedPairs, log_density

__all__ = ["draw_shift", "draw_weights"]

_WIDTH = 2.5  # of the first interval, in standard deviations of a normal approximation


@numpy_inner
def _members(z, other, observed, a, b, mirrored, index, times):
    """Find the pairs to whose predictor a weight is added, and how many times."""
    count = 0
    for d in range(observed.y.shape[0]):
        i, j = observed.source[d], observed.target[d]
        x = z[i, a] * other[j, b]
        if mirrored:
            x += z[i, b] * other[j, a]
        if x:
            index[count] = d
            times[count] = x
            count += 1
    return count


@numpy_inner
def _gain(value, slab, likelihood, observed, index, times, count, shift):
    """Log of the conditional density of a weight, up to a constant; ``shift`` is its change."""
    if slab.positive and value < 0.0:
        return -np.inf
    total = -0.5 * (value / slab.scale) ** 2
    for c in range(count):
        d = index[c]
        total += log_density(likelihood, observed.y[d], observed.eta[d] + shift * times[c])
    return total


@numpy_inner
def _slice(rng, old, slab, likelihood, observed, index, times, count):
    """Draw a weight by slice sampling."""
    squares = 0.0
    for c in range(count):
        squares += times[c] * times[c]
    information = squares / (likelihood.noise * likelihood.noise if likelihood.code == 3 else 4.0)
    width = _WIDTH / math.sqrt(1.0 / (slab.scale * slab.scale) + information)
    level = (
        _gain(old, slab, likelihood, observed, index, times, count, 0.0)
        - rng.standard_exponential()
    )
    low = old - width * rng.random()
    high = low + width
    while _gain(low, slab, likelihood, observed, index, times, count, low - old) > level:
        low -= width
    while _gain(high, slab, likelihood, observed, index, times, count, high - old) > level:
        high += width
    if slab.positive:
        low = max(low, 0.0)
    while True:
        value = low + (high - low) * rng.random()
        if _gain(value, slab, likelihood, observed, index, times, count, value - old) > level:
            return value
        if value == old:  # rounding has closed the interval
            return old
        if value < old:
            low = value
        else:
            high = value


@numpy_inner
def _normal(rng, old, slab, likelihood, observed, index, times, count):
    """Draw a weight from its normal distribution given all else."""
    scale = 1.0 / (likelihood.noise * likelihood.noise)
    precision, cross = 1.0 / (slab.scale * slab.scale), 0.0
    for c in range(count):
        d = index[c]
        precision += scale * times[c] * times[c]
        cross += scale * times[c] * (observed.y[d] - observed.eta[d] + old * times[c])
    return cross / precision + rng.standard_normal() / math.sqrt(precision)


@numpy_kernel
def draw_weights(
    rng: np.random.Generator,
    z: np.ndarray,
    other: np.ndarray,
    weights: np.ndarray,
    observed: ObservedPairs,
    likelihood: Likelihood,
    slab: Slab,
) -> None:
    """Draw all weights in turn, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    z : (n, K) int8
    other : (m, L) int8
        `z` itself where there is one set.
    weights : (K, L) float64, changed
        Zero for features that no object has, and off the diagonal if they are of that kind.
    observed : ObservedPairs
        Its ``eta`` and ``density`` are changed.
    likelihood : Likelihood
    slab : Slab
    """
    used, paired = np.zeros(z.shape[1], np.bool_), np.zeros(other.shape[1], np.bool_)
    for a in range(z.shape[1]):
        used[a] = z[:, a].any()
    for b in range(other.shape[1]):
        paired[b] = other[:, b].any()
    size = observed.y.shape[0]
    index, times = np.zeros(size, np.int64), np.zeros(size)
    for a in range(z.shape[1]):
        for b in range(other.shape[1]):
            absent = not (used[a] and paired[b])
            if absent or (slab.kind == 1 and b > a) or (slab.kind == 2 and b != a):
                continue
            mirrored = slab.kind == 1 and a != b
            count = _members(z, other, observed, a, b, mirrored, index, times)
            old = weights[a, b]
            if count == 0:
                value = draw_slab(rng, slab)
            elif likelihood.code == 3 and not slab.positive:
                value = _normal(rng, old, slab, likelihood, observed, index, times, count)
            else:
                value = _slice(rng, old, slab, likelihood, observed, index, times, count)
            weights[a, b] = value
            if slab.kind == 1:
                weights[b, a] = value
            for c in range(count):
                d = index[c]
                observed.eta[d] += (value - old) * times[c]
                observed.density[d] = log_density(likelihood, observed.y[d], observed.eta[d])


@numpy_kernel
def draw_shift(
    rng: np.random.Generator,
    shift: float,
    observed: ObservedPairs,
    likelihood: Likelihood,
    scale: float,
) -> float:
    """Draw a number that is added to all linear predictors, normal a priori.

    Parameters
    ----------
    rng : numpy.random.Generator
    shift : float
        Its value now, which ``observed.eta`` has in it.
    observed : ObservedPairs
        Its ``eta`` and ``density`` are changed.
    likelihood : Likelihood
    scale : float

    Returns
    -------
    float
    """
    size = observed.y.shape[0]
    index, times = np.arange(size), np.ones(size)
    value = _slice(rng, shift, Slab(scale, False, 0), likelihood, observed, index, times, size)
    for d in range(size):
        observed.eta[d] += value - shift
        observed.density[d] = log_density(likelihood, observed.y[d], observed.eta[d])
    return value
