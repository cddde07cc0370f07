r"""Weights of single values: rows of the alternative t distribution (Finegold and Drton 2011).

A row is :math:`r_j = e_j / \sqrt{w_j}` with :math:`e \sim N(0, K^{-1})` and independent weights
:math:`w_j \sim \mathrm{Gamma}(\nu / 2, \nu / 2)`, one for each value. The square root t of a weight has, given the rest of its row, the density

.. math:: p(t) \propto t^\nu \exp(-a t^2 - c t), \quad a = \tfrac12 (\nu + K_{jj} r_j^2), \quad
    c = r_j \sum_{k \ne j} K_{jk} e_k,

which is drawn by rejection; at least half of the proposals are accepted, whatever the parameters.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.marginals.slices import draw_slice

_SMALLEST = 1e-150  # a root whose square is still a number


@kernel
def draw_root(rng, degrees, a, c):
    """Draw from the density ``t^degrees exp(-a t^2 - c t)`` of positive numbers."""
    if c > 0.0:  # -a t^2 lies below its tangent at m, the mean of the gamma proposals
        shape = degrees + 1.0
        m = 2.0 * shape / (c + math.sqrt(c * c + 8.0 * a * shape))
        while True:
            t = rng.standard_gamma(shape) / (c + 2.0 * a * m)
            if rng.standard_exponential() >= a * (t - m) * (t - m):
                return t
    m = (math.sqrt(c * c + 8.0 * a * degrees) - c) / (
        4.0 * a
    )  # the mode; log t lies below its tangent
    spread = 1.0 / math.sqrt(2.0 * a)
    while True:
        t = m + spread * rng.standard_normal()
        if t > 0.0 and rng.standard_exponential() >= degrees * (t / m - 1.0 - math.log(t / m)):
            return t


@kernel
def draw_value_weights(rng, precision, residuals, roots, missing, degrees):
    """Draw the weight of each value given the rest of its row once, in place.

    The weight of a missing value is drawn from its prior and moves with it: ``root * residual`` stays.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision : (p, p) float64
    residuals : (n, p) float64, changed in place where values are missing
        Standardised rows less their means.
    roots : (n, p) float64, changed in place
        Square roots of the weights.
    missing : (n, p) bool
    degrees : float
    """
    n, p = residuals.shape
    e = np.empty(p)
    for i in range(n):
        for j in range(p):
            e[j] = residuals[i, j] * roots[i, j]
        for j in range(p):
            if missing[i, j]:
                weight = rng.standard_gamma(0.5 * degrees) * 2.0 / degrees
                roots[i, j] = max(math.sqrt(weight), _SMALLEST)
                residuals[i, j] = e[j] / roots[i, j]
                continue
            r, total = residuals[i, j], 0.0
            for k in range(p):
                total += precision[j, k] * e[k]
            c = r * (total - precision[j, j] * e[j])
            a = 0.5 * (degrees + precision[j, j] * r * r)
            roots[i, j] = max(draw_root(rng, degrees, a, c), _SMALLEST)
            e[j] = r * roots[i, j]


@inner
def _log_prior(t, size, total, shape, rate):
    """Log density of the logarithm t of the degrees of freedom and of the logarithms of weights, ``total`` the sum of log w - w."""
    half = 0.5 * math.exp(t)
    return (
        size * (half * math.log(half) - math.lgamma(half))
        + half * total
        + shape * t
        - 2.0 * rate * half
    )


@inner
def _log_density(t, old, precision, residuals, roots, missing, e, shape, rate):
    """Log density where the degrees of freedom are exp(t) and the logarithms of all weights shrink by exp((old - t) / 2)."""
    n, p = residuals.shape
    power = math.exp(0.5 * (old - t))
    total, fit = 0.0, 0.0
    for i in range(n):
        for j in range(p):
            root = math.exp(power * math.log(roots[i, j]))
            total += 2.0 * math.log(root) - root * root
            if missing[i, j]:  # the product with the residual stays
                e[j] = residuals[i, j] * roots[i, j]
            else:
                e[j] = residuals[i, j] * root
                fit += math.log(root)
        for j in range(p):
            row = 0.5 * precision[j, j] * e[j]
            for k in range(j):
                row += precision[j, k] * e[k]
            fit -= row * e[j]
    return fit + n * p * math.log(power) + _log_prior(t, n * p, total, shape, rate)


@kernel
def draw_value_degrees(rng, degrees, precision, residuals, roots, missing, shape, rate):
    r"""Draw the degrees of freedom given the weights by a slice, and by another along which the weights move.

    Along the second the logarithms of all weights are multiplied by :math:`\sqrt{\nu / \nu'}`, so that they keep about their prior
    distribution (Liu and Sabatti 2000): without it the degrees of freedom hardly leave what the weights say.

    Parameters
    ----------
    rng : numpy.random.Generator
    degrees : float
        Before the update.
    precision : (p, p) float64
    residuals : (n, p) float64, changed in place where values are missing
    roots : (n, p) float64, changed in place
    missing : (n, p) bool
    shape, rate : float
        Of the gamma prior of the degrees of freedom.

    Returns
    -------
    float
        New degrees of freedom.
    """
    n, p = residuals.shape
    total = 0.0
    for i in range(n):
        for j in range(p):
            total += 2.0 * math.log(roots[i, j]) - roots[i, j] * roots[i, j]
    known = (n * p, total, shape, rate)
    old = draw_slice(rng, _log_prior, math.log(degrees), 1.0, known)
    rows = (old, precision, residuals, roots, missing, np.empty(p), shape, rate)
    new = draw_slice(rng, _log_density, old, 1.0, rows)
    power = math.exp(0.5 * (old - new))
    for i in range(n):
        for j in range(p):
            root = max(math.exp(power * math.log(roots[i, j])), _SMALLEST)
            if missing[i, j]:
                residuals[i, j] *= roots[i, j] / root
            roots[i, j] = root
    return math.exp(new)
