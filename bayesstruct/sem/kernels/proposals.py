r"""Draws of the parameters of one column from an approximation of their posterior, and their weights.

The density of the draws is

.. math:: q(\theta) = q(\tau, \text{shape}) \; q(\ell) \; q(c, b \mid \tau, \text{shape}, \ell):

log scale and shape are from a multivariate t distribution about the mode (coefficients integrated out); the log scales
:math:`\ell` of a horseshoe are from t distributions; intercept and coefficients are from their conditional
distribution given these, its covariance proportional to the squared scale, a multivariate t distribution again, or
a normal one where that is exact. Log scale and shape that are given shift the others by regression.
The *log weight* of parameters is their log joint density with the table less the log of q, so that the mean of the weights of draws is
the evidence.
"""

import math

from functools import lru_cache

import numpy as np

from bayesstruct.core.jit import kernel, vector_inner
from bayesstruct.sem.kernels.errors import log_shape_prior, shape_size
from bayesstruct.sem.kernels.factors import factorize, solve_lower, solve_upper
from bayesstruct.sem.kernels.fits import (
    FamilyFit,
    is_exact,
    log_joint,
    move_coordinates,
    parameter_count,
)
from bayesstruct.sem.kernels.settings import (
    FREE,
    HORSESHOE,
    MIXTURE,
    STUDENT,
    SemSettings,
)

__all__ = [
    "draw_family",
    "even_numbers",
    "give_shared",
    "log_proposal",
    "log_weight",
    "number_count",
    "random_numbers",
    "weigh",
]

_LOG_2PI = math.log(2.0 * math.pi)
_SHAPE_DF, _MIXTURE_DF, _SLOPE_DF, _LAMBDA_DF = 5.0, 15.0, 8.0, 4.0
_FLOOR = 1e-10
_SEED = 20170  # even numbers are part of scores: all chains have to have the same


@kernel
def number_count(settings: SemSettings, k):
    """Return how many normal and chi-square numbers a draw of the parameters of a column with k parents takes."""
    scales = 2 * k if settings.prior == HORSESHOE else 0
    return k + 4 + shape_size(settings.noise) + scales


@kernel
def _shape_df(settings, k, n):
    """Degrees of freedom of log scale and shape; where the scale has a closed form, twice its gamma shape."""
    if is_exact(settings) and settings.variances == FREE:
        return 2.0 * settings.shape + k + n
    return _MIXTURE_DF if settings.noise == MIXTURE else _SHAPE_DF


@kernel
def random_numbers(rng, settings: SemSettings, k, n, m):
    """Numbers for m draws: normal ones, then means of squares of normal ones.

    Parameters
    ----------
    rng : numpy.random.Generator
    settings : SemSettings
    k, n : int
        Parents and rows.
    m : int

    Returns
    -------
    (m, number_count) float array
    """
    count = number_count(settings, k)
    out, scales = np.empty((m, count)), k if settings.prior == HORSESHOE else 0
    normal, df = count - 2 - scales, _shape_df(settings, k, n)
    for i in range(m):
        for a in range(normal):
            out[i, a] = rng.standard_normal()
        out[i, normal] = rng.chisquare(df) / df
        out[i, normal + 1] = rng.chisquare(_SLOPE_DF) / _SLOPE_DF
        for a in range(normal + 2, count):
            out[i, a] = rng.chisquare(_LAMBDA_DF) / _LAMBDA_DF
    return out


@lru_cache(maxsize=256)
def even_numbers(settings: SemSettings, k: int, n: int, m: int) -> np.ndarray:
    """Make fixed numbers for m draws, spread evenly (a scrambled Sobol sequence).

    Parameters
    ----------
    settings : SemSettings
    k, n : int
        Parents and rows.
    m : int
        A power of two.

    Returns
    -------
    (m, number_count) ndarray
        As of :func:`random_numbers`; read-only.
    """
    from scipy.special import chdtri, ndtri
    from scipy.stats import qmc

    count = number_count(settings, k)
    scales = k if settings.prior == HORSESHOE else 0
    sequence = qmc.Sobol(count, scramble=True, rng=np.random.default_rng(_SEED))
    uniform = np.clip(sequence.random(m), 1e-12, 1 - 1e-12)
    normal = count - 2 - scales
    df = np.full(count - normal, _LAMBDA_DF)
    df[:2] = _shape_df(settings, k, n), _SLOPE_DF
    out = np.empty((m, count))
    out[:, :normal] = ndtri(uniform[:, :normal])
    out[:, normal:] = chdtri(df, uniform[:, normal:]) / df
    out.flags.writeable = False
    return out


# --- the distribution of a draw ----------------------------------------------------------------


@vector_inner
def _first_drawn(settings, size):
    """First of log scale and shape that is drawn: those before it are given."""
    if settings.variances == FREE:
        return 0
    return 1 if settings.noise == STUDENT else size


@vector_inner
def _shape_centre(fit, settings, theta, p):
    """Centre of log scale and shape given those that are given, and the factor of their precision."""
    size = len(fit.centre) - p
    first = _first_drawn(settings, size)
    centre, factor = fit.centre[p:].copy(), fit.schur[first:, first:].copy()
    factorize(factor, _FLOOR)
    if first > 0:
        shift = np.zeros(size - first)
        for z in range(size - first):
            for g in range(first):
                shift[z] -= fit.schur[first + z, g] * (theta[p + g] - fit.centre[p + g])
        solve_lower(factor, shift)
        solve_upper(factor, shift)
        for z in range(size - first):
            centre[first + z] += shift[z]
    return first, centre, factor


@vector_inner
def _slope_centre(fit, settings, theta, p):
    """Centre of intercept and coefficients given all else, and the factor of their precision."""
    size = len(fit.centre)
    factor, centre = fit.precision[:p, :p].copy(), np.zeros(p)
    for a in range(p):
        for z in range(p, size):
            centre[a] -= fit.precision[a, z] * (theta[z] - fit.centre[z])
    if settings.prior == HORSESHOE:
        unit = math.exp(-2.0 * fit.centre[p]) / settings.scale**2
        for a in range(1, p):
            other = math.exp(-2.0 * theta[size + a - 1]) - math.exp(-2.0 * fit.scale_mean[a - 1])
            factor[a, a] += other * unit
            centre[a] -= other * unit * fit.centre[a]
    factorize(factor, _FLOOR)
    solve_lower(factor, centre)
    solve_upper(factor, centre)
    for a in range(p):
        centre[a] += fit.centre[a]
    return centre, factor


@vector_inner
def _log_t(df, size, square, log_det):
    """Log density of a multivariate t distribution; `log_det` is half that of its precision."""
    out = (
        math.lgamma(0.5 * (df + size)) - math.lgamma(0.5 * df) - 0.5 * size * math.log(df * math.pi)
    )
    return out + log_det - 0.5 * (df + size) * math.log1p(square / df)


@vector_inner
def _log_quadratic(factor, x):
    """Square of a deviation in units of its covariance, and half the log determinant of its precision."""
    square, log_det = 0.0, 0.0
    for a in range(len(x)):
        total = 0.0
        for b in range(a, len(x)):
            total += factor[b, a] * x[b]
        square += total * total
        log_det += math.log(factor[a, a])
    return square, log_det


@vector_inner
def _squared_sum(fit, settings, p, n):
    """Twice the rate of the inverse gamma distribution of the squared scale, where that is exact."""
    return (n + 2.0 * settings.shape + 2.0 * p - 1.0) * math.exp(2.0 * fit.centre[p])


@kernel
def log_proposal(fit: FamilyFit, settings: SemSettings, theta, n):
    """Log density of a draw.

    Parameters
    ----------
    fit : FamilyFit
    settings : SemSettings
    theta : (P,) float array
    n : int
        Rows of the table of the fit.

    Returns
    -------
    float
    """
    k = len(theta) - len(fit.centre) if settings.prior == HORSESHOE else 0
    p = len(fit.centre) - 1 - shape_size(settings.noise)
    size, out = len(fit.centre), 0.0
    theta = theta.copy()
    move_coordinates(settings, theta, p, 1)
    if is_exact(settings) and settings.variances == FREE:
        df = _shape_df(settings, p - 1, n)
        v = _squared_sum(fit, settings, p, n) * math.exp(-2.0 * theta[p])
        out += 0.5 * df * math.log(0.5 * v) - 0.5 * v - math.lgamma(0.5 * df) + math.log(2.0)
    else:
        first, centre, factor = _shape_centre(fit, settings, theta, p)
        if first < len(centre):
            square, log_det = _log_quadratic(factor, theta[p + first : size] - centre[first:])
            out += _log_t(_shape_df(settings, p - 1, n), len(centre) - first, square, log_det)
    for j in range(k):
        z = (theta[size + j] - fit.scale_mean[j]) / fit.scale_sd[j]
        out += _log_t(_LAMBDA_DF, 1, z * z, -math.log(fit.scale_sd[j]))
    centre, factor = _slope_centre(fit, settings, theta, p)
    wider = theta[p] - fit.centre[p]
    square, log_det = _log_quadratic(factor, (theta[:p] - centre) * math.exp(-wider))
    log_det -= p * wider
    if is_exact(settings):
        return out + log_det - 0.5 * (p * _LOG_2PI + square)
    return out + _log_t(_SLOPE_DF, p, square, log_det)


@vector_inner
def _draw(fit, settings, numbers, theta, p, n):
    """Write a draw from numbers; what is given of log scale and shape is in `theta` already."""
    size = len(fit.centre)
    k = len(theta) - size
    chi = size + k
    if _first_drawn(settings, size - p) > 0:
        move_coordinates(settings, theta, p, 1)
    if is_exact(settings) and settings.variances == FREE:
        df = _shape_df(settings, p - 1, n)
        theta[p] = 0.5 * math.log(_squared_sum(fit, settings, p, n) / (df * numbers[chi]))
    else:
        first, centre, factor = _shape_centre(fit, settings, theta, p)
        step = numbers[p + first : size].copy()
        solve_upper(factor, step)
        for z in range(len(step)):
            theta[p + first + z] = centre[first + z] + step[z] / math.sqrt(numbers[chi])
    for j in range(k):
        t = numbers[size + j] / math.sqrt(numbers[chi + 2 + j])
        theta[size + j] = fit.scale_mean[j] + fit.scale_sd[j] * t
    centre, factor = _slope_centre(fit, settings, theta, p)
    step = numbers[:p].copy()
    solve_upper(factor, step)
    wider = math.exp(theta[p] - fit.centre[p])
    if not is_exact(settings):
        wider /= math.sqrt(numbers[chi + 1])
    for a in range(p):
        theta[a] = centre[a] + wider * step[a]
    move_coordinates(settings, theta, p, -1)


@kernel
def log_weight(y, design, fit: FamilyFit, settings: SemSettings, theta):
    """Log weight of parameters: their log joint density with the table less the log density of a draw."""
    at = len(design) + 1
    shape = theta[at : at + shape_size(settings.noise)]
    if settings.variances == FREE and log_shape_prior(settings, shape) == -np.inf:
        return -np.inf
    joint = log_joint(y, design, settings, theta)
    return joint - log_proposal(fit, settings, theta, len(y))


@kernel
def weigh(y, design, fit: FamilyFit, settings: SemSettings, numbers, theta):
    """Make draws from numbers, and return their log weights.

    Parameters
    ----------
    y, design : arrays
        See :func:`bayesstruct.sem.kernels.fits.family_design`.
    fit : FamilyFit
    settings : SemSettings
    numbers : (m, number_count) float array
    theta : (m, P) float array
        Written. What is given of log scale and shape (with equal or known variances) is there already.

    Returns
    -------
    (m,) float array
        Log joint density of table and parameters less the log density of the draw.
    """
    out = np.empty(len(numbers))
    for i in range(len(numbers)):
        _draw(fit, settings, numbers[i], theta[i], len(design), len(y))
        out[i] = log_weight(y, design, fit, settings, theta[i])
    return out


def draw_family(rng, y, design, fit: FamilyFit, settings: SemSettings, *, m=1, tau=0.0, shape=None):
    """Draw parameters of a column from the approximation of their posterior.

    Parameters
    ----------
    rng : numpy.random.Generator
    y, design : arrays
        See :func:`bayesstruct.sem.kernels.fits.family_design`.
    fit : FamilyFit
    settings : SemSettings
    m : int
        Number of draws.
    tau : float
        Log scale, where it is given.
    shape : (S,) float array, optional
        Shape of a mixture, where it is given.

    Returns
    -------
    theta : (m, P) float array
    log_weights : (m,) float array
    """
    k = len(design) - 1
    theta = np.zeros((m, parameter_count(settings, k)))
    give_shared(settings, theta, k, tau, shape)
    numbers = random_numbers(rng, settings, k, len(y), m)
    return theta, weigh(y, design, fit, settings, numbers, theta)


def give_shared(settings: SemSettings, theta: np.ndarray, k: int, tau: float, shape) -> None:
    """Write the log scale and the shape of a mixture into parameters, where all columns share them."""
    if settings.variances != FREE:
        theta[..., k + 1] = tau
        if settings.noise == MIXTURE:
            theta[..., k + 2 : k + 2 + shape_size(settings.noise)] = shape
