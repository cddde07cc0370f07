"""Quantities of a result by which its chains can be judged, for `check` and for the functions of ArviZ."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.families import import_chapters
from bayesstruct.core.readers import followed_of, variables
from bayesstruct.data.arguments import whole_number
from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.graphs.partitions import block_quantities, labelled_blocks
from bayesstruct.graphs.posteriors.arcs import DagPosterior
from bayesstruct.graphs.posteriors.edges import INDICATOR
from bayesstruct.graphs.posteriors.reading import read
from bayesstruct.graphs.traces import graph_distance, n_edges

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = [
    "batch_variance",
    "entry_name",
    "has_no_graph",
    "other_forms",
    "parameters",
    "plain_quantities",
    "quantities",
    "transposed",
]

import_chapters("reading")  # which register what is followed

#: Bayesian networks: the graph in other forms; the order of the nodes, which is not identified
#: (chains in which the same graph has different orders agree); and tables of probabilities, in which
#: the place of a cell stands for other states of other parents as soon as the graph changes.
_OTHER_FORMS = ("dag", "arc", "order", "table")
#: Neighbourhood models: the coefficients are weights already, arc by arc.
_REPEATED = ("arc", "coefficients", "slope")


def quantities(
    idata: "xr.DataTree",
    *,
    var_names: "str | Sequence[str] | None" = None,
    most: int | None = None,
) -> "xr.DataTree":
    """Draws of what can be judged in a result of any model, in a form that every function of ArviZ takes.

    Draws of structures have entries that functions of ArviZ cannot use or must not compare: indicators that are the
    same in all draws, on which ``az.plot_rank`` fails; the same number in several variables; latent features and
    clusters whose labels change places from draw to draw, so that entries at one place have no
    meaning; and thousands of entries, where figures have 40 panels. In this result each entry varies, means the same in all
    draws, and is a variable of its own.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of any model of :mod:`bayesstruct.models`, or of one with the same variables.
    var_names : str or sequence of str, optional
        Quantities that are wanted, by the names that :func:`bayesstruct.check` gives them, as ``"edge"``,
        ``"weight"`` or ``"number of features"``. By default all.
    most : int, optional
        Maximum number of entries in total; by default ``az.rcParams["plot.max_subplots"]``, the number of panels of a
        figure. They are spread over the quantities, and of each quantity those are taken that mix worst: of indicators
        those whose probabilities have the largest Monte Carlo error, of others those with the smallest effective
        samples.

    Returns
    -------
    xarray.DataTree
        Group ``posterior`` with a variable over (chain, draw) for each entry, named as in ``"edge[a -- b]"``; the groups
        ``sample_stats``, of which figures take divergences, and ``observed_data`` are those of `idata`. ``attrs["left_out"]`` of
        the posterior says how many entries are constant, and how many are not shown.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of such a model, when there is no quantity of that name, or when none of them varies.

    See Also
    --------
    bayesstruct.check : verdicts on the same quantities, entries that are not shown included.

    Notes
    -----
    Both measures of mixing are variances of the means of batches of consecutive draws around the mean of all chains, which
    are large where a chain moves slowly and where chains disagree.

    Examples
    --------
    .. code-block:: python

        az.plot_rank(bs.quantities(idata, var_names="edge"))
        az.plot_trace_dist(bs.quantities(idata, most=10))
        az.plot_pair(bs.quantities(idata, most=6))
    """
    limit = _max_panels() if most is None else whole_number("most", most, 1)
    parts = {name: _flat(transposed(values)) for name, values in _of_result(idata)}
    parts = {name: parts[name] for name in _wanted(var_names, parts)}
    moving = {name: np.flatnonzero(_moved(draws)) for name, (draws, _) in parts.items()}
    if not any(map(len, moving.values())):
        raise ValueError(
            f"none of these quantities varies: {', '.join(parts)}. bs.check(idata) says whether they have converged"
        )
    shares = _shares([len(own) for own in moving.values()], limit)
    chosen: dict[str, np.ndarray] = {}
    for (name, (draws, labels)), share in zip(parts.items(), shares, strict=True):
        own = moving[name]
        worst = own[np.argsort(-_slowness(draws[..., own]), kind="stable")[:share]]
        chosen |= {_label(name, labels(i)): draws[..., i] for i in np.sort(worst)}
    return _tree(idata, chosen, _left_out(parts, moving, shares))


def has_no_graph(idata: "xr.DataTree") -> bool:
    """Whether a result has draws, and none of a graph."""
    found = variables(idata)
    return bool(found) and not {"edge", "arc", "dag"} & found and not any("::" in n for n in found)


def plain_quantities(draws: "xr.Dataset") -> "Iterator[tuple[str, xr.DataArray]]":
    """Yield the quantities of a model whose structure is zeros of its variables, such as a sparse regression."""
    for name, values in parameters(draws, ()):
        _refuse_matrix(name, values)
        zero = (values == 0).values
        if values.dtype.kind == "f" and values.ndim > 2 and zero.any():
            entries = [dim for dim in values.dims if dim not in SAMPLE_DIMS]
            yield f"entries of {name} that are not zero", (values != 0).sum(entries)
        yield name, values


def other_forms(posterior: "GraphPosterior") -> tuple[str, ...]:
    """Return the names of variables that are functions of the graph, or of other variables."""
    if not posterior.directed:
        return (INDICATOR,)
    return _OTHER_FORMS if isinstance(posterior, DagPosterior) else _REPEATED


def parameters(
    draws: "xr.Dataset", known: "Collection[str]"
) -> "Iterator[tuple[str, xr.DataArray]]":
    """Yield every other variable that was sampled; of the precision only what weights leave out."""
    for name, values in draws.data_vars.items():
        if name in known or not {*SAMPLE_DIMS} <= {*values.dims}:
            continue
        if values.dtype.kind not in "fiub":
            continue
        if name == "precision" and {"node", "node_"} <= {*values.dims}:
            yield "precision diagonal", _diagonal(values)
        else:
            yield str(name), values


def transposed(values: "xr.DataArray") -> "xr.DataArray":
    """Put chain and draw first."""
    return values.transpose(*SAMPLE_DIMS, ...)


def entry_name(values: "xr.DataArray", flat: int) -> str:
    """Labels of an entry, by its place among the flattened entries; empty for a scalar."""
    index = np.unravel_index(flat, values.shape[2:])
    names = []
    for dim, i in zip(values.dims[2:], index, strict=True):
        names.append(str(values.coords[dim].values[i]) if dim in values.coords else str(i))
    return ", ".join(names)


def batch_variance(draws: np.ndarray) -> np.ndarray:
    """Variance of the means of batches of draws, of which there are about as many as draws in each.

    Parameters
    ----------
    draws : (chain, draw, entry) ndarray

    Returns
    -------
    (entry,) ndarray
    """
    n_chains, n_draws, n_entries = draws.shape
    size = max(int(n_draws**0.5), 1)
    shape = n_chains, n_draws // size, size, n_entries
    batches = draws[:, : n_draws // size * size].reshape(shape)
    return batches.mean(axis=2).var(axis=(0, 1))


def _of_result(idata) -> "Iterator[tuple[str, xr.DataArray]]":
    """Yield the name and the draws of all quantities of a result."""
    if (followed := followed_of(idata)) is not None:
        draws = idata["posterior"].to_dataset()
        yield from followed.quantities(draws)
        yield from parameters(draws, followed.labelled(draws))
    elif has_no_graph(idata):
        yield from plain_quantities(idata["posterior"].to_dataset())
    else:
        yield from _of_graph(read(idata))


def _of_graph(posterior) -> "Iterator[tuple[str, xr.DataArray]]":
    import xarray as xr

    what = posterior.line
    yield f"number of {what}s", n_edges(posterior)
    yield "distance to the median graph", graph_distance(posterior)
    coords = {what: posterior.labels}
    yield what, xr.DataArray(posterior.indicators, dims=(*SAMPLE_DIMS, what), coords=coords)
    yield from block_quantities(posterior.draws)
    known = *other_forms(posterior), *labelled_blocks(posterior.draws)
    yield from parameters(posterior.draws, known)


def _refuse_matrix(name: str, values: "xr.DataArray") -> None:
    """Raise for draws that may be features or graphs: their columns have no names, or they need others to be read."""
    if values.ndim == 4 and values.dtype.kind in "iub":
        raise ValueError(
            f"`{name}` is a matrix of whole numbers, as latent features are, whose columns change places from draw to "
            f'draw: call them `feature` in the model, with dims=("observation", "latent"), and their loadings '
            f'`loading`, with dims=("latent", "node"). In this result: idata["posterior"] = '
            f'idata["posterior"].to_dataset().rename({{{name!r}: "feature", ...}}). The graph of a bs.DAG is called '
            "`dag`, in bs.models.bayesian_network"
        )


def _diagonal(precision: "xr.DataArray") -> "xr.DataArray":
    import xarray as xr

    index = xr.DataArray(np.arange(precision.sizes["node"]), dims="node")
    out = precision.isel(node=index, node_=index)
    return out.assign_coords(node=precision["node"].values)


def _max_panels() -> int:
    import arviz as az

    return int(az.rcParams["plot.max_subplots"] or 40)


def _flat(values: "xr.DataArray"):
    """Draws of the entries of a quantity, shape (chain, draw, entry), and a function that names an entry."""
    draws = values.values.reshape(*values.shape[:2], int(np.prod(values.shape[2:])))
    draws = draws.astype(np.int8) if draws.dtype == bool else draws  # which ArviZ cannot subtract
    return draws, lambda i: entry_name(values, i)


def _wanted(var_names, parts) -> list[str]:
    if var_names is None:
        return list(parts)
    wanted = [var_names] if isinstance(var_names, str) else list(var_names)
    if unknown := [name for name in wanted if name not in parts]:
        raise ValueError(
            f"there is no quantity {unknown[0]!r} in this result; it has {', '.join(map(repr, parts))}"
        )
    return wanted


def _moved(draws: np.ndarray) -> np.ndarray:
    # Draws that are not numbers in some places, as of what a draw does not have, cannot be judged.
    return np.isfinite(draws).all(axis=(0, 1)) & (draws.min(axis=(0, 1)) < draws.max(axis=(0, 1)))


def _slowness(draws: np.ndarray) -> np.ndarray:
    """Larger is worse: of indicators the Monte Carlo variance of the mean, of others relative to that of the draws."""
    draws = draws.astype(float)
    indicator = ((draws == 0) | (draws == 1)).all(axis=(0, 1))
    return batch_variance(draws) / np.where(indicator, 1.0, draws.var(axis=(0, 1)))


def _shares(counts: list[int], limit: int) -> list[int]:
    """Numbers of entries that are shown: in turn one more of each quantity that has more."""
    shares = [0] * len(counts)
    while sum(shares) < limit and (open_ := [k for k, c in enumerate(counts) if shares[k] < c]):
        for k in open_[: limit - sum(shares)]:
            shares[k] += 1
    return shares


def _label(name: str, entry: str) -> str:
    return f"{name}[{entry}]" if entry else name


def _left_out(parts, moving, shares) -> str:
    """Say how many entries of each quantity are not in the result."""
    said = []
    for (name, (draws, _)), share in zip(parts.items(), shares, strict=True):
        moved, total = len(moving[name]), draws.shape[-1]
        more = [f"{total - moved} are constant"] if total > moved else []
        more += [f"{moved - share} mix better and are not shown"] if moved > share else []
        if more:
            said.append(f"{name}: of {total} entries {' and '.join(more)}")
    return "; ".join(said)


def _tree(idata, chosen: dict[str, np.ndarray], left_out: str) -> "xr.DataTree":
    import xarray as xr

    posterior = idata["posterior"]
    coords = {d: posterior[d].values for d in SAMPLE_DIMS if d in posterior.coords}
    values = {name: (SAMPLE_DIMS, draws) for name, draws in chosen.items()}
    out = {"posterior": xr.Dataset(values, coords, {"left_out": left_out})}
    kept = ("sample_stats", "observed_data")
    return xr.DataTree.from_dict(
        out | {name: idata[name].to_dataset() for name in kept if name in idata.children}
    )
