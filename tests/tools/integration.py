"""Posteriors of small precision matrices by importance sampling, without any code of the package.

The likelihood of ``n`` normal rows with mean zero and scatter ``S``, times the exponential prior
of the diagonal, is an unnormalised Wishart density of the precision matrix,

    |K|^(n/2) exp(-tr((S + 2 d I) K) / 2)  ~  Wishart(n + p + 1, (S + 2 d I)^-1),

so that independent Wishart draws, weighted by the prior of the off-diagonal elements, follow the
posterior; the cone takes care of itself.
"""

from dataclasses import dataclass

import numpy as np

from scipy.special import betaln
from tools.enumeration import binary_states


@dataclass
class WeightedDraws:
    """Independent precision matrices, (N, p, p), and log weights towards the posterior, (N,)."""

    precision: np.ndarray
    log_weight: np.ndarray

    def mean(self, values):
        """Posterior means of (N, k) values and their standard errors (delta method)."""
        w = np.exp(self.log_weight - self.log_weight.max())
        w /= w.sum()
        mean = w @ values
        return mean, np.sqrt(np.square(w) @ np.square(values - mean))


def wishart(df, scale, draws, rng):
    """Wishart matrices by Bartlett's decomposition, (draws, p, p)."""
    p = len(scale)
    factor = np.zeros((draws, p, p))
    rows, columns = np.tril_indices(p, -1)
    factor[:, rows, columns] = rng.normal(size=(draws, len(rows)))
    for i in range(p):
        factor[:, i, i] = np.sqrt(rng.chisquare(df - i, size=draws))
    factor = np.linalg.cholesky(scale) @ factor
    return factor @ factor.mT


def likelihood_draws(rows, diagonal_rate, draws, rng, *, column_means=False):
    """Draws from the likelihood of the rows times the prior of the diagonal.

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
    df = n + p + 1 - (1 if column_means else 0)
    precision = wishart(df, np.linalg.inv(scatter + 2 * diagonal_rate * np.eye(p)), draws, rng)
    log_weight = np.zeros(draws)
    if column_means or gaps.any():
        covariance = np.linalg.inv(precision)
    if column_means:
        # rows' mean given K, its own mean integrated out: N(0, K^-1 / n + I)
        log_weight += _log_normal(centre, covariance / n + np.eye(p))
    for row in incomplete:
        seen = np.flatnonzero(~np.isnan(row))
        log_weight += _log_normal(row[seen], covariance[:, seen[:, None], seen])
    return WeightedDraws(precision, log_weight)


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
    rng = np.random.default_rng(seed)
    weighted = likelihood_draws(rows, diagonal_rate, draws, rng, **kwargs)
    p = weighted.precision.shape[-1]
    upper = np.triu_indices(p, 1)
    values = weighted.precision[:, upper[0], upper[1]]
    pi = np.broadcast_to(probability, (p, p))[upper]
    states = binary_states(len(pi))
    log_spike = -0.5 * np.square(values / spike) - np.log(spike)
    log_slab = -0.5 * np.square(values / slab) - np.log(slab)
    with np.errstate(divide="ignore"):
        if beta is None:
            prior = np.where(states == 1, np.log(pi), np.log1p(-pi)).sum(axis=1)
        else:
            k = states.sum(axis=1)
            prior = betaln(beta[0] + k, beta[1] + len(pi) - k) - betaln(*beta)
    joint = log_spike.sum(axis=1)[:, None] + (log_slab - log_spike) @ states.T + prior
    top = joint.max(axis=1, keepdims=True)
    each = np.exp(joint - top)
    total = each.sum(axis=1, keepdims=True)
    weighted.log_weight = weighted.log_weight + top[:, 0] + np.log(total[:, 0])
    probabilities, errors = weighted.mean(each / total)
    return states, probabilities, errors, weighted


def laplace_posterior(rows, *, rate, diagonal_rate, draws, seed, **kwargs):
    """Weighted draws from the posterior under the graphical-lasso prior."""
    rng = np.random.default_rng(seed)
    weighted = likelihood_draws(rows, diagonal_rate, draws, rng, **kwargs)
    upper = np.triu_indices(weighted.precision.shape[-1], 1)
    values = weighted.precision[:, upper[0], upper[1]]
    weighted.log_weight = weighted.log_weight - (
        np.broadcast_to(rate, values.shape) * abs(values)
    ).sum(1)
    return weighted


def moments(precision):
    """Elements, squares and log determinants of precision matrices, (N, k)."""
    upper = np.triu_indices(precision.shape[-1])
    elements = precision[..., upper[0], upper[1]]
    log_det = np.linalg.slogdet(precision)[1]
    return np.concatenate([elements, elements**2, log_det[..., None]], axis=-1)
