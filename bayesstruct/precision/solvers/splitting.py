r"""Precision matrices under convex penalties of their elements, by operator splitting with a certificate.

.. math:: \min_{K \succ 0} \; -\log\det K + \operatorname{tr} S K + \sum_t P_t(B_t K)

Each penalty is the sum of norms of a linear map of K whose proximal map is known. The alternating direction method of multipliers
(Boyd et al. 2011) splits this into eigenvalues, proximal maps and one linear system for the matrix X that all copies
agree on. Every proximal map returns, with its point, an exact subgradient :math:`Y_t` of :math:`P_t`, so that
:math:`\Theta = S + \sum_t B_t' Y_t` is dual feasible as soon as it is positive definite, and for any K

.. math:: -\log\det K + \operatorname{tr} S K + \sum_t P_t(B_t K) - \log\det \Theta - p

bounds the distance to the minimum. The bound is of second order in the error where K has the zeros and ties of the solution:
`candidate` of the problem gives them to X.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bayesstruct.precision.solvers.faces import groups_of, tied_elements
from bayesstruct.sparse.penalties.norms import Maximum

__all__ = [
    "Absolute",
    "GroupedEntries",
    "Penalty",
    "Problem",
    "average_of_entries",
    "minimise",
    "minus_log_det",
]

_RELAXATION = 1.6
_CHECK_EVERY = 10
# The weight of the coupling follows the residuals, less and less often, so that it settles.
_BALANCE = 4.0


class Penalty(Protocol):
    """The sum of norms of a linear map of a symmetric matrix."""

    def map(self, K: np.ndarray) -> np.ndarray:
        """Return ``B K``."""

    def adjoint(self, Y: np.ndarray) -> np.ndarray:
        """Return the symmetric matrix ``B' Y``."""

    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        """Minimise ``|Z - V|^2 / 2 + step P(Z)``."""

    def value(self, Z: np.ndarray) -> float:
        """Return ``P(Z)``."""


@dataclass(frozen=True)
class Problem:
    """A problem for `minimise`.

    Attributes
    ----------
    S : (p, p) numpy.ndarray
        Covariance matrix, with a linear penalty of the diagonal added to its own.
    penalties : sequence of Penalty
        The first one of the elements themselves.
    average : callable
        Of a symmetric matrix and one array for each penalty: the symmetric X nearest to all, the latter through the maps.
    candidate : callable
        Of X and the points of the proximal maps: a symmetric matrix near X with the zeros and ties of these points.
    """

    S: np.ndarray
    penalties: Sequence[Penalty]
    average: Callable[..., np.ndarray]
    candidate: Callable[..., np.ndarray]

    def value(self, K: np.ndarray) -> float:
        """Objective; infinite where K is not positive definite."""
        parts = (penalty.value(penalty.map(K)) for penalty in self.penalties)
        return minus_log_det(K) + float(np.sum(self.S * K)) + sum(parts)


def minimise(
    problem: Problem, start: np.ndarray | None, tol: float, max_iter: int
) -> tuple[np.ndarray, float, int]:
    """Minimise the objective of a problem.

    Parameters
    ----------
    problem : Problem
    start : (p, p) numpy.ndarray, optional
        Positive definite.
    tol : float
        Stop when the gap is at most this.
    max_iter : int
        Maximum number of iterations.

    Returns
    -------
    precision : (p, p) numpy.ndarray
    gap : float
        Certified bound on the distance to the minimum.
    iterations : int
    """
    S, penalties = problem.S, problem.penalties
    p = len(S)
    X = np.diag(1.0 / S.diagonal()) if start is None else start.copy()
    mapped = [penalty.map(X) for penalty in penalties]
    U: list[Any] = [np.zeros_like(X), *(np.zeros_like(m) for m in mapped)]
    if start is not None:  # the multipliers of a solution: its residual, all from the first penalty
        U[0] = np.linalg.inv(X) - S
        U[1] = -U[0]
    weight, wait, next_balance = 1.0, 1, 1
    best, primal, dual = X, problem.value(X), -np.inf
    for iteration in range(1, max_iter + 1):
        K = _eigenvalue_prox(S, X - U[0], weight)
        points = [
            z.prox(m - u, 1.0 / weight) for z, m, u in zip(penalties, mapped, U[1:], strict=True)
        ]
        if iteration % _CHECK_EVERY == 0 or iteration == 1:
            slopes = [weight * (m - u - z) for m, u, z in zip(mapped, U[1:], points, strict=True)]
            theta = S + sum(z.adjoint(y) for z, y in zip(penalties, slopes, strict=True))
            dual = max(dual, p - minus_log_det(theta))
            K_new = problem.candidate(X, points)
            value = problem.value(K_new)
            if value < primal:
                best, primal = K_new, value
            if primal - dual <= tol:
                break
        old = [X, *mapped]
        relaxed = [
            _RELAXATION * new + (1.0 - _RELAXATION) * o
            for new, o in zip([K, *points], old, strict=True)
        ]
        X = problem.average(*(r + u for r, u in zip(relaxed, U, strict=True)))
        mapped = [penalty.map(X) for penalty in penalties]
        now = [X, *mapped]
        U = [u + r - x for u, r, x in zip(U, relaxed, now, strict=True)]
        if iteration == next_balance:
            apart = _size([a - b for a, b in zip([K, *points], now, strict=True)])
            moved = weight * _size([a - b for a, b in zip(now, old, strict=True)])
            factor = 2.0 if apart > _BALANCE * moved else 0.5 if moved > _BALANCE * apart else 1.0
            weight *= factor
            U = [u / factor for u in U]
            wait += 1
            next_balance += wait
    return best, max(primal - dual, 0.0), iteration


def minus_log_det(K: np.ndarray) -> float:
    """Return ``-log det K``; infinite where K is not positive definite."""
    try:
        return -2.0 * float(np.log(np.linalg.cholesky(K).diagonal()).sum())
    except np.linalg.LinAlgError:
        return np.inf


def _eigenvalue_prox(S, M, weight):
    """Minimise ``-log det K + tr S K + weight |K - M|^2 / 2``."""
    values, vectors = np.linalg.eigh(weight * M - S)
    root = np.sqrt(values**2 + 4.0 * weight)
    # The form without cancellation for either sign.
    roots = np.where(values > 0, (values + root) / (2.0 * weight), 2.0 / (root - values))
    return (vectors * roots) @ vectors.T


def _size(arrays):
    return float(np.sqrt(sum(np.vdot(a, a) for a in arrays)))


class Absolute:
    """Absolute values of the ordered elements of a matrix.

    Parameters
    ----------
    rates : (p, p) numpy.ndarray
    """

    def __init__(self, rates):
        self.rates = rates

    def map(self, K):
        """Return all elements."""
        return K

    def adjoint(self, Y):
        """Return the symmetric part."""
        return 0.5 * (Y + Y.T)

    def prox(self, V, step):
        """Soft-threshold."""
        return np.sign(V) * np.maximum(np.abs(V) - step * self.rates, 0.0)

    def value(self, Z):
        """Return the sum of the absolute values."""
        return float((self.rates * np.abs(Z)).sum())


class GroupedEntries(Absolute):
    """Norms of disjoint groups of the ordered elements of a matrix, plus absolute values of the elements.

    Parameters
    ----------
    rates : (p, p) numpy.ndarray
        Rate of the absolute value of each element.
    groups : Groups
        Of elements in row order.
    group_rates : (groups,) numpy.ndarray
    norm : Euclidean, Maximum or Nuclear
        A nuclear norm needs groups whose elements have no rate of their own.
    """

    def __init__(self, rates, groups, group_rates, norm):
        super().__init__(rates)
        self.groups, self.group_rates, self.norm = groups, group_rates, norm

    def prox(self, V, step):
        """Soft-threshold the elements, then shrink the groups; exact, as the groups contain the elements."""
        out = super().prox(V, step).reshape(1, -1)
        self.norm.prox(out, self.groups, step * self.group_rates, out)
        return out.reshape(V.shape)

    def value(self, Z):
        """Return the sum of all norms."""
        norms = self.norm.norms(Z.reshape(-1)[self.groups.order], self.groups.start)
        return super().value(Z) + float((self.group_rates * norms).sum())

    def candidate(self, X, points):
        """Symmetric part of the only point, with its zeros and, for largest absolute values, its ties."""
        [Z] = points
        K = np.where((Z != 0) & (Z.T != 0), 0.5 * (Z + Z.T), 0.0)
        if not isinstance(self.norm, Maximum) or self.groups.count == 0:
            return K
        order, start = self.groups.order, self.groups.start
        size = np.abs(Z.reshape(-1)[order])
        top = groups_of(self.groups, np.maximum.reduceat(size, start[:-1]))
        tied = (size == top) & (K.reshape(-1)[order] != 0)
        labels = tied_elements(len(K), self.groups, tied).ravel()
        level = np.bincount(labels, np.abs(K).ravel()) / np.maximum(np.bincount(labels), 1)
        return np.sign(K) * level[labels].reshape(K.shape)


def average_of_entries(*copies: np.ndarray) -> np.ndarray:
    """Nearest symmetric matrix to copies of all elements."""
    mean = np.mean(copies, axis=0)
    return 0.5 * (mean + mean.T)
