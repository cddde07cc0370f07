"""Split an undirected graph at complete separators into parts that cannot be split any more."""

import numpy as np

__all__ = ["is_complete", "prime_components"]


def is_complete(adjacency: np.ndarray) -> bool:
    """Whether all pairs are joined; (p, p) bool with a false diagonal."""
    size = len(adjacency)
    return int(adjacency.sum()) == size * (size - 1)


def prime_components(adjacency: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Split a graph at its complete separators.

    Parameters
    ----------
    adjacency : (p, p) bool ndarray
        Symmetric, with a false diagonal.

    Returns
    -------
    list of (component, separator)
        Sorted int arrays of nodes. Each separator, complete and perhaps empty, is what its component shares with
        the components that come after it. No component has a complete separator; a graph is decomposable
        if all of them are complete.

    Notes
    -----
    The decomposition of [1]_ along the minimal elimination order of [2]_: for each node in that order, the component
    of the rest of the graph that holds it and has its later neighbours as border is split off where these are complete.

    References
    ----------
    .. [1] R. E. Tarjan (1985). Decomposition by clique separators. Discrete Mathematics 55, 221-232.
    .. [2] A. Berry, J. Blair, P. Heggernes and B. Peyton (2004). Maximum cardinality search for computing minimal
       triangulations of graphs. Algorithmica 39, 287-298.

    Examples
    --------
    >>> triangle_and_edge = np.array([[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]]) > 0
    >>> [part.tolist() for part, _ in prime_components(triangle_and_edge)]
    [[2, 3], [0, 1, 2]]
    """
    adjacency = np.asarray(adjacency, bool)
    order, later = _minimal_elimination(adjacency)
    alive = np.ones(len(adjacency), bool)
    parts = []
    for v in order:
        border = later[v]
        if not alive[v] or not is_complete(adjacency[np.ix_(border, border)]):
            continue
        inside = _reached(adjacency, v, alive, border)
        if np.count_nonzero(alive) == np.count_nonzero(inside) + border.size:
            break  # nothing lies behind the border: the rest is one component
        component = np.union1d(np.flatnonzero(inside), border)
        parts.append((component, border))
        alive &= ~inside
    rest = np.flatnonzero(alive)
    parts.append((rest, rest[:0]))
    return parts


def _reached(adjacency, start, alive, border):
    """Nodes that a path from `start` reaches without the border, as a mask."""
    allowed = alive.copy()
    allowed[border] = False
    inside = np.zeros(len(adjacency), bool)
    inside[start] = True
    new = inside
    while new.any():
        new = adjacency[new].any(axis=0) & allowed & ~inside
        inside = inside | new
    return inside


def _minimal_elimination(adjacency):
    """Order of elimination with a minimal fill-in (MCS-M), and the neighbours of each node when it is eliminated."""
    p = len(adjacency)
    weight, left = np.zeros(p, int), np.ones(p, bool)
    filled, order = adjacency.copy(), []
    for _ in range(p):
        v = int(np.where(left, weight, -1).argmax())
        left[v] = False
        order.append(v)
        near = [
            u
            for u in np.flatnonzero(left)
            if _path_below(adjacency, v, u, left & (weight < weight[u]))
        ]
        weight[near] += 1
        filled[near, v] = filled[v, near] = True
    order.reverse()
    place = np.empty(p, int)
    place[order] = np.arange(p)
    return order, [np.flatnonzero(filled[v] & (place > place[v])) for v in range(p)]


def _path_below(adjacency, v, u, allowed):
    """Whether a path leads from v to u whose inner nodes are all allowed."""
    seen = np.zeros(len(adjacency), bool)
    new = seen.copy()
    new[v] = True
    while new.any():
        near = adjacency[new].any(axis=0)
        if near[u]:
            return True
        new = near & allowed & ~seen
        seen |= new
    return False
