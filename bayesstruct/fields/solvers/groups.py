r"""Most probable relations of the pairs of several groups of rows: evidence by Laplace's method, and a search.

With relations r (absent, equal, different) of all pairs,

.. math:: p(x \mid r) = \int \prod_g p(x_g \mid b_g, w_g) \, p(b_g) \, \prod \phi(z) \, db \, dz,

where the weights are linear in coordinates z, one for a pair that is equal and G for one that differs, whose prior is standard normal (see
:mod:`bayesstruct.fields.kernels.groups`). The integral is approximated at its maximum (Tierney and Kadane 1986), which is also the mode
given the relations.

The search changes the relations of many pairs at once while that helps, then of one pair at a time. All changes are ranked by one expansion
around the present mode: coordinates are added by a score test, taken away by a Wald test. The best few are tried.
"""

import math

from dataclasses import dataclass

import numpy as np

from scipy.linalg import cho_factor, cho_solve

from bayesstruct.fields.kernels.group_arrays import contrast_basis
from bayesstruct.fields.solvers.hessian import hessian_for

__all__ = ["GroupEvidence", "GroupFit", "search_relations"]

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_STEPS, _HALVINGS, _CLOSE = 100, 30, 1e-18
_TRIED, _SLACK, _BETTER = 8, 2.0, 1e-8
#: Largest number of parameters of all pairs, for their Hessian.
MOST = 4000


@dataclass(frozen=True, eq=False)
class GroupFit:
    """Approximation of the posterior given relations.

    Attributes
    ----------
    relation : (pairs,) array of int
    x : (G biases + pairs G,) array
        Mode: biases of each group, coordinates of each pair, zero where absent.
    evidence : float
        Log of the integral.
    covariance : (k, k) array
        Of the parameters that are there.
    converged : bool
    """

    relation: np.ndarray
    x: np.ndarray
    evidence: float
    covariance: np.ndarray
    converged: bool


class GroupEvidence:
    """Evidence of relations, for the tables of several groups and a prior.

    Parameters
    ----------
    likelihoods : list of ExactLikelihood or PseudoLikelihood
        Of each group; pairs have one weight each.
    scale : (2, pairs) array
        Standard deviations of shared part and contrasts.
    log_odds : (pairs, 3) array
        Logarithms of the probabilities of the relations.
    mean, precision : (G, biases) array
        Of the normal prior of the biases; a precision of zero makes it flat.
    """

    def __init__(self, likelihoods, scale, log_odds, mean, precision):
        self.likelihoods, self.log_odds = likelihoods, log_odds
        self.hessians = [hessian_for(likelihood) for likelihood in likelihoods]
        self.groups, self.pairs = len(likelihoods), len(log_odds)
        self.biases = likelihoods[0].potentials.bias_size
        self.mean, self.precision = np.ravel(mean), np.ravel(precision)
        basis = contrast_basis(self.groups)
        scales = np.vstack([scale[:1], np.repeat(scale[1:], self.groups - 1, axis=0)])
        #: (G, pairs, G), weight of each group with each coordinate
        self.map = basis[:, None, :] * scales.T[None]
        proper = self.precision[self.precision > 0]
        self.constant = float((0.5 * np.log(proper) - _HALF_LOG_2PI).sum())

    def parts(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Biases (G, biases) and weights (G, pairs) of parameters."""
        first = self.groups * self.biases
        z = x[first:].reshape(self.pairs, self.groups)
        return x[:first].reshape(self.groups, -1), np.einsum("gec,ec->ge", self.map, z)

    def members(self, relation: np.ndarray) -> np.ndarray:
        """Positions of the parameters that are there."""
        there = np.zeros((self.pairs, self.groups), bool)
        there[:, 0], there[:, 1:] = relation > 0, (relation > 1)[:, None]
        first = self.groups * self.biases
        return np.concatenate([np.arange(first), first + np.flatnonzero(there)])

    def value(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Log posterior density of the parameters given relations, but for constants of the coordinates; and its gradient."""
        bias, weight = self.parts(x)
        first = self.groups * self.biases
        total, gradient = self.constant, np.zeros_like(x)
        slope = np.zeros((self.groups, self.pairs))
        for g, likelihood in enumerate(self.likelihoods):
            value, own = likelihood(np.concatenate([bias[g], weight[g]]))
            total -= value
            gradient[g * self.biases : (g + 1) * self.biases] = -own[: self.biases]
            slope[g] = -own[self.biases :]
        gradient[first:] = np.einsum("gec,ge->ec", self.map, slope).ravel()
        pull = self.precision * (x[:first] - self.mean)
        total -= 0.5 * float(pull @ (x[:first] - self.mean)) + 0.5 * float(x[first:] @ x[first:])
        gradient[:first] -= pull
        gradient[first:] -= x[first:]
        return total, gradient

    def curvature(self, x: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Negative Hessian of `value` in some parameters, all biases first."""
        bias, weight = self.parts(x)
        first, b = self.groups * self.biases, self.biases
        own = at[first:] - first
        pair, coordinate = np.divmod(own, self.groups)
        present = np.unique(pair)
        place = np.searchsorted(present, pair)
        out = np.zeros((len(at), len(at)))
        for g, hessian in enumerate(self.hessians):
            matrix = hessian(bias[g], weight[g], np.concatenate([np.arange(b), b + present]))
            columns = np.concatenate([g * b + np.arange(b), np.arange(first, len(at))])
            factor = np.concatenate([np.ones(b), self.map[g, pair, coordinate]])
            rows = np.concatenate([np.arange(b), b + place])
            out[np.ix_(columns, columns)] += matrix[np.ix_(rows, rows)] * np.outer(factor, factor)
        diagonal = np.arange(len(at))
        out[diagonal, diagonal] += np.concatenate([self.precision, np.ones(len(own))])
        return out

    def fit(self, relation: np.ndarray, x: np.ndarray) -> GroupFit:
        """Find the mode given relations by Newton's method, and the evidence there.

        Parameters
        ----------
        relation : (pairs,) array of int
        x : array
            Parameters to start from.
        """
        at = self.members(relation)
        start, x = x, np.zeros_like(x)
        x[at] = start[at]
        value, gradient = self.value(x)
        converged = False
        for _ in range(_STEPS):
            root = cho_factor(self.curvature(x, at), check_finite=False)
            step = cho_solve(root, gradient[at])
            length = float(gradient[at] @ step)
            converged = length <= _CLOSE * (1.0 + abs(value))
            if converged:
                break
            x, value, gradient = self._advance(x, at, step, value, length)
        covariance = cho_solve(root, np.eye(len(at)))
        log_det = 2.0 * np.log(np.abs(np.diag(root[0]))).sum()
        evidence = value - 0.5 * log_det + self.groups * self.biases * _HALF_LOG_2PI
        return GroupFit(relation.copy(), x, float(evidence), covariance, converged)

    def _advance(self, x, at, step, value, length):
        """Take the step, or a shorter one if the density would fall."""
        size = 1.0
        for _ in range(_HALVINGS):
            y = x.copy()
            y[at] += size * step
            new, gradient = self.value(y)
            if new >= value + 1e-4 * size * length - 1e-12 * (1.0 + abs(value)):
                break
            size *= 0.5
        return y, new, gradient

    def score(self, fit: GroupFit) -> float:
        """Log posterior probability of the relations of a fit, up to a constant."""
        return fit.evidence + float(self.log_odds[np.arange(self.pairs), fit.relation].sum())


def search_relations(evidence: GroupEvidence) -> GroupFit:
    """Return the most probable relations that a search finds, with the mode given them.

    Parameters
    ----------
    evidence : GroupEvidence

    Raises
    ------
    ValueError
        If there are too many parameters for their Hessian.
    """
    size = evidence.groups * (evidence.biases + evidence.pairs)
    if size > MOST:
        raise ValueError(
            f"the search for relations expands {size:,} parameters, at most {MOST:,}: sample instead, or give `graph`, the pairs "
            "that may have an edge"
        )
    x = np.zeros(size)
    first = evidence.groups * evidence.biases
    x[:first] = np.where(evidence.precision > 0, evidence.mean, 0.0)
    least = np.argmax(evidence.log_odds > -np.inf, axis=1)  # the simplest relation that is possible
    fits = [_climb(evidence, evidence.fit(least, x))]
    rich = np.where(evidence.log_odds[:, 1] > -np.inf, np.maximum(least, 1), least)
    fits.append(_climb(evidence, evidence.fit(rich, fits[0].x)))
    return max(fits, key=evidence.score)


def _climb(evidence, fit):
    """Change the relations of many pairs at a time, then of one, until none of the tried changes improves."""
    fit = _stride(evidence, fit)
    while True:
        moves = _ranked(evidence, fit)
        better = _first_better(evidence, fit, [[move] for move in moves[:_TRIED]])
        if better is None:
            return fit
        fit = better


def _stride(evidence, fit):
    """Make all promising changes at once, or the best half of them, while that improves."""
    while True:
        best: dict = {}
        for move in _ranked(evidence, fit):
            if move[0] > 0.0:
                best.setdefault(move[1], move)
        moves, choices = list(best.values()), []
        while len(moves) > 1:
            choices.append(moves)
            moves = moves[: len(moves) // 2]
        better = _first_better(evidence, fit, choices)
        if better is None:
            return fit
        fit = better


def _first_better(evidence, fit, choices):
    """Return the first of some sets of changes that improves, or None."""
    for moves in choices:
        if moves[0][0] < -_SLACK:
            return None
        new = fit.relation.copy()
        for _, pair, relation in moves:
            new[pair] = relation
        tried = evidence.fit(new, fit.x)
        if evidence.score(tried) > evidence.score(fit) + _BETTER:
            return tried
    return None


def _ranked(evidence, fit):
    """Rank the changes of the relation of one pair, with their predicted gains, the largest first."""
    every = evidence.members(np.full(evidence.pairs, 2))
    matrix, (_, gradient) = evidence.curvature(fit.x, every), evidence.value(fit.x)
    on = evidence.members(fit.relation)
    place = np.full(len(fit.x), -1)
    place[on] = np.arange(len(on))
    moves = []
    for pair, now in enumerate(fit.relation):
        own = evidence.groups * evidence.biases + pair * evidence.groups
        sets = [np.arange(0), np.arange(1), np.arange(evidence.groups)]
        for then in range(3):
            change = evidence.log_odds[pair, then] - evidence.log_odds[pair, now]
            if then == now or change == -np.inf:
                continue
            turned = own + np.setxor1d(sets[then], sets[now])
            if then > now:
                cross = matrix[np.ix_(turned, on)]
                curvature = matrix[np.ix_(turned, turned)] - cross @ fit.covariance @ cross.T
                gain = 0.5 * gradient[turned] @ np.linalg.solve(curvature, gradient[turned])
                gain -= 0.5 * np.linalg.slogdet(curvature)[1]
            else:
                block = fit.covariance[np.ix_(place[turned], place[turned])]
                gain = -0.5 * fit.x[turned] @ np.linalg.solve(block, fit.x[turned])
                gain -= 0.5 * np.linalg.slogdet(block)[1]
            moves.append((float(gain + change), pair, then))
    return sorted(moves, reverse=True)
