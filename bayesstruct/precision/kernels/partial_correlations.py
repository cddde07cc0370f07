"""Partial correlations of a precision matrix."""

import math

import numpy as np

from bayesstruct.core.jit import numpy_kernel

__all__ = ["partial_correlations"]


@numpy_kernel
def partial_correlations(precision: np.ndarray) -> np.ndarray:
    r"""Return :math:`-k_{ij} / \sqrt{k_{ii} k_{jj}}` of the upper triangle, row by row.

    Parameters
    ----------
    precision : (p, p) float64
    """
    p = precision.shape[0]
    out = np.empty(p * (p - 1) // 2)
    place = 0
    for i in range(p):
        for j in range(i + 1, p):
            scale = math.sqrt(precision[i, i]) * math.sqrt(precision[j, j])
            out[place] = (0.0 - precision[i, j]) / scale  # no -0.0
            place += 1
    return out
