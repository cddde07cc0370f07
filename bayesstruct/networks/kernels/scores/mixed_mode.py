"""Modes of the parameters of a family and the Laplace approximation of its evidence; exact evidence with normal noise."""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.core.special import LOG_2PI
from bayesstruct.networks.kernels.scores.mixed_families import LAPLACE, evaluate
from bayesstruct.networks.kernels.scores.mixed_noise import NOISE_RATE
from bayesstruct.networks.kernels.scores.mixed_sums import total_of, weighted

__all__ = ["find_mode", "normal_evidence"]

_STEPS = 200
_PROMISE = 1e-8


@inner
def factorise(a, factor):
    """Cholesky factor of a matrix; whether it is positive definite."""
    k = len(a)
    for j in range(k):
        for i in range(j, k):
            total = a[i, j]
            for m in range(j):
                total -= factor[i, m] * factor[j, m]
            if i == j:
                if not total > 0.0:
                    return False
                factor[j, j] = math.sqrt(total)
            else:
                factor[i, j] = total / factor[j, j]
                factor[j, i] = 0.0
    return True


@inner
def _solve(factor, vector):
    """Solve with a Cholesky factor, in place."""
    k = len(vector)
    for i in range(k):
        for j in range(i):
            vector[i] -= factor[i, j] * vector[j]
        vector[i] /= factor[i, i]
    for i in range(k - 1, -1, -1):
        for j in range(i + 1, k):
            vector[i] -= factor[j, i] * vector[j]
        vector[i] /= factor[i, i]


@inner
def _factorise_damped(hess, factor, damping):
    """Factorise a matrix with so much added to its diagonal that it is positive definite; return how much in the last step."""
    while True:
        if damping > 0.0:
            for a in range(len(hess)):
                hess[a, a] += damping
        if factorise(hess, factor):
            return damping
        damping = 4.0 * damping if damping > 0.0 else 1e-2


@kernel
def find_mode(
    code, states, y, x, columns, precision, log_det, delta, theta, work, grad, hess, factor
):
    """Climb to a mode by damped Newton steps; return the Laplace approximation of the log evidence.

    The parameters are those of :func:`evaluate`; `theta` is the start and becomes the mode, and `factor`, (k, k), the Cholesky
    factor of minus the second derivatives there.
    """
    k = len(theta)
    step, trial = np.empty(k), np.empty(k)
    args = code, states, y, x, columns, precision, log_det, delta
    value = evaluate(*args, theta, True, work, grad, hess)
    damping, ready = 0.0, False
    for _ in range(_STEPS):
        damping = _factorise_damped(hess, factor, damping)
        step[:] = grad
        _solve(factor, step)
        promise = 0.0
        for a in range(k):
            promise += grad[a] * step[a]
        if not promise > _PROMISE:
            ready = damping == 0.0  # the factor is that of the second derivatives
            break
        length, reached = 1.0, -np.inf
        while length > 1e-8:
            trial[:] = theta + length * step
            reached = evaluate(*args, trial, True, work, grad, hess)
            if reached >= value + 1e-4 * length * promise:
                break
            length *= 0.4
        if not length > 1e-8:
            break
        theta[:] = trial
        value = reached
        damping = 0.0 if damping < 1e-2 else 0.25 * damping
    if not ready:
        value = evaluate(*args, theta, True, work, grad, hess)
        _factorise_damped(hess, factor, 0.0)
    if code == LAPLACE:
        value = evaluate(*args[:7], 0.0, theta, False, work, grad, hess)
    out = value + 0.5 * k * LOG_2PI
    for a in range(k):
        out -= math.log(factor[a, a])
    return out


@kernel
def normal_evidence(y, x, columns, precision, log_det, factor, mean):
    """Log evidence of a column with normal noise; shape and rate of its variance given the rows.

    Parameters
    ----------
    y, x, columns, precision, log_det
        As of :func:`evaluate`.
    factor : (k, k) float64
        Becomes the Cholesky factor of the precision of the coefficients divided by the noise.
    mean : (k,) float64
        Becomes their mean.

    Returns
    -------
    float, float, float
    """
    k, n = len(mean), len(y)
    gram = precision.copy()
    for a in range(k):
        left = x[columns[a - 1]] if a > 0 else y
        mean[a] = total_of(y) if a == 0 else weighted(left, y)
        for b in range(a + 1):
            if a == 0:
                gram[0, 0] += n
            else:
                gram[a, b] += total_of(left) if b == 0 else weighted(left, x[columns[b - 1]])
    push = mean.copy()
    factorise(gram, factor)
    _solve(factor, mean)
    rate = NOISE_RATE + 0.5 * weighted(y, y)
    for a in range(k):
        rate -= 0.5 * push[a] * mean[a]
    shape = 0.5 * (3.0 + k - 1.0)
    out = shape * math.log(NOISE_RATE) - math.lgamma(shape) + 0.5 * log_det - 0.5 * n * LOG_2PI
    shape += 0.5 * n
    rate = max(rate, 1e-300)
    out += math.lgamma(shape) - shape * math.log(rate)
    for a in range(k):
        out -= math.log(factor[a, a])
    return out, shape, rate
