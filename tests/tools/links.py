"""Exact posteriors of latent features of pairs of objects, the weights summed out."""

import itertools

import numpy as np

from scipy.special import erfcx, expit, log_ndtr
from tools.buffets import classes

from bayesstruct.features.kernels.indian_buffet import log_buffet

__all__ = ["exact_posterior", "log_marginal"]


def _design(z, u, source, target, kind):
    """What each weight is multiplied with in the predictor of each pair."""
    left, right = z[source].astype(float), u[target].astype(float)
    if kind == "diagonal":
        return left * right
    products = left[:, :, None] * right[:, None, :]
    if kind == "full":
        return products.reshape(len(source), -1)
    both = products + np.swapaxes(products, 1, 2)
    rows, columns = np.tril_indices(z.shape[1], -1)
    own = np.arange(z.shape[1])
    return np.concatenate([products[:, own, own], both[:, rows, columns]], axis=1)


def log_marginal(design, y, *, bias, scale, likelihood, noise=1.0, nodes=24):
    """Log density of the responses given the features.

    Weights are normal, half-normal for the likelihood "noisy_or". Normal responses have a closed form; 0/1 ones
    take Gauss-Hermite quadrature over the predictors, or sums over subsets of the ones.
    """
    if likelihood == "noisy_or":
        return np.log(_noisy_or(design, y, bias, scale))
    covariance = scale**2 * design @ design.T
    if likelihood == "normal":
        covariance = covariance + noise**2 * np.eye(len(y))
        left = y - bias
        return -0.5 * (
            left @ np.linalg.solve(covariance, left)
            + np.linalg.slogdet(covariance)[1]
            + len(y) * np.log(2.0 * np.pi)
        )
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-12
    root = vectors[:, kept] * np.sqrt(values[kept])
    points, weight = np.polynomial.hermite_e.hermegauss(nodes)
    repeat = int(kept.sum())
    grid = np.array(list(itertools.product(points, repeat=repeat))).reshape(nodes**repeat, repeat)
    mass = np.array(list(itertools.product(weight / weight.sum(), repeat=repeat)))
    mass = mass.reshape(nodes**repeat, repeat).prod(axis=1)
    eta = bias + grid @ root.T
    sign = np.where(y > 0, 1.0, -1.0)
    log_p = np.log(expit(sign * eta)) if likelihood == "logistic" else log_ndtr(sign * eta)
    return np.log(mass @ np.exp(log_p.sum(axis=1)))


def _noisy_or(design, y, bias, scale):
    # The probability of a one is 1 - exp(-eta): multiplied out, each term is a Laplace transform.
    total, [ones] = 0.0, np.nonzero(y)
    for size in range(len(ones) + 1):
        for subset in itertools.combinations(ones, size):
            active = np.concatenate([np.nonzero(y == 0)[0], np.array(subset, int)])
            rates = design[active].sum(axis=0)
            transform = erfcx(rates * scale / np.sqrt(2.0)).prod()
            total += (-1.0) ** size * np.exp(-bias * len(active)) * transform
    return total


def exact_posterior(
    n, m, source, target, y, *, alphas, most, kind="full", process=(1.0, 0.0), **options
):
    """Probabilities of the classes of the features of one set (m is None) or two.

    Returns
    -------
    dict
        From `counts` of the features (see `tools.buffets`), or pairs of them, to probabilities.
    """
    logs, memory = {}, {}
    for own, z in classes(n, most):
        prior = log_buffet(z, alphas[0], *process)
        for its, u in [(own, z)] if m is None else classes(m, most):
            key = own if m is None else (own, its)
            design = _design(z, u, source, target, kind)
            again = np.sort(design, axis=1).tobytes() if kind == "diagonal" else None
            known = (design @ design.T).tobytes() if again is None else again
            if known not in memory:
                memory[known] = log_marginal(design, y, **options)
            logs[key] = (
                prior + memory[known] + (0.0 if m is None else log_buffet(u, alphas[1], *process))
            )
    top = max(logs.values())
    weights = {k: np.exp(v - top) for k, v in logs.items()}
    total = sum(weights.values())
    return {k: w / total for k, w in weights.items()}
