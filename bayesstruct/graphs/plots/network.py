"""Pictures of graphs: edges and arcs with their weights and probabilities."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.graphs import check_fraction, median_graph
from bayesstruct.graphs.plots.arrows import arrow_style, draw_arrows
from bayesstruct.graphs.plots.nodes import crowding, draw_nodes, legend_columns, network_size
from bayesstruct.graphs.plots.positions import Positions, layout, resolve
from bayesstruct.graphs.plots.style import NEGATIVE, NEUTRAL, POSITIVE, axes, sign_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_edges", "legend_below", "plot_graph", "weight_handles"]

MAX_WIDTH = 6.0  # points, of the strongest edge
MIN_OPACITY = 0.25
ARROW = 0.6  # width of arrows against that of edges: heads take space


def plot_graph(
    idata_or_graph: Any,
    *,
    pos: Mapping | None = None,
    ax: "Axes | None" = None,
    min_probability: float = 0.5,
    max_weight: float | None = None,
    legend: bool = True,
) -> "Axes":
    """Draw a graph.

    Width is the absolute weight, colour its sign (blue positive, orange negative), opacity the
    probability of the edge. Directed graphs have arrows and are drawn in layers, parents above
    children; a pair joined in both directions (see `cpdag`) is a line without heads.

    Parameters
    ----------
    idata_or_graph : xarray.DataTree or networkx.Graph
        Result of a bayesstruct graph model, or a graph; of a graph whose edges have no `weight`
        or no `probability` all have the same style.
    pos : mapping of name to (x, y), optional
        Positions; by default those of `layout`: a circle, the same for the same variables, or the
        layers of a directed graph.
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
    if graph.is_directed():
        _draw_directed(ax, graph, pos, min_probability, max_weight, legend)
        return ax
    pos = resolve(pos, graph.nodes)
    edges = [e for e in graph.edges(data=True) if e[2].get("probability", 1) >= min_probability]
    largest = draw_edges(ax, edges, pos, max_weight)
    if legend and largest is not None:
        legend_below(ax, weight_handles(largest, len(pos)), f"P(edge) ≥ {min_probability:g}")
    draw_nodes(ax, pos)
    return ax


def _draw_directed(ax: "Axes", graph, pos, min_probability, max_weight, legend) -> None:
    """Draw arrows once nodes are there: they end at the borders of the names."""
    shown = [
        arc for arc in graph.edges if graph.edges[arc].get("probability", 1) >= min_probability
    ]
    kept = graph.edge_subgraph(shown).copy()
    kept.add_nodes_from(graph.nodes)
    pos = resolve(layout(_in_order(kept, graph.nodes)) if pos is None else pos, graph.nodes)
    arcs, weight, probability = _arcs(kept)
    largest = None if np.isnan(weight).any() or not len(weight) else _largest(weight, max_weight)
    if legend:
        handles = _handles(kept, largest, min_probability, len(pos))
        if handles:
            legend_below(ax, handles, f"P(arc) ≥ {min_probability:g}")
    sizes = draw_nodes(ax, pos)
    width = np.full(len(arcs), 1.5) if largest is None else _width(weight, largest) * ARROW
    style = arrow_style(weight, width * crowding(len(pos)), _opacity(probability))
    draw_arrows(ax, arcs, pos, sizes, style)


def _in_order(graph, nodes):
    """Put the nodes of a graph into the order of the table, on which layouts depend."""
    import networkx as nx

    out = nx.DiGraph()
    out.add_nodes_from(nodes)
    out.add_edges_from(graph.edges(data=True))
    return out


def _arcs(graph) -> tuple[list, np.ndarray, np.ndarray]:
    """List arcs, their weights and probabilities, strongest last; two-way ones once, unweighted."""
    arcs = {}
    for a, b, about in graph.edges(data=True):
        both = graph.has_edge(b, a)
        if (b, a) not in arcs:
            weight = np.nan if both else about.get("weight", np.nan)
            arcs[a, b] = (a, b, both, weight, about.get("probability", 1.0))
    found = sorted(arcs.values(), key=lambda arc: (np.nan_to_num(abs(arc[3])), arc[4]))
    weight = np.array([arc[3] for arc in found], float)
    return [arc[:3] for arc in found], weight, np.array([arc[4] for arc in found], float)


def _largest(weight: np.ndarray, max_weight: float | None) -> float:
    return max_weight or np.abs(weight).max() or 1.0


def _opacity(probability: np.ndarray) -> np.ndarray:
    return MIN_OPACITY + (1 - MIN_OPACITY) * probability**2


def draw_edges(ax: "Axes", edges: list, pos: Positions, max_weight: float | None):
    """Draw edges, strongest on top, and return the weight at full width (None: unweighted)."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    edges = sorted(edges, key=lambda edge: abs(edge[2].get("weight", 0)))
    weight = np.array([about.get("weight", np.nan) for *_, about in edges])
    probability = np.array([about.get("probability", 1.0) for *_, about in edges])
    weighted = len(edges) > 0 and not np.isnan(weight).any()
    largest = _largest(weight, max_weight) if weighted else None
    colour = np.full(len(edges), NEUTRAL) if largest is None else sign_colour(weight)
    width = (1.5 if largest is None else _width(weight, largest)) * crowding(len(pos))
    opacity = _opacity(probability)
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


def _handles(graph, largest: float | None, min_probability: float, p: int) -> list:
    """Explain weights, or probabilities alone, or nothing."""
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D

    if largest is not None:
        return weight_handles(largest, p, ARROW)
    if not graph.edges or not all("probability" in about for *_, about in graph.edges(data=True)):
        return []
    shades = [(share, float(_opacity(np.array(share)))) for share in (1.0, min_probability)]
    return [
        Line2D([], [], color=to_rgba(NEUTRAL, shade), lw=1.5, label=f"P = {share:g}")
        for share, shade in shades
    ]


def weight_handles(
    largest: float,
    p: int,
    thin: float = 1.0,
    *,
    signs: tuple[str, str] = ("positive", "negative"),
    quantity: str = "weight",
) -> list:
    """Entries of a legend for the colours and widths of lines.

    Parameters
    ----------
    largest : float
        Weight at full width.
    p : int
        Number of nodes.
    thin : float
        Factor of the widths.
    signs : pair of str
        What the two colours mean.
    quantity : str
        What the width is.
    """
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=POSITIVE, lw=2.5, label=signs[0]),
        Line2D([], [], color=NEGATIVE, lw=2.5, label=signs[1]),
    ]
    for share in (1.0, 0.33):
        size = thin * _width(share * largest, largest) * crowding(p)
        label = f"|{quantity}| = {share * largest:.2g}"
        handles.append(Line2D([], [], color=NEUTRAL, lw=size, label=label))
    return handles


def legend_below(ax: "Axes", handles: list, title: str) -> None:
    """Explain lines below the picture."""
    ax.legend(
        handles=handles,
        title=f"{title}, paler = less probable",
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        ncols=legend_columns(ax, len(handles), 4.5),
        frameon=False,
        fontsize=9,
        title_fontsize=9,
        columnspacing=1.4,
        handlelength=1.8,
    )
