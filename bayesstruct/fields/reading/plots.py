"""Observed tables of states against replicated ones."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_figure
from bayesstruct.data.arguments import whole_number
from bayesstruct.fields.reading.predictive import (
    predictive_item_rest,
    predictive_pair_tables,
    predictive_sum_scores,
    state_labels,
)
from bayesstruct.graphs.plots.forest import name_rows
from bayesstruct.graphs.plots.intervals import draw_observed, worst_first
from bayesstruct.graphs.plots.legends import put_above
from bayesstruct.graphs.plots.network import plot_graph
from bayesstruct.graphs.plots.style import axes, short_labels

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from matplotlib.axes import Axes

__all__ = ["plot_item_rest", "plot_pair_tables", "plot_sum_scores"]


def plot_pair_tables(
    idata: "xr.DataTree",
    *,
    prob: float = 0.95,
    max_pairs: int = 25,
    group: str = "posterior_predictive",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the pairs of states whose observed frequency is farthest from its predictive interval.

    Parameters
    ----------
    idata : xarray.DataTree
        With ``posterior_predictive``.
    prob : float
        Probability of the intervals.
    max_pairs : int, default 25
        Number of pairs of states to draw, the worst first: those outside their intervals, by the distance from the mean in
        units of the half width of the interval.
    group : str
        Group of the replicated tables.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each pair of states, such as "sleep = 3, mood = 1". Blue dots are inside their intervals, orange ones
        outside; the legend counts those of all pairs, of which a model that fits has the share ``1 - prob`` outside.

    Raises
    ------
    ValueError
        If there are no replicated tables, columns are numbers and not states, or `max_pairs` is not a whole number above 0.

    Examples
    --------
    >>> plot_pair_tables(idata)  # doctest: +SKIP
    """
    max_pairs = whole_number("max_pairs", max_pairs, 1)
    every = predictive_pair_tables(idata, prob=prob, group=group).dropna()
    table = worst_first(every).head(max_pairs)
    labels = short_labels(_pair_labels(idata, table), 44)
    ax = axes(ax, (4.6 + 0.075 * max(map(len, labels)), 1.8 + 0.26 * len(table)))
    draw_observed(ax, np.arange(len(table)), table, prob, horizontal=True, counted=every)
    name_rows(ax, labels)
    some = f", the {len(table)} worst of {len(every):,}" if len(table) < len(every) else ""
    ax.set_xlabel(f"frequency of a pair of states{some}")
    ax.spines[["top", "right", "left"]].set_visible(False)
    put_above(ax, ax.get_legend_handles_labels()[0])
    return ax


def _pair_labels(idata: "xr.DataTree", table: "pd.DataFrame") -> list[str]:
    """Names of pairs of states, with the labels of the states if they are recorded."""
    labels = state_labels(idata)

    def text(column, state):
        own = labels.get(str(column))
        return f"{column} = {state if own is None else own[state]}"

    return [
        f"{text(row.source, row.source_state)}, {text(row.target, row.target_state)}"
        for row in table.itertuples()
    ]


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
        A row for each column, in the order of the table.

    Examples
    --------
    >>> plot_item_rest(idata)  # doctest: +SKIP
    """
    table = predictive_item_rest(idata, prob=prob, group=group)
    labels = short_labels([str(name) for name in table.node], 30)
    row = float(np.clip(9 / len(table), 0.16, 0.28))
    ax = axes(ax, (4.6 + 0.075 * max(map(len, labels)), 1.8 + row * len(table)))
    draw_observed(ax, np.arange(len(table)), table, prob, horizontal=True)
    name_rows(ax, labels)
    ax.set_xlabel("item-rest correlation")
    ax.spines[["top", "right", "left"]].set_visible(False)
    put_above(ax, ax.get_legend_handles_labels()[0])
    return ax


def plot_sum_scores(
    idata: "xr.DataTree",
    *,
    prob: float = 0.95,
    group: str = "posterior_predictive",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the distribution of the sum score of a row, observed and replicated.

    Parameters
    ----------
    idata, prob, group, ax
        As in `plot_pair_tables`.

    Returns
    -------
    matplotlib.axes.Axes
        Scores are on the scale of the table, as in `bayesstruct.predictive_sum_scores`.

    Examples
    --------
    >>> plot_sum_scores(idata)  # doctest: +SKIP
    """
    table = predictive_sum_scores(idata, prob=prob, group=group)
    ax = axes(ax, (6.4, 3.8))
    draw_observed(ax, table.score.to_numpy(), table, prob)
    ax.set_xlabel("sum score" + (" (states count from 0)" if table.attrs["notes"] else ""))
    ax.set_ylabel("share of the rows")
    ax.locator_params(axis="x", integer=True)
    ax.spines[["top", "right"]].set_visible(False)
    put_above(ax, ax.get_legend_handles_labels()[0])
    return ax


register_figure(plot_graph, "Markov random fields")
