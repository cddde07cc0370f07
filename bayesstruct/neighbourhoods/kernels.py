r"""Markov chains of one regression of a neighbourhood model, from the first sweep to the last.

A sweep draws, each from its conditional distribution: the variances of a Laplace slab; indicators and
coefficients together (:mod:`bayesstruct.sparse.kernels.spike_slab_regression`; for 0/1 responses
:mod:`bayesstruct.sparse.kernels.polya_gamma`); the intercept; the variance of the noise; the inclusion
probability if it has a beta prior. With :math:`r = y - b - X w` and k of m free predictors active,

.. math::

    b \mid \cdot &\sim N\Bigl(\frac{1'(y - X w) / v + m_b / s_b^2}{n / v + 1 / s_b^2},
        \frac{1}{n / v + 1 / s_b^2}\Bigr), \\
    v \mid \cdot &\sim \mathrm{InvGamma}(a + n / 2, \; c + r'r / 2), \\
    \pi \mid \cdot &\sim \mathrm{Beta}(\alpha + k, \; \beta + m - k) .

The intercept of a logistic regression is one more column, of ones, that is always active: it is
drawn together with the coefficients.

A whole chain is one call without the interpreter, so that chains run in parallel in threads.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.sparse.kernels.polya_gamma import logistic_sweep
from bayesstruct.sparse.kernels.required import required_logistic_sweep, required_sweep
from bayesstruct.sparse.kernels.spike_slab_regression import (
    draw_slab_variances,
    gaussian_sweep,
)


@inner
def _residual_squares(w, gram, score, squares):
    """``|y - X w|^2`` from the products of ``y`` and ``X``."""
    for i in range(w.shape[0]):
        if w[i] != 0.0:
            inner = 0.0
            for j in range(w.shape[0]):
                inner += gram[i, j] * w[j]
            squares += w[i] * (inner - 2.0 * score[i])
    return max(squares, 0.0)


@inner
def _draw_share(rng, w, beta, free, log_odds):
    """Draw the inclusion probability and write its log odds for the free predictors."""
    active = count = 0
    for j in range(w.shape[0]):
        if free[j]:
            count += 1
            active += w[j] != 0.0
    share = rng.beta(beta[0] + active, beta[1] + count - active)
    share = min(max(share, 1e-300), 1.0 - 1e-16)
    odds = math.log(share) - math.log1p(-share)
    for j in range(w.shape[0]):
        if free[j]:
            log_odds[j] = odds
    return share


@kernel
def gaussian_chain(
    rng,
    w,
    noise,
    products,
    sums,
    prior,
    laplace,
    beta,
    noise_prior,
    intercept_prior,
    swaps,
    tune,
    out,
    inclusion,
):
    """Run one chain of a Gaussian regression.

    Parameters
    ----------
    rng : numpy.random.Generator
    w : (p,) float64, changed in place
        Start; predictors with nonzero entries are active.
    noise : float
        Start of the variance of the noise.
    products : tuple of (p, p), (p,), (p,), (p,) float64
        ``X'X``, its diagonal, ``X'1`` and ``X'y``.
    sums : tuple of float
        ``n``, ``1'y`` and ``y'y``.
    prior : tuple of (p,), (p,) float64
        Scales of the slab (standard deviations of a normal one), and log odds of the indicators,
        with ``-inf`` for the response.
    laplace : bool
        Whether the slab is Laplace and not normal.
    beta : (2,) or (0,) float64
        Prior of the inclusion probability of predictors with finite log odds, if it is drawn.
    noise_prior : tuple of float
        Shape and scale of the inverse gamma distribution.
    intercept_prior : tuple of float
        Mean and standard deviation.
    swaps, tune : int
    out : tuple of (draws, p), (draws,), (draws,), (draws,) float64, written
        Coefficients, intercepts, noise variances, inclusion probabilities.
    inclusion : (p,) float64, changed in place
        Conditional inclusion probabilities of the kept draws are added here.
    """
    gram, diagonal, total, cross = products
    n, sum_y, yy = sums
    scale, log_odds = prior
    p = w.shape[0]
    slab, score, warm = scale * scale, cross.copy(), np.zeros(p)
    log_odds, free = log_odds.copy(), np.isfinite(log_odds)
    required, share = not free.any(), 0.0
    centre, precision = intercept_prior[0], 1.0 / intercept_prior[1] ** 2
    intercept = centre
    if beta.shape[0] > 0:
        share = _draw_share(rng, w, beta, free, log_odds)
    for t in range(-tune, out[0].shape[0]):
        added = warm if t < 0 else inclusion
        if laplace:
            draw_slab_variances(rng, w, scale, slab)
        for j in range(p):
            score[j] = cross[j] - intercept * total[j]
        sd = math.sqrt(noise)
        if required:
            required_sweep(rng, w, added, gram, score, sd, slab, log_odds)
        else:
            gaussian_sweep(rng, w, added, gram, diagonal, score, sd, slab, log_odds, swaps)
        rest = sum_y
        for j in range(p):
            rest -= total[j] * w[j]
        spread = 1.0 / (n / noise + precision)
        intercept = spread * (rest / noise + centre * precision)
        intercept += math.sqrt(spread) * rng.standard_normal()
        for j in range(p):
            score[j] = cross[j] - intercept * total[j]
        squares = yy - 2.0 * intercept * sum_y + n * intercept * intercept
        squares = _residual_squares(w, gram, score, squares)
        noise = (noise_prior[1] + 0.5 * squares) / rng.standard_gamma(noise_prior[0] + 0.5 * n)
        if beta.shape[0] > 0:
            share = _draw_share(rng, w, beta, free, log_odds)
        if t >= 0:
            out[0][t] = w
            out[1][t], out[2][t], out[3][t] = intercept, noise, share


@kernel
def logistic_chain(
    rng, w, columns, squares, response, offset, prior, laplace, beta, swaps, tune, out, inclusion
):
    """Run one chain of a logistic regression.

    Parameters
    ----------
    rng, laplace, beta, swaps, tune
        As in :func:`gaussian_chain`.
    w : (p + 1,) float64, changed in place
        Start; the last is the intercept, which must not be zero.
    columns, squares : (p + 1, n) float64
        Transpose of ``X``, and its elements squared; the last row is of ones.
    response : (n,) float64
        0 or 1.
    offset : (n,) float64
        Linear predictor when all of ``w`` is zero.
    prior : tuple of (p + 1,), (p + 1,) float64
        Scales and log odds, those of the intercept, whose prior is normal, at the end.
    out : tuple of (draws, p), (draws,), (draws,) float64, written
        Coefficients, intercepts (without the offset), inclusion probabilities.
    inclusion : (p + 1,) float64, changed in place
    """
    scale, log_odds = prior
    p = w.shape[0] - 1
    slab, warm = scale * scale, np.zeros(p + 1)
    log_odds, free = log_odds.copy(), np.isfinite(log_odds)
    required, share = not free.any(), 0.0
    if beta.shape[0] > 0:
        share = _draw_share(rng, w, beta, free, log_odds)
    for t in range(-tune, out[0].shape[0]):
        added = warm if t < 0 else inclusion
        if laplace:
            draw_slab_variances(rng, w[:p], scale[:p], slab[:p])
        if required:
            required_logistic_sweep(rng, w, added, columns, response, offset, slab, log_odds)
        else:
            logistic_sweep(rng, w, added, columns, squares, response, offset, slab, log_odds, swaps)
        if beta.shape[0] > 0:
            share = _draw_share(rng, w, beta, free, log_odds)
        if t >= 0:
            out[0][t] = w[:p]
            out[1][t], out[2][t] = w[p], share
