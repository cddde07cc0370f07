"""Columns of numbers with noise that is not normal: log likelihood by rows, prior of noise scale and degrees of freedom."""

import math

import numpy as np

from bayesstruct.core.jit import inner

__all__ = ["NOISE_RATE", "noise_prior", "noise_rows"]

#: Rate of the prior of noise variances.
NOISE_RATE = 0.25
_FARTHEST = 30.0  # logarithms of noise scale and degrees of freedom beyond have density zero


@inner
def digamma(x):
    """Return the derivative of the logarithm of the gamma function, x > 0."""
    out = 0.0
    while x < 8.0:
        out -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r / 132))))
    return out + math.log(x) - 0.5 / x - series


@inner
def trigamma(x):
    """Return the second derivative of the logarithm of the gamma function, x > 0."""
    out = 0.0
    while x < 8.0:
        out += 1.0 / (x * x)
        x += 1.0
    r = 1.0 / (x * x)
    series = 1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * 5 / 66)))
    return out + 1.0 / x + 0.5 * r + series * r / x


@inner
def noise_rows(student, y, eta, log_s, log_g, delta, slope, curve):
    """Log likelihood of numbers; derivatives by rows.

    Rows of `slope`: predictor, log s, log g. Rows of `curve`: pairs (0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2).
    """
    if not (abs(log_s) < _FARTHEST and abs(log_g) < _FARTHEST):
        return -np.inf  # a step of a climb that is too long
    n, inverse = len(y), math.exp(-log_s)
    value = -n * log_s
    if student:
        g = math.exp(log_g)
        constant = (
            math.lgamma(0.5 * (g + 3.0))
            - math.lgamma(0.5 * (g + 2.0))
            - 0.5 * math.log(math.pi * g)
        )
        first = 0.5 * (digamma(0.5 * (g + 3.0)) - digamma(0.5 * (g + 2.0))) - 0.5 / g
        second = 0.25 * (trigamma(0.5 * (g + 3.0)) - trigamma(0.5 * (g + 2.0))) + 0.5 / (g * g)
        value += n * constant
        for m in range(n):
            z = y[m] * inverse
            e = z - eta[m]
            square = e * e
            spread = g + square
            log_term = math.log1p(square / g)
            value -= 0.5 * (g + 3.0) * log_term
            d1 = -(g + 3.0) * e / spread
            d2 = -(g + 3.0) * (g - square) / (spread * spread)
            f_g = first - 0.5 * log_term + 0.5 * (g + 3.0) * square / (g * spread)
            f_gg = second + square / (g * spread)
            f_gg -= 0.5 * (g + 3.0) * square * (g + spread) / (g * g * spread * spread)
            f_eu = g * e * (3.0 - square) / (spread * spread)
            slope[0, m] = -d1
            slope[1, m] = -1.0 - d1 * z
            slope[2, m] = g * f_g
            curve[0, m] = -d2
            curve[1, m] = -d2 * z
            curve[2, m] = -(d2 * z * z + d1 * z)
            curve[3, m] = f_eu
            curve[4, m] = f_eu * z
            curve[5, m] = -(g * g * f_gg + g * f_g)
        return value
    root2 = math.sqrt(2.0)
    value -= 0.5 * n * math.log(2.0)
    for m in range(n):
        z = y[m] * inverse
        e = z - eta[m]
        if delta > 0.0:
            size = math.sqrt(e * e + delta * delta)
            value -= root2 * (size - delta)
            d1 = -root2 * e / size
            d2 = -root2 * delta * delta / (size * size * size)
        else:
            value -= root2 * abs(e)
            d1 = -root2 if e > 0 else root2
            d2 = 0.0
        slope[0, m] = -d1
        slope[1, m] = -1.0 - d1 * z
        curve[0, m] = -d2
        curve[1, m] = -d2 * z
        curve[2, m] = -(d2 * z * z + d1 * z)
    return value


@inner
def noise_prior(student, theta, at, q, grad, hess):
    """Log prior of noise scale and degrees of freedom, for `q` features of parents; derivatives are added."""
    shape = 0.5 * (3.0 + q)
    tail = NOISE_RATE * math.exp(-2.0 * theta[at])
    value = shape * math.log(NOISE_RATE) - math.lgamma(shape) + math.log(2.0)
    value += -2.0 * shape * theta[at] - tail
    grad[at] += -2.0 * shape + 2.0 * tail
    hess[at, at] += 4.0 * tail
    if student:
        g = math.exp(theta[at + 1])
        value += 2.0 * math.log(0.1) + 2.0 * theta[at + 1] - 0.1 * g
        grad[at + 1] += 2.0 - 0.1 * g
        hess[at + 1, at + 1] += 0.1 * g
    return value
