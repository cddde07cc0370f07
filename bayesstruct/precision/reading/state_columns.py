"""Edges between columns of the data, of which some have states without an order and are several columns of the model."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.groups import CONSTANTS, SAMPLE_DIMS, group_dataset
from bayesstruct.graphs.mixing import indicator_ess, indicator_rhat
from bayesstruct.graphs.posteriors.refusals import wrong_type
from bayesstruct.graphs.records import EdgeEnds, StateColumns

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["variable_edges"]


def variable_edges(idata: "xr.DataTree", *, group: str = "posterior") -> "pd.DataFrame":
    """Summarise the edges between columns of the data, where a column of states without an order is one.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.gaussian_graphical` with ``marginals="mixed"`` and columns of states without an order.
    group : {"posterior", "prior"}

    Returns
    -------
    pandas.DataFrame
        One row for each pair of columns of the data, most probable first, with columns

        source, target
            Names of the columns.
        probability
            Share of the draws in which a column of one is joined to one of the other.
        pairs
            Number of pairs of columns of the model that this is about: the prior probability grows with it.
        ess, r_hat
            Of the 0/1 indicator.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not such a result.

    See Also
    --------
    bayesstruct.edge_table : the edges of each state.

    Examples
    --------
    >>> variable_edges(idata).query("probability > 0.5")  # doctest: +SKIP
    """
    import pandas as pd
    import xarray as xr

    if not isinstance(idata, xr.DataTree):
        raise wrong_type(idata)
    constants = group_dataset(idata, CONSTANTS)
    if not StateColumns.is_in(constants):
        raise ValueError(
            "this result has no columns of states without an order: each column of the data is one of the model, see bs.edge_table"
        )
    ends, (owner, names) = EdgeEnds.read(idata), _owners(constants)
    edge = group_dataset(idata, group)["edge"].transpose(*SAMPLE_DIMS, ...).values.astype(bool)
    low, high = np.sort([owner[ends.source], owner[ends.target]], axis=0)
    rows = []
    for a, b in zip(*np.triu_indices(len(names), 1), strict=True):
        own = edge[..., (low == a) & (high == b)]
        joined = own.any(axis=-1, keepdims=True)
        mixing = indicator_ess(joined)[0], indicator_rhat(joined)[0]
        rows.append((names[a], names[b], joined.mean(), own.shape[-1], *mixing))
    columns = ["source", "target", "probability", "pairs", "ess", "r_hat"]
    table = pd.DataFrame(rows, columns=columns)
    return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)


def _owners(constants) -> tuple[np.ndarray, list[str]]:
    """Column of the data that each column of the model belongs to, and the names of all columns of the data."""
    block = StateColumns.read(constants).block
    nodes, variables = constants["node"].values, constants["state_variable"].values
    names = [str(node if k < 0 else variables[k]) for node, k in zip(nodes, block, strict=True)]
    unique = list(dict.fromkeys(names))
    return np.array([unique.index(name) for name in names]), unique
