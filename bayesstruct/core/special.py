"""Special functions for compiled code."""

import math

from bayesstruct.core.jit import kernel

__all__ = ["LOG_2PI", "SQRT_HALF", "log_normal_cdf"]

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
