"""Posteriors over directed graphs, with or without cycles.

Dependency networks and Bayesian networks have the same variables; a constant tells them apart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bayesstruct.graphs.digraphs import from_off_diagonal, off_diagonal, without_cycles
from bayesstruct.graphs.distances import joined_differently
from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.graphs.mixing import indicator_ess, indicator_rhat, looked_at, typical_ess
from bayesstruct.graphs.posteriors.base import GraphPosterior
from bayesstruct.graphs.posteriors.estimators import Frequency, RecordedAverage, bayes_factors_of
from bayesstruct.graphs.records import ArcPrior, Visited, with_fixed
from bayesstruct.graphs.truth import arc_matrix

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["ArcPosterior", "DagPosterior", "blocks"]

DIM = "ordered_pair"
BLOCK = 4096


def blocks(positions: np.ndarray) -> list[np.ndarray]:
    """Cut positions of arcs into pieces whose floats fit."""
    return [positions[k : k + BLOCK] for k in range(0, len(positions), BLOCK)]


@dataclass(frozen=True, kw_only=True)
class ArcPosterior(GraphPosterior):
    """Draws of directed arcs.

    Attributes
    ----------
    source, target : ndarray of int, shape (n_arcs,)
        Predictor (parent) and response (child) of each arc, as positions in `variables`.
    summaries : xarray.Dataset or None
        The group `arcs` of `sample_neighbourhoods`.
    """

    line: ClassVar[str] = "arc"
    directed: ClassVar[bool] = True
    #: Whether each draw is a directed acyclic graph.
    acyclic: ClassVar[bool] = False

    summaries: "xr.Dataset | None" = None

    @property
    def dim(self) -> str:
        """Name of the dimension over the arcs."""
        return DIM

    @cached_property
    def indicators(self) -> np.ndarray:
        """Indicators, int8, shape (chain, draw, arc)."""
        values = self.draws["arc"].transpose(*SAMPLE_DIMS, DIM).values
        return values.astype("int8", copy=False)

    def indicator_ess(self) -> np.ndarray:
        """Effective sample size of each indicator; NaN for the hardly visited of very many."""
        return self._diagnostics[0]

    def indicator_rhat(self) -> np.ndarray:
        """R-hat of each indicator; NaN for the hardly visited of very many."""
        return self._diagnostics[1]

    @cached_property
    def _diagnostics(self) -> tuple[np.ndarray, np.ndarray]:
        return self._in_blocks(indicator_ess), self._in_blocks(indicator_rhat)

    def _in_blocks(self, diagnose: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Diagnose indicators in blocks: floats of all would not fit."""
        out = np.full(self.n_lines, np.nan)
        for at in blocks(looked_at(self.frequency)):
            out[at] = diagnose(self.indicators[..., at].astype(bool))
        return out

    @cached_property
    def recorded(self) -> ArcPrior:
        """Prior of the arcs as the model recorded it."""
        return ArcPrior.read(self.constants)

    @property
    def negligible(self) -> float:
        """Absolute coefficient up to which there is no arc; 0 for a spike-and-slab prior."""
        return float(self.recorded.negligible or 0.0)

    @property
    def independent(self) -> bool:
        """Whether the regressions are independent given the table."""
        return bool(self.recorded.independent)

    @property
    def prior(self) -> np.ndarray:
        """Prior probability of each arc."""
        return self.recorded.prior.astype(float)

    @cached_property
    def estimator(self) -> Frequency:
        """How probabilities are estimated."""
        if self.summaries is None or "probability" not in self.summaries:
            return Frequency(self)
        return RecordedAverage(self, self.summaries["probability"])

    @cached_property
    def position(self) -> np.ndarray:
        """Position of the arc from column j to column i at [i, j]; shape (p, p)."""
        p = len(self.variables)
        out = np.zeros((p, p), int)
        out[self.target, self.source] = np.arange(self.n_lines)
        return out

    @property
    def weighted(self) -> bool:
        """Whether arcs have coefficients; those of discrete Bayesian networks have none."""
        return "weight" in self.draws

    def weights(self, arcs: np.ndarray) -> np.ndarray:
        """Coefficients of some arcs, (chain, draw, len(arcs)); 0 for those that were not kept."""
        weight = self.draws["weight"]
        if DIM in weight.dims:
            return weight.transpose(*SAMPLE_DIMS, DIM).values[..., arcs]
        kept = self._kept
        at = np.full(self.n_lines, -1)
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
            return np.ones(self.n_lines, bool)
        out = np.zeros(self.n_lines, bool)
        out[self._kept] = True
        return out

    @property
    def _kept(self) -> np.ndarray:
        return Visited.read(self.constants).index.astype(int)

    def mean_weights(self, lines: np.ndarray) -> np.ndarray | None:
        """Posterior mean of the coefficients of some arcs, in blocks: floats of all would not fit."""
        if not self.weighted:
            return None
        means = [self.weights(at).mean(axis=(0, 1)) for at in blocks(lines)]
        return np.concatenate([np.zeros(0), *means])

    def adjacencies(self) -> dict[str, np.ndarray]:
        """Pairs of variables with an arc either way, as `GraphPosterior.adjacencies` says."""
        one = np.flatnonzero(self.source < self.target)
        source, target = self.source[one], self.target[one]
        other = self.position[source, target]
        there, back = self.prior[one], self.prior[other]
        certain, impossible = (there == 1) | (back == 1), (there == 0) & (back == 0)
        prior = with_fixed(there + back, certain, impossible)
        drawn = self.indicators[..., one].astype(bool) | self.indicators[..., other].astype(bool)
        present = drawn.mean(axis=(0, 1))
        ess = np.concatenate([indicator_ess(drawn[..., at]) for at in blocks(np.arange(len(one)))])
        floor = 1 / (typical_ess(ess, self.n_draws) + 1)
        factor, bound = bayes_factors_of(present, 1 - present, prior, floor)
        return {
            "source": source,
            "target": target,
            "probability": present,
            "prior": prior,
            "factor": factor,
            "bound": bound,
        }

    def median_lines(self, threshold: float) -> np.ndarray:
        """Arcs at least as probable as `threshold`."""
        return self.probability >= threshold

    def typical_lines(self) -> np.ndarray:
        """Arcs in at least half of the draws."""
        return self.frequency >= 0.5

    def keys(self, rows: np.ndarray) -> list[str]:
        """Bits of the adjacency matrix off its diagonal, row by row."""
        packed = np.packbits(off_diagonal(self.matrix(rows)), axis=1)
        return [row.tobytes().hex() for row in packed]

    def lines_of_key(self, key: str) -> np.ndarray:
        """Arcs of a key."""
        p = len(self.variables)
        packed = np.frombuffer(bytes.fromhex(key), dtype=np.uint8)
        if len(packed) != -(-p * (p - 1) // 8):
            raise ValueError(f"This key is not one of a directed graph with {p} variables.")
        bits = np.unpackbits(packed, count=p * (p - 1)).astype(bool)
        present = from_off_diagonal(bits, p)[self.source, self.target]
        if present.sum() < bits.sum():
            raise ValueError("This key has arcs that the model does not consider.")
        return present

    def known_lines(self, truth) -> np.ndarray:
        """Arcs of a known directed graph."""
        return arc_matrix(truth, self.variables)[self.source, self.target]

    def labelled(self, truth) -> tuple[np.ndarray, np.ndarray]:
        """Whether each ordered pair is an arc of a known graph, and its probability; row by row."""
        known = arc_matrix(truth, self.variables)
        return off_diagonal(known), off_diagonal(self.matrix(self.probability))

    def matrix(self, values: np.ndarray) -> np.ndarray:
        """Spread (..., n_arcs) over (..., p, p), rows parents."""
        p = len(self.variables)
        out = np.zeros((*values.shape[:-1], p, p), values.dtype)
        out[..., self.source, self.target] = values
        return out

    def frame(self, matrix: np.ndarray) -> "pd.DataFrame":
        """Label a (p, p) matrix."""
        import pandas as pd

        return pd.DataFrame(matrix, index=self.variables, columns=self.variables)


@dataclass(frozen=True, kw_only=True)
class DagPosterior(ArcPosterior):
    """Draws of a directed acyclic graph."""

    acyclic: ClassVar[bool] = True

    @cached_property
    def dags(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct graphs, boolean (n_graphs, p, p), rows parents, and how often each was drawn.

        Most visited first; ties in the order of the draws.
        """
        return self.matrix(self.distinct.rows), self.distinct.count

    def median_lines(self, threshold: float) -> np.ndarray:
        """Probable arcs without cycles: from the most probable on, none that would close a cycle."""
        wanted = np.flatnonzero(self.probability >= threshold)
        first = wanted[np.argsort(-self.probability[wanted], kind="stable")]
        kept = without_cycles(self.source[first], self.target[first], len(self.variables))
        out = np.zeros(self.n_lines, bool)
        out[first[kept]] = True
        return out

    def typical_lines(self) -> np.ndarray:
        """Arcs of the median graph."""
        return self.median_lines(0.5)

    def distance(self, graphs: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Structural Hamming distance: one for a missing, extra or reversed arc."""
        return joined_differently(self.matrix(graphs), self.matrix(reference))
