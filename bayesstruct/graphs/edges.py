"""The one place that knows what a graph model of ours puts into its result.

Everything else in `structure`, `diagnostics` and `plots` asks an `EdgePosterior` and never opens
the tree itself, so a change of names is a change of this file.

PyMC and xarray refuse a variable that has the name of its own dimension, so the dimension over which
`edge` runs cannot be called `edge` too. Its name is therefore taken from the variable.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

SAMPLE_DIMS = ("chain", "draw")
INDICATOR = "edge"
NODE = "node"
CONSTANTS = "constant_data"
#: Scalar of the constants that is 1 when the arcs of each draw are a directed acyclic graph.
ACYCLIC = "arc_acyclic"
#: End of the name of a statistic of `bayesstruct.steps.PairwiseSpikeSlab`, after that of the weights.
_INCLUSION = "_inclusion"


@dataclass(frozen=True)
class EdgePosterior:
    """Draws of an undirected graph, with what is needed to read them.

    Attributes
    ----------
    draws : xarray.Dataset
        The group that was read (`posterior` or `prior`).
    constants : xarray.Dataset
        The group `constant_data`.
    source, target : ndarray of int, shape (n_edges,)
        Positions in `variables` of the two ends of each edge. Labels are never parsed: a column
        may be called "A -- B".
    variables : list of str, length p
        Column names in the order of the table.
    inclusion : ndarray of float, shape (chain, draw, edge), optional
        What the step reported of each edge: a number with the expectation of the indicator, and a
        smaller variance. Single values may be outside of [0, 1].
    unread : str
        Why what the step reported cannot be used, if it reported something.
    """

    draws: "xr.Dataset"
    constants: "xr.Dataset"
    source: np.ndarray
    target: np.ndarray
    variables: list[str]
    inclusion: np.ndarray | None = None
    unread: str = ""

    @property
    def dim(self) -> str:
        """Name of the dimension over the edges."""
        return next(d for d in self.draws[INDICATOR].dims if d not in SAMPLE_DIMS)

    @property
    def labels(self) -> np.ndarray:
        """Labels "A -- B" of the edges, shape (n_edges,)."""
        return self.draws[self.dim].values

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return self.draws.sizes["chain"]

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return self.draws.sizes["chain"] * self.draws.sizes["draw"]

    @cached_property
    def indicators(self) -> np.ndarray:
        """Inclusion indicators, boolean, shape (chain, draw, edge)."""
        values = self.draws[INDICATOR].transpose(*SAMPLE_DIMS, self.dim).values
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise ValueError(
                "`edge` has draws that are NaN, as joining runs of different lengths leaves them: cut all "
                "runs to the shortest first, idata.isel(draw=slice(0, n))"
            )
        if not np.isin([values.min(), values.max()], (0, 1)).all() or (
            values.dtype.kind == "f" and (values != np.round(values)).any()
        ):
            raise ValueError("`edge` must hold 0 (absent) and 1 (present) only.")
        return values.astype(bool)

    @property
    def weights(self) -> "xr.DataArray":
        """Partial correlations (or couplings), over chain, draw and edge."""
        weight = self._draw("weight")
        if self.dim not in weight.dims:
            weight = self._spread(weight)
        return weight.transpose(*SAMPLE_DIMS, self.dim)

    def _spread(self, weight: "xr.DataArray") -> "xr.DataArray":
        """Put the weights of the pairs that were kept among zeros (`symmetrize`)."""
        import xarray as xr

        kept = self._constant("visited_index")
        values = weight.transpose(*SAMPLE_DIMS, *kept.dims).values
        out = np.zeros((*values.shape[:2], len(self.source)), values.dtype)
        out[..., kept.values] = values
        coords = {name: self.draws[name] for name in (*SAMPLE_DIMS, self.dim)}
        return xr.DataArray(out, coords, (*SAMPLE_DIMS, self.dim))

    @property
    def prior(self) -> np.ndarray:
        """Prior probability of each edge that the model implies, shape (n_edges,)."""
        prior = self._constant("edge_prior").values.astype(float)
        if not ((prior >= 0) & (prior <= 1)).all():
            raise ValueError("`edge_prior` must hold probabilities between 0 and 1.")
        return prior

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Names of the two ends of each edge."""
        names = np.array(self.variables, dtype=object)
        return names[self.source], names[self.target]

    def over_edges(self, values, name: str) -> "xr.DataArray":
        """Put a vector over edges back under its labels."""
        import xarray as xr

        return xr.DataArray(values, dims=self.dim, coords={self.dim: self.labels}, name=name)

    def _draw(self, name: str) -> "xr.DataArray":
        _refuse_absent([name], self.draws, self.constants)
        return self.draws[name]

    def _constant(self, name: str) -> "xr.DataArray":
        _refuse_absent([name], self.draws, self.constants)
        return self.constants[name]


def read_posterior(idata, group: str = "posterior") -> EdgePosterior:
    """Check a result once and give access to its parts.

    Parameters
    ----------
    idata : xarray.DataTree or EdgePosterior
        What `pm.sample()` returned for a graph model of bayesstruct, or that, already read.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    EdgePosterior

    Raises
    ------
    TypeError
        When `idata` is not a DataTree.
    ValueError
        When a group or a variable is missing, with a sentence that says which.
    """
    import xarray as xr

    if isinstance(idata, EdgePosterior):  # already read
        return idata
    if not isinstance(idata, xr.DataTree):
        raise TypeError(
            "Expected the xarray.DataTree that pm.sample() returns, "
            f"got {type(idata).__module__}.{type(idata).__name__}.{_WHOLE * _is_group(idata)}"
        )
    if group not in idata.children and _is_group(idata):
        raise ValueError(f"This is one group of a result, not the whole.{_WHOLE}")
    draws = group_dataset(idata, group)
    constants = group_dataset(idata, CONSTANTS) if CONSTANTS in idata.children else xr.Dataset()
    if INDICATOR not in draws and constants.get(ACYCLIC, 0):
        raise ValueError(
            "This result has directed acyclic graphs, not undirected ones: read it with "
            "bs.arc_table, bs.arc_probabilities, bs.path_probabilities or bs.blanket_probabilities."
        )
    if INDICATOR not in draws and "arc" in draws:
        raise ValueError(
            "This result has directed arcs, not edges: read them with bs.arc_table(idata), or make "
            'edges of them first with bs.symmetrize(idata, rule="and").'
        )
    _refuse_absent([INDICATOR, "edge_source", "edge_target", NODE], draws, constants)
    refuse_sorted_nodes(constants, constants["edge_source"], constants["edge_target"])
    posterior = _checked(
        EdgePosterior(
            draws=in_order(draws, constants),
            constants=constants,
            source=constants["edge_source"].values.astype(int),
            target=constants["edge_target"].values.astype(int),
            variables=[
                str(name)
                for name in (constants if NODE in constants.coords else draws)[NODE].values
            ],
        )
    )
    if group == "posterior" and "sample_stats" in idata.children:
        return _with_statistics(posterior, idata["sample_stats"])
    return posterior


def in_order(draws: "xr.Dataset", constants: "xr.Dataset") -> "xr.Dataset":
    """Draws with columns and edges in the order of the constants, if they were sorted alone."""
    for dim in set(draws.dims) & set(constants.dims):
        if dim in draws.coords and dim in constants.coords:
            own, order = draws[dim].values, constants[dim].values
            same = len(set(order)) == len(order) == len(own) and set(own) == set(order)
            if same and (own != order).any():
                draws = draws.sel({dim: order})
    return draws


def refuse_sorted_nodes(constants: "xr.Dataset", source, target) -> None:
    """Raise when the columns are not those, in the order, that positions of ends count.

    Parameters
    ----------
    constants : xarray.Dataset
    source, target : DataArray of int
        Positions of the ends of edges or arcs.
    """
    if NODE not in constants.sizes:
        return
    size = constants.sizes[NODE]
    position = (
        constants["node_position"].values if "node_position" in constants else np.arange(size)
    )
    last = max(source.max(), target.max()) if source.size else 0
    if last >= size or (position != np.arange(size)).any():
        raise ValueError(
            "The columns (`node`) of this result were sorted or left out, and its edges are known by the places of "
            "their ends: read the whole result first (bs.edge_table(idata), bs.inclusion_matrix(idata), ...), and sort "
            "or cut the table that comes of it."
        )


def _with_statistics(posterior: EdgePosterior, stats) -> EdgePosterior:
    """Add what a step reported of the edges, if it is of the same draws and edges without doubt."""
    found = [v for name, v in stats.data_vars.items() if str(name).endswith(_INCLUSION)]
    if not found:
        return posterior
    if reason := _unlike(found, posterior):
        return replace(posterior, unread=reason)
    at = {d: posterior.draws[d].values for d in SAMPLE_DIMS}
    return replace(posterior, inclusion=found[0].sel(at).transpose(*SAMPLE_DIMS, ...).values)


def _unlike(found: list["xr.DataArray"], posterior: EdgePosterior) -> str:
    """Why statistics do not belong to the draws and edges of a posterior, if they do not."""
    if len(found) > 1:
        return "there are several random fields"
    [values] = found
    if values.ndim != 3 or values.size != values.sizes["chain"] * values.sizes["draw"] * len(
        posterior.source
    ):
        return "there are not as many edges"
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
    """Whether labels are among others, none of which is there twice."""
    return bool(np.isin(labels, known).all() and len(np.unique(known)) == len(known))


_ORIGIN = "Was it sampled from a bayesstruct graph model?"
_WHOLE = (
    " Pass the whole tree, idata instead of idata.posterior: the group constant_data is needed too."
)
#: What a model of one's own has to hold besides its precision matrix or field, and how it gets it.
_TO_ADD = {
    NODE: 'pm.Model(coords={"node": names, "node_": names, "pair": [f"{a} -- {b}" for a, b in '
    'itertools.combinations(names, 2)]}), and dims=("node", "node_") of the precision',
    INDICATOR: 'bs.distributions.edges("edge", precision, dims="pair"), or of a random field pm.Deterministic("edge", '
    'pm.math.neq(weight, 0).astype(int), dims="pair")',
    "weight": 'pm.Deterministic("weight", bs.distributions.partial_correlations(precision), dims="pair"), or the weights of '
    'the random field, called "weight", dims="pair"',
    "edge_source": 'pm.Data("edge_source", np.triu_indices(p, 1)[0], dims="pair")',
    "edge_target": 'pm.Data("edge_target", np.triu_indices(p, 1)[1], dims="pair")',
    "edge_prior": 'pm.Data("edge_prior", bs.distributions.implied_edge_probability(p, 0.5), dims="pair"), or np.full(p * (p - '
    "1) // 2, 0.5) of a random field",
}
_NO_CONSTANTS = (
    " There is no group constant_data, where models of bayesstruct have it: bs.load_checkpoint(path, model=model) adds "
    "the group to the draws of a run on disk."
)
_NESTED = (
    " The variables are those of a model with a name, {}: results of such models are not read; build the model "
    "outside of another one and without name=."
)


def _is_group(thing) -> bool:
    """Whether this is the group of the draws and not the result that holds it."""
    return INDICATOR in getattr(thing, "data_vars", ())


def _has(name: str, draws: "xr.Dataset", constants: "xr.Dataset") -> bool:
    if name == NODE:
        return NODE in draws.coords or NODE in constants.coords
    return name in (constants if name.startswith("edge_") else draws).data_vars


def _refuse_absent(wanted: list[str], draws: "xr.Dataset", constants: "xr.Dataset") -> None:
    """Raise, when something wanted is absent, with all that is and how to add it."""
    absent = [name for name in _TO_ADD if not _has(name, draws, constants)]
    lacking = [name for name in wanted if name in absent]
    if not lacking:
        return
    found = ", ".join(map(str, draws.data_vars)) or "nothing"
    held = (
        f"This result has no {' and no '.join(f'`{name}`' for name in lacking)}; it holds {found}."
    )
    if nested := [name for name in map(str, draws.data_vars) if name.endswith(f"::{INDICATOR}")]:
        raise ValueError(held + _NESTED.format(repr(nested[0].removesuffix(f"::{INDICATOR}"))))
    if INDICATOR not in lacking and not constants.data_vars:
        held += _NO_CONSTANTS
    lines = "".join(f"\n    {_TO_ADD[name]}" for name in absent)
    raise ValueError(
        f"{held} {_ORIGIN} In a model of your own, with p columns called names, add{lines}"
    )


def group_dataset(idata: "xr.DataTree", group: str) -> "xr.Dataset":
    """Return a group of a result as a dataset; the error names the groups that there are."""
    if group not in idata.children:
        found = ", ".join(idata.children) or "none"
        raise ValueError(f"This result has no group `{group}` (its groups: {found}). {_ORIGIN}")
    return idata[group].to_dataset()


def _checked(posterior: EdgePosterior) -> EdgePosterior:
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
    return posterior
