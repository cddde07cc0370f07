"""Replicated tables of a posterior predictive distribution."""

from collections.abc import Mapping

import numpy as np

from bayesstruct.core.missing import MissingMask
from bayesstruct.data.arguments import probability as check_probability
from bayesstruct.data.arguments import whole_number

__all__ = [
    "constants_of",
    "ends_of",
    "is_covariance",
    "refuse_covariance",
    "replicated_covariances",
    "replicated_tables",
]


def ends_of(prob: float) -> list[float]:
    """Probabilities at the ends of a central interval, checked."""
    prob = check_probability("prob", prob)
    return [0.5 - prob / 2, 0.5 + prob / 2]


def replicated_tables(idata, group: str, draws: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observed table, NaN where missing; replicated tables; names of the columns.

    Parameters
    ----------
    idata : xarray.DataTree
    group : str
        Group of the replicated tables.
    draws : int
        Maximum number of them, spread evenly.

    Raises
    ------
    TypeError, ValueError
        If the group is missing, there is not one observed table, or `draws` is no whole number above 0.
    """
    if is_covariance(idata):
        raise ValueError(
            "this model has the covariance matrix of a table and not its rows, so that rows cannot be checked: "
            "bs.predictive_correlations compares the correlations, and `covariance` has replicated matrices"
        )
    _check_group(idata, group)
    name = _table_name(idata, group)
    observed = idata["observed_data"][name]
    missing = _missing_values(idata, observed.shape) if name == "x" else False
    replicated = idata[group][name].values.reshape(-1, *observed.shape)
    table = np.where(missing, np.nan, observed.values)
    columns = observed.dims[1]
    labels = observed[columns].values if columns in observed.coords else np.arange(table.shape[1])
    return table, _spread(replicated, draws), labels


def replicated_covariances(idata, group: str, draws: int) -> tuple | None:
    """Observed covariance matrix, replicated ones, and names of the columns; None of a model of rows.

    Parameters
    ----------
    idata, group, draws
        As in :func:`replicated_tables`.
    """
    if not is_covariance(idata):
        return None
    _check_group(idata, group)
    observed = idata["observed_data"]["covariance"]
    if "group" in observed.dims:
        raise ValueError(
            "this result has a covariance matrix for each group of rows: read one group, bs.one_group(idata, label)"
        )
    replicated = idata[group]["covariance"].values.reshape(-1, *observed.shape)
    return observed.values, _spread(replicated, draws), observed["node"].values


def refuse_covariance(idata) -> None:
    """Raise for a result of a covariance matrix, which does not know the means of its columns.

    Raises
    ------
    ValueError
    """
    if is_covariance(idata):
        raise ValueError(
            "this model has the covariance matrix of a table and not its rows, so that the means of the columns are not "
            "known, and no value can be predicted: sample the model of the rows, or read the effects of differences from "
            "weights and bs.precision_matrix"
        )


def is_covariance(idata) -> bool:
    """Whether the data of a model are a covariance matrix instead of rows."""
    names = idata["observed_data"] if "observed_data" in getattr(idata, "children", ()) else ()
    return "covariance" in names and "x" not in names


def _spread(replicated, draws):
    """At most so many of the replicates, spread evenly."""
    draws = whole_number("draws", draws, 1)
    return replicated[np.linspace(0, len(replicated) - 1, min(draws, len(replicated))).astype(int)]


def _check_group(idata, group):
    if group not in idata.children:
        run = "prior" if group.startswith("prior") else "posterior"
        raise ValueError(
            f"this result has no group `{group}`; run pm.sample_{run}_predictive first, and keep its result "
            "in this tree (extend_inferencedata=True)"
        )


def _table_name(idata, group: str) -> str:
    """Name of the observed table: ``x``, or that of the only one."""
    if "observed_data" not in idata.children:
        raise ValueError(
            "this result has no group `observed_data`, with which replicated tables are compared: pass the whole result"
        )
    observed, replicated = idata["observed_data"].data_vars, idata[group].data_vars
    tables = [str(n) for n, v in observed.items() if v.ndim == 2 and n in replicated]
    if "x" in tables or len(tables) == 1:
        return "x" if "x" in tables else tables[0]
    found = (
        f"are {len(tables)} ({', '.join(tables)}): rename the one to compare to `x`"
        if tables
        else "is none"
    )
    raise ValueError(
        f"one observed table, of two dimensions, is compared with those in `{group}`, and there {found}"
    )


def constants_of(idata) -> Mapping:
    """Return the group ``constant_data``, or an empty mapping."""
    return idata["constant_data"] if "constant_data" in idata.children else {}


def _missing_values(idata, shape) -> np.ndarray:
    """Which values of the table were not observed, boolean."""
    return MissingMask.mask(constants_of(idata), shape)
