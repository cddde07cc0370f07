r"""Euclidean projections on balls and cones of norms, and trust regions in a diagonal metric.

Everything here comes down to two scalar equations. The *continuous quadratic knapsack*

.. math:: \sum_i \max(m_i - t, 0) = \text{offset} + \text{slope} \cdot t

has the level :math:`t` of the simplex and of the :math:`\ell_1` ball (slope 0) and of the
:math:`\ell_1` and :math:`\ell_\infty` cones (slope 1); `level_sorting` solves it by sorting and
`level` by selection around random pivots, in expected linear time on any input. The *secular
equation* :math:`\|c / (1 + s k)\|_2 = r` has the multiplier of the trust region.

Functions with rows work on C-contiguous float64 arrays of shape (n, p), one problem a row, and
write to ``out``, which may be the input.
"""

import math

import numpy as np

from bayesstruct.core.jit import numpy_inner, numpy_kernel

_MAX_NEWTON = 200


@numpy_kernel
def level(values, offset, slope):
    """Solve the knapsack equation in expected linear time; ``values`` are permuted.

    Brucker (1984), Duchi, Shalev-Shwartz, Singer, Chandra (2008, fig. 2) with all ties of a pivot
    taken at once, so that equal values do not make it quadratic.

    Parameters
    ----------
    values : (p,) numpy.ndarray
        The :math:`m_i`, of any sign.
    offset : float
        Not negative when ``slope`` is 0.
    slope : int
        0 or 1.

    Returns
    -------
    float
        The level t; the largest value when ``offset`` and ``slope`` are both 0.
    """
    low, high = 0, values.shape[0]
    total, count, pivot = 0.0, slope, 0.0
    state = 12345
    while low < high:
        state = (1103515245 * state + 12345) & 0x7FFFFFFF
        pivot = values[low + state % (high - low)]
        # Larger ones move to [low, a), smaller ones to [b, high), ties stay in [a, b).
        a, b, i, above = low, high, low, 0.0
        while i < b:
            value = values[i]
            if value > pivot:
                above += value
                values[i] = values[a]
                values[a] = value
                a += 1
                i += 1
            elif value < pivot:
                b -= 1
                values[i] = values[b]
                values[b] = value
            else:
                i += 1
        if total + above - (count + a - low) * pivot < offset:
            total += above + (b - a) * pivot
            count += b - low
            low = b
        else:
            high = a
    if count == 0:
        return pivot  # the largest value: nothing was above it
    return (total - offset) / count


@numpy_kernel
def level_sorting(values, offset, slope):
    """Solve the knapsack equation by sorting, as `level`; ``values`` come back sorted."""
    values.sort()
    p = values.shape[0]
    total = 0.0
    for k in range(p + 1):
        if k > 0:
            total += values[p - k]
        if k + slope > 0:
            t = (total - offset) / (k + slope)
            if k == p or t >= values[p - k - 1]:
                return t
    return 0.0


@numpy_kernel
def weighted_level(values, weights, offset, index):
    r"""Solve :math:`\sum_i a_i \max(m_i - t a_i, 0) = \text{offset}` in expected linear time.

    Parameters
    ----------
    values, weights : (p,) numpy.ndarray
        :math:`m_i` and :math:`a_i`, not negative; entries of zero weight are ignored.
    offset : float
        Positive, and less than :math:`\sum_i a_i m_i`.
    index : (p,) numpy.ndarray of int
        Scratch.
    """
    high = 0
    for i in range(values.shape[0]):
        if weights[i] > 0.0:
            index[high] = i
            high += 1
    low = 0
    total, square = 0.0, 0.0
    state = 12345
    while low < high:
        state = (1103515245 * state + 12345) & 0x7FFFFFFF
        i = index[low + state % (high - low)]
        pivot = values[i] / weights[i]
        a, b, k = low, high, low
        above, above_square, tied, tied_square = 0.0, 0.0, 0.0, 0.0
        while k < b:
            i = index[k]
            ratio = values[i] / weights[i]
            if ratio > pivot:
                above += weights[i] * values[i]
                above_square += weights[i] * weights[i]
                index[k] = index[a]
                index[a] = i
                a += 1
                k += 1
            elif ratio < pivot:
                b -= 1
                index[k] = index[b]
                index[b] = i
            else:
                tied += weights[i] * values[i]
                tied_square += weights[i] * weights[i]
                k += 1
        if total + above - (square + above_square) * pivot < offset:
            total += above + tied
            square += above_square + tied_square
            low = b
        else:
            high = a
    return (total - offset) / square


@numpy_kernel
def weighted_level_sorting(values, weights, offset):
    """Solve the equation of `weighted_level` by sorting the ratios."""
    ratios = np.empty_like(values)
    for i in range(values.shape[0]):
        ratios[i] = -values[i] / weights[i] if weights[i] > 0.0 else math.inf
    total, square, t = 0.0, 0.0, 0.0
    for i in np.argsort(ratios):
        if weights[i] == 0.0 or (square > 0.0 and t >= -ratios[i]):
            break
        total += weights[i] * values[i]
        square += weights[i] * weights[i]
        t = (total - offset) / square
    return t


@numpy_inner
def _sizes(v, out):
    """Absolute values into ``out``; return their sum."""
    total = 0.0
    for i in range(v.shape[0]):
        out[i] = abs(v[i])
        total += out[i]
    return total


@numpy_inner
def _length(v):
    square = 0.0
    for i in range(v.shape[0]):
        square += v[i] * v[i]
    return math.sqrt(square)


@numpy_inner
def _shrink(v, t, out):
    for i in range(v.shape[0]):
        x = v[i]
        out[i] = x - t if x > t else (x + t if x < -t else 0.0)


@numpy_inner
def _shrink_weighted(v, t, weights, out):
    for i in range(v.shape[0]):
        out[i] = math.copysign(max(abs(v[i]) - t * weights[i], 0.0), v[i])


@numpy_kernel
def simplex(v, total, out, work):
    """Project rows on ``{x >= 0, sum x = total}``, total positive, in expected linear time.

    ``work`` has shape (p,).
    """
    for r in range(v.shape[0]):
        for i in range(v.shape[1]):
            work[i] = v[r, i]
        t = level(work, total, 0)
        for i in range(v.shape[1]):
            out[r, i] = max(v[r, i] - t, 0.0)


@numpy_kernel
def simplex_sorting(v, total, out, work):
    """Project rows on a simplex as `simplex`, by sorting."""
    for r in range(v.shape[0]):
        for i in range(v.shape[1]):
            work[i] = v[r, i]
        t = level_sorting(work, total, 0)
        for i in range(v.shape[1]):
            out[r, i] = max(v[r, i] - t, 0.0)


@numpy_kernel
def l1_ball(v, radius, out, work):
    """Project rows on ``{sum |x_i| <= radius}`` in expected linear time; ``work`` is (p,)."""
    for r in range(v.shape[0]):
        total = _sizes(v[r], work)
        _shrink(v[r], level(work, radius, 0) if total > radius else 0.0, out[r])


@numpy_kernel
def l1_ball_sorting(v, radius, out, work):
    """Project rows on an l1 ball as `l1_ball`, by sorting."""
    for r in range(v.shape[0]):
        total = _sizes(v[r], work)
        _shrink(v[r], level_sorting(work, radius, 0) if total > radius else 0.0, out[r])


@numpy_kernel
def weighted_l1_ball(v, weights, radius, out, work, index):
    """Project rows on ``{sum a_i |x_i| <= radius}``; entries of zero weight are kept.

    Duchi, Hazan, Singer (2011, fig. 3), whose first test has to be ``sum a_i v_i <= radius``, by
    selection instead of sorting. ``work`` and the integer ``index`` have shape (p,).
    """
    for r in range(v.shape[0]):
        _sizes(v[r], work)
        total, t = 0.0, 0.0
        for i in range(v.shape[1]):
            total += weights[i] * work[i]
        if total > radius:
            t = weighted_level(work, weights, radius, index)
        _shrink_weighted(v[r], t, weights, out[r])


@numpy_kernel
def weighted_l1_ball_sorting(v, weights, radius, out, work):
    """Project rows on a weighted l1 ball as `weighted_l1_ball`, by sorting."""
    for r in range(v.shape[0]):
        _sizes(v[r], work)
        total, t = 0.0, 0.0
        for i in range(v.shape[1]):
            total += weights[i] * work[i]
        if total > radius:
            t = weighted_level_sorting(work, weights, radius)
        _shrink_weighted(v[r], t, weights, out[r])


@numpy_kernel
def l2_ball(v, radius, out):
    """Project rows on ``{|x|_2 <= radius}``."""
    for r in range(v.shape[0]):
        norm = _length(v[r])
        scale = radius / norm if norm > radius else 1.0
        for i in range(v.shape[1]):
            out[r, i] = scale * v[r, i]


@numpy_kernel
def linf_ball(v, radius, out):
    """Project rows on ``{max |x_i| <= radius}``."""
    for r in range(v.shape[0]):
        for i in range(v.shape[1]):
            out[r, i] = min(max(v[r, i], -radius), radius)


@numpy_kernel
def l2_cone(x, g, out, height):
    """Project each ``(x_r, g_r)`` on ``{|x|_2 <= g}``; Schmidt (2010, B.5).

    ``x`` and ``out`` are (n, p), ``g`` and ``height`` are (n,).
    """
    for r in range(x.shape[0]):
        norm = _length(x[r])
        h = g[r] if norm <= g[r] else max(0.5 * (norm + g[r]), 0.0)
        scale = 1.0 if norm <= g[r] else h / max(norm, np.finfo(np.float64).tiny)
        for i in range(x.shape[1]):
            out[r, i] = scale * x[r, i]
        height[r] = h


@numpy_kernel
def linf_cone(x, g, out, height, work):
    """Project each ``(x_r, g_r)`` on ``{max |x_i| <= g}``; ``work`` is (p,).

    Schmidt (2010, algorithm 20), which prints the inequality of its acceptance test the wrong way
    round, by selection instead of sorting.
    """
    for r in range(x.shape[0]):
        _sizes(x[r], work)
        # Inside the cone nothing exceeds the level, which then is g.
        h = max(level(work, -g[r], 1), 0.0)
        for i in range(x.shape[1]):
            out[r, i] = min(max(x[r, i], -h), h)
        height[r] = h


@numpy_kernel
def l1_cone(x, g, out, height, work):
    """Project each ``(x_r, g_r)`` on ``{sum |x_i| <= g}``; ``work`` is (p,).

    Schmidt (2010, B.10): ``x`` is shrunk by the level that ``g`` is raised by.
    """
    for r in range(x.shape[0]):
        _sizes(x[r], work)
        t = max(level(work, g[r], 1), 0.0)
        _shrink(x[r], t, out[r])
        height[r] = g[r] + t


@numpy_inner
def shrink_singular_values(U, values, V, t, block, out):
    """Take t off the singular values of a block; the block itself for t = 0."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            out[i, j] = block[i, j] if t == 0.0 else 0.0
    if t > 0.0:
        for k in range(values.shape[0]):
            size = max(values[k] - t, 0.0)
            for i in range(block.shape[0] if size > 0.0 else 0):
                for j in range(block.shape[1]):
                    out[i, j] += size * U[i, k] * V[k, j]


@numpy_kernel
def nuclear_ball(blocks, radius, out):
    """Project matrices (n, a, b) on ``{sum of singular values <= radius}``."""
    for r in range(blocks.shape[0]):
        U, values, V = np.linalg.svd(blocks[r], False)
        work = np.empty_like(values)
        total = _sizes(values, work)
        t = level(work, radius, 0) if total > radius else 0.0
        shrink_singular_values(U, values, V, t, blocks[r], out[r])


@numpy_kernel
def nuclear_cone(blocks, g, out, height):
    """Project each ``(X_r, g_r)`` on ``{sum of singular values <= g}``; Schmidt (2010, B.14)."""
    for r in range(blocks.shape[0]):
        U, values, V = np.linalg.svd(blocks[r], False)
        t = max(level(values.copy(), g[r], 1), 0.0)
        shrink_singular_values(U, values, V, t, blocks[r], out[r])
        height[r] = g[r] + t


@numpy_kernel
def secular_root(c, k, radius):
    r"""Root s of :math:`\|c / (1 + s k)\|_2 = r`, to rounding; 0 when :math:`\|c\|_2 \le r`.

    Newton's method on :math:`1 / \|c / (1 + s k)\|`, which is concave and increasing, so that the
    iterates from the left increase to the root; Moré, Sorensen (1983, section 3). The bracket
    comes from the extremes of k (Duchi, Hazan, Singer 2011, fig. 4, corrected), and the middle of
    it replaces a step that rounding throws out.

    Parameters
    ----------
    c, k : (p,) numpy.ndarray
        k is not negative, and positive where c is not zero.
    radius : float
        Positive.
    """
    norm, least, most = 0.0, math.inf, 0.0
    for i in range(c.shape[0]):
        if c[i] != 0.0:
            norm += c[i] * c[i]
            least, most = min(least, k[i]), max(most, k[i])
    norm = math.sqrt(norm)
    if norm <= radius:
        return 0.0
    low, high = (norm / radius - 1.0) / most, (norm / radius - 1.0) / least
    s = low
    for _ in range(_MAX_NEWTON):
        square, slope = 0.0, 0.0
        for i in range(c.shape[0]):
            if c[i] != 0.0:
                factor = 1.0 / (1.0 + s * k[i])
                term = c[i] * c[i] * factor * factor
                square += term
                slope += term * k[i] * factor
        excess = math.sqrt(square) / radius - 1.0
        if excess > 0.0:
            low = max(low, s)
        else:
            high = min(high, s)
        new = s + excess * square / slope
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if abs(new - s) <= 2e-16 * s:
            break
        s = new
    return s


@numpy_kernel
def trust_region(v, metric, radius, out):
    r"""Minimise :math:`\tfrac12 \sum_i h_i (x_i - v_i)^2` over :math:`\|x\|_2 \le r`, row by row.

    ``metric`` is h, (p,) and positive. ``x = v / (1 + s / h)`` with the root of `secular_root`; the
    diagonal case of Schmidt (2010, section 3.4), who stops after ten Newton steps.
    """
    k = np.empty_like(metric)
    for i in range(k.shape[0]):
        k[i] = 1.0 / metric[i]
    for r in range(v.shape[0]):
        s = secular_root(v[r], k, radius) if radius > 0.0 else math.inf
        for i in range(v.shape[1]):
            out[r, i] = v[r, i] / (1.0 + s * k[i])


@numpy_kernel
def l2_norm_in_metric(v, metric, threshold, out, work):
    r"""Minimise :math:`\tfrac12 \sum_i h_i (x_i - v_i)^2 + \lambda \|x\|_2`, row by row.

    The dual is a trust region of radius :math:`\lambda` for :math:`u = h (v - x)` in the metric
    :math:`1/h`, and :math:`x = s u` with its multiplier s. Entries with :math:`h_i = 0` are 0;
    ``work`` is (p,).
    """
    for r in range(v.shape[0]):
        for i in range(v.shape[1]):
            work[i] = metric[i] * v[r, i]
        s = secular_root(work, metric, threshold) if threshold > 0.0 else 0.0
        for i in range(v.shape[1]):
            shrunk = s * work[i] / (1.0 + s * metric[i])
            out[r, i] = shrunk if threshold > 0.0 else v[r, i]
