"""Base of the posteriors over undirected and directed graphs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bayesstruct.graphs.records import AcyclicEdges

if TYPE_CHECKING:
    import networkx as nx
    import xarray as xr

    from bayesstruct.graphs.posteriors.estimators import Frequency

__all__ = ["Distinct", "GraphPosterior", "distinct_rows"]


@dataclass(frozen=True, kw_only=True)
class GraphPosterior(ABC):
    """Draws of a graph, with its columns, constants and probabilities.

    A *line* is an edge of an undirected graph or an arc of a directed one. Arrays over lines have
    the order of `source` and `target`.

    Attributes
    ----------
    draws : xarray.Dataset
        The group that was read (`posterior` or `prior`).
    constants : xarray.Dataset
        The group `constant_data`.
    source, target : ndarray of int, shape (n_lines,)
        Positions in `variables` of the two ends of each line. Labels are never parsed: a column
        may be called "A -- B".
    variables : list of str, length p
        Column names in the order of the table.
    """

    #: Name of a line in columns of tables and in messages: "edge" or "arc".
    line: ClassVar[str]
    directed: ClassVar[bool]

    draws: "xr.Dataset"
    constants: "xr.Dataset"
    source: np.ndarray
    target: np.ndarray
    variables: list[str]

    @property
    def n_lines(self) -> int:
        """Number of edges or arcs that the model considers."""
        return len(self.source)

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return self.draws.sizes["chain"]

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return self.draws.sizes["chain"] * self.draws.sizes["draw"]

    @property
    @abstractmethod
    def dim(self) -> str:
        """Name of the dimension over the lines."""

    @property
    def labels(self) -> np.ndarray:
        """Labels "A -- B" or "A -> B" of the lines."""
        return self.draws[self.dim].values

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Names of the two ends of each line."""
        names = np.array(self.variables, dtype=object)
        return names[self.source], names[self.target]

    # Draws

    @property
    @abstractmethod
    def indicators(self) -> np.ndarray:
        """Whether each draw has each line: 0 or 1, shape (chain, draw, line)."""

    @cached_property
    def frequency(self) -> np.ndarray:
        """Share of the draws that have each line."""
        return self.indicators.mean(axis=(0, 1))

    @abstractmethod
    def indicator_ess(self) -> np.ndarray:
        """Effective sample size of each indicator; NaN where it is undefined or not computed."""

    @abstractmethod
    def indicator_rhat(self) -> np.ndarray:
        """R-hat of each indicator; NaN where it is undefined or not computed."""

    # Probabilities

    @property
    @abstractmethod
    def prior(self) -> np.ndarray:
        """Prior probability of each line that the model implies."""

    @property
    def fixed(self) -> np.ndarray:
        """Lines that are in all graphs of the prior or in none, boolean."""
        return np.isin(self.prior, (0, 1))

    @property
    @abstractmethod
    def estimator(self) -> "Frequency":
        """How probabilities are estimated from these draws."""

    @cached_property
    def probabilities(self) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of presence and of absence of each line, each accurate near zero."""
        return self.estimator.probabilities()

    @property
    def probability(self) -> np.ndarray:
        """Probability of each line."""
        return self.probabilities[0]

    def bayes_factors(self, ess: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Bayes factor of each line, and which of them are bounds.

        Parameters
        ----------
        ess : ndarray, optional
            ``estimator.ess()``, if it is known.
        """
        from bayesstruct.graphs.posteriors.estimators import bayes_factors_of

        return bayes_factors_of(*self.probabilities, self.prior, self.estimator.floor(ess))

    @abstractmethod
    def matrix(self, values: np.ndarray) -> np.ndarray:
        """Spread values of lines, shape (..., n_lines), over matrices (..., p, p), zero elsewhere; rows of arcs are parents."""

    @abstractmethod
    def adjacencies(self) -> dict[str, np.ndarray]:
        """Pairs of variables that may be joined: ends, probabilities and Bayes factor.

        Returns
        -------
        dict of arrays
            ``source`` and ``target`` as positions, ``probability``, ``prior``, ``factor`` (NaN where nothing was
            tested), ``bound`` (whether the factor is no more than a bound).
        """

    # Graphs

    @abstractmethod
    def median_lines(self, threshold: float) -> np.ndarray:
        """Which lines are in the graph of the probable ones, boolean."""

    @abstractmethod
    def typical_lines(self) -> np.ndarray:
        """Lines of the graph from which distances of draws are taken by default, boolean."""

    @cached_property
    def distinct(self) -> "Distinct":
        """Distinct graphs as rows over lines, and how often each was drawn."""
        return distinct_rows(self.indicators.reshape(self.n_draws, -1).astype(bool))

    @abstractmethod
    def keys(self, rows: np.ndarray) -> list[str]:
        """Graphs, boolean rows over lines, as hexadecimal strings."""

    @abstractmethod
    def lines_of_key(self, key: str) -> np.ndarray:
        """Undo `keys`: the lines of one graph, boolean."""

    @abstractmethod
    def mean_weights(self, lines: np.ndarray) -> np.ndarray | None:
        """Posterior mean of the weights of some lines, by position; None if lines have none."""

    def graph(self, chosen: np.ndarray) -> "nx.Graph":
        """Graph on all variables with some of the lines, their probabilities and weights.

        Parameters
        ----------
        chosen : ndarray of bool, shape (n_lines,)

        Returns
        -------
        networkx.Graph or networkx.DiGraph
            Its attribute ``forest`` is true if all draws are trees or forests.
        """
        import networkx as nx

        graph = nx.DiGraph() if self.directed else nx.Graph()
        graph.add_nodes_from(self.variables)
        source, target = self.ends()
        lines = np.flatnonzero(chosen)
        weights = self.mean_weights(lines)
        for k, line in enumerate(lines):
            about = {"probability": float(self.probability[line])}
            if weights is not None:
                about["weight"] = float(weights[k])
            graph.add_edge(source[line], target[line], **about)
        if AcyclicEdges.is_in(self.constants):
            graph.graph["forest"] = True
        return graph

    # A known graph

    @abstractmethod
    def known_lines(self, truth) -> np.ndarray:
        """Lines of a known graph in any form that `truth` reads, boolean."""

    def labelled(self, truth) -> tuple[np.ndarray, np.ndarray]:
        """Whether each line is in a known graph, and its probability."""
        return self.known_lines(truth), self.probability

    def distance(self, graphs: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Distance of graphs (..., n_lines) to one graph, both boolean: lines that differ."""
        return (graphs != reference).sum(axis=-1)


@dataclass(frozen=True, eq=False)
class Distinct:
    """Distinct rows of a boolean matrix (n, m), most frequent first; ties as they first appear.

    Attributes
    ----------
    rows : ndarray of bool, shape (k, m)
    count : ndarray of int, shape (k,)
        How often each occurs.
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
    keys: np.ndarray
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
