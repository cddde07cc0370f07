"""Columns of ordered states: log likelihood and prior of the thresholds of a cumulative logistic regression."""

import math

import numpy as np

from bayesstruct.core.jit import inner
from bayesstruct.networks.kernels.scores.mixed_sums import weighted, weighted_pair

__all__ = ["ordinal_density"]


@inner
def sigmoid(x):
    """Return the logistic function."""
    tail = math.exp(-abs(x))
    return 1.0 / (1.0 + tail) if x > 0 else tail / (1.0 + tail)


@inner
def log_sigmoid(x):
    """Return the logarithm of the logistic function."""
    return min(x, 0.0) - math.log1p(math.exp(-abs(x)))


@inner
def _thresholds(theta, q, cut, step):
    """Write the thresholds, and the steps between them."""
    cut[0], step[0] = theta[q], 1.0
    for k in range(1, len(cut)):
        step[k] = math.exp(theta[q + k])
        cut[k] = cut[k - 1] + step[k]


@inner
def _rows(y, cut, eta, slope, curve, by_cut, weight):
    """Log likelihood but for the steps; derivatives in the predictor by rows, and in the thresholds are added."""
    value = 0.0
    for m in range(len(y)):
        own = int(y[m])
        slope[m] = 0.0
        curve[m] = 0.0
        for k in range(max(own - 1, 0), min(own + 1, len(cut))):
            p = sigmoid(cut[k] - eta[m])
            # Below its upper threshold, k = own, and above the lower one.
            value += log_sigmoid(cut[k] - eta[m] if k == own else eta[m] - cut[k])
            first = 1.0 - p if k == own else -p
            slope[m] -= first
            by_cut[k] += first
            curve[m] += p * (1.0 - p)
            weight[k] += p * (1.0 - p)
    return value


@inner
def _cross(y, x, columns, cut, eta, out):
    """Write sums of features with second derivatives in predictor and threshold."""
    out[:] = 0.0
    for m in range(len(y)):
        own = int(y[m])
        for k in range(max(own - 1, 0), min(own + 1, len(cut))):
            p = sigmoid(cut[k] - eta[m])
            for a in range(len(columns)):
                out[k, a] += p * (1.0 - p) * x[columns[a], m]


@inner
def _prior(cut, by_cut, weight):
    """Log density of thresholds of uniform probabilities, but for a constant; derivatives are added."""
    value = 0.0
    for k in range(len(cut)):
        p = sigmoid(cut[k])
        value += log_sigmoid(cut[k]) + log_sigmoid(-cut[k])
        by_cut[k] += 1.0 - 2.0 * p
        weight[k] += 2.0 * p * (1.0 - p)
    return value


@inner
def _steps(y, q, step, theta, grad, hess):
    """Log(1 - exp(-step)) for each row between two thresholds, and the Jacobian; derivatives are added."""
    value, count = 0.0, np.zeros(len(step) + 1)
    for m in range(len(y)):
        count[int(y[m])] += 1.0
    for k in range(1, len(step)):
        short = -math.expm1(-step[k])
        value += count[k] * math.log(short) + theta[q + k]
        t = step[k] * (1.0 - short) / short
        grad[q + k] += count[k] * t + 1.0
        hess[q + k, q + k] -= count[k] * t * (1.0 - step[k] - t)
    return value


@inner
def _to_steps(q, step, by_cut, weight, cross, grad, hess):
    """Add derivatives in the first threshold and the logarithms of the steps: cut k moves by step[m], m <= k."""
    for m in range(len(step)):
        later = by_cut[m:].sum()
        grad[q + m] += step[m] * later
        if m > 0:
            hess[q + m, q + m] -= step[m] * later
        for a in range(q):
            hess[q + m, a] -= step[m] * cross[m:, a].sum()
        for r in range(m + 1):
            hess[q + m, q + r] += step[m] * step[r] * weight[m:].sum()


@inner
def ordinal_density(y, states, x, columns, theta, eta, derive, work, grad, hess):
    """Log likelihood and log prior of the thresholds of ordered states; derivatives are added.

    A probability is sigmoid(high - eta) sigmoid(eta - low) (1 - exp(low - high)).
    """
    q, cuts, n = len(columns), states - 1, len(y)
    cut, step = np.empty(cuts), np.empty(cuts)
    by_cut, weight, cross = np.zeros(cuts), np.zeros(cuts), np.empty((cuts, q))
    slope, curve = work[0, :n], work[1, :n]
    _thresholds(theta, q, cut, step)
    value = math.lgamma(float(states)) + _prior(cut, by_cut, weight)
    value += _rows(y, cut, eta, slope, curve, by_cut, weight)
    value += _steps(y, q, step, theta, grad, hess)
    if derive:
        for a in range(q):
            row = x[columns[a]]
            grad[a] += weighted(row, slope)
            for b in range(a + 1):
                hess[a, b] += weighted_pair(row, x[columns[b]], curve)
        _cross(y, x, columns, cut, eta, cross)
        _to_steps(q, step, by_cut, weight, cross, grad, hess)
    return value
