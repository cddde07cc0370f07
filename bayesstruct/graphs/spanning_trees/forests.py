r"""Random forests whose share of edges is random: exact sums over all forests and over the share.

A forest F has the prior probability, given the share s of edges,

.. math:: p(F \mid s) = \frac{1}{Z_0(\rho)} \prod_{ij \in F} w_{ij} \prod_C \rho |C|, \qquad \rho = \bar\lambda \frac{1 - s}{s},

the second product being over its components C: that of rooted forests with equal root weights, with the roots summed out. :math:`\bar\lambda` is the
mean of the eigenvalues of the Laplacian matrix of w without the one that is 0. If all weights are equal, the number of edges is binomial with p - 1
trials of probability s: there are :math:`\binom{p - 1}{k} p^k` rooted forests with k edges. A beta distribution of s is then a beta-binomial one of the number of edges, and with
shapes 1 and 1 each number of components has the same probability.

Sums over all forests are sums over trees with one more node, the ground, which is joined to each node with weight :math:`\rho`. The sum over s
is the trapezoidal rule on the scale of :math:`\log(s / (1 - s))`, which converges exponentially for integrands that are analytic and vanish at both ends.
If all weights are equal, a single such sum takes fewer terms: Gauss's rule for the beta distribution is exact with p / 2 of them.
"""

import math

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from scipy.special import betaln, expit, roots_jacobi

from bayesstruct.data.arguments import generator
from bayesstruct.graphs.spanning_trees.sums import (
    SpanningTrees,
    log_tree_sum,
    log_weight_matrix,
    rooted_forest,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["SharedForests", "forest_lines", "grounded", "log_mean_eigenvalue", "log_roots_of"]

_FAR = 45.0  # log odds of shares that are looked at first; a beta density with shapes 1 is 1e-19 beyond
_SMALL = 40.0  # logarithm by which a term is too small to count
_LEVELS = 14  # of halved steps: a beta density with shapes 1e6 is about 0.001 wide
_EXACT = 1e-9  # relative change of the integral at which halving ends
_LARGE = 20.0  # shapes beyond which weights of Gauss's rule may be too small for the computer
_STRONG = 1e7  # weights over the root weight, beyond which two nodes are in one component


def log_mean_eigenvalue(log_weights: np.ndarray) -> float:
    """Log of the mean eigenvalue of the Laplacian matrix of weights, without the one that is 0.

    Parameters
    ----------
    log_weights : (p, p) ndarray
        Symmetric, -inf on the diagonal.
    """
    with np.errstate(divide="ignore"):
        return float(np.logaddexp.reduce(log_weights, axis=None)) - math.log(len(log_weights) - 1)


def grounded(log_weights: np.ndarray, log_roots: "float | np.ndarray") -> np.ndarray:
    """Weights of the nodes with one more in front, the ground, whose weights are those of the roots."""
    n = len(log_weights)
    out = np.full((n + 1, n + 1), -np.inf)
    out[1:, 1:] = log_weights
    out[0, 1:] = out[1:, 0] = log_roots
    return out


def forest_lines(lines: np.ndarray) -> np.ndarray:
    """Lines of the forest of one tree with the ground: those to node 0 are left out."""
    return lines[lines[:, 0] > 0] - 1


def log_roots_of(lines: np.ndarray, log_roots: np.ndarray) -> float:
    """By how much a forest is more probable than with the roots that a tree with the ground gives it, as a logarithm.

    Parameters
    ----------
    lines : (p, 2) ndarray of int
        Of a tree with the ground, node 0.
    log_roots : (p,) ndarray
        Log weights of the roots.
    """
    n, roots = len(log_roots), lines[lines[:, 0] == 0, 1] - 1
    parent = rooted_forest(forest_lines(lines), n)
    member = np.arange(n)
    for node in range(n):
        while parent[member[node]] >= 0:
            member[node] = parent[member[node]]
    most = log_roots.max()
    sums = np.bincount(member, np.exp(log_roots - most), n)
    return float((np.log(sums[member[roots]]) + most - log_roots[roots]).sum())


class SharedForests:
    """All forests with a random share of edges, weighted by evidence.

    Parameters
    ----------
    log_weights : (p, p) array_like of float
        Log weights of the prior, -inf where there is no edge; some are there.
    gains : (p, p) array_like of float or float, default 0
        Log Bayes factors of the edges.
    shapes : (float, float), default (1, 1)
        Of the beta prior of the share.

    Attributes
    ----------
    n : int
    log_weights : (p, p) ndarray
        Prior and Bayes factors together.

    Raises
    ------
    ValueError
        If an array is no symmetric matrix.
    """

    def __init__(
        self,
        log_weights: "ArrayLike",
        gains: "ArrayLike | float" = 0.0,
        shapes: tuple[float, float] = (1.0, 1.0),
    ):
        self._prior, self._gains = log_weight_matrix(log_weights), np.asarray(gains, float)
        self.log_weights = log_weight_matrix(self._prior + self._gains)
        self.n, self.shapes = len(self._prior), shapes
        self._log_mean = log_mean_eigenvalue(self._prior)
        allowed = self._prior[np.isfinite(self._prior)]
        self._equal = len(allowed) == self.n * (self.n - 1) and np.ptp(allowed) == 0.0

    def _log_root(self, t):
        """Log root weight at the log odds of a share."""
        return self._log_mean - t

    def _log_prior_sum(self, t):
        if self._equal:
            return self._log_root(t) + (self.n - 1) * np.logaddexp(
                self._log_root(t), self._log_mean
            )
        return log_tree_sum(grounded(self._prior, self._log_root(t)))

    def _log_term(self, t):
        """Log density of the log odds of the share together with the table."""
        a, b = self.shapes
        log_beta = -a * np.logaddexp(0.0, -t) - b * np.logaddexp(0.0, t) - betaln(a, b)
        ratio = log_tree_sum(grounded(self.log_weights, self._log_root(t))) - self._log_prior_sum(t)
        return float(log_beta + ratio)

    @cached_property
    def _grid(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Log odds of shares, their posterior probabilities, and the log of the integral."""
        # The smaller a shape, the further out the prior reaches.
        far = _FAR / min(1.0, *self.shapes) + math.log(self.n)
        step = 1.0
        known = {t: self._log_term(t) for t in np.arange(-far, far + step, step).tolist()}
        last = -math.inf
        for _ in range(_LEVELS):
            t = np.array(sorted(known))
            logs = np.array([known[v] for v in t])
            total = float(np.logaddexp.reduce(logs)) + math.log(step)
            if abs(total - last) < _EXACT * max(1.0, abs(total)):
                break
            last, step = total, step / 2.0
            near = logs > logs.max() - _SMALL
            for v in t[:-1][near[:-1] | near[1:]] + step:
                known[float(v)] = self._log_term(float(v))
        keep = logs > logs.max() - _SMALL
        return t[keep], np.exp(logs[keep] - np.logaddexp.reduce(logs[keep])), total

    @property
    def log_evidence(self) -> float:
        """Log of the sum over all forests and shares of prior times Bayes factors of the edges."""
        return self._grid[2]

    def log_mean(self, log_factors: np.ndarray) -> float:
        """Log of the mean over all forests and shares of the product of factors of their edges.

        Parameters
        ----------
        log_factors : (p, p) ndarray of float
            Symmetric; not checked. The diagonal is not used.
        """
        if self._rule is None:
            # Factors may move the share: they get a grid of their own.
            longer = SharedForests(self._prior, self._gains + log_factors, self.shapes)
            return longer.log_evidence - self.log_evidence
        roots, logs = self._rule
        weights = self.log_weights + log_factors
        sums = [log_tree_sum(grounded(weights, root)) for root in roots]
        return float(np.logaddexp.reduce(logs + sums)) - self.log_evidence

    @cached_property
    def _rule(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Log root weights and log weights of a rule of integration over the share that is exact for all weights of edges.

        With equal prior odds a sum over all forests divided by that of the prior is a polynomial of the share of degree p - 1, so that
        Gauss's rule for the beta distribution is exact with p / 2 terms. Other odds, and very large shapes, have no such rule.
        """
        if not self._equal or max(self.shapes) > _LARGE:
            return None
        a, b = self.shapes
        x, weights = roots_jacobi((self.n + 1) // 2, b - 1.0, a - 1.0)
        t = np.log1p(x) - np.log1p(-x)
        return self._log_root(t), np.log(weights / weights.sum()) - self._log_prior_sum(t)

    @property
    def share(self) -> tuple[np.ndarray, np.ndarray]:
        """Grid of shares, and their posterior probabilities."""
        t, p, _ = self._grid
        return expit(t), p

    def _trees(self, t):
        return SpanningTrees(grounded(self.log_weights, self._log_root(t)))

    @cached_property
    def probabilities(self) -> np.ndarray:
        """Probability of each edge, (p, p)."""
        out = np.zeros((self.n, self.n))
        for t, p in zip(*self._grid[:2], strict=True):
            if p > _EXACT / 100:
                out += p * self._trees(t).probabilities[1:, 1:]
        return out

    @cached_property
    def components(self) -> np.ndarray:
        """Probability of 1, ..., p components, (p,), to about six digits."""
        out = np.zeros(self.n)
        for t, p in zip(*self._grid[:2], strict=True):
            if p > _EXACT / 100:
                out += p * self._components_at(t)
        return out / out.sum()

    def _components_at(self, t):
        """Count successes in trials, one for each eigenvalue of the Laplacian matrix over the root weight."""
        weights = np.exp(np.minimum(self.log_weights - self._log_root(t), math.log(_STRONG)))
        eigenvalues = np.linalg.eigvalsh(np.diag(weights.sum(axis=1)) - weights)
        out = np.ones(1)
        for q in 1.0 / (1.0 + np.maximum(eigenvalues[1:], 0.0)):
            out = np.convolve(out, [1.0 - q, q])
        return out

    def draw(self, draws: int, random_seed: Any = None) -> list[np.ndarray]:
        """Draw independent forests.

        Returns
        -------
        list of (edges, 2) ndarray of int
            The edges of each forest, ends in increasing order.
        """
        rng = generator(random_seed)
        t, p, _ = self._grid
        at = rng.choice(len(t), size=draws, p=p)
        out: list = [None] * draws
        for k in np.unique(at).tolist():
            own = np.flatnonzero(at == k)
            for place, lines in zip(own, self._trees(t[k]).draw(len(own), rng), strict=True):
                out[place] = forest_lines(lines)
        return out

    def log_probability(self, lines: "ArrayLike") -> float:
        """Logarithm of the probability of a forest, (edges, 2); that it is one is not checked."""
        lines = np.asarray(lines, int).reshape(-1, 2)
        member = np.arange(self.n)
        for i, j in lines.tolist():
            member[member == member[j]] = member[i]
        sizes = np.unique(member, return_counts=True)[1]
        own = self.log_weights[lines[:, 0], lines[:, 1]].sum() + np.log(sizes).sum()
        t, p, _ = self._grid
        roots = self._log_root(t)
        return float(own + np.logaddexp.reduce(np.log(p) + len(sizes) * roots - self._totals))

    @cached_property
    def _totals(self) -> np.ndarray:
        """Log sums over all forests at the shares of the grid."""
        roots = self._log_root(self._grid[0])
        return np.array([log_tree_sum(grounded(self.log_weights, root)) for root in roots])
