"""Reliability diagram: shares of true edges among those of each probability."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.comparison import calibration_table
from bayesstruct.graphs.plots.style import NEUTRAL, POSITIVE, axes

if TYPE_CHECKING:
    import xarray as xr

    from matplotlib.axes import Axes

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["plot_calibration"]

INTERVAL = 0.9


def plot_calibration(
    idata: "xr.DataTree | GraphPosterior", truth: Any, *, bins: int = 10, ax: "Axes | None" = None
) -> "Axes":
    """Draw the share of true edges among those of each probability.

    Parameters
    ----------
    idata : xarray.DataTree or sequence of them
        Result(s) of bayesstruct graph models on data with a known graph.
    truth : known graph, or a sequence with one for each result
        In any form that `structure.compare` takes.
    bins : int
        Number of bins of equal width.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        A point for each bin that is not empty, its number of edges above. Calibrated
        probabilities lie on the diagonal.

    Raises
    ------
    ValueError
        For names that are not in the model, or unequal numbers of results and known graphs.

    Notes
    -----
    Bars are 90 % Jeffreys intervals of the share of edges, Beta(k + 1/2, n - k + 1/2) for k of n,
    as if edges were independent.

    Examples
    --------
    >>> ax = plot_calibration(idata, [("praf", "pmek")])  # doctest: +SKIP
    """
    table = calibration_table(idata, truth, bins=bins).query("count > 0")
    ax = axes(ax, (5.2, 5.2))
    ax.plot([0, 1], [0, 1], color=NEUTRAL, lw=0.9, ls=(0, (4, 3)), zorder=1)
    low, high = _jeffreys(table["observed"] * table["count"], table["count"])
    ax.vlines(table["predicted"], low, high, color=POSITIVE, lw=1.8, alpha=0.45, zorder=2)
    ax.plot(table["predicted"], table["observed"], color=POSITIVE, lw=1, alpha=0.5, zorder=2)
    ax.scatter(table["predicted"], table["observed"], s=36, color=POSITIVE, zorder=3)
    _print_counts(ax, table)
    ax.set(xlim=(-0.04, 1.04), ylim=(-0.06, 1.06), aspect="equal")
    ax.set(xlabel="posterior probability of the edge", ylabel="share of edges that are there")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _jeffreys(successes, trials) -> tuple[np.ndarray, np.ndarray]:
    from scipy.stats import beta

    tail = (1 - INTERVAL) / 2
    a, b = np.asarray(successes) + 0.5, np.asarray(trials - successes) + 0.5
    return beta.ppf(tail, a, b), beta.ppf(1 - tail, a, b)


def _print_counts(ax: "Axes", table) -> None:
    """Print the number of edges of each bin above it, where no point can hide it."""
    above: dict[str, Any] = {
        "transform": ax.get_xaxis_transform(),
        "va": "bottom",
        "color": NEUTRAL,
    }
    turn = 90 if (table["high"] - table["low"]).min() < 0.08 else 0
    for row in table.itertuples():
        middle = (row.low + row.high) / 2
        ax.text(middle, 1.01, f"{row.count:,}", ha="center", fontsize=8, rotation=turn, **above)
    ax.text(-0.045, 1.01, "edges:", ha="right", fontsize=8, **above)
