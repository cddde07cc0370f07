"""The horseshoe density of the elements of an array."""

import numpy as np

from bayesstruct.core.jit import kernel
from bayesstruct.core.special import log_scaled_exp_integral

__all__ = ["log_scaled_exp_integrals"]


@kernel
def log_scaled_exp_integrals(z: np.ndarray) -> np.ndarray:
    """Logarithm of ``exp(z) E1(z)`` of each element of a matrix of positive numbers."""
    out = np.empty_like(z)
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            out[i, j] = log_scaled_exp_integral(z[i, j])
    return out
