"""Trees as 0/1 vectors over the pairs of nodes, row by row of the upper triangle, and such vectors as matrices."""

import math

import numpy as np

from bayesstruct.graphs.spanning_trees.sums import rooted_forest

__all__ = [
    "indicators",
    "is_forest",
    "is_spanning_tree",
    "lines_of",
    "node_count",
    "pair_matrix",
    "pair_values",
]


def node_count(pairs: int) -> int:
    """Return the number of nodes of a vector over their pairs.

    Raises
    ------
    ValueError
        If no number of nodes has so many pairs.
    """
    n = (1 + math.isqrt(1 + 8 * pairs)) // 2
    if n * (n - 1) // 2 != pairs:
        near = f"{n} nodes have {n * (n - 1) // 2} pairs and {n + 1} have {n * (n + 1) // 2}"
        raise ValueError(f"a vector over pairs of nodes cannot have length {pairs}: {near}")
    return n


def pair_matrix(values: np.ndarray, diagonal: float = 0.0) -> np.ndarray:
    """Symmetric (n, n) matrix of a (pairs,) vector."""
    n = node_count(len(values))
    matrix = np.full((n, n), diagonal, float)
    first, second = np.triu_indices(n, 1)
    matrix[first, second] = matrix[second, first] = values
    return matrix


def pair_values(matrix: np.ndarray) -> np.ndarray:
    """Upper triangle of a (n, n) matrix, row by row, as a (pairs,) vector."""
    return matrix[np.triu_indices(len(matrix), 1)]


def indicators(lines: np.ndarray, n: int) -> np.ndarray:
    """0/1 vectors of trees.

    Parameters
    ----------
    lines : (..., lines, 2) ndarray of int
        Ends in increasing order.
    n : int
        Number of nodes.

    Returns
    -------
    (..., pairs) ndarray of int8
    """
    out = np.zeros((*lines.shape[:-2], n * (n - 1) // 2), np.int8)
    first, second = lines[..., 0], lines[..., 1]
    np.put_along_axis(out, first * (2 * n - first - 1) // 2 + second - first - 1, 1, axis=-1)
    return out


def lines_of(indicator: np.ndarray) -> np.ndarray:
    """Lines, (lines, 2), of a (pairs,) vector that is not zero where there is one."""
    n = node_count(len(indicator))
    return np.transpose(np.triu_indices(n, 1))[np.asarray(indicator) != 0]


def is_spanning_tree(indicator: np.ndarray) -> bool:
    """Whether a (pairs,) vector is that of a tree that joins all nodes."""
    indicator = np.asarray(indicator)
    binary = ((indicator == 0) | (indicator == 1)).all()
    n = node_count(len(indicator))
    if not binary or indicator.sum() != n - 1:
        return False
    return bool((rooted_forest(lines_of(indicator), n) < 0).sum() == 1)


def is_forest(indicator: np.ndarray) -> bool:
    """Whether a (pairs,) vector is that of a graph without cycles."""
    indicator = np.asarray(indicator)
    if not ((indicator == 0) | (indicator == 1)).all():
        return False
    n = node_count(len(indicator))
    return bool((rooted_forest(lines_of(indicator), n) >= 0).sum() == indicator.sum())
