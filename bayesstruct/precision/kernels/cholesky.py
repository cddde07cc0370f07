"""Precision matrices as the unconstrained vectors of their default transform."""

import numpy as np

from scipy.linalg import lapack

__all__ = ["pack_cholesky", "unpack_cholesky"]


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
