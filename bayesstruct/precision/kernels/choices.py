r"""Latent normal values behind columns of states without an order: draws given the states, and moves of their unit.

A column of K states has K - 1 latent values u in each row (Imai and van Dyk 2005). The state is that of the largest one if that is positive, and
otherwise the reference state, which has none. The unit that the latent values of one column of states have in common is not
identified; their location is, the threshold being zero.
"""

import math

from bayesstruct.core.jit import inner, kernel
from bayesstruct.data.ranks import FREE
from bayesstruct.precision.kernels.ranks import column_means, normal_between
from bayesstruct.precision.kernels.slices import draw_slice


@inner
def _highest(values, mean, codes, block, i, j, chosen):
    """Return the largest of zero and the latent values of a row in the block of column j but its own: of all, or of the chosen state."""
    best = 0.0
    for k in range(values.shape[1]):
        if k != j and block[k] == block[j] and (not chosen or codes[i, k] == 1):
            best = max(best, values[i, k] + mean[k])
    return best


@kernel
def draw_choices(rng, precision, values, mean, columns, block, codes, centre):
    """Draw the latent values of columns of states once, column by column, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision : (p, p) float64
    values : (n, p) float64, changed in place
        Latent values less `mean`.
    mean : (p,) float64
    columns : (q,) int64
        Columns that are drawn.
    block : (p,) int64
        Number of the column of states that each column belongs to.
    codes : (n, p) int64
        1 for the state of a row, 0 for another one, `FREE` where it is missing.
    centre : (n,) float64
        Work space.
    """
    for j in columns:
        spread = 1.0 / math.sqrt(precision[j, j])
        column_means(precision, values, j, centre)
        for i in range(values.shape[0]):
            if codes[i, j] == FREE:
                values[i, j] = centre[i] + spread * rng.standard_normal()
                continue
            own = codes[i, j] == 1
            bound = (
                _highest(values, mean, codes, block, i, j, not own) - mean[j] - centre[i]
            ) / spread
            low, high = (bound, math.inf) if own else (-math.inf, bound)
            values[i, j] = centre[i] + spread * normal_between(rng, low, high)


@inner
def _log_density(t, power, linear, square, mean, columns, block, j, centre, sd):
    """Log density of the logarithm t of the factor by which latent values and means are divided."""
    s = math.exp(t)
    total = power * t - linear * s * s - square * s * s * s * s
    for k in columns:
        if block[k] == block[j]:
            gap = (mean[k] / s - centre[k]) / sd[k]
            total -= 0.5 * gap * gap + t
    return total


@kernel
def rescale_choices(rng, precision, covariance, values, mean, columns, block, prior, centre, sd):
    """Move the unit of the latent values of each column of states, and with it the rows of the matrix and the means, in place.

    Latent values, means and inverse are divided by a factor for each column of a block, and the matrix multiplied. The states do not
    change. The factor is drawn by a slice of its logarithm (Liu and Sabatti 2000).

    Parameters
    ----------
    rng : numpy.random.Generator
    precision, covariance : (p, p) float64, changed in place
        ``K`` and its inverse.
    values : (n, p) float64, changed in place
        Latent values less their means.
    mean : (p,) float64, changed in place
    columns : (q,) int64
        Columns that belong to a block.
    block : (p,) int64
    prior : tuple
        Shapes, variances and rates as of `rescale_columns`.
    centre, sd : (p,) float64
        Of the normal prior of the means.
    """
    shapes, variances, rates = prior
    p, last = precision.shape[0], -1
    for j in columns:
        if block[j] == last:
            continue
        last = block[j]
        power, linear, square = 0.0, 0.0, 0.0
        for a in columns:
            if block[a] != last:
                continue
            power += 2.0 * shapes[a]
            linear += rates[a] * precision[a, a]
            for k in range(p):
                if k != a:
                    term = 0.5 * precision[a, k] * precision[a, k] / variances[a, k]
                    if block[k] != last:
                        linear += term
                    else:  # a pair inside, which is looked at twice
                        square += 0.5 * term
        known = (power, linear, square, mean, columns, block, j, centre, sd)
        s = math.exp(draw_slice(rng, _log_density, 0.0, 0.5, known))
        for a in columns:
            if block[a] == last:
                mean[a] /= s
                values[:, a] /= s
                precision[a] *= s
                precision[:, a] *= s
                covariance[a] /= s
                covariance[:, a] /= s
