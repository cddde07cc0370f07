"""Cholesky factors of matrices with the zeros of a graph: free elements are drawn, the others determined."""

import numpy as np

__all__ = ["complete_factors", "few_determined"]


def few_determined(adjacency: np.ndarray) -> np.ndarray:
    """Order of the nodes in which few elements of the Cholesky factor are determined by others: least degree first.

    Parameters
    ----------
    adjacency : (p, p) bool ndarray

    Returns
    -------
    (p,) int ndarray
    """
    filled, left, order = adjacency.copy(), np.ones(len(adjacency), bool), []
    while left.any():
        v = int(np.where(left, (filled & left).sum(axis=1), len(left)).argmin())
        left[v] = False
        order.append(v)
        near = np.flatnonzero(filled[v] & left)
        filled[np.ix_(near, near)] = True
        filled[near, near] = False
    return np.array(order)


def complete_factors(
    rng: np.random.Generator,
    adjacency: np.ndarray,
    freedom: np.ndarray,
    root: np.ndarray,
    draws: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the free elements of ``Psi`` and complete ``Phi = Psi T``, so that ``K = Phi' Phi`` has the zeros of a graph.

    Parameters
    ----------
    rng : numpy.random.Generator
    adjacency : (p, p) bool ndarray
    freedom : (p,) ndarray
        b plus the number of later neighbours of each node.
    root : (p, p) ndarray
        T, upper triangular; ``T' T`` is the inverse of the scale.
    draws : int

    Returns
    -------
    factors : (p, p, draws) ndarray
        Phi, upper triangular.
    log_weights : (draws,) ndarray
        Minus half the sum of squares of the determined elements of Psi: the log density of the G-Wishart distribution with
        respect to that of these draws, up to a constant.
    """
    p = len(root)
    phi, psi = np.zeros((p, p, draws)), np.zeros((p, p, draws))
    out = np.zeros(draws)
    for i in range(p):
        psi[i, i] = np.sqrt(rng.chisquare(freedom[i], draws))
        phi[i, i] = psi[i, i] * root[i, i]
        for j in range(i + 1, p):
            known = np.einsum("kd,k->d", psi[i, i:j], root[i:j, j])
            if adjacency[i, j]:
                psi[i, j] = rng.standard_normal(draws)
                phi[i, j] = known + psi[i, j] * root[j, j]
            else:
                phi[i, j] = -np.einsum("rd,rd->d", phi[:i, i], phi[:i, j]) / phi[i, i]
                psi[i, j] = (phi[i, j] - known) / root[j, j]
                out -= 0.5 * psi[i, j] ** 2
    return phi, out
