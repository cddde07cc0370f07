"""Picture of a partition of rows: how probably two rows are in one cluster."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_figure
from bayesstruct.features.reading.tables import feature_membership
from bayesstruct.graphs.plots.grid import colour_bar, draw_cells, grid_size, name_sides, text_size
from bayesstruct.graphs.plots.style import NEGATIVE, axes
from bayesstruct.mixtures.reading.clusters import CLUSTER, co_clustering, read_clusters

if TYPE_CHECKING:
    import xarray as xr

    from matplotlib.axes import Axes

__all__ = ["plot_clusters"]

_NAMED = 40  # rows up to which they are named


def plot_clusters(
    idata: "xr.DataTree",
    *,
    overlap: float = 0.5,
    var_name: str = CLUSTER,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the probability that two rows are in one cluster, rows in the order of their clusters.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a model with a partition, such as :func:`bayesstruct.models.dp_glm`, of at most 5,000 rows.
    overlap : float, default 0.5
    var_name : str, default "cluster"
        As in :func:`bayesstruct.cluster_table`, whose names of clusters stand above the columns.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        Each row of the table is in the cluster that it is most probably in, and first in a cluster are those that are most
        probably in it. Lines part the clusters: a dark block is a cluster that is sure, cells that are dark outside the blocks are rows
        that may belong to either.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not such a result, or has too many rows.

    See Also
    --------
    bayesstruct.co_clustering : the numbers, in the order of the table.

    Examples
    --------
    >>> plot_clusters(idata)  # doctest: +SKIP
    """
    together = co_clustering(idata, var_name=var_name)
    member = feature_membership(read_clusters(idata, var_name), overlap=overlap).to_numpy()
    cluster = member.argmax(axis=1)
    rows = np.lexsort((-member.max(axis=1), cluster))
    n = len(rows)
    names = [str(together.index[i]) for i in rows]
    ax = axes(ax, grid_size(names) if n <= _NAMED else (8.2, 7))
    values = together.to_numpy()[np.ix_(rows, rows)]
    image = draw_cells(ax, values, cmap="Blues", vmin=0, vmax=1)
    colour_bar(ax, image, "probability of one cluster")
    _part(ax, cluster[rows])
    if n <= _NAMED:
        name_sides(ax, names)
        ax.grid(visible=False, which="both")
    else:
        ax.set(xticks=[], yticks=[], xlabel=f"{n:,} rows", ylabel=f"{n:,} rows")
    return ax


def _part(ax: "Axes", cluster: np.ndarray) -> None:
    """Draw lines between the clusters, and write their names and numbers of rows above those that have room."""
    n = len(cluster)
    names, starts, sizes = np.unique(cluster, return_index=True, return_counts=True)
    for at in starts[1:]:
        ax.axhline(at - 0.5, color=NEGATIVE, lw=0.8)
        ax.axvline(at - 0.5, color=NEGATIVE, lw=0.8)
    for name, start, size in zip(names, starts, sizes, strict=True):
        if size >= 0.05 * n:
            middle = start + (size - 1) / 2
            ax.annotate(
                f"{name + 1}",
                (middle, -0.5),
                (0, 4),
                textcoords="offset points",
                ha="center",
                fontsize=text_size(0.9),
                annotation_clip=False,
            )
    ax.annotate(
        "cluster",
        (-0.5, -0.5),
        (-4, 4),
        textcoords="offset points",
        ha="right",
        fontsize=text_size(0.9),
        annotation_clip=False,
    )


register_figure(plot_clusters, "clusters", "clusters of regressions")
