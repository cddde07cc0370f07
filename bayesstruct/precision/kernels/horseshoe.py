r"""Gibbs sweeps over a precision matrix under the graphical horseshoe, and draws of its global scale.

The notation is that of :mod:`bayesstruct.precision.kernels.gibbs`. An off-diagonal element has the prior

.. math:: u \mid \nu \sim N(0, \tau^2 / \nu), \qquad p(\nu) \propto \nu^{-1/2} / (1 + \nu),

with :math:`\nu = 1 / \lambda^2` of a half-Cauchy :math:`\lambda`. Given all else its likelihood is
:math:`\exp(b u - h u^2 / 2)`. With ``u`` integrated out and :math:`t^2 = h / (h + \nu / \tau^2)`, the share of the likelihood
in the precision of ``u``, the density of :math:`t` on (0, 1) is

.. math:: f(t) \propto \frac{e^{c t^2}}{r + (1 - r) t^2}, \qquad r = h \tau^2, \quad c = b^2 / (2 h),

which is drawn by rejection, and then ``u`` given ``t`` is normal with mean :math:`t^2 b / h` and variance
:math:`t^2 / h`. The local scale is thus summed out of every update, and no chain has to remember one.
"""

import math

from bayesstruct.core.jit import inlined, inner, kernel
from bayesstruct.core.special import log_scaled_exp_integral
from bayesstruct.precision.kernels.gibbs import (
    close_column,
    draw_schur,
    open_column,
    shift_column,
)

__all__ = [
    "draw_global_scale",
    "horseshoe_log_density",
    "horseshoe_normal",
    "horseshoe_sweep",
]


@inner
def _share_of_weak_prior(rng, r, c):
    """Draw t where the prior is the narrower one, r < 1.

    Below ``t1 = min(1, c^-1/2)`` the exponential of ``c t^2`` is at most ``1 + grown t^2 / t1^2``, and the logarithm of f is
    convex above it.
    """
    width = math.sqrt(r / (1.0 - r))
    t1 = 1.0 if c <= 1.0 else 1.0 / math.sqrt(c)
    grown = math.expm1(c * t1 * t1)
    height = 1.0 / (r + (1.0 - r) * t1 * t1)
    angle = math.atan(t1 / width)
    down = math.exp(-c)  # everything is in units of exp(c)
    core = angle / math.sqrt(r * (1.0 - r)) * down
    flat = grown * height * t1 * down
    slope = tail = 0.0
    if t1 < 1.0:
        slope = (c - 1.0 - math.log(height)) / (1.0 - t1)
        tail = -math.expm1(-slope * (1.0 - t1)) / slope if slope > 0.0 else 1.0 - t1
    total = core + flat + tail
    while True:
        place = rng.random() * total
        if place < core + flat:
            t = width * math.tan(rng.random() * angle) if place < core else t1 * rng.random()
            t = min(t, t1)
            q = 1.0 / (r + (1.0 - r) * t * t)
            if rng.random() * (q + grown * height) < math.exp(c * t * t) * q:
                return t
        else:
            y = (
                -math.log1p(-rng.random() * slope * tail) / slope
                if slope > 0.0
                else rng.random() * (1.0 - t1)
            )
            t = 1.0 - y
            if rng.random() * (r + (1.0 - r) * t * t) < math.exp(c * (t * t - 1.0) + slope * y):
                return t


@inner
def _share_of_strong_prior(rng, r, c):
    """Draw t where the likelihood is the narrower one, r > 1: log f is convex and increases."""
    slope = c + math.log(r)
    chord = -math.expm1(-slope) / slope
    end = math.asinh(math.sqrt(r - 1.0))
    root = math.sqrt(r * (r - 1.0))
    if chord < end / root:
        while True:
            y = -math.log1p(-rng.random() * slope * chord) / slope
            t = 1.0 - y
            if rng.random() * (r - (r - 1.0) * t * t) < math.exp(c * (t * t - 1.0) + slope * y):
                return t
    while True:
        t = r / root * math.tanh(rng.random() * end)
        if rng.random() < math.exp(c * (t * t - 1.0)):
            return min(t, 1.0)


@inner
def horseshoe_normal(rng, b, h, scale):
    """Draw u from ``exp(b u - h u^2 / 2)`` times the horseshoe density of this scale."""
    r, c = max(h * scale * scale, 1e-290), 0.5 * b * b / h
    if r == 1.0:
        r = 1.0 - 2.0**-53
    t = _share_of_weak_prior(rng, r, c) if r < 1.0 else _share_of_strong_prior(rng, r, c)
    return t * (t * b / h + rng.standard_normal() / math.sqrt(h))


@kernel
def horseshoe_sweep(rng, precision, covariance, scatter, n, scales, diagonal_rate, work):
    """Update every column of K under the graphical horseshoe, once.

    Parameters are those of :func:`bayesstruct.precision.kernels.gibbs.spike_slab_sweep`; ``scales`` is the (p, p) matrix of
    the global scale of each off-diagonal element.
    """
    p = precision.shape[0]
    column, product = work[0], work[1]
    for j in range(p):
        pivot = open_column(covariance, j, column, product)
        a = scatter[j, j] + 2.0 * diagonal_rate
        for i in range(p):
            if i == j:
                continue
            ratio = column[i] / pivot
            h = a * (covariance[i, i] - ratio * column[i])
            old = precision[j, i]
            b = h * old - a * product[i] - scatter[j, i]
            new = horseshoe_normal(rng, b, h, scales[j, i])
            shift_column(covariance, column, product, i, new - old, ratio)
            precision[j, i] = new
            precision[i, j] = new
        v = draw_schur(rng, n, a)
        close_column(precision, covariance, j, v, column, product, pivot)


@kernel
def horseshoe_log_density(precision, log_scale):
    """Log density of the off-diagonal elements under the horseshoe of this scale, up to a constant."""
    p = precision.shape[0]
    total = 0.0
    factor = 0.5 * math.exp(-2.0 * log_scale)
    for i in range(p):
        for j in range(i):
            z = factor * precision[i, j] * precision[i, j]
            total += log_scaled_exp_integral(max(z, 1e-300))
    return total - 0.5 * p * (p - 1) * log_scale


@inlined
def _log_half_cauchy(log_scale, width):
    """Log density of the logarithm of a half-Cauchy variable, up to a constant."""
    ratio = math.exp(log_scale) / width
    return log_scale - math.log1p(ratio * ratio)


@kernel
def draw_global_scale(rng, precision, scale, width):
    """Move the global scale given the matrix by one slice of its logarithm (Neal 2003), the local scales summed out.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision : (p, p) float64
    scale : float
        Global scale now.
    width : float
        Scale of its half-Cauchy prior.
    """
    x = math.log(scale)
    level = horseshoe_log_density(precision, x) + _log_half_cauchy(x, width)
    level -= rng.standard_exponential()
    step = 4.0 / precision.shape[0]  # some standard deviations of a draw given all elements
    low = x - step * rng.random()
    high = low + step
    while horseshoe_log_density(precision, low) + _log_half_cauchy(low, width) > level:
        low -= step
    while horseshoe_log_density(precision, high) + _log_half_cauchy(high, width) > level:
        high += step
    while True:
        new = low + (high - low) * rng.random()
        if horseshoe_log_density(precision, new) + _log_half_cauchy(new, width) > level:
            return math.exp(new)
        if new < x:
            low = new
        else:
            high = new
