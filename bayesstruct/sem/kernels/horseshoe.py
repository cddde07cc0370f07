"""Scales of a horseshoe: their moments given a coefficient, on a grid."""

import math

import numpy as np

from bayesstruct.core.jit import vector_inner
from bayesstruct.sem.kernels.errors import log_one_plus_square

__all__ = ["log_normal", "scale_moments"]

_LAMBDAS = np.arange(-9.0, 9.01, 0.25)  # grid of log scales
_LOG_2PI = math.log(2.0 * math.pi)


@vector_inner
def scale_moments(gamma, variance, scale):
    """Mean and sd of a log scale given a coefficient known up to a variance, and log evidence."""
    high, total, mean, square = -np.inf, 0.0, 0.0, 0.0
    for log_lambda in _LAMBDAS:
        high = max(high, _scale_density(gamma, variance, scale, log_lambda))
    for log_lambda in _LAMBDAS:
        weight = math.exp(_scale_density(gamma, variance, scale, log_lambda) - high)
        total += weight
        mean += weight * log_lambda
        square += weight * log_lambda * log_lambda
    mean /= total
    sd = math.sqrt(max(square / total - mean * mean, 0.01))
    return mean, sd, high + math.log(total * (_LAMBDAS[1] - _LAMBDAS[0]))


@vector_inner
def log_normal(gamma, variance):
    """Log density of a normal distribution with mean 0."""
    return -0.5 * (_LOG_2PI + math.log(variance) + gamma * gamma / variance)


@vector_inner
def _scale_density(gamma, variance, scale, log_lambda):
    slab = (scale * math.exp(log_lambda)) ** 2
    prior = math.log(2.0 / math.pi) + log_lambda - log_one_plus_square(log_lambda)
    return log_normal(gamma, variance + slab) + prior
