"""Posteriors over undirected graphs."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.graphs.mixing import indicator_ess, indicator_rhat
from bayesstruct.graphs.posteriors.base import GraphPosterior
from bayesstruct.graphs.posteriors.estimators import (
    ControlVariate,
    Frequency,
    Product,
    RaoBlackwell,
)
from bayesstruct.graphs.posteriors.refusals import refuse_absent
from bayesstruct.graphs.records import EdgePrior, Visited, is_nodewise
from bayesstruct.graphs.truth import adjacency

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["GROUP", "INDICATOR", "EdgePosterior"]

INDICATOR = "edge"
GROUP = "group"  # dimension of what each group of rows has


@dataclass(frozen=True, kw_only=True)
class EdgePosterior(GraphPosterior):
    """Draws of an undirected graph; its lines are edges.

    PyMC and xarray refuse a variable with the name of its own dimension, so that the dimension over
    which `edge` runs cannot be called `edge` too: its name is taken from the variable.

    Attributes
    ----------
    inclusion : ndarray of float, shape (chain, draw, edge), optional
        Number that the step reported of each edge, with the expectation of the indicator and a
        smaller variance. Single values may be outside of [0, 1].
    differing : ndarray of float, shape (chain, draw, edge), optional
        The same of a difference between groups of rows.
    unread : str
        Why the numbers that the step reported cannot be used; empty if it reported none.
    """

    line: ClassVar[str] = "edge"
    directed: ClassVar[bool] = False

    inclusion: np.ndarray | None = None
    differing: np.ndarray | None = None
    unread: str = ""

    @property
    def dim(self) -> str:
        """Name of the dimension over the edges."""
        return next(str(d) for d in self.draws[INDICATOR].dims if d not in SAMPLE_DIMS)

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

    def indicator_ess(self) -> np.ndarray:
        """Effective sample size of each indicator."""
        return self._diagnostics[0]

    def indicator_rhat(self) -> np.ndarray:
        """R-hat of each indicator."""
        return self._diagnostics[1]

    @cached_property
    def _diagnostics(self) -> tuple[np.ndarray, np.ndarray]:
        return indicator_ess(self.indicators), indicator_rhat(self.indicators)

    @property
    def graph_alone(self) -> bool:
        """Whether the model has no weights of the edges."""
        return "weight" not in self.draws and is_nodewise(self.constants)

    @property
    def weights(self) -> "xr.DataArray":
        """Partial correlations (or couplings), over chain, draw and edge; of several groups their average."""
        if self.graph_alone:
            raise ValueError(
                "This result has graphs alone, without weights of their edges, which the model integrates out: "
                "bs.precision_draws(idata) draws precision matrices given some of the graphs, and its result has weights."
            )
        refuse_absent(["weight"], self.draws, self.constants)
        weight = self.draws["weight"]
        if GROUP in weight.dims:
            weight = weight.mean(GROUP)
        if self.dim not in weight.dims:
            weight = self._spread(weight)
        return weight.transpose(*SAMPLE_DIMS, self.dim)

    def _spread(self, weight: "xr.DataArray") -> "xr.DataArray":
        """Put the weights of the pairs that were kept among zeros (`symmetrize`)."""
        import xarray as xr

        kept = Visited.read(self.constants).index
        dims = [dim for dim in weight.dims if dim not in SAMPLE_DIMS]
        values = weight.transpose(*SAMPLE_DIMS, *dims).values
        out = np.zeros((*values.shape[:2], self.n_lines), values.dtype)
        out[..., kept] = values
        coords = {name: self.draws[name] for name in (*SAMPLE_DIMS, self.dim)}
        return xr.DataArray(out, coords, (*SAMPLE_DIMS, self.dim))

    def mean_weights(self, lines: np.ndarray) -> np.ndarray | None:
        """Posterior mean of the weights of some edges; None if the model has none."""
        if self.graph_alone:
            return None
        return self.weights.mean(SAMPLE_DIMS).values[lines]

    @cached_property
    def estimator(self) -> Frequency:
        """How probabilities are estimated: the most precise way that the result allows."""
        for kind in (Product, RaoBlackwell):
            if kind.serves(self):
                return kind(self)
        return Frequency(self) if self.inclusion is None else ControlVariate(self, self.inclusion)

    @property
    def prior(self) -> np.ndarray:
        """Prior probability of each edge that the model implies; NaN where it is not known."""
        refuse_absent(["edge_prior"], self.draws, self.constants)
        prior = EdgePrior.read(self.constants).prior.astype(float)
        if not (((prior >= 0) & (prior <= 1)) | np.isnan(prior)).all():
            raise ValueError("`edge_prior` must hold probabilities between 0 and 1.")
        return prior

    def adjacencies(self) -> dict[str, np.ndarray]:
        """Edges: ends, probability, prior probability, Bayes factor, and whether that is a bound."""
        factor, bound = self.bayes_factors()
        return {
            "source": self.source,
            "target": self.target,
            "probability": self.probability,
            "prior": self.prior,
            "factor": factor,
            "bound": bound,
        }

    def median_lines(self, threshold: float) -> np.ndarray:
        """Edges at least as probable as `threshold`."""
        return self.probability >= threshold

    def typical_lines(self) -> np.ndarray:
        """Edges in at least half of the draws."""
        return self.frequency >= 0.5

    def keys(self, rows: np.ndarray) -> list[str]:
        """Bits of the edges."""
        return [row.tobytes().hex() for row in np.packbits(rows, axis=1)]

    def lines_of_key(self, key: str) -> np.ndarray:
        """Edges of a key."""
        packed = np.frombuffer(bytes.fromhex(key), dtype=np.uint8)
        if len(packed) != -(-self.n_lines // 8):
            raise ValueError(f"This key is not one of a graph with {self.n_lines} possible edges.")
        return np.unpackbits(packed, count=self.n_lines).astype(bool)

    def known_lines(self, truth) -> np.ndarray:
        """Edges of a known graph; all of them must be edges that the model considers."""
        matrix = adjacency(truth, self.variables)
        considered = self.matrix(np.ones(self.n_lines)).astype(bool)
        if (matrix & ~considered).any():
            i, j = np.argwhere(matrix & ~considered)[0]
            raise ValueError(
                "The known graph has an edge that the model does not consider: "
                f"{self.variables[i]!r} and {self.variables[j]!r}."
            )
        return matrix[self.source, self.target]

    def matrix(self, values: np.ndarray, diagonal: float = 0.0) -> np.ndarray:
        """Spread (..., n_edges) over symmetric matrices (..., p, p)."""
        p = len(self.variables)
        if values.ndim == 0 or values.shape[-1] != self.n_lines:
            raise ValueError(
                f"Expected {self.n_lines} values, one an edge, got shape {values.shape}."
            )
        matrix = np.zeros((*values.shape[:-1], p, p), dtype=np.result_type(values, float))
        matrix[..., self.source, self.target] = values
        matrix[..., self.target, self.source] = values
        matrix[..., np.arange(p), np.arange(p)] = diagonal
        return matrix

    def over_edges(self, values, name: str) -> "xr.DataArray":
        """Put a vector over edges back under its labels."""
        import xarray as xr

        return xr.DataArray(values, dims=self.dim, coords={self.dim: self.labels}, name=name)
