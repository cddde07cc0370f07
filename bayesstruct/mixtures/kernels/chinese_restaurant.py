r"""Chinese restaurant processes: their distribution over partitions, and draws from it.

A partition of n objects is written as labels in the order of their appearance: the first object has label
0, and an object that begins a cluster has the number of clusters before it. With mass :math:`\alpha`, object
i (from 0) joins a cluster of m earlier objects with probability :math:`m / (i + \alpha)` and begins one with
:math:`\alpha / (i + \alpha)`, hence

.. math::

    p(c) = \alpha^K \frac{\Gamma(\alpha)}{\Gamma(n + \alpha)} \prod_k (m_k - 1)!,

whatever the order of the objects.

References
----------
Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review. *JMLR*
12, 1185-1224, equations 5 and 7.
"""

import math

import numpy as np

from scipy.special import gammaln

from bayesstruct.core.jit import kernel

__all__ = [
    "check_mass",
    "draw_labels",
    "log_restaurant",
    "mean_clusters",
    "relabel",
]


def check_mass(alpha: float) -> None:
    """Refuse a mass for which there is no such process.

    Raises
    ------
    ValueError
    """
    if not (np.isfinite(alpha) and alpha > 0.0):
        raise ValueError(f"`alpha` of a ChineseRestaurant must be finite and above 0, not {alpha}")


def log_restaurant(counts: np.ndarray, alpha: float) -> float:
    """Log probability of a partition with clusters of these sizes.

    Parameters
    ----------
    counts : (K,) array_like of int
        Sizes, all above 0.
    alpha : float
    """
    counts = np.asarray(counts)
    n = counts.sum()
    return float(
        len(counts) * math.log(alpha) + gammaln(counts).sum() + gammaln(alpha) - gammaln(n + alpha)
    )


def mean_clusters(n: int, alpha: float) -> float:
    """Mean number of clusters of n objects."""
    return float((alpha / (alpha + np.arange(n))).sum())


def draw_labels(rng: np.random.Generator, n: int, alpha: float) -> np.ndarray:
    """Draw a partition of n objects, as labels in the order of their appearance.

    Joining a cluster in proportion to its size is the same as following an earlier object chosen uniformly.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
    alpha : float

    Returns
    -------
    (n,) int64 array
    """
    before = np.arange(n)
    begins = rng.random(n) * (alpha + before) < alpha
    followed = (rng.random(n) * before).astype(np.int64)
    labels, used = np.zeros(n, np.int64), 1
    for i in range(1, n):
        if begins[i]:
            labels[i] = used
            used += 1
        else:
            labels[i] = labels[followed[i]]
    return labels


@kernel
def relabel(labels: np.ndarray, names: np.ndarray) -> int:
    """Rename clusters in the order of their appearance, in place.

    Parameters
    ----------
    labels : (n,) int64, changed
    names : (K,) int64, changed
        Returned with the new name of each old one, -1 for empty clusters.

    Returns
    -------
    int
        Number of clusters.
    """
    names[:] = -1
    used = 0
    for i in range(labels.shape[0]):
        if names[labels[i]] < 0:
            names[labels[i]] = used
            used += 1
        labels[i] = names[labels[i]]
    return used
