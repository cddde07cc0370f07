"""Special functions for compiled code."""

import math

import numpy as np

from bayesstruct.core.jit import fused_inner, kernel

__all__ = ["LOG_2PI", "SQRT_HALF", "log_normal_cdf", "log_scaled_exp_integral", "vector_exp"]

SQRT_HALF = math.sqrt(0.5)


LOG_2PI = math.log(2.0 * math.pi)


@kernel
def log_normal_cdf(x):
    """Logarithm of the standard normal distribution function, accurate in the lower tail."""
    if x > -20.0:
        return math.log(0.5 * math.erfc(-x * SQRT_HALF))
    r = 1.0 / (x * x)
    series = 1.0 - r * (1.0 - 3.0 * r * (1.0 - 5.0 * r * (1.0 - 7.0 * r)))
    return -0.5 * x * x - math.log(-x) - 0.5 * LOG_2PI + math.log(series)


_EULER = 0.5772156649015329
#: Polynomial in x = 4 / (1 + z) - 1 that equals (1 + z) exp(z) E1(z) for z >= 1 within 7e-15: Chebyshev interpolation of its
#: continued fraction.
_TAIL = (
    1.048334961021272,
    0.09165852822696444,
    0.04391655958460721,
    0.004675499960636017,
    0.0035876714209518317,
    0.00010037853280045619,
    0.00041730769971014476,
    -5.436148082333195e-05,
    6.877900651821061e-05,
    -2.1867610647404342e-05,
    1.5626555650357505e-05,
    -7.230163484641582e-06,
    3.7422659371563578e-06,
    -1.886101752778239e-06,
    3.4537191789509016e-06,
    -2.361007857189463e-06,
    -4.241214821242873e-06,
    3.235663167540771e-06,
    7.729616482352427e-06,
    -5.7120871282176415e-06,
    -8.105186417229605e-06,
    5.986875817101406e-06,
    5.825439214146029e-06,
    -4.2753781982776986e-06,
    -2.4283652933792993e-06,
    1.7762984859027984e-06,
    4.807601978132979e-07,
    -3.4940478413843036e-07,
)


@kernel
def log_scaled_exp_integral(z):
    """Logarithm of ``exp(z) E1(z)`` with the exponential integral E1, for z > 0, within 1e-13.

    By the power series below 1 (Abramowitz and Stegun 5.1.11), and by a polynomial in 1 / (1 + z) above.
    """
    if z < 1.0:
        term, series = 1.0, 0.0
        for k in range(1, 19):
            term *= -z / k
            series += term / k
        return z + math.log(-_EULER - math.log(z) - series)
    y = 1.0 / (1.0 + z)
    x = 4.0 * y - 1.0
    value = 0.0
    for k in range(len(_TAIL) - 1, -1, -1):
        value = value * x + _TAIL[k]
    return math.log(value * y)


_LEAST, _MOST = -708.0, 709.0  # of which exponentials are normal numbers
_PER_LOG2, _LOG2, _LOG2_REST = (
    1.0 / math.log(2.0),
    6.93147180369123816490e-01,
    1.90821492927058770002e-10,
)
_POWERS = np.ldexp(1.0, np.arange(-1022, 1024))
_TAYLOR = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))


@fused_inner
def vector_exp(x):
    """Exponential function without a branch, so that loops over arrays vectorise; arguments beyond -708 and 709 are moved there.

    The relative error is below 1e-15: the powers of two are exact, and a Taylor polynomial serves between.
    """
    x = min(max(x, _LEAST), _MOST)
    power = math.floor(x * _PER_LOG2 + 0.5)
    rest = (x - power * _LOG2) - power * _LOG2_REST
    out = 0.0
    for c in _TAYLOR:
        out = out * rest + c
    return out * _POWERS[np.int32(power) + 1022]
