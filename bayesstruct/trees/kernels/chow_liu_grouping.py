"""Trees with hidden nodes from the minimum spanning tree of distances, one neighbourhood after the other."""

from collections.abc import Callable, Sequence
from copy import copy

import numpy as np

from bayesstruct.graphs.spanning_trees.maximum import maximum_spanning_forest
from bayesstruct.trees.kernels.gaussian_em import outward
from bayesstruct.trees.kernels.grouping import Noise, Tree, path_lengths

__all__ = ["GrowingTree", "blind_tree", "fitted_lengths", "grouped_tree", "minimum_tree"]


def minimum_tree(d: np.ndarray) -> Tree:
    """Return the spanning tree of the smallest sum of distances, as edges with lengths."""
    return [(i, j, float(d[i, j])) for i, j in maximum_spanning_forest(-d).tolist()]


class GrowingTree:
    """A tree in which neighbourhoods are replaced by subtrees with hidden nodes.

    Parameters
    ----------
    d : (m, m) ndarray
        Distances between m nodes, whose minimum spanning tree is the first tree.
    noise : Noise, optional
        Of estimated distances.

    Attributes
    ----------
    near : list of dict
        Neighbours of each node, with lengths.
    """

    def __init__(self, d: np.ndarray, noise: Noise | None = None):
        self.m, self._noise = len(d), noise
        self._d = d.copy()
        self.near: list[dict[int, float]] = [{} for _ in range(self.m)]
        for i, j, own in minimum_tree(d):
            self.near[i][j] = self.near[j][i] = own
        self.internal = [i for i in range(self.m) if len(self.near[i]) > 1]

    @property
    def lines(self) -> Tree:
        """The tree as edges with lengths."""
        return [(i, j, own) for i, near in enumerate(self.near) for j, own in near.items() if i < j]

    def copy(self) -> "GrowingTree":
        """Return a copy that can be changed by itself."""
        out = copy(self)
        out._d, out.near = self._d.copy(), [dict(own) for own in self.near]
        return out

    def neighbourhood(self, i: int) -> list[int]:
        """Return a node and its neighbours."""
        return [i, *self.near[i]]

    def distances(self, nodes: Sequence[int]) -> np.ndarray:
        """Return distances between some nodes."""
        return self._d[np.ix_(nodes, nodes)]

    def replace(self, nodes: Sequence[int], subtree: Tree) -> None:
        """Put a subtree in place of the edges of a node to its neighbours.

        Parameters
        ----------
        nodes : sequence of int
            The node and its neighbours.
        subtree : list of (int, int, float)
            A tree of the positions of `nodes` and of hidden nodes, which follow.
        """
        center, k = nodes[0], len(nodes)
        inside = max(max(i, j) for i, j, _ in subtree) + 1
        entrance = self._entrances(nodes)
        for j in nodes[1:]:
            del self.near[center][j], self.near[j][center]
        place = [*nodes, *(len(self.near) + h for h in range(inside - k))]
        self.near += [{} for _ in range(inside - k)]
        for i, j, own in subtree:
            self.near[place[i]][place[j]] = self.near[place[j]][place[i]] = own
        if inside > k:
            self._measure(subtree, nodes, inside, entrance)

    def _entrances(self, nodes) -> np.ndarray:
        """Position in `nodes` of that behind which each node of the tree is."""
        out = np.zeros(len(self.near), int)
        for place, first in enumerate(nodes[1:], 1):
            stack = [(first, nodes[0])]
            while stack:
                node, parent = stack.pop()
                out[node] = place
                stack += [(other, node) for other in self.near[node] if other != parent]
        return out

    def _measure(self, subtree, nodes, inside, entrance) -> None:
        """Distances of new hidden nodes: along the subtree, and beyond it from those of nodes on its other side."""
        old, k = len(self._d), len(nodes)
        length = path_lengths(subtree, inside)
        hops = path_lengths([(i, j, 1.0) for i, j, _ in subtree], inside)
        full = np.zeros((old + inside - k, old + inside - k))
        full[:old, :old] = self._d
        full[old:, old:] = length[k:, k:]
        for h in range(k, inside):
            row = np.empty(old)
            for e in range(k):
                behind = np.flatnonzero(entrance == e)
                across = [x for x in range(k) if x != e and hops[x, h] + hops[h, e] == hops[x, e]]
                away = self._d[np.ix_([nodes[x] for x in across], behind)]
                weight = np.ones_like(away)
                if self._noise is not None:
                    weight = 1.0 / np.maximum(self._noise.variance(away), 1e-12)
                values = away - length[across, h][:, None]
                row[behind] = (weight * values).sum(axis=0) / weight.sum(axis=0)
            row[list(nodes)] = length[h, :k]
            full[old + h - k, :old] = full[:old, old + h - k] = np.maximum(row, 0.0)
        self._d = full


def grouped_tree(
    d: np.ndarray, noise: Noise | None, build: Callable[[np.ndarray], Tree]
) -> GrowingTree:
    """Replace the neighbourhood of each inner node of the minimum spanning tree by a subtree.

    Parameters
    ----------
    d : (m, m) ndarray
    noise : Noise, optional
    build : callable
        Makes a tree from distances.
    """
    tree = GrowingTree(d, noise)
    for i in tree.internal:
        nodes = tree.neighbourhood(i)
        if len(nodes) > 2:
            tree.replace(nodes, build(tree.distances(nodes)))
    return tree


def blind_tree(d: np.ndarray) -> Tree:
    """Give each inner node of the minimum spanning tree a hidden node, which takes over its neighbours.

    Parameters
    ----------
    d : (m, m) ndarray

    Returns
    -------
    list of (int, int, float)
        Lengths are fitted to all distances.
    """
    m = len(d)
    near: list[set[int]] = [set() for _ in range(m)]
    for i, j, _ in minimum_tree(d):
        near[i].add(j)
        near[j].add(i)
    for i in [i for i in range(m) if len(near[i]) > 1]:
        h = len(near)
        near.append({i, *near[i]})
        for j in near[i]:
            near[j] = {h if k == i else k for k in near[j]}
        near[i] = {h}
    pairs = [(i, j) for i, own in enumerate(near) for j in own if i < j]
    return fitted_lengths(pairs, d)


def fitted_lengths(lines: Sequence[tuple[int, int]], d: np.ndarray) -> Tree:
    """Fit the lengths of the edges of a tree to distances between its first nodes by least squares.

    Parameters
    ----------
    lines : sequence of pairs of int
        A tree whose first m nodes have distances, and whose other nodes have three neighbours or more.
    d : (m, m) ndarray

    Returns
    -------
    list of (int, int, float)
        Lengths are at least 0.

    Notes
    -----
    Normal equations are counts of pairs, products of matrices: there is no row for each of the m(m-1)/2 pairs.
    """
    h = _sides(lines, len(d))
    count = h.sum(axis=1)
    # A pair of columns has a line on its way if it is on both sides; for two lines there are two ways to be on both sides of both.
    both = h @ h.T
    first, second = count[:, None] - both, count - both
    neither = len(d) - both - first - second
    normal = both * neither + first * second
    length = np.linalg.lstsq(normal, ((h @ d) * (1.0 - h)).sum(axis=1))[0]
    return [(i, j, max(float(own), 0.0)) for (i, j), own in zip(lines, length, strict=True)]


def _sides(lines: Sequence[tuple[int, int]], m: int) -> np.ndarray:
    """Return which of the first m nodes are beyond each line, seen from node 0, as (lines, m) zeros and ones."""
    order = outward(np.array(lines, int).reshape(-1, 2))
    beyond = np.zeros((len(lines) + 1, m))
    np.fill_diagonal(beyond, 1.0)
    out = np.empty((len(lines), m))
    for line, near, far in reversed(order):
        out[line] = beyond[far]
        beyond[near] += beyond[far]
    return out
