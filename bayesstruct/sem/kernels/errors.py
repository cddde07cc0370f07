r"""Densities of the noise of linear structural equations, and their derivatives.

All have one scale; what else they have is their *shape*:

- ``"gaussian"``: N(0, 1), no shape;
- ``"laplace"``: :math:`e^{-\sqrt 2 |e|} / \sqrt 2`, no shape;
- ``"student"``: t with :math:`\nu = 2 + e^u` degrees of freedom, scaled to the variance 1; shape u;
- ``"mixture"``: :math:`\sum_k \pi_k N(m_k, v_k^2)` with fixed `LOCATIONS` and `WIDTHS`, narrow ones on a grid and
  a wide one; shape :math:`y \in R_+^K`, :math:`\pi_k = y_k^3 / \sum_m y_m^3`.

The cubes have independent gamma distributions, so that :math:`\pi` has a Dirichlet distribution: the cubic root of
a gamma variable is nearly normal. The sum of the cubes is independent of :math:`\pi` and of the data.

References
----------
Wilson, E. B. and Hilferty, M. M. (1931). The distribution of chi-square. *PNAS* 17, 684-688.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel, vector_inner
from bayesstruct.core.special import vector_exp
from bayesstruct.sem.kernels.settings import GAUSSIAN, LAPLACE, MIXTURE, STUDENT, SemSettings

__all__ = [
    "ALL_LOCATIONS",
    "ALL_WIDTHS",
    "BASE",
    "LOCATIONS",
    "WIDTHS",
    "log_density",
    "log_one_plus_square",
    "log_shape_prior",
    "mixture_moments",
    "mixture_weights",
    "noise_terms",
    "shape_prior_terms",
    "shape_size",
    "smooth_absolute",
    "start_shape",
]

_SIDE, _STEP, _NARROW, _WIDE = 2, 0.75, 0.42, 2.0
_K = 2 * _SIDE + 2
#: Means and standard deviations of the components of a mixture.
LOCATIONS = np.array([_STEP * (k - _SIDE) for k in range(_K - 1)] + [0.0])
WIDTHS = np.array([_NARROW] * (_K - 1) + [_WIDE])
#: The same and those of a standard normal distribution, which is alone where noise is exactly normal.
ALL_LOCATIONS, ALL_WIDTHS = np.append(LOCATIONS, 0.0), np.append(WIDTHS, 1.0)
_SQUARES = LOCATIONS**2 + WIDTHS**2
_WIDE_SHARE = 0.08
_BASE = np.exp(-0.5 * (LOCATIONS[:-1] / 0.9) ** 2)
#: Prior means of the weights of a mixture: nearly a normal distribution of variance 1.
BASE = np.append((1.0 - _WIDE_SHARE) * _BASE / _BASE.sum(), _WIDE_SHARE)
_FAR = 12.0  # beyond it only the wide component counts
_LOG_RATIO, _NARROW_RATE, _WIDE_RATE = _STEP / _NARROW**2, -0.5 / _NARROW**2, -0.5 / _WIDE**2
_SMALL, _TINY, _SMALLEST = 1e-150, 1e-200, 1e-300
_ROOT2 = math.sqrt(2.0)
_LOG_2PI = math.log(2.0 * math.pi)
_DIFFERENCE = 1e-3  # step of differences of log-gamma functions
_FLAT = 8.0  # smoothed absolute values are exact beyond so many widths


@kernel
def shape_size(noise):
    """Return the number of coordinates of the shape of a noise."""
    return 1 if noise == STUDENT else _K if noise == MIXTURE else 0


@kernel
def mixture_weights(shape):
    """Weights of the components of a mixture, (K,)."""
    out, total = np.empty(_K), 0.0
    for k in range(_K):
        out[k] = shape[k] ** 3
        total += out[k]
    for k in range(_K):
        out[k] /= total
    return out


@vector_inner
def _student_constant(m):
    return math.lgamma(0.5 * (m + 3.0)) - math.lgamma(0.5 * (m + 2.0)) - 0.5 * math.log(math.pi * m)


@vector_inner
def _heights(shape, out):
    """Write the weights of the components over the constants of their densities."""
    weights = mixture_weights(shape)
    for k in range(_K - 1):
        m = LOCATIONS[k] / _NARROW
        out[k] = weights[k] * math.exp(-0.5 * m * m) / (_NARROW * math.sqrt(2.0 * math.pi))
    out[_K - 1] = weights[_K - 1] / (_WIDE * math.sqrt(2.0 * math.pi))


# The narrow components lie on a grid: their densities are a geometric sequence. Far away only the wide one counts. The
# loops over rows call nothing but exponentials, so that they vectorise; what these leave of the narrow ones is below 1e-260.


@vector_inner
def _fill_density(e, heights, density):
    """Write the densities of residuals."""
    wide = heights[_K - 1]
    for r in range(len(e)):
        x = min(max(e[r], -_FAR), _FAR)
        ratio = vector_exp(x * _LOG_RATIO)
        inverse = 1.0 / ratio
        total, up, down = heights[_SIDE], 1.0, 1.0
        for k in range(1, _SIDE + 1):
            up *= ratio
            down *= inverse
            total += heights[_SIDE + k] * up + heights[_SIDE - k] * down
        total *= vector_exp(_NARROW_RATE * e[r] * e[r])
        density[r] = total + wide * vector_exp(_WIDE_RATE * e[r] * e[r])


@vector_inner
def _fill_shares(e, heights, shares, density):
    """Write the densities of residuals, and the shares that components have of them."""
    for r in range(len(e)):
        x = min(max(e[r], -_FAR), _FAR)
        shares[_SIDE, r] = vector_exp(_NARROW_RATE * e[r] * e[r])
        shares[_K - 1, r] = max(vector_exp(_WIDE_RATE * e[r] * e[r]), _TINY)
        density[r] = vector_exp(x * _LOG_RATIO)
    for k in range(1, _SIDE + 1):
        for r in range(len(e)):
            shares[_SIDE + k, r] = shares[_SIDE + k - 1, r] * density[r]
            shares[_SIDE - k, r] = shares[_SIDE - k + 1, r] / density[r]
    for r in range(len(e)):
        density[r] = 0.0
    for k in range(_K):
        for r in range(len(e)):
            shares[k, r] *= heights[k]
            density[r] += shares[k, r]
    for k in range(_K):
        for r in range(len(e)):
            shares[k, r] /= density[r]


@vector_inner
def _sum_of_logs(e, heights, density):
    """Sum of the logarithms of densities, which are at most one: logarithms of products, which are few."""
    total, product = 0.0, 1.0
    for r in range(len(e)):
        if density[r] < _SMALL and abs(e[r]) > _FAR:  # too small for a number
            total += math.log(max(heights[_K - 1], _SMALLEST)) + _WIDE_RATE * e[r] * e[r]
        else:
            product *= max(density[r], _SMALL)
            if product < _SMALL:
                total += math.log(product)
                product = 1.0
    return total + math.log(product)


@kernel
def log_density(noise, e, shape):
    """Log density of a noise, summed over rows.

    Parameters
    ----------
    noise : int
        Code, see :mod:`bayesstruct.sem.kernels.settings`.
    e : (n,) float array
        Residuals in units of their scale.
    shape : float array
        Coordinates of the shape.

    Returns
    -------
    float
    """
    n, total = len(e), 0.0
    if noise == GAUSSIAN:
        for r in range(n):
            total += e[r] * e[r]
        return -0.5 * (n * _LOG_2PI + total)
    if noise == LAPLACE:
        for r in range(n):
            total += abs(e[r])
        return -n * 0.5 * math.log(2.0) - _ROOT2 * total
    if noise == STUDENT:
        m = math.exp(shape[0])
        for r in range(n):
            total += math.log1p(e[r] * e[r] / m)
        return n * _student_constant(m) - 0.5 * (m + 3.0) * total
    heights, density = np.empty(_K), np.empty(n)
    _heights(shape, heights)
    _fill_density(e, heights, density)
    return _sum_of_logs(e, heights, density)


@vector_inner
def smooth_absolute(x, width):
    """Mean of the absolute value of N(x, width^2), with two derivatives."""
    if abs(x) > _FLAT * width:
        return abs(x), 1.0 if x > 0.0 else -1.0, 0.0
    z = x / width
    bell, side = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi), math.erf(z / _ROOT2)
    return 2.0 * width * bell + x * side, side, 2.0 * bell / width


@vector_inner
def _laplace_terms(e, width, slope, bend):
    total = 0.0
    for r in range(len(e)):
        value, first, second = smooth_absolute(e[r], width)
        total += value
        slope[r], bend[r] = -_ROOT2 * first, -_ROOT2 * second
    return -len(e) * 0.5 * math.log(2.0) - _ROOT2 * total


@vector_inner
def _student_terms(e, shape, slope, bend, cross, gradient, hessian):
    n, m = len(e), math.exp(shape[0])
    logs, first, second = 0.0, 0.0, 0.0
    for r in range(n):
        q = e[r] * e[r]
        both = m + q
        logs += math.log1p(q / m)
        slope[r] = -(m + 3.0) * e[r] / both
        bend[r] = -(m + 3.0) * (m - q) / (both * both)
        cross[0, r] = m * e[r] * (3.0 - q) / (both * both)
        part = q / (m * both)
        first += part
        second += part * (2.0 * m + q) / (m * both)
    low, mid, high = (
        _student_constant(m * math.exp(-_DIFFERENCE)),
        _student_constant(m),
        _student_constant(m * math.exp(_DIFFERENCE)),
    )
    # Derivatives of the constant by u, and of the rest by m.
    constant, curve = (high - low) / (2.0 * _DIFFERENCE), (high - 2.0 * mid + low) / _DIFFERENCE**2
    by_m = -0.5 * logs + 0.5 * (m + 3.0) * first
    twice = first - 0.5 * (m + 3.0) * second
    gradient[0] = n * constant + m * by_m
    hessian[0, 0] = n * curve + m * m * twice + m * by_m
    return n * mid - 0.5 * (m + 3.0) * logs


@vector_inner
def _residual_terms(e, shares, slope, bend, cross):
    """Write the derivatives of a mixture by residuals."""
    n = len(e)
    for r in range(n):
        slope[r], bend[r] = 0.0, 0.0
    for k in range(_K):
        precision, at = 1.0 / (WIDTHS[k] * WIDTHS[k]), LOCATIONS[k]
        for r in range(n):
            own = (at - e[r]) * precision
            slope[r] += shares[k, r] * own
            bend[r] += shares[k, r] * (own * own - precision)
    for r in range(n):
        bend[r] -= slope[r] * slope[r]
    for k in range(_K):
        precision, at = 1.0 / (WIDTHS[k] * WIDTHS[k]), LOCATIONS[k]
        for r in range(n):
            cross[k, r] = shares[k, r] * ((at - e[r]) * precision - slope[r])


@vector_inner
def _mixture_terms(e, shape, slope, bend, cross, gradient, hessian):
    n = len(e)
    heights, counts = np.empty(_K), np.zeros(_K)
    shares, density = np.empty((_K, n)), np.empty(n)
    _heights(shape, heights)
    _fill_shares(e, heights, shares, density)
    total = _sum_of_logs(e, heights, density)
    _residual_terms(e, shares, slope, bend, cross)
    for k in range(_K):
        for r in range(n):
            counts[k] += shares[k, r]
    weights = mixture_weights(shape)
    for k in range(_K):
        gradient[k] = counts[k] - n * weights[k]
        for m in range(k + 1):
            product = 0.0
            for r in range(n):
                product += shares[k, r] * shares[m, r]
            hessian[k, m] = n * weights[k] * weights[m] - product
            if k == m:
                hessian[k, k] += counts[k] - n * weights[k]
            hessian[k, m] *= 9.0 / (shape[k] * shape[m])
            if k == m:
                hessian[k, k] -= 3.0 * gradient[k] / shape[k] ** 2
            hessian[m, k] = hessian[k, m]
    for k in range(_K):
        gradient[k] *= 3.0 / shape[k]
        for r in range(n):
            cross[k, r] *= 3.0 / shape[k]
    return total


@kernel
def noise_terms(noise, e, shape, width, slope, bend, cross, gradient, hessian):
    """Log density of a noise, summed over rows, and its derivatives by residuals and shape.

    The absolute values of Laplace noise are smoothed: they are means over N(e, width^2), so that a mode
    of them is about a mean of the posterior if `width` is about the uncertainty of a residual.

    Parameters
    ----------
    noise : int
    e : (n,) float array
    shape : (S,) float array
    width : float
    slope, bend : (n,) float arrays, written
        First and second derivatives by the residual.
    cross : (S, n) float array, written
        Derivatives by shape and residual.
    gradient, hessian : (S,), (S, S) float arrays, written
        Derivatives by the shape, summed over rows.

    Returns
    -------
    float
    """
    if noise == GAUSSIAN:
        for r in range(len(e)):
            slope[r], bend[r] = -e[r], -1.0
        return log_density(noise, e, shape)
    if noise == LAPLACE:
        return _laplace_terms(e, width, slope, bend)
    if noise == STUDENT:
        return _student_terms(e, shape, slope, bend, cross, gradient, hessian)
    return _mixture_terms(e, shape, slope, bend, cross, gradient, hessian)


@kernel
def log_shape_prior(settings: SemSettings, shape):
    """Log prior density of the coordinates of a shape."""
    if settings.noise == STUDENT:
        a, rate, u = settings.degrees_shape, settings.degrees_rate, shape[0]
        return a * math.log(rate) - math.lgamma(a) + a * u - rate * math.exp(u)
    if settings.noise == MIXTURE:
        total = _K * math.log(3.0)
        for k in range(_K):
            a, y = settings.concentration * BASE[k], shape[k]
            if not y > 0.0:
                return -np.inf
            total += (3.0 * a - 1.0) * math.log(y) - y**3 - math.lgamma(a)
        return total
    return 0.0


@inner
def shape_prior_terms(settings: SemSettings, shape, gradient, hessian):
    """Add the derivatives of the log prior of a shape; return the log prior."""
    if settings.noise == STUDENT:
        tail = settings.degrees_rate * math.exp(shape[0])
        gradient[0] += settings.degrees_shape - tail
        hessian[0, 0] -= tail
    if settings.noise == MIXTURE:
        for k in range(_K):
            power = 3.0 * settings.concentration * BASE[k] - 1.0
            gradient[k] += power / shape[k] - 3.0 * shape[k] ** 2
            hessian[k, k] -= power / shape[k] ** 2 + 6.0 * shape[k]
    return log_shape_prior(settings, shape)


@kernel
def mixture_moments(shape):
    """Mean and log standard deviation of a mixture, and their derivatives by its shape, (K,) each."""
    weights, mean, square = mixture_weights(shape), 0.0, 0.0
    for k in range(_K):
        mean += weights[k] * LOCATIONS[k]
        square += weights[k] * _SQUARES[k]
    variance = square - mean * mean
    by_mean, by_log_sd = np.empty(_K), np.empty(_K)
    for k in range(_K):
        by_mean[k] = 3.0 * weights[k] * (LOCATIONS[k] - mean) / shape[k]
        own = 3.0 * weights[k] * (_SQUARES[k] - square) / shape[k]
        by_log_sd[k] = (own - 2.0 * mean * by_mean[k]) / (2.0 * variance)
    return mean, 0.5 * math.log(variance), by_mean, by_log_sd


def start_shape(settings: SemSettings) -> np.ndarray:
    """Return the shape where fits begin: five degrees of freedom more than two, prior means of weights."""
    if settings.noise == STUDENT:
        return np.array([math.log(5.0)])
    if settings.noise == MIXTURE:
        return (settings.concentration * BASE) ** (1.0 / 3.0)
    return np.empty(0)


@vector_inner
def log_one_plus_square(log_x):
    """Log of 1 + x^2."""
    if log_x > 0.0:
        return 2.0 * log_x + math.log1p(math.exp(-2.0 * log_x))
    return math.log1p(math.exp(2.0 * log_x))
