"""Exact posterior of the behaviours of short series: all paths of all series, all else summed out."""

import functools
import itertools
import math

import numpy as np

from scipy import special, stats
from tools.buffets import classes

from bayesstruct.features.kernels import indian_buffet as buffet
from bayesstruct.series.kernels.behaviours import BehaviourPrior

__all__ = [
    "PRIOR",
    "SMALL",
    "SMALL_STARTS",
    "exact_posterior",
    "full_prior",
    "path_density",
    "paths_of",
]

#: gamma, kappa; tau, shape and rate of the variances.
PRIOR = (0.8, 1.5, 1.2, 2.0, 0.6)
#: Two series of two rows.
SMALL, SMALL_STARTS = np.array([[1.6], [-0.9], [-1.4], [1.5]]), np.array([0, 2, 4])


def full_prior(n, alpha, prior=PRIOR, process=(1.0, 0.0)):
    """Parameters of all priors, as the kernels take them."""
    return BehaviourPrior(float(alpha * buffet.new_dish_rates(n, *process)[-1]), *process, *prior)


def paths_of(n, own):
    """All sequences of n states."""
    return itertools.product(own, repeat=n)


def path_density(path, p, own):
    """Probability of a path from a uniform start."""
    return math.prod(p[a, b] for a, b in itertools.pairwise(path)) / len(own)


def log_marginal(values, prior=PRIOR):
    """Log density of values of one behaviour, the mean summed out, the variance by quadrature."""
    values = np.array([v for v in values if not np.isnan(v)])
    n, (_, _, tau, shape, rate) = len(values), prior
    u = np.linspace(-9, 9, 4001)
    variance = np.exp(u)
    wide = variance + n * tau**2
    square = (values @ values - tau**2 * values.sum() ** 2 / wide) / variance
    logs = -0.5 * (n * np.log(2 * np.pi) + (n - 1) * u + np.log(wide) + square) if n else 0.0
    prior = stats.invgamma(shape, scale=rate).logpdf(variance) + u
    return special.logsumexp(logs + prior) + math.log(u[1] - u[0])


def exact_posterior(x, starts, alpha, most, prior=PRIOR):
    """Posterior of the classes by all paths of all series, everything else summed out."""
    marginal = functools.cache(lambda rows: log_marginal(x[list(rows), 0], prior))
    gamma, kappa = prior[:2]

    def log_path(path, own):
        """Log probability of a path, transitions summed out."""
        out = -math.log(len(own))
        seen = dict.fromkeys(itertools.product(own, own), 0)
        for step in itertools.pairwise(path):
            seen[step] += 1
        for a in own:
            number = sum(seen[a, b] for b in own)
            total = len(own) * gamma + kappa
            out += special.gammaln(total) - special.gammaln(total + number)
            for b in own:
                prior = gamma + kappa * (a == b)
                out += special.gammaln(prior + seen[a, b]) - special.gammaln(prior)
        return out

    def log_density(z):
        options = []
        for i, (a, b) in enumerate(itertools.pairwise(starts)):
            own = np.flatnonzero(z[i]).tolist()
            options.append([(p, log_path(p, own)) for p in paths_of(b - a, own)])
        logs = []
        for chosen in itertools.product(*options):
            states = np.concatenate([p for p, _ in chosen])
            logs.append(
                sum(log for _, log in chosen)
                + sum(marginal(tuple(np.flatnonzero(states == k))) for k in set(states.tolist()))
            )
        return special.logsumexp(logs)

    logs = {
        key: buffet.log_buffet(z, alpha) + log_density(z)
        for key, z in classes(len(starts) - 1, most)
        if z.any(axis=1).all()
    }
    total = special.logsumexp(list(logs.values()))
    return {key: math.exp(v - total) for key, v in logs.items()}
