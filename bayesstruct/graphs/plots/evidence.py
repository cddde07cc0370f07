"""Edges as included, excluded or undecided by their Bayes factors."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.evidence import (
    EXCLUDED,
    FIXED,
    INCLUDED,
    UNDECIDED,
    check_threshold,
    evidence,
)
from bayesstruct.graphs.plots.nodes import crowding, draw_nodes, legend_columns, network_size
from bayesstruct.graphs.plots.positions import resolve
from bayesstruct.graphs.plots.style import FAINT, POSITIVE, axes
from bayesstruct.graphs.plots.style import UNDECIDED as ORANGE
from bayesstruct.graphs.posteriors.reading import read_graphs

if TYPE_CHECKING:
    import xarray as xr

    from matplotlib.axes import Axes

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["plot_evidence"]


def plot_evidence(
    idata: "xr.DataTree | GraphPosterior",
    threshold: float = 10,
    *,
    pos: Mapping | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw each edge as included, excluded or undecided, by its Bayes factor.

    An edge that is not in the graph may be absent, or the data may not decide; this picture keeps
    the two apart. Of a Bayesian network it shows the adjacencies, arcs either way: whether two
    variables are joined at all, which data determine better than the direction.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model, of edges or of directed acyclic graphs.
    threshold : float, above 1
        Included: Bayes factor of at least `threshold`. Excluded: at most 1 / `threshold`. Undecided:
        between. 10 is commonly read as strong evidence.
    pos : mapping of name to (x, y), optional
        Positions; by default the circle of `layout`.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The legend counts the edges of each kind. Edges that the user required or forbade were not
        tested and are counted apart; required ones are drawn in black.

    Raises
    ------
    ValueError
        When `threshold` is not above 1, or `pos` lacks a variable.

    References
    ----------
    Huth, Haslbeck, Keetelaar, van Holst and Marsman (2025). Statistical evidence in psychological
    networks. Nature Human Behaviour 9.

    Examples
    --------
    >>> ax = plot_evidence(idata, threshold=10)  # doctest: +SKIP
    """
    check_threshold(threshold)
    posterior = read_graphs(idata)
    variables, tested = posterior.variables, posterior.adjacencies()
    ax = axes(ax, network_size(variables))
    pos = resolve(pos, variables)
    places = np.array([pos[name] for name in variables])
    segments = np.stack([places[tested["source"]], places[tested["target"]]], axis=1)
    handles = [
        _draw_kind(ax, segments[chosen], style, len(variables))
        for style, chosen in _kinds(tested["factor"], tested["prior"], threshold)
        if chosen.any() or style["always"]
    ]
    _legend(ax, handles)
    draw_nodes(ax, pos)
    return ax


def _kinds(factor, prior, threshold: float) -> list[tuple[dict, np.ndarray]]:
    kind = evidence(factor, threshold)
    fixed = kind == FIXED
    limit = f"{threshold:g}"
    return [
        (_style(f"included (BF ≥ {limit})", POSITIVE, 2.2, "-", 3), kind == INCLUDED),
        (
            _style(f"undecided (1/{limit} < BF < {limit})", ORANGE, 1.3, (0, (4, 2)), 2),
            kind == UNDECIDED,
        ),
        (_style(f"excluded (BF ≤ 1/{limit})", FAINT, 0.6, (0, (1, 2)), 1), kind == EXCLUDED),
        (
            _style("required (not tested)", "black", 2.2, "-", 4, always=False),
            fixed & (prior == 1),
        ),
        (
            _style("forbidden (not tested)", "none", 0, "-", 0, always=False),
            fixed & (prior == 0),
        ),
    ]


def _style(label, color, width, dashes, order, *, always=True) -> dict:
    return {
        "label": label,
        "color": color,
        "linewidth": width,
        "linestyle": dashes,
        "order": order,
        "always": always,
    }


def _draw_kind(ax: "Axes", segments: np.ndarray, style: dict, p: int):
    """Draw all edges of a kind and return its entry in the legend."""
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    pen = {key: style[key] for key in ("color", "linestyle")}
    width = style["linewidth"] * crowding(p)
    if len(segments):
        lines = LineCollection(
            list(segments), linewidths=width, zorder=1 + style["order"] / 10, **pen
        )
        ax.add_collection(lines, autolim=False)
    label = f"{style['label']}: {len(segments)}"
    return Line2D([], [], linewidth=max(style["linewidth"], 1.2), label=label, **pen)


def _legend(ax: "Axes", handles: list) -> None:
    ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        ncols=legend_columns(ax, 2, 4.5) if len(handles) > 3 else 1,
        frameon=False,
        fontsize=9,
        handlelength=3,
    )
