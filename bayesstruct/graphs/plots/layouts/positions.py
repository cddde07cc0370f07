"""Positions of nodes, the same in every picture."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayesstruct.graphs.plots.layouts.geometry import into_square, separate
from bayesstruct.graphs.plots.layouts.trees import spanning_lines, tree_points
from bayesstruct.graphs.plots.style import LINE, wrap
from bayesstruct.graphs.records import AcyclicEdges

if TYPE_CHECKING:
    import networkx as nx

    from matplotlib.axes import Axes

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["layout"]

#: Attributes of graphs: that they are forests by construction, and lines by which their nodes are placed.
FOREST, BACKBONE = "forest", "backbone"

#: Nodes up to which an undirected graph is drawn as a circle by default.
ROUND = 15
#: Nodes up to which they have names, and are kept apart for that.
NAMED = 300

Positions = dict[str, tuple[float, float]]


def layout(idata_or_graph: Any, *, kind: str | None = None, random_seed: int = 0) -> Positions:
    """Place the variables in the plane.

    Parameters
    ----------
    idata_or_graph : xarray.DataTree or networkx.Graph
        Result of a bayesstruct graph model, or a graph.
    kind : {"circle", "spring", "kamada_kawai", "layers", "tree"}, optional
        By default "layers" for directed graphs; "tree" for trees and forests of :func:`bayesstruct.models.tree`, :func:`bayesstruct.solvers.chow_liu` and
        :func:`bayesstruct.solvers.latent_tree`; for others "circle" up to 15 variables and "spring" for more. "circle" depends on
        nothing but the names and their order, so that pictures of different groups, models or
        priors can be laid side by side. "spring" pulls connected variables together [1]_;
        "kamada_kawai" makes distances in the plane as equal as can be to those along edges [2]_; "layers" (also "layered")
        puts the parents of a directed graph above their children, in orders with few crossings
        [3]_; "tree" puts the branches of a tree around its middle, of other graphs those of the spanning forest of their most probable (then strongest)
        edges, and of a posterior of trees those of the tree with the largest sum of probabilities [4]_. Compute these once and pass them as `layout=` to every picture.
    random_seed : int
        Of the starting positions of "spring".

    Returns
    -------
    dict of str to (float, float)
        "circle": on the unit circle, first variable at the top, then clockwise. All others: within the square around it, variables without edges in rows at the bottom.

    Raises
    ------
    ValueError
        For another `kind`, or "layers" for an undirected graph.

    References
    ----------
    .. [1] Fruchterman and Reingold (1991). Graph drawing by force-directed placement. Software: Practice and Experience 21, 1129-1164.
    .. [2] Kamada and Kawai (1989). An algorithm for drawing general undirected graphs. Information Processing Letters 31, 7-15.
    .. [3] Sugiyama, Tagawa and Toda (1981). Methods for visual understanding of hierarchical system
       structures. IEEE Transactions on Systems, Man, and Cybernetics 11, 109-125.
    .. [4] Gansner, Koren and North (2005). Graph drawing by stress majorization. Lecture Notes in Computer Science 3383, 239-250.

    Examples
    --------
    >>> pos = layout(idata, kind="spring")  # doctest: +SKIP
    >>> plot_graph(idata, layout=pos)  # doctest: +SKIP
    """
    return place(as_graph(idata_or_graph), kind, random_seed)


def place(graph: "nx.Graph", kind: str | None, random_seed: int = 0) -> Positions:
    """Place the nodes of a graph."""
    if kind is None:
        kind = _usual(graph)
    if kind in ("layers", "layered"):
        return _layers(graph)
    if kind == "circle":
        return _circle(list(graph.nodes))
    if kind in ("spring", "kamada_kawai"):
        return _by_edges(graph, kind, random_seed)
    if kind == "tree":
        return _by_edges(_forest(graph), kind, random_seed)
    raise ValueError(
        f'`layout` must be "circle", "spring", "kamada_kawai", "layers" or "tree", got {kind!r}.'
    )


def _usual(graph: "nx.Graph") -> str:
    """Kind of layout unless one is asked for."""
    if graph.is_directed():
        return "layers"
    if graph.graph.get(FOREST):
        return "tree"
    return "circle" if graph.number_of_nodes() <= ROUND else "spring"


def _forest(graph: "nx.Graph") -> "nx.Graph":
    """Forest by which the nodes of a graph are placed."""
    import networkx as nx

    out: nx.Graph = nx.Graph()
    out.add_nodes_from(graph.nodes)
    lines = graph.graph.get(BACKBONE)
    out.add_edges_from(spanning_lines(graph) if lines is None else lines)
    return out


def add_backbone(graph: "nx.Graph", posterior: "GraphPosterior") -> "nx.Graph":
    """Note on a graph of a posterior of trees by which lines its nodes are placed, whichever lines it has."""
    if not posterior.directed and AcyclicEdges.is_in(posterior.constants):
        likely = posterior.graph(posterior.probability > 0)
        graph.graph[BACKBONE] = spanning_lines(likely)
    return graph


def as_graph(idata_or_graph) -> "nx.Graph":
    """Take a graph as it is, and of a posterior the median graph."""
    import networkx as nx

    from bayesstruct.graphs.graphs import median_graph
    from bayesstruct.graphs.posteriors.reading import read_graphs

    if isinstance(idata_or_graph, nx.Graph):
        return idata_or_graph
    return add_backbone(median_graph(idata_or_graph), read_graphs(idata_or_graph))


def resolve(pos: "Mapping | Axes | None", nodes) -> Positions:
    """Use the positions that were given, or those of another picture, or the circle."""
    if pos is None:
        return _circle(list(nodes))
    if hasattr(pos, "get_axes_locator"):
        pos = of_picture(cast("Axes", pos))
    if not hasattr(pos, "keys"):
        raise ValueError(
            "positions must be a mapping of names to (x, y), or the axes of another network"
        )
    absent = [str(node) for node in nodes if node not in pos]
    if absent:
        raise ValueError(f"`pos` has no position for {', '.join(absent)}.")
    wrong = [str(node) for node in nodes if not np.isfinite(np.asarray(pos[node], float)).all()]
    if wrong:
        raise ValueError(
            f"`pos` must have two finite numbers for each node, not for {', '.join(wrong)}."
        )
    return {node: (float(pos[node][0]), float(pos[node][1])) for node in nodes}


def of_picture(ax: "Axes") -> Mapping:
    """Positions of the network on an axes.

    Raises
    ------
    ValueError
        When there is none.
    """
    pos = getattr(ax.get_axes_locator(), "pos", None)
    if pos is None:
        raise ValueError("these axes have no network: pass the axes that `plot_graph` returned")
    return pos


def is_round(pos: Positions) -> bool:
    """Whether all nodes are on one circle, so that labels can go outside it."""
    points = np.array(list(pos.values()))
    radius = np.hypot(*(points - points.mean(axis=0)).T)
    return len(points) > 2 and bool(np.allclose(radius, radius[0], rtol=1e-3))


def _layers(graph: "nx.Graph") -> Positions:
    from bayesstruct.graphs.plots.layouts.layers import layered

    if not graph.is_directed():
        raise ValueError(
            '`layout="layers"` is for directed graphs: an undirected one has no layers. Use "circle", "spring", "kamada_kawai" or "tree".'
        )
    return layered(graph)


def _circle(nodes: list) -> Positions:
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(nodes)) / max(len(nodes), 1)
    return {
        node: (float(x), float(y))
        for node, x, y in zip(nodes, np.cos(angle), np.sin(angle), strict=True)
    }


def _by_edges(graph: "nx.Graph", kind: str, random_seed: int) -> Positions:
    """Place joined nodes near each other, those without edges in rows below."""
    nodes = list(graph.nodes)
    lonely = [k for k, node in enumerate(nodes) if not graph.degree(node)]
    joined = [k for k, node in enumerate(nodes) if graph.degree(node)]
    points = np.zeros((len(nodes), 2))
    if joined:
        part = _in_one_piece(graph.subgraph(nodes[k] for k in joined), [nodes[k] for k in joined])
        if kind == "tree":
            points[joined] = tree_points(part, _half_sizes([str(nodes[k]) for k in joined]))
        else:
            points[joined] = _evened(_pulled(part, kind, random_seed))
    points[lonely] = _rows(len(lonely), len(nodes))
    if lonely and joined:  # each row takes as much height as a row of all nodes in a square would
        share = min(len(set(points[lonely, 1])) / (len(nodes) ** 0.5 + 1), 0.7)
        points[joined, 1] = share + (1 - share) * points[joined, 1]
        points[lonely, 1] = -1 + share * (points[lonely, 1] + 1) * 0.6
    if len(nodes) <= NAMED:
        half = _half_sizes([str(node) for node in nodes])
        points = separate(points, half, rounds=200 if len(nodes) <= 100 else 60)
    return {node: (float(x), float(y)) for node, (x, y) in zip(nodes, points, strict=True)}


def _in_one_piece(graph: "nx.Graph", nodes: list) -> "nx.Graph":
    """Join the components by weak edges between their best connected nodes: else they drift apart."""
    import networkx as nx

    out = nx.Graph()
    out.add_nodes_from(nodes)
    out.add_edges_from(graph.edges, weight=1.0)
    parts = sorted(nx.connected_components(out), key=len, reverse=True)
    order = {node: k for k, node in enumerate(nodes)}
    centres = [min(part, key=lambda node: (-out.degree(node), order[node])) for part in parts]
    out.add_edges_from([(centres[0], other) for other in centres[1:]], weight=0.3)
    return out


def _pulled(graph: "nx.Graph", kind: str, random_seed: int) -> np.ndarray:
    import networkx as nx

    p = graph.number_of_nodes()
    if kind == "kamada_kawai":
        found = nx.kamada_kawai_layout(graph, weight=None)
    else:
        found = nx.spring_layout(
            graph, seed=random_seed, k=2 / max(p, 1) ** 0.5, iterations=200 if p <= 200 else 60
        )
    return np.array([found[node] for node in graph.nodes]).reshape(-1, 2)


def _evened(points: np.ndarray) -> np.ndarray:
    """Fill the square more evenly: halfway from places to their ranks, both ways."""
    ranks = points.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    return (into_square(points) + into_square(ranks.astype(float))) / 2


def _rows(n: int, p: int) -> np.ndarray:
    """Rows of n nodes in the square, not many more in a row than p nodes would have."""
    width = max(int(np.ceil(1.2 * p**0.5)), 1)
    rows = max(-(-n // width), 1)
    at = np.arange(n)
    counts = np.bincount(at % rows, minlength=rows)  # as equal as can be
    row = np.repeat(np.arange(rows), counts)
    place = at - np.repeat(np.cumsum(counts) - counts, counts)
    x = (2 * place + 1) / counts[row] - 1 if n else np.zeros(0)
    y = 1 - 2 * row / max(rows - 1, 1) if rows > 1 else np.zeros(n)
    return np.stack([x, y], axis=1)


def _half_sizes(names: list[str]) -> np.ndarray:
    """Half sizes of framed names in the square, on a page of the usual size; of discs where there is no room for them."""
    p, size = len(names), 8.5
    lines = [wrap(name, LINE).split("\n") for name in names]
    length = np.array([max(map(len, parts)) for parts in lines], float)
    height = np.array([len(parts) for parts in lines], float)
    side = 36 * (4.6 + 0.06 * p)  # points of half the side
    half = np.stack([(0.3 * length + 0.8) * size, (0.6 * height + 0.5) * size], axis=1) / side
    disc = np.full((p, 2), 0.5 / p**0.5)  # room for discs with numbers and rings, too
    for room in (np.maximum(half, disc), half):
        if room.prod(axis=1).sum() <= 0.32:
            return room
    return disc * 1.2
