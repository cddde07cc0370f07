"""All classes of binary feature matrices of a few rows, and their exact posterior."""

import itertools

import numpy as np

from bayesstruct.features.kernels import indian_buffet as buffet
from bayesstruct.features.kernels.latent_features import log_likelihood


def histories(n):
    """Columns of n entries that are not empty, the largest binary number first."""
    return list(itertools.product((1, 0), repeat=n))[:-1]


def counts(matrix):
    """Number of columns of each history; empty columns do not count."""
    columns = [tuple(column) for column in matrix.T]
    return tuple(columns.count(h) for h in histories(len(matrix)))


def classes(n, most):
    """All classes of matrices with up to so many columns, by their counts."""
    columns = np.array(histories(n))
    for size in range(most + 1):
        for chosen in itertools.combinations_with_replacement(range(len(columns)), size):
            number = np.bincount(chosen, minlength=len(columns)) if chosen else [0] * len(columns)
            yield tuple(int(v) for v in number), columns[list(chosen)].reshape(-1, n).T


def posterior(x, alpha, noise, scale, most, process=(1.0, 0.0)):
    """Exact posterior of the classes, by their counts."""
    return posterior_of(
        lambda matrix: log_likelihood(matrix, x, noise, scale), len(x), alpha, most, process
    )


def posterior_of(log_density, n, alpha, most, process=(1.0, 0.0)):
    """Exact posterior of the classes, given the log density of the table."""
    logs = {
        key: buffet.log_buffet(m, alpha, *process) + log_density(m) for key, m in classes(n, most)
    }
    top = max(logs.values())
    weights = {k: np.exp(v - top) for k, v in logs.items()}
    total = sum(weights.values())
    return {k: w / total for k, w in weights.items()}


def log_density_of_cells(matrix, x, noise, scale):
    """Log density of the cells of a table that are not NaN, column by column."""
    return sum(
        log_likelihood(matrix[seen], column[seen, None], noise, scale)
        for column, seen in zip(x.T, ~np.isnan(x.T), strict=True)
    )


def distance(chain, exact):
    """Total variation between visited classes and their probabilities."""
    share = {}
    for key in chain:
        share[key] = share.get(key, 0) + 1 / len(chain)
    return 0.5 * sum(abs(share.get(k, 0) - exact.get(k, 0)) for k in {*share, *exact})


def coarse_distance(chain, exact, most=200):
    """The same over the most probable classes, all others taken as one."""
    top = set(sorted(exact, key=exact.get, reverse=True)[:most])
    merged = {k: p for k, p in exact.items() if k in top} | {
        "other": sum(p for k, p in exact.items() if k not in top)
    }
    return distance([k if k in top else "other" for k in chain], merged)


def two_features(n=60, seed=0):
    """Two features with loadings far apart."""
    rng = np.random.default_rng(seed)
    z = rng.random((n, 2)) < 0.5
    loading = np.array([[3.0, 0, 3, 0, 3], [0, 4, 4, 0, 0]])
    return z @ loading + 0.3 * rng.standard_normal((n, 5)), z
