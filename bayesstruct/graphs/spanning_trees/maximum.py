"""Spanning trees and branchings of the greatest weight."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.spanning_trees.sums import log_weight_matrix

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["maximum_branching", "maximum_spanning_forest"]


def maximum_spanning_forest(weights: "ArrayLike", least: float = -np.inf) -> np.ndarray:
    """Return the lines of the spanning tree with the greatest sum of weights, or of a forest.

    Parameters
    ----------
    weights : (n, n) array_like of float
        Symmetric; -inf where there is no line. The diagonal is not used.
    least : float
        Lines are left out whose weight is not above it: the result is then the forest with the greatest sum of
        ``weights - least``. By default none is, and the result is a tree if the graph is connected.

    Returns
    -------
    (lines, 2) ndarray of int
        Ends in increasing order, by decreasing weight; among equal weights the first pairs come first.

    Raises
    ------
    ValueError
        If `weights` is no such matrix.

    References
    ----------
    Kruskal, J. B. (1956). On the shortest spanning subtree of a graph and the traveling salesman problem. *Proceedings of
    the AMS* 7, 48-50.

    Examples
    --------
    >>> maximum_spanning_forest([[0, 2, 1], [2, 0, 3], [1, 3, 0]]).tolist()
    [[1, 2], [0, 1]]
    >>> maximum_spanning_forest([[0, 2, 1], [2, 0, 3], [1, 3, 0]], least=2.5).tolist()
    [[1, 2]]
    """
    weights = log_weight_matrix(weights)
    first, second = np.triu_indices(len(weights), 1)
    order = np.argsort(-weights[first, second], kind="stable")
    lines: list[tuple[int, int]] = []
    member = np.arange(len(weights))
    for i, j in zip(first[order].tolist(), second[order].tolist(), strict=True):
        if not weights[i, j] > least or len(lines) == len(weights) - 1:
            break
        if member[i] != member[j]:
            lines.append((i, j))
            member[member == member[j]] = member[i]
    return np.array(lines, int).reshape(-1, 2)


def maximum_branching(weights: "ArrayLike", root_weights: "ArrayLike | None" = None) -> np.ndarray:
    """Return the directed tree from one root to all nodes with the greatest sum of weights.

    Parameters
    ----------
    weights : (n, n) array_like of float
        Entry [i, j] of the arc from i to j; -inf where there is none. The diagonal is not used.
    root_weights : (n,) array_like of float, optional
        Weight of each node as the root, 0 by default; -inf for one that cannot be it.

    Returns
    -------
    (n,) ndarray of int
        Parent of each node, -1 for the root.

    Raises
    ------
    ValueError
        If shapes do not fit, a weight is NaN or infinite, or no root reaches all nodes.

    References
    ----------
    Edmonds, J. (1967). Optimum branchings. *Journal of Research of the National Bureau of Standards* 71B, 233-240.

    Examples
    --------
    >>> maximum_branching([[0, 5, 1], [1, 0, 4], [2, 3, 0]]).tolist()
    [-1, 0, 1]
    """
    weights = np.array(weights, float)
    n = len(weights)
    roots = np.zeros(n) if root_weights is None else np.array(root_weights, float)
    if weights.shape != (n, n) or roots.shape != (n,) or not n:
        raise ValueError(
            f"weights of arcs are a square matrix and those of roots one for each node, not {weights.shape} and {roots.shape}"
        )
    np.fill_diagonal(weights, -np.inf)
    both = np.append(weights, roots[None], axis=0)
    if np.isnan(both).any() or (both == np.inf).any():
        raise ValueError(
            "a weight is NaN or infinite; -inf, for an arc that is not there, is allowed"
        )
    finite = both[np.isfinite(both)]
    # A second root, or an arc that is not there, costs more than all others can make up for.
    cost = (n + 1) * (np.ptp(finite) + 1.0) if len(finite) else 1.0
    low = finite.min(initial=0.0)
    graph = np.full((n + 1, n + 1), -np.inf)
    graph[1:, 1:] = np.where(np.isfinite(weights), weights, low - cost)
    # Node 0 stands before all roots.
    graph[0, 1:] = np.where(np.isfinite(roots), roots, low - cost) - cost
    np.fill_diagonal(graph, -np.inf)
    parent = _branching(graph)[1:] - 1
    chosen = np.where(parent < 0, roots, weights[parent, np.arange(n)])
    if (parent < 0).sum() != 1 or not np.isfinite(chosen).all():
        raise ValueError("no root reaches all nodes over arcs that are there")
    return parent


def _branching(graph: np.ndarray) -> np.ndarray:
    """Parents of all nodes but the root, node 0, from finite weights: a cycle of best arcs is shrunk to one node."""
    best = graph.argmax(axis=0)
    best[0] = 0
    cycle = _cycle(best)
    if cycle is None:
        return best
    n, inside = len(graph), np.zeros(len(graph), bool)
    inside[cycle] = True
    outside = np.flatnonzero(~inside)
    gain = graph[np.ix_(outside, cycle)] - graph[best[cycle], cycle]
    enter, leave = gain.argmax(axis=1), graph[np.ix_(cycle, outside)].argmax(axis=0)
    m = len(outside)
    small = np.full((m + 1, m + 1), -np.inf)
    small[:m, :m] = graph[np.ix_(outside, outside)]
    small[:m, m] = gain.max(axis=1)
    small[m, :m] = graph[np.ix_(cycle, outside)].max(axis=0)
    small[:, 0] = -np.inf
    inner = _branching(small)
    parent = np.empty(n, int)
    parent[cycle] = best[cycle]
    entry = cycle[enter[inner[m]]]
    parent[entry] = outside[inner[m]]
    from_cycle = inner[:m] == m
    parent[outside] = np.where(
        from_cycle, cycle[leave], outside[np.where(from_cycle, 0, inner[:m])]
    )
    parent[0] = 0
    return parent


def _cycle(parent: np.ndarray) -> np.ndarray | None:
    """Nodes of a cycle, or None; the root, node 0, is its own parent."""
    state = np.zeros(len(parent), int)
    state[0] = -1
    for start in range(1, len(parent)):
        path, node = [], start
        while state[node] == 0:
            state[node] = start
            path.append(node)
            node = int(parent[node])
        if state[node] == start and node in path:
            return np.array(path[path.index(node) :])
    return None
