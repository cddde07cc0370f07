"""Precision matrices as the unconstrained vectors of their default transform."""

import math

from functools import lru_cache

import numpy as np

from scipy.linalg import lapack

from bayesstruct.core.jit import kernel

__all__ = ["fill_lower", "pack_cholesky", "unpack_cholesky"]


@kernel
def fill_lower(packed: np.ndarray, p: int) -> np.ndarray:
    """Lower triangular (p, p) matrix from its rows, one after the other, the diagonal as logarithms."""
    if packed.shape[0] != p * (p + 1) // 2:
        raise ValueError("the vector of a precision matrix has another length than p (p + 1) / 2")
    lower = np.zeros((p, p))
    at = 0
    for i in range(p):
        for j in range(i):
            lower[i, j] = packed[at]
            at += 1
        lower[i, i] = math.exp(packed[at])
        at += 1
    return lower


def unpack_cholesky(vector: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the (p, p) matrix of a vector, and its inverse."""
    factor, (places, diagonal) = np.zeros((p, p)), _places(p)
    flat = factor.reshape(-1)
    flat[places] = vector
    flat[diagonal] = np.exp(flat[diagonal])
    inverse, _ = lapack.dpotri(factor, lower=1)  # which leaves the zeros above the diagonal
    full = np.ascontiguousarray(inverse + inverse.T)
    full.reshape(-1)[diagonal] = np.diag(inverse)
    return factor @ factor.T, full


def pack_cholesky(precision: np.ndarray) -> np.ndarray:
    """Return the unconstrained vector of a precision matrix."""
    factor = np.linalg.cholesky(precision)
    places, diagonal = _places(factor.shape[0])
    flat = factor.reshape(-1)
    flat[diagonal] = np.log(flat[diagonal])
    return flat[places]


@lru_cache(maxsize=16)
def _places(p: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the lower triangle, row by row, and of the diagonal in a flat (p, p) matrix."""
    rows, columns = np.tril_indices(p)
    return rows * p + columns, np.arange(p) * (p + 1)
