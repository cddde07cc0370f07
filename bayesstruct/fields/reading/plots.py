"""Observed tables of states against replicated ones."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_figure
from bayesstruct.fields.reading.predictive import (
    predictive_item_rest,
    predictive_pair_tables,
    predictive_sum_scores,
)
from bayesstruct.graphs.plots.intervals import draw_intervals
from bayesstruct.graphs.plots.network import plot_graph
from bayesstruct.graphs.plots.style import NEGATIVE, NEUTRAL, POSITIVE, axes

if TYPE_CHECKING:
    import xarray as xr

    from matplotlib.axes import Axes

__all__ = ["plot_item_rest", "plot_pair_tables", "plot_sum_scores"]


def plot_pair_tables(
    idata: "xr.DataTree",
    *,
    prob: float = 0.95,
    group: str = "posterior_predictive",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the observed frequency of each pair of states against its predictive interval.

    Parameters
    ----------
    idata : xarray.DataTree
        With ``posterior_predictive``.
    prob : float
        Probability of the intervals.
    group : str
        Group of the replicated tables.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        A bar that crosses the diagonal is a frequency that the model reproduces; the others are orange.
    """
    table = predictive_pair_tables(idata, prob=prob, group=group).dropna()
    ax = axes(ax, (5.2, 5.0))
    draw_intervals(ax, table)
    ax.set_xlabel("observed frequency of a pair of states")
    ax.set_ylabel(f"replicated frequency (mean, {prob:.0%} interval)")
    return _finish(ax)


def plot_item_rest(
    idata: "xr.DataTree",
    *,
    prob: float = 0.95,
    group: str = "posterior_predictive",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the correlation of each column with the sum of the others, observed and replicated.

    Parameters
    ----------
    idata, prob, group, ax
        As in `plot_pair_tables`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    table = predictive_item_rest(idata, prob=prob, group=group)
    ax = axes(ax, (5.2, 1.2 + 0.28 * len(table)))
    at = np.arange(len(table))[::-1]
    ax.hlines(
        at, table.low, table.high, color=NEUTRAL, lw=3, alpha=0.6, label=f"{prob:.0%} interval"
    )
    colours = np.where(table.inside, POSITIVE, NEGATIVE)
    ax.scatter(table.observed, at, c=colours, s=28, zorder=3, label="observed")
    ax.set_yticks(at, [str(name) for name in table.node])
    ax.set_xlabel("item-rest correlation")
    return _finish(ax)


def plot_sum_scores(
    idata: "xr.DataTree",
    *,
    prob: float = 0.95,
    group: str = "posterior_predictive",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the distribution of the sum of the states of a row, observed and replicated.

    Parameters
    ----------
    idata, prob, group, ax
        As in `plot_pair_tables`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    table = predictive_sum_scores(idata, prob=prob, group=group)
    ax = axes(ax, (6.0, 3.6))
    ax.vlines(
        table.score,
        table.low,
        table.high,
        color=NEUTRAL,
        lw=4,
        alpha=0.5,
        label=f"{prob:.0%} interval",
    )
    colours = np.where(table.inside, POSITIVE, NEGATIVE)
    ax.scatter(table.score, table.observed, c=colours, s=28, zorder=3, label="observed")
    ax.set_xlabel("sum score")
    ax.set_ylabel("share of the rows")
    return _finish(ax)


def _finish(ax):
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


register_figure(plot_graph, "Markov random fields")
