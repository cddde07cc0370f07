r"""Gibbs sweeps and prior draws of a precision matrix with nuclear norms of the blocks between groups of columns in its prior.

.. math::

    p(K) \propto \prod_{i<j} e^{-\lambda_{ij} |k_{ij}|} \prod_i e^{-d k_{ii}}
        \prod_{a<b} e^{-\tau_{ab} \|K_{ab}\|_*} \; 1\{K \succ 0\}

No mixture of normal densities has this form: trace norms of matrices of two rows and columns or more are not those of a
subspace of L1. But one element, given all others, has a log-concave density. It is drawn by rejection: tangents of the convex norm bound
it from below, what is between them is a normal density with breaks, and a refused proposal adds its tangent (Gilks and Wild
1992, with the normal factor kept). The rest is as in :mod:`bayesstruct.precision.kernels.gibbs`.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.gibbs import close_column, open_column, shift_column
from bayesstruct.precision.kernels.piecewise import piecewise_normal

SWEEPS = 100  # without data
TANGENTS = 12
_AT, _VALUE, _SLOPE = 0, 1, 2


@inner
def _turn(block, rotation, a, b):
    """Rotate two rows until they are orthogonal; return whether they were not."""
    one = two = both = 0.0
    for c in range(block.shape[1]):
        one += block[a, c] * block[a, c]
        two += block[b, c] * block[b, c]
        both += block[a, c] * block[b, c]
    if abs(both) <= 1e-15 * math.sqrt(one * two) or both == 0.0:
        return False
    zeta = 0.5 * (two - one) / both
    t = math.copysign(1.0, zeta) / (abs(zeta) + math.hypot(1.0, zeta))
    cosine = 1.0 / math.hypot(1.0, t)
    sine = cosine * t
    for c in range(block.shape[1]):
        x, y = block[a, c], block[b, c]
        block[a, c], block[b, c] = cosine * x - sine * y, sine * x + cosine * y
    for c in range(rotation.shape[1]):
        x, y = rotation[a, c], rotation[b, c]
        rotation[a, c], rotation[b, c] = cosine * x - sine * y, sine * x + cosine * y
    return True


@kernel
def nuclear_norm(block, rotation, values):
    """Nuclear norm of a matrix with no more rows than columns, by rotations of its rows (Hestenes 1958).

    Parameters
    ----------
    block : (k, m) float64, changed in place
        Becomes ``rotation @ block``, whose rows are orthogonal.
    rotation : (k, k) float64, written
    values : (k,) float64, written
        Singular values, in no order.
    """
    k = block.shape[0]
    for a in range(k):
        for b in range(k):
            rotation[a, b] = a == b
    for _ in range(40):
        turned = False
        for a in range(k - 1):
            for b in range(a + 1, k):
                turned |= _turn(block, rotation, a, b)
        if not turned:
            break
    total = 0.0
    for a in range(k):
        square = 0.0
        for c in range(block.shape[1]):
            square += block[a, c] * block[a, c]
        values[a] = math.sqrt(square)
        total += values[a]
    return total


@inner
def _slope(block, rotation, values, total, r, c):
    """Return the derivative of the nuclear norm in the element (r, c), after `nuclear_norm`; a subgradient where there is none."""
    slope = 0.0
    for a in range(block.shape[0]):
        if values[a] > 1e-14 * total:
            slope += rotation[a, r] * block[a, c] / values[a]
    return slope


@kernel
def block_layout(labels):
    """Columns in the order of their blocks, the start of each block in it, and the place of each column in its block."""
    p, count = len(labels), labels.max() + 1
    start = np.zeros(count + 1, np.int64)
    for i in range(p):
        start[labels[i] + 1] += 1
    start = np.cumsum(start)
    used, order, place = np.zeros(count, np.int64), np.empty(p, np.int64), np.empty(p, np.int64)
    for i in range(p):
        place[i] = used[labels[i]]
        order[start[labels[i]] + place[i]] = i
        used[labels[i]] += 1
    return order, start, place


@inner
def _tangent(precision, small, large, r, c, u, rate, work, space):
    """Value and slope of the penalty of a block whose element (r, c) is u; small and large are its columns."""
    k, m = len(small), len(large)
    block, rotation = work[0, :k, :m], work[1, :k, :k]
    for a in range(k):
        for b in range(m):
            block[a, b] = precision[small[a], large[b]]
    block[r, c] = u
    values = space[:k]
    total = nuclear_norm(block, rotation, values)
    return rate * total, rate * _slope(block, rotation, values, total, r, c)


@inner
def _insert(tangents, count, u, value, slope):
    """Add a tangent in the order of its place; return the number of them."""
    at = count
    while at > 0 and tangents[_AT, at - 1] > u:
        for row in range(3):
            tangents[row, at] = tangents[row, at - 1]
        at -= 1
    tangents[_AT, at], tangents[_VALUE, at], tangents[_SLOPE, at] = u, value, slope
    return count + 1


@inner
def _breaks(tangents, count, knots):
    """Write where the tangents meet and half of the changes of the slope; return the mean of the first and last slope."""
    for m in range(count - 1):
        low, high = tangents[_AT, m], tangents[_AT, m + 1]
        change = max(tangents[_SLOPE, m + 1] - tangents[_SLOPE, m], 0.0)
        point = 0.5 * (low + high)
        if change > 1e-12:
            point = tangents[_VALUE, m] - tangents[_SLOPE, m] * low
            point += tangents[_SLOPE, m + 1] * high - tangents[_VALUE, m + 1]
            point = min(max(point / change, low), high)
        knots[0, m], knots[1, m] = point, 0.5 * change
    return 0.5 * (tangents[_SLOPE, 0] + tangents[_SLOPE, count - 1])


@inner
def _bound(tangents, count, u):
    largest = -math.inf
    for m in range(count):
        value = tangents[_VALUE, m] + tangents[_SLOPE, m] * (u - tangents[_AT, m])
        largest = max(largest, value)
    return largest


@kernel
def draw_block_element(
    rng, precision, small, large, r, c, b, h, entry_rate, rate, work, space, tangents, knots
):
    """Draw the element (r, c) of a block from ``exp(b u - h u^2 / 2 - entry_rate |u| - rate * nuclear norm)``.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision : (p, p) float64
    small, large : (k,) and (m,) int64
        Rows and columns of the block, k <= m.
    r, c : int
    b, h, entry_rate, rate : float
    work : (2, p, p) float64
        Work space.
    space : (p,) float64
        Work space.
    tangents : (3, TANGENTS) float64
        Work space.
    knots : (3, TANGENTS + 2) float64
        Work space.
    """
    u = precision[small[r], large[c]]
    value, slope = _tangent(precision, small, large, r, c, u, rate, work, space)
    count = _insert(tangents, 0, u, value, slope)
    while True:
        middle = _breaks(tangents, count, knots)
        knots[0, count - 1], knots[1, count - 1] = 0.0, entry_rate
        u = piecewise_normal(rng, b - middle, h, knots[0], knots[1], count, knots[2])
        value, slope = _tangent(precision, small, large, r, c, u, rate, work, space)
        if rng.random() < math.exp(min(_bound(tangents, count, u) - value, 0.0)):
            return u
        if count < TANGENTS:
            count = _insert(tangents, count, u, value, slope)


@kernel
def nuclear_sweep(
    rng,
    precision,
    covariance,
    scatter,
    n,
    rates,
    labels,
    layout,
    block_rates,
    rate,
    columns,
    work,
    tangents,
    knots,
):
    """Update every column of K under the prior of this module, once.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision, covariance : (p, p) float64, changed in place
        ``K`` and its inverse.
    scatter : (p, p) float64
        Sum of outer products of the rows about their mean.
    n : float
        Number of rows.
    rates : (p, p) float64
        Rates of the absolute values.
    labels : (p,) int64
        Block of each column.
    layout : tuple of int64 arrays
        Of `block_layout`.
    block_rates : (blocks, blocks) float64
        Rates of the nuclear norms, symmetric; the diagonal is not used.
    rate : float
        Rate of the exponential prior of the diagonal.
    columns : (3, p) float64
        Work space.
    work : (2, p, p) float64
        Work space.
    tangents : (3, TANGENTS) float64
        Work space.
    knots : (3, TANGENTS + 2) float64
        Work space.
    """
    p = precision.shape[0]
    order, start, place = layout
    column, product, space = columns[0], columns[1], columns[2]
    for j in range(p):
        pivot = open_column(covariance, j, column, product)
        a = scatter[j, j] + 2.0 * rate
        for i in range(p):
            if i == j:
                continue
            ratio = column[i] / pivot
            h = a * (covariance[i, i] - ratio * column[i])
            old = precision[j, i]
            b = h * old - a * product[i] - scatter[j, i]
            if labels[i] == labels[j]:
                knots[0, 0], knots[1, 0] = 0.0, rates[j, i]
                new = piecewise_normal(rng, b, h, knots[0], knots[1], 1, knots[2])
            else:
                s, t = j, i
                if (
                    start[labels[s] + 1] - start[labels[s]]
                    > start[labels[t] + 1] - start[labels[t]]
                ):
                    s, t = i, j
                small = order[start[labels[s]] : start[labels[s] + 1]]
                large = order[start[labels[t]] : start[labels[t] + 1]]
                own = rates[j, i], block_rates[labels[j], labels[i]]
                where = small, large, place[s], place[t]
                new = draw_block_element(
                    rng, precision, *where, b, h, *own, work, space, tangents, knots
                )
            shift_column(covariance, column, product, i, new - old, ratio)
            precision[j, i] = new
            precision[i, j] = new
        v = rng.standard_gamma(0.5 * n + 1.0) * 2.0 / a
        close_column(precision, covariance, j, v, column, product, pivot)


@kernel
def draw_nuclear(rng, rates, labels, block_rates, rate):
    """Draw a precision matrix from the prior of this module (p, p), by sweeps without data from a diagonal start."""
    return sweep_nuclear_prior(rng, rates, labels, block_rates, rate, 1.0, 1)[0]


@kernel
def sweep_nuclear_prior(rng, rates, labels, block_rates, rate, bound, sweeps):
    """Last matrix of a run without data, and the share of each partial correlation beyond ``bound`` after the first sweeps."""
    p = rates.shape[0]
    precision, covariance, nothing = np.eye(p), np.eye(p), np.zeros((p, p))
    beyond, layout = np.zeros((p, p)), block_layout(labels)
    prior = (rates, labels, layout, block_rates, rate)
    columns, work = np.empty((3, p)), np.empty((2, p, p))
    tangents, knots = np.empty((3, TANGENTS)), np.empty((3, TANGENTS + 2))
    for t in range(SWEEPS + sweeps):
        nuclear_sweep(
            rng, precision, covariance, nothing, 0.0, *prior, columns, work, tangents, knots
        )
        if t >= SWEEPS:
            for i in range(p):
                for j in range(i):
                    scale = precision[i, i] * precision[j, j]
                    beyond[i, j] += precision[i, j] ** 2 > bound * bound * scale
    return precision, (beyond + beyond.T) / sweeps


@inner
def _block(precision, rows, columns, block):
    """Copy a block with its shorter side first; return whether it was transposed."""
    across = len(rows) > len(columns)
    for a in range(len(rows)):
        for b in range(len(columns)):
            value = precision[rows[a], columns[b]]
            if across:
                block[b, a] = value
            else:
                block[a, b] = value
    return across


@kernel
def block_norms(precision, labels, rates):
    """Nuclear norms of the blocks in both orders times their rates (blocks, blocks), zero on the diagonal."""
    p, count = precision.shape[0], rates.shape[0]
    order, start, _ = block_layout(labels.astype(np.int64))
    out, values = np.zeros((count, count)), np.empty(p)
    work, rotation = np.empty((p, p)), np.empty((p, p))
    for x in range(count):
        for y in range(count):
            rows, columns = order[start[x] : start[x + 1]], order[start[y] : start[y + 1]]
            k, m = min(len(rows), len(columns)), max(len(rows), len(columns))
            if x != y and rates[x, y] > 0.0:
                _block(precision, rows, columns, work)
                norm = nuclear_norm(work[:k, :m], rotation[:k, :k], values[:k])
                out[x, y] = rates[x, y] * norm
    return out


@kernel
def block_slopes(precision, labels, weights):
    """Return the derivative of the sum of the nuclear norms of all blocks times their weights (p, p)."""
    p, count = precision.shape[0], weights.shape[0]
    order, start, _ = block_layout(labels.astype(np.int64))
    out, values = np.zeros((p, p)), np.empty(p)
    work, rotation = np.empty((p, p)), np.empty((p, p))
    for x in range(count):
        for y in range(count):
            rows, columns = order[start[x] : start[x + 1]], order[start[y] : start[y + 1]]
            k, m = min(len(rows), len(columns)), max(len(rows), len(columns))
            if x == y or weights[x, y] == 0.0:
                continue
            across = _block(precision, rows, columns, work)
            block, turned, own = work[:k, :m], rotation[:k, :k], values[:k]
            total = nuclear_norm(block, turned, own)
            for r in range(len(rows)):
                for c in range(len(columns)):
                    a, b = (c, r) if across else (r, c)
                    slope = _slope(block, turned, own, total, a, b)
                    out[rows[r], columns[c]] = weights[x, y] * slope
    return out
