r"""Latent normal values behind columns of which the order is known: draws given the order.

``values`` are residuals: latent values less the means of their columns, with precision matrix ``K``. Given the rest of its row, a
value has mean :math:`m_{ij} = -\sum_{k \ne j} K_{jk} e_{ik} / K_{jj}` and variance :math:`1 / K_{jj}`, and given the
other values of its column it lies above all that belong to lower levels and below all that belong to higher ones (Hoff 2007).
"""

import math

from bayesstruct.core.jit import inner, kernel, vector_inner


@inner
def _above(rng, low, high):
    """Draw a standard normal between two positive numbers, or beyond one, by rejection (Robert 1995)."""
    rate = 0.5 * (low + math.sqrt(low * low + 4.0))
    if (high - low) * rate < 1.0:  # the density changes little: uniform proposals
        while True:
            x = low + (high - low) * rng.random()
            if rng.standard_exponential() >= 0.5 * (x - low) * (x + low):
                return x
    while True:
        x = low + rng.standard_exponential() / rate
        gap = x - rate
        if x <= high and rng.standard_exponential() >= 0.5 * gap * gap:
            return x


@kernel
def normal_between(rng, low, high):
    """Draw a standard normal given that it lies between two numbers, which may be infinite."""
    if low >= high:  # neighbours that are equal up to rounding leave no room
        return low
    if low > 0.3:
        return _above(rng, low, high)
    if high < -0.3:
        return -_above(rng, -high, -low)
    if high - low > 1.5:
        while True:
            x = rng.standard_normal()
            if low <= x <= high:
                return x
    nearest = max(low, min(0.0, high))
    while True:
        x = low + (high - low) * rng.random()
        if rng.standard_exponential() >= 0.5 * (x * x - nearest * nearest):
            return x


@vector_inner
def column_means(precision, values, j, centre):
    """Mean of each value of column j given the rest of its row."""
    p, pivot = precision.shape[0], precision[j, j]
    for i in range(values.shape[0]):
        total = 0.0
        for k in range(p):
            total += precision[j, k] * values[i, k]
        centre[i] = values[i, j] - total / pivot


@inner
def _end(values, j, order, start, stop, sign):
    """Return the largest value of a level, or the smallest with ``sign`` -1."""
    best = sign * values[order[start], j]
    for at in range(start + 1, stop):
        best = max(best, sign * values[order[at], j])
    return sign * best


@kernel
def draw_ordered(rng, precision, values, columns, order, bounds, free, centre):
    """Draw the latent values of some columns once, level by level, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision : (p, p) float64
    values : (n, p) float64, changed in place
        Latent values less the means of their columns.
    columns : (q,) int64
        Columns that are drawn.
    order : (q, n) int64
        Of each of them the rows, those of lower levels first; then the rows whose level is not known; then -1.
    bounds : (q, n + 1) int64
        Where each level begins in the order, and last where the rows without a level begin; then -1.
    free : (q,) bool
        Whether the whole column may be shifted: no value of it is known.
    centre : (n,) float64
        Work space.
    """
    n = values.shape[0]
    for c in range(columns.shape[0]):
        j = columns[c]
        spread = 1.0 / math.sqrt(precision[j, j])
        column_means(precision, values, j, centre)
        levels, known = 0, bounds[c, 0]
        while levels < n and bounds[c, levels + 1] >= 0:
            levels += 1
            known = bounds[c, levels]
        low = -math.inf
        for level in range(levels):
            start, stop = bounds[c, level], bounds[c, level + 1]
            high = math.inf
            if level + 1 < levels:
                high = _end(values, j, order[c], stop, bounds[c, level + 2], -1.0)
            for at in range(start, stop):
                i = order[c, at]
                m = centre[i]
                drawn = normal_between(rng, (low - m) / spread, (high - m) / spread)
                values[i, j] = min(max(m + spread * drawn, low), high)
            low = _end(values, j, order[c], start, stop, 1.0)
        for at in range(known, n):
            i = order[c, at]
            if i < 0:
                break
            values[i, j] = centre[i] + spread * rng.standard_normal()
        if free[c]:
            # The order does not change when all values move by the same amount, whose conditional is normal.
            total = 0.0
            for i in range(n):
                total += centre[i] - values[i, j]
            shift = total / n + spread / math.sqrt(n) * rng.standard_normal()
            for i in range(n):
                values[i, j] += shift


@kernel
def rescale_columns(rng, precision, covariance, values, columns, shapes, variances, rates):
    """Draw the units of some columns of latent values given everything that does not depend on them, in place.

    The order of a column says nothing about its unit: division of column j by s and multiplication of row and column j
    of the precision matrix by it leave the likelihood as it is. With off-diagonal elements that are normal with these variances and
    an exponential diagonal, the conditional distribution of :math:`s^2` along these transformations is gamma with shape
    (p + 1) / 2 (Liu and Sabatti 2000). A G-Wishart matrix with b degrees of freedom and a diagonal scale D has the shape
    (b + number of edges of node j) / 2, infinite variances and the rate :math:`D_{jj} / 2`.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision, covariance : (p, p) float64, changed in place
        ``K`` and its inverse.
    values : (n, p) float64, changed in place
        Latent values less the means of their columns.
    columns : (q,) int64
        Columns of which no value is known.
    shapes : (p,) float64
        Of the gamma distributions.
    variances : (p, p) float64
        Of the off-diagonal elements.
    rates : (p,) float64
        Of the diagonal elements.
    """
    p = precision.shape[0]
    for j in columns:
        total = rates[j] * precision[j, j]
        for k in range(p):
            if k != j:
                total += 0.5 * precision[j, k] * precision[j, k] / variances[j, k]
        s = math.sqrt(rng.standard_gamma(shapes[j]) / total)
        for k in range(p):
            precision[j, k] *= s
            covariance[j, k] /= s
        for k in range(p):
            precision[k, j] *= s
            covariance[k, j] /= s
        for i in range(values.shape[0]):
            values[i, j] /= s
