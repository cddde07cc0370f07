"""Degrees of freedom of t rows, drawn given the quadratic forms of these."""

import math

from bayesstruct.core.jit import inner, kernel


@inner
def _log_density(t, quadratic, p, shape, rate):
    """Log density of the logarithm of the degrees of freedom, the weights of the rows integrated out."""
    degrees, n = math.exp(t), quadratic.shape[0]
    total = n * (math.lgamma(0.5 * (degrees + p)) - math.lgamma(0.5 * degrees))
    total -= 0.5 * n * p * t
    for i in range(n):
        total -= 0.5 * (degrees + p) * math.log1p(quadratic[i] / degrees)
    return total + shape * t - rate * degrees


@kernel
def draw_degrees(rng, degrees, quadratic, p, shape, rate):
    """Draw the degrees of freedom by a slice sampler on their logarithm (Neal 2003), which leaves their posterior invariant.

    Parameters
    ----------
    rng : numpy.random.Generator
    degrees : float
        Before the update.
    quadratic : (n,) float64
        Of the residuals of each row with the precision matrix.
    p : int
        Columns.
    shape, rate : float
        Of the gamma prior.
    """
    width, old = 1.0, math.log(degrees)
    bound = _log_density(old, quadratic, p, shape, rate) - rng.standard_exponential()
    low = old - width * rng.random()
    high = low + width
    while _log_density(low, quadratic, p, shape, rate) > bound:
        low -= width
    while _log_density(high, quadratic, p, shape, rate) > bound:
        high += width
    while True:
        new = low + (high - low) * rng.random()
        if _log_density(new, quadratic, p, shape, rate) >= bound:
            return math.exp(new)
        if new < old:
            low = new
        else:
            high = new
