"""Columns that only one row has, and random orders, for the scans of latent features."""

import numpy as np

from bayesstruct.core.jit import numpy_inner

__all__ = ["own_last", "shuffle"]


@numpy_inner
def own_last(features: np.ndarray, weights: np.ndarray, sums: np.ndarray, used: int) -> int:
    """Put the columns that no other row has behind those that some other has, in place.

    Parameters
    ----------
    features : (n, K) array, changed
    weights : (K, d) array, changed
        Values that belong to each column of `features` and are moved with it.
    sums : int array, changed
        How many other rows have each column.
    used : int
        Columns that some row has; they come first.

    Returns
    -------
    int
        Number of columns that some other row has.
    """
    shared = used
    for a in range(used - 1, -1, -1):
        if sums[a] > 0:
            continue
        shared -= 1
        if a == shared:
            continue
        for j in range(weights.shape[1]):
            weights[a, j], weights[shared, j] = weights[shared, j], weights[a, j]
        for i in range(features.shape[0]):
            features[i, a], features[i, shared] = features[i, shared], features[i, a]
        sums[a], sums[shared] = sums[shared], sums[a]
    return shared


@numpy_inner
def shuffle(rng: np.random.Generator, order: np.ndarray, k: int) -> None:
    """Set the first k entries to the numbers from 0 to k - 1 in random order.

    Parameters
    ----------
    rng : numpy.random.Generator
    order : int array, changed
    k : int
    """
    for a in range(k):
        order[a] = a
    for a in range(k - 1, 0, -1):
        b = int(rng.random() * (a + 1))
        order[a], order[b] = order[b], order[a]
