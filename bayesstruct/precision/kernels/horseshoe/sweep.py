r"""Gibbs sweeps over a precision matrix under the graphical horseshoe, and draws of its global scale.

The notation is that of :mod:`bayesstruct.precision.kernels.gibbs`. An off-diagonal element has the prior

.. math:: u \mid \nu \sim N(0, \tau^2 / \nu), \qquad p(\nu) \propto \nu^{-1/2} / (1 + \nu),

with :math:`\nu = 1 / \lambda^2` of a half-Cauchy :math:`\lambda`. Given all else its likelihood is
:math:`\exp(b u - h u^2 / 2)`. With ``u`` integrated out and :math:`t^2 = h / (h + \nu / \tau^2)`, the share of the likelihood
in the precision of ``u``, the density of :math:`t` on (0, 1) is

.. math:: f(t) \propto \frac{e^{c t^2}}{r + (1 - r) t^2}, \qquad r = h \tau^2, \quad c = b^2 / (2 h),

which is drawn by rejection, and then ``u`` given ``t`` is normal with mean :math:`t^2 b / h` and variance
:math:`t^2 / h`. The local scale is thus summed out of every update, and no chain has to remember one. Draws of a whole column given its local
scales (Li, Craig and Bhadra 2019) cost a factorisation each and mixed no better a sweep in ``benchmarks/horseshoe.py``.
"""

import math

import numpy as np

from bayesstruct.core.jit import inlined, inner, kernel, vector_inner
from bayesstruct.core.special import log_scaled_exp_integral
from bayesstruct.precision.kernels.gibbs import (
    close_column,
    draw_schur,
    open_column,
    shift_column,
)

__all__ = [
    "draw_global_scale",
    "element_variances",
    "horseshoe_log_density",
    "horseshoe_normal",
    "horseshoe_sweep",
    "rescale",
]


_STEP = 0.5  # width of the first interval of a slice in `rescale`


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


@inner
def inverse_square_of_local_scale(rng, z):
    """Draw ``nu`` from the density ``exp(-z nu) / (1 + nu)``: one over the squared local scale, where ``z = u^2 / (2 tau^2)``."""
    if z >= 1.0:
        while True:
            nu = rng.standard_exponential() / z
            if rng.random() * (1.0 + nu) < 1.0:
                return nu
    body, tail = -math.log(z), math.exp(z - 1.0)  # of w = 1 + nu below and above 1 / z
    while True:
        if rng.random() * (body + tail) < body:
            w = math.exp(body * rng.random())
            if rng.random() < math.exp(z * (1.0 - w)):
                return w - 1.0
        else:
            w = (1.0 + rng.standard_exponential()) / z
            if rng.random() * z * w < 1.0:
                return w - 1.0


@kernel
def element_variances(rng, precision, scales):
    """Draw the variance of each off-diagonal element given the matrix, from its local scale; (p, p), ones on the diagonal."""
    p = precision.shape[0]
    out = np.ones((p, p))
    for i in range(p):
        for j in range(i):
            z = max(0.5 * (precision[i, j] / scales[i, j]) ** 2, 1e-300)
            nu = max(inverse_square_of_local_scale(rng, z), 1e-300)
            out[i, j] = out[j, i] = scales[i, j] ** 2 / nu
    return out


@vector_inner
def _product(a, b, size):
    total = 0.0
    for k in range(size):
        total += a[k] * b[k]
    return total


@inner
def _half_log_determinant(matrix, factor):
    """Half the log determinant of a matrix, from its lower triangle; minus infinity if it is not positive definite."""
    total = 0.0
    for i in range(matrix.shape[0]):
        for j in range(i):
            factor[i, j] = (matrix[i, j] - _product(factor[i], factor[j], j)) / factor[j, j]
        rest = matrix[i, i] - _product(factor[i], factor[i], i)
        if not rest > 0.0:
            return -math.inf
        factor[i, i] = math.sqrt(rest)
        total += math.log(factor[i, i])
    return total


@inner
def _choose_moved(rng, precision, scatter, scale, bound, moved):
    """Copy the elements that move to the lower triangle of `moved`, zeros for the others.

    Return the number of the others, the sum of their ``nu u^2 / (2 tau^2)``, and the trace of the moved part times the scatter.
    """
    held, quadratic, trace = 0.0, 0.0, 0.0
    for i in range(precision.shape[0]):
        for j in range(i):
            u = precision[i, j]
            moved[i, j] = u
            z = max(0.5 * (u / scale) ** 2, 1e-300)
            nu = inverse_square_of_local_scale(rng, z)
            if nu < bound:
                moved[i, j] = 0.0
                held += 1.0
                quadratic += nu * z
        trace += _product(scatter[i], moved[i], i)
    return held, quadratic, trace


@inner
def _rescaled(precision, moved, x, n, terms, factor):
    """Multiply the elements that move by exp(x); return the log density of x but for the prior of the global scale."""
    held, quadratic, trace = terms
    grown = math.exp(x)
    for i in range(precision.shape[0]):
        for j in range(i):
            if moved[i, j] != 0.0:
                precision[i, j] = grown * moved[i, j]
    half = _half_log_determinant(precision, factor)
    if half == -math.inf:
        return half
    return n * half - trace * grown - held * x - quadratic * math.expm1(-2.0 * x)


@kernel
def rescale(rng, precision, scatter, n, scale, width, space):
    """Multiply the global scale and most elements of the matrix by a common factor, drawn by one slice of its logarithm.

    Given all elements of a large matrix the global scale is nearly known, so that it moves in small steps only. Here
    ``u / tau`` is held for elements whose local scale, drawn for the purpose, is below a bound, and ``u`` for the few others,
    which the data determine. The bound is drawn too, between p^0.4 and p^0.8; neither it nor a local scale changes with the factor.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision : (p, p) float64, changed in place
        Its inverse is not brought up to date.
    scatter : (p, p) float64
    n : float
        Number of rows.
    scale, width : float
        Global scale, and the scale of its half-Cauchy prior.
    space : (2, p, p) float64
        Work space.

    Returns
    -------
    float
        The global scale.
    """
    p = precision.shape[0]
    moved, factor = space[0], space[1]
    largest = float(p) ** (0.4 + 0.4 * rng.random())
    terms = _choose_moved(rng, precision, scatter, scale, largest**-2.0, moved)
    at = math.log(scale)
    level = _rescaled(precision, moved, 0.0, n, terms, factor) + _log_half_cauchy(at, width)
    level -= rng.standard_exponential()
    low = -_STEP * rng.random()
    high = low + _STEP
    while (
        _rescaled(precision, moved, low, n, terms, factor) + _log_half_cauchy(at + low, width)
        > level
    ):
        low -= _STEP
    while (
        _rescaled(precision, moved, high, n, terms, factor) + _log_half_cauchy(at + high, width)
        > level
    ):
        high += _STEP
    while True:
        x = low + (high - low) * rng.random()
        if (
            _rescaled(precision, moved, x, n, terms, factor) + _log_half_cauchy(at + x, width)
            > level
        ):
            break
        if x < 0.0:
            low = x
        else:
            high = x
    for i in range(p):
        for j in range(i):
            precision[j, i] = precision[i, j]
    return scale * math.exp(x)
