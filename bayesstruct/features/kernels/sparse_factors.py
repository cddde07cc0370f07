r"""Draws of sparse factor scores: which factors each row has, and how much of them.

.. math::

    x_{ij} \sim N\Bigl(\sum_k w_{ik} a_{kj}, \sigma_j^2\Bigr), \qquad w_{ik} = z_{ik} v_{ik}, \qquad
    a_{kj} \sim N(0, \tau^2),

with v standard normal or standard Laplace and Z an Indian buffet process. Missing values have precision zero
and so do not matter.

**The scan.** Factors that other rows have are visited in a random order, each entry and its score drawn
together given the loadings: with g the slope and h the curvature of the log density of the row at a score of
zero, the odds of an entry are those of the process times

.. math:: \int p(v) \exp(g v - h v^2 / 2) \, dv.

The factors that a row alone has are then proposed anew, their number from a Poisson distribution and their scores
from the prior, and accepted by Metropolis and Hastings with their loadings summed out, under which the row
is :math:`N(\cdot, \sigma_j^2 + \tau^2 \sum_k v_k^2)`; after that their loadings are drawn.

References
----------
Knowles, D. and Ghahramani, Z. (2007). Infinite sparse factor analysis and infinite independent components
analysis. *ICA* 2007, 381-388. -- Knowles, D. and Ghahramani, Z. (2011). Nonparametric Bayesian sparse factor
models with application to gene expression modeling. *Annals of Applied Statistics* 5, 1534-1552.
"""

import math

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import numpy_inner, numpy_kernel
from bayesstruct.core.special import log_normal_cdf
from bayesstruct.features.kernels.feature_columns import own_last, shuffle

__all__ = [
    "draw_score",
    "log_factor",
    "scan_factors",
]

_LOG_2PI = math.log(2.0 * math.pi)
#: Mean of the Poisson proposals of factors of a row's own: not so small that none is ever proposed.
_EAGER = 0.2
_TRIES = 3
_FEW = 16


@numpy_inner
def _above_zero(rng, low, deviation):
    """Draw a normal variable given that it is above zero, which is `low` deviations above its mean."""
    if low < 0.5:
        while True:
            x = rng.standard_normal()
            if x > low:
                return deviation * (x - low)
    # Robert (1995): an exponential proposal with the best rate. Only the excess over the bound is kept: with
    # little curvature the bound is so much larger that a sum would be exactly zero.
    root = math.hypot(low, 2.0)
    rate, gap = 0.5 * (low + root), 2.0 / (low + root)
    while True:
        excess = rng.standard_exponential() / rate
        if rng.standard_exponential() > 0.5 * (excess - gap) ** 2:
            return deviation * excess


@numpy_inner
def _log_mills(x):
    """Log of the ratio of the standard normal distribution function to its density."""
    if x > -20.0:
        return 0.5 * x * x + 0.5 * _LOG_2PI + log_normal_cdf(x)
    # Without x^2, which cancels exactly and would leave no digits.
    r = (1.0 / x) ** 2
    return math.log1p(-r * (1.0 - 3.0 * r * (1.0 - 5.0 * r * (1.0 - 7.0 * r)))) - math.log(-x)


@numpy_inner
def _log_masses(slope, curvature):
    """Log integrals of the Laplace density times the likelihood over scores above and below zero."""
    deviation = 1.0 / math.sqrt(curvature)
    front = math.log(0.5 * deviation)
    above, below = (slope - 1.0) * deviation, (-slope - 1.0) * deviation
    return front + _log_mills(above), front + _log_mills(below)


@numpy_kernel
def log_factor(slope: float, curvature: float, laplace: bool) -> float:
    """Log of the factor by which the score of an entry, summed out, multiplies its odds."""
    if curvature == 0.0:
        return 0.0
    if not laplace:
        return 0.5 * slope * slope / (1.0 + curvature) - 0.5 * math.log1p(curvature)
    above, below = _log_masses(slope, curvature)
    top = max(above, below)
    return top + math.log(math.exp(above - top) + math.exp(below - top))


@numpy_inner
def _prior_score(rng, laplace):
    if not laplace:
        return rng.standard_normal()
    score = rng.standard_exponential()
    return score if rng.random() < 0.5 else -score


@numpy_kernel
def draw_score(rng: np.random.Generator, slope: float, curvature: float, laplace: bool) -> float:
    """Draw a score given that its entry is there."""
    if curvature == 0.0:
        return _prior_score(rng, laplace)
    if not laplace:
        total = 1.0 + curvature
        return slope / total + rng.standard_normal() / math.sqrt(total)
    above, below = _log_masses(slope, curvature)
    deviation = 1.0 / math.sqrt(curvature)
    if rng.random() * (1.0 + math.exp(min(below - above, 700.0))) < 1.0:
        return _above_zero(rng, (1.0 - slope) * deviation, deviation)
    return -_above_zero(rng, (1.0 + slope) * deviation, deviation)


@numpy_inner
def _redraw_shared(rng, w, a, k, left, precision, log_odds, order, laplace):
    """Draw entries and scores of a row in the first k factors, which others have too."""
    shuffle(rng, order, k)
    for b in order[:k]:
        slope, curvature = 0.0, 0.0
        for j in range(left.shape[0]):
            left[j] += w[b] * a[b, j]
            weighted = precision[j] * a[b, j]
            slope += weighted * left[j]
            curvature += weighted * a[b, j]
        w[b] = 0.0
        odds = log_odds[b] + log_factor(slope, curvature, laplace)
        if rng.random() * (1.0 + math.exp(min(-odds, 700.0))) < 1.0:
            w[b] = draw_score(rng, slope, curvature, laplace)
        for j in range(left.shape[0]):
            left[j] -= w[b] * a[b, j]


@numpy_inner
def _log_row(left, precision, spread):
    """Log density of a row whose own factors add `spread` to its variances, up to a constant."""
    total = 0.0
    for j in range(left.shape[0]):
        if precision[j] > 0.0:
            ratio = 1.0 + spread * precision[j]
            total -= 0.5 * (math.log(ratio) + precision[j] * left[j] ** 2 / ratio)
    return total


@numpy_inner
def _propose_own(rng, own, count, left, precision, variance, rate, laplace):
    """Propose the scores of the factors that a row alone has, a few times; return their number.

    -1 if there are too many.
    """
    eager = max(rate, _EAGER)
    tilt = math.log(rate) - math.log(eager)
    square = 0.0
    for b in range(count):
        square += own[b] ** 2
    now = _log_row(left, precision, variance * square) + count * tilt
    proposed = np.empty(_FEW)
    for _ in range(_TRIES):
        number = rng.poisson(eager)
        if number > len(proposed):
            proposed = np.empty(number)
        square = 0.0
        for b in range(number):
            proposed[b] = _prior_score(rng, laplace)
            square += proposed[b] ** 2
        then = _log_row(left, precision, variance * square) + number * tilt
        if rng.standard_exponential() > now - then:
            if number > own.shape[0]:
                return -1
            now, count = then, number
            copy_vector(own, proposed[:number])
    return count


@numpy_inner
def _draw_own_loadings(rng, own, a, left, precision, scale):
    """Draw the loadings of a row's own factors given the row, in place."""
    square = 0.0
    for b in range(own.shape[0]):
        square += own[b] ** 2
    for j in range(left.shape[0]):
        fitted = 0.0
        for b in range(own.shape[0]):
            a[b, j] = scale * rng.standard_normal()
            fitted += own[b] * a[b, j]
        if precision[j] > 0.0:
            # A draw from the prior, corrected by the residual of the row with independent noise.
            noise = rng.standard_normal() / math.sqrt(precision[j])
            gain = scale * scale / (1.0 / precision[j] + scale * scale * square)
            rest = gain * (left[j] - fitted - noise)
            for b in range(own.shape[0]):
                a[b, j] += rest * own[b]


@numpy_kernel
def scan_factors(
    rng: np.random.Generator,
    w: np.ndarray,
    a: np.ndarray,
    used: int,
    x: np.ndarray,
    precision: np.ndarray,
    rows: np.ndarray,
    scale: float,
    process: np.ndarray,
    laplace: bool,
) -> int:
    """Draw the factors of rows in turn, in place; they are in no order afterwards.

    Parameters
    ----------
    rng : numpy.random.Generator
    w : (n, K) float64, changed
        Scores, zero where a row does not have a factor. Only the first `used` columns are not zero.
    a : (K, d) float64, changed
        Loadings.
    used : int
    x : (n, d) float64
    precision : (n, d) float64
        Of each value, zero where it is missing.
    rows : int64 array
        Rows in the order in which they are visited.
    scale : float
        Standard deviation of the loadings.
    process : (3,) float64
        Mean number of factors that a row has alone, concentration, discount.
    laplace : bool
        Whether the scores have a Laplace distribution, not a normal one.

    Returns
    -------
    int
        Number of factors that are used afterwards; -1 if K of them were not enough.
    """
    n, most = w.shape
    rate, concentration, discount = process
    sums, log_odds = np.zeros(most, np.int64), np.zeros(most)
    order, left = np.zeros(most, np.int64), np.zeros(x.shape[1])
    for i in range(n):
        for b in range(used):
            sums[b] += w[i, b] != 0.0
    for i in rows:
        copy_vector(left, x[i])
        for b in range(used):
            if w[i, b] != 0.0:
                sums[b] -= 1
                for j in range(left.shape[0]):
                    left[j] -= w[i, b] * a[b, j]
        shared = own_last(w, a, sums, used)
        for b in range(shared):
            log_odds[b] = math.log(
                (sums[b] - discount) / (n - 1 - sums[b] + concentration + discount)
            )
        _redraw_shared(rng, w[i], a, shared, left, precision[i], log_odds, order, laplace)
        for b in range(shared, used):
            for j in range(left.shape[0]):
                left[j] += w[i, b] * a[b, j]
        own = _propose_own(
            rng, w[i, shared:], used - shared, left, precision[i], scale * scale, rate, laplace
        )
        if own < 0:
            return -1
        used = shared + own
        w[i, used:] = 0.0
        a[used:] = 0.0
        _draw_own_loadings(rng, w[i, shared:used], a[shared:used], left, precision[i], scale)
        for b in range(used):
            sums[b] += w[i, b] != 0.0
    return used
