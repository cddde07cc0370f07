"""Passes over the rows of a table that assign binary features by least squares."""

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import numpy_kernel

__all__ = ["assign_rows"]


@numpy_kernel
def assign_rows(
    features: np.ndarray,
    used: int,
    loadings: np.ndarray,
    x: np.ndarray,
    penalty: float,
    rows: np.ndarray,
) -> tuple[int, int]:
    """Flip entries that lower the squared residual; give rows that stay badly explained a feature.

    Parameters
    ----------
    features : (n, K) int8, changed
        Only the first `used` columns have ones.
    used : int
    loadings : (K, d) float64, changed
        Those of new features are set to the residuals of their first row.
    x : (n, d) float64
    penalty : float
        Squared residual of a row above which it gets a feature of its own, up to the maximum number of features.
    rows : int64 array
        Rows in the order in which they are visited.

    Returns
    -------
    int and int
        Number of columns that are used afterwards, and of entries that have changed.
    """
    most, d = loadings.shape
    left = np.empty(d)
    k, changes = used, 0
    for i in rows:
        z = features[i]
        copy_vector(left, x[i])
        for a in range(k):
            if z[a]:
                for j in range(d):
                    left[j] -= loadings[a, j]
        moved = True
        while moved:
            moved = False
            for a in range(k):
                sign = -1.0 if z[a] else 1.0
                product, length, square = 0.0, 0.0, 0.0
                for j in range(d):
                    product += left[j] * loadings[a, j]
                    length += loadings[a, j] * loadings[a, j]
                    square += left[j] * left[j]
                # Rounding errors, relative to the residual of the row, must not flip an entry back and forth.
                if length - 2.0 * sign * product < -1e-12 * (length + square):
                    z[a] = 1 - z[a]
                    for j in range(d):
                        left[j] -= sign * loadings[a, j]
                    moved = True
                    changes += 1
        square = 0.0
        for j in range(d):
            square += left[j] * left[j]
        if square > penalty and k < most:
            features[:, k] = 0
            z[k] = 1
            loadings[k] = left
            k += 1
            changes += 1
    return k, changes
