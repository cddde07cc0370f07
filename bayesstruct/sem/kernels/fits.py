r"""Modes of the parameters of one column given its parents, and Laplace approximations of its evidence.

The parameters are in one array, :math:`\theta = (c, b, \tau, \text{shape}, \ell)`: intercept, coefficients,
:math:`\tau = \log s`, coordinates of the shape of the noise (:mod:`bayesstruct.sem.kernels.errors`) and, of the
horseshoe only, :math:`\ell = \log \lambda`. With equal or known variances :math:`\tau` is given, and so
is the shape of a mixture, which all columns share then. The weights of a mixture change its mean and its standard
deviation, so that they are correlated with c and :math:`\tau` along curves. In *even coordinates* they are not: there c is
the mean of the noise of the column and :math:`\tau` the log of its standard deviation. The map has the Jacobian determinant 1, so
that modes are the same.

The mode is found by Newton's method, damped as far as the Hessian is not negative definite or a step does not
improve (of a mixture from where :mod:`bayesstruct.sem.kernels.mixture_start` says). Absolute values (Laplace noise and slabs) are smoothed over about the uncertainty of their arguments.
Scales :math:`\lambda` of a horseshoe are kept at their means given the other parameters, one by one.

References
----------
Tierney, L. and Kadane, J. B. (1986). Accurate approximations for posterior moments and marginal densities.
*JASA* 81, 82-86.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.arrays import copy_matrix, copy_vector
from bayesstruct.core.jit import inner, kernel, vector_inner
from bayesstruct.sem.kernels.errors import (
    log_density,
    log_one_plus_square,
    log_shape_prior,
    mixture_moments,
    noise_terms,
    shape_prior_terms,
    shape_size,
    smooth_absolute,
    start_shape,
)
from bayesstruct.sem.kernels.factors import dot, factorize, solve_lower, solve_upper
from bayesstruct.sem.kernels.horseshoe import log_normal, scale_moments
from bayesstruct.sem.kernels.mixture_start import begin_mixture
from bayesstruct.sem.kernels.settings import (
    FREE,
    GAUSSIAN,
    HORSESHOE,
    LAPLACE,
    MIXTURE,
    SLAB_LAPLACE,
    SPIKE_SLAB,
    STUDENT,
    SemSettings,
)

__all__ = [
    "FamilyFit",
    "family_design",
    "fit_family",
    "is_exact",
    "log_joint",
    "move_coordinates",
    "parameter_count",
]

_LOG_2PI = math.log(2.0 * math.pi)
_STEPS, _GAIN = 60, 1e-7  # Newton steps at most; expected gain that is none
_LONGEST = 0.8  # change of a log scale or of a shape in a step
_ROUNDS = 3  # of scales and modes
_PIVOT = 1e-10


class FamilyFit(NamedTuple):
    """Approximation of the posterior of the parameters of one column given its parents."""

    mode: np.ndarray
    """(k + 2 + S,): intercept, coefficients, log scale, shape."""
    centre: np.ndarray
    """(k + 2 + S,): the mode in even coordinates."""
    precision: np.ndarray
    """(k + 2 + S, k + 2 + S): minus the Hessian of the log posterior density there, in even coordinates."""
    schur: np.ndarray
    """(1 + S, 1 + S): precision of log scale and shape in even coordinates, the others integrated out."""
    scale_mean: np.ndarray
    """(k,) of a horseshoe: means of the log scales; else (0,)."""
    scale_sd: np.ndarray
    """(k,) of a horseshoe: standard deviations of the log scales; else (0,)."""
    log_evidence: float
    """Log evidence, approximately; exact for normal noise with normal slabs."""


@kernel
def parameter_count(settings: SemSettings, k):
    """Return the number of parameters of a column with k parents."""
    scales = k if settings.prior == HORSESHOE else 0
    return k + 2 + shape_size(settings.noise) + scales


@kernel
def is_exact(settings: SemSettings):
    """Whether the evidence of a family has a closed form, with free variances or given the scale."""
    return settings.noise == GAUSSIAN and settings.prior == SPIKE_SLAB


def family_design(table: np.ndarray, child: int, parents, rows=None):
    """Response, and ones and the parents as rows, of one family.

    Parameters
    ----------
    table : (n, d) float array
    child : int
    parents : sequence of k int
    rows : (n,) bool array, optional
        Rows that count; all by default.

    Returns
    -------
    y : (n,) float array
    design : (k + 1, n) float array
    """
    kept = table if rows is None else table[rows]
    design = np.ones((len(parents) + 1, len(kept)))
    design[1:] = kept[:, list(parents)].T
    return np.ascontiguousarray(kept[:, child]), design


@vector_inner
def residuals(y, design, theta, out):
    """Write the residuals in units of the noise."""
    p, n = len(design), len(y)
    inverse = math.exp(-theta[p])
    for r in range(n):
        out[r] = y[r]
    for a in range(p):
        b, row = theta[a], design[a]
        for r in range(n):
            out[r] -= b * row[r]
    for r in range(n):
        out[r] *= inverse


@vector_inner
def _scale_constant(settings, k):
    a = settings.shape + 0.5 * k
    return math.log(2.0) + a * math.log(settings.rate) - math.lgamma(a)


@kernel
def log_joint(y, design, settings: SemSettings, theta):
    """Log likelihood plus log prior density of the parameters of a column.

    Parameters
    ----------
    y : (n,) float array
    design : (k + 1, n) float array
        See :func:`family_design`.
    settings : SemSettings
    theta : (k + 2 + S,) float array, or (2 k + 2 + S,) of a horseshoe

    Returns
    -------
    float
        The densities are those of the coordinates of `theta`. A log scale or a shape that all columns share is
        given: its own prior is not in it.
    """
    p, size = len(design), shape_size(settings.noise)
    tau, shape = theta[p], theta[p + 1 : p + 1 + size]
    e = np.empty(len(y))
    residuals(y, design, theta, e)
    out = log_density(settings.noise, e, shape) - len(y) * tau
    inverse = math.exp(-tau)
    gamma = theta[0] * inverse
    out += 0.5 * (math.log(settings.alpha_mu) - _LOG_2PI - settings.alpha_mu * gamma * gamma) - tau
    for a in range(1, p):
        gamma, width = theta[a] * inverse, settings.scale
        if settings.prior == HORSESHOE:
            log_lambda = theta[p + size + a]
            width *= math.exp(log_lambda)
            out += math.log(2.0 / math.pi) + log_lambda - log_one_plus_square(log_lambda)
        if settings.prior == SLAB_LAPLACE:
            out -= abs(gamma) / width + math.log(2.0 * width) + tau
        else:
            out -= 0.5 * (_LOG_2PI + (gamma / width) ** 2) + math.log(width) + tau
    if settings.variances == FREE:
        out += _scale_constant(settings, p - 1)
        out -= (2.0 * settings.shape + p - 1) * tau + settings.rate * inverse * inverse
    if settings.variances == FREE or settings.noise == STUDENT:
        out += log_shape_prior(settings, shape)
    return out


# --- derivatives -----------------------------------------------------------------------------


@vector_inner
def _likelihood_terms(y, design, settings, theta, gradient, hessian):
    """Write the derivatives of the log likelihood; return it."""
    p, n, size = len(design), len(y), shape_size(settings.noise)
    e, slope, bend = np.empty(n), np.empty(n), np.empty(n)
    cross, mixed = np.empty((size, n)), np.empty(n)
    at = p + 1
    residuals(y, design, theta, e)
    width = min(math.sqrt(0.5 * p / max(n, 1)), 0.7)
    total = noise_terms(
        settings.noise,
        e,
        theta[at : at + size],
        width,
        slope,
        bend,
        cross,
        gradient[at:],
        hessian[at:, at:],
    )
    inverse = math.exp(-theta[p])
    for r in range(n):
        mixed[r] = bend[r] * e[r] + slope[r]
    gradient[p] = -dot(slope, e) - n
    hessian[p, p] = dot(mixed, e)
    for a in range(p):
        gradient[a] = -inverse * dot(slope, design[a])
        hessian[a, p] = inverse * dot(mixed, design[a])
    for z in range(size):
        for a in range(p):
            hessian[a, at + z] = -inverse * dot(cross[z], design[a])
        hessian[p, at + z] = -dot(cross[z], e)
    for a in range(p):
        for r in range(n):
            mixed[r] = bend[r] * design[a, r]
        for b in range(a + 1):
            hessian[b, a] = inverse * inverse * dot(mixed, design[b])
    return total - n * theta[p]


@vector_inner
def _slab_terms(settings, gamma, log_lambda, n):
    """Log density of a coefficient in units of the noise, and its derivatives."""
    width = settings.scale
    if settings.prior == SLAB_LAPLACE:
        value, first, second = smooth_absolute(gamma, 1.0 / math.sqrt(n + 1.0))
        return -value / width - math.log(2.0 * width), -first / width, -second / width
    width *= math.exp(log_lambda)
    precision = 1.0 / (width * width)
    value = -0.5 * (_LOG_2PI + gamma * gamma * precision) - math.log(width)
    return value, -gamma * precision, -precision


@vector_inner
def _prior_terms(settings, theta, log_lambda, n, gradient, hessian):
    """Add the derivatives of the log prior; return it."""
    p = len(log_lambda) + 1
    tau, size = theta[p], shape_size(settings.noise)
    inverse, total, mu = math.exp(-tau), 0.0, settings.alpha_mu
    for a in range(p):
        gamma = theta[a] * inverse
        if a == 0:
            value = 0.5 * (math.log(mu) - _LOG_2PI - mu * gamma * gamma)
            first, second = -mu * gamma, -mu
        else:
            value, first, second = _slab_terms(settings, gamma, log_lambda[a - 1], n)
        total += value - tau
        gradient[a] += first * inverse
        hessian[a, a] += second * inverse * inverse
        gradient[p] -= gamma * first + 1.0
        hessian[p, p] += gamma * (gamma * second + first)
        hessian[a, p] -= inverse * (gamma * second + first)
    if settings.variances == FREE:
        twice, rate = 2.0 * settings.shape + p - 1, settings.rate * inverse * inverse
        total += _scale_constant(settings, p - 1) - twice * tau - rate
        gradient[p] += 2.0 * rate - twice
        hessian[p, p] -= 4.0 * rate
    if settings.variances == FREE or settings.noise == STUDENT:
        at = p + 1
        total += shape_prior_terms(
            settings, theta[at : at + size], gradient[at:], hessian[at:, at:]
        )
    return total


@vector_inner
def _terms(y, design, settings, theta, log_lambda, gradient, hessian):
    """Write the derivatives of the smoothed log posterior density; return it."""
    gradient[:], hessian[:] = 0.0, 0.0
    total = _likelihood_terms(y, design, settings, theta, gradient, hessian)
    total += _prior_terms(settings, theta, log_lambda, len(y), gradient, hessian)
    for a in range(len(theta)):
        for b in range(a):
            hessian[a, b] = hessian[b, a]
    return total


# --- Newton's method -------------------------------------------------------------------------


@inner
def first_given(settings: SemSettings, k):
    """First and last + 1 of the parameters that are given: those that all columns share."""
    if settings.variances == FREE:
        return 0, 0
    return k + 1, k + 2 + (shape_size(settings.noise) if settings.noise == MIXTURE else 0)


@vector_inner
def _damped(settings, hessian, damp, out):
    """Write the factor of minus the Hessian of free parameters, damped; whether it is positive definite."""
    size = len(hessian)
    first, last = first_given(settings, size - 2 - shape_size(settings.noise))
    for a in range(size):
        given = first <= a < last
        for b in range(a + 1):
            both = given or first <= b < last
            out[a, b] = 0.0 if both else -hessian[a, b]
        out[a, a] = 1.0 if given else out[a, a] + damp * (abs(hessian[a, a]) + 1e-3)
    return factorize(out, _PIVOT)


@vector_inner
def _climb(y, design, settings, log_lambda, theta, hessian):
    """Move the parameters to a mode; return the smoothed log posterior density there."""
    size, p = len(theta), len(design)
    first, last = first_given(settings, p - 1)
    gradient, fresh = np.empty(size), np.empty(size)
    step, factor = np.empty(size), np.empty((size, size))
    trial, curve = np.empty(size), np.empty((size, size))
    value, damp = _terms(y, design, settings, theta, log_lambda, gradient, hessian), 0.0
    for _ in range(_STEPS):
        while not _damped(settings, hessian, damp, factor):
            damp = max(4.0 * damp, 1e-3)
        for a in range(size):
            step[a] = 0.0 if first <= a < last else gradient[a]
        solve_lower(factor, step)
        solve_upper(factor, step)
        gain, longest = 0.0, 0.0
        for a in range(size):
            if not first <= a < last:
                gain += gradient[a] * step[a]
            if a >= p:
                unit = theta[a] if a > p and settings.noise == MIXTURE else 1.0
                longest = max(longest, abs(step[a]) / unit)
        if gain < _GAIN:
            break
        length = min(1.0, _LONGEST / max(longest, 1e-300))
        for a in range(size):
            trial[a] = theta[a] + length * step[a]
        found = _terms(y, design, settings, trial, log_lambda, fresh, curve)
        if found >= value:
            value, damp = found, 0.0 if damp < 1e-3 else 0.25 * damp
            copy_vector(theta, trial)
            copy_vector(gradient, fresh)
            copy_matrix(hessian, curve)
        else:
            damp = max(8.0 * damp, 1e-2)
            if damp > 1e8:
                break
    return value


@vector_inner
def _start(y, design, settings, log_lambda, theta):
    """Begin with a ridge regression."""
    p, n = len(design), len(y)
    matrix, x, e = np.empty((p, p)), np.empty(p), np.empty(n)
    for a in range(p):
        x[a] = dot(design[a], y)
        for b in range(a + 1):
            matrix[a, b] = dot(design[a], design[b])
        if a == 0:
            matrix[a, a] += settings.alpha_mu
        else:
            matrix[a, a] += math.exp(-2.0 * log_lambda[a - 1]) / settings.scale**2
    copy_vector(theta, x)
    factorize(matrix, 1e-14)
    solve_lower(matrix, theta[:p])
    solve_upper(matrix, theta[:p])
    log_det = 0.0
    for a in range(p):
        log_det += 2.0 * math.log(matrix[a, a])
    left = dot(y, y) - dot(x, theta[:p])
    if left < 1e-6 * dot(y, y):  # of which rounding leaves too few digits
        given, theta[p] = theta[p], 0.0
        residuals(y, design, theta, e)
        left, theta[p] = dot(e, e) + settings.alpha_mu * theta[0] ** 2, given
        for a in range(1, p):
            left += (theta[a] / settings.scale) ** 2 * math.exp(-2.0 * log_lambda[a - 1])
    if settings.variances == FREE:
        mass = n + p + 2.0 * settings.shape + p - 1.0
        theta[p] = 0.5 * math.log((left + 2.0 * settings.rate) / mass)
    return max(left, 0.0), log_det


@vector_inner
def _gaussian_evidence(settings, n, k, left, log_det, tau):
    """Log evidence of normal noise with normal slabs, given the scale if it is not free."""
    prior = math.log(settings.alpha_mu) - 2.0 * k * math.log(settings.scale)
    out = 0.5 * (prior - log_det - n * _LOG_2PI)
    if settings.variances == FREE:
        a, b = settings.shape + 0.5 * k, settings.rate
        out += a * math.log(b) - math.lgamma(a) + math.lgamma(a + 0.5 * n)
        return out - (a + 0.5 * n) * math.log(b + 0.5 * left)
    return out - n * tau - 0.5 * left * math.exp(-2.0 * tau)


@vector_inner
def _laplace_evidence(settings, value, hessian, factor):
    """Log evidence by Laplace's approximation; `factor` is overwritten."""
    damp = 0.0
    while not _damped(settings, hessian, damp, factor):
        damp = max(4.0 * damp, 1e-3)
    if damp > 0.0:
        for a in range(len(hessian)):
            hessian[a, a] -= damp * (abs(hessian[a, a]) + 1e-3)
    first, last = first_given(settings, len(hessian) - 2 - shape_size(settings.noise))
    size = len(hessian) - (last - first)
    out = value + 0.5 * size * _LOG_2PI
    if settings.noise == LAPLACE:  # smoothing has taken a half from each coefficient
        out += 0.5 * (len(hessian) - 1)
    for a in range(len(hessian)):
        out -= math.log(factor[a, a])
    return out


# --- scales of a horseshoe -------------------------------------------------------------------


@vector_inner
def _update_scales(settings, theta, factor, log_lambda, sd):
    """Move the log scales to their means given the rest; return a correction of the log evidence."""
    p, size, out = len(log_lambda) + 1, len(theta), 0.0
    unit, inverse = np.empty(size), math.exp(-theta[len(log_lambda) + 1])
    for a in range(1, p):
        unit[:] = 0.0
        unit[a] = 1.0
        solve_lower(factor, unit)
        variance = dot(unit, unit) * inverse * inverse
        slab = (settings.scale * math.exp(log_lambda[a - 1])) ** 2
        rest = max(1.0 / variance - 1.0 / slab, 1e-8)
        gamma = theta[a] * inverse / (variance * rest)
        mean, sd[a - 1], evidence = scale_moments(gamma, 1.0 / rest, settings.scale)
        out += evidence - log_normal(gamma, 1.0 / rest + slab)
        log_lambda[a - 1] = mean
    return out


@kernel
def _fit(y, design, settings, theta, warm):
    """Mode from a start, in place; the parts of a fit."""
    p, size = len(design), len(theta)
    log_lambda, sd = np.zeros(p - 1), np.zeros(p - 1)
    hessian, factor = np.empty((size, size)), np.empty((size, size))
    begin = theta.copy()
    left, log_det = _start(y, design, settings, log_lambda, begin)
    if not warm or is_exact(settings):  # the start is the mode then
        copy_vector(theta, begin)
    several = settings.noise == MIXTURE and settings.variances == FREE
    if several:
        copy_vector(theta, begin[:p])
        begin_mixture(settings, y - theta[:p] @ design, theta, p)
    evidence = 0.0
    for turn in range(_ROUNDS if settings.prior == HORSESHOE and p > 1 else 1):
        if turn > 0:
            _update_scales(settings, theta, factor, log_lambda, sd)
        value = _climb(y, design, settings, log_lambda, theta, hessian)
        if several:
            other = theta.copy()
            if begin_mixture(settings, y - theta[:p] @ design, other, p):
                curve = hessian.copy()
                found = _climb(y, design, settings, log_lambda, other, curve)
                if found > value:
                    value = found
                    copy_vector(theta, other)
                    copy_matrix(hessian, curve)
        evidence = _laplace_evidence(settings, value, hessian, factor)
    if settings.prior == HORSESHOE:
        final = log_lambda.copy()
        evidence += _update_scales(settings, theta, factor, final, sd)
    if is_exact(settings):
        evidence = _gaussian_evidence(settings, len(y), p - 1, left, log_det, theta[p])
    hessian = _even_hessian(settings, theta, p, hessian)
    centre = theta.copy()
    move_coordinates(settings, centre, p, 1)
    return centre, -hessian, _schur(hessian, p), log_lambda, sd, evidence


@kernel
def move_coordinates(settings: SemSettings, theta, p, direction):
    """Change parameters to even coordinates (direction 1) or back (-1), in place."""
    if settings.noise == MIXTURE:
        mean, log_sd, _, _ = mixture_moments(theta[p + 1 : p + 1 + shape_size(MIXTURE)])
        if direction > 0:
            theta[0] += math.exp(theta[p]) * mean
            theta[p] += log_sd
        else:
            theta[p] -= log_sd
            theta[0] -= math.exp(theta[p]) * mean


@inner
def _even_hessian(settings, theta, p, hessian):
    """Hessian at a mode in even coordinates."""
    size = len(theta)
    out = hessian.copy()
    if settings.noise != MIXTURE:
        return out
    mean, _, by_mean, by_log_sd = mixture_moments(theta[p + 1 :])
    scale = math.exp(theta[p])
    jacobian = np.eye(size)
    jacobian[0, p] = -scale * mean
    for k in range(size - p - 1):
        jacobian[p, p + 1 + k] = -by_log_sd[k]
        jacobian[0, p + 1 + k] = scale * (by_log_sd[k] * mean - by_mean[k])
    # Hessian times Jacobian, of which only rows 0 and p are not those of an identity.
    for a in range(size):
        for b in range(size):
            out[a, b] = hessian[a, b]
            if b > 0:
                out[a, b] += hessian[a, 0] * jacobian[0, b]
            if b > p:
                out[a, b] += hessian[a, p] * jacobian[p, b]
    half = out.copy()
    for a in range(size):
        for b in range(size):
            if a > 0:
                out[a, b] += jacobian[0, a] * half[0, b]
            if a > p:
                out[a, b] += jacobian[p, a] * half[p, b]
    return out


@vector_inner
def _schur(hessian, p):
    """Precision of the last parameters, the first p integrated out."""
    size = len(hessian)
    block, out = -hessian[:p, :p].copy(), -hessian[p:, p:].copy()
    factorize(block, _PIVOT)
    columns = np.empty((size - p, p))
    for z in range(size - p):
        for a in range(p):
            columns[z, a] = -hessian[p + z, a]
        solve_lower(block, columns[z])
    for z in range(size - p):
        for w in range(size - p):
            out[z, w] -= dot(columns[z], columns[w])
    return out


def fit_family(y, design, settings: SemSettings, *, tau=0.0, shape=None, start=None) -> FamilyFit:
    """Fit the parameters of one column given its parents.

    Parameters
    ----------
    y : (n,) float array
    design : (k + 1, n) float array
        Ones and the parents as rows, see :func:`family_design`.
    settings : SemSettings
    tau : float
        Log scale of the noise; used with equal or known variances.
    shape : (S,) float array, optional
        Shape of the noise: used with a mixture and equal or known variances, else a start.
    start : (k + 2 + S,) float array, optional
        Where to begin, for example the mode with one parent less and 0. Not used for a mixture with free variances, whose mode is
        searched for from several points.

    Returns
    -------
    FamilyFit

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.sem.kernels.settings import sem_settings
    >>> x = np.random.default_rng(0).laplace(size=(200, 2))
    >>> y, design = family_design(x @ [[1, 2], [0, 1]], 1, [0])
    >>> fit_family(y, design, sem_settings(2)).mode[1].round(1)
    np.float64(1.9)
    """
    p, size = len(design), shape_size(settings.noise)
    theta = np.zeros(p + 1 + size)
    warm = start is not None
    if warm:
        theta[:] = start
    else:
        theta[p + 1 :] = start_shape(settings)
    given = settings.variances != FREE
    if given:
        theta[p] = tau
    if shape is not None and ((settings.noise == MIXTURE and given) or not warm):
        theta[p + 1 :] = shape
    centre, precision, schur, mean, sd, evidence = _fit(y, design, settings, theta, warm)
    if settings.prior != HORSESHOE:
        mean = sd = np.empty(0)
    return FamilyFit(theta, centre, precision, schur, mean, sd, float(evidence))
