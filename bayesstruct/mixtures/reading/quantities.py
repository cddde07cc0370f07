"""Quantities of partitions that do not depend on the labels of clusters, for convergence diagnostics."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_check, variables
from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.graphs.partitions import of_members, part_sizes
from bayesstruct.mixtures.reading.clusters import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterator

    import xarray as xr

__all__ = ["cluster_quantities"]

COMPONENT, COUNT = "component", "n_clusters"
ROWS = 40  # number of rows (evenly spaced) whose clusters are followed


def cluster_quantities(draws: "xr.Dataset") -> "Iterator[tuple[str, xr.DataArray]]":
    """Yield the name and the draws of each quantity that does not depend on the labels of clusters.

    Parameters
    ----------
    draws : xarray.Dataset
        With the labels, ``cluster``. Parameters of clusters have the dimension ``component``.
    """
    import xarray as xr

    labels = draws[CLUSTER].transpose(*SAMPLE_DIMS, ...)
    row = str(labels.dims[2])
    sizes = xr.DataArray(part_sizes(labels.values.astype(int)), dims=(*SAMPLE_DIMS, COMPONENT))
    yield "number of clusters", (sizes > 0).sum(COMPONENT)
    yield "size of the largest cluster", sizes.max(COMPONENT)
    n = labels.sizes[row]
    some = labels.isel({row: np.unique(np.linspace(0, n - 1, min(n, ROWS)).astype(int))})
    yield "rows in the cluster of a row", of_members(sizes, some, COMPONENT)
    for name, values in draws.data_vars.items():
        if COMPONENT in values.dims and {*SAMPLE_DIMS} <= {*values.dims}:
            yield f"{name} of a row", of_members(values, some, COMPONENT)


def _has_clusters(idata: "xr.DataTree") -> bool:
    return CLUSTER in variables(idata)


def _labelled(draws: "xr.Dataset") -> list[str]:
    """Names of the labels, of their number, and of the variables with a dimension over clusters."""
    return [
        str(name)
        for name, values in draws.data_vars.items()
        if name in (CLUSTER, COUNT) or COMPONENT in values.dims
    ]


register_check("clusters", _has_clusters, cluster_quantities, _labelled)
