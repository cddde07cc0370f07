r"""Information distances of columns: sums along the paths of a tree whose nodes all are of one kind.

Normal columns have :math:`d_{ij} = -\log |\rho_{ij}|`. Columns of K states have

.. math:: d_{ij} = -\log \frac{|\det J_{ij}|}{\sqrt{\det M_i \det M_j}}

with the joint probabilities J and the diagonal matrices M of those of each alone, and :math:`-(K - 1) \log(1 - K \theta_{ij})` if all states are
equally probable and each other state of a neighbour is too; they differ with probability :math:`(K - 1) \theta_{ij}`.
"""

import numpy as np

from bayesstruct.data.table import near_one
from bayesstruct.networks.kernels.scores.pair_counts import pair_counts, single_counts
from bayesstruct.trees.kernels.grouping import Noise

__all__ = [
    "correlations",
    "distance_noise",
    "log_deviations",
    "normal_distances",
    "state_distances",
    "symmetric_distances",
]


def correlations(values: np.ndarray) -> np.ndarray:
    """Return the correlations of columns of numbers of any size, (m, m).

    Parameters
    ----------
    values : (n, m) ndarray
    """
    return np.corrcoef(near_one(values)[0], rowvar=False)


def log_deviations(values: np.ndarray) -> np.ndarray:
    """Return the logarithms of the standard deviations (divisor n) of columns of numbers of any size, (m,).

    Parameters
    ----------
    values : (n, m) ndarray
    """
    scaled, powers = near_one(values)
    return np.log(scaled.std(axis=0)) + np.log(2.0) * powers


def normal_distances(values: np.ndarray) -> np.ndarray:
    """Return distances of columns of numbers, (m, m); at most log(n).

    Parameters
    ----------
    values : (n, m) ndarray
    """
    return _logs(np.abs(correlations(values)), len(values), 1)


def state_distances(codes: np.ndarray, k: int) -> np.ndarray:
    """Return distances of columns of k states by determinants, (m, m); at most (k - 1) log(n).

    Parameters
    ----------
    codes : (n, m) ndarray of int
    k : int
    """
    n, m = codes.shape
    states = np.full(m, k)
    x, weights = np.ascontiguousarray(codes.T), np.ones(n, np.int64)
    single = single_counts(x, weights, states)
    root = np.sqrt(single.reshape(m, k) / n).prod(axis=1)
    out = np.empty((m, m))
    for some, counts in pair_counts(x, weights, states, np.arange(m), single):
        joint = counts.reshape(len(some), k, m, k).transpose(0, 2, 1, 3) / n
        out[some] = np.abs(np.linalg.det(joint)) / (root[some][:, None] * root)
    return _logs(out, n, k - 1)


def symmetric_distances(codes: np.ndarray, k: int) -> np.ndarray:
    """Return distances of columns of k states from how often they differ, (m, m); at most (k - 1) log(n).

    Parameters
    ----------
    codes : (n, m) ndarray of int
    k : int
    """
    member = (codes[:, :, None] == np.arange(k)).reshape(len(codes), -1).astype(float)
    same = np.zeros((codes.shape[1],) * 2)
    for state in range(k):
        own = member[:, state::k]
        same += own.T @ own
    theta = (1.0 - same / len(codes)) / (k - 1)
    return (k - 1) * _logs(np.abs(1.0 - k * theta), len(codes), 1)


def _logs(x, n, most) -> np.ndarray:
    """Return negative logarithms between 0 and `most` log(n), 0 on the diagonal."""
    out = -np.log(np.clip(x, float(n) ** -most, 1.0))
    np.fill_diagonal(out, 0.0)
    return out


def distance_noise(n: int, k: int, symmetric: bool = False) -> Noise:
    """Return variances of estimated distances by the delta method.

    Parameters
    ----------
    n : int
        Number of rows.
    k : int
        Number of states, 0 for numbers.
    symmetric : bool
        Whether distances are those of `symmetric_distances`.
    """
    if not k:
        return Noise(lambda d: (np.exp(d) - np.exp(-d)) ** 2 / n)
    if not symmetric:
        # As if all k - 1 canonical correlations were the same.
        return Noise(lambda d: (k - 1) * np.expm1(2.0 * d / (k - 1)) / n)

    def variance(d):
        kept = np.exp(-d / (k - 1))
        differ = (k - 1) * (1.0 - kept) / k
        return (k / kept) ** 2 * differ * (1.0 - differ) / n

    return Noise(variance)
