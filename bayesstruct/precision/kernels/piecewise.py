r"""Draws from normal distributions with absolute differences to several points in their exponent.

.. math:: p(u) \propto \exp\big(b u - \tfrac{h}{2} u^2 - \sum_m w_m |u - c_m|\big)

Between two neighbouring points :math:`c_m` this is a normal density. A draw takes one of these pieces with its probability, and
then a value from the truncated normal distribution of the piece; both are exact.
"""

import math

from bayesstruct.core.jit import inner, kernel
from bayesstruct.core.special import log_normal_cdf

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@inner
def log_normal_interval(low, high):
    """Log of the probability that a standard normal variable is between two values."""
    if low >= high:
        return -math.inf
    if low > 0.0:
        low, high = -high, -low
    width = high - low
    if width * (1.0 + abs(low)) < 1e-5:  # the difference of distribution functions would cancel
        middle = 0.5 * (low + high)
        return math.log(width) - 0.5 * middle * middle - _HALF_LOG_2PI
    top = log_normal_cdf(high)
    if low == -math.inf:
        return top
    return top + math.log(-math.expm1(log_normal_cdf(low) - top))


@inner
def normal_between(rng, low, high):
    """Draw from the standard normal distribution between two values, by rejection.

    The proposal is normal, half-normal, uniform or exponential (Robert 1995), whichever of them is accepted at least two times in
    five or so where the interval lies.
    """
    if high < 0.0 or (low < 0.0 and -low > high):
        return -_between(rng, -high, -low)
    return _between(rng, low, high)


@inner
def _between(rng, low, high):
    """Draw for an interval of which most is positive."""
    width = high - low
    if low < 0.5 and width > 1.0:
        if low < 0.0:
            while True:
                x = rng.standard_normal()
                if low < x < high:
                    return x
        while True:
            x = abs(rng.standard_normal())
            if low < x < high:
                return x
    if low * width < 1.0 and width <= 2.0:
        least = max(low, 0.0)
        while True:
            x = low + width * rng.random()
            if rng.random() < math.exp(0.5 * (least * least - x * x)):
                return x
    share = -math.expm1(-low * width)
    while True:
        x = -math.log1p(-share * rng.random()) / low
        if rng.random() < math.exp(-0.5 * x * x):
            return low + x


@inner
def _sort(points, weights, count):
    for m in range(1, count):
        point, weight, k = points[m], weights[m], m
        while k > 0 and points[k - 1] > point:
            points[k], weights[k] = points[k - 1], weights[k - 1]
            k -= 1
        points[k], weights[k] = point, weight


@kernel
def piecewise_normal(rng, b, h, points, weights, count, masses):
    """Draw from the density of this module.

    Parameters
    ----------
    rng : numpy.random.Generator
    b, h : float
        Linear and quadratic coefficient; h is positive.
    points, weights : (at least count,) float64
        The points and the weights, which are not negative; they come back sorted.
    count : int
        Number of points.
    masses : (at least count + 1,) float64
        Work space.
    """
    _sort(points, weights, count)
    slope, level = b, 0.0
    for m in range(count):
        slope += weights[m]
        level -= weights[m] * points[m]
    root, largest = math.sqrt(h), -math.inf
    for m in range(count + 1):
        low = points[m - 1] if m > 0 else -math.inf
        high = points[m] if m < count else math.inf
        mean = slope / h
        masses[m] = level + 0.5 * slope * mean
        masses[m] += log_normal_interval((low - mean) * root, (high - mean) * root)
        largest = max(largest, masses[m])
        if m < count:
            slope -= 2.0 * weights[m]
            level += 2.0 * weights[m] * points[m]
    total = 0.0
    for m in range(count + 1):
        masses[m] = math.exp(masses[m] - largest)
        total += masses[m]
    left = total * rng.random()
    piece = 0
    while piece < count and left >= masses[piece]:
        left -= masses[piece]
        piece += 1
    while masses[piece] == 0.0:  # rounding of the sum
        piece -= 1
    slope = b
    for m in range(count):
        slope += weights[m] if m >= piece else -weights[m]
    low = points[piece - 1] if piece > 0 else -math.inf
    high = points[piece] if piece < count else math.inf
    mean = slope / h
    x = mean + normal_between(rng, (low - mean) * root, (high - mean) * root) / root
    return min(max(x, low), high)
