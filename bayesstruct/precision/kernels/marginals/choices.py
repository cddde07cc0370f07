r"""Latent normal values behind columns of states without an order: draws given the states, and moves of their unit.

A column of K states has K - 1 latent values u in each row (Imai and van Dyk 2005). The state is that of the largest one if that is positive, and
otherwise the reference state, which has none. The unit that the latent values of one column of states have in common is not
identified; their location is, the threshold being zero.
"""

import math

from bayesstruct.core.jit import inner, kernel
from bayesstruct.core.special import log_normal_cdf
from bayesstruct.data.ranks import FREE
from bayesstruct.precision.kernels.marginals.slices import draw_slice
from bayesstruct.precision.kernels.ranks import column_means, normal_between


@inner
def _highest(values, mean, codes, block, i, j, chosen):
    """Return the largest of zero and the latent values of a row in the block of column j but its own: of all, or of the chosen state."""
    best = 0.0
    for k in range(values.shape[1]):
        if k != j and block[k] == block[j] and (not chosen or codes[i, k] == 1):
            best = max(best, values[i, k] + mean[k])
    return best


@inner
def _bounds(values, mean, codes, block, j, bound):
    """Fill in the number that each latent value of column j lies above or below."""
    for i in range(values.shape[0]):
        if codes[i, j] != FREE:
            bound[i] = _highest(values, mean, codes, block, i, j, codes[i, j] == 0)


@inner
def _draw_column(rng, values, mean, codes, j, spread, centre, bound):
    """Draw the latent values of column j given the others; `centre` are the means of its residuals."""
    for i in range(values.shape[0]):
        if codes[i, j] == FREE:
            values[i, j] = centre[i] + spread * rng.standard_normal()
            continue
        end = (bound[i] - mean[j] - centre[i]) / spread
        low, high = (end, math.inf) if codes[i, j] == 1 else (-math.inf, end)
        values[i, j] = centre[i] + spread * normal_between(rng, low, high)


@kernel
def draw_choices(rng, precision, values, mean, columns, block, codes, work):
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
    work : (2, n) float64
        Work space.
    """
    for j in columns:
        column_means(precision, values, j, work[0])
        _bounds(values, mean, codes, block, j, work[1])
        spread = 1.0 / math.sqrt(precision[j, j])
        _draw_column(rng, values, mean, codes, j, spread, work[0], work[1])


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


@inner
def _log_choices(root, mean, codes, j, rest, bound):
    """Log probability of the states given the other latent values, those of column j integrated out."""
    total = 0.0
    for i in range(codes.shape[0]):
        if codes[i, j] != FREE:
            t = root * (mean - bound[i]) + rest[i]
            total += log_normal_cdf(t if codes[i, j] == 1 else -t)
    return total


@inner
def _log_unit(t, root, power, linear, mean, codes, j, rest, bound):
    """Log density of the logarithm t of the factor of row j of the matrix, the latent values integrated out."""
    s = math.exp(t)
    fit = _log_choices(s * root, mean, codes, j, rest, bound)
    return power * t - linear * s * s + fit


@inner
def _log_mean(mean, root, codes, j, rest, bound, centre, sd):
    """Log density of the mean of column j, the latent values integrated out."""
    gap = (mean - centre) / sd
    return _log_choices(root, mean, codes, j, rest, bound) - 0.5 * gap * gap


@kernel
def move_choices(rng, matrices, scale, values, mean, columns, block, codes, prior, means, work):
    """Move the unit and the mean of each column of states given the latent values of the others, then draw its own; all in place.

    The latent values of the column are integrated out of both moves, slices, so that these are not held by them: without it the ratio of
    the units of two states hardly moves. The unit multiplies row and column of the matrix, which leaves the distribution of
    the other latent values as it is.

    Parameters
    ----------
    rng : numpy.random.Generator
    matrices : tuple of (p, p) float64, changed in place
        ``K / scale`` and its inverse.
    scale : float
    values : (n, p) float64, changed in place
    mean : (p,) float64, changed in place
    columns, block, codes
        As of `draw_choices`.
    prior : tuple
        Shapes, variances and rates as of `rescale_columns`.
    means : tuple of (p,) float64
        Expectations and standard deviations of the normal prior of the means.
    work : (2, n) float64
        Work space.
    """
    precision, covariance = matrices
    shapes, variances, rates = prior
    for j in columns:
        column_means(precision, values, j, work[0])
        _bounds(values, mean, codes, block, j, work[1])
        root = math.sqrt(precision[j, j] * scale)
        linear = rates[j] * precision[j, j]
        for k in range(precision.shape[0]):
            if k != j:
                linear += 0.5 * precision[j, k] * precision[j, k] / variances[j, k]
        work[0] *= root
        known = (root, 2.0 * shapes[j], linear, mean[j], codes, j, work[0], work[1])
        s = math.exp(draw_slice(rng, _log_unit, 0.0, 0.5, known))
        precision[j] *= s
        precision[:, j] *= s
        covariance[j] /= s
        covariance[:, j] /= s
        root *= s
        rest = (root, codes, j, work[0], work[1], means[0][j], means[1][j])
        mean[j] = draw_slice(rng, _log_mean, mean[j], 0.5, rest)
        work[0] /= root
        _draw_column(rng, values, mean, codes, j, 1.0 / root, work[0], work[1])


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
