"""The one place that knows what a model with arcs puts into its result.

Dependency networks and Bayesian networks have the same variables; a constant tells them apart.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesstruct.graphs.edges import (
    ACYCLIC,
    CONSTANTS,
    INDICATOR,
    SAMPLE_DIMS,
    in_order,
    refuse_sorted_nodes,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

DIM = "ordered_pair"


@dataclass(frozen=True)
class ArcPosterior:
    """Draws of directed arcs, with what is needed to read them.

    Attributes
    ----------
    draws, constants : xarray.Dataset
        The groups `posterior` and `constant_data`.
    summaries : xarray.Dataset or None
        The group `arcs` of `sample_neighbourhoods`.
    source, target : ndarray of int, shape (n_arcs,)
        Predictor (parent) and response (child) of each arc, as positions in `variables`.
    variables : list of str
    """

    draws: "xr.Dataset"
    constants: "xr.Dataset"
    summaries: "xr.Dataset | None"
    source: np.ndarray
    target: np.ndarray
    variables: list[str]

    @cached_property
    def arcs(self) -> np.ndarray:
        """Indicators, int8, shape (chain, draw, arc)."""
        values = self.draws["arc"].transpose(*SAMPLE_DIMS, DIM).values
        return values.astype("int8", copy=False)

    @cached_property
    def frequency(self) -> np.ndarray:
        """Share of the draws that have each arc."""
        return self.arcs.mean(axis=(0, 1))

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return self.arcs.shape[0] * self.arcs.shape[1]

    @property
    def negligible(self) -> float:
        """Absolute coefficient up to which there is no arc; 0 for a spike-and-slab prior."""
        return float(self.constants["negligible"]) if "negligible" in self.constants else 0.0

    @property
    def acyclic(self) -> bool:
        """Whether each draw is a directed acyclic graph."""
        return bool(self.constants.get(ACYCLIC, 0))

    @property
    def weighted(self) -> bool:
        """Whether arcs have coefficients; those of discrete Bayesian networks have none."""
        return "weight" in self.draws

    @property
    def independent(self) -> bool:
        """Whether the regressions are independent given the table."""
        return bool(self.constants.get("arc_independent", 0))

    @property
    def prior(self) -> np.ndarray:
        """Prior probability of each arc."""
        return self.constants["arc_prior"].values.astype(float)

    @property
    def estimator(self) -> str:
        """Name of the way in which probabilities are estimated."""
        known = self.summaries is not None and "probability" in self.summaries
        return "rao-blackwell" if known else "frequency"

    @cached_property
    def probability(self) -> np.ndarray:
        """Posterior probability of each arc."""
        if self.estimator == "frequency":
            return self.frequency
        return np.clip(self.summaries["probability"].mean("chain").values, 0.0, 1.0)

    @cached_property
    def position(self) -> np.ndarray:
        """Position of the arc from column j to column i at [i, j]; shape (p, p)."""
        p = len(self.variables)
        out = np.zeros((p, p), int)
        out[self.target, self.source] = np.arange(len(self.source))
        return out

    def weights(self, arcs) -> np.ndarray:
        """Coefficients of some arcs, (chain, draw, len(arcs)); 0 for those that were not kept."""
        weight = self.draws["weight"]
        if DIM in weight.dims:
            return weight.transpose(*SAMPLE_DIMS, DIM).values[..., arcs]
        kept = self.constants["visited_index"].values.astype(int)
        at = np.full(len(self.source), -1)
        at[kept] = np.arange(len(kept))
        values = weight.transpose(*SAMPLE_DIMS, "visited_pair").values
        out = np.zeros((*values.shape[:2], len(arcs)), values.dtype)
        known = at[arcs] >= 0
        out[..., known] = values[..., at[arcs][known]]
        return out

    @cached_property
    def has_weights(self) -> np.ndarray:
        """For which arcs the draws of the coefficient were kept."""
        if DIM in self.draws["weight"].dims:
            return np.ones(len(self.source), bool)
        out = np.zeros(len(self.source), bool)
        out[self.constants["visited_index"].values.astype(int)] = True
        return out


@dataclass(frozen=True)
class DagPosterior(ArcPosterior):
    """Draws of a directed acyclic graph, with what is needed to read them."""

    @cached_property
    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct graphs, boolean (n_graphs, p, p), rows parents, and how often each was drawn.

        Most visited first; ties in the order of the draws.
        """
        drawn = distinct_rows(self.arcs.reshape(self.n_draws, -1).astype(bool))
        return self.matrices(drawn.rows), drawn.count

    def matrices(self, values: np.ndarray) -> np.ndarray:
        """Spread (..., n_arcs) over (..., p, p), rows parents."""
        p = len(self.variables)
        out = np.zeros((*values.shape[:-1], p, p), values.dtype)
        out[..., self.source, self.target] = values
        return out

    def frame(self, matrix: np.ndarray) -> "pd.DataFrame":
        """Label a (p, p) matrix."""
        import pandas as pd

        return pd.DataFrame(matrix, index=self.variables, columns=self.variables)


class Distinct(NamedTuple):
    """Distinct rows of a boolean matrix (n, m), most frequent first; ties as they first appear.

    Attributes
    ----------
    rows : ndarray of bool, shape (k, m)
    count : ndarray of int, shape (k,)
        How often each is there.
    packed : ndarray of uint8, shape (k, ceil(m / 8))
        The same rows as bits.
    index : ndarray of int, shape (n,)
        Which of them each row of the matrix is.
    """

    rows: np.ndarray
    count: np.ndarray
    packed: np.ndarray
    index: np.ndarray


def distinct_rows(rows: np.ndarray) -> Distinct:
    """Find the distinct rows of a boolean matrix, shape (n, m)."""
    packed = np.packbits(rows, axis=1)
    # Comparing whole rows as bytes is what keeps this fast for thousands of columns
    if rows.shape[1]:
        keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    else:  # nothing to tell the rows apart by
        keys = np.zeros(len(rows))
    _, first, index, count = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -count))
    first = first[order]
    return Distinct(rows[first], count[order], packed[first], np.argsort(order)[index])


def has_arcs(idata) -> bool:
    """Whether this is the result of a model whose draws are arcs, with or without cycles."""
    if isinstance(idata, ArcPosterior) or has_dags(idata):
        return True
    import xarray as xr

    if not isinstance(idata, xr.DataTree) or "posterior" not in idata.children:
        return False
    draws = idata["posterior"].data_vars
    return "arc" in draws and INDICATOR not in draws


def has_dags(idata) -> bool:
    """Whether this is the result of a model whose draws are directed acyclic graphs."""
    if isinstance(idata, DagPosterior):
        return True
    import xarray as xr

    if not isinstance(idata, xr.DataTree) or CONSTANTS not in idata.children:
        return False
    return bool(idata[CONSTANTS].to_dataset().get(ACYCLIC, 0))


def read_dags(idata, group: str = "posterior") -> DagPosterior:
    """Check a result once and give access to its directed acyclic graphs.

    Parameters
    ----------
    idata : xarray.DataTree or DagPosterior
        Result of a Bayesian network, or that, already read.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Raises
    ------
    TypeError
        When `idata` is not a DataTree.
    ValueError
        When it is not that of a Bayesian network.
    """
    if isinstance(idata, DagPosterior):
        return idata
    posterior = read_arcs(idata, group)
    if not posterior.acyclic:
        raise ValueError(
            "This result is that of a dependency network, whose arcs may form cycles: there is no "
            "directed acyclic graph in it. Read it with bs.arc_table or bs.symmetrize, or sample "
            "bs.models.bayesian_network."
        )
    return DagPosterior(
        **{field.name: getattr(posterior, field.name) for field in fields(posterior)}
    )


def read_arcs(idata, group: str = "posterior") -> ArcPosterior:
    """Check a result once and give access to its arcs.

    Parameters
    ----------
    idata : xarray.DataTree or ArcPosterior
        Result of a neighbourhood model or of a Bayesian network, or that, already read.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Raises
    ------
    TypeError
        When `idata` is not a DataTree.
    ValueError
        When it is not that of a model with arcs.
    """
    import xarray as xr

    if isinstance(idata, ArcPosterior):
        return idata
    if not isinstance(idata, xr.DataTree):
        raise TypeError(
            "Expected the xarray.DataTree of a neighbourhood model or a Bayesian network, "
            f"got {type(idata).__module__}.{type(idata).__name__}."
        )
    empty = xr.Dataset()
    draws, constants = (
        idata[name].to_dataset() if name in idata.children else empty for name in (group, CONSTANTS)
    )
    _refuse_absent(draws, constants, group)
    refuse_cut_arcs(draws, constants)
    draws = in_order(draws, constants)
    posterior = ArcPosterior(
        draws=draws,
        constants=constants,
        summaries=_summaries(idata, draws),
        source=constants["arc_source"].values.astype(int),
        target=constants["arc_target"].values.astype(int),
        variables=[str(name) for name in draws["node"].values],
    )
    if posterior.n_draws == 0:
        raise ValueError("This result holds no draws.")
    return posterior


def refuse_cut_arcs(draws: "xr.Dataset", constants: "xr.Dataset") -> None:
    """Raise when columns were sorted or left out since the result was made, or arcs left out."""
    refuse_sorted_nodes(constants, constants["arc_source"], constants["arc_target"])
    p, count = draws.sizes["node"], constants["arc_source"].size
    if count != p * (p - 1):
        raise ValueError(
            f"This result has {count} of the {p * (p - 1)} arcs between {p} columns, and what is said of graphs and "
            "effects needs all: read the whole result, and cut the table that comes of it."
        )


def _summaries(idata, draws: "xr.Dataset"):
    """Averages over all draws that were made; None if some draws were taken out since."""
    if "arcs" not in idata.children:
        return None
    summaries = idata["arcs"].to_dataset()
    made = summaries.attrs.get("draws")
    if made is not None and [draws.sizes[name] for name in SAMPLE_DIMS] != list(made):
        return None
    return summaries


def _refuse_absent(draws: "xr.Dataset", constants: "xr.Dataset", group: str) -> None:
    needed = {"arc": draws}
    if not constants.get(ACYCLIC, 0):
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
