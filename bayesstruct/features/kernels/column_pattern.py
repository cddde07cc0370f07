"""Sums, ranks among equals and order of the columns of a binary matrix."""

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = ["column_pattern"]


@kernel
def column_pattern(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
    """Describe the columns of a matrix.

    Parameters
    ----------
    matrix : (n, k) int

    Returns
    -------
    sums : (k,) float64
    rank : (k,) float64
        Columns up to each one, itself included, that are equal to it.
    ordered : () bool
        Whether all entries are 0 or 1 and no column is less than the next, as binary numbers.
    used : () int64
        Columns whose sum is above 0.
    """
    n, k = matrix.shape
    sums, rank = np.empty(k), np.empty(k)
    ordered, used = True, 0
    for a in range(k):
        sums[a] = 0.0
    for i in range(n):  # row by row, as the matrix is stored
        for a in range(k):
            sums[a] += matrix[i, a]
            ordered = ordered and matrix[i, a] in (0, 1)
    for a in range(k):
        rank[a] = 1.0
        if sums[a] == 0.0:
            rank[a] += a - used  # those without any row are equal
            continue
        used += sums[a] > 0.0
        for b in range(a):
            rank[a] += sums[b] == sums[a] and _first_difference(matrix, b, a) == 0
        ordered = ordered and (a == 0 or _first_difference(matrix, a - 1, a) >= 0)
    return sums, rank, np.asarray(ordered), np.asarray(used)


@inner
def _first_difference(matrix, a, b):
    """Difference of two columns in the first row in which they differ, 0 if they are equal."""
    for i in range(matrix.shape[0]):
        if matrix[i, a] != matrix[i, b]:
            return int(matrix[i, a]) - int(matrix[i, b])
    return 0
