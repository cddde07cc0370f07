"""Errors for results that lack a variable or were cut or sorted, with their remedies."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.groups import NODE, ORIGIN, WHOLE, is_group
from bayesstruct.graphs.records import ArcEnds, EdgeEnds

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "naming_submodels",
    "nested_note",
    "refuse_absent",
    "refuse_absent_arcs",
    "refuse_cut_arcs",
    "refuse_sorted_nodes",
    "wrong_type",
]

#: Variables that edges are read with.
_NEEDED = (NODE, "edge", "weight", "edge_source", "edge_target", "edge_prior")
_EDGES = (
    "In a model of your own, add bs.edges(precision, columns=names) to the model, or bs.edges(x, columns=names) of the rows x of a "
    "Markov random field."
)
_ARCS = "In a model of your own, add bs.arcs(dag) to the model."
_NO_CONSTANTS = (
    " There is no group constant_data, where models of bayesstruct have it: bs.load_checkpoint(path, model=model) adds "
    "the group to the draws of a run on disk."
)
_NESTED = " The variables are those of a model with a name: pass that part of the result, bs.submodel(idata, {})."


def wrong_type(thing) -> TypeError:
    """Error for an argument that is not a result."""
    kind = f"{type(thing).__module__}.{type(thing).__name__}"
    return TypeError(
        f"Expected the xarray.DataTree that pm.sample() returns, got {kind}."
        f"{WHOLE * is_group(thing)}"
    )


def nested_note(draws: "xr.Dataset") -> str:
    """Say how the part of a result is read that belongs to a model with a name; empty if no graph belongs to one.

    Parameters
    ----------
    draws : xarray.Dataset
    """
    ends = "::edge", "::arc"
    for name in map(str, draws.data_vars):
        for end in ends:
            if name.endswith(end):
                return _NESTED.format(repr(name.removesuffix(end).removesuffix("::")))
    return ""


@contextmanager
def naming_submodels(idata: "xr.DataTree") -> Iterator[None]:
    """Let errors about a result say that it is that of models with names, if it is.

    Parameters
    ----------
    idata : xarray.DataTree
    """
    try:
        yield
    except (ValueError, KeyError) as error:
        draws = idata["posterior"].to_dataset() if "posterior" in idata.children else None
        if draws is None or not (note := nested_note(draws)) or note in str(error):
            raise
        raise ValueError(f"{error}.{note}") from None


def refuse_absent(wanted: list[str], draws: "xr.Dataset", constants: "xr.Dataset") -> None:
    """Raise if a variable that edges are read with is absent; the message says how to add it."""
    lacking = [name for name in _NEEDED if name in wanted and not _has(name, draws, constants)]
    if not lacking:
        return
    found = ", ".join(map(str, draws.data_vars)) or "nothing"
    held = (
        f"This result has no {' and no '.join(f'`{name}`' for name in lacking)}; it holds {found}."
    )
    if nested := nested_note(draws):
        raise ValueError(held + nested)
    if "edge" not in lacking and not constants.data_vars:
        held += _NO_CONSTANTS
    raise ValueError(f"{held} {ORIGIN} {_EDGES}")


def _has(name: str, draws: "xr.Dataset", constants: "xr.Dataset") -> bool:
    if name == NODE:
        return NODE in draws.coords or NODE in constants.coords
    return name in (constants if name.startswith("edge_") else draws).data_vars


def refuse_absent_arcs(
    draws: "xr.Dataset", constants: "xr.Dataset", group: str, *, weighted: bool
) -> None:
    """Raise if a variable that arcs are read with is absent.

    Parameters
    ----------
    draws, constants : xarray.Dataset
    group : str
        Name of the group of the draws.
    weighted : bool
        Whether arcs must have coefficients.
    """
    needed = {"arc": draws}
    if weighted:
        needed["weight"] = draws
    needed |= dict.fromkeys(("arc_source", "arc_target", "arc_prior"), constants)
    absent = [name for name, where in needed.items() if name not in where.data_vars]
    if not absent and NODE not in draws.sizes:
        raise ValueError(
            "No variable of this result has the names of the columns: in a Bayesian network sample `dag` too, "
            'pm.sample(var_names=["dag", "arc", ...])'
        )
    if not absent:
        return
    if "dependency_network" in draws.attrs:
        raise ValueError(
            "This result has edges and no arcs any more: it comes from bs.symmetrize. Read it with "
            "bs.edge_table, or give the result that was symmetrised."
        )
    found = ", ".join(map(str, draws.data_vars)) or "nothing"
    raise ValueError(
        f"This result has no {' and no '.join(f'`{name}`' for name in absent)}; its {group} "
        f"holds {found}. Was it sampled from bs.models.bayesian_network, linear_sem, lingam, "
        f"network_classifier, gaussian_neighbourhoods or ising_neighbourhoods? {_ARCS}"
    )


def refuse_sorted_nodes(constants: "xr.Dataset", ends: EdgeEnds | ArcEnds) -> None:
    """Raise when the columns are not those, in the order, that positions of ends count.

    Parameters
    ----------
    constants : xarray.Dataset
    ends : EdgeEnds or ArcEnds
    """
    if NODE not in constants.sizes:
        return
    size = constants.sizes[NODE]
    places = np.arange(size)
    position = places if ends.position is None else ends.position
    last = max(ends.source.max(), ends.target.max()) if ends.source.size else 0
    if last >= size or (position != places).any():
        raise ValueError(
            "The columns (`node`) of this result were sorted or left out, and its edges are known by the places of "
            "their ends: read the whole result first (bs.edge_table(idata), bs.structure.inclusion_matrix(idata), ...), and sort "
            "or cut the resulting table."
        )


def refuse_cut_arcs(draws: "xr.Dataset", constants: "xr.Dataset") -> None:
    """Raise when columns were sorted or left out since the result was made, or arcs left out."""
    ends = ArcEnds.read(constants)
    refuse_sorted_nodes(constants, ends)
    p, count = draws.sizes[NODE], ends.source.size
    if count != p * (p - 1):
        raise ValueError(
            f"This result has {count} of the {p * (p - 1)} arcs between {p} columns, and graphs and effects need all of "
            "them: read the whole result, and cut the resulting table."
        )
