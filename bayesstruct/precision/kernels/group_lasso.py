r"""Gibbs sweeps and prior draws of a precision matrix with norms of groups of elements in its prior.

.. math::

    p(K) \propto \prod_{i<j} e^{-\lambda_{ij} |k_{ij}|} \prod_i e^{-d k_{ii}} \prod_g e^{-\tau_g \|k_g\|} \; 1\{K \succ 0\}

An element may be in two groups, one for each order of its columns. With Euclidean norms every group has a latent variance,

.. math:: e^{-\tau \|x\|} \propto \int s^{-1/2} e^{-\|x\|^2 / (2 s)} e^{-\tau^2 s / 2} \, ds,

drawn anew in each sweep: :math:`1 / s` is inverse Gaussian given the norm, and the elements have normal terms given the variances.
With largest absolute values, one element among others of largest absolute value m has the term
:math:`\tau \max(|u|, m) = \tau (|u - m| + |u + m|) / 2`, for :mod:`bayesstruct.precision.kernels.piecewise`.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.gibbs import (
    close_column,
    laplace_normal,
    open_column,
    shift_column,
)
from bayesstruct.precision.kernels.piecewise import piecewise_normal

SWEEPS = 100  # without data


@inner
def inverse_variance(rng, norm, rate):
    """Draw ``1 / s`` given the norm of a group: inverse Gaussian of mean ``rate / norm`` and shape ``rate^2``."""
    y = rng.standard_normal() ** 2
    if norm == 0.0:
        return rate * rate / y
    mean, t = rate / norm, 0.5 * y / (rate * norm)
    root = 1.0 + t + math.sqrt(t * (2.0 + t))
    # The smaller root of the two of Michael, Schucany and Haas (1976), without cancellation.
    return mean / root if rng.random() * (1.0 + 1.0 / root) < 1.0 else mean * root


@inner
def _largest_other(precision, members, g, skip):
    """Largest absolute value of a group but for one element, given by its place."""
    p, largest = precision.shape[0], 0.0
    for m in range(members.shape[1]):
        at = members[g, m]
        if at < 0:
            break
        if at != skip:
            largest = max(largest, abs(precision[at // p, at % p]))
    return largest


@kernel
def _prepare(rng, precision, members, group_rates, linf, level):
    """Write the largest absolute value of each group to ``level``, or draw its inverse variance."""
    p = precision.shape[0]
    for g in range(len(group_rates)):
        if linf:
            level[g] = _largest_other(precision, members, g, -1)
        elif group_rates[g] > 0.0:
            square = 0.0
            for m in range(members.shape[1]):
                at = members[g, m]
                if at < 0:
                    break
                square += precision[at // p, at % p] ** 2
            level[g] = inverse_variance(rng, math.sqrt(square), group_rates[g])
        else:
            level[g] = 0.0


@inner
def _add_group(precision, members, group_rates, level, g, at, old, knots, count):
    """Add the points of an element's group; ``level`` becomes that of the other elements."""
    if abs(old) >= level[g]:
        level[g] = _largest_other(precision, members, g, at)
    knots[0, count], knots[1, count] = level[g], 0.5 * group_rates[g]
    knots[0, count + 1], knots[1, count + 1] = -level[g], 0.5 * group_rates[g]
    return count + 2


@kernel
def _draw_linf(rng, precision, j, i, b, h, rate, group, members, group_rates, level, knots):
    p, count = precision.shape[0], 1
    old = precision[j, i]
    knots[0, 0], knots[1, 0] = 0.0, rate
    for g, at in ((group[j, i], j * p + i), (group[i, j], i * p + j)):
        if g >= 0:
            count = _add_group(precision, members, group_rates, level, g, at, old, knots, count)
    new = piecewise_normal(rng, b, h, knots[0], knots[1], count, knots[2])
    for g in (group[j, i], group[i, j]):
        if g >= 0:
            level[g] = max(level[g], abs(new))
    return new


@kernel
def group_lasso_sweep(
    rng,
    precision,
    covariance,
    scatter,
    n,
    rates,
    group,
    members,
    group_rates,
    linf,
    rate,
    columns,
    level,
    knots,
):
    """Update every column of K under the prior of this module, once.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision, covariance : (p, p) float64, changed in place
        ``K`` and its inverse.
    scatter : (p, p) float64
        Sum of outer products of the rows about their mean.
    n : float
        Number of rows.
    rates : (p, p) float64
        Rates of the absolute values.
    group : (p, p) int64
        Group of each ordered element, or -1.
    members : (groups, most) int64
        Places of the elements of each group, in row order, then -1.
    group_rates : (groups,) float64
        Rates of the norms.
    linf : bool
        Whether norms are largest absolute values; otherwise Euclidean.
    rate : float
        Rate of the exponential prior of the diagonal.
    columns : (2, p) float64
        Work space.
    level : (groups,) float64
        Work space.
    knots : (3, 6) float64
        Work space.
    """
    p = precision.shape[0]
    column, product = columns[0], columns[1]
    _prepare(rng, precision, members, group_rates, linf, level)
    for j in range(p):
        pivot = open_column(covariance, j, column, product)
        a = scatter[j, j] + 2.0 * rate
        for i in range(p):
            if i == j:
                continue
            ratio = column[i] / pivot
            h = a * (covariance[i, i] - ratio * column[i])
            old = precision[j, i]
            b = h * old - a * product[i] - scatter[j, i]
            if linf:
                new = _draw_linf(
                    rng,
                    precision,
                    j,
                    i,
                    b,
                    h,
                    rates[j, i],
                    group,
                    members,
                    group_rates,
                    level,
                    knots,
                )
            else:
                for g in (group[j, i], group[i, j]):
                    if g >= 0:
                        h += level[g]
                new = laplace_normal(rng, b, h, rates[j, i])
            shift_column(covariance, column, product, i, new - old, ratio)
            precision[j, i] = new
            precision[i, j] = new
        v = rng.standard_gamma(0.5 * n + 1.0) * 2.0 / a
        close_column(precision, covariance, j, v, column, product, pivot)


@kernel
def group_of_elements(members, p):
    """Group of each ordered element, or -1: (p, p) int64."""
    group = np.full((p, p), -1, np.int64)
    for g in range(members.shape[0]):
        for m in range(members.shape[1]):
            at = members[g, m]
            if at >= 0:
                group[at // p, at % p] = g
    return group


@kernel
def draw_group_lasso(rng, rates, members, group_rates, linf, rate):
    """Draw a precision matrix from the prior of this module (p, p), by sweeps without data from a diagonal start."""
    return sweep_group_prior(rng, rates, members, group_rates, linf, rate, 1.0, 1)[0]


@kernel
def sweep_group_prior(rng, rates, members, group_rates, linf, rate, bound, sweeps):
    """Last matrix of a run without data, and the share of each partial correlation beyond ``bound`` after the first sweeps."""
    p = rates.shape[0]
    precision, covariance, nothing = np.eye(p), np.eye(p), np.zeros((p, p))
    beyond, group = np.zeros((p, p)), group_of_elements(members, p)
    prior = (rates, group, members, group_rates, linf, rate)
    columns, level, knots = np.empty((2, p)), np.empty(len(group_rates)), np.empty((3, 6))
    for t in range(SWEEPS + sweeps):
        group_lasso_sweep(rng, precision, covariance, nothing, 0.0, *prior, columns, level, knots)
        if t >= SWEEPS:
            for i in range(p):
                for j in range(i):
                    scale = precision[i, i] * precision[j, j]
                    beyond[i, j] += precision[i, j] ** 2 > bound * bound * scale
    return precision, (beyond + beyond.T) / sweeps
