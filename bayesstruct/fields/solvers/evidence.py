r"""Evidence of the graph of a Markov random field whose weights have a slab as prior.

Weights come in blocks that are absent or present as a whole. With the blocks of a graph G present,

.. math::

    p(x \mid G) = \int p(x \mid b, w_G) \, p(b) \prod_{k \in G} \mathrm{slab}(w_k) \, db \, dw_G

by Laplace's method, which expands the logarithm to second order at its maximum (Tierney and Kadane
1986). A Laplace slab has a kink, where the maximum often is, and a Cauchy slab may have two maxima;
both are convex functions of :math:`w^2` on the log scale, so that a normal density touches each from below,

.. math::

    \log \mathrm{slab}(w) \ge \log \mathrm{slab}(\xi) - \tfrac12 \rho(\xi) (w^2 - \xi^2),

which replaces it, with the best :math:`\xi_k^2 = m_k^2 + v_k`, the second moment of the approximation
(Jaakkola and Jordan 2000). This gives a normal distribution q. The evidence is the usual bound: the mean
under q of the logarithm of all factors, that of the likelihood expanded to second order, plus the entropy of q.
With a normal slab this is Laplace's method itself. The pseudo-likelihood can replace the likelihood.

References
----------
Tierney, L. and Kadane, J. B. (1986). Accurate approximations for posterior moments and marginal
densities. *JASA* 81, 82-86. -- Jaakkola, T. S. and Jordan, M. I. (2000). Bayesian parameter
estimation via variational methods. *Statistics and Computing* 10, 25-37, section 3.
"""

import math

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtr

from bayesstruct.fields.solvers.hessian import hessian_for

if TYPE_CHECKING:
    pass

__all__ = ["FieldEvidence", "FieldPrior", "Fit", "log_slab", "mean_log_slab", "slab_precision"]

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
_STEPS, _HALVINGS, _MODE_STEPS = 100, 30, 1000
_OFFSET = 1e-9  # in units of the slab
_CLOSE = 1e-10  # squared length of the last Newton step, in standard deviations


def log_slab(slab: str, square: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Log density of a slab at values with these squares.

    Parameters
    ----------
    slab : {"normal", "laplace", "cauchy"}
    square, scale : array_like
    """
    if slab == "normal":
        return -_HALF_LOG_2PI - np.log(scale) - 0.5 * square / scale**2
    if slab == "laplace":
        return -np.log(2.0 * scale) - np.sqrt(square) / scale
    return -np.log(math.pi * scale) - np.log1p(square / scale**2)


def mean_log_slab(
    slab: str, centre: np.ndarray, variance: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Mean of the log density of a slab under normal distributions.

    Parameters
    ----------
    slab : {"normal", "laplace", "cauchy"}
    centre, variance, scale : array_like
    """
    if slab == "normal":
        return log_slab(slab, centre**2 + variance, scale)
    deviation = np.sqrt(variance)
    if slab == "laplace":
        ratio = centre / deviation
        size = 2.0 * deviation * np.exp(-0.5 * ratio**2 - _HALF_LOG_2PI)
        return -np.log(2.0 * scale) - (size + centre * (2.0 * ndtr(ratio) - 1.0)) / scale
    nodes = np.asarray(centre)[..., None] + np.asarray(deviation)[..., None] * _NODES
    return log_slab(slab, nodes**2, np.asarray(scale)[..., None]) @ _NODE_WEIGHTS


def slab_precision(slab: str, square: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Precision of the normal density that touches a slab at values with these squares."""
    if slab == "normal":
        return np.broadcast_to(1.0 / scale**2, np.shape(square))
    if slab == "laplace":
        return 1.0 / (scale * np.sqrt(square))
    return 2.0 / (scale**2 + square)


@dataclass(frozen=True, eq=False)
class FieldPrior:
    """Prior of the biases and of the weights that are present.

    Attributes
    ----------
    slab : {"normal", "laplace", "cauchy"}
    scale : (weights,) array
        Of the slab.
    mean, precision : (biases,) array
        Of the normal prior of the biases; a precision of zero makes it flat.
    blocks : list of int arrays
        Weights that are absent or present together.
    """

    slab: str
    scale: np.ndarray
    mean: np.ndarray
    precision: np.ndarray
    blocks: list


@dataclass(frozen=True, eq=False)
class Fit:
    """Approximation of the posterior of biases and weights given a graph.

    Attributes
    ----------
    on : (blocks,) array of bool
        The graph.
    evidence : float
        Log of the integral.
    theta : (biases + weights,) array
        Its centre, zero for absent weights.
    at : (k,) array of int
        Positions that are not absent.
    gradient : (biases + weights,) array
        Of the log-likelihood and the prior of the biases there.
    covariance : (k, k) array
    ridge, touching : (k,) array
        Precision of the normal density that replaces each slab, and its log density at zero, scaled so
        that the evidence is that of these densities; zero for biases.
    """

    on: np.ndarray
    evidence: float
    theta: np.ndarray
    at: np.ndarray
    gradient: np.ndarray
    covariance: np.ndarray
    ridge: np.ndarray
    touching: np.ndarray


class FieldEvidence:
    """Evidence of graphs, for a table and a prior.

    Parameters
    ----------
    likelihood : ExactLikelihood or PseudoLikelihood
    prior : FieldPrior
    """

    def __init__(self, likelihood, prior: FieldPrior):
        self.likelihood, self.prior = likelihood, prior
        self.hessian = hessian_for(likelihood)
        self.biases = likelihood.potentials.bias_size
        self.block_of = np.empty(likelihood.potentials.weight_size, int)
        for b, block in enumerate(prior.blocks):
            self.block_of[block] = b
        proper = prior.precision[prior.precision > 0]
        self.constant = float((0.5 * np.log(proper) - _HALF_LOG_2PI).sum())

    def members(self, on: np.ndarray) -> np.ndarray:
        """Positions of the biases and of the weights of some blocks, in order."""
        weights = self.biases + np.flatnonzero(on[self.block_of])
        return np.concatenate([np.arange(self.biases), weights])

    def smooth(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Log-likelihood plus log prior of the biases, and the gradient."""
        value, gradient = self.likelihood(theta)
        away = theta[: self.biases] - self.prior.mean
        pull = self.prior.precision * away
        gradient = -gradient
        gradient[: self.biases] -= pull
        return self.constant - value - 0.5 * (pull @ away), gradient

    def curvature(self, theta: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Negative Hessian of `smooth` in some parameters, biases first."""
        out = self.hessian(theta[: self.biases], theta[self.biases :], at)
        biases = np.arange(self.biases)
        out[biases, biases] += self.prior.precision
        return out

    def fit(self, on: np.ndarray, theta: np.ndarray) -> Fit:
        """Approximate the integral over the parameters of a graph.

        Parameters
        ----------
        on : (blocks,) array of bool
        theta : (biases + weights,) array
            Starting point.
        """
        at = self.members(on)
        weights = at[self.biases :] - self.biases
        x = np.zeros_like(theta)
        x[at] = theta[at]
        scale, slab = self.prior.scale[weights], self.prior.slab
        spread = None
        value, gradient = self.smooth(x)
        for _ in range(_STEPS):
            matrix = self.curvature(x, at)
            step, ridge, spread, root = self._newton(matrix, gradient[at], x[at], scale, spread)
            length = float(np.square(np.triu(root) @ step).sum())
            x, value, gradient = self._advance(x, at, step, value, gradient, ridge)
            if length < _CLOSE:
                break
        covariance = cho_solve((root, False), np.eye(len(at)))
        centre, variance = x[at[self.biases :]], np.diag(covariance)[self.biases :]
        share = mean_log_slab(slab, centre, variance, scale) + 0.5 * ridge * variance
        evidence = value + share.sum() + len(at) * _HALF_LOG_2PI - np.log(np.diag(root)).sum()
        touching = share + 0.5 * ridge * centre**2
        none = np.zeros(self.biases)
        return Fit(
            on.copy(),
            float(evidence),
            x,
            at,
            gradient,
            covariance,
            np.concatenate([none, ridge]),
            np.concatenate([none, touching]),
        )

    def mode(self, on: np.ndarray, theta: np.ndarray, tol: float = 1e-9) -> tuple[np.ndarray, bool]:
        """Mode of biases and weights given a graph, from an approximation of it.

        Parameters
        ----------
        on : (blocks,) array of bool
        theta : (biases + weights,) array
        tol : float
            Stop when no parameter changes by more, relative to the largest.

        Returns
        -------
        theta : (biases + weights,) array
            A weight of a Laplace slab whose mode is zero is slightly off zero, since it is not absent.
        converged : bool
        """
        at = self.members(on)
        weights = at[self.biases :] - self.biases
        scale = self.prior.scale[weights]
        x = np.zeros_like(theta)
        x[at] = theta[at]
        if self.prior.slab == "laplace":
            return self._kinked_mode(x, at, scale, tol)
        value, gradient = self.smooth(x)
        for _ in range(_MODE_STEPS):
            ridge = slab_precision(self.prior.slab, x[at[self.biases :]] ** 2, scale)
            matrix = self.curvature(x, at)
            own = np.arange(self.biases, len(at))
            matrix[own, own] += ridge
            pull = gradient[at]
            pull[self.biases :] -= ridge * x[at[self.biases :]]
            step = cho_solve((_root(matrix), False), pull)
            before = x
            x, value, gradient = self._advance(x, at, step, value, gradient, ridge)
            converged = np.abs(x - before).max() <= tol * (1.0 + np.abs(x).max())
            if converged:
                break
        return self._off_zero(x, at), bool(converged)

    def _off_zero(self, x, at):
        """Move weights that are present off zero, which would mean absent."""
        own = at[self.biases :]
        offset = _OFFSET * self.prior.scale[own - self.biases]
        x[own] = np.where(x[own] == 0.0, offset, x[own])
        return x

    def _kinked_mode(self, x, at, scale, tol):
        """Mode under Laplace slabs, by projected scaled sub-gradients."""
        from bayesstruct.sparse.penalties.l1 import L1
        from bayesstruct.sparse.solvers.scaled_subgradient import scaled_subgradient_steps

        def loss(y):
            full = np.zeros_like(x)
            full[at] = y
            value, gradient = self.smooth(full)
            return -value, -gradient[at]

        rates = np.concatenate([np.zeros(self.biases), 1.0 / scale])
        residual = max(tol, 1e-12) * self.likelihood.n
        found = scaled_subgradient_steps(
            loss, x[at], L1(1.0, weights=rates), tol=residual, max_evaluations=5000
        )
        x[at] = found.coefficients
        return self._off_zero(x, at), found.converged

    def _newton(self, matrix, gradient, x, scale, spread):
        """Step, and the normal densities that touch the slabs at its end."""
        first, slab = self.biases, self.prior.slab
        size = len(x)
        if spread is None:
            spread = 1.0 / (np.diag(matrix)[first:] + 1.0 / scale**2)
        square = x[first:] ** 2 + spread
        for _ in range(1 if slab == "normal" else 4):
            ridge = slab_precision(slab, square, scale)
            full = matrix.copy()
            full[np.arange(first, size), np.arange(first, size)] += ridge
            root = _root(full)
            pull = gradient.copy()
            pull[first:] -= ridge * x[first:]
            step = cho_solve((root, False), pull)
            end = (x + step)[first:]
            if slab != "normal":
                inverse = cho_solve((root, False), np.eye(size))
                spread = np.diag(inverse)[first:]
            square = end**2 + spread
        return step, ridge, spread, root

    def _advance(self, x, at, step, value, gradient, ridge):
        """Take the step, or a shorter one if the density would fall."""
        weights = at[self.biases :]

        def penalty(y):
            return 0.5 * float(ridge @ y[weights] ** 2)

        before, size = value - penalty(x), 1.0
        for _ in range(_HALVINGS):
            y = x.copy()
            y[at] += size * step
            value, gradient = self.smooth(y)
            if value - penalty(y) >= before - 1e-9 * (1.0 + abs(before)):
                break
            size *= 0.5
        return y, value, gradient


def _root(matrix):
    """Upper Cholesky factor; a little is added to directions without curvature."""
    jitter = 0.0
    while True:
        try:
            return cho_factor(
                matrix + jitter * np.diag(np.diag(matrix)), lower=False, check_finite=False
            )[0]
        except np.linalg.LinAlgError:
            if jitter > 1.0:
                raise ValueError(
                    "the density has no finite mode: some state never occurs and its bias has a flat prior; "
                    "give the biases a normal prior"
                ) from None
            jitter = max(10.0 * jitter, 1e-12)
