"""Probabilities that nodes are in one community, as a heat map."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.nodes.communities import Communities, communities
from bayesstruct.graphs.plots.grid import colour_bar, draw_cells, grid_size, name_sides
from bayesstruct.graphs.plots.style import NEGATIVE, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_co_membership"]


def plot_co_membership(found: Any, *, ax: "Axes | None" = None, **options: Any) -> "Axes":
    """Draw how probably each two nodes are in one community, ordered by community.

    Parameters
    ----------
    found : Communities or xarray.DataTree
        Result of :func:`bayesstruct.communities`, or of a graph model, whose communities are then computed.
    ax : matplotlib.axes.Axes, optional
        Where to draw.
    **options
        Of :func:`bayesstruct.communities`, if `found` is a result of a model.

    Returns
    -------
    matplotlib.axes.Axes
        Dark: in one community in all draws. The squares are the communities of the representative partition.

    Raises
    ------
    TypeError, ValueError
        As :func:`bayesstruct.communities`; for options beside communities that are known already.

    Examples
    --------
    >>> ax = plot_co_membership(communities(idata))  # doctest: +SKIP
    """
    if not isinstance(found, Communities):
        found = communities(found, **options)
    elif options:
        raise TypeError(
            f"`{next(iter(options))}` is an option of bs.communities, whose result was given: pass it there"
        )
    nodes = list(found.table["node"])
    ax = axes(ax, grid_size(nodes))
    values = found.co_membership.loc[nodes, nodes].to_numpy()
    image = draw_cells(ax, values, cmap="Greys", vmin=0, vmax=1)
    colour_bar(ax, image, "probability of one community")
    _frame(ax, found.table["community"].to_numpy())
    name_sides(ax, nodes)
    return ax


def _frame(ax: "Axes", community: np.ndarray) -> None:
    """Draw a square around the nodes of each community of two or more."""
    from matplotlib.patches import Rectangle

    begins = np.flatnonzero(np.diff(community, prepend=community[0] - 1))
    for begin, end in zip(begins, [*begins[1:], len(community)], strict=True):
        if end - begin > 1:
            corner, width = (begin - 0.5, begin - 0.5), end - begin
            ax.add_patch(
                Rectangle(corner, width, width, fill=False, ec=NEGATIVE, lw=1.5, clip_on=False)
            )
