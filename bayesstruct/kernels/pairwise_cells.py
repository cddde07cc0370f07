"""Gibbs draws of missing states given the rest of their rows, a few of a row together."""

import math

import numba
import numpy as np

__all__ = ["BLOCK", "draw_missing"]

#: Joint states of cells of a row that are drawn together: four cells of two states take 16 evaluations, one by one 8.
BLOCK = 16


@numba.njit(cache=True, nogil=True)
def _logit(x, i, s, states, unary, pair, unary_start, position):
    """Log-potentials of the row that state s of variable i is part of."""
    total = unary[unary_start[i] + s]
    for j in range(len(states)):
        at = position[i, j]
        if j != i and at >= 0:
            cell = s * states[j] + x[j] if i < j else x[j] * states[i] + s
            total += pair[at + cell]
    return total


@numba.njit(cache=True, nogil=True)
def _fill_logits(x, states, unary, pair, unary_start, position, logits):
    """Logits of all states of all variables given the rest of a row, (p, states)."""
    for i in range(len(states)):
        for s in range(states[i]):
            logits[i, s] = _logit(x, i, s, states, unary, pair, unary_start, position)


@numba.njit(cache=True, nogil=True)
def _move(x, i, t, states, pair, position, logits):
    """Give variable i the state t, and bring the logits of the others up to date."""
    s = x[i]
    if s == t:
        return
    for j in range(len(states)):
        at = position[i, j]
        if j == i or at < 0:
            continue
        for r in range(states[j]):
            if i < j:
                logits[j, r] += pair[at + t * states[j] + r] - pair[at + s * states[j] + r]
            else:
                logits[j, r] += pair[at + r * states[i] + t] - pair[at + r * states[i] + s]
    x[i] = t


@numba.njit(cache=True, nogil=True)
def _log_probability(logits, k, state):
    """Log probability of a state of a variable, from the logits of its k states."""
    best = 0
    for s in range(1, k):
        if logits[s] > logits[best]:
            best = s
    norm = 1.0
    for s in range(k):
        if s != best:
            norm += math.exp(logits[s] - logits[best])
    return logits[state] - logits[best] - math.log(norm)


@numba.njit(cache=True, nogil=True)
def _is_touched(j, cells, position):
    """Whether the conditional law of a variable depends on these cells of its row."""
    for i in cells:
        if i == j or position[i, j] >= 0:
            return True
    return False


@numba.njit(cache=True, nogil=True)
def _log_pseudo(x, cells, states, position, logits):
    """Log of all conditional probabilities of a row that depend on some of its cells."""
    total = 0.0
    for j in range(len(states)):
        if _is_touched(j, cells, position):
            total += _log_probability(logits[j], states[j], x[j])
    return total


@numba.njit(cache=True, nogil=True)
def _energy(x, cells, states, unary, pair, unary_start, position):
    """Sum of the log-potentials of a row that depend on some of its cells; these are in order."""
    total = 0.0
    for a in range(len(cells)):
        i = cells[a]
        total += _logit(x, i, x[i], states, unary, pair, unary_start, position)
        for b in range(a):  # the potential of two of the cells is in the logits of both
            j = cells[b]
            if position[i, j] >= 0:
                total -= pair[position[i, j] + x[j] * states[i] + x[i]]
    return total


@numba.njit(cache=True, nogil=True)
def _block(first, rows, columns, states):
    """End of the block of cells that starts at `first`, and its number of joint states."""
    last, count = first + 1, states[columns[first]]
    while last < len(rows) and rows[last] == rows[first]:
        if count * states[columns[last]] > BLOCK:
            break
        count *= states[columns[last]]
        last += 1
    return last, count


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _put(c, exact, x, cells, states, pair, position, logits):
    """Put joint state c of some cells into their row; under the pseudo-likelihood logits follow."""
    for i in cells:
        if exact:
            x[i] = c % states[i]
        else:
            _move(x, i, c % states[i], states, pair, position, logits)
        c //= states[i]


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True)
def draw_missing(rng, exact, rows, columns, table, states, unary, pair, unary_start, position):
    """Draw missing cells, in place.

    Neighbouring cells of a row are drawn together if they have `BLOCK` joint states or fewer, so that
    strong interactions between them do not slow the chain down; otherwise one after the other.

    Under the likelihood the law of cells is their conditional. Under the pseudo-likelihood a cell is
    a condition of all others of its row too, so that its law is proportional to the product of all
    conditional probabilities of the row.

    Parameters
    ----------
    rng : numpy.random.Generator
    exact : bool
    rows, columns : int64 arrays
        Of the missing cells, row by row, columns in order.
    table : (n, p) int64 array, changed
    states : (p,) int64 array
    unary, pair : float64 arrays
        Tables of log-potentials.
    unary_start : (p + 1,) int64 array
    position : (p, p) int64 array
        Where the table of each pair starts, -1 without one; symmetric.
    """
    weights = np.empty(max(BLOCK, states.max()))
    logits = np.empty((len(states), states.max()))
    first, row = 0, -1
    while first < len(rows):
        last, count = _block(first, rows, columns, states)
        x, cells = table[rows[first]], columns[first:last]
        if not exact and rows[first] != row:
            row = rows[first]
            _fill_logits(x, states, unary, pair, unary_start, position, logits)
        for c in range(count):
            _put(c, exact, x, cells, states, pair, position, logits)
            if exact:
                weights[c] = _energy(x, cells, states, unary, pair, unary_start, position)
            else:
                weights[c] = _log_pseudo(x, cells, states, position, logits)
        chosen = _choose(rng, weights[:count])
        _put(chosen, exact, x, cells, states, pair, position, logits)
        first = last
