"""Acyclic sets of arcs of the greatest total gain: a linear ordering problem."""

from typing import NamedTuple

import numpy as np

from bayesstruct.graphs.ancestry import descendants
from bayesstruct.graphs.digraphs import without_cycles

__all__ = ["MAX_EXACT", "AcyclicArcs", "best_acyclic"]

#: Columns of a component up to which all subsets are gone through.
MAX_EXACT = 16
_SECONDS = 20.0
_ROUNDING = 1e-9


class AcyclicArcs(NamedTuple):
    """Arcs without a directed cycle.

    Attributes
    ----------
    arcs : ndarray of bool, shape (p, p)
        Rows are parents.
    gain : float
        Sum of the gains of these arcs.
    bound : float
        No acyclic set of arcs has a larger sum.
    """

    arcs: np.ndarray
    gain: float
    bound: float


def best_acyclic(gain: np.ndarray) -> AcyclicArcs:
    """Choose arcs that form no directed cycle and have the greatest total gain.

    Parameters
    ----------
    gain : ndarray of float, shape (p, p)
        Gain of each arc, rows parents; arcs whose gain is not positive are not chosen.

    Returns
    -------
    AcyclicArcs

    Notes
    -----
    Only arcs inside a strongly connected component of the arcs of positive gain can be on a cycle; all others are
    taken. Inside a component of up to 16 columns the best order is found by dynamic programming over subsets.
    A larger one is an integer program over arcs: cycles are ruled out as they appear in its solutions, and each solution
    bounds the gain from above [1]_. After 20 seconds the best graph so far is returned, made by leaving out arcs of
    little gain and improved by moving columns in the order, with the last bound.

    References
    ----------
    .. [1] Grötschel, Jünger and Reinelt (1985). On the acyclic subgraph polytope. Mathematical Programming 33, 28-42.
    """
    from scipy.sparse.csgraph import connected_components

    gain = np.where(gain > 0, gain, 0.0)
    np.fill_diagonal(gain, 0.0)
    _, component = connected_components(gain > 0, directed=True, connection="strong")
    chosen, bound = gain > 0, float(gain[component[:, None] != component].sum())
    for label in np.flatnonzero(np.bincount(component) > 1):
        at = np.flatnonzero(component == label)
        part = gain[np.ix_(at, at)]
        solve = _exact if len(at) <= MAX_EXACT else _bounded
        order, upper = solve(part)
        rank = np.argsort(order)
        chosen[np.ix_(at, at)] = (part > 0) & (rank[:, None] < rank)
        bound += upper
    return AcyclicArcs(chosen, float(gain[chosen].sum()), bound)


def _exact(gain: np.ndarray) -> tuple[np.ndarray, float]:
    """Best order of a few columns, and its gain: the best for each set of columns that come first."""
    p = len(gain)
    subsets = np.arange(1 << p)
    into = np.zeros((p, 1 << p))  # gain of the arcs from a set into each column
    for i in range(p):
        half = 1 << i
        into[:, half : 2 * half] = into[:, :half] + gain[i][:, None]
    best = np.full(1 << p, -np.inf)
    best[0] = 0.0
    last = np.zeros(1 << p, np.int8)
    size = np.bitwise_count(subsets)
    for k in range(p):
        before = subsets[size == k]
        for j in range(p):
            own = before[before >> j & 1 == 0]
            after = own | 1 << j
            value = best[own] + into[j, own]
            better = value > best[after]
            best[after[better]], last[after[better]] = value[better], j
    order, left = np.zeros(p, int), (1 << p) - 1
    for k in range(p - 1, -1, -1):
        order[k] = last[left]
        left ^= 1 << order[k]
    return order, float(best[-1])


def _bounded(gain: np.ndarray) -> tuple[np.ndarray, float]:
    """Good order of many columns, and an upper bound of the gain of all orders, equal to its own if it is the best."""
    from time import monotonic

    arcs = np.argwhere(gain > 0)
    chosen = np.ones(len(arcs), bool)
    order = _improved(gain, _order(gain, arcs, chosen))
    bound, end = _pairs_bound(gain), monotonic() + _SECONDS
    cycles: dict[tuple[int, ...], np.ndarray] = {}
    while bound > _gain_of(gain, order) + _ROUNDING:
        cycles |= _cycles(arcs, chosen, len(gain))
        solved = _relaxed(gain[tuple(arcs.T)], list(cycles.values()), end - monotonic())
        if solved is None:
            break
        chosen, upper = solved
        bound = min(bound, upper)
        # Where the solution has no cycle it has this gain, and the loop ends
        candidate = _improved(gain, _order(gain, arcs, chosen))
        order = max(order, candidate, key=lambda one: _gain_of(gain, one))
    return order, max(bound, _gain_of(gain, order))


def _relaxed(gain, cycles, seconds):
    """Arcs of greatest gain that leave out an arc of each of some cycles, and an upper bound; None if time is over."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    if seconds <= 0:
        return None
    length = np.array([len(cycle) for cycle in cycles])
    row = np.repeat(np.arange(len(cycles)), length)
    matrix = csr_array((np.ones(len(row)), (row, np.concatenate(cycles))), (len(cycles), len(gain)))
    done = milp(
        -gain,
        integrality=np.ones(len(gain)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, ub=length - 1),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    if done.x is None or done.mip_dual_bound is None:
        return None
    return done.x > 0.5, -float(done.mip_dual_bound)


def _cycles(arcs: np.ndarray, chosen: np.ndarray, p: int) -> dict[tuple[int, ...], np.ndarray]:
    """Find a shortest cycle through each of the chosen arcs that is on one, as positions of arcs; keys are these sorted."""
    position = {(int(i), int(j)): k for k, (i, j) in enumerate(arcs) if chosen[k]}
    children: list[list[int]] = [[] for _ in range(p)]
    for i, j in position:
        children[i].append(j)
    found = {}
    for i, j in position:
        path = _shortest(children, j, i)
        if path:
            cycle = [position[pair] for pair in zip(path, [*path[1:], j], strict=True)]
            found[tuple(sorted(cycle))] = np.array(cycle)
    return found


def _shortest(children: list[list[int]], start: int, end: int) -> list[int]:
    """Nodes of a shortest path from one node to another, none if there is no path."""
    came, waiting = {start: -1}, [start]
    for node in waiting:
        if node == end:
            path = [node]
            while came[path[-1]] >= 0:
                path.append(came[path[-1]])
            return path[::-1]
        for child in children[node]:
            if child not in came:
                came[child] = node
                waiting.append(child)
    return []


def _order(gain: np.ndarray, arcs: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Order of the columns along chosen arcs, without those of least gain in cycles."""
    first = arcs[chosen][np.argsort(-gain[tuple(arcs[chosen].T)], kind="stable")]
    kept = first[without_cycles(first[:, 0], first[:, 1], len(gain))]
    acyclic = np.zeros((1, *gain.shape), bool)
    acyclic[0, kept[:, 0], kept[:, 1]] = True
    # An ancestor has fewer ancestors than its descendants
    return np.argsort(descendants(acyclic)[0].sum(axis=0), kind="stable")


def _improved(gain: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Move single columns to their best places in the order, while that gains something."""
    moved = True
    while moved:
        moved = False
        for node in range(len(gain)):
            rest = order[order != node]
            # place k: after k others, which gain what they give to it, and it what it gives to those behind
            ahead = np.concatenate([[0.0], np.cumsum(gain[rest, node])])
            behind = np.concatenate([np.cumsum(gain[node, rest][::-1])[::-1], [0.0]])
            value, now = ahead + behind, int(np.flatnonzero(order == node)[0])
            k = int(value.argmax())
            if value[k] > value[now] + _ROUNDING:
                order, moved = np.insert(rest, k, node), True
    return order


def _gain_of(gain: np.ndarray, order: np.ndarray) -> float:
    return float(np.triu(gain[np.ix_(order, order)], 1).sum())


def _pairs_bound(gain: np.ndarray) -> float:
    """Gain if each pair had its better direction."""
    return float(np.triu(np.maximum(gain, gain.T), 1).sum())
