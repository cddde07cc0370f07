"""Log density of rows under a forest with the fitted distributions of its pairs of columns."""

from collections.abc import Sequence

import numpy as np

from bayesstruct.data.table import near_one

__all__ = ["log_density"]


def log_density(
    table: np.ndarray, states: np.ndarray, lines: Sequence[tuple[int, int]], rows: np.ndarray
) -> np.ndarray:
    r"""Return the log density of rows: of each column given its neighbour on the way to a root, as :math:`\sum_i \log p_i + \sum_{ij} \log p_{ij} / (p_i p_j)`.

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
    with np.errstate(over="ignore"):  # rows that are too far away have density 0
        for i, j in _downwards(states, lines):
            if i < 0:
                out += _one(table[:, j], int(states[j]), rows[:, j])
            else:
                out += _given(table[:, [i, j]], states[[i, j]], rows[:, [i, j]])
    return out


def _downwards(states, lines) -> list[tuple[int, int]]:
    """Parent, or -1, and child of each column, away from a column of states in each tree that has one."""
    near: list[list[int]] = [[] for _ in states]
    for i, j in lines:
        near[i].append(int(j))
        near[j].append(int(i))
    out, known = [], set()
    for root in np.argsort(states == 0, kind="stable").tolist():
        waiting = [] if root in known else [(-1, root)]
        while waiting:
            above, own = waiting.pop()
            known.add(own)
            out.append((above, own))
            waiting += [(own, other) for other in near[own] if other != above]
    return out


def _one(column, r, new) -> np.ndarray:
    """Log density of one column."""
    if not r:
        return _normal(new, column.mean(), column.var())
    with np.errstate(divide="ignore"):
        return np.log(np.bincount(column.astype(np.int64), minlength=r) / len(column))[
            new.astype(np.int64)
        ]


def _given(columns, states, new) -> np.ndarray:
    """Log density of a second column given the first; states come first."""
    first, second = columns.T
    if not states[0]:
        slope, level = np.polyfit(first, second, 1) if np.ptp(first) else (0.0, second.mean())
        variance = (second - level - slope * first).var()
        return _normal(new[:, 1], level + slope * new[:, 0], variance)
    code, at = first.astype(np.int64), new[:, 0].astype(np.int64)
    seen = np.bincount(code, minlength=states[0])
    if not states[1]:
        mean = np.bincount(code, second, minlength=states[0]) / seen
        return _normal(new[:, 1], mean[at], (second - mean[code]).var())
    joint = np.zeros(tuple(states))
    np.add.at(joint, (code, second.astype(np.int64)), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(joint / seen[:, None])[at, new[:, 1].astype(np.int64)]


def _normal(x, mean, variance) -> np.ndarray:
    return -0.5 * (np.log(2.0 * np.pi * variance) + (x - mean) ** 2 / variance)
