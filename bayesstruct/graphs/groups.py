"""Groups of a result and their names."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "CONSTANTS",
    "NODE",
    "SAMPLE_DIMS",
    "chosen_draws",
    "group_dataset",
    "in_order",
    "is_group",
    "parameter_draws",
    "submodel",
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


def chosen_draws(draws: "xr.Dataset", most: int) -> list[tuple[int, int]]:
    """Positions (chain, draw) of at most so many draws, spread evenly over all of them."""
    chains, each = draws.sizes["chain"], draws.sizes["draw"]
    total = chains * each
    kept = np.linspace(0, total - 1, min(most, total)).astype(int)
    return [(int(k) // each, int(k) % each) for k in kept]


def _missing_group(idata: "xr.DataTree", group: str) -> ValueError:
    """Error for a result without a group; names those that it has."""
    if is_group(idata):
        return ValueError(f"This is one group of a result, not the whole.{WHOLE}")
    found = ", ".join(idata.children) or "none"
    return ValueError(f"This result has no group `{group}` (its groups: {found}). {ORIGIN}")


def submodel(idata: "xr.DataTree", name: str) -> "xr.DataTree":
    """Return the part of a result that belongs to a model with a name, as if it had been sampled alone.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a model in which others are nested.
    name : str
        Name of the inner model, ``"left"`` of ``pm.Model("left")``.

    Returns
    -------
    xarray.DataTree
        The variables of that model, without its name; statistics of all steps.

    Raises
    ------
    ValueError
        If there are no variables of such a model; names those that there are.

    Notes
    -----
    PyMC puts the name of a nested model before the names of its variables. Dimensions have no such prefix: models in
    one context have the same columns and rows, or dimensions of different names.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            with pm.Model("before"):
                bs.models.gaussian_graphical(first)
            with pm.Model("after"):
                bs.models.gaussian_graphical(second)
            idata = pm.sample()
        bs.edge_table(bs.submodel(idata, "after"))
    """
    import xarray as xr

    groups = {}
    for group, node in idata.children.items():
        dataset = node.to_dataset()
        own = {v: _short(v, name) for v in map(str, dataset.data_vars) if v.startswith(f"{name}::")}
        kept = list(dataset.data_vars) if group == "sample_stats" else list(own)
        groups[group] = dataset[kept].rename(own)
    if not len(groups.get("posterior", groups.get("prior", ()))):
        raise ValueError(_no_such_model(idata, name))
    return xr.DataTree.from_dict(groups)


def _short(variable: str, name: str) -> str:
    """Name without that of the model; an inner model without a name leaves a second pair of colons."""
    return variable.removeprefix(f"{name}::").removeprefix("::")


def _no_such_model(idata, name) -> str:
    names = [str(v) for node in idata.children.values() for v in node.data_vars]
    known = sorted({v.split("::")[0] for v in names if "::" in v})
    found = (
        f"models in it are {', '.join(map(repr, known))}" if known else "no model in it has a name"
    )
    return f"this result has no variables of a model {name!r}; {found}"
