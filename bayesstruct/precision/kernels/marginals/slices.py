"""Slice sampling of one number."""

from bayesstruct.core.jit import inlined


@inlined
def draw_slice(rng, log_density, old, width, known):
    """Draw a number by a slice that is stepped out and shrunk (Neal 2003), which leaves its distribution invariant.

    Parameters
    ----------
    rng : numpy.random.Generator
    log_density : compiled function
        Of the number and then of `known`.
    old, width : float
        The number before the update, and the step by which the slice grows.
    known : tuple
    """
    bound = log_density(old, *known) - rng.standard_exponential()
    low = old - width * rng.random()
    high = low + width
    while log_density(low, *known) > bound:
        low -= width
    while log_density(high, *known) > bound:
        high += width
    while True:
        new = low + (high - low) * rng.random()
        if log_density(new, *known) >= bound:
            return new
        if new < old:
            low = new
        else:
            high = new
