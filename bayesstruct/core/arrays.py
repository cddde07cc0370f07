"""Copies of arrays in compiled functions.

An assignment to a slice brings NumPy's rules for shapes with it, which take seconds to compile.
"""

import numpy as np

from bayesstruct.core.jit import kernel

__all__ = ["copy_matrix", "copy_vector"]


@kernel
def copy_vector(target: np.ndarray, source: np.ndarray) -> None:
    """Copy a vector into the first elements of another one."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@kernel
def copy_matrix(target: np.ndarray, source: np.ndarray) -> None:
    """Copy a matrix into the first rows and columns of another one."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]
