r"""Bayes factors of arcs between columns of several kinds that are independent in the table.

With coefficients :math:`\beta` of the features of the parent, prior covariance S and their information J at :math:`\beta = 0`, where they are
orthogonal to the other parameters, the evidence with the parent over that without is :math:`|I + S J|^{-1/2}` (Savage and Dickey's ratio
with a normal approximation; exact for normal noise), times the ratio of the priors of the noise scale, whose shape depends on the number of features.
"""

import math

import numpy as np

from bayesstruct.networks.kernels.mixed_layout import MixedLayout

__all__ = ["log_mixed_factor"]


def log_mixed_factor(
    layout: MixedLayout,
    x: np.ndarray,
    parent: int,
    child: int,
    scale: float,
    degrees: float = math.inf,
) -> float:
    """Logarithm of the Bayes factor of an arc whose ends are independent in the table, without other parents.

    Parameters
    ----------
    layout : MixedLayout
    x : (n, d) ndarray of float
        Rows in which the child was not set: standardised numbers, and states 0, 1, ...
    parent, child : int
    scale : float
        Standard deviation of coefficients.
    degrees : float
        Degrees of freedom of the child, if its family is ``"student"``.
    """
    from bayesstruct.networks.kernels.mixed_rows import prior_factor

    if not len(x):
        return 0.0
    features = layout.features(x[:, parent], parent)
    total = features.sum(axis=1)
    # The prior of the intercept of numbers is worth a row.
    scatter = features @ features.T - np.outer(total, total) / (len(x) + layout.is_number(child))
    information = np.kron(_information(layout, x[:, child], child, degrees), scatter)
    factor = prior_factor(layout, child, np.arange(layout.d) == parent, scale)
    intercept = layout.families[child] != "ordinal"
    kept = np.tile(np.arange(len(features) + intercept) >= intercept, layout.outputs(child))
    covariance = (factor @ factor.T)[np.ix_(kept, kept)]
    _, log_det = np.linalg.slogdet(np.eye(len(covariance)) + covariance @ information)
    if not layout.is_number(child):
        return -0.5 * log_det
    return -0.5 * log_det + _noise_ratio(layout, x[:, child], child, len(features))


def _information(layout, y, i, degrees):
    """Information of one row about the linear predictors of a column without parents, (outputs, outputs)."""
    from scipy.special import logit, ndtri
    from scipy.stats import norm

    family = layout.families[i]
    if layout.is_number(i):
        student = 1.0
        if np.isfinite(degrees):
            student = degrees * (degrees + 1.0) / ((degrees + 3.0) * (degrees - 2.0))
        return np.array([[{"normal": 1.0, "laplace": 2.0, "student": student}[family]]])
    # Half a row more of each state keeps the shares from zero where a column was set.
    counts = np.bincount(y.astype(int), minlength=layout.states[i]) + 0.5 * (
        len(np.unique(y)) < layout.states[i]
    )
    p = counts / counts.sum()
    if family == "multinomial":
        return np.diag(p[1:]) - np.outer(p[1:], p[1:])
    if family == "ordinal":
        cut = logit(np.cumsum(p)[:-1])
        density = np.concatenate([[0.0], 1.0 / (2.0 + 2.0 * np.cosh(cut)), [0.0]])
        return np.array([[(np.diff(density) ** 2 / p).sum()]])
    slope = {
        "logistic": p[0] * p[1],
        "probit": norm.pdf(ndtri(p[1])),
        "cloglog": -p[0] * np.log(p[0]),
    }
    return np.array([[slope[family] ** 2 / (p[0] * p[1])]])


def _noise_ratio(layout, y, i, q):
    """Change of the evidence by the prior of the noise variance, whose shape is that of q more features."""
    from scipy.special import gammaln

    from bayesstruct.networks.kernels.scores.mixed_noise import NOISE_RATE

    first, more = np.array([1.5, 1.5 + 0.5 * q]), 0.0
    if layout.families[i] == "normal":
        n = len(y)
        rate = NOISE_RATE + 0.5 * (y @ y - y.sum() ** 2 / (n + 1.0))
        log_variance = np.log(rate)
        more = gammaln(first + 0.5 * n)
    elif layout.families[i] == "laplace":
        log_variance = np.log(2.0 * abs(y - np.median(y)).mean() ** 2)
    else:
        log_variance = np.log(y.var())
    logs = first * (np.log(NOISE_RATE) - log_variance) - gammaln(first) + more
    return float(logs[1] - logs[0])
