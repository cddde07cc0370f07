"""Penalties of a precision matrix whose neighbouring columns have equal elements, as parts of a splitting problem."""

import numpy as np

from bayesstruct.precision.solvers.splitting import Absolute

__all__ = ["Differences", "local_constancy"]

_ZERO = 1e-9  # level of tied elements, relative to the diagonal, that is zero but for rounding


class Differences:
    """Absolute differences between the elements of neighbouring columns, off the diagonal.

    Parameters
    ----------
    p : int
    pairs : (m, 2) numpy.ndarray of int
        Neighbours.
    rates : (m,) numpy.ndarray
        Rate of each pair of neighbours.
    """

    def __init__(self, p, pairs, rates):
        rows = np.repeat(pairs, p, axis=0)
        column = np.tile(np.arange(p), len(pairs))
        kept = (rows != column[:, None]).all(axis=1)
        self.shape, self.rates = (p, p), np.repeat(rates, p)[kept]
        self.first, self.second = (rows[kept].T * p + column[kept]).astype(int)

    def map(self, K):
        """Return the differences, those of a pair of neighbours next to each other."""
        flat = K.reshape(-1)
        return flat[self.first] - flat[self.second]

    def adjoint(self, Y):
        """Return the symmetric part of the transposed map."""
        size = self.shape[0] ** 2
        total = np.bincount(self.first, Y, size) - np.bincount(self.second, Y, size)
        total = total.reshape(self.shape)
        return 0.5 * (total + total.T)

    def prox(self, V, step):
        """Soft-threshold."""
        return np.sign(V) * np.maximum(np.abs(V) - step * self.rates, 0.0)

    def value(self, Z):
        """Return the sum of the absolute differences."""
        return float((self.rates * np.abs(Z)).sum())


def local_constancy(rates: np.ndarray, pairs: np.ndarray, differences: np.ndarray) -> tuple:
    """Penalties, average and candidate of a `Problem` with absolute elements and differences.

    Parameters
    ----------
    rates : (p, p) numpy.ndarray
        Rates of the absolute elements.
    pairs : (m, 2) numpy.ndarray of int
        Neighbours.
    differences : (m,) numpy.ndarray
        Rate of the absolute differences of each pair of neighbours.
    """
    from scipy.sparse import csr_matrix, identity
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import splu

    p = len(rates)
    apart = Differences(p, pairs, differences)
    upper = np.triu_indices(p, 1)
    place = np.zeros((p, p), int)
    place[upper] = place.T[upper] = np.arange(len(upper[0]))
    first, second = (place.reshape(-1)[index] for index in (apart.first, apart.second))
    at, count = np.arange(len(first)), len(upper[0])
    shape = len(first), count
    D = csr_matrix((np.ones(len(first)), (at, first)), shape) - csr_matrix(
        (np.ones(len(first)), (at, second)), shape
    )
    # Elements off the diagonal are in the two copies of the matrix twice, and in the differences.
    system = splu((4.0 * identity(count) + D.T @ D).tocsc())

    def average(K, Z, B):
        mean = 0.5 * (K + Z)
        X = np.diag(mean.diagonal())
        mean = 0.5 * (mean + mean.T)
        X[upper] = system.solve(4.0 * mean[upper] + D.T @ B)
        return np.triu(X, 1).T + X

    def candidate(X, points):
        Z, B = points
        tied = B == 0
        graph = csr_matrix((np.ones(tied.sum()), (first[tied], second[tied])), (count, count))
        labels = connected_components(graph, directed=False)[1]
        size = np.bincount(labels)
        level = np.bincount(labels, X[upper]) / size
        zero = np.bincount(labels, Z[upper] == 0) > 0.5 * size
        zero |= np.abs(level) < _ZERO * X.diagonal().min()
        level[zero] = 0.0
        K = np.diag(X.diagonal())
        K[upper] = level[labels]
        return np.triu(K, 1).T + K

    return [Absolute(rates), apart], average, candidate
