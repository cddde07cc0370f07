"""The network: which variables are connected, how strongly, and how surely."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.plots._nodes import crowding, draw_nodes, legend_columns, network_size
from bayesstruct.plots._style import NEGATIVE, NEUTRAL, POSITIVE, axes, sign_colour
from bayesstruct.plots.positions import Positions, resolve
from bayesstruct.structure.graphs import check_fraction, median_graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_graph"]

MAX_WIDTH = 6.0  # points, of the strongest edge
MIN_OPACITY = 0.25


def plot_graph(
    idata_or_graph,
    *,
    pos: Mapping | None = None,
    ax: "Axes | None" = None,
    min_probability: float = 0.5,
    max_weight: float | None = None,
    legend: bool = True,
) -> "Axes":
    """Draw the network.

    Width is the absolute weight, colour its sign (blue positive, orange negative), opacity the
    probability of the edge.

    Parameters
    ----------
    idata_or_graph : xarray.DataTree or networkx.Graph
        Result of a bayesstruct graph model, or a graph; of a graph whose edges have no `weight`
        or no `probability` all are drawn alike.
    pos : mapping of name to (x, y), optional
        Positions; by default the circle of `layout`, the same for the same variables.
    ax : matplotlib.axes.Axes, optional
        Where to draw.
    min_probability : float, between 0 and 1
        Only edges that are at least this probable are drawn.
    max_weight : float, optional
        Absolute weight that is drawn at full width; by default that of the strongest edge. Set it
        to compare pictures.
    legend : bool
        Whether to explain width, colour and opacity.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        When `min_probability` is not strictly between 0 and 1, or `pos` lacks a variable.

    Examples
    --------
    >>> ax = plot_graph(idata, min_probability=0.9)  # doctest: +SKIP
    """
    import networkx as nx

    check_fraction("min_probability", min_probability)
    if isinstance(idata_or_graph, nx.Graph):
        graph = idata_or_graph
    else:
        graph = median_graph(idata_or_graph, min_probability)
    ax = axes(ax, network_size(graph.nodes))
    pos = resolve(pos, graph.nodes)
    edges = [e for e in graph.edges(data=True) if e[2].get("probability", 1) >= min_probability]
    largest = _draw_edges(ax, edges, pos, max_weight)
    if legend and largest is not None:
        _legend(ax, largest, min_probability, len(pos))
    draw_nodes(ax, pos)
    return ax


def _draw_edges(ax: "Axes", edges: list, pos: Positions, max_weight: float | None):
    """Draw edges, strongest on top, and return the weight at full width (None: unweighted)."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    edges = sorted(edges, key=lambda edge: abs(edge[2].get("weight", 0)))
    weight = np.array([about.get("weight", np.nan) for *_, about in edges])
    probability = np.array([about.get("probability", 1.0) for *_, about in edges])
    weighted = len(edges) > 0 and not np.isnan(weight).any()
    largest = (max_weight or np.abs(weight).max() or 1.0) if weighted else None
    colour = sign_colour(weight) if weighted else np.full(len(edges), NEUTRAL)
    width = (_width(weight, largest) if weighted else 1.5) * crowding(len(pos))
    opacity = MIN_OPACITY + (1 - MIN_OPACITY) * probability**2
    lines = LineCollection(
        [(pos[a], pos[b]) for a, b, _ in edges],
        colors=[to_rgba(c, float(o)) for c, o in zip(colour, opacity, strict=True)],
        linewidths=width,
        capstyle="round",
        zorder=2,
    )
    ax.add_collection(lines, autolim=False)
    return largest


def _width(weight, largest: float):
    return 0.5 + (MAX_WIDTH - 0.5) * np.minimum(np.abs(weight) / largest, 1)


def _legend(ax: "Axes", largest: float, min_probability: float, p: int) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=POSITIVE, lw=2.5, label="positive"),
        Line2D([], [], color=NEGATIVE, lw=2.5, label="negative"),
    ]
    for share in (1.0, 0.33):
        size = _width(share * largest, largest) * crowding(p)
        label = f"|weight| = {share * largest:.2g}"
        handles.append(Line2D([], [], color=NEUTRAL, lw=size, label=label))
    ax.legend(
        handles=handles,
        title=f"P(edge) ≥ {min_probability:g}, paler = less sure",
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        ncols=legend_columns(ax, 4, 4.5),
        frameon=False,
        fontsize=9,
        title_fontsize=9,
        columnspacing=1.4,
        handlelength=1.8,
    )
