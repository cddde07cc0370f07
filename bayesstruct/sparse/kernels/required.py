"""Draws of regression coefficients that are known to be in the model."""

import math

import numpy as np

from bayesstruct.core.jit import kernel
from bayesstruct.sparse.kernels.polya_gamma import draw_polya_gamma
from bayesstruct.sparse.kernels.spike_slab_regression import active_product

__all__ = ["required_draw", "required_logistic_sweep", "required_sweep"]


@kernel
def required_draw(rng, coefficients, gram, score, variance, slab):
    r"""Draw coefficients none of which can be zero: :math:`N(A^{-1} b, \sigma^2 A^{-1})`.

    :math:`A = X'X + \sigma^2 V^{-1}` is factorised at once, by LAPACK, which for many coefficients is
    much faster than predictor after predictor. ``A`` is scaled by the slab, so that very small and
    very large variances do no harm.

    Parameters
    ----------
    rng : numpy.random.Generator
    coefficients : (k,) float64, written
    gram, score : (k, k), (k,) float64
        Of the predictors that are required.
    variance : float
    slab : (k,) float64
        Variances.
    """
    k = gram.shape[0]
    root, sd = np.sqrt(slab), math.sqrt(variance)
    scaled = np.empty((k, k))
    for i in range(k):
        for j in range(k):
            scaled[i, j] = root[i] * gram[i, j] * root[j]
        scaled[i, i] += variance
    factor = np.linalg.cholesky(scaled)
    for i in range(k):
        total = root[i] * score[i]
        for a in range(i):
            total -= factor[i, a] * coefficients[a]
        coefficients[i] = total / factor[i, i]
    for i in range(k):
        coefficients[i] += sd * rng.standard_normal()
    for i in range(k - 1, -1, -1):
        coefficients[i] /= factor[i, i]
        value = coefficients[i]
        for a in range(i):
            coefficients[a] -= value * factor[i, a]
    for i in range(k):
        coefficients[i] *= root[i]


@kernel
def required_sweep(rng, coefficients, inclusion, gram, score, noise, slab, log_odds):
    """Draw the coefficients of a regression in which every prior log odds is infinite.

    Parameters
    ----------
    rng, coefficients, inclusion, gram, score, noise, slab, log_odds
        As in :func:`bayesstruct.sparse.kernels.spike_slab_regression.gaussian_sweep`.
    """
    at = np.nonzero(log_odds > 0)[0]
    draw = np.empty(at.shape[0])
    required_draw(rng, draw, gram[at][:, at], score[at], noise * noise, slab[at])
    coefficients[:] = 0.0
    for i in range(at.shape[0]):
        coefficients[at[i]] = draw[i]
        inclusion[at[i]] += 1.0


@kernel
def required_logistic_sweep(
    rng, coefficients, inclusion, columns, response, offset, slab, log_odds
):
    """Draw the coefficients of a logistic regression in which every prior log odds is infinite.

    Parameters
    ----------
    rng, coefficients, inclusion, columns, response, offset, slab, log_odds
        As in :func:`bayesstruct.sparse.kernels.polya_gamma.logistic_sweep`.
    """
    n = columns.shape[1]
    at = np.nonzero(log_odds > 0)[0]
    tilts, weights, target = np.empty(n), np.empty(n), np.empty(n)
    active_product(columns, coefficients, tilts)
    for i in range(n):
        weights[i] = draw_polya_gamma(rng, tilts[i] + offset[i])
        target[i] = response[i] - 0.5 - weights[i] * offset[i]
    rows = columns[at]
    gram = np.dot(rows * weights, rows.T)
    draw = np.empty(at.shape[0])
    required_draw(rng, draw, gram, np.dot(rows, target), 1.0, slab[at])
    coefficients[:] = 0.0
    for i in range(at.shape[0]):
        coefficients[at[i]] = draw[i]
        inclusion[at[i]] += 1.0
