"""Positions of trees: branches in sectors of their own around the middle, then with the distances that they have along the lines."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.plots.layouts.geometry import into_square, separate

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["crossings", "spanning_lines", "tree_points"]

#: Powers of distances along the lines that are tried in turn. Smaller ones fold long ways, which fills the square, but cross lines more often.
_POWERS = 0.7, 0.85, 1.0
_ROUNDS = 100  # of majorisation, after which positions hardly move
_NOISE = 0.3  # of a line: nodes in a row have no side to fold to
_FINE = 300  # nodes up to which distances are looked at


def spanning_lines(graph: "nx.Graph") -> list[tuple]:
    """Return the lines of a spanning forest of the most probable lines, among equally probable ones of the strongest.

    Parameters
    ----------
    graph : networkx.Graph
        Lines with ``probability`` (1 without) and ``weight`` (0 without); directions are ignored.
    """
    import networkx as nx

    ranked: nx.Graph = nx.Graph()
    ranked.add_nodes_from(graph.nodes)
    for a, b, about in graph.edges(data=True):
        rank = about.get("probability", 1.0), abs(about.get("weight", 0.0))
        if a != b and not (ranked.has_edge(a, b) and ranked.edges[a, b]["rank"] >= rank):
            ranked.add_edge(a, b, rank=rank)
    order = sorted(ranked.edges(data="rank"), key=lambda line: line[2], reverse=True)
    parts = nx.utils.UnionFind(ranked.nodes)
    lines = []
    for a, b, _ in order:
        if parts[a] != parts[b]:
            parts.union(a, b)
            lines.append((a, b))
    return lines


def tree_points(tree: "nx.Graph", half: np.ndarray | None) -> np.ndarray:
    """Place the nodes of a tree.

    Parameters
    ----------
    tree : networkx.Graph
        A tree of p nodes.
    half : (p, 2) ndarray, optional
        Half widths and heights of the nodes in the square, which are pushed apart.

    Returns
    -------
    (p, 2) ndarray
        In the square [-1, 1] x [-1, 1]; of the arrangements that were tried the first whose lines do not cross, or that with the fewest crossings.

    Notes
    -----
    Positions on circles around the middle, where branches have sectors in proportion to their leaves, are improved by majorisation of the
    squared differences between distances in the plane and powers of those along the lines, relative to the latter (Gansner, Koren and North 2005,
    Graph drawing by stress majorization, LNCS 3383, 239-250).
    """
    nodes = list(tree)
    place = {node: k for k, node in enumerate(nodes)}
    lines = np.array([(place[a], place[b]) for a, b in tree.edges], int).reshape(-1, 2)
    start = _radial(tree)
    best, fewest = into_square(start), np.inf
    if len(nodes) < 3 or half is None or len(nodes) > _FINE:
        return best
    steps = _distances(lines, len(nodes))
    for power in _POWERS:
        points = separate(into_square(_majorised(start, steps, power)), half)
        if (number := crossings(points, lines)) < fewest:
            best, fewest = points, number
        if not fewest:
            break
    return best


def crossings(points: np.ndarray, lines: np.ndarray) -> int:
    """Count the pairs of straight lines that cross.

    Parameters
    ----------
    points : (p, 2) ndarray
    lines : (n, 2) ndarray of int
        Ends. Lines with a common end do not cross.
    """
    a, b = points[lines[:, 0]], points[lines[:, 1]]

    def side(of):
        """Side of each line, by row, on which each point is."""
        along, to = (b - a)[:, None], of[None] - a[:, None]
        return np.sign(along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0])

    divided = side(a) * side(b) < 0
    shared = (lines[:, None, :, None] == lines[None, :, None, :]).any(axis=(2, 3))
    return int(np.triu(divided & divided.T & ~shared, 1).sum())


def _radial(tree: "nx.Graph") -> np.ndarray:
    """Positions on circles around the middle: as many units away as there are lines between."""
    root = _middle(tree)
    children, order = _rooted(tree, root)
    leaves = _leaves(children, order)
    sector, at = {root: (0.0, 2.0 * np.pi)}, {root: (0.0, 0.0, 0)}
    for node in order:
        low, high = sector[node]
        share = (high - low) / leaves[node]
        for child in children[node]:
            sector[child] = low, low + share * leaves[child]
            angle = np.pi / 2 - sum(sector[child]) / 2
            low, depth = sector[child][1], at[node][2] + 1
            at[child] = depth * np.cos(angle), depth * np.sin(angle), depth
    return np.array([at[node][:2] for node in tree], float)


def _rooted(tree: "nx.Graph", root) -> tuple[dict, list]:
    """Children of each node away from a root, and all nodes, each after its parent."""
    children, order = {root: list(tree[root])}, [root]
    for node in order:
        for child in children[node]:
            children[child] = [other for other in tree[child] if other != node]
            order.append(child)
    return children, order


def _leaves(children: dict, order: list) -> dict:
    """Count the leaves of the branch that begins at each node."""
    out: dict = {}
    for node in reversed(order):
        out[node] = sum(out[child] for child in children[node]) or 1
    return out


def _middle(tree: "nx.Graph"):
    """Return the node whose largest branch has the fewest leaves, the first of several."""
    leaf = next((node for node in tree if tree.degree(node) < 2), None)
    children, order = _rooted(tree, leaf)
    leaves = _leaves(children, order)

    def largest(node):
        behind = [] if node == leaf else [leaves[leaf] + 1 - leaves[node]]
        return max([leaves[child] for child in children[node]] + behind, default=0)

    return min(tree, key=largest)


def _distances(lines: np.ndarray, p: int) -> np.ndarray:
    """Count the lines on the way between each two nodes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    graph = coo_array((np.ones(len(lines)), tuple(lines.T)), shape=(p, p)).tocsr()
    return shortest_path(graph, directed=False, unweighted=True)


def _majorised(points: np.ndarray, steps: np.ndarray, power: float) -> np.ndarray:
    """Move points until their distances are about those wanted."""
    p = len(points)
    angle = 2.4 * np.arange(p)
    points = points + _NOISE * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    weight = 1.0 / np.maximum(steps, 1.0) ** 2
    np.fill_diagonal(weight, 0.0)
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    wanted = weight * steps**power
    for _ in range(_ROUNDS):
        apart = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
        pull = -wanted / np.maximum(apart, 1e-9)
        np.fill_diagonal(pull, 0.0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        points = inverse @ (pull @ points)
    return points
