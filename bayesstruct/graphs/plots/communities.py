"""Probabilities that nodes are in one community, as a heat map."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.nodes.communities import Communities, communities
from bayesstruct.graphs.plots.style import NEGATIVE, axes, short_labels

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
    nodes, p = list(found.table["node"]), len(found.table)
    side = float(np.clip(2.6 + 0.22 * p, 4.0, 11.0))
    ax = axes(ax, (side + 0.9, side))
    image = ax.imshow(
        found.co_membership.loc[nodes, nodes].to_numpy(), cmap="Greys", vmin=0, vmax=1
    )
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.75, pad=0.02)
    bar.set_label("probability of one community", fontsize="small")
    bar.outline.set_visible(False)
    _frame(ax, found.table["community"].to_numpy())
    size = float(np.clip(10.5 - 0.07 * p, 5, 9.5))
    short = short_labels(nodes, 24)
    ax.set_xticks(range(p), short, rotation=90, fontsize=size)
    ax.set_yticks(range(p), short, fontsize=size)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
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
