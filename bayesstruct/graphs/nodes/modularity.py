"""Partitions of nodes of large modularity, compiled (Louvain)."""

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = ["best_partitions"]

#: Smallest increase of the modularity for which a node moves.
_GAIN = 1e-10


@kernel
def best_partitions(modularity, orders):
    """Search for the partition of largest modularity, from one start for each order of the nodes.

    Parameters
    ----------
    modularity : (p, p) ndarray of float
        Symmetric: what a pair of nodes (i, j) adds to the modularity if both are in one part.
    orders : (starts, p) ndarray of int
        Permutations of the nodes: the order in which they may move.

    Returns
    -------
    labels : (p,) ndarray of int
        Part of each node, numbered as they first appear.
    value : float
        Its modularity.

    Notes
    -----
    Nodes move one at a time to the part that increases the modularity most; parts are then nodes of a smaller graph, and so
    on (Blondel et al. 2008, Fast unfolding of communities in large networks. Journal of Statistical Mechanics P10008).
    At the end single nodes may move again, and all is repeated while the modularity increases.
    """
    best, largest = np.zeros(len(modularity), np.int64), -np.inf
    for k in range(len(orders)):
        labels = _climb(modularity, orders[k])
        value = _value(modularity, labels)
        if value > largest + _GAIN:
            best, largest = labels, value
    return best, largest


@inner
def _climb(modularity, order):
    labels = np.arange(len(modularity))
    while _move(modularity, order, labels):
        parts = _renumber(labels)
        merged = _merge(modularity, labels, parts)
        above = np.arange(parts)
        first = order[order < parts]
        while _move(merged, first, above):
            count = _renumber(above)
            for i in range(len(labels)):
                labels[i] = above[labels[i]]
            merged = _merge(merged, above, count)
            above, first = np.arange(count), order[order < count]
    _renumber(labels)
    return labels


@inner
def _move(modularity, order, labels):
    """Move nodes between parts while that increases the modularity; whether any moved."""
    p = len(modularity)
    moved_ever, moved = False, True
    members = np.zeros(p, np.int64)
    for i in range(p):
        members[labels[i]] += 1
    gain = np.empty(p)
    while moved:
        moved = False
        for i in order:
            gain[:] = 0.0
            for j in range(p):
                if j != i:
                    gain[labels[j]] += modularity[i, j]
            own = labels[i]
            best = own
            for part in range(p):
                # An empty part gains nothing, but may be better than to stay
                if gain[part] > gain[best] + _GAIN and (members[part] > 0 or members[own] > 1):
                    best = part
            if best != own:
                members[own] -= 1
                members[best] += 1
                labels[i] = best
                moved = moved_ever = True
    return moved_ever


@inner
def _renumber(labels):
    """Renumber parts from 0 as they first appear, in place; returns how many there are."""
    new, count = np.full(len(labels), -1), 0
    for i in range(len(labels)):
        if new[labels[i]] < 0:
            new[labels[i]] = count
            count += 1
        labels[i] = new[labels[i]]
    return count


@inner
def _merge(modularity, labels, count):
    """Sum the entries of parts."""
    out = np.zeros((count, count))
    for i in range(len(labels)):
        for j in range(len(labels)):
            out[labels[i], labels[j]] += modularity[i, j]
    return out


@inner
def _value(modularity, labels):
    total = 0.0
    for i in range(len(labels)):
        for j in range(len(labels)):
            if labels[i] == labels[j]:
                total += modularity[i, j]
    return total
