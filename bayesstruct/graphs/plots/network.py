"""Pictures of graphs: edges and arcs with their weights and probabilities."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.evidence import FIXED, INCLUDED
from bayesstruct.graphs.evidence import evidence as evidence_of
from bayesstruct.graphs.graphs import check_fraction
from bayesstruct.graphs.plots.arrows import ONE_WAY, PAIR, TWO_WAY, Arrow, Arrows
from bayesstruct.graphs.plots.layouts.curves import bends, curve
from bayesstruct.graphs.plots.layouts.positions import (
    Positions,
    add_backbone,
    is_round,
    place,
    resolve,
)
from bayesstruct.graphs.plots.legends import (
    DASHES,
    evidence_handles,
    fixed_handles,
    legend_below,
    line_width,
    node_handles,
    opacity,
    open_handles,
    probability_handles,
    put_below,
    weight_handles,
)
from bayesstruct.graphs.plots.nodes import draw_nodes, look_of, network_size, thinning
from bayesstruct.graphs.plots.picture import Picture
from bayesstruct.graphs.plots.style import axes, ink
from bayesstruct.graphs.posteriors.arcs import DagPosterior
from bayesstruct.graphs.posteriors.reading import read_graphs

if TYPE_CHECKING:
    import networkx as nx

    from matplotlib.axes import Axes

__all__ = ["add_lines", "draw_edges", "legend_below", "plot_graph", "weight_handles"]

ARROW = 0.6  # width of arrows against that of edges: heads take space
PLAIN = 1.5  # points, of lines without weights


def plot_graph(
    idata_or_graph: Any,
    *,
    layout: "str | Mapping | Axes | None" = None,
    pos: "Mapping | Axes | None" = None,
    ax: "Axes | None" = None,
    min_probability: float = 0.5,
    evidence: float | None = None,
    groups: Mapping | None = None,
    predictability: Mapping | None = None,
    max_weight: float | None = None,
    legend: bool = True,
) -> "Axes":
    """Draw a graph.

    Width is the absolute weight, colour its sign (blue positive, orange negative), opacity the
    probability of the edge. Edges that were required are black: they were not tested. Directed graphs have arrows and are drawn in layers, parents above
    children; a pair joined in both directions (see `cpdag`) is a line without heads, or two curved arrows if the two have weights of their own. Both directions
    of an edge of a Bayesian network, of which one at most is there, are one line without heads, as dark as the edge is probable, if both of them
    are probable enough to be drawn, or neither is while the edge is.

    Parameters
    ----------
    idata_or_graph : xarray.DataTree or networkx.Graph
        Result of a bayesstruct graph model, or a graph; of a graph whose edges have no `weight`
        or no `probability` all have the same style. Nodes whose attribute `hidden` is true have dashed outlines and slanted names.
    layout : {"circle", "spring", "kamada_kawai", "layers", "tree"}, mapping or Axes, optional
        Where the nodes are: a kind of :func:`bayesstruct.plots.layout`; positions (x, y) by name; or axes with another network, whose
        positions are taken. By default layers for directed graphs, "tree" for results that are trees or forests (of a posterior the tree with the largest
        sum of edge probabilities, whatever is drawn), a circle, the same for the same variables, for others up to 15 nodes, and "spring" for more.
    pos : mapping of name to (x, y) or Axes, optional
        The same as `layout` with positions.
    ax : matplotlib.axes.Axes, optional
        Where to draw.
    min_probability : float, between 0 and 1
        Only edges that are at least this probable are drawn.
    evidence : float, above 1, optional
        Bayes factor from which an edge counts as found, commonly 10. Edges that the data include are then drawn whatever their probability; those that are as probable as
        `min_probability` but undecided are dashed. Needs a result, not a graph.
    groups : mapping of name to group, or pandas.Series, optional
        Nodes of a group have a colour, which the legend explains.
    predictability : mapping of name to float, or pandas.Series, optional
        Numbers in [0, 1] (NaN for none), such as R2: that part of a ring around the node is filled, clockwise from the top.
    max_weight : float, optional
        Absolute weight that is drawn at full width; by default that of the strongest edge. Set it
        to compare pictures.
    legend : bool
        Whether to explain width, colour, opacity and what else was drawn.

    Returns
    -------
    matplotlib.axes.Axes
        The network fills it, and is arranged anew when its size changes. Long names are broken into lines, shortened, or replaced by numbers, such that
        none lies over another or over a node; a key then has the full names. Where not even the key has room (a hundred long names on a small figure, or more than 300 nodes), a note
        in the picture says so: a larger figure helps.

    Raises
    ------
    ValueError
        When `min_probability` is not strictly between 0 and 1, positions, `groups` or `predictability` lack a variable, `layout` is none of the above, or `evidence` is not above 1.

    Notes
    -----
    Fonts, their size, and colours of text and background are those of Matplotlib's rcParams, dark themes included. Networks of the same
    variables side by side, in axes of the same size, have the same scale, whatever the heights of their legends.

    Examples
    --------
    >>> ax = plot_graph(idata, min_probability=0.9)  # doctest: +SKIP

    The same positions in two pictures, edges by their Bayes factors:

    >>> fig, (left, right) = plt.subplots(1, 2, layout="constrained")  # doctest: +SKIP
    >>> plot_graph(idata, ax=left, layout="spring", evidence=10)  # doctest: +SKIP
    >>> plot_graph(other, ax=right, layout=left, evidence=10)  # doctest: +SKIP
    """
    import networkx as nx

    check_fraction("min_probability", min_probability)
    if max_weight is not None and not max_weight > 0:
        raise ValueError(f"`max_weight` must be above 0, got {max_weight}.")
    graph = _shown(idata_or_graph, min_probability, evidence)
    pos = _positions(graph, layout, pos)
    ax = axes(ax, network_size(graph.nodes))
    look, colours = look_of(graph.nodes, groups, predictability, graph.nodes(data="hidden"))
    draw = _draw_arcs if graph.is_directed() else _draw_lines
    handles = draw(ax, graph, pos, min_probability, max_weight)
    if legend:
        if evidence is not None and graph.edges:
            dashed = any(about.get("undecided") for *_, about in graph.edges(data=True))
            handles += evidence_handles(ax, evidence, dashed, min_probability)
        required = sum(bool(about.get("required")) for *_, about in graph.edges(data=True))
        handles += fixed_handles(ax, required, graph.graph.get("forbidden", 0))
        title = _title(graph, min_probability, evidence) if handles else None
        if not graph.edges and not isinstance(idata_or_graph, nx.Graph):
            title = _nothing(graph, min_probability, evidence)
        shown = look.hidden is not None and groups is None
        handles += node_handles(ax, colours, predictability is not None, hidden=shown)
        put_below(ax, handles, title)
    draw_nodes(ax, pos, look)
    return ax


def _title(graph: "nx.Graph", min_probability: float, threshold: float | None) -> str | None:
    line = "arc" if graph.is_directed() else "edge"
    if threshold is not None:
        return "paler = less probable"
    if not any("probability" in about for *_, about in graph.edges(data=True)):
        return None
    return f"P({line}) ≥ {min_probability:g}, paler = less probable"


def _nothing(graph: "nx.Graph", min_probability: float, threshold: float | None) -> str:
    """Say that a result has no line to draw, so that the picture is not taken for an unfinished one."""
    line = "arc" if graph.is_directed() else "edge"
    included = "" if threshold is None else f" or BF ≥ {threshold:g}"
    return f"no {line} has P ≥ {min_probability:g}{included}"


def _shown(idata_or_graph, min_probability: float, threshold: float | None) -> "nx.Graph":
    """Take the lines that are drawn, strongest last, with what was required or undecided noted on them."""
    import networkx as nx

    if isinstance(idata_or_graph, nx.Graph):
        if threshold is not None:
            raise ValueError(
                "`evidence` needs the Bayes factors of a result: pass the result, not a graph of it"
            )
        edges = [
            edge
            for edge in idata_or_graph.edges(data=True)
            if edge[2].get("probability", 1) >= min_probability
        ]
        graph = nx.DiGraph() if idata_or_graph.is_directed() else nx.Graph()
        graph.add_nodes_from(idata_or_graph.nodes(data=True))  # their order decides on layouts
        graph.add_edges_from(edges)
        graph.graph.update(idata_or_graph.graph)
        return graph
    posterior = read_graphs(idata_or_graph)
    chosen = posterior.median_lines(min_probability)
    undecided = np.zeros(len(chosen), bool)
    if threshold is not None:
        kind = evidence_of(posterior.bayes_factors()[0], threshold)
        undecided = ~np.isin(kind, (INCLUDED, FIXED))
        chosen = chosen | (kind == INCLUDED)
    if isinstance(posterior, DagPosterior):
        chosen = chosen | _joined(posterior, chosen, min_probability)
    graph = posterior.graph(chosen)
    required = posterior.fixed & (posterior.prior == 1)
    source, target = posterior.ends()
    for k in np.flatnonzero(chosen & (required | undecided)):
        graph.edges[source[k], target[k]].update(
            required=bool(required[k]), undecided=bool(undecided[k])
        )
    graph.graph["forbidden"] = int((posterior.fixed & (posterior.prior == 0)).sum())
    graph.graph["acyclic"] = isinstance(posterior, DagPosterior)
    return add_backbone(graph, posterior)


def _joined(posterior: DagPosterior, chosen: np.ndarray, least: float) -> np.ndarray:
    """Both arcs of pairs that are joined with this probability, while neither direction is chosen."""
    own, taken = posterior.matrix(posterior.probability), posterior.matrix(chosen)
    joined = (own + own.T >= least) & ~((taken != 0) | (taken.T != 0))
    return joined[posterior.source, posterior.target]


def _positions(graph: "nx.Graph", layout, pos) -> Positions:
    if layout is not None and pos is not None:
        raise ValueError("`layout` and `pos` both say where the nodes are: pass one of them")
    given = layout if pos is None else pos
    if given is None or isinstance(given, str):
        return place(graph, given)
    return resolve(given, graph.nodes)


def _draw_lines(ax: "Axes", graph, pos, min_probability, max_weight) -> list:
    edges = list(graph.edges(data=True))
    largest = draw_edges(ax, edges, pos, max_weight)
    return [] if largest is None else weight_handles(largest, len(pos), ax=ax)


def draw_edges(ax: "Axes", edges: list, pos: Positions, max_weight: float | None):
    """Draw edges, strongest on top, and return the weight at full width (None: unweighted)."""
    from matplotlib.colors import to_rgba

    edges = sorted(edges, key=lambda edge: abs(edge[2].get("weight", 0)))
    weight, probability, dashes, colour, largest = _styles(ax, edges, max_weight)
    width = (PLAIN if largest is None else line_width(weight, largest)) * thinning(ax, len(pos))
    at = {name: k for k, name in enumerate(pos)}
    add_lines(
        ax,
        pos,
        np.array([(at[a], at[b]) for a, b, _ in edges], int).reshape(-1, 2),
        colors=[to_rgba(c, float(o)) for c, o in zip(colour, opacity(probability), strict=True)],
        linewidths=width,
        linestyles=dashes or "-",
        capstyle="butt" if "-" not in dashes else "round",
        zorder=2,
    )
    return largest


def add_lines(
    ax: "Axes", pos: Positions, ends: np.ndarray, *, around: bool = True, **style: Any
) -> None:
    """Draw lines between nodes, around those in their way.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    pos : dict of name to (float, float)
    ends : (n, 2) ndarray of int
        Places of the ends among the nodes.
    around : bool
        False: straight, whatever is in their way, which is faster.
    **style
        Of ``LineCollection``.
    """
    from matplotlib.collections import LineCollection

    points = np.array(list(pos.values()), float)
    lines = LineCollection(list(points[ends]), clip_on=False, **style)
    ax.add_collection(lines, autolim=False)
    if around:
        Picture.on(ax, pos).follow(partial(_bend, lines, ends))


def _bend(lines, ends: np.ndarray, ax: "Axes", picture: Picture) -> None:
    """Lead lines around the nodes in their way."""
    found, points = picture.arrangement, picture.points
    assert found is not None
    inward = is_round(picture.pos)
    bent = bends(points * found.scale, found.bodies.half, ends, inward=inward)
    steps = np.linspace(0, 1, 30)
    segments = []
    for (i, j), bend in zip(ends, bent, strict=True):
        ends_here = points[[i, j]]
        if bend:
            start, end = ends_here * found.scale
            ends_here = curve(start, end, bend, steps) / found.scale
        segments.append(ends_here)
    lines.set_segments(segments)


def _styles(ax: "Axes", edges: list, max_weight: float | None):
    """Weights, probabilities, dashes and colours of lines, and the weight at full width."""
    colours = ink(ax)
    weight = np.array([about.get("weight", np.nan) for *_, about in edges], float)
    probability = np.array([about.get("probability", 1.0) for *_, about in edges], float)
    weighted = len(edges) > 0 and not np.isnan(weight).any()
    largest = (max_weight or np.abs(weight).max() or 1.0) if weighted else None
    colour = np.full(len(edges), colours.line, dtype=object)
    if largest is not None:
        colour = np.where(weight < 0, colours.negative, colours.positive).astype(object)
    required = np.array([bool(about.get("required")) for *_, about in edges], bool)
    colour[required] = colours.text
    dashes: list[Any] = [DASHES if about.get("undecided") else "-" for *_, about in edges]
    return weight, probability, dashes, colour, largest


def _draw_arcs(ax: "Axes", graph, pos, min_probability, max_weight) -> list:
    from matplotlib.colors import to_rgba

    arcs = _arcs(graph)
    plain = [(a, b, about) for a, b, _, about in arcs]
    weight, probability, dashes, colour, largest = _styles(ax, plain, max_weight)
    thin = thinning(ax, len(pos))
    width = np.full(len(arcs), PLAIN) if largest is None else line_width(weight, largest) * ARROW
    at = {name: k for k, name in enumerate(pos)}
    arrows = [
        Arrow(at[a], at[b], way, to_rgba(colour[k], float(opacity(probability)[k])),
              float(width[k] * thin), dashes[k])
        for k, (a, b, way, _) in enumerate(arcs)
    ]  # fmt: skip
    Picture.on(ax, pos).follow(Arrows(arrows, thin))
    both = open_handles(ax, sum(bool(about.get("open")) for *_, about in arcs))
    if largest is not None:
        return weight_handles(largest, len(pos), ARROW, ax=ax) + both
    known = arcs and all("probability" in about for *_, about in arcs)
    return (probability_handles(ax, min_probability) if known else []) + both


def _exclude_each_other(graph, about: dict, back: dict) -> bool:
    """Whether two arcs are directions of one edge of acyclic graphs, of which one at most is there."""
    if "probability" not in about or "probability" not in back:
        return False
    return (
        graph.graph.get("acyclic", True) and about["probability"] + back["probability"] < 1 + 1e-9
    )


def _either_way(about: dict, back: dict) -> dict:
    """Describe an edge of undecided direction: probabilities and mean weights of both directions add up."""
    sums = {
        key: about[key] + back[key]
        for key in ("probability", "weight")
        if key in about and key in back
    }
    undecided = bool(about.get("undecided")) and bool(back.get("undecided"))
    return sums | {"undecided": undecided, "open": True}


def _arcs(graph) -> list[tuple[Any, Any, str, dict]]:
    """List arcs, strongest last; those of a pair once, unless they have weights of their own."""
    out: dict[tuple, tuple] = {}
    for a, b, about in graph.edges(data=True):
        back = graph.get_edge_data(b, a)
        if back is None:
            out[a, b] = (a, b, ONE_WAY, about)
        elif _exclude_each_other(graph, about, back):
            if (b, a) not in out:
                out[a, b] = (a, b, TWO_WAY, _either_way(about, back))
        elif about.get("weight") != back.get("weight"):
            out[a, b] = (a, b, PAIR, about)
        elif (b, a) not in out:
            known = {key: value for key, value in about.items() if key != "weight"}
            out[a, b] = (a, b, TWO_WAY, known)

    def strength(arc):
        return abs(arc[3].get("weight", 0.0)), arc[3].get("probability", 1.0)

    return sorted(out.values(), key=strength)
