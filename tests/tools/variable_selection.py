"""Exact posteriors over the subsets of the predictors of small regressions."""

import numpy as np

from scipy import special, stats
from tools.enumeration import binary_states


def prior_log_probabilities(states, inclusion):
    """Log prior probability of each subset; zero and one inclusion probabilities are allowed."""
    q = np.broadcast_to(inclusion, (states.shape[1],))
    with np.errstate(divide="ignore"):
        terms = np.where(states == 1, np.log(q), np.log1p(-q))
    return terms.sum(axis=1)


def gaussian_subsets(X, y, *, inclusion, slab, noise):
    """Posterior over subsets, and of the coefficients, under normal slabs.

    Parameters
    ----------
    X, y : (n, p), (n,) arrays
    inclusion, slab : (p,) arrays
        Probabilities, and variances.
    noise : float or (n,) array
        Standard deviations.

    Returns
    -------
    states : (2**p, p)
    probabilities : (2**p,)
    first, second : (p,)
        Posterior means of the coefficients and of their squares.
    """
    n, p = X.shape
    states = binary_states(p)
    covariance = np.diag(np.broadcast_to(noise, (n,)) ** 2)
    logs = prior_log_probabilities(states, inclusion)
    means, squares = np.zeros((len(states), p)), np.zeros((len(states), p))
    for k, state in enumerate(states):
        at = np.nonzero(state)[0]
        marginal = covariance + (X[:, at] * slab[at]) @ X[:, at].T
        gain = np.linalg.solve(marginal, X[:, at] * slab[at])  # (n, |at|)
        logs[k] -= 0.5 * (np.linalg.slogdet(marginal)[1] + y @ np.linalg.solve(marginal, y))
        means[k, at] = gain.T @ y
        spread = slab[at] - np.einsum("ij,ij->j", gain, X[:, at] * slab[at])
        squares[k, at] = means[k, at] ** 2 + spread
    probabilities = np.exp(logs - special.logsumexp(logs))
    return states, probabilities, probabilities @ means, probabilities @ squares


def logistic_subsets(X, y, *, inclusion, slab, offset, draws=2000, seed=0):
    """Posterior over subsets of a logistic regression with normal slabs, by importance sampling.

    The marginal likelihood of each subset is estimated with a Student-t proposal (7 degrees of
    freedom) around the mode.

    Returns
    -------
    states, probabilities, errors
        The last are standard errors of the probabilities.
    """
    rng = np.random.default_rng(seed)
    p = X.shape[1]
    states = binary_states(p)
    logs, relative = prior_log_probabilities(states, inclusion), np.zeros(len(states))
    for k, state in enumerate(states):
        if np.isfinite(logs[k]):
            at = np.nonzero(state)[0]
            value, relative[k] = _log_evidence(rng, X[:, at], y, slab[at], offset, draws)
            logs[k] += value
    probabilities = np.exp(logs - special.logsumexp(logs))
    # Delta method: dP_k = P_k (e_k - sum_l P_l e_l) with independent relative errors e.
    own = (probabilities * relative) ** 2
    errors = probabilities * np.sqrt(relative**2 * (1 - 2 * probabilities) + own.sum())
    return states, probabilities, errors


def exchanges_always_accepted(right):
    """Wrong sweep: it exchanges an active with an inactive predictor after each right one, without an acceptance ratio."""

    def broken(rng, w, *args):
        right(rng, w, *args)
        active, rest = np.nonzero(w)[0], np.nonzero(w == 0)[0]
        if len(active) and len(rest):
            i, j = rng.choice(active), rng.choice(rest)
            w[i], w[j] = w[j], w[i]

    return broken


def _log_evidence(rng, X, y, slab, offset, draws):
    """Log marginal likelihood and the relative standard error of its exponential."""
    k = X.shape[1]
    if k == 0:
        return _log_likelihood(np.full(len(y), offset, float)[None], y)[0], 0.0
    mode = np.zeros(k)
    for _ in range(50):
        q = special.expit(offset + X @ mode)
        hessian = (X.T * (q * (1 - q))) @ X + np.diag(1 / slab)
        step = np.linalg.solve(hessian, X.T @ (y - q) - mode / slab)
        mode += step
        if np.abs(step).max() < 1e-10:
            break
    proposal = stats.multivariate_t(mode, np.linalg.inv(hessian), df=7, seed=rng)
    w = proposal.rvs(draws).reshape(draws, k)
    logs = _log_likelihood(offset + w @ X.T, y) - proposal.logpdf(w)
    logs += stats.norm.logpdf(w, scale=np.sqrt(slab)).sum(axis=1)
    top = logs.max()
    ratios = np.exp(logs - top)
    mean = ratios.mean()
    return top + np.log(mean), ratios.std() / mean / np.sqrt(draws)


def _log_likelihood(eta, y):
    return (y * eta - np.logaddexp(0.0, eta)).sum(axis=-1)
