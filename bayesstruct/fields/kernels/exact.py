r"""Exact sums over all joint states of a pairwise Markov random field.

.. math::

    Z = \sum_x \exp\Bigl( \sum_i u_i(x_i) + \sum_{i<j} t_{ij}(x_i, x_j) \Bigr)

Unary tables come as one vector, pair tables as another, in the layout of
:class:`bayesstruct.fields.kernels.potentials.Potentials` for all pairs. The variables are divided into two
halves A and B. Given the states of A, the log-potentials of all states of B are those of B plus a
function of single variables of B, which is expanded and summed along a tree: each joint state costs an
exponential and a few additions. Rows are scaled by their largest term, so that nothing overflows,
and memory is proportional to the number of states of a half.
"""

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import inner, kernel

__all__ = ["covariance_product", "joint", "log_partition", "marginals"]


@inner
def _cut(states):
    """Return the number of variables in the first half, with about the square root of all joint states."""
    total = 1.0
    for k in states:
        total *= k
    size, cut = 1.0, 0
    while cut < len(states) - 1 and (cut == 0 or size * size < total):
        size *= states[cut]
        cut += 1
    return cut


@inner
def _starts(states):
    p = len(states)
    unary = np.zeros(p + 1, np.int64)
    for i in range(p):
        unary[i + 1] = unary[i] + states[i]
    pair = np.zeros((p, p), np.int64)
    at = 0
    for i in range(p):
        for j in range(i + 1, p):
            pair[i, j] = at
            at += states[i] * states[j]
    return unary, pair


@inner
def _check(states, unary, pair):
    """Raise if the tables are not those of all pairs."""
    of_unary, of_pair = 0, 0
    for k in states:
        of_pair += of_unary * k
        of_unary += k
    if len(unary) != of_unary or len(pair) != of_pair:
        raise ValueError("the tables must contain all variables and all pairs")


@inner
def _digits(states):
    """States of each variable in each joint state, (joint states, variables), C order."""
    p, size = len(states), 1
    for k in states:
        size *= k
    out = np.empty((size, p), np.int64)
    for row in range(size):
        rest = row
        for i in range(p - 1, -1, -1):
            out[row, i] = rest % states[i]
            rest //= states[i]
    return out


@inner
def _energies(digits, first, states, unary, pair, unary_start, pair_start):
    """Log-potentials within a half whose first variable is `first`."""
    out = np.zeros(len(digits))
    for row in range(len(digits)):
        total = 0.0
        for a in range(digits.shape[1]):
            i = first + a
            total += unary[unary_start[i] + digits[row, a]]
            for b in range(a + 1, digits.shape[1]):
                j = first + b
                total += pair[pair_start[i, j] + digits[row, a] * states[j] + digits[row, b]]
        out[row] = total
    return out


@inner
def _field(x, cut, states, pair, unary_start, pair_start, field):
    """Effect of the states of the first half on each state of the second."""
    offset = unary_start[cut]
    for j in range(cut, len(states)):
        for t in range(states[j]):
            total = 0.0
            for i in range(cut):
                total += pair[pair_start[i, j] + x[i] * states[j] + t]
            field[unary_start[j] - offset + t] = total


@inner
def _spread(field, cut, states, row):
    """Sum of a function of single variables for every joint state of the second half."""
    row[0] = 0.0
    size, at = 1, 0
    for j in range(cut, len(states)):
        k = states[j]
        for r in range(size - 1, -1, -1):
            base = row[r]
            for t in range(k):
                row[r * k + t] = base + field[at + t]
        size *= k
        at += k


@inner
def _gather(row, cut, states, work, out):
    """Sum `row` over the joint states in which each variable of the second half has each state."""
    size = len(row)
    at = 0
    for j in range(cut, len(states)):
        at += states[j]
    copy_vector(work, row)
    for j in range(len(states) - 1, cut - 1, -1):
        k = states[j]
        size //= k
        at -= k
        for t in range(k):
            out[at + t] = 0.0
        for r in range(size):
            total = 0.0
            for t in range(k):
                value = work[r * k + t]
                out[at + t] += value
                total += value
            work[r] = total


@inner
def _collect(weights, digits, first, states, unary_start, pair_start, out_unary, out_pair):
    """Add the marginals of a half from the weights of its joint states."""
    for row in range(len(digits)):
        w = weights[row]
        for a in range(digits.shape[1]):
            i = first + a
            out_unary[unary_start[i] + digits[row, a]] += w
            for b in range(a + 1, digits.shape[1]):
                j = first + b
                out_pair[pair_start[i, j] + digits[row, a] * states[j] + digits[row, b]] += w


@kernel
def log_partition(states, unary, pair):
    """Logarithm of the sum over all states.

    Parameters
    ----------
    states : (p,) int64 array
        Numbers of states.
    unary, pair : float64 arrays
        Tables of log-potentials, flat.
    """
    _check(states, unary, pair)
    unary_start, pair_start = _starts(states)
    cut = _cut(states)
    left, right = _digits(states[:cut]), _digits(states[cut:])
    outer = _energies(left, 0, states, unary, pair, unary_start, pair_start)
    inner = _energies(right, cut, states, unary, pair, unary_start, pair_start)
    field = np.empty(unary_start[-1] - unary_start[cut])
    row = np.empty(len(inner))
    top, total = -np.inf, 0.0
    for a in range(len(outer)):
        _field(left[a], cut, states, pair, unary_start, pair_start, field)
        _spread(field, cut, states, row)
        largest = -np.inf
        for b in range(len(row)):
            row[b] += inner[b]
            largest = max(largest, row[b])
        part = 0.0
        for b in range(len(row)):
            part += np.exp(row[b] - largest)
        level = outer[a] + largest
        if level > top:
            total = total * np.exp(top - level) + part
            top = level
        else:
            total += part * np.exp(level - top)
    return top + np.log(total)


@inner
def _sums(states, unary, pair, log_z, direction_unary, direction_pair, centre, out_unary, out_pair):
    """Add the marginals under ``p(x) (d(x) - centre)``, d linear in the tables; or under ``p(x)``.

    Without a direction (empty arrays) the weights are ``p(x)``.
    """
    directed = len(direction_unary) > 0
    unary_start, pair_start = _starts(states)
    cut = _cut(states)
    left, right = _digits(states[:cut]), _digits(states[cut:])
    outer = _energies(left, 0, states, unary, pair, unary_start, pair_start)
    inner = _energies(right, cut, states, unary, pair, unary_start, pair_start)
    width = unary_start[-1] - unary_start[cut]
    field, local = np.empty(width), np.empty(width)
    row, work = np.empty(len(inner)), np.empty(len(inner))
    left_weight, right_weight = np.zeros(len(outer)), np.zeros(len(inner))
    if directed:
        starts = (unary_start, pair_start)
        outer_d = _energies(left, 0, states, direction_unary, direction_pair, *starts)
        inner_d = _energies(right, cut, states, direction_unary, direction_pair, *starts)
        change = np.empty(len(inner))
    else:
        outer_d = inner_d = change = np.zeros(1)
    for a in range(len(outer)):
        _field(left[a], cut, states, pair, unary_start, pair_start, field)
        _spread(field, cut, states, row)
        shift = outer[a] - log_z
        for b in range(len(row)):
            row[b] = np.exp(row[b] + inner[b] + shift)
        if directed:
            _field(left[a], cut, states, direction_pair, unary_start, pair_start, field)
            _spread(field, cut, states, change)
            for b in range(len(row)):
                row[b] *= change[b] + inner_d[b] + outer_d[a] - centre
        total = 0.0
        for b in range(len(row)):
            total += row[b]
            right_weight[b] += row[b]
        left_weight[a] = total
        _gather(row, cut, states, work, local)
        for i in range(cut):
            for j in range(cut, len(states)):
                at = pair_start[i, j] + left[a, i] * states[j]
                origin = unary_start[j] - unary_start[cut]
                for t in range(states[j]):
                    out_pair[at + t] += local[origin + t]
    _collect(left_weight, left, 0, states, unary_start, pair_start, out_unary, out_pair)
    _collect(right_weight, right, cut, states, unary_start, pair_start, out_unary, out_pair)


@kernel
def marginals(states, unary, pair, out_unary, out_pair):
    """Probabilities of each state of each variable and of each pair of states of each pair.

    They are the gradient of `log_partition`.

    Parameters
    ----------
    states, unary, pair
        As in `log_partition`.
    out_unary, out_pair : float64 arrays
        Filled, in the layout of the tables.

    Returns
    -------
    float
        `log_partition`.
    """
    log_z = log_partition(states, unary, pair)
    none = np.empty(0)
    out_unary[:] = 0.0
    out_pair[:] = 0.0
    _sums(states, unary, pair, log_z, none, none, 0.0, out_unary, out_pair)
    return log_z


@kernel
def covariance_product(states, unary, pair, d_unary, d_pair, out_unary, out_pair):
    """Differentiate the marginals in a direction of the tables: their covariance times it."""
    log_z = marginals(states, unary, pair, out_unary, out_pair)
    centre = (out_unary * d_unary).sum() + (out_pair * d_pair).sum()
    out_unary[:] = 0.0
    out_pair[:] = 0.0
    _sums(states, unary, pair, log_z, d_unary, d_pair, centre, out_unary, out_pair)


@kernel
def joint(states, unary, pair):
    """Probability of every joint state, in C order (the first variable moves slowest)."""
    _check(states, unary, pair)
    unary_start, pair_start = _starts(states)
    cut = _cut(states)
    left, right = _digits(states[:cut]), _digits(states[cut:])
    outer = _energies(left, 0, states, unary, pair, unary_start, pair_start)
    inner = _energies(right, cut, states, unary, pair, unary_start, pair_start)
    field = np.empty(unary_start[-1] - unary_start[cut])
    size = len(inner)
    out, top, total = np.empty(len(outer) * size), -np.inf, 0.0
    for a in range(len(outer)):
        _field(left[a], cut, states, pair, unary_start, pair_start, field)
        row = out[a * size : (a + 1) * size]
        _spread(field, cut, states, row)
        for b in range(size):
            row[b] += inner[b] + outer[a]
            top = max(top, row[b])
    for m in range(len(out)):
        out[m] = np.exp(out[m] - top)
        total += out[m]
    for m in range(len(out)):
        out[m] /= total
    return out
