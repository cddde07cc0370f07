"""Gibbs draws of missing states given the rest of their rows, a few of a row together."""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel, numpy_inner

__all__ = ["BLOCK", "draw_missing"]

#: Largest number of joint states that are drawn together: four binary values take 16 evaluations, one by one 8.
BLOCK = 16


@inner
def _logit(x, i, s, states, unary, pair, unary_start, position):
    """Log-potentials of the row that state s of variable i is part of."""
    total = unary[unary_start[i] + s]
    for j in range(len(states)):
        at = position[i, j]
        if j != i and at >= 0:
            cell = s * states[j] + x[j] if i < j else x[j] * states[i] + s
            total += pair[at + cell]
    return total


@inner
def _energy(x, columns, states, unary, pair, unary_start, position):
    """Sum of the log-potentials of a row that depend on some of its columns, which are in order."""
    total = 0.0
    for a in range(len(columns)):
        i = columns[a]
        total += _logit(x, i, x[i], states, unary, pair, unary_start, position)
        for b in range(a):  # the potential of two of the columns is in the logits of both
            j = columns[b]
            if position[i, j] >= 0:
                total -= pair[position[i, j] + x[j] * states[i] + x[i]]
    return total


@inner
def _block(first, rows, columns, states):
    """End of the block of missing values that starts at `first`, and its number of joint states."""
    last, count = first + 1, states[columns[first]]
    while last < len(rows) and rows[last] == rows[first]:
        if count * states[columns[last]] > BLOCK:
            break
        count *= states[columns[last]]
        last += 1
    return last, count


@numpy_inner
def _put(c, x, columns, states):
    """Put joint state c of some columns into their row."""
    for i in columns:
        x[i] = c % states[i]
        c //= states[i]


@inner
def _choose(rng, weights):
    """Draw an index by log weights, whose exponentials take their place."""
    top, norm = weights.max(), 0.0
    for c in range(len(weights)):
        weights[c] = math.exp(weights[c] - top)
        norm += weights[c]
    u = rng.random() * norm
    for c in range(len(weights) - 1):
        u -= weights[c]
        if u < 0.0:
            return c
    return len(weights) - 1


@kernel
def draw_missing(rng, rows, columns, table, states, unary, pair, unary_start, position):
    """Draw missing values from their distribution given the rest of their rows, in place.

    Neighbouring missing values of a row are drawn together if they have `BLOCK` joint states or fewer, so that
    strong interactions between them do not slow the chain down; otherwise one after the other.

    Parameters
    ----------
    rng : numpy.random.Generator
    rows, columns : int64 arrays
        Of the missing values, row by row, columns in order.
    table : (n, p) int64 array, changed
    states : (p,) int64 array
    unary, pair : float64 arrays
        Tables of log-potentials.
    unary_start : (p + 1,) int64 array
    position : (p, p) int64 array
        Where the table of each pair starts, -1 without one; symmetric.
    """
    weights = np.empty(max(BLOCK, states.max()))
    first = 0
    while first < len(rows):
        last, count = _block(first, rows, columns, states)
        x, own = table[rows[first]], columns[first:last]
        for c in range(count):
            _put(c, x, own, states)
            weights[c] = _energy(x, own, states, unary, pair, unary_start, position)
        _put(_choose(rng, weights[:count]), x, own, states)
        first = last
