"""Intervals of replicated statistics beside the observed ones."""

from typing import TYPE_CHECKING

from bayesstruct.graphs.plots.style import NEGATIVE, NEUTRAL, POSITIVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_intervals"]


def draw_intervals(ax: "Axes", table) -> None:
    """Draw predictive intervals over the observed values, in two colours, and the diagonal."""
    for inside, colour in ((True, POSITIVE), (False, NEGATIVE)):
        part = table[table.inside == inside]
        text = f"{'inside' if inside else 'outside'}: {len(part)}"
        ax.vlines(part.observed, part.low, part.high, colors=colour, lw=1.6, alpha=0.7)
        ax.scatter(part.observed, part["mean"], s=14, color=colour, label=text, zorder=3)
    ends = [table[["observed", "low"]].min().min(), table[["observed", "high"]].max().max()]
    ax.plot(ends, ends, color=NEUTRAL, lw=0.8, zorder=1)
