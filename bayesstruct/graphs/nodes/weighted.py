"""Weighted graphs of single draws, as matrices over draws and lines."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import whole_number
from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.graphs.posteriors.edges import GROUP
from bayesstruct.graphs.posteriors.reading import read

if TYPE_CHECKING:
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["DRAWS", "WeightedGraphs", "refuse_groups", "weighted_graphs"]

#: Number of draws of which quantities are computed that take long for each graph.
DRAWS = 1000


@dataclass(frozen=True, eq=False)
class WeightedGraphs:
    """Graphs of some draws of a posterior with the weights of their lines.

    Attributes
    ----------
    posterior : GraphPosterior
        Those draws alone.
    present : (n, lines) ndarray of bool
        Which lines each draw has; chains one after another.
    weights : (n, lines) ndarray of float or None
        Their weights, zero where a draw has no line (unless all were asked for); None if lines have no weights.
    made : int
        Number of draws in the whole result.
    """

    posterior: "GraphPosterior"
    present: np.ndarray
    weights: np.ndarray | None
    made: int

    @property
    def p(self) -> int:
        """Number of nodes."""
        return len(self.posterior.variables)

    @property
    def directed(self) -> bool:
        """Whether lines are arcs."""
        return self.posterior.directed

    @cached_property
    def _ends(self):
        from scipy.sparse import csr_array

        lines, at = self.posterior.n_lines, np.arange(self.posterior.n_lines)
        ones, shape = np.ones(lines), (lines, self.p)
        ends = self.posterior.source, self.posterior.target
        return tuple(csr_array((ones, (at, end)), shape) for end in ends)

    def leaving(self, values: np.ndarray) -> np.ndarray:
        """Sum over the lines that leave each node: (n, p), from values (n, lines)."""
        return (self._ends[0].T @ values.T).T

    def entering(self, values: np.ndarray) -> np.ndarray:
        """Sum over the lines that enter each node: (n, p), from values (n, lines)."""
        return (self._ends[1].T @ values.T).T

    def touching(self, values: np.ndarray) -> np.ndarray:
        """Sum over all lines of each node: (n, p), from values (n, lines)."""
        return self.leaving(values) + self.entering(values)

    def over_draws(self, values: np.ndarray) -> np.ndarray:
        """Put values (n, ...) into the shape (chain, draw, ...)."""
        return values.reshape(self.posterior.n_chains, -1, *values.shape[1:])

    def labelled(self, values: np.ndarray, name: str) -> "xr.DataArray":
        """Put values (n, p) under the names of chains, draws and nodes."""
        import xarray as xr

        known = self.posterior.draws
        coords: dict = {d: known[d].values for d in SAMPLE_DIMS if d in known.coords}
        coords["node"] = self.posterior.variables
        return xr.DataArray(self.over_draws(values), coords, (*SAMPLE_DIMS, "node"), name=name)

    def note(self) -> list[str]:
        """Say how many draws were used, if not all."""
        used = len(self.present)
        if used == self.made:
            return []
        return [f"from {used:,} of {self.made:,} draws, evenly spaced (`draws`)."]


def weighted_graphs(
    idata: "xr.DataTree | GraphPosterior",
    *,
    draws: int | None = DRAWS,
    all_weights: bool = False,
    group: str = "posterior",
) -> WeightedGraphs:
    """Read some draws of a posterior over graphs with the weights of their lines.

    Parameters
    ----------
    idata : xarray.DataTree or GraphPosterior
    draws : int, optional
        Largest number of draws, evenly spaced over each chain; None for all.
    all_weights : bool
        Keep the weights of lines that a draw does not have.
    group : {"posterior", "prior"}

    Raises
    ------
    TypeError, ValueError
        As `read`; if the result has a graph for each of several groups of rows, or weights that are not numbers.
    """
    posterior: GraphPosterior = read(idata, group)
    made = posterior.n_draws
    refuse_groups(posterior)
    if draws is not None:
        posterior = _thinned(posterior, whole_number("draws", draws, 1))
    present = posterior.indicators.reshape(posterior.n_draws, -1).astype(bool)
    weights = _weights(posterior)
    if weights is None:
        return WeightedGraphs(posterior, present, None, made)
    weights = weights.reshape(present.shape).astype(float)
    if not all_weights:
        weights = np.where(present, weights, 0.0)
    if not np.isfinite(weights).all():
        line = int(np.argwhere(~np.isfinite(weights))[0][1])
        raise ValueError(
            f"the weight of {str(posterior.labels[line])!r} is not a finite number in some draws"
        )
    return WeightedGraphs(posterior, present, weights, made)


def _thinned(posterior: "GraphPosterior", most: int) -> "GraphPosterior":
    """Keep evenly spaced draws of each chain; the same object if there are no more than `most`."""
    if posterior.n_draws <= most:
        return posterior
    length, kept = posterior.draws.sizes["draw"], max(1, most // posterior.n_chains)
    at = np.arange(kept) * length // kept
    return replace(posterior, draws=posterior.draws.isel(draw=at))


def _weights(posterior: "GraphPosterior") -> np.ndarray | None:
    """Weights over chain, draw and line, or None."""
    if "weight" not in posterior.draws:
        return None
    if posterior.directed:
        read_lines: Callable = posterior.weights  # type: ignore[attr-defined]
        return read_lines(np.arange(posterior.n_lines))
    return posterior.weights.values  # type: ignore[attr-defined]


def refuse_groups(posterior: "GraphPosterior") -> None:
    """Raise if a result has weights of several groups of rows."""
    if "weight" in posterior.draws and GROUP in posterior.draws["weight"].dims:
        labels = [str(label) for label in posterior.draws["weight"][GROUP].values]
        raise ValueError(
            f"this result has a graph for each of the groups of rows {', '.join(map(repr, labels))}: read one of them, "
            f"bs.one_group(idata, {labels[0]!r})"
        )
