"""Log density of rows under a forest with the fitted distributions of its pairs of columns."""

from collections.abc import Sequence

import numpy as np

from bayesstruct.data.table import near_one

__all__ = ["log_density"]


def log_density(
    table: np.ndarray, states: np.ndarray, lines: Sequence[tuple[int, int]], rows: np.ndarray
) -> np.ndarray:
    r"""Return the log density of rows, :math:`\sum_i \log p_i + \sum_{ij} \log p_{ij} / (p_i p_j)`.

    Parameters
    ----------
    table : (n, p) ndarray
        Rows that distributions are fitted to; numbers, and states as 0, 1, ...
    states : (p,) ndarray of int
        Numbers of states, 0 for columns of numbers.
    lines : sequence of pairs of int
        Edges of a forest without numbers between two states.
    rows : (m, p) ndarray

    Returns
    -------
    (m,) ndarray
    """
    number = states == 0
    unit, powers = near_one(table[:, number])
    table, rows = table.copy(), rows.copy()
    table[:, number] = unit
    with np.errstate(over="ignore"):
        rows[:, number] = np.ldexp(rows[:, number], -powers)
    out = np.full(len(rows), -np.log(2.0) * powers.sum())
    for j, r in enumerate(states):
        out += _one(table[:, j], int(r), rows[:, j])
    for i, j in lines:
        a, b = (i, j) if states[i] or not states[j] else (j, i)
        out += _pair(table[:, [a, b]], states[[a, b]], rows[:, [a, b]])
    return out


def _one(column, r, new) -> np.ndarray:
    """Log density of one column."""
    if not r:
        return _normal(new, column.mean(), column.var())
    with np.errstate(divide="ignore"):
        return np.log(np.bincount(column.astype(np.int64), minlength=r) / len(column))[
            new.astype(np.int64)
        ]


def _pair(columns, states, new) -> np.ndarray:
    """Log density of a second column given the first, less that of the second alone; states come first."""
    first, second = columns.T
    alone = _one(second, int(states[1]), new[:, 1])
    if not states[0]:
        slope, level = np.polyfit(first, second, 1) if np.ptp(first) else (0.0, second.mean())
        variance = (second - level - slope * first).var()
        return _normal(new[:, 1], level + slope * new[:, 0], variance) - alone
    code, at = first.astype(np.int64), new[:, 0].astype(np.int64)
    seen = np.bincount(code, minlength=states[0])
    if not states[1]:
        mean = np.bincount(code, second, minlength=states[0]) / seen
        return _normal(new[:, 1], mean[at], (second - mean[code]).var()) - alone
    joint = np.zeros(tuple(states))
    np.add.at(joint, (code, second.astype(np.int64)), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(joint / seen[:, None])[at, new[:, 1].astype(np.int64)] - alone


def _normal(x, mean, variance) -> np.ndarray:
    return -0.5 * (np.log(2.0 * np.pi * variance) + (x - mean) ** 2 / variance)
