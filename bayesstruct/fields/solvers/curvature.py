"""Second derivatives of Markov random fields at a mode, Newton steps and linear systems."""

import numpy as np

from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.solvers.hessian import PseudoHessian
from bayesstruct.fields.solvers.likelihoods import ExactLikelihood, PseudoLikelihood

__all__ = ["hessian", "penalty_curvature", "penalty_gradient", "polish", "solve_symmetric"]


def hessian(
    likelihood: ExactLikelihood | PseudoLikelihood,
    bias: np.ndarray,
    weight: np.ndarray,
    at: np.ndarray,
) -> np.ndarray:
    """Hessian of the negative log-likelihood in some of the parameters.

    Parameters
    ----------
    likelihood : ExactLikelihood or PseudoLikelihood
    bias, weight : numpy.ndarray
    at : (k,) array of int
        Positions among biases followed by weights, in increasing order.
    """
    if isinstance(likelihood, ExactLikelihood):  # along a sparse graph, where there may be one
        return _exact(likelihood, bias, weight, np.asarray(at))
    return PseudoHessian(likelihood)(bias, weight, at)


def _exact(likelihood, bias, weight, at):
    """Covariance of the sufficient statistics, times the number of rows."""
    potentials = likelihood.potentials
    unary, pair = potentials.unary(bias), potentials.pair(weight)
    out = np.empty((len(at), len(at)))
    for column, position in enumerate(at):
        e = np.zeros(potentials.bias_size + potentials.weight_size)
        e[position] = 1.0
        directions = (
            potentials.unary(e[: potentials.bias_size]),
            potentials.pair(e[potentials.bias_size :]),
        )
        of_unary, of_pair = likelihood.sums.covariance_product(unary, pair, *directions)
        product = [potentials.unary_pullback(of_unary), potentials.pair_pullback(of_pair)]
        out[:, column] = likelihood.n * np.concatenate(product)[at]
    return 0.5 * (out + out.T)


def penalty_gradient(potentials: Potentials, norm: float | str, weight: np.ndarray) -> np.ndarray:
    """Gradient of the sum of the norms of the edges; zero for edges that are zero.

    Parameters
    ----------
    potentials : Potentials
    norm : {1, 2}
    weight : numpy.ndarray
    """
    if norm == 1:
        return np.sign(weight)
    size = np.sqrt(np.add.reduceat(weight**2, potentials.weight_start[:-1]))
    return weight / np.where(size > 0, size, 1.0)[potentials.edge_of_weight]


def penalty_curvature(
    potentials: Potentials, norm: float | str, weight: np.ndarray, at: np.ndarray
) -> np.ndarray:
    """Hessian of the sum of the norms of the active edges, in the weights `at`."""
    out = np.zeros((len(at), len(at)))
    if norm == 1:
        return out
    edge = potentials.edge_of_weight[at]
    for e in np.unique(edge):
        own = np.flatnonzero(edge == e)
        w = weight[at[own]]
        size = np.linalg.norm(w)
        out[np.ix_(own, own)] = np.eye(len(w)) / size - np.outer(w, w) / size**3
    return out


def solve_symmetric(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Solve on the range of a positive semidefinite matrix: no step in directions without curvature."""
    values, vectors = np.linalg.eigh(matrix)
    known = values > 1e-10 * values.max(initial=1e-300)
    return vectors[:, known] @ ((vectors[:, known].T @ vector) / values[known])


def polish(
    likelihood: ExactLikelihood | PseudoLikelihood,
    norm: float | str,
    rate: float,
    bias: np.ndarray,
    weight: np.ndarray,
    steps: int = 5,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Newton steps on the active set, down to rounding.

    Returns
    -------
    bias, weight : numpy.ndarray
    at : numpy.ndarray of int
        Active parameters, among biases followed by weights.
    matrix : numpy.ndarray
        Hessian of the objective in them.
    """
    potentials, first = likelihood.potentials, len(bias)
    on = weight != 0 if norm == 1 else _of_active_edges(potentials, weight)
    at = np.concatenate([np.arange(first), first + np.flatnonzero(on)])
    theta = np.concatenate([bias, weight])
    for step in range(steps + 1):
        b, w = theta[:first], theta[first:]
        matrix = hessian(likelihood, b, w, at)
        inside = slice(first, None)
        matrix[inside, inside] += rate * penalty_curvature(potentials, norm, w, at[first:] - first)
        if step == steps:
            break
        gradient = likelihood(theta)[1]
        gradient[first:] += rate * penalty_gradient(potentials, norm, w)
        moved = theta.copy()
        moved[at] -= solve_symmetric(matrix, gradient[at])
        if norm == 1 and (np.sign(moved[first:]) != np.sign(w)).any():
            break  # a coefficient about to become zero
        theta = moved
    return theta[:first], theta[first:], at, matrix


def _of_active_edges(potentials, weight):
    active = np.logical_or.reduceat(weight != 0, potentials.weight_start[:-1])
    return active[potentials.edge_of_weight]
