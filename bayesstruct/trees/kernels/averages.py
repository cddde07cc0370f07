r"""Density of a row averaged over all trees, and of one empty value given the others.

.. math:: p(x \mid D) = \sum_T p(T \mid D) \, p(x \mid D, T)
    = \prod_i p(x_i \mid D) \, \frac{Z(w \circ r(x))}{Z(w)}

with the sum Z over all trees of products of weights: one sum a row (Meilă and Jaakkola 2006). An empty state is summed out, one
empty number integrated out, with such a sum for each value.
"""

import itertools

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.spanning_trees.sums import SpanningTrees, log_tree_sum
from bayesstruct.trees.kernels.densities import SmoothDensity

if TYPE_CHECKING:
    from bayesstruct.trees.kernels.predictive import NumberPairs, StatePairs

__all__ = ["complete_row", "empty_number", "empty_states"]

_CANDIDATES = 8  # neighbours that say where an empty number may be
_FARTHEST = 1e30  # of the other values, beyond which second moments have no precision
_IMPOSSIBLE = 1e-12  # probability of an edge that does not


def complete_row(trees: SpanningTrees, pairs: "NumberPairs | StatePairs", row: np.ndarray) -> float:
    """Log density of a row without empty values.

    Parameters
    ----------
    trees : SpanningTrees
        Their posterior.
    pairs : NumberPairs or StatePairs
    row : (p,) ndarray
        Standardised numbers, or states 0, 1, ...
    """
    logs = trees.log_weights + pairs.ratios(row)
    return float(pairs.single(row).sum()) + log_tree_sum(logs) - trees.log_total


def empty_states(
    trees: SpanningTrees, pairs: "StatePairs", codes: np.ndarray, empty: np.ndarray
) -> tuple[float, list[np.ndarray]]:
    """Sum out the empty values of a row of states.

    Parameters
    ----------
    trees : SpanningTrees
    pairs : StatePairs
    codes : (p,) ndarray of int
        Those of empty values are not used.
    empty : (m,) ndarray of int
        Columns with empty values, one or more.

    Returns
    -------
    log_probability : float
        Of the filled values.
    marginals : list of (states,) ndarray
        Probabilities of the states of each empty value given the filled ones.
    """
    sizes = pairs.states[empty].tolist()
    codes, logs = codes.copy(), np.empty(sizes)
    for filled in itertools.product(*map(range, sizes)):
        codes[empty] = filled
        logs[filled] = complete_row(trees, pairs, codes)
    top = logs.max()
    p = np.exp(logs - top)
    axes = range(len(sizes))
    marginals = [p.sum(axis=tuple(other for other in axes if other != own)) for own in axes]
    return float(top + np.log(p.sum())), [own / p.sum() for own in marginals]


def empty_number(
    trees: SpanningTrees, pairs: "NumberPairs", z: np.ndarray, k: int
) -> SmoothDensity:
    """Density of the filled values of a row of numbers together with each value of one empty column.

    Parameters
    ----------
    trees : SpanningTrees
    pairs : NumberPairs
    z : (p,) ndarray of float
        Standardised; entry k is not used.
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
    z = np.where(np.arange(len(z)) == k, pairs.center[k], z)
    if np.abs(z).max() > _FARTHEST:
        raise ArithmeticError("peaks are too far from each other")
    logs = trees.log_weights + pairs.ratios(z)
    single = pairs.single(z)
    rest = float(np.delete(single, k).sum()) - trees.log_total

    def log_density(values: np.ndarray) -> np.ndarray:
        own = pairs.single(np.where(np.arange(len(z)) == k, values[:, None], z))[:, k]
        edges = trees.log_weights[k] + pairs.ratios_of(k, values, z)
        edges[:, k] = -np.inf
        out = np.empty(len(values))
        for at, edge in enumerate(edges):
            logs[k] = logs[:, k] = edge
            out[at] = log_tree_sum(logs)
        return rest + own + out

    return SmoothDensity(log_density, *_places(trees, pairs, z, k))


def _places(trees, pairs, z, k) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Where the number may be given each of the likeliest neighbours, and alone; widths there; ends of all such places."""
    center, wide = pairs.given(k, z)
    center[k] = pairs.center[k]
    wide[k] = pairs.spread[k] / np.sqrt(pairs.freedom)
    probability = trees.probabilities[k].copy()
    probability[k] = 1.0
    chosen = np.argsort(probability)[::-1][:_CANDIDATES]
    possible = center[probability > _IMPOSSIBLE]
    return center[chosen], wide[chosen], (possible.min(), possible.max())
