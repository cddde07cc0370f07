"""Quantiles of counts, without the import of scipy.stats, which takes most of a second."""

from collections.abc import Callable

__all__ = ["negative_binomial_quantile", "poisson_quantile", "seldom_exceeded"]


def seldom_exceeded(tail: Callable[[int], float], probability: float) -> int:
    """Smallest count that a variable exceeds with at most this probability.

    Parameters
    ----------
    tail : callable
        Probability that the variable is above a count, decreasing.
    probability : float
        Between 0 and 1.
    """
    low, high = -1, 1
    while tail(high) > probability:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tail(middle) > probability else (low, middle)
    return high


def poisson_quantile(mean: float, probability: float) -> int:
    """Smallest count that a Poisson variable exceeds with at most this probability."""
    from scipy.special import pdtrc

    return seldom_exceeded(lambda k: pdtrc(k, mean), probability)


def negative_binomial_quantile(shape: float, success: float, probability: float) -> int:
    """Smallest number of failures before `shape` successes that is exceeded with at most this probability."""
    from scipy.special import betainc

    return seldom_exceeded(lambda k: betainc(k + 1, shape, 1.0 - success), probability)
