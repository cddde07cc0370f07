"""Picture of the edges that differ between groups of rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.graphs import check_fraction
from bayesstruct.graphs.plots.evidence import default_positions
from bayesstruct.graphs.plots.layouts.positions import resolve
from bayesstruct.graphs.plots.network import add_lines, draw_edges, legend_below, weight_handles
from bayesstruct.graphs.plots.nodes import draw_nodes, network_size, thinning
from bayesstruct.graphs.plots.style import axes, ink
from bayesstruct.graphs.posteriors.reading import read_edges
from bayesstruct.graphs.tables.differences import difference_table

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
    legend: bool = True,
) -> "Axes":
    """Draw the pairs of columns whose dependence differs between groups of rows.

    Width is the absolute difference of the weights, colour says in which group the weight is
    larger (blue the first, orange the second), opacity is the probability of a difference. Thin grey lines are edges that do not differ.

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
    legend : bool
        Whether to explain width, colour and opacity.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        When `min_probability` is not strictly between 0 and 1, `pos` lacks a variable, or `groups` are not two groups of the result.

    Examples
    --------
    >>> ax = plot_difference(idata)  # doctest: +SKIP
    """
    check_fraction("min_probability", min_probability)
    posterior = read_edges(idata)
    table = difference_table(idata, groups=groups)
    if table[["first", "second"]].drop_duplicates().shape[0] > 1:
        labels = sorted({*table["first"], *table["second"]})
        raise ValueError(
            f"this result has more than two groups ({', '.join(map(repr, labels))}): name the two to compare, "
            f"groups=({labels[0]!r}, {labels[1]!r})"
        )
    ax = axes(ax, network_size(posterior.variables))
    pos = default_positions(posterior) if pos is None else resolve(pos, posterior.variables)
    differs = table["probability"] >= min_probability
    alike = table[~differs & (table["edge"] >= min_probability)]
    at = {name: k for k, name in enumerate(pos)}
    ends = np.array([alike["source"].map(at), alike["target"].map(at)], int).T
    add_lines(ax, pos, ends, colors=ink(ax).faint, linewidths=thinning(ax, len(pos)), zorder=1)
    shown = table[differs]
    rows = zip(
        shown["source"], shown["target"], shown["difference"], shown["probability"], strict=True
    )
    edges = [(a, b, {"weight": gap, "probability": chance}) for a, b, gap, chance in rows]
    largest = draw_edges(ax, edges, pos, max_difference)
    if legend:
        _explain(ax, table, largest, min_probability, len(pos))
    draw_nodes(ax, pos)
    return ax


def _explain(ax: "Axes", table, largest: float | None, min_probability: float, p: int) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=ink(ax).faint, lw=1.0, label="edge without difference")]
    if largest is not None:
        signs = f"larger in {table['first'].iloc[0]}", f"larger in {table['second'].iloc[0]}"
        handles = weight_handles(largest, p, signs=signs, quantity="difference", ax=ax) + handles
    legend_below(ax, handles, f"P(difference) ≥ {min_probability:g}")
