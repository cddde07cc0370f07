"""Conditional probabilities of each variable in each row of a table, and counts of its states."""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = ["condition", "count_pairs"]


@kernel
def condition(rows, start, unary, pair, pair_start, source, target, logs, probability, lowest):
    """Conditional distribution of each variable given the others, in each row.

    Parameters
    ----------
    rows : (p or more, rows) int16
    start : (p + 1,) int64
        Where the states of each variable start.
    unary, pair : float64
        Tables of log-potentials.
    pair_start : (edges + 1,) int64
    source, target : (edges,) int64
    logs : (states, rows) float64, written
        Log-potentials.
    probability : (states, rows) float64, written
    lowest : (p,) float64, written
        Smallest log probability of each variable.
    """
    for c in range(logs.shape[0]):
        logs[c] = unary[c]
    for e in range(source.shape[0]):
        i, j = source[e], target[e]
        table = pair[pair_start[e] : pair_start[e + 1]]
        if table.any():
            _add_table(rows[j], table, logs[start[i] : start[i + 1]], True)
            _add_table(rows[i], table, logs[start[j] : start[j + 1]], False)
    for i in range(lowest.shape[0]):
        at, end = start[i], start[i + 1]
        least = _exponentiate(logs[at:end], probability[at:end])
        lowest[i] = math.log(least) if least > 0.0 else -np.inf


@inner
def _add_table(other, table, logs, first):
    """Add the table of an edge to the log-potentials of one end, which comes first or second."""
    k = logs.shape[0]
    size = table.shape[0] // k
    for s in range(k):
        for r in range(other.shape[0]):
            logs[s, r] += table[s * size + other[r] if first else other[r] * k + s]


@inner
def _exponentiate(logs, probability):
    """Normalised exponentials in each row; returns the smallest."""
    k = logs.shape[0]
    least = 1.0
    for r in range(logs.shape[1]):
        top = -np.inf
        for s in range(k):
            top = max(top, logs[s, r])
        total = 0.0
        for s in range(k):
            probability[s, r] = math.exp(logs[s, r] - top)
            total += probability[s, r]
        for s in range(k):
            probability[s, r] /= total
            least = min(least, probability[s, r])
    return least


@kernel
def count_pairs(table, multiplicity, states, unary_start, pair_start, unary, pair):
    """Add the rows of a table to the numbers of rows with each state, and each pair of states.

    Parameters
    ----------
    table : (p, rows) int16
    multiplicity : (rows,) float64
    states, unary_start, pair_start : int64 arrays
        As in :class:`bayesstruct.fields.kernels.potentials.Potentials`.
    unary, pair : float64 arrays, changed
    """
    p, rows = states.shape[0], table.shape[1]
    e = 0
    for i in range(p):
        for r in range(rows):
            unary[unary_start[i] + table[i, r]] += multiplicity[r]
        for j in range(i + 1, p):
            for r in range(rows):
                pair[pair_start[e] + table[i, r] * states[j] + table[j, r]] += multiplicity[r]
            e += 1
