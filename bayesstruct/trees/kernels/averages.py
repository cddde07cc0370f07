r"""Density of a row averaged over all trees or forests, and of empty values given the others.

.. math:: p(x \mid D) = \sum_T p(T \mid D) \, p(x \mid D, T)
    = \prod_i p(x_i \mid D) \; E \Bigl( \prod_{ij \in T} r_{ij}(x) \,\Big|\, D \Bigr)

where the mean is a ratio of two sums over all trees (Meilă and Jaakkola 2006), for forests of two integrals over the share of edges. Empty states are
summed out, one empty number integrated out, with such a sum for each value.
"""

import itertools

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.trees.kernels.densities import DensityMixture, SmoothDensity
from bayesstruct.trees.kernels.predictive import StatePairs

if TYPE_CHECKING:
    from bayesstruct.graphs.spanning_trees.forests import SharedForests
    from bayesstruct.graphs.spanning_trees.sums import SpanningTrees
    from bayesstruct.graphs.spanning_trees.two_kinds import TreesOfTwoKinds
    from bayesstruct.trees.kernels.predictive import MixedPairs, NumberPairs

    type Graphs = SpanningTrees | TreesOfTwoKinds | SharedForests
    type WithNumbers = NumberPairs | MixedPairs
    type Pairs = WithNumbers | StatePairs

__all__ = ["RowAverage", "complete_row", "empty_number", "empty_values"]

_CANDIDATES = 8  # neighbours that say where an empty number may be
_FARTHEST = 1e30  # of the other values, beyond which second moments have no precision
_IMPOSSIBLE = 1e-12  # probability of an edge that does not


@dataclass(frozen=True)
class RowAverage:
    """A row averaged over all graphs.

    Attributes
    ----------
    log_density : float
        Of the filled values.
    marginals : list of (states,) ndarray
        Probabilities of the states of each empty value given the filled ones.
    number : DensityMixture or None
        Density of the empty number, if there is one.
    """

    log_density: float
    marginals: list[np.ndarray]
    number: DensityMixture | None


def complete_row(graphs: "Graphs", pairs: "Pairs", row: np.ndarray) -> float:
    """Log density of a row without empty values.

    Parameters
    ----------
    graphs : SpanningTrees, TreesOfTwoKinds or SharedForests
        Their posterior.
    pairs : NumberPairs, StatePairs or MixedPairs
    row : (p,) ndarray
        Standardised numbers, and states 0, 1, ...
    """
    return float(pairs.single(row).sum()) + graphs.log_mean(pairs.ratios(row))


def empty_values(
    graphs: "Graphs", pairs: "Pairs", row: np.ndarray, states: np.ndarray, number: int | None
) -> RowAverage:
    """Sum out the empty states of a row, and integrate out an empty number.

    Parameters
    ----------
    graphs, pairs
        As of `complete_row`.
    row : (p,) ndarray
        What is at the places of empty values is not used, but it is a number.
    states : (m,) ndarray of int
        Columns of states with empty values, or none.
    number : int or None
        Column of numbers with an empty value.
    """
    sizes = [int(pairs.states[j]) for j in states]
    row, logs, densities = row.copy(), np.empty(sizes), []
    for filled in itertools.product(*map(range, sizes)):
        row[states] = filled
        if number is None:
            logs[filled] = complete_row(graphs, pairs, row)
        else:
            assert not isinstance(pairs, StatePairs)
            densities.append(empty_number(graphs, pairs, row, number))
            logs[filled] = densities[-1].log_total
    top = logs.max()
    p = np.exp(logs - top)
    axes = range(len(sizes))
    marginals = [p.sum(axis=tuple(other for other in axes if other != own)) for own in axes]
    return RowAverage(
        float(top + np.log(p.sum())),
        [own / p.sum() for own in marginals],
        DensityMixture(densities) if densities else None,
    )


def empty_number(graphs: "Graphs", pairs: "WithNumbers", row: np.ndarray, k: int) -> SmoothDensity:
    """Density of the filled values of a row together with each value of one empty column of numbers.

    Parameters
    ----------
    graphs, pairs
        As of `complete_row`.
    row : (p,) ndarray of float
        Entry k is not used, but it is a number.
    k : int
        The column.

    Returns
    -------
    SmoothDensity
        Of the value; its total is the density of the filled values.

    Raises
    ------
    ArithmeticError
        If other values of the row are so far outside of the table that the density cannot be integrated.
    """
    if np.abs(np.delete(row, k)).max() > _FARTHEST:
        raise ArithmeticError("peaks are too far from each other")
    factors = pairs.ratios(row)
    rest = float(np.delete(pairs.single(row), k).sum())

    def log_density(values: np.ndarray) -> np.ndarray:
        out = rest + pairs.single_of(k, values)
        for at, edges in enumerate(pairs.ratios_of(k, values, row)):
            factors[k] = factors[:, k] = edges
            out[at] += graphs.log_mean(factors)
        return out

    return SmoothDensity(log_density, *_places(graphs, pairs, row, k))


def _places(graphs, pairs, row, k) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Where the number may be given each of the likeliest neighbours, and alone; widths there; ends of all such places."""
    center, wide = pairs.given(k, row)
    probability = graphs.probabilities[k].copy()
    probability[k] = 1.0
    chosen = np.argsort(probability)[::-1][:_CANDIDATES]
    possible = center[probability > _IMPOSSIBLE]
    return center[chosen], wide[chosen], (possible.min(), possible.max())
