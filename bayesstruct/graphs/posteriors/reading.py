"""Read results as posteriors over graphs, of which all other readers ask."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.groups import CONSTANTS, NODE, SAMPLE_DIMS, group_dataset, in_order
from bayesstruct.graphs.posteriors.arcs import ArcPosterior, DagPosterior
from bayesstruct.graphs.posteriors.base import GraphPosterior
from bayesstruct.graphs.posteriors.edges import INDICATOR, EdgePosterior
from bayesstruct.graphs.posteriors.refusals import (
    refuse_absent,
    refuse_absent_arcs,
    refuse_cut_arcs,
    refuse_sorted_nodes,
    wrong_type,
)
from bayesstruct.graphs.records import Acyclic, ArcEnds, EdgeEnds

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "is_acyclic",
    "is_result",
    "read",
    "read_arcs",
    "read_dags",
    "read_edges",
    "read_graphs",
]

#: End of the names of statistics of `bayesstruct.steps.PairwiseSpikeSlab` and of other steps, after that of the weights.
_INCLUSION, _DIFFERENCE = "_inclusion", "_difference"


def read(idata, group: str = "posterior") -> EdgePosterior | ArcPosterior | DagPosterior:
    """Check a result once and give access to its graphs, whatever model it is of.

    Parameters
    ----------
    idata : xarray.DataTree or GraphPosterior
        Result of a bayesstruct graph model, or one that was read already.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    EdgePosterior, ArcPosterior or DagPosterior
        Of an undirected model, of a neighbourhood model, of a Bayesian network.

    Raises
    ------
    TypeError
        When `idata` is not a DataTree.
    ValueError
        When a group or a variable is missing, the message says which.
    """
    if isinstance(idata, EdgePosterior | ArcPosterior):
        return idata
    kind = _kind(idata, group)
    return read_edges(idata, group) if kind is EdgePosterior else read_arcs(idata, group)


def read_graphs(idata, group: str = "posterior") -> EdgePosterior | DagPosterior:
    """Read a result of which each draw is one graph; a dependency network is none.

    Parameters and errors are those of `read`.
    """
    kind = type(idata) if isinstance(idata, GraphPosterior) else _kind(idata, group)
    if kind is ArcPosterior:
        raise _directed()
    return read_edges(idata, group) if kind is EdgePosterior else read_dags(idata, group)


def read_edges(idata, group: str = "posterior") -> EdgePosterior:
    """Read a result of an undirected model.

    Parameters and errors are those of `read`.
    """
    import xarray as xr

    if isinstance(idata, EdgePosterior):
        return idata
    _check_tree(idata)
    draws = group_dataset(idata, group)
    constants = group_dataset(idata, CONSTANTS) if CONSTANTS in idata.children else xr.Dataset()
    if INDICATOR not in draws and is_acyclic(constants):
        raise ValueError(
            "This result has directed acyclic graphs, not undirected ones: read it with "
            "bs.arc_table, bs.arc_probabilities, bs.path_probabilities or bs.blanket_probabilities."
        )
    if INDICATOR not in draws and "arc" in draws:
        raise _directed()
    refuse_absent([INDICATOR, "edge_source", "edge_target", NODE], draws, constants)
    ends = EdgeEnds.read(constants)
    refuse_sorted_nodes(constants, ends)
    names = (constants if NODE in constants.coords else draws)[NODE].values
    posterior = EdgePosterior(
        draws=in_order(draws, constants),
        constants=constants,
        source=ends.source.astype(int),
        target=ends.target.astype(int),
        variables=[str(name) for name in names],
    )
    _check_edges(posterior)
    if group == "posterior" and "sample_stats" in idata.children:
        return _with_statistics(posterior, idata["sample_stats"])
    return posterior


def read_arcs(idata, group: str = "posterior") -> ArcPosterior | DagPosterior:
    """Read a result of a neighbourhood model or of a Bayesian network.

    Parameters and errors are those of `read`.
    """
    import xarray as xr

    if isinstance(idata, ArcPosterior):
        return idata
    _check_tree(idata)
    empty = xr.Dataset()
    draws, constants = (
        idata[name].to_dataset() if name in idata.children else empty for name in (group, CONSTANTS)
    )
    acyclic = is_acyclic(constants)
    refuse_absent_arcs(draws, constants, group, weighted=not acyclic)
    refuse_cut_arcs(draws, constants)
    if not {*SAMPLE_DIMS} <= {*draws.dims}:
        raise ValueError(
            f"arcs must have chain and draw, found {(*draws.dims,)}. To read a single chain, keep its dimension: idata.isel(chain=[0])"
        )
    draws, ends = in_order(draws, constants), ArcEnds.read(constants)
    posterior = (DagPosterior if acyclic else ArcPosterior)(
        draws=draws,
        constants=constants,
        summaries=_summaries(idata, draws),
        source=ends.source.astype(int),
        target=ends.target.astype(int),
        variables=[str(name) for name in draws[NODE].values],
    )
    if posterior.n_draws == 0:
        raise ValueError("This result holds no draws.")
    return posterior


def read_dags(idata, group: str = "posterior") -> DagPosterior:
    """Read a result of a Bayesian network.

    Parameters and errors are those of `read`.
    """
    posterior = read_arcs(idata, group)
    if not isinstance(posterior, DagPosterior):
        raise ValueError(
            "This result is that of a dependency network, whose arcs may form cycles, so "
            "that it has no directed acyclic graphs. Read it with bs.arc_table or bs.symmetrize, or sample "
            "bs.models.bayesian_network."
        )
    return posterior


def is_result(thing) -> bool:
    """Whether this is a result and not, say, a known graph."""
    import xarray as xr

    return isinstance(thing, xr.DataTree | GraphPosterior)


def is_acyclic(constants) -> bool:
    """Whether constants (a dataset, group or result) are those of directed acyclic graphs."""
    return Acyclic.is_in(constants) and bool(Acyclic.read(constants).acyclic)


def _check_tree(idata) -> None:
    import xarray as xr

    if not isinstance(idata, xr.DataTree):
        raise wrong_type(idata)


def _kind(idata, group: str) -> type[EdgePosterior | ArcPosterior]:
    """Class of posterior of a result; undirected unless it is known to have arcs."""
    _check_tree(idata)
    if is_acyclic(idata):
        return DagPosterior
    names = idata[group].data_vars if group in idata.children else ()
    return ArcPosterior if "arc" in names and INDICATOR not in names else EdgePosterior


def _directed() -> ValueError:
    return ValueError(
        "This result has directed arcs, not edges: read them with bs.arc_table(idata), or make "
        'edges of them first with bs.symmetrize(idata, rule="and").'
    )


def _check_edges(posterior: EdgePosterior) -> None:
    dims = posterior.draws[INDICATOR].dims
    if len(dims) != 3 or not {*SAMPLE_DIMS} <= {*dims}:
        raise ValueError(
            f"`{INDICATOR}` must have chain, draw and one more dim, found {dims}. To read a single chain, keep its "
            "dimension: idata.isel(chain=[0])"
        )
    n_edges = posterior.draws.sizes[posterior.dim]
    if not len(posterior.source) == len(posterior.target) == n_edges:
        raise ValueError(
            f"`edge_source` and `edge_target` describe {len(posterior.source)} and "
            f"{len(posterior.target)} edges, but `edge` holds {n_edges}."
        )
    if posterior.n_draws == 0:
        raise ValueError("This result holds no draws.")


def _with_statistics(posterior: EdgePosterior, stats) -> EdgePosterior:
    """Add the numbers that a step reported of the edges, if it is certainly of the same draws and edges."""
    found = _statistics(stats, _INCLUSION)
    if not found:
        return posterior
    if reason := _mismatch(found, posterior):
        return replace(posterior, unread=reason)
    at = {d: posterior.draws[d].values for d in SAMPLE_DIMS}
    values = {"inclusion": found[0]}
    differing = _statistics(stats, _DIFFERENCE)
    if differing and not _mismatch(differing, posterior):
        values["differing"] = differing[0]
    read = {n: v.sel(at).transpose(*SAMPLE_DIMS, ...).values for n, v in values.items()}
    return replace(posterior, inclusion=read["inclusion"], differing=read.get("differing"))


def _statistics(stats, end: str) -> list["xr.DataArray"]:
    return [v for name, v in stats.data_vars.items() if str(name).endswith(end)]


def _mismatch(found: list["xr.DataArray"], posterior: EdgePosterior) -> str:
    """Why statistics do not belong to the draws and edges of a posterior, or an empty text."""
    if len(found) > 1:
        return "the model has several random fields"
    [values] = found
    if values.ndim != 3 or values.size != values.sizes["chain"] * values.sizes["draw"] * len(
        posterior.source
    ):
        return "their number is not that of the edges"
    ends = posterior.target, posterior.source
    if (np.lexsort(ends) != np.arange(len(posterior.source))).any():
        return "the edges are not in the order of the table"
    for dim in SAMPLE_DIMS:
        if dim not in values.coords or not _are_among(
            posterior.draws[dim].values, values[dim].values
        ):
            return "it is not known of which draws it is"
    return ""


def _are_among(labels: np.ndarray, known: np.ndarray) -> bool:
    """Whether labels are among others, none of which occurs twice."""
    return bool(np.isin(labels, known).all() and len(np.unique(known)) == len(known))


def _summaries(idata: "xr.DataTree", draws: "xr.Dataset") -> "xr.Dataset | None":
    """Averages over all draws that were made; None if some draws were taken out since."""
    if "arcs" not in idata.children:
        return None
    summaries = idata["arcs"].to_dataset()
    made = summaries.attrs.get("draws")
    if made is not None and [draws.sizes[name] for name in SAMPLE_DIMS] != list(made):
        return None
    return summaries
