"""Edges as included, excluded or undecided by their Bayes factors: a network, three panels, or a matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesstruct.graphs.evidence import (
    EXCLUDED,
    FIXED,
    INCLUDED,
    STRONG,
    UNDECIDED,
    check_threshold,
    evidence,
)
from bayesstruct.graphs.plots.grid import (
    alike_together,
    draw_cells,
    grid_size,
    hatch_cells,
    legend_above,
    name_sides,
    text_size,
)
from bayesstruct.graphs.plots.layouts.positions import Positions, add_backbone, place, resolve
from bayesstruct.graphs.plots.legends import put_below
from bayesstruct.graphs.plots.network import add_lines
from bayesstruct.graphs.plots.nodes import crowding, draw_nodes, network_size
from bayesstruct.graphs.plots.style import FAINT, NEGATIVE, POSITIVE, axes
from bayesstruct.graphs.posteriors.arcs import ArcPosterior, DagPosterior
from bayesstruct.graphs.posteriors.reading import read
from bayesstruct.graphs.posteriors.weight_names import INFORMATION, weight_name

if TYPE_CHECKING:
    import xarray as xr

    from matplotlib.axes import Axes

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["node_order", "plot_evidence", "square"]

ONE_NETWORK, PANELS = 12, 25  # nodes up to which one network, or three, can be read
DASHED, DOTTED = (0, (5, 3)), (0, (1, 2))


@dataclass(frozen=True, eq=False)
class Kind:
    """Edges of one kind, and how they are drawn.

    Attributes
    ----------
    label : str
    panel : str
        Panel in which they are: of included, undecided or excluded edges.
    chosen : ndarray of bool
    colour, cell : str
        Of the line and of the cell.
    width : float
        Points; 0 if no line is drawn.
    dashes : str or tuple
    hatch : str
        Pattern of the cell.
    """

    label: str
    panel: str
    chosen: np.ndarray
    colour: str
    cell: str
    width: float
    dashes: Any = "-"
    hatch: str = ""

    @property
    def text(self) -> str:
        """Entry in the legend."""
        return f"{self.label}: {self.chosen.sum():,}"


def plot_evidence(
    idata: "xr.DataTree | GraphPosterior",
    threshold: float = STRONG,
    *,
    kind: Literal["network", "panels", "matrix"] | None = None,
    order: Literal["table", "alike"] = "table",
    pos: "Mapping | Axes | None" = None,
    ax: "Axes | Sequence[Axes] | np.ndarray | None" = None,
) -> "Axes | np.ndarray":
    """Draw each edge as included, excluded or undecided, by its Bayes factor.

    An edge that is not in the graph may be absent, or the data may not decide; this picture keeps
    the two apart. Of a Bayesian network it shows the adjacencies, arcs either way: whether two
    variables are joined at all, which data determine better than the direction. Of a dependency network it shows the arcs,
    from the variable of the row to that of the column.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    threshold : float, above 1
        Included: Bayes factor of at least `threshold`. Excluded: at most 1 / `threshold`. Undecided:
        between. 10 is commonly read as strong evidence.
    kind : {"network", "panels", "matrix"}, optional
        One network with lines of all kinds; three of them, for included, undecided and excluded edges,
        with the same positions; or a matrix with a cell for each pair. By default the first up to 12
        variables, the second up to 25, and the third beyond; with `ax`, what fits it. Of a dependency network
        always a matrix.
    order : {"table", "alike"}
        Order of the rows of a matrix: that of the table, or such that variables that are probably
        connected are neighbours.
    pos : mapping of name to (x, y) or Axes, optional
        Positions of a network or of panels, such as the axes of another network; by default a circle for up to 15 variables and for
        Bayesian networks, and those of `plot_graph` for others.
    ax : matplotlib.axes.Axes or sequence of three, optional
        Where to draw; three for panels.

    Returns
    -------
    matplotlib.axes.Axes or ndarray of three
        The legend counts the edges of each kind. Included edges are blue where the mean weight is positive and
        orange where it is negative; blue, too, where edges have no weights. Edges that the user
        required or forbade were not tested and are counted apart; required ones are drawn in black.

    Raises
    ------
    ValueError
        When `threshold` is not above 1, `kind` or `order` is another one, `ax` does not fit `kind`, or `pos` lacks
        a variable.

    References
    ----------
    Huth, Haslbeck, Keetelaar, van Holst and Marsman (2025). Statistical evidence in psychological
    networks. Nature Human Behaviour 9.

    Examples
    --------
    >>> ax = plot_evidence(idata, threshold=10)  # doctest: +SKIP
    >>> included, undecided, excluded = plot_evidence(idata, kind="panels")  # doctest: +SKIP
    """
    check_threshold(threshold)
    posterior = read(idata)
    names, tested = posterior.variables, _tested(posterior)
    picture, one = _choose(kind, len(names), pos, ax, one_way="one_way" in tested)
    kinds = _kinds(tested, _mean_weights(posterior), threshold)
    rows = node_order(order, tested, len(names))
    if picture == "matrix":
        return _draw_matrix(axes(one, grid_size(names, bars=0)), kinds, tested, names, rows)
    pos = default_positions(posterior) if pos is None else resolve(pos, names)
    ends = np.stack([tested["source"], tested["target"]], axis=1)
    if picture == "panels":
        return _draw_panels(ax, kinds, ends, pos)
    one = axes(one, network_size(names))
    _draw_lines(one, kinds, ends, pos)
    put_below(one, [_line(kind) for kind in kinds])
    draw_nodes(one, pos)
    return one


def default_positions(posterior: "GraphPosterior") -> Positions:
    """Positions of `plot_graph` for undirected graphs, and a circle for others, whose layers lines of all pairs would hide."""
    if posterior.directed:
        return resolve(None, posterior.variables)
    graph = posterior.graph(posterior.median_lines(0.5))
    return place(add_backbone(graph, posterior), None)


def _tested(posterior: "GraphPosterior") -> dict[str, np.ndarray]:
    """Pairs of `GraphPosterior.adjacencies`, and of a dependency network its arcs, each one way."""
    if not isinstance(posterior, ArcPosterior) or isinstance(posterior, DagPosterior):
        return posterior.adjacencies()
    factor, bound = posterior.bayes_factors()
    return {
        "source": posterior.source,
        "target": posterior.target,
        "probability": posterior.probability,
        "prior": posterior.prior,
        "factor": factor,
        "bound": bound,
        "one_way": np.ones(posterior.n_lines, bool),
    }


def _choose(
    kind: str | None, p: int, pos: "Mapping | Axes | None", ax, *, one_way: bool
) -> "tuple[str, Axes | None]":
    """Kind of picture for p variables, and the axes of one that has one."""
    if one_way and (kind not in (None, "matrix") or pos is not None):
        raise ValueError(
            'evidence for the arcs of a dependency network is drawn with kind="matrix"; bs.symmetrize(idata) makes edges '
            "of them, for networks and panels"
        )
    kind = "matrix" if one_way else kind
    several = ax is not None and np.ndim(ax) > 0
    if several and np.size(ax) != 3:
        raise ValueError(f"`ax` must be one axes, or three for panels; got {np.size(ax)}.")
    if kind is None:
        if several or (ax is None and p > ONE_NETWORK and (p <= PANELS or pos is not None)):
            return "panels", None
        return ("network" if p <= ONE_NETWORK or pos is not None else "matrix"), ax
    if kind not in ("network", "panels", "matrix"):
        raise ValueError(f'`kind` must be "network", "panels" or "matrix", got {kind!r}.')
    if ax is not None and several != (kind == "panels"):
        needed = "three axes, as of plt.subplots(1, 3)[1]" if kind == "panels" else "one axes"
        raise ValueError(f'`kind="{kind}"` needs {needed} in `ax`.')
    return kind, (None if several else ax)


def node_order(order: str, tested: dict[str, np.ndarray], p: int) -> np.ndarray:
    """Order of p variables: of the table, or such that those that are probably connected are neighbours.

    Parameters
    ----------
    order : {"table", "alike"}
    tested : dict of arrays
        As of ``GraphPosterior.adjacencies``.
    p : int

    Raises
    ------
    ValueError
    """
    if order not in ("table", "alike"):
        raise ValueError(f'`order` must be "table" or "alike", got {order!r}.')
    if order == "table":
        return np.arange(p)
    probability = square(tested, tested["probability"], p, 0.0)
    return alike_together(1 - np.maximum(probability, probability.T))


def square(tested: dict[str, np.ndarray], values: np.ndarray, p: int, other) -> np.ndarray:
    """Make a (p, p) matrix of values of the pairs of `tested`, `other` where there is no pair; symmetric unless pairs go one way."""
    matrix = np.full((p, p), other)
    matrix[tested["source"], tested["target"]] = values
    if "one_way" not in tested:
        matrix[tested["target"], tested["source"]] = values
    return matrix


def _mean_weights(posterior: "GraphPosterior") -> np.ndarray | None:
    """Mean weight of each pair; None if pairs have none, one for each direction, or one without a sign."""
    if isinstance(posterior, DagPosterior) or weight_name(posterior) == INFORMATION:
        return None
    return posterior.mean_weights(np.arange(posterior.n_lines))


def _kinds(
    tested: dict[str, np.ndarray], weight: np.ndarray | None, threshold: float
) -> list[Kind]:
    """All kinds of edges that have some, and the three that are always counted."""
    found, prior, limit = evidence(tested["factor"], threshold), tested["prior"], f"{threshold:g}"
    strong, weak = f"(BF ≥ {limit})", f"(1/{limit} < BF < {limit})"
    included, negative = found == INCLUDED, np.zeros(len(found), bool)
    if weight is not None:
        negative = included & (weight < 0)
    sign = "" if weight is None or not included.any() else ", positive"
    unknown = (found == FIXED) & ~np.isin(prior, (0, 1))
    ink, paper, between, dashed, dotted = _tones()
    kinds = [
        Kind(f"included{sign} {strong}", INCLUDED, included & ~negative, POSITIVE, POSITIVE, 2.4),
        Kind(f"included, negative {strong}", INCLUDED, negative, NEGATIVE, NEGATIVE, 2.4),
        Kind("required (not tested)", INCLUDED, prior == 1, ink, ink, 2.4),
        Kind(f"undecided {weak}", UNDECIDED, found == UNDECIDED, dashed, between, 0.9, DASHED),
        Kind(
            "prior probability not known", UNDECIDED, unknown, dashed, between, 0.9, DOTTED, "...."
        ),
        Kind(f"excluded (BF ≤ 1/{limit})", EXCLUDED, found == EXCLUDED, dotted, paper, 0.7, DOTTED),
        Kind("forbidden (not tested)", EXCLUDED, prior == 0, "none", paper, 0, hatch="////"),
    ]
    always = {kinds[3], kinds[5], *(kinds[:1] if not negative.any() else ())}
    return [kind for kind in kinds if kind.chosen.any() or kind in always]


def _tones() -> list[str]:
    """Colours of text, of the background, and three between them, of the style of the user: of cells, dashed and dotted lines."""
    import matplotlib as mpl

    from matplotlib.colors import to_hex, to_rgb

    ink, paper = (np.array(to_rgb(mpl.rcParams[name])) for name in ("text.color", "axes.facecolor"))
    shades = (1.0, 0.0, 0.15, 0.45, 0.3)
    return [to_hex(tuple(share * ink + (1 - share) * paper)) for share in shades]


# --- networks --------------------------------------------------------------------------------


def _draw_lines(ax: "Axes", kinds: list[Kind], ends: np.ndarray, pos: Positions) -> None:
    for above, kind in enumerate(reversed(kinds)):
        if kind.width and kind.chosen.any():
            add_lines(
                ax,
                pos,
                ends[kind.chosen],
                around=kind.panel != EXCLUDED,  # of which there are many, all faint
                linewidths=kind.width * crowding(len(pos)),
                colors=kind.colour,
                linestyles=[kind.dashes],
                zorder=1 + above / 10,
                label=kind.label,
            )


def _draw_panels(ax, kinds: list[Kind], ends: np.ndarray, pos: Positions) -> np.ndarray:
    import matplotlib.pyplot as plt

    if ax is None:
        wide, high = network_size(pos)
        ax = plt.subplots(1, 3, figsize=(2.6 * wide, 0.9 * high), layout="constrained")[1]
    panels = np.ravel(ax)
    for panel, name in zip(panels, (INCLUDED, UNDECIDED, EXCLUDED), strict=True):
        here = [
            replace(kind, width=kind.width and max(kind.width, 1.0))
            for kind in kinds
            if kind.panel == name
        ]
        panel.set_title(name, fontsize=text_size(1.1))
        _draw_lines(panel, here, ends, pos)
        put_below(panel, [_line(kind) for kind in here])
    for panel in panels:  # once all titles and legends have their room
        draw_nodes(panel, pos)
    return panels


def _line(kind: Kind):
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        color=kind.colour,
        linestyle=kind.dashes,
        linewidth=max(kind.width, 1.2),
        label=kind.text,
    )


# --- a matrix --------------------------------------------------------------------------------


def _draw_matrix(
    ax: "Axes", kinds: list[Kind], tested: dict, names: list[str], rows: np.ndarray
) -> "Axes":
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    p, around = len(names), np.ix_(rows, rows)
    which = np.full((p, p), -1)
    for position, kind in enumerate(kinds):
        cells = square(tested, kind.chosen, p, False)[around]
        which[cells] = position
        if kind.hatch:
            hatch_cells(ax, cells, kind.hatch)
    colours = ListedColormap([kind.cell for kind in kinds])
    draw_cells(ax, np.ma.masked_less(which, 0), cmap=colours, vmin=-0.5, vmax=len(kinds) - 0.5)
    ax.plot([-0.5, p - 0.5], [-0.5, p - 0.5], color=FAINT, lw=0.6)
    handles = [
        Patch(facecolor=kind.cell, edgecolor=FAINT, hatch=kind.hatch, lw=0.6, label=kind.text)
        for kind in kinds
    ]
    absent = (which < 0) & ~np.eye(p, dtype=bool)
    if absent.any():
        pairs = absent.sum() // (1 if "one_way" in tested else 2)
        hatch_cells(ax, absent, "xxxx")
        label = f"not in the model: {pairs:,}"
        handles.append(Patch(facecolor="none", edgecolor=FAINT, hatch="xxxx", lw=0.6, label=label))
    legend_above(ax, handles)
    if "one_way" in tested:
        ax.set(xlabel="to", ylabel="from")
    name_sides(ax, [names[i] for i in rows])
    ax.spines[:].set(visible=True, color=FAINT, linewidth=0.6)
    return ax
