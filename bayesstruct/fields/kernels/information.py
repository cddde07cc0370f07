r"""Conditional mutual information of the pairs of a Markov random field, given the rest of the row.

.. math::

    I_{ij}(x_{-ij}) = \sum_{st} p(s, t \mid x_{-ij})
        \log \frac{p(s, t \mid x_{-ij})}{p(s \mid x_{-ij}) \, p(t \mid x_{-ij})}

The conditional distribution of a pair has the log-potentials :math:`f_i(s) + f_j(t) + t_{ij}(s, t)`, with the
f being the sums of the tables with all other variables.
"""

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import inner, kernel

__all__ = ["row_information"]


@kernel
def _fields(x, states, unary_start, pair_start, source, target, unary, pair, fields):
    """Log-potential of each state of each variable while the others are as in the row."""
    copy_vector(fields, unary)
    for e in range(len(source)):
        i, j = source[e], target[e]
        start, k = pair_start[e], states[j]
        for s in range(states[i]):
            fields[unary_start[i] + s] += pair[start + s * k + x[j]]
        for t in range(k):
            fields[unary_start[j] + t] += pair[start + x[i] * k + t]


@inner
def _information(table, columns):
    """Mutual information of a table of log-probabilities up to a constant; `columns` is a work array."""
    top = table.max()
    columns[:] = 0.0
    total, out = 0.0, 0.0
    for s in range(table.shape[0]):
        row = 0.0
        for t in range(table.shape[1]):
            cell = np.exp(table[s, t] - top)
            row += cell
            columns[t] += cell
            out += cell * (table[s, t] - top)
        total += row
        if row > 0.0:
            out -= row * np.log(row)
    for t in range(table.shape[1]):
        if columns[t] > 0.0:
            out -= columns[t] * np.log(columns[t])
    return max(out / total + np.log(total), 0.0)


@kernel
def row_information(states, unary_start, pair_start, source, target, unary, pair, rows, out):
    """Average the information of each pair over the other columns of the rows.

    Parameters
    ----------
    states : (p,) int64 array
    unary_start, pair_start : int64 arrays
        Where the tables start.
    source, target : (edges,) int64 arrays
        Ends of the edges.
    unary, pair : float64 arrays
        Tables of log-potentials, flat.
    rows : (n, p) int64 array
        States.
    out : (edges,) float64 array
        Filled, in nats; exactly zero for pairs whose table is zero.
    """
    widest = states.max()
    fields, work, columns = np.empty(len(unary)), np.empty(widest**2), np.empty(widest)
    interacts = np.zeros(len(source), np.bool_)
    for e in range(len(source)):
        for cell in range(pair_start[e], pair_start[e + 1]):
            interacts[e] |= pair[cell] != 0.0
    out[:] = 0.0
    for m in range(len(rows)):
        x = rows[m]
        _fields(x, states, unary_start, pair_start, source, target, unary, pair, fields)
        for e in range(len(source)):
            if not interacts[e]:
                continue
            i, j, start = source[e], target[e], pair_start[e]
            k = states[j]
            table = work[: states[i] * k].reshape((states[i], k))
            for s in range(states[i]):
                for t in range(k):
                    # The fields hold the table of this pair at the states of the row.
                    table[s, t] = (
                        fields[unary_start[i] + s]
                        - pair[start + s * k + x[j]]
                        + fields[unary_start[j] + t]
                        - pair[start + x[i] * k + t]
                        + pair[start + s * k + t]
                    )
            out[e] += _information(table, columns[:k])
    out /= len(rows)
