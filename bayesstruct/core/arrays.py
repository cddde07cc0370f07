"""Copies and entries of arrays in compiled functions.

An assignment to a slice brings NumPy's rules for shapes with it, which take seconds to compile.
"""

import numpy as np

from bayesstruct.core.jit import kernel

__all__ = ["copy_matrix", "copy_vector", "entries_at", "scaled_identity"]


@kernel
def copy_vector(target: np.ndarray, source: np.ndarray) -> None:
    """Copy a vector into the first elements of another one, which must be as long; nothing checks it."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@kernel
def copy_matrix(target: np.ndarray, source: np.ndarray) -> None:
    """Copy a matrix into the first rows and columns of another one, as large; nothing checks it."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@kernel
def entries_at(matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the entries of a matrix at these places, as a vector."""
    n, m = matrix.shape
    out = np.empty(rows.shape[0], matrix.dtype)
    for i in range(rows.shape[0]):
        if not (0 <= rows[i] < n and 0 <= columns[i] < m):
            raise IndexError("an entry is outside of the matrix")
        out[i] = matrix[rows[i], columns[i]]
    return out


@kernel
def scaled_identity(size: int, scale: float) -> np.ndarray:
    """Return a square matrix with this number on its diagonal and zeros elsewhere."""
    out = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            out[i, j] = scale if i == j else 0.0
    return out
