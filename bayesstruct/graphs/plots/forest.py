"""The most probable edges, arcs or coefficients with their intervals."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import whole_number
from bayesstruct.graphs.plots.grid import fit_names, text_size
from bayesstruct.graphs.plots.style import NEUTRAL, axes, short_labels, sign_colour
from bayesstruct.graphs.posteriors.reading import read
from bayesstruct.graphs.summaries import interval_probability
from bayesstruct.graphs.tables.arcs import arc_table
from bayesstruct.graphs.tables.edges import edge_table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from matplotlib.axes import Axes

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["draw_forest", "name_rows", "pair_labels", "plot_edges", "print_beside", "printed"]


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
    TypeError, ValueError
        When `n` is no positive whole number, or arcs, those between discrete columns, have no coefficients.

    Examples
    --------
    >>> ax = plot_edges(idata, n=15)  # doctest: +SKIP
    """
    n = whole_number("n", n, 1)
    ci_prob, posterior = interval_probability(ci_prob), read(idata)
    summarise, sign = (arc_table, " → ") if posterior.directed else (edge_table, " – ")
    table = summarise(posterior, ci_prob=ci_prob).head(n)
    if "mean" not in table:
        raise ValueError(
            "arcs between discrete columns, and edges of graphs alone, have no coefficients to draw; bs.arc_table(idata) or "
            "bs.edge_table(idata) has their probabilities"
        )
    return draw_forest(
        ax,
        pair_labels(table, sign),
        table,
        f"P({posterior.line})",
        f"weight (mean and {ci_prob:.0%} HDI)",
    )


def draw_forest(
    ax: "Axes | None", labels: list[str], table: "pd.DataFrame", head: str, quantity: str
) -> "Axes":
    """Draw means and intervals, row by row, with probabilities in figures beside them.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        A new figure of a size that fits, if it is None.
    labels : list of str
        Names of the rows.
    table : pandas.DataFrame
        With ``mean``, ``hdi_low``, ``hdi_high`` and ``probability``.
    head : str
        Name of the probabilities.
    quantity : str
        Name of what the intervals are of.
    """
    ax = axes(ax, (5 + 0.075 * max(map(len, labels)), 1.1 + 0.26 * len(table)))
    rows = np.arange(len(table))
    colour = sign_colour(table["mean"])
    ax.axvline(0, color=NEUTRAL, lw=0.8, zorder=1)
    ax.hlines(rows, table["hdi_low"], table["hdi_high"], colors=colour.tolist(), lw=2.2, zorder=2)
    ax.scatter(table["mean"], rows, s=26, c=colour, zorder=3)
    name_rows(ax, labels)
    print_beside(ax, [printed(value) for value in table["probability"]], head)
    ax.set_xlabel(quantity)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def pair_labels(table: "pd.DataFrame", sign: str = " – ", width: int = 18) -> list[str]:
    """Names of the pairs of a table, of which each is shortened by itself."""
    names = sorted({*table["source"], *table["target"]})
    short = dict(zip(names, short_labels(names, width), strict=True))
    return [f"{short[a]}{sign}{short[b]}" for a, b in zip(table.source, table.target, strict=True)]


def name_rows(ax: "Axes", labels: list[str]) -> None:
    """Name the rows, the first at the top, in a size at which names do not meet."""
    ax.set_yticks(np.arange(len(labels)), labels)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.grid(axis="y", color="0.92", lw=0.8)
    ax.set_axisbelow(True)
    fit_names(ax)


def print_beside(ax: "Axes", texts: list[str], head: str) -> None:
    """Write a column beside the axes, at a distance in points so that it never meets a bar."""
    style: dict[str, Any] = {
        "xycoords": ax.get_yaxis_transform(),
        "textcoords": "offset points",
        "ha": "right",
        "fontsize": text_size(0.9),
        "annotation_clip": False,
    }
    ax.annotate(head, (1, -0.6), (48, 3), va="bottom", color=NEUTRAL, **style)
    size = float(ax.get_yticklabels()[0].get_fontsize())
    style["fontsize"] = min(style["fontsize"], size)
    for row, text in enumerate(texts):
        ax.annotate(text, (1, row), (48, 0), va="center", **style)


def printed(probability: float) -> str:
    """Two decimals, and never a 1.00 or 0.00 that was not one."""
    if 0.995 <= probability < 1:
        return "> 0.99"
    if 0 < probability < 0.005:
        return "< 0.01"
    return f"{probability:.2f}"
