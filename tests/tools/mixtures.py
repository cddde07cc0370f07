"""Densities of clustered rows by other means than the samplers have."""

import numpy as np

from scipy import stats
from tools.partitions import sizes

from bayesstruct.mixtures.kernels.chinese_restaurant import log_restaurant


def clusters(labels):
    """Which rows each cluster has."""
    return [labels == k for k in range(labels.max() + 1)]


def log_columns(x, strength, shape, rate):
    """Log density of rows of one cluster: each column has a multivariate Student distribution."""
    m = len(x)
    return sum(
        stats.multivariate_t(np.zeros(m), b / shape * (np.eye(m) + 1.0 / k), df=2 * shape).logpdf(
            column
        )
        for column, k, b in zip(x.T, strength, rate, strict=True)
    )


def log_regression(design, y, weight, shape, rate):
    """Log density of responses of one cluster: a multivariate Student distribution."""
    m = len(y)
    spread = np.eye(m) + design @ np.diag(1.0 / weight) @ design.T
    return stats.multivariate_t(np.zeros(m), rate / shape * spread, df=2 * shape).logpdf(y)


def log_glm(design, y, deviation, log_density, offset=0.0, nodes=60):
    """Log density of responses of one cluster by quadrature over two coefficients.

    ``offset`` is the linear predictor for the prior means of the coefficients.
    """
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    first, second = (a.ravel() for a in np.meshgrid(points, points))
    share = np.outer(weights, weights).ravel() / weights.sum() ** 2
    eta = offset + np.column_stack([first, second]) * deviation @ design.T
    return np.log(share @ np.exp(log_density(y, eta).sum(axis=1)))


def log_posterior(labels, alpha, log_cluster):
    """Log prior of a partition and the densities of its clusters."""
    density = sum(log_cluster(rows) for rows in clusters(labels))
    return log_restaurant(sizes(labels), alpha) + density
