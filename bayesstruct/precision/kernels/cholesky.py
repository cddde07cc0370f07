"""Precision matrices as the unconstrained vectors of their default transform."""

import math

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
    factor = np.zeros((p, p))
    factor[np.tril_indices(p)] = vector
    diagonal = np.arange(p)
    factor[diagonal, diagonal] = np.exp(factor[diagonal, diagonal])
    inverse, _ = lapack.dpotri(factor, lower=1)
    lower = np.tril(inverse, -1)
    return factor @ factor.T, np.ascontiguousarray(lower + lower.T + np.diag(np.diag(inverse)))


def pack_cholesky(precision: np.ndarray) -> np.ndarray:
    """Return the unconstrained vector of a precision matrix."""
    factor = np.linalg.cholesky(precision)
    p = factor.shape[0]
    diagonal = np.arange(p)
    factor[diagonal, diagonal] = np.log(factor[diagonal, diagonal])
    return factor[np.tril_indices(p)]
