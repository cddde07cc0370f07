"""Sizes and order of the clusters of a partition."""

import numpy as np

from bayesstruct.core.jit import kernel

__all__ = ["cluster_counts"]


@kernel
def cluster_counts(labels: np.ndarray, empty: np.ndarray) -> tuple[np.ndarray, ...]:
    """Count the objects of each cluster.

    Parameters
    ----------
    labels : (n,) int
    empty : (k,) float64
        Any values: k is the number of clusters.

    Returns
    -------
    counts : (k,) float64
    ordered : () bool
        Whether all labels are from 0 to k - 1, and each at most the number of different ones before it.
    used : () int64
        Clusters that have objects.
    """
    k = empty.shape[0]
    counts, ordered, used = np.empty(k), True, 0
    for c in range(k):
        counts[c] = 0.0
    for i in range(labels.shape[0]):
        c = labels[i]
        if c < 0 or c >= k:
            ordered = False
            continue
        if c > used:
            ordered = False
        used += counts[c] == 0.0
        counts[c] += 1.0
    return counts, np.asarray(ordered), np.asarray(used)
