"""Results of models that are parts of a larger one."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["submodel"]


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
        raise ValueError(_refusal(idata, name))
    return xr.DataTree.from_dict(groups)


def _short(variable: str, name: str) -> str:
    """Name without that of the model; an inner model without a name leaves a second pair of colons."""
    return variable.removeprefix(f"{name}::").removeprefix("::")


def _refusal(idata, name) -> str:
    names = [str(v) for node in idata.children.values() for v in node.data_vars]
    known = sorted({v.split("::")[0] for v in names if "::" in v})
    found = (
        f"models in it are {', '.join(map(repr, known))}" if known else "no model in it has a name"
    )
    return f"this result has no variables of a model {name!r}; {found}"
