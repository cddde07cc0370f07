"""Observed values beside predictive draws of the same values, for predictive checks."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import variables
from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.networks.priors.records import SetMask

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr

__all__ = ["observed_values"]

_PREDICTIVE = "posterior_predictive"


def observed_values(
    idata: "xr.DataTree", *, columns: "str | Sequence[str] | None" = None
) -> "xr.DataTree":
    """Observed values beside predictive draws of the same values, one value an observation.

    Predictive draws are of all values of a table, also of those that are missing, which the observed ones are then
    compared with as if they had been drawn like them; and states of a table with missing values are numbers with NaN, of
    which figures make densities. In this result only values that were observed are left, on both sides,
    and states are whole numbers. Values that were set from outside are left out too, as nothing predicts them.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of any model, extended by ``pm.sample_posterior_predictive``.
    columns : str or sequence of str, optional
        Columns of a table that are compared; by default all.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior``, ``observed_data`` and ``posterior_predictive``, the last two with the variables of
        `idata` over ``value``, named "column[row]"; of several variables over ``x_value``, ``y_value`` and so on. Group
        ``log_likelihood``, if that of `idata` is one of single values.

    Raises
    ------
    ValueError
        When `idata` has no predictive draws, or a column is unknown.

    See Also
    --------
    bayesstruct.pointwise : predictive draws given the other values of a row.

    Examples
    --------
    .. code-block:: python

        pm.sample_posterior_predictive(idata, model=model, extend_inferencedata=True)
        az.plot_ppc_dist(bs.observed_values(idata))
        az.plot_ppc_rootogram(bs.observed_values(idata, columns="item 1"))  # of states and counts
    """
    names = sorted(variables(idata, "observed_data") & variables(idata, _PREDICTIVE))
    if not names:
        raise ValueError(
            "the result has no predictive draws of what was observed: "
            "pm.sample_posterior_predictive(idata, extend_inferencedata=True) in the context of the model adds them"
        )
    wanted = [columns] if isinstance(columns, str) else columns
    groups: dict[str, dict[str, xr.DataArray]] = {
        group: {} for group in ("observed_data", _PREDICTIVE, "log_likelihood")
    }
    for name in names:
        dim = "value" if len(names) == 1 else f"{name}_value"
        _add(groups, idata, name, dim, wanted)
    if not groups["observed_data"]:
        raise ValueError(f"{', '.join(names)} of this result has no columns: leave out `columns`")
    return _tree(idata, groups)


def _add(groups, idata, name: str, dim: str, columns) -> None:
    """Add the observed values of a variable to the groups."""
    import xarray as xr

    observed = idata["observed_data"][name]
    if columns is not None and "node" not in observed.dims:
        return
    drawn = idata[_PREDICTIVE][name].transpose(*SAMPLE_DIMS, *observed.dims)
    shown = _shown(idata, observed, columns)
    coords = {dim: _labels(observed, np.argwhere(shown))}
    kind = np.result_type(observed.dtype, drawn.dtype)
    if _is_whole(observed.values[shown]) and _is_whole(drawn.values):
        kind = np.dtype(int)  # also where NaN made the states of the table floating-point numbers
    values = observed.values[shown].astype(kind)
    groups["observed_data"][name] = xr.DataArray(values, coords, dims=dim)
    of_draws = {_PREDICTIVE: drawn}
    if name in variables(idata, "log_likelihood"):
        density = idata["log_likelihood"][name]
        if {*density.dims} == {*drawn.dims}:
            of_draws["log_likelihood"] = density.transpose(*drawn.dims)
    sample = {d: drawn[d].values for d in SAMPLE_DIMS if d in drawn.coords}
    for group, all_values in of_draws.items():
        own = all_values.values[..., shown]
        own = own.astype(kind) if group == _PREDICTIVE else own
        groups[group][name] = xr.DataArray(own, sample | coords, dims=(*SAMPLE_DIMS, dim))


def _shown(idata, observed: "xr.DataArray", columns) -> np.ndarray:
    """Which values were observed, and are of the columns that are wanted."""
    shown = ~np.isnan(observed.values.astype(float))
    if "constant_data" in idata.children:
        was_set = SetMask.read(idata["constant_data"].to_dataset()).was_set
        if was_set is not None and np.shape(was_set) == shown.shape:
            shown &= np.asarray(was_set) == 0
    if columns is None:
        return shown
    known = [*map(str, observed["node"].values)]
    if lost := [column for column in columns if column not in known]:
        raise ValueError(f"there is no column {lost[0]!r}; there are {', '.join(known)}")
    kept = np.isin(known, columns)
    return shown & kept.reshape([-1 if dim == "node" else 1 for dim in observed.dims])


def _is_whole(values: np.ndarray) -> bool:
    return values.dtype.kind in "biu" or bool((values == np.round(values)).all())


def _labels(observed: "xr.DataArray", places: np.ndarray) -> list[str]:
    """Name values: by column and row of a table, otherwise by their own labels."""
    if observed.ndim == 1:
        own = observed[observed.dims[0]].values
        return [str(own[i]) for (i,) in places]
    names = observed[observed.dims[-1]].values
    return [f"{names[j]}[{', '.join(map(str, row))}]" for *row, j in places]


def _tree(idata, groups) -> "xr.DataTree":
    import xarray as xr

    found = {name: xr.Dataset(values) for name, values in groups.items() if values}
    return xr.DataTree.from_dict({"posterior": idata["posterior"].to_dataset(), **found})
