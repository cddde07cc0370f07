"""Groups of a result and their names."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "CONSTANTS",
    "NODE",
    "SAMPLE_DIMS",
    "group_dataset",
    "in_order",
    "is_group",
    "parameter_draws",
]

SAMPLE_DIMS = ("chain", "draw")
NODE = "node"
CONSTANTS = "constant_data"
ORIGIN = "Was it sampled from a bayesstruct graph model?"
WHOLE = (
    " Pass the whole tree, idata instead of idata.posterior: the group constant_data is needed too."
)


def is_group(thing) -> bool:
    """Whether this is the group of the draws and not the result that holds it."""
    names = getattr(thing, "data_vars", ())
    return "edge" in names or "arc" in names


def group_dataset(idata: "xr.DataTree", group: str) -> "xr.Dataset":
    """Return a group of a result as a dataset; the error names those of the result."""
    if group not in idata.children:
        raise _missing_group(idata, group)
    return idata[group].to_dataset()


def in_order(draws: "xr.Dataset", constants: "xr.Dataset") -> "xr.Dataset":
    """Draws with columns and edges in the order of the constants, if they were sorted alone."""
    for dim in set(draws.dims) & set(constants.dims):
        if dim in draws.coords and dim in constants.coords:
            own, order = draws[dim].values, constants[dim].values
            same = len(set(order)) == len(order) == len(own) and set(own) == set(order)
            if same and (own != order).any():
                draws = draws.sel({dim: order})
    return draws


def parameter_draws(idata: "xr.DataTree", *names: str) -> list[np.ndarray]:
    """Posterior draws of some variables, chains one after another, columns in the order of the model.

    Raises
    ------
    ValueError
        If the posterior does not have one of them.
    """
    draws = in_order(group_dataset(idata, "posterior"), group_dataset(idata, CONSTANTS))
    if lost := [name for name in names if name not in draws]:
        raise ValueError(
            f"the posterior has no {', '.join(map(repr, lost))}: sample without `var_names`, or with them among it"
        )
    values = [draws[name].transpose(*SAMPLE_DIMS, ...).values for name in names]
    return [own.reshape(-1, *own.shape[2:]) for own in values]


def _missing_group(idata: "xr.DataTree", group: str) -> ValueError:
    """Error for a result without a group; names those that it has."""
    if is_group(idata):
        return ValueError(f"This is one group of a result, not the whole.{WHOLE}")
    found = ", ".join(idata.children) or "none"
    return ValueError(f"This result has no group `{group}` (its groups: {found}). {ORIGIN}")
