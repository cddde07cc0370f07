"""Splits and merges of sparse factors, their loadings summed out.

See :mod:`bayesstruct.features.kernels.sparse_factors` for the model.
"""

import math

import numpy as np

from bayesstruct.features.kernels.factor_loadings import normal_equations
from bayesstruct.features.kernels.indian_buffet import column_weights

__all__ = ["log_scores", "split_or_merge"]

_LOG_2PI = math.log(2.0 * math.pi)
#: Probabilities that a row of a factor that is split goes to the first, to the second, to both.
_PARTS = np.array([0.45, 0.45, 0.1])


def split_or_merge(
    rng: np.random.Generator,
    w: np.ndarray,
    x: np.ndarray,
    precision: np.ndarray,
    scale: float,
    process: tuple[float, float, float],
    laplace: bool,
) -> np.ndarray:
    r"""Propose to make one factor of two, or two of one, the loadings summed out.

    Two factors become one with the sum, or the difference, of their scores. In a split each row of the
    factor goes to the first, to the second or to both; there a normal variable says how unequal the two
    scores are. The change of variables :math:`(w_k, w_l) \to (w_k \pm w_l, (w_k \mp w_l) / 2)` has the
    Jacobian one.

    Parameters
    ----------
    rng : numpy.random.Generator
    w : (n, k) float64
        Scores of the factors that are used.
    x : (n, d) float64
    precision : (n, d) float64
    scale : float
    process : tuple of float
        alpha, concentration, discount.
    laplace : bool

    Returns
    -------
    (n, k - 1), (n, k) or (n, k + 1) ndarray
        Scores afterwards.
    """
    k = w.shape[1]
    merges = rng.random() < 0.5
    if k < 1 + merges:
        return w
    sign = 1.0 if rng.random() < 0.5 else -1.0
    proposal, log_ratio = (_merged if merges else _split)(rng, w, sign)
    log_ratio += log_scores(proposal, x, precision, scale, process, laplace)
    log_ratio -= log_scores(w, x, precision, scale, process, laplace)
    return proposal if rng.standard_exponential() > -log_ratio else w


def _merged(rng, w, sign):
    """Scores after a merge, and the log of the proposal back over that there."""
    k = w.shape[1]
    a, b = rng.choice(k, 2, replace=False)
    new = w[:, a] + sign * w[:, b]
    out = np.column_stack([np.delete(w, [a, b], axis=1), new])
    return out, np.log(k) + _log_assignment(w[:, a], sign * w[:, b])


def _split(rng, w, sign):
    """Scores after a split, and the log of the proposal back over that there."""
    k = w.shape[1]
    a = rng.integers(k)
    has = w[:, a] != 0.0
    part = rng.choice(3, len(w), p=_PARTS)
    half = np.where(part == 2, rng.standard_normal(len(w)), 0.0)
    first = np.where(has, np.choose(part, [w[:, a], 0.0, 0.5 * w[:, a] + half]), 0.0)
    second = np.where(has, np.choose(part, [0.0, w[:, a], 0.5 * w[:, a] - half]), 0.0)
    out = np.column_stack([np.delete(w, a, axis=1), first, sign * second])
    if not (first.any() and second.any()):
        return w, -np.inf  # not a split
    return out, -np.log(k + 1) - _log_assignment(first, second)


def _log_assignment(first, second):
    """Log density of this split of their sum."""
    both = (first != 0.0) & (second != 0.0)
    number = np.array([np.count_nonzero(v) for v in (first, second, both)])
    unequal = 0.5 * (first - second)[both]
    return (
        (number[:2] - number[2]) @ np.log(_PARTS[:2])
        + number[2] * (np.log(_PARTS[2]) - 0.5 * _LOG_2PI)
        - 0.5 * (unequal**2).sum()
    )


def log_scores(
    w: np.ndarray,
    x: np.ndarray,
    precision: np.ndarray,
    scale: float,
    process: tuple[float, float, float],
    laplace: bool,
) -> float:
    """Log density of table and scores, the loadings summed out, up to what does not depend on the scores.

    Parameters
    ----------
    w : (n, k) float64
        Each column has a score that is not zero; columns are a set, in no order.
    x, precision : (n, d) float64
    scale : float
    process : tuple of float
        alpha, concentration, discount.
    laplace : bool
    """
    alpha, concentration, discount = process
    (n, k), scores = w.shape, w[w != 0.0]
    size = np.abs(scores).sum() if laplace else 0.5 * (scores**2).sum()
    front = np.log(2.0) if laplace else 0.5 * _LOG_2PI
    sums = np.count_nonzero(w, axis=0)
    prior = k * np.log(alpha) + column_weights(sums, n, concentration, discount).sum()
    weighted, slope = normal_equations(w, x, precision, scale)
    factor = np.linalg.cholesky(weighted)
    half = np.linalg.solve(factor, slope)
    spread = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum() + k * x.shape[1] * np.log(scale)
    return float(prior - size - len(scores) * front + 0.5 * (half**2).sum() - spread)
