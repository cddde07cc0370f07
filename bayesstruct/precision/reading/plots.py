"""Observed correlations against those of replicated tables."""

from typing import TYPE_CHECKING

from bayesstruct.core.readers import register_figure
from bayesstruct.graphs.plots.intervals import draw_intervals
from bayesstruct.graphs.plots.network import plot_graph
from bayesstruct.graphs.plots.style import NEUTRAL, axes
from bayesstruct.precision.reading.predictive import predictive_correlations

if TYPE_CHECKING:
    import xarray as xr

    from matplotlib.axes import Axes

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["plot_correlations"]


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


register_figure(
    plot_graph,
    "Gaussian graphical models",
    "Gaussian graphical models of columns by their order",
    "Gaussian graphical models of columns without an order",
    "Gaussian graphical models of selected nodes",
    "graphical models of t rows",
)
