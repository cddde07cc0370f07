"""Sums over the transition probabilities of series among their behaviours."""

import math

import numpy as np

from bayesstruct.core.jit import kernel

__all__ = ["transition_sums"]

_TINY = 1e-300  # log of zero would turn a weight of zero into NaN


@kernel
def transition_sums(value: np.ndarray, feature: np.ndarray) -> tuple[np.ndarray, ...]:
    """Add up what the density of transition probabilities needs.

    Parameters
    ----------
    value : (n, k, k) float64
        Transition probabilities of each series.
    feature : (n, k) int
        Which behaviours each series has.

    Returns
    -------
    members : (n,) float64
        Behaviours of each series.
    stay : () float64
        Sum of the logarithms of the probabilities to stay in a behaviour.
    leave : () float64
        Sum of the logarithms of the probabilities to go to another behaviour.
    valid : () bool
        Whether rows are distributions over the behaviours that a series has, and zero for others.
    """
    n, k = feature.shape
    members, stay, leave, valid = np.empty(n), 0.0, 0.0, True
    for i in range(n):
        members[i] = 0.0
        for a in range(k):
            has = feature[i, a] > 0
            members[i] += has
            total = 0.0
            for b in range(k):
                p = value[i, a, b]
                total += p
                if not (has and feature[i, b] > 0):
                    valid = valid and p == 0.0
                    continue
                valid = valid and p >= 0.0
                if a == b:
                    stay += math.log(max(p, _TINY))
                else:
                    leave += math.log(max(p, _TINY))
            valid = valid and abs(total - has) < 1e-6
    return members, np.asarray(stay), np.asarray(leave), np.asarray(valid)
