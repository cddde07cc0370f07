"""Layered positions for directed graphs: parents above children, few crossings."""

import itertools

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.digraphs import to_matrix, without_cycles

if TYPE_CHECKING:
    import networkx as nx

SWEEPS = 12  # rounds down and up; later ones hardly change an order

Layers = list[list]


def layered(graph: "nx.DiGraph") -> dict:
    """Place the nodes in layers.

    Parameters
    ----------
    graph : networkx.DiGraph
        Arcs that close a cycle (in the order of the graph) are ignored, and so is the second
        direction of a pair that is joined in both.

    Returns
    -------
    dict of name to (float, float)
        Within [-1, 1] x [-1, 1]. Parents are above their children; nodes without arcs are in rows
        of their own at the bottom.

    Notes
    -----
    The method of Sugiyama, Tagawa and Toda (1981): layers by longest paths, a dummy node wherever
    an arc passes a layer, and orders within layers by barycentres of neighbours. Of the orders
    that were met the one with fewest crossings is taken.
    """
    names = list(graph.nodes)
    matrix = _acyclic(graph, names)
    depth = _depths(matrix)
    lonely = np.flatnonzero(~(matrix | matrix.T).any(axis=0))
    layers, below = _with_dummies(matrix, depth, lonely)
    layers = _fewest_crossings(layers, below)
    layers += _rows(lonely.tolist(), max(map(len, layers), default=0))
    return {names[node]: at for node, at in sorted(_coordinates(layers, len(names)).items())}


def _acyclic(graph: "nx.DiGraph", names: list) -> np.ndarray:
    position = {name: i for i, name in enumerate(names)}
    arcs = np.array([(position[a], position[b]) for a, b in graph.edges()], int).reshape(-1, 2)
    kept = without_cycles(arcs[:, 0], arcs[:, 1], len(names))
    out = np.zeros_like(to_matrix(graph, names))
    out[tuple(arcs[kept].T)] = True
    return out


def _depths(matrix: np.ndarray) -> np.ndarray:
    """Length of the longest path to each node; sources then move down to just above a child."""
    p = len(matrix)
    depth = np.zeros(p, int)
    for _ in range(p):  # at least one more node has its depth after each round
        deeper = np.where(matrix, depth[:, None] + 1, 0).max(axis=0, initial=0)
        if (deeper == depth).all():
            break
        depth = deeper
    sources = ~matrix.any(axis=0) & matrix.any(axis=1)
    nearest = np.where(matrix, depth[None], p).min(axis=1, initial=p) - 1
    return np.where(sources, nearest, depth)


def _with_dummies(matrix: np.ndarray, depth: np.ndarray, lonely: np.ndarray):
    """Layers of nodes (by number) and dummies (numbers from p on), and their links to below."""
    p = len(matrix)
    linked = np.setdiff1d(np.arange(p), lonely)
    n_layers = int(depth[linked].max()) + 1 if len(linked) else 0
    layers: Layers = [[i for i in linked.tolist() if depth[i] == k] for k in range(n_layers)]
    below: dict[int, list[int]] = {i: [] for i in linked.tolist()}
    for i, j in np.argwhere(matrix).tolist():
        last = i
        for k in range(depth[i] + 1, depth[j]):
            dummy = p + len(below)
            below[dummy] = []
            layers[k].append(dummy)
            below[last].append(dummy)
            last = dummy
        below[last].append(j)
    return layers, below


def _fewest_crossings(layers: Layers, below: dict[int, list[int]]) -> Layers:
    above: dict[int, list[int]] = {node: [] for node in below}
    for node, after in below.items():
        for other in after:
            above[other].append(node)
    best, fewest = layers, _crossings(layers, below)
    for _ in range(SWEEPS):
        layers = _sweep(layers, above)
        layers = _sweep(layers[::-1], below)[::-1]
        if (number := _crossings(layers, below)) < fewest:
            best, fewest = layers, number
        if not fewest:
            break
    return best


def _sweep(layers: Layers, neighbours: dict[int, list[int]]) -> Layers:
    """Order each layer by the mean place of its neighbours in the layer before."""
    out = layers[:1]
    for layer in layers[1:]:
        place = {node: (k + 0.5) / len(out[-1]) for k, node in enumerate(out[-1])}
        own = {node: (k + 0.5) / len(layer) for k, node in enumerate(layer)}
        key = {
            node: float(np.mean([place[other] for other in neighbours[node]] or [own[node]]))
            for node in layer
        }
        out.append(sorted(layer, key=key.__getitem__))
    return out


def _crossings(layers: Layers, below: dict[int, list[int]]) -> int:
    total = 0
    for upper, lower in itertools.pairwise(layers):
        place = {node: k for k, node in enumerate(lower)}
        ends = [
            place[other] for node in upper for other in sorted(below[node], key=place.__getitem__)
        ]
        later = np.array(ends)
        # Links sorted by their upper ends cross where lower ends are the wrong way round. Links
        # from one node are sorted by lower ends, so they do not count.
        total += int(np.triu(later[:, None] > later[None], 1).sum())
    return total


def _rows(nodes: list[int], width: int) -> Layers:
    """Cut nodes without arcs into rows no wider than the rest."""
    width = max(width, int(np.ceil(len(nodes) ** 0.5)))
    return [nodes[k : k + width] for k in range(0, len(nodes), width)]


def _coordinates(layers: Layers, p: int) -> dict[int, tuple[float, float]]:
    """Places in [-1, 1]: layers from top to bottom, each spread over its share of the width."""
    widest = max(map(len, layers), default=1)
    height = max(len(layers) - 1, 1)
    out = {}
    for k, layer in enumerate(layers):
        for place, node in enumerate(layer):
            if node < p:  # dummies only keep places
                x = (2 * place - len(layer) + 1) / max(widest - 1, 1)
                out[node] = (float(x), float(1 - 2 * k / height) if len(layers) > 1 else 0.0)
    return out
