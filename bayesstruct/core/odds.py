"""Log odds of the slab of a spike-and-slab prior; readers use it without Numba."""

import numpy as np

__all__ = ["slab_log_odds"]


def slab_log_odds(value, prior_log_odds, spike, slab):
    """Log odds that a number is from the slab and not from the spike, both centred normals.

    For numbers, NumPy arrays and tensors; Numba compiles it.

    Parameters
    ----------
    value : float or array_like
    prior_log_odds : float or array_like
        Minus and plus infinity exclude one of the two.
    spike, slab : float
        Standard deviations.
    """
    fit = 0.5 * value * value * (1.0 / (spike * spike) - 1.0 / (slab * slab))
    return prior_log_odds + fit + np.log(spike / slab)
