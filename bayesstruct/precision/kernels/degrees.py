"""Degrees of freedom of t rows, drawn given the quadratic forms of these."""

import math

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.marginals.slices import draw_slice


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
    known = (quadratic, p, shape, rate)
    return math.exp(draw_slice(rng, _log_density, math.log(degrees), 1.0, known))
