"""What the scans of latent features share: the columns that only one row has."""

import numba

__all__ = ["own_last"]


@numba.njit(
    cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy"
)
def own_last(features, weights, sums, used):
    """Put the columns that no other row has behind those that some other has, in place.

    Parameters
    ----------
    features : (n, K) array, changed
    weights : (K, d) array, changed
        What belongs to each column of `features`, moved with it.
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
