"""Gibbs draws of missing states given the rest of their rows."""

import math

import numba
import numpy as np

__all__ = ["draw_missing"]


@numba.njit(cache=True, nogil=True)
def _log_conditional(x, i, states, unary, pair, unary_start, position):
    """Log probability of the state of one variable given the rest of its row, and its logits."""
    k = states[i]
    top, own = -np.inf, 0.0
    logits = np.empty(k)
    for s in range(k):
        total = unary[unary_start[i] + s]
        for j in range(len(states)):
            if j == i:
                continue
            at = position[i, j]
            if at >= 0:
                cell = s * states[j] + x[j] if i < j else x[j] * k + s
                total += pair[at + cell]
        logits[s] = total
        top = max(top, total)
        if s == x[i]:
            own = total
    norm = 0.0
    for s in range(k):
        norm += math.exp(logits[s] - top)
    return own - top - math.log(norm)


@numba.njit(cache=True, nogil=True)
def draw_missing(rng, exact, rows, columns, table, states, unary, pair, unary_start, position):
    """Draw missing cells one by one, in place.

    Under the likelihood the law of a cell is its conditional. Under the pseudo-likelihood the cell is
    a condition of all others of its row too, so that its law is proportional to the product of all
    conditional probabilities of the row.

    Parameters
    ----------
    rng : numpy.random.Generator
    exact : bool
    rows, columns : int64 arrays
        Of the missing cells.
    table : (n, p) int64 array, changed
    states : (p,) int64 array
    unary, pair : float64 arrays
        Tables of log-potentials.
    unary_start : (p + 1,) int64 array
    position : (p, p) int64 array
        Where the table of each pair starts, -1 without one; symmetric.
    """
    p = len(states)
    widest = 0
    for k in states:
        widest = max(widest, k)
    logits = np.empty(widest)
    for c in range(len(rows)):
        x, i = table[rows[c]], columns[c]
        top = -np.inf
        for s in range(states[i]):
            x[i] = s
            total = _log_conditional(x, i, states, unary, pair, unary_start, position)
            if not exact:
                for j in range(p):
                    if j != i and position[i, j] >= 0:
                        total += _log_conditional(x, j, states, unary, pair, unary_start, position)
            logits[s] = total
            top = max(top, total)
        norm = 0.0
        for s in range(states[i]):
            logits[s] = math.exp(logits[s] - top)
            norm += logits[s]
        u = rng.random() * norm
        chosen = states[i] - 1
        for s in range(states[i] - 1):
            u -= logits[s]
            if u < 0.0:
                chosen = s
                break
        x[i] = chosen
