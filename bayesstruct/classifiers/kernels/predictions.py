"""Joint probabilities of rows with each class, given a structure and its tables; missing features are summed out.

Tables are those of :class:`bayesstruct.distributions.ProbabilityTables`: the probability of state s of a column in the configuration
c of its parents is in cell ``c * states + s``, the first parent in the order of the columns changing fastest in c.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = ["class_logs", "completions", "is_forest"]


def is_forest(dag: np.ndarray, target: int) -> bool:
    """Whether each feature has one parent at most beside the target; `dag` is (d, d), 1 at (parent, child)."""
    return bool((np.delete(np.asarray(dag) != 0, target, axis=0).sum(axis=0) <= 1).all())


def completions(row: np.ndarray, states: np.ndarray, target: int) -> float:
    """Return in how many ways the missing features of a row, which are -1, can be filled in."""
    missing = np.delete(row < 0, target)
    return float(np.prod(np.where(missing, np.delete(states, target), 1.0)))


def class_logs(
    rows: np.ndarray, dag: np.ndarray, tables: np.ndarray, states: np.ndarray, target: int
) -> np.ndarray:
    """Logarithms of the joint probabilities of rows with each class.

    Parameters
    ----------
    rows : (n, d) ndarray of int
        States from 0, -1 where missing; the column of the target is not used.
    dag : (d, d) ndarray of int
        1 at (parent, child): the target is a parent of all others.
    tables : (d, cells) ndarray of float
    states : (d,) ndarray of int
    target : int

    Returns
    -------
    (n, classes) ndarray of float

    Notes
    -----
    Where each feature has at most one parent beside the target, missing features are summed out along the tree.
    Otherwise the sum goes over all their states (`completions`).
    """
    # Copies: Numba compiles again for arrays that must not be written to.
    dag, rows = np.array(dag, np.int8, order="C"), np.array(rows, np.int64, order="C")
    states, tables = np.array(states, np.int64), np.array(tables, float, order="C")
    out = np.empty((len(rows), states[target]))
    if is_forest(dag, target):
        _tree_logs(rows, dag, tables, states, target, out)
    else:
        _enumerated_logs(rows, dag, tables, states, target, out)
    return out


@inner
def _parents_first(dag, target):
    """Feature parent of each column, -1 without one, and the features with parents before children."""
    d = len(dag)
    parent = np.full(d, -1, np.int64)
    for j in range(d):
        for i in range(d):
            if dag[j, i] and j != target:
                parent[i] = j
    depth = np.zeros(d, np.int64)
    for i in range(d):
        j = parent[i]
        while j >= 0:
            depth[i] += 1
            j = parent[j]
    return parent, np.argsort(depth)


@kernel
def _tree_logs(rows, dag, tables, states, target, out):
    d, most = len(states), states.max()
    parent, order = _parents_first(dag, target)
    classes = states[target]
    weight, message = np.empty((d, classes, most)), np.empty((classes, most))
    for r in range(len(rows)):
        for i in range(d):
            for s in range(states[i]):
                weight[i, :, s] = 1.0 if rows[r, i] < 0 or rows[r, i] == s else 0.0
        for c in range(classes):
            out[r, c] = math.log(tables[target, c]) if tables[target, c] > 0.0 else -np.inf
        for at in range(d - 1, -1, -1):
            i = order[at]
            if i != target:
                _send(i, parent[i], target, tables, states, weight, message, out[r])


@inner
def _configuration(c, s, j, target, states):
    """Return the number of the configuration of class c and state s of the feature parent j, -1 for none."""
    if j < 0:
        return c
    return s + states[j] * c if j < target else c + states[target] * s


@inner
def _send(i, j, target, tables, states, weight, message, out):
    """Sum over the states of a feature; pass the sums to its feature parent, or to the classes."""
    top = 0.0
    k = states[i]
    for c in range(states[target]):
        for s in range(states[j] if j >= 0 else 1):
            message[c, s] = 0.0
            if j >= 0 and weight[j, c, s] == 0.0:
                continue
            place = _configuration(c, s, j, target, states)
            for own in range(k):
                if weight[i, c, own] > 0.0:
                    message[c, s] += weight[i, c, own] * tables[i, place * k + own]
            top = max(top, message[c, s])
    for c in range(states[target]):
        if top == 0.0:
            out[c] = -np.inf
        elif j < 0:
            out[c] += math.log(message[c, 0]) if message[c, 0] > 0.0 else -np.inf
        else:
            out[c] += math.log(top)  # the rest of the message keeps its size in a deep tree
            for s in range(states[j]):
                weight[j, c, s] *= message[c, s] / top


@kernel
def _enumerated_logs(rows, dag, tables, states, target, out):
    d = len(states)
    row, missing = np.empty(d, np.int64), np.empty(d, np.int64)
    for r in range(len(rows)):
        gaps = 0
        for i in range(d):
            row[i] = rows[r, i]
            if row[i] < 0 and i != target:
                missing[gaps] = i
                gaps += 1
        for c in range(states[target]):
            row[target] = c
            for g in range(gaps):
                row[missing[g]] = 0
            total = -np.inf
            while True:
                log = _joint(row, dag, tables, states)
                low, high = min(log, total), max(log, total)
                total = high if low == -np.inf else high + math.log1p(math.exp(low - high))
                g = 0
                while g < gaps and row[missing[g]] == states[missing[g]] - 1:
                    row[missing[g]] = 0
                    g += 1
                if g == gaps:
                    break
                row[missing[g]] += 1
            out[r, c] = total


@inner
def _joint(row, dag, tables, states):
    """Logarithm of the probability of a complete row."""
    out = 0.0
    for i in range(len(row)):
        place, step = 0, 1
        for j in range(len(row)):
            if dag[j, i]:
                place += step * row[j]
                step *= states[j]
        p = tables[i, place * states[i] + row[i]]
        if p <= 0.0:
            return -np.inf
        out += math.log(p)
    return out
