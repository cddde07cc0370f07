"""Posteriors of small precision matrices by importance sampling, without any code of the package.

The matrix is built up from its first row and column. With ``S`` the scatter of ``n`` rows of mean
zero, ``M = S + 2 d I``, ``u`` the part of column ``j`` above the diagonal, ``A`` the inverse of the
leading block before it and ``v = k_jj - u' A u``,

    |K|^(n/2) exp(-tr(M K) / 2) = prod_j v_j^(n/2) exp(-M_jj (v_j + u' A u) / 2 - M_<j,j' u),

so ``v_j`` is gamma given the rest of the leading block, and ``u`` under a mixture of a spike and a slab is a mixture of 2^(j-1) normal
laws whose weights are known. Their sum depends on the leading block and is the importance weight;
the cone takes care of itself. Draws are independent.
"""

from dataclasses import dataclass

import numpy as np

from scipy.special import betaln, exp1, logsumexp, softmax
from tools.enumeration import binary_states


@dataclass
class WeightedDraws:
    """Independent precision matrices, (N, p, p), and log weights towards the posterior, (N,)."""

    precision: np.ndarray
    log_weight: np.ndarray

    def mean(self, values):
        """Posterior means of (N, k) values and their standard errors (delta method)."""
        if self.ess < 100:
            raise RuntimeError(f"importance weights are worth only {self.ess:.0f} draws")
        w = np.exp(self.log_weight - self.log_weight.max())
        w /= w.sum()
        mean = w @ values
        return mean, np.sqrt(np.square(w) @ np.square(values - mean))

    @property
    def ess(self):
        """Number of independent draws without weights that these are worth."""
        w = np.exp(self.log_weight - self.log_weight.max())
        return w.sum() ** 2 / np.square(w).sum()


def likelihood_draws(rows, diagonal_rate, draws, rng, *, mixture, column_means=False):
    """Weighted draws under a spike-and-slab prior with probabilities and scales ``mixture``.

    Rows with missing cells (NaN) and normal means with standard normal priors (``column_means``,
    integrated out) come in through the weights.
    """
    rows = np.asarray(rows, float)
    p = rows.shape[1]
    gaps = np.isnan(rows).any(axis=1)
    complete, incomplete = rows[~gaps], rows[gaps]
    if column_means and gaps.any():
        raise NotImplementedError("means are integrated out of complete tables only")
    n = len(complete)
    centre = complete.mean(axis=0) if column_means else np.zeros(p)
    scatter = (complete - centre).T @ (complete - centre)
    power = (n - 1 if column_means else n) / 2
    weighted = _build_up(scatter + 2 * diagonal_rate * np.eye(p), power, mixture, draws, rng)
    if column_means or gaps.any():
        covariance = np.linalg.inv(weighted.precision)
    if column_means:
        # rows' mean given K, its own mean integrated out: N(0, K^-1 / n + I)
        weighted.log_weight += _log_normal(centre, covariance / n + np.eye(p))
    for row in incomplete:
        seen = np.flatnonzero(~np.isnan(row))
        weighted.log_weight += _log_normal(row[seen], covariance[:, seen[:, None], seen])
    return weighted


def _build_up(M, power, mixture, draws, rng):
    """Draw column after column, with gamma laws adapted to the posterior in pilot runs."""
    gammas = np.stack([np.full(len(M), power + 1.0), np.diag(M) / 2], axis=1)
    for _ in range(5):
        weighted, v = _columns(M, power, mixture, gammas, 10_000, rng)
        while weighted.ess < 300:  # far from the target yet: go part of the way
            weighted.log_weight *= 0.7
        mean, _ = weighted.mean(v)
        square, _ = weighted.mean(v**2)
        variance = 1.3 * (square - mean**2)  # wider than the target
        gammas = np.stack([mean**2 / variance, mean / variance], axis=1)
    return _columns(M, power, mixture, gammas, draws, rng)[0]


def _columns(M, power, mixture, gammas, draws, rng):
    """Draws and their weights; ``gammas`` are the shapes and rates that propose the ``v``."""
    probability, spike, slab = mixture
    p = len(M)
    K, log_weight = np.zeros((draws, p, p)), np.zeros(draws)
    pivots = rng.gamma(gammas[:, 0], 1.0 / gammas[:, 1], size=(draws, p))
    log_weight += np.log(pivots) @ (power + 1.0 - gammas[:, 0])
    log_weight += pivots @ (gammas[:, 1] - np.diag(M) / 2)
    for j, v in enumerate(pivots.T):
        if j == 0:
            K[:, 0, 0] = v
            continue
        A = np.linalg.inv(K[:, :j, :j])
        states, b, pi = binary_states(j), -M[:j, j], probability[:j, j]
        log_c, means, factors = [], [], []
        for z in states:
            sd = np.where(z == 1, slab, spike)
            Q = M[j, j] * A + np.diag(sd**-2.0)
            solved = np.linalg.solve(Q, np.broadcast_to(b, (draws, j))[..., None])[..., 0]
            prior = _log(np.where(z == 1, pi, 1 - pi)).sum() - np.log(sd).sum()
            log_c.append(prior + 0.5 * (solved @ b - np.linalg.slogdet(Q)[1]))
            means.append(solved)
            factors.append(np.linalg.cholesky(np.linalg.inv(Q)))
        log_c = np.array(log_c)
        top = log_c.max(axis=0)
        c = np.exp(log_c - top)
        log_weight += top + np.log(c.sum(axis=0))
        z = (rng.random(draws) * c.sum(axis=0) > c.cumsum(axis=0)).sum(axis=0)
        noise = rng.normal(size=(draws, j, 1))
        each = np.arange(draws)
        u = np.array(means)[z, each] + (np.array(factors)[z, each] @ noise)[..., 0]
        K[:, j, :j] = K[:, :j, j] = u
        K[:, j, j] = v + np.einsum("ni,nij,nj->n", u, A, u)
    return WeightedDraws(K, log_weight), pivots


def _log(x):
    with np.errstate(divide="ignore"):
        return np.log(x)


def _log_normal(x, covariance):
    _, log_det = np.linalg.slogdet(covariance)
    solved = np.linalg.solve(covariance, np.broadcast_to(x, covariance.shape[:-1])[..., None])
    return -0.5 * (log_det + (x * solved[..., 0]).sum(-1) + len(x) * np.log(2 * np.pi))


def spike_slab_posterior(
    rows, *, probability=0.5, beta=None, spike, slab, diagonal_rate=0.5, draws, seed, **kwargs
):
    """Posterior probabilities of all edge configurations of a spike-and-slab precision matrix.

    Given K the configuration is averaged analytically, so that all weighted draws serve each.

    Returns
    -------
    states : (2**E, E) array of 0/1, upper triangle row by row
    probabilities, errors : (2**E,) arrays
    weighted : WeightedDraws
        From the posterior of K.
    """
    rng, p = np.random.default_rng(seed), np.shape(rows)[1]
    nominal = np.broadcast_to(0.5 if beta is not None else probability, (p, p))
    weighted = likelihood_draws(
        rows, diagonal_rate, draws, rng, mixture=(nominal, spike, slab), **kwargs
    )
    pi = nominal[np.triu_indices(p, 1)]
    states = binary_states(len(pi))
    log_spike, log_slab = _log_components(weighted, spike, slab)
    proposed = _log(np.where(states == 1, pi, 1 - pi)).sum(axis=1)
    if beta is None:
        prior = proposed
    else:
        k = states.sum(axis=1)
        prior = betaln(beta[0] + k, beta[1] + len(pi) - k) - betaln(*beta)
    joint = log_spike.sum(axis=1)[:, None] + (log_slab - log_spike) @ states.T
    weighted.log_weight += logsumexp(joint + prior, axis=1) - logsumexp(joint + proposed, axis=1)
    given_matrix = softmax(joint + prior, axis=1)
    probabilities, errors = weighted.mean(given_matrix)
    return states, probabilities, errors, weighted


def _log_components(weighted, spike, slab):
    """Log densities (without the root of two pi) of every pair under spike and slab."""
    upper = np.triu_indices(weighted.precision.shape[-1], 1)
    u = weighted.precision[:, upper[0], upper[1]]
    return tuple(-0.5 * np.square(u / s) - np.log(s) for s in (spike, slab))


def laplace_posterior(rows, *, rate, diagonal_rate, draws, seed, **kwargs):
    """Weighted draws from the posterior under the graphical-lasso prior.

    A mixture of two normal laws, one narrower and one wider than the widest Laplace law, proposes.
    """
    rng, p = np.random.default_rng(seed), np.shape(rows)[1]
    spike, slab = 0.7 / np.max(rate), 3.0 / np.min(rate)
    weighted = likelihood_draws(
        rows, diagonal_rate, draws, rng, mixture=(np.full((p, p), 0.5), spike, slab), **kwargs
    )
    upper = np.triu_indices(p, 1)
    u = weighted.precision[:, upper[0], upper[1]]
    proposed = np.logaddexp(*_log_components(weighted, spike, slab)).sum(axis=1)
    weighted.log_weight += -(np.broadcast_to(rate, u.shape) * np.abs(u)).sum(axis=1) - proposed
    return weighted


def horseshoe_posterior(rows, *, scales, log_prior, diagonal_rate, draws, seed, **kwargs):
    """Weighted draws from the posterior under the graphical horseshoe, and what they say of its global scale.

    Parameters
    ----------
    scales : (k,) array
        Global scales over which is summed.
    log_prior : (k,) array
        Logarithm of the nominal prior probability of each.

    Returns
    -------
    weighted : WeightedDraws
    probabilities : (N, k) array
        Probability of each global scale given each matrix.
    """
    rng, p = np.random.default_rng(seed), np.shape(rows)[1]
    weighted = likelihood_draws(
        rows, diagonal_rate, draws, rng, mixture=(np.full((p, p), 0.5), 0.15, 2.0), **kwargs
    )
    upper = np.triu_indices(p, 1)
    u = weighted.precision[:, upper[0], upper[1]]
    proposed = np.logaddexp(*_log_components(weighted, 0.15, 2.0)).sum(axis=1)
    joint = np.empty((len(u), len(scales)))
    for k, scale in enumerate(scales):
        z = 0.5 * np.square(u / scale)
        # exp(z) E1(z) is close to 1 / z for large z, where exp overflows
        safe = np.minimum(z, 600.0)
        log_density = np.where(z < 600.0, safe + np.log(exp1(safe)), -np.log(z + 1.0))
        joint[:, k] = log_prior[k] + (log_density - np.log(scale)).sum(axis=1)
    weighted.log_weight += logsumexp(joint, axis=1) - proposed
    return weighted, softmax(joint, axis=1)


def moments(precision):
    """Elements, squares and log determinants of precision matrices, (N, k)."""
    upper = np.triu_indices(precision.shape[-1])
    elements = precision[..., upper[0], upper[1]]
    log_det = np.linalg.slogdet(precision)[1]
    return np.concatenate([elements, elements**2, log_det[..., None]], axis=-1)
