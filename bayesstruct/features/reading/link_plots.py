"""Picture of the predictive probabilities of links, observed or not."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_figure
from bayesstruct.features.reading.links import LinkMatrices, read_links
from bayesstruct.graphs.plots.grid import (
    alike_together,
    colour_bar,
    draw_cells,
    grid_size,
    hatch_cells,
    legend_above,
    name_sides,
)
from bayesstruct.graphs.plots.style import FAINT, NEGATIVE, axes, diverging_map

if TYPE_CHECKING:
    import xarray as xr

    from matplotlib.axes import Axes

__all__ = ["plot_links"]

_QUANTITY = {"probability": "probability of a link", "expectation": "expected response"}
_DOTTED = 60  # objects up to which observed links are marked


def plot_links(idata: "xr.DataTree", *, draws: int = 1000, ax: "Axes | None" = None) -> "Axes":
    """Draw the probability of a link, or the expected response, of all pairs of objects as a matrix.

    Objects with similar links are neighbours, so that groups are blocks.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.link_prediction`, :func:`~bayesstruct.models.protein_complexes`,
        :func:`~bayesstruct.models.binary_matrix_factorization` or :func:`~bayesstruct.models.additive_clustering`.
    draws : int, default 1000
        Maximum number of draws that are used, evenly spaced.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        Rows are sources and columns targets; the matrix is symmetric if links have no direction. A dot is a link that was observed
        (with up to 60 objects, and where responses are 0 or 1), hatched cells are pairs that were not observed.

    Raises
    ------
    TypeError, ValueError
        If it is not a result of one of these models, or `draws` is not a whole number above 0.

    See Also
    --------
    bayesstruct.link_probabilities : the numbers as a table.

    Examples
    --------
    >>> plot_links(idata)  # doctest: +SKIP
    """
    links = read_links(idata, draws)
    one_set = links.targets is links.sources
    mean, observed = (_filled(values, links) for values in (links.mean, links.observed))
    rows = alike_together(_apart(mean))
    columns = rows if one_set else alike_together(_apart(mean.T))
    mean, observed = mean[np.ix_(rows, columns)], observed[np.ix_(rows, columns)]
    names = [str(links.sources[i]) for i in rows], [str(links.targets[j]) for j in columns]
    ax = axes(ax, grid_size(names[0], None if one_set else names[1]))
    image = draw_cells(ax, np.ma.masked_invalid(mean), **_scale(mean, links.quantity))
    unseen = np.isnan(observed) & ~np.isnan(mean)
    hatch_cells(ax, unseen)
    seen = observed == 1
    if links.quantity == "probability" and max(mean.shape) <= _DOTTED and seen.any():
        size = float(np.clip(300 / max(mean.shape), 4, 25))
        i, j = np.nonzero(seen)
        ax.scatter(j, i, s=size, color=NEGATIVE, lw=0, label="observed link")
    colour_bar(ax, image, _QUANTITY[links.quantity])
    _explain(ax, bool(unseen.any()))
    name_sides(ax, *names)
    return ax


def _filled(values: np.ndarray, links: LinkMatrices) -> np.ndarray:
    """Matrix of the pairs that count, symmetric if pairs have no direction; NaN where there is no pair."""
    matrix = np.where(links.counted, values, np.nan)
    if links.targets is links.sources and not (links.counted & links.counted.T).any():
        return np.where(links.counted.T, matrix.T, matrix)
    return matrix


def _apart(values: np.ndarray) -> np.ndarray:
    """Distances between rows of a matrix; pairs that it lacks count as its mean."""
    filled = np.where(np.isnan(values), np.nanmean(values), values)
    return np.sqrt(((filled[:, None] - filled[None]) ** 2).sum(axis=-1))


def _scale(values: np.ndarray, quantity: str) -> dict:
    if quantity == "probability":
        return {"cmap": "Blues", "vmin": 0, "vmax": 1}
    limit = float(np.nanmax(np.abs(values))) or 1.0
    return {"cmap": diverging_map(), "vmin": -limit, "vmax": limit}


def _explain(ax: "Axes", unseen: bool) -> None:
    from matplotlib.patches import Patch

    handles = ax.get_legend_handles_labels()[0]
    if unseen:
        handles.append(
            Patch(facecolor="white", edgecolor=FAINT, hatch="////", label="not observed")
        )
    if handles:
        legend_above(ax, handles)


register_figure(plot_links, "latent features of linked objects")
