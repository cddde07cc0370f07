"""Observed correlations against those of replicated tables, and the nodes that take part."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.readers import register_figure
from bayesstruct.data.arguments import whole_number
from bayesstruct.graphs.evidence import EXCLUDED, FIXED, INCLUDED, UNDECIDED, evidence
from bayesstruct.graphs.plots.forest import name_rows, pair_labels, print_beside
from bayesstruct.graphs.plots.grid import text_size
from bayesstruct.graphs.plots.intervals import draw_intervals
from bayesstruct.graphs.plots.legends import put_above
from bayesstruct.graphs.plots.network import plot_graph
from bayesstruct.graphs.plots.style import (
    FAINT,
    NEGATIVE,
    NEUTRAL,
    POSITIVE,
    axes,
    settle,
    short_labels,
)
from bayesstruct.precision.reading.nodes import node_table
from bayesstruct.precision.reading.predictive import predictive_correlations

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from matplotlib.axes import Axes

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["plot_correlations", "plot_nodes"]

_EVIDENCE = {INCLUDED: POSITIVE, UNDECIDED: FAINT, EXCLUDED: NEGATIVE, FIXED: "black"}


def plot_correlations(
    idata: "xr.DataTree | GraphPosterior",
    *,
    prob: float = 0.95,
    label: int = 5,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw observed correlations against their posterior predictive intervals.

    Parameters
    ----------
    idata : xarray.DataTree
        With ``posterior_predictive``.
    prob : float
        Probability of the intervals.
    label : int
        Number of pairs to name: those whose observed value is farthest from the predicted mean
        among those outside their interval. They have numbers, which are explained beside the axes.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        A bar on the diagonal is a pair that the model reproduces; orange bars miss it.

    Examples
    --------
    >>> ax = plot_correlations(idata)  # doctest: +SKIP
    """
    table = predictive_correlations(idata, prob=prob)
    ax = axes(ax, (8.4 if label and not table.inside.all() else 5.2, 5.0))
    draw_intervals(ax, table)
    ax.set_xlabel("observed correlation")
    ax.set_ylabel(f"replicated correlation (mean, {prob:.0%} interval)")
    ax.legend(frameon=False, loc="upper left")
    ax.spines[["top", "right"]].set_visible(False)
    _number_worst(ax, table, label)
    return ax


def _number_worst(ax: "Axes", table: "pd.DataFrame", label: int) -> None:
    """Mark the worst pairs by numbers above their bars, and write their names beside the axes."""
    worst = table[~table.inside].copy()
    worst["miss"] = (worst.observed - worst["mean"]).abs()
    worst = worst.nlargest(label, "miss")
    if worst.empty:
        return
    settle(ax)
    size = text_size(0.8)
    height = 1.5 * size * ax.figure.get_figure(root=True).dpi / 72
    points = ax.transData.transform(worst[["observed", "high"]].to_numpy())
    points[:, 1] += 0.7 * height
    for k in range(1, len(points)):  # no number on another one
        while (np.abs(points[:k] - points[k]) < height).all(axis=1).any():
            points[k, 1] += height / 2
    style: dict[str, Any] = {"fontsize": size, "ha": "center", "va": "center"}
    box = {"boxstyle": "circle,pad=0.15", "fc": "white", "ec": NEUTRAL, "lw": 0.6}
    for k, (x, y) in enumerate(ax.transData.inverted().transform(points), 1):
        ax.text(x, y, str(k), bbox=box, zorder=5, **style)
    names = pair_labels(worst)
    key = "\n".join(f"{k}  {name}" for k, name in enumerate(names, 1))
    ax.annotate(
        f"farthest from the mean\n{key}",
        (1, 1),
        (8, 0),
        xycoords="axes fraction",
        textcoords="offset points",
        va="top",
        fontsize=text_size(0.85),
        annotation_clip=False,
    )


def plot_nodes(idata: "xr.DataTree", n: int = 40, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the probability of each node that it takes part: that it may have edges at all.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.node_selection_gaussian_graphical` with the spike-and-slab prior.
    n : int
        Number of nodes, in the order of `bayesstruct.node_table`.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        Blue nodes are those that the data include (Bayes factor of at least 10), orange those that they exclude
        (at most 1/10), grey ones are undecided. On the right the mean number of edges.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not such a result, or `n` is not a whole number above 0.

    Examples
    --------
    >>> plot_nodes(idata)  # doctest: +SKIP
    """
    from matplotlib.patches import Patch

    n = whole_number("n", n, 1)
    every = node_table(idata)
    found = evidence(every["bayes_factor"])
    table = every.head(n)
    labels = short_labels([str(name) for name in table["node"]], 24)
    ax = axes(ax, (5 + 0.075 * max(map(len, labels)), 1.6 + 0.26 * len(table)))
    rows = np.arange(len(table))
    colours = [_EVIDENCE[kind] for kind in found[: len(table)]]
    ax.barh(rows, table["probability"], height=0.6, color=colours)
    name_rows(ax, labels)
    print_beside(ax, [f"{degree:.1f}" for degree in table["degree"]], "edges")
    ax.set(xlim=(0, 1), xlabel="probability that the node takes part")
    ax.spines[["top", "right", "left"]].set_visible(False)
    handles = [
        Patch(color=colour, label=f"{kind}: {(found == kind).sum()}")
        for kind, colour in _EVIDENCE.items()
        if kind != FIXED or (found == FIXED).any()
    ]
    put_above(ax, handles, len(handles), handlelength=1.4)
    return ax


register_figure(
    plot_graph,
    "Gaussian graphical models",
    "Gaussian graphical models of columns by their order",
    "Gaussian graphical models of columns without an order",
    "Gaussian graphical models of selected nodes",
    "graphical models of t rows",
)
