"""Draws of a precision matrix and its global scale from the graphical horseshoe prior.

The prior is that of independent elements, conditioned on the matrix being positive definite: by rejection in a few dimensions, by
Gibbs sweeps without data beyond, as in :mod:`bayesstruct.precision.kernels.prior`.
"""

import math

import numpy as np

from bayesstruct.core.arrays import copy_matrix
from bayesstruct.core.jit import kernel
from bayesstruct.precision.kernels.horseshoe.sweep import horseshoe_sweep
from bayesstruct.precision.kernels.prior import (
    REJECTION_SIZE,
    REJECTION_TRIES,
    SWEEPS,
    diagonal_start,
    fill_diagonal,
    is_positive_definite,
)

__all__ = ["draw_horseshoe", "draw_implied_scale", "horseshoe_exceedance", "rescale_prior"]


@kernel
def _fill_horseshoe(rng, precision, scales):
    p = precision.shape[0]
    for i in range(p):
        for j in range(i):
            local = math.tan(0.5 * math.pi * rng.random())
            value = rng.standard_normal() * local * scales[i, j]
            precision[i, j] = value
            precision[j, i] = value


@kernel
def draw_horseshoe(rng, scales, rate):
    """Draw a precision matrix given the (p, p) global scales of its elements."""
    p = scales.shape[0]
    precision, covariance = np.empty((p, p)), np.zeros((p, p))
    if p <= REJECTION_SIZE:
        for _ in range(REJECTION_TRIES):
            _fill_horseshoe(rng, precision, scales)
            fill_diagonal(rng, precision, rate)
            if is_positive_definite(precision, covariance):
                return precision
    nothing, work = np.zeros((p, p)), np.empty((2, p))
    diagonal_start(precision, covariance)
    for _ in range(SWEEPS):
        horseshoe_sweep(rng, precision, covariance, nothing, 0.0, scales, rate, work)
    return precision


@kernel
def rescale_prior(rng, precision, scale, width, space):
    """Draw the common factor of the global scale and all off-diagonal elements from its conditional without data.

    The matrix is positive definite for factors below a bound, so that the half-Cauchy distribution ends there.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision : (p, p) float64, changed in place
    scale, width : float
        Global scale, and the scale of its half-Cauchy prior.
    space : (2, p, p) float64
        Work space.

    Returns
    -------
    float
        The global scale.
    """
    trial, factor = space[0], space[1]
    copy_matrix(trial, precision)
    angle = 0.5 * math.pi
    while True:
        new = width * math.tan(rng.random() * angle)
        ratio = new / scale
        for i in range(precision.shape[0]):
            for j in range(i):
                trial[i, j] = ratio * precision[i, j]
        if new > 0.0 and is_positive_definite(trial, factor):
            break
        angle = math.atan(max(new, 1e-300) / width)
    for i in range(precision.shape[0]):
        for j in range(i):
            precision[i, j] = precision[j, i] = trial[i, j]
    return new


@kernel
def _sweep_jointly(rng, precision, covariance, scale, width, rate, space):
    """Draw matrix and global scale once without data, in place; return the global scale."""
    p = precision.shape[0]
    nothing, scales = np.zeros((p, p)), np.full((p, p), scale)
    horseshoe_sweep(rng, precision, covariance, nothing, 0.0, scales, rate, np.empty((2, p)))
    scale = rescale_prior(rng, precision, scale, width, space)
    copy_matrix(covariance, np.linalg.inv(precision))
    return scale


@kernel
def draw_implied_scale(rng, p, width, rate):
    """Draw the global scale from its implied prior.

    That is the half-Cauchy density times the probability that independent elements give a positive definite matrix: rejection
    in a few dimensions, Gibbs sweeps over the joint distribution beyond.
    """
    precision, covariance = np.empty((p, p)), np.zeros((p, p))
    if p <= REJECTION_SIZE:
        for _ in range(REJECTION_TRIES):
            scale = width * math.tan(0.5 * math.pi * rng.random())
            _fill_horseshoe(rng, precision, np.full((p, p), scale))
            fill_diagonal(rng, precision, rate)
            if is_positive_definite(precision, covariance):
                return scale
    return _joint_start(rng, precision, covariance, width, rate)


@kernel
def _joint_start(rng, precision, covariance, width, rate):
    """Run sweeps over matrix and global scale without data from a diagonal matrix; return the global scale."""
    diagonal_start(precision, covariance)
    space = np.empty((2, *precision.shape))
    scale = min(width, 1.0 / precision.shape[0])
    for _ in range(SWEEPS):
        scale = _sweep_jointly(rng, precision, covariance, scale, width, rate, space)
    return scale


@kernel
def horseshoe_exceedance(rng, p, bound, scale, learned, rate, sweeps):
    """Prior share of partial correlations beyond ``bound``.

    Parameters
    ----------
    rng : numpy.random.Generator
    p : int
    bound : float
    scale : float
        Global scale, or the scale of its half-Cauchy prior if it is `learned`.
    learned : bool
    rate : float
        Exponential rate of the diagonal.
    sweeps : int
    """
    precision, covariance, space = np.empty((p, p)), np.empty((p, p)), np.empty((2, p, p))
    nothing, work, scales = np.zeros((p, p)), np.empty((2, p)), np.full((p, p), scale)
    now = scale
    if learned:
        now = _joint_start(rng, precision, covariance, scale, rate)
    else:
        diagonal_start(precision, covariance)
        for _ in range(SWEEPS):
            horseshoe_sweep(rng, precision, covariance, nothing, 0.0, scales, rate, work)
    count = 0
    for _ in range(sweeps):
        if learned:
            now = _sweep_jointly(rng, precision, covariance, now, scale, rate, space)
        else:
            horseshoe_sweep(rng, precision, covariance, nothing, 0.0, scales, rate, work)
        for i in range(p):
            for j in range(i):
                size = precision[i, i] * precision[j, j]
                count += precision[i, j] ** 2 > bound * bound * size
    return count / (sweeps * 0.5 * p * (p - 1))
