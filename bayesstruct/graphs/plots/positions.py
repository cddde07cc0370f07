"""Positions of nodes, the same in every picture."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["layout"]

Positions = dict[str, tuple[float, float]]


def layout(idata_or_graph: Any, *, kind: str | None = None, random_seed: int = 0) -> Positions:
    """Place the variables in the plane.

    Parameters
    ----------
    idata_or_graph : xarray.DataTree or networkx.Graph
        Result of a bayesstruct graph model, or a graph.
    kind : {"circle", "spring", "layered"}, optional
        By default "layered" for directed graphs and "circle" for others. "circle" depends on
        nothing but the names and their order, so that pictures of different groups, models or
        priors can be laid side by side. "spring" pulls connected variables together; "layered"
        puts the parents of a directed graph above their children, in orders with few crossings
        [1]_. Compute these once and pass them as `pos=` to every picture.
    random_seed : int
        Of the starting positions of "spring".

    Returns
    -------
    dict of str to (float, float)
        Within the unit circle, "layered" within the square around it. "circle": first variable at
        the top, then clockwise.

    Raises
    ------
    ValueError
        For another `kind`, or "layered" for an undirected graph.

    References
    ----------
    .. [1] Sugiyama, Tagawa and Toda (1981). Methods for visual understanding of hierarchical system
       structures. IEEE Transactions on Systems, Man, and Cybernetics 11, 109-125.

    Examples
    --------
    >>> pos = layout(idata, kind="spring")  # doctest: +SKIP
    >>> plot_graph(idata, pos=pos)  # doctest: +SKIP
    """
    graph = as_graph(idata_or_graph)
    kind = kind or ("layered" if graph.is_directed() else "circle")
    if kind == "layered":
        return _layered(graph)
    if kind == "circle":
        return _circle(list(graph.nodes))
    if kind == "spring":
        return _spring(graph, random_seed)
    raise ValueError(f'`kind` must be "circle", "spring" or "layered", got {kind!r}.')


def as_graph(idata_or_graph) -> "nx.Graph":
    """Take a graph as it is, and of a posterior the median graph."""
    import networkx as nx

    from bayesstruct.graphs.graphs import median_graph

    if isinstance(idata_or_graph, nx.Graph):
        return idata_or_graph
    return median_graph(idata_or_graph)


def resolve(pos: Mapping | None, nodes) -> Positions:
    """Use the positions that were given, or the circle."""
    if pos is None:
        return _circle(list(nodes))
    absent = [str(node) for node in nodes if node not in pos]
    if absent:
        raise ValueError(f"`pos` has no position for {', '.join(absent)}.")
    return {node: (float(pos[node][0]), float(pos[node][1])) for node in nodes}


def is_round(pos: Positions) -> bool:
    """Whether all nodes are on one circle, so that labels can go outside it."""
    points = np.array(list(pos.values()))
    radius = np.hypot(*(points - points.mean(axis=0)).T)
    return len(points) > 2 and bool(np.allclose(radius, radius[0], rtol=1e-3))


def _layered(graph: "nx.Graph") -> Positions:
    from bayesstruct.graphs.plots.layers import layered

    if not graph.is_directed():
        raise ValueError(
            '`kind="layered"` is for directed graphs: an undirected one has no layers.'
        )
    return layered(graph)


def _circle(nodes: list) -> Positions:
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(nodes)) / max(len(nodes), 1)
    return {
        node: (float(x), float(y))
        for node, x, y in zip(nodes, np.cos(angle), np.sin(angle), strict=True)
    }


def _spring(graph: "nx.Graph", random_seed: int) -> Positions:
    import networkx as nx

    p = graph.number_of_nodes()
    start = nx.spring_layout(
        graph, seed=random_seed, k=2 / max(p, 1) ** 0.5, iterations=200, weight=None
    )
    points = _spread(np.array([start[node] for node in graph.nodes]))
    return {node: (float(x), float(y)) for node, (x, y) in zip(graph.nodes, points, strict=True)}


def _spread(points: np.ndarray, rounds: int = 100) -> np.ndarray:
    """Push apart nodes whose names would touch; springs alone let some overlap."""
    if len(points) < 2:
        return points
    gap = 1.65 / len(points) ** 0.5
    shape = np.array([1, 1.4])  # names are wide and low: less distance will do vertically
    for _ in range(rounds):
        points = points - points.mean(axis=0)
        points /= np.hypot(*points.T).max() or 1
        apart = points[:, None] - points[None]
        distance = np.hypot(*np.moveaxis(apart * shape, -1, 0))
        short = np.clip(gap - distance, 0, None) * (distance > 0)
        push = apart / np.where(distance > 0, distance, 1)[..., None] * short[..., None]
        points = points + 0.25 * push.sum(axis=1)
    points -= points.mean(axis=0)
    return points / np.hypot(*points.T).max()
