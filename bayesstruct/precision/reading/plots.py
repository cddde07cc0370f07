"""Observed correlations against those of replicated tables, and the nodes that take part."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_figure
from bayesstruct.data.arguments import whole_number
from bayesstruct.graphs.evidence import EXCLUDED, FIXED, INCLUDED, UNDECIDED, evidence
from bayesstruct.graphs.plots.forest import name_rows, print_beside
from bayesstruct.graphs.plots.intervals import draw_intervals
from bayesstruct.graphs.plots.network import plot_graph
from bayesstruct.graphs.plots.style import FAINT, NEGATIVE, NEUTRAL, POSITIVE, axes, shorten
from bayesstruct.precision.reading.nodes import node_table
from bayesstruct.precision.reading.predictive import predictive_correlations

if TYPE_CHECKING:
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
        among those outside their interval.
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
    ax = axes(ax, (5.2, 5.0))
    draw_intervals(ax, table)
    _name_worst(ax, table, label)
    ax.set_xlabel("observed correlation")
    ax.set_ylabel(f"replicated correlation (mean, {prob:.0%} interval)")
    ax.legend(frameon=False, loc="upper left")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _name_worst(ax: "Axes", table, label: int) -> None:
    worst = table[~table.inside].copy()
    worst["miss"] = (worst.observed - worst["mean"]).abs()
    for row in worst.nlargest(label, "miss").itertuples():
        ax.annotate(
            f"{row.source} – {row.target}",
            (row.observed, row.high),
            (4, 3),
            textcoords="offset points",
            fontsize=8,
            color=NEUTRAL,
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
    labels = shorten([str(name) for name in table["node"]], 24)
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
    ax.legend(
        handles=handles,
        ncols=len(handles),
        loc="lower left",
        bbox_to_anchor=(0, 1.02),
        frameon=False,
    )
    return ax


register_figure(
    plot_graph,
    "Gaussian graphical models",
    "Gaussian graphical models of columns by their order",
    "Gaussian graphical models of columns without an order",
    "Gaussian graphical models of selected nodes",
    "graphical models of t rows",
)
