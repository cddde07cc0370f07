"""Picture of the edges that differ between groups of rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.evidence import STRONG
from bayesstruct.graphs.graphs import check_fraction
from bayesstruct.graphs.plots.evidence import default_positions
from bayesstruct.graphs.plots.layouts.positions import resolve
from bayesstruct.graphs.plots.legends import DASHES
from bayesstruct.graphs.plots.network import add_lines, draw_edges, legend_below, weight_handles
from bayesstruct.graphs.plots.nodes import draw_nodes, network_size, thinning
from bayesstruct.graphs.plots.style import axes, ink
from bayesstruct.graphs.posteriors.reading import read_edges
from bayesstruct.graphs.tables.differences import UNDECIDED, difference_table

if TYPE_CHECKING:
    import xarray as xr

    from matplotlib.axes import Axes

__all__ = ["plot_difference"]


def plot_difference(
    idata: "xr.DataTree",
    groups: tuple[str, str] | None = None,
    *,
    pos: "Mapping | Axes | None" = None,
    ax: "Axes | None" = None,
    min_probability: float = 0.5,
    max_difference: float | None = None,
    threshold: float = STRONG,
    legend: bool = True,
) -> "Axes":
    """Draw the pairs of columns whose dependence differs between groups of rows.

    Width is the absolute difference of the weights, colour says in which group the weight is
    larger (blue the first, orange the second), opacity is the probability of a difference, and lines are dashed where the data do not
    decide: the Bayes factor of a difference is between 1 / `threshold` and `threshold`. Thin grey lines are other edges: full where the
    groups are equal, dashed where that is undecided.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.grouped_gaussian_graphical`, or of :func:`bayesstruct.models.ising` or :func:`~bayesstruct.models.pairwise_mrf` with
        `group`.
    groups : pair of str, optional
        The two groups to subtract; needed if there are more than two.
    pos : mapping of name to (x, y) or Axes, optional
        Positions, such as the axes of another network; by default those of `plot_graph`: a circle for up to 15 variables.
    ax : matplotlib.axes.Axes, optional
        Where to draw.
    min_probability : float, between 0 and 1
        Only differences, and edges, that are at least this probable are drawn.
    max_difference : float, optional
        Absolute difference that is drawn at full width; by default the largest one.
    threshold : float, above 1
        Bayes factor from which a pair differs, as in :func:`bayesstruct.difference_table`.
    legend : bool
        Whether to explain width, colour, opacity and dashes.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        When `min_probability` is not strictly between 0 and 1, `threshold` is not above 1, `pos` lacks a variable, or `groups` are not two groups of the result.

    Examples
    --------
    >>> ax = plot_difference(idata)  # doctest: +SKIP
    """
    check_fraction("min_probability", min_probability)
    posterior = read_edges(idata)
    table = difference_table(idata, groups=groups, threshold=threshold)
    if table[["first", "second"]].drop_duplicates().shape[0] > 1:
        labels = sorted({*table["first"], *table["second"]})
        raise ValueError(
            f"this result has more than two groups ({', '.join(map(repr, labels))}): name the two to compare, "
            f"groups=({labels[0]!r}, {labels[1]!r})"
        )
    ax = axes(ax, network_size(posterior.variables))
    pos = default_positions(posterior) if pos is None else resolve(pos, posterior.variables)
    shown = table["probability"] >= min_probability
    unsure = table["verdict"] == UNDECIDED
    others = ~shown & (table["edge"] >= min_probability)
    for kind, dashes in ((others & ~unsure, "-"), (others & unsure, DASHES)):
        _draw_others(ax, table[kind], pos, dashes)
    largest = draw_edges(ax, _edges(table[shown]), pos, max_difference)
    if legend:
        kinds = bool((shown & unsure).any()), bool((others & unsure).any())
        _explain(ax, table, largest, min_probability, len(pos), kinds)
    draw_nodes(ax, pos)
    return ax


def _edges(table) -> list[tuple[str, str, dict]]:
    """Pairs as edges, with what decides how they are drawn."""
    return [
        (
            row.source,
            row.target,
            {
                "weight": row.difference,
                "probability": row.probability,
                "undecided": row.verdict == UNDECIDED,
            },
        )
        for row in table.itertuples()
    ]


def _draw_others(ax: "Axes", table, pos, dashes) -> None:
    """Draw edges that are not shown as differences."""
    at = {name: k for k, name in enumerate(pos)}
    ends = np.array([table["source"].map(at), table["target"].map(at)], int).T
    width, colour = thinning(ax, len(pos)), ink(ax).faint
    add_lines(ax, pos, ends, colors=colour, linewidths=width, linestyles=[dashes], zorder=1)


def _explain(
    ax: "Axes",
    table,
    largest: float | None,
    min_probability: float,
    p: int,
    undecided: tuple[bool, bool],
) -> None:
    """Draw the key; `undecided` says whether some of the differences, and of the other edges, are."""
    from matplotlib.lines import Line2D

    limit, colours = f"{table.attrs['threshold']:g}", ink(ax)
    handles = []
    if largest is not None:
        signs = f"larger in {table['first'].iloc[0]}", f"larger in {table['second'].iloc[0]}"
        handles += weight_handles(largest, p, signs=signs, quantity="difference", ax=ax)
    lines: list[tuple[bool, str, str, float, Any]] = [
        (undecided[0], f"undecided (1/{limit} < BF < {limit})", colours.line, 1.5, DASHES),
        (True, f"edge without difference (BF ≤ 1/{limit})", colours.faint, 1.0, "-"),
        (undecided[1], "edge, difference undecided", colours.faint, 1.0, DASHES),
    ]
    handles += [
        Line2D([], [], color=colour, lw=width, linestyle=dashes, label=label)
        for there, label, colour, width, dashes in lines
        if there
    ]
    legend_below(ax, handles, f"P(difference) ≥ {min_probability:g}")
