"""Errors for results that lack a variable or were cut or sorted, with their remedies."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.groups import NODE, ORIGIN, WHOLE, is_group
from bayesstruct.graphs.records import ArcEnds, EdgeEnds

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "refuse_absent",
    "refuse_absent_arcs",
    "refuse_cut_arcs",
    "refuse_sorted_nodes",
    "wrong_type",
]

#: What a user's own model needs besides its precision matrix or Markov random field, and how to add it.
_TO_ADD = {
    NODE: 'pm.Model(coords={"node": names, "node_": names, "pair": [f"{a} -- {b}" for a, b in '
    'itertools.combinations(names, 2)]}), and dims=("node", "node_") of the precision',
    "edge": 'bs.distributions.edges("edge", precision, dims="pair"), or of a Markov random field pm.Deterministic("edge", '
    'pm.math.neq(weight, 0).astype(int), dims="pair")',
    "weight": 'pm.Deterministic("weight", bs.distributions.partial_correlations(precision), dims="pair"), or the weights of '
    'the Markov random field, called "weight", dims="pair"',
    "edge_source": 'pm.Data("edge_source", np.triu_indices(p, 1)[0], dims="pair")',
    "edge_target": 'pm.Data("edge_target", np.triu_indices(p, 1)[1], dims="pair")',
    "edge_prior": 'pm.Data("edge_prior", bs.distributions.implied_edge_probability(p, 0.5), dims="pair"), or np.full(p * (p - '
    "1) // 2, 0.5) of a Markov random field",
}
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


def refuse_absent(wanted: list[str], draws: "xr.Dataset", constants: "xr.Dataset") -> None:
    """Raise if a variable that edges are read with is absent; the message says how to add it."""
    absent = [name for name in _TO_ADD if not _has(name, draws, constants)]
    lacking = [name for name in wanted if name in absent]
    if not lacking:
        return
    found = ", ".join(map(str, draws.data_vars)) or "nothing"
    held = (
        f"This result has no {' and no '.join(f'`{name}`' for name in lacking)}; it holds {found}."
    )
    if nested := [name for name in map(str, draws.data_vars) if name.endswith("::edge")]:
        raise ValueError(
            held + _NESTED.format(repr(nested[0].removesuffix("::edge").removesuffix("::")))
        )
    if "edge" not in lacking and not constants.data_vars:
        held += _NO_CONSTANTS
    lines = "".join(f"\n    {_TO_ADD[name]}" for name in absent)
    raise ValueError(
        f"{held} {ORIGIN} In a model of your own, with p columns called names, add{lines}"
    )


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
        f"holds {found}. Was it sampled from bs.models.bayesian_network, "
        "bs.models.gaussian_neighbourhoods or bs.models.ising_neighbourhoods?"
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
