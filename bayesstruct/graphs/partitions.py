"""Quantities of partitions, of rows or of the nodes of a graph, that do not depend on the labels of their parts."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.groups import SAMPLE_DIMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import xarray as xr

__all__ = ["block_quantities", "labelled_blocks", "of_members", "part_sizes"]

BLOCK, LABEL, PAIR = "block", "block_label", "block_pair"
NODES = 40  # number of nodes (evenly spaced) of which each two are followed


def part_sizes(labels: np.ndarray) -> np.ndarray:
    """Return the number of members with each label, shape (chain, draw, label).

    Parameters
    ----------
    labels : (chain, draw, member) ndarray of int
    """
    flat, k = labels.reshape(-1, labels.shape[2]), int(labels.max()) + 1
    places = flat + k * np.arange(len(flat))[:, None]
    return np.bincount(places.ravel(), minlength=k * len(flat)).reshape(*labels.shape[:2], k)


def of_members(values: "xr.DataArray", labels: "xr.DataArray", dim: str) -> "xr.DataArray":
    """Take the entries that belong to the parts of members.

    Parameters
    ----------
    values : DataArray
        With the dimensions chain, draw and `dim`, over labels, and perhaps others.
    labels : DataArray
        With the dimensions chain, draw and one over members.
    dim : str
    """
    import xarray as xr

    values = values.transpose(*SAMPLE_DIMS, dim, ...)
    extra = tuple(range(3, values.ndim))
    taken = np.take_along_axis(
        values.values, np.expand_dims(labels.values.astype(int), extra), axis=2
    )
    dims = (*labels.dims, *values.dims[3:])
    known = {d: a.coords[d].values for a in (labels, values) for d in dims[2:] if d in a.coords}
    return xr.DataArray(taken, dims=dims, coords=known)


def labelled_blocks(draws: "xr.Dataset") -> list[str]:
    """Names of the blocks of the nodes of a graph and of variables over these blocks; empty without blocks.

    Parameters
    ----------
    draws : xarray.Dataset
    """
    if BLOCK not in draws.data_vars or {*draws[BLOCK].dims} != {*SAMPLE_DIMS, "node"}:
        return []
    over = [str(name) for name, v in draws.data_vars.items() if {LABEL, PAIR} & {*v.dims}]
    return [BLOCK, *over]


def block_quantities(draws: "xr.Dataset") -> "Iterator[tuple[str, xr.DataArray]]":
    """Yield the name and the draws of each quantity of the blocks of nodes that does not depend on their labels.

    Parameters
    ----------
    draws : xarray.Dataset
        Nothing is yielded without the blocks, ``block`` (node).
    """
    import xarray as xr

    names = labelled_blocks(draws)
    if not names:
        return
    labels = draws[BLOCK].transpose(*SAMPLE_DIMS, "node").astype(int)
    sizes = xr.DataArray(part_sizes(labels.values), dims=(*SAMPLE_DIMS, LABEL))
    yield "number of blocks", (sizes > 0).sum(LABEL)
    yield "size of the largest block", sizes.max(LABEL)
    n = labels.sizes["node"]
    some = labels.isel(node=np.unique(np.linspace(0, n - 1, min(n, NODES)).astype(int)))
    yield "columns in the block of a column", of_members(sizes, some, LABEL)
    yield "pairs of columns in one block", (sizes * (sizes - 1) // 2).sum(LABEL)
    for name in names[1:]:
        values = draws[name]
        if LABEL in values.dims:
            yield f"{name} of a column", of_members(values, some, LABEL)
            continue
        count = round(
            (np.sqrt(8 * values.sizes[PAIR] + 1) - 1) / 2
        )  # pairs, each block with itself too
        own = np.flatnonzero(np.equal(*np.triu_indices(count)))
        within = values.isel({PAIR: own}).rename({PAIR: LABEL}).drop_vars(LABEL, errors="ignore")
        yield f"{name} within the block of a column", of_members(within, some, LABEL)
