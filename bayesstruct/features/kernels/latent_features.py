r"""Draws of the binary features of a linear Gaussian model, their loadings summed out.

.. math::

    x_i \mid z_i, A \sim N(z_i A, \sigma^2 I), \qquad A_{kd} \sim N(0, \tau^2), \qquad
    Z \sim \text{an Indian buffet process}.

Given the other rows, the loadings of the features that these have are normal with mean :math:`\mu` and
covariance :math:`\sigma^2 M`, the same for each variable,

.. math:: M = (Z'Z + (\sigma / \tau)^2 I)^{-1}, \qquad \mu = M Z'X,

so that a row is :math:`N(z \mu, \sigma^2 (1 + z M z') I)`. A row is taken out and put back by updates of
rank one, as a regression is when an observation is added; the cost of a flip of one entry is then proportional to
the number of variables and does not depend on the number of rows (Doshi-Velez and Ghahramani 2009 keep the
distribution of the loadings for the same reason).

**The scan.** The published one deletes the features that only row i has, before the others are
visited in the order in which they stand, and does not leave the posterior invariant. Here they are kept while the
shared ones are visited in a random order, which does not depend on the row; then their number is drawn from its
conditional distribution given everything else,

.. math::

    p(s) \propto \mathrm{Poisson}(s; \alpha r_N) \, N(x_i; z \mu, \sigma^2 (1 + z M z' + s \tau^2 / \sigma^2) I),

up to rounding: the likelihood is bounded, so that the sum is truncated where the Poisson tail is negligible.

References
----------
Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review. *JMLR*
12, 1185-1224, sections 5.1 to 5.3 (model, collapsed likelihood, the scan and its footnote 5). --
Doshi-Velez, F. and Ghahramani, Z. (2009). Accelerated sampling for the Indian buffet process. *ICML* 26.
"""

import math

import numpy as np

from bayesstruct.core.arrays import copy_matrix, copy_vector, scaled_identity
from bayesstruct.core.jit import kernel, numpy_inner, numpy_kernel
from bayesstruct.features.kernels.feature_columns import shuffle

__all__ = ["draw_loadings", "log_likelihood", "moments", "scan_rows"]

_REFRESH = 50  # rows after which inverse and mean are computed anew: updates lose digits
_TAIL = 45.0  # terms of a sum that are smaller by this many logarithms are left out


@kernel
def moments(features: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sufficient statistics of the loadings: sums over rows.

    Parameters
    ----------
    features : (n, k) int8
    x : (n, d) float64

    Returns
    -------
    (k, k) and (k, d) float64
        Z'Z and Z'X.
    """
    n, k = features.shape
    square, cross = np.zeros((k, k)), np.zeros((k, x.shape[1]))
    for i in range(n):
        for a in range(k):
            if features[i, a]:
                for b in range(k):
                    square[a, b] += features[i, b]
                for j in range(x.shape[1]):
                    cross[a, j] += x[i, j]
    return square, cross


@numpy_inner
def _condition(square, cross, k, ratio, inverse, mean):
    """Set the inverse M and the mean of the first k features from the sums over rows."""
    if k == 0:
        return
    copy_matrix(inverse, np.linalg.inv(square[:k, :k] + scaled_identity(k, ratio)))
    copy_matrix(mean, np.ascontiguousarray(inverse[:k, :k]) @ cross[:k])


@numpy_inner
def update_rank_one(
    inverse: np.ndarray,
    mean: np.ndarray,
    z: np.ndarray,
    k: int,
    x: np.ndarray,
    sign: float,
    along: np.ndarray,
    left: np.ndarray,
) -> None:
    """Put a row into inverse and mean (sign 1), or take it out (-1)."""
    copy_vector(left, x)
    spread = 0.0
    for a in range(k):
        along[a] = 0.0
        for b in range(k):
            along[a] += inverse[a, b] * z[b]
        if z[a]:
            spread += along[a]
            for j in range(x.shape[0]):
                left[j] -= mean[a, j]
    scale = sign / (1.0 + sign * spread)
    for a in range(k):
        gain = along[a] * scale
        for b in range(k):
            inverse[a, b] -= gain * along[b]
        for j in range(x.shape[0]):
            mean[a, j] += gain * left[j]


@numpy_inner
def _add_to_sums(square, cross, z, k, x, sign):
    for a in range(k):
        if z[a]:
            for b in range(k):
                square[a, b] += sign * z[b]
            for j in range(x.shape[0]):
                cross[a, j] += sign * x[j]


@numpy_inner
def _move_column(features, square, cross, inverse, mean, sums, a, b):
    """Put column b where column a was; b is empty afterwards."""
    for i in range(features.shape[0]):
        features[i, a] = features[i, b]
        features[i, b] = 0
    for source in (square, inverse):
        copy_vector(source[a], source[b])
        copy_vector(source[:, a], source[:, b])
        source[a, a] = source[b, b]
    copy_vector(cross[a], cross[b])
    copy_vector(mean[a], mean[b])
    sums[a] = sums[b]


@numpy_inner
def _log_density(square, spread, d, noise):
    """Log density of a row, up to a constant, from its squared residual and relative variance."""
    return -0.5 * d * math.log(spread) - 0.5 * square / (noise * noise * spread)


@numpy_inner
def _draw_number(rng, rate, square, spread, step, d, noise):
    """Draw the number of features that only this row has.

    Each adds ``step`` to the relative variance. The largest of log weights with Gumbel noise is a draw
    in proportion to the weights.
    """
    best, chosen, top = -np.inf, 0, -np.inf
    peak = max(square / (d * noise * noise), spread)
    bound = _log_density(square, peak, d, noise)
    log_prior, s = 0.0, 0
    while True:
        weight = log_prior + _log_density(square, spread + s * step, d, noise)
        top = max(top, weight)
        value = weight - math.log(rng.standard_exponential())
        if value > best:
            best, chosen = value, s
        s += 1
        log_prior += math.log(rate) - math.log(s)
        if s > rate and log_prior + bound < top - _TAIL:
            return chosen


@numpy_inner
def _redraw_row(rng, z, k, x, inverse, mean, log_odds, own, noise, along, left, order):
    """Draw the entries of a row in the features that other rows have.

    ``own`` is the term of features that only this row has in the relative variance. Returns the squared
    residual and the relative variance without that term.
    """
    d = x.shape[0]
    copy_vector(left, x)
    spread, square = 1.0, 0.0
    for a in range(k):
        along[a] = 0.0
        for b in range(k):
            along[a] += inverse[a, b] * z[b]
        if z[a]:
            spread += along[a]
            for j in range(d):
                left[j] -= mean[a, j]
    for j in range(d):
        square += left[j] * left[j]
    density = _log_density(square, spread + own, d, noise)
    shuffle(rng, order, k)
    for a in order[:k]:
        sign = -1.0 if z[a] else 1.0
        product, length = 0.0, 0.0
        for j in range(d):
            product += left[j] * mean[a, j]
            length += mean[a, j] * mean[a, j]
        flipped = max(square - 2.0 * sign * product + length, 0.0)
        wider = spread + 2.0 * sign * along[a] + inverse[a, a]
        other = _log_density(flipped, wider + own, d, noise)
        if rng.random() * (1.0 + math.exp(min(density - other - sign * log_odds[a], 700.0))) >= 1.0:
            continue
        z[a] = 1 - z[a]
        square, spread, density = flipped, wider, other
        for b in range(k):
            along[b] += sign * inverse[b, a]
        for j in range(d):
            left[j] -= sign * mean[a, j]
    return square, spread


@numpy_kernel
def scan_rows(
    rng: np.random.Generator,
    features: np.ndarray,
    used: int,
    x: np.ndarray,
    rows: np.ndarray,
    noise: float,
    scale: float,
    rate: float,
    concentration: float,
    discount: float,
    most_own: int,
) -> int:
    """Draw the features of rows in turn, in place; the columns are in no order afterwards.

    Parameters
    ----------
    rng : numpy.random.Generator
    features : (n, K) int8, changed
        Only the first `used` columns have ones, and each of these has.
    used : int
    x : (n, d) float64
    rows : int64 array
        Rows in the order in which they are visited.
    noise, scale : float
        Standard deviations of the noise and of the loadings.
    rate : float
        Mean number of features that a row has alone, a priori.
    concentration, discount : float
    most_own : int
        If it is not negative, a row gets at most so many features of its own, and no more than the maximum number
        of features allows: for a search for a start, not for draws.

    Returns
    -------
    int
        Number of columns that are used afterwards; -1 if K of them were not enough.
    """
    n, most = features.shape
    d = x.shape[1]
    ratio = (noise / scale) ** 2
    some_square, some_cross = moments(features[:, :used], x)
    square, cross = np.zeros((most, most)), np.zeros((most, d))
    copy_matrix(square, some_square)
    copy_matrix(cross, some_cross)
    inverse, mean = np.zeros((most, most)), np.zeros((most, d))
    sums, log_odds = np.zeros(most), np.zeros(most)
    along, left, order = np.zeros(most), np.zeros(d), np.zeros(most, np.int64)
    for a in range(used):
        sums[a] = square[a, a]
    k = used
    for visit in range(rows.shape[0]):
        i = rows[visit]
        z, row = features[i], x[i]
        _add_to_sums(square, cross, z, k, row, -1.0)
        if visit % _REFRESH == 0:
            _condition(square, cross, k, ratio, inverse, mean)
        else:
            update_rank_one(inverse, mean, z, k, row, -1.0, along, left)
        own = 0
        for a in range(k - 1, -1, -1):
            sums[a] -= z[a]
            if sums[a] == 0.0:
                own += 1
                z[a] = 0
                k -= 1
                _move_column(features, square, cross, inverse, mean, sums, a, k)
        for a in range(k):
            log_odds[a] = math.log(
                (sums[a] - discount) / (n - 1 - sums[a] + concentration + discount)
            )
        residual, spread = _redraw_row(
            rng, z, k, row, inverse, mean, log_odds, own / ratio, noise, along, left, order
        )
        own = _draw_number(rng, rate, residual, spread, 1.0 / ratio, d, noise)
        if most_own >= 0:
            own = min(own, most_own, most - k)
        if k + own > most:
            return -1
        for a in range(k, k + own):
            square[a, :] = 0.0
            square[:, a] = 0.0
            inverse[a, :] = 0.0
            inverse[:, a] = 0.0
            inverse[a, a] = 1.0 / ratio
            cross[a] = 0.0
            mean[a] = 0.0
            sums[a] = 0.0
            z[a] = 1
        k += own
        for a in range(k):
            sums[a] += z[a]
        _add_to_sums(square, cross, z, k, row, 1.0)
        update_rank_one(inverse, mean, z, k, row, 1.0, along, left)
    return k


def draw_loadings(
    rng: np.random.Generator, features: np.ndarray, x: np.ndarray, noise: float, scale: float
) -> np.ndarray:
    """Draw the loadings given the features.

    Parameters
    ----------
    rng : numpy.random.Generator
    features : (n, K) int8
    x : (n, d) float64
    noise, scale : float
        Standard deviations.

    Returns
    -------
    (K, d) ndarray
        Zero for features that no row has.
    """
    used = features.any(axis=0)
    square, cross = moments(np.ascontiguousarray(features[:, used]), x)
    out = np.zeros((features.shape[1], x.shape[1]))
    if used.any():
        factor = np.linalg.cholesky(square + (noise / scale) ** 2 * np.eye(len(square)))
        normal = noise * rng.standard_normal(cross.shape)
        out[used] = np.linalg.solve(factor.T, np.linalg.solve(factor, cross) + normal)
    return out


def log_likelihood(features: np.ndarray, x: np.ndarray, noise: float, scale: float) -> float:
    """Log density of the table given the features, loadings summed out (equation 26).

    Parameters
    ----------
    features : (n, K) array_like
    x : (n, d) array_like
    noise, scale : float
    """
    x, z = np.asarray(x, float), np.asarray(features, float)
    z = z[:, z.any(axis=0)]
    (n, d), k, ratio = x.shape, z.shape[1], (noise / scale) ** 2
    factor = np.linalg.cholesky(z.T @ z + ratio * np.eye(k))
    explained = np.linalg.solve(factor, z.T @ x)
    square = (x**2).sum() - (explained**2).sum()
    return float(
        -0.5 * square / noise**2
        - 0.5 * n * d * np.log(2.0 * np.pi)
        - (n - k) * d * np.log(noise)
        - k * d * np.log(scale)
        - d * np.log(np.diag(factor)).sum()
    )
