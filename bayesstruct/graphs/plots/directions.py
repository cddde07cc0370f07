"""Picture of the direction table: one bar for each pair of columns, in three parts."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import whole_number
from bayesstruct.graphs.plots.forest import name_rows, pair_labels, print_beside, printed
from bayesstruct.graphs.plots.grid import text_size
from bayesstruct.graphs.plots.style import axes, ink
from bayesstruct.graphs.tables.directions import direction_table

if TYPE_CHECKING:
    import xarray as xr

    from matplotlib.axes import Axes

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["plot_directions"]


def plot_directions(
    idata: "xr.DataTree | GraphPosterior", n: int = 20, *, ax: "Axes | None" = None
) -> "Axes":
    """Draw the probabilities of both directions and of no arc, for the n pairs whose edge is most probable.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a model of directed acyclic graphs, such as :func:`bayesstruct.models.bayesian_network`.
    n : int
        Number of pairs, in the order of `direction_table`, but those with a required arc last.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        A bar of length one for each pair: blue the probability of the arc as the row names it, grey that of no arc,
        orange that of the arc the other way. On the right the probability of an arc in either direction.

    Raises
    ------
    TypeError, ValueError
        If `idata` has no directed acyclic graphs of two or more columns, or `n` is no positive whole number.

    Examples
    --------
    >>> ax = plot_directions(idata, n=15)  # doctest: +SKIP
    """
    n = whole_number("n", n, 1)
    table = direction_table(idata)
    required = (table["prior_forward"] == 1) | (table["prior_backward"] == 1)
    table = table.iloc[np.argsort(required, kind="stable")].head(n)
    if not len(table):
        raise ValueError("the result has a single column, and no pair to draw")
    labels = pair_labels(table, " → ")
    ax = axes(ax, (5 + 0.075 * max(map(len, labels)), 1.3 + 0.26 * len(table)))
    colours, left = ink(ax), 0.0 * table["forward"]
    parts = {
        "forward": ("as named", colours.positive),
        "none": ("no arc", colours.faint),
        "backward": ("the other way", colours.negative),
    }
    for state, (label, colour) in parts.items():
        ax.barh(range(len(table)), table[state], 0.7, left, color=colour, label=label)
        left = left + table[state]
    name_rows(ax, labels)
    ax.set_xlim(0, 1)
    ax.set_xlabel("probability")
    ax.spines[["top", "right", "left"]].set_visible(False)
    print_beside(ax, [printed(1 - share) for share in table["none"]], "P(either)")
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=3,
        frameon=False,
        fontsize=text_size(0.9),
        handlelength=1.2,
        columnspacing=1.2,
    )
    return ax
