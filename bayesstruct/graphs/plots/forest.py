"""The most probable edges or arcs with the intervals of their weights."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.plots.style import NEUTRAL, axes, shorten, sign_colour
from bayesstruct.graphs.posteriors.reading import read
from bayesstruct.graphs.summaries import interval_probability
from bayesstruct.graphs.tables.arcs import arc_table
from bayesstruct.graphs.tables.edges import edge_table

if TYPE_CHECKING:
    import xarray as xr

    from matplotlib.axes import Axes

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["plot_edges"]


def plot_edges(
    idata: "xr.DataTree | GraphPosterior",
    n: int = 20,
    *,
    ci_prob: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the n most probable edges or arcs: interval of the weight, and the probability in figures.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model, of edges or of arcs that have coefficients.
    n : int
        Number of edges, in the order of `edge_table`, or of arcs, in that of `arc_table`.
    ci_prob : float, optional
        Probability of the highest-density interval that is drawn, between 0 and 1;
        ``arviz.rcParams["stats.ci_prob"]`` by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        Dot: posterior mean of the weight. Bar: its interval. Blue positive, orange negative. On the
        right the probability of the edge.

    Raises
    ------
    ValueError
        When `n` is not positive, or arcs, those between discrete columns, have no coefficients.

    Examples
    --------
    >>> ax = plot_edges(idata, n=15)  # doctest: +SKIP
    """
    if n < 1:
        raise ValueError(f"`n` must be at least 1, got {n}.")
    ci_prob, posterior = interval_probability(ci_prob), read(idata)
    summarise, sign = (arc_table, " → ") if posterior.directed else (edge_table, " – ")
    table = summarise(posterior, ci_prob=ci_prob).head(n)
    if "mean" not in table:
        raise ValueError(
            "arcs between discrete columns, and edges of graphs alone, have no coefficients to draw; bs.arc_table(idata) or "
            "bs.edge_table(idata) has their probabilities"
        )
    labels = _labels(table, sign)
    ax = axes(ax, (5 + 0.075 * max(map(len, labels)), 1.1 + 0.26 * len(table)))
    rows = np.arange(len(table))
    colour = sign_colour(table["mean"])
    ax.axvline(0, color=NEUTRAL, lw=0.8, zorder=1)
    ax.hlines(rows, table["hdi_low"], table["hdi_high"], colors=colour.tolist(), lw=2.2, zorder=2)
    ax.scatter(table["mean"], rows, s=26, c=colour, zorder=3)
    _name_rows(ax, labels)
    _print_probabilities(ax, table["probability"], f"P({posterior.line})")
    ax.set_xlabel(f"weight (mean and {ci_prob:.0%} HDI)")
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def _labels(table, sign: str) -> list[str]:
    names = sorted({*table["source"], *table["target"]})
    short = dict(zip(names, shorten(names, 18), strict=True))
    return [f"{short[a]}{sign}{short[b]}" for a, b in zip(table.source, table.target, strict=True)]


def _name_rows(ax: "Axes", labels: list[str]) -> None:
    ax.set_yticks(np.arange(len(labels)), labels)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.grid(axis="y", color="0.92", lw=0.8)
    ax.set_axisbelow(True)


def _print_probabilities(ax: "Axes", probability, head: str) -> None:
    """Write a column beside the axes, at a distance in points so that it never meets a bar."""
    style: dict[str, Any] = {
        "xycoords": ax.get_yaxis_transform(),
        "textcoords": "offset points",
        "ha": "right",
        "fontsize": 9,
        "annotation_clip": False,
    }
    ax.annotate(head, (1, -0.6), (48, 3), va="bottom", color=NEUTRAL, **style)
    for row, value in enumerate(probability):
        ax.annotate(_printed(value), (1, row), (48, 0), va="center", **style)


def _printed(probability: float) -> str:
    """Two decimals, and never a 1.00 or 0.00 that was not one."""
    if 0.995 <= probability < 1:
        return "> 0.99"
    if 0 < probability < 0.005:
        return "< 0.01"
    return f"{probability:.2f}"
