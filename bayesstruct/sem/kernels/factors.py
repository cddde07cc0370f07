"""Triangular factors of small positive definite matrices."""

import math

from bayesstruct.core.jit import kernel, vector_inner

__all__ = ["dot", "factorize", "solve_lower", "solve_upper"]


@kernel
def factorize(a, floor):
    """Replace the lower triangle of a symmetric matrix by its Cholesky factor.

    Parameters
    ----------
    a : (m, m) float array
        Changed in place; the upper triangle is not read.
    floor : float
        Least share of a diagonal entry that is kept of it.

    Returns
    -------
    bool
        Whether the matrix is positive definite; if not, small pivots were raised.
    """
    fine = True
    for i in range(len(a)):
        for j in range(i):
            total = a[i, j]
            for m in range(j):
                total -= a[i, m] * a[j, m]
            a[i, j] = total / a[j, j]
        least = floor * max(abs(a[i, i]), 1e-8)
        total = a[i, i]
        for m in range(i):
            total -= a[i, m] * a[i, m]
        if not total > least:
            fine, total = False, least
        a[i, i] = math.sqrt(total)
    return fine


@vector_inner
def solve_lower(a, x):
    """Solve with the factor, in place."""
    for i in range(len(x)):
        for m in range(i):
            x[i] -= a[i, m] * x[m]
        x[i] /= a[i, i]


@vector_inner
def solve_upper(a, x):
    """Solve with the transposed factor, in place."""
    for i in range(len(x) - 1, -1, -1):
        for m in range(i + 1, len(x)):
            x[i] -= a[m, i] * x[m]
        x[i] /= a[i, i]


@vector_inner
def dot(x, y):
    """Sum of products."""
    total = 0.0
    for r in range(len(x)):
        total += x[r] * y[r]
    return total
