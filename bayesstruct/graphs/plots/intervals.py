"""Intervals of replicated statistics beside the observed ones."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.plots.style import FAINT, NEGATIVE, NEUTRAL, POSITIVE

if TYPE_CHECKING:
    import pandas as pd

    from matplotlib.axes import Axes

__all__ = ["draw_intervals", "draw_observed", "worst_first"]

MANY = 300  # values from which on bars would be a wall


def draw_intervals(ax: "Axes", table: "pd.DataFrame") -> None:
    """Draw predictive intervals over the observed values, in two colours, and the diagonal.

    Of many values those inside their intervals are points without bars.
    """
    n = len(table)
    style: dict[str, Any] = {
        "lw": float(np.clip(30 / n**0.5, 0.6, 1.6)),
        "alpha": float(np.clip(14 / n**0.5, 0.35, 0.7)),
    }
    size = float(np.clip(250 / n**0.5, 4, 14))
    for above, (inside, colour) in enumerate(((True, POSITIVE), (False, NEGATIVE))):
        part = table[table.inside == inside]
        text = f"{'inside' if inside else 'outside'}: {len(part):,}"
        order: dict[str, Any] = {"zorder": 2 + above}
        if n <= MANY or not inside:
            ax.vlines(part.observed, part.low, part.high, colors=colour, **style, **order)
        ax.scatter(part.observed, part["mean"], s=size, color=colour, lw=0, label=text, **order)
    ends = [table[["observed", "low"]].min().min(), table[["observed", "high"]].max().max()]
    ax.plot(ends, ends, color=NEUTRAL, lw=0.8, zorder=1)


def draw_observed(
    ax: "Axes",
    at: np.ndarray,
    table: "pd.DataFrame",
    prob: float,
    *,
    horizontal: bool = False,
    counted: "pd.DataFrame | None" = None,
) -> None:
    """Draw observed values as dots, in two colours, over their predictive intervals as bars.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    at : (n,) ndarray of float
        Places.
    table : pandas.DataFrame
        With ``observed``, ``low``, ``high`` and ``inside``.
    prob : float
        Probability of the intervals.
    horizontal : bool
        Whether bars are horizontal.
    counted : pandas.DataFrame, optional
        All values, for the numbers in the labels of a legend, if `table` has some of them.
    """
    counted = table if counted is None else counted
    wide = float(np.clip(260 / len(table), 1.0, 4.0))
    bars = ax.hlines if horizontal else ax.vlines
    bars(at, table.low, table.high, color=FAINT, lw=wide, label=f"{prob:.0%} interval", zorder=2)
    for inside, colour in ((True, POSITIVE), (False, NEGATIVE)):
        chosen = (table.inside == inside).to_numpy()
        places, values = at[chosen], table.observed.to_numpy()[chosen]
        name = "inside" if inside else "outside"
        ax.scatter(
            *((values, places) if horizontal else (places, values)),
            s=8 * wide,
            color=colour,
            lw=0,
            zorder=3,
            label=f"observed, {name}: {(counted.inside == inside).sum():,}",
        )


def worst_first(table: "pd.DataFrame") -> "pd.DataFrame":
    """Sort by the distance of the observed value from the mean, in units of the half width of the interval."""
    half = (table["high"] - table["low"]) / 2
    gap = (table["observed"] - table["mean"]).abs()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(gap > 0, gap / half, 0.0)
    return table.iloc[np.lexsort((-gap, -ratio, table["inside"]))]
