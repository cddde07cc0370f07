"""Second derivatives of Markov random fields at a mode, and what follows from them."""

import numpy as np

from bayesstruct.solvers.pairwise_likelihoods import ExactLikelihood

__all__ = ["hessian", "penalty_curvature", "penalty_gradient", "polish", "solve_symmetric"]


def hessian(likelihood, bias, weight, at) -> np.ndarray:
    """Hessian of the negative log-likelihood in some of the parameters.

    Parameters
    ----------
    likelihood : ExactLikelihood or PseudoLikelihood
    bias, weight : numpy.ndarray
    at : (k,) array of int
        Positions among biases followed by weights.
    """
    kind = _exact if isinstance(likelihood, ExactLikelihood) else _pseudo
    return kind(likelihood, bias, weight, np.asarray(at))


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


def _pseudo(likelihood, bias, weight, at):
    """Sum of the covariances of the logistic regressions, one for each variable."""
    potentials = likelihood.potentials
    out = np.zeros((len(at), len(at)))
    unary, pair = potentials.unary(bias), potentials.pair(weight)
    for i in range(potentials.p):
        design, logits = _regression(likelihood, i, at, unary, pair)
        shares = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        centred = design - np.einsum("mk,mka->ma", shares, design)[:, None, :]
        weighted = centred * (likelihood.counts[:, None] * shares)[:, :, None]
        out += np.tensordot(weighted, centred, axes=([0, 1], [0, 1]))
    return out


def _regression(likelihood, i, at, unary, pair):
    """Logits of a variable, and before them their derivatives, (rows, states, parameters)."""
    potentials, codes = likelihood.potentials, likelihood.codes
    k, start = potentials.states[i], potentials.unary_start[i]
    size = potentials.bias_size + potentials.weight_size
    place = np.full(size, -1)
    place[at] = np.arange(len(at))
    design = np.zeros((len(codes), k, len(at) + 1))  # the last one takes what is not asked for
    logits = np.tile(unary[start : start + k], (len(codes), 1))
    index, coefficient = potentials.unary_map
    for s in range(k):
        for b, c in zip(index[start + s], coefficient[start + s], strict=True):
            design[:, s, place[b]] += c
    index, coefficient = potentials.pair_map
    rows = np.arange(len(codes))
    for e, (a, b) in enumerate(zip(*potentials.ends, strict=True)):
        if i not in (a, b):
            continue
        other = codes[:, b if i == a else a]
        for s in range(k):
            inside = (
                s * potentials.states[b] + other if i == a else other * potentials.states[b] + s
            )
            cell = potentials.pair_start[e] + inside
            logits[:, s] += pair[cell]
            columns = place[potentials.bias_size + index[cell]]
            np.add.at(design, (rows, s, columns), coefficient[cell])
    return design[:, :, :-1], logits


def penalty_gradient(potentials, norm, weight) -> np.ndarray:
    """Gradient of the sum of the norms of the edges, zero where an edge is.

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


def penalty_curvature(potentials, norm, weight, at) -> np.ndarray:
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


def solve_symmetric(matrix, vector) -> np.ndarray:
    """Solve on the range of a positive semidefinite matrix: directions of no curvature stay put."""
    values, vectors = np.linalg.eigh(matrix)
    known = values > 1e-10 * values.max(initial=1e-300)
    return vectors[:, known] @ ((vectors[:, known].T @ vector) / values[known])


def polish(likelihood, norm, rate, bias, weight, steps=5):
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
            break  # a coefficient on the verge of leaving
        theta = moved
    return theta[:first], theta[first:], at, matrix


def _of_active_edges(potentials, weight):
    active = np.logical_or.reduceat(weight != 0, potentials.weight_start[:-1])
    return active[potentials.edge_of_weight]
