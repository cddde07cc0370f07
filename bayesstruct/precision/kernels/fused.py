r"""Gibbs sweeps and prior draws of a precision matrix whose neighbouring columns have similar elements.

The prior is

.. math::

    p(K) \propto \prod_{i<j} e^{-\lambda_{ij} |k_{ij}|} \prod_i e^{-d k_{ii}}
        \prod_{a \sim b} \prod_{i \notin \{a, b\}} e^{-w_{ab} |k_{ai} - k_{bi}|} \; 1\{K \succ 0\}

so that one element, given all others, has the density of :mod:`bayesstruct.precision.kernels.piecewise`: its points are zero, the
elements of its row in the neighbours of its column, and those of its column in the neighbours of its row. The rest is as
in :mod:`bayesstruct.precision.kernels.gibbs`.
"""

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.gibbs import close_column, open_column, shift_column
from bayesstruct.precision.kernels.piecewise import piecewise_normal

SWEEPS = 100  # without data; neighbouring elements make the steps of one smaller than those of independent ones


@inner
def _collect(precision, j, i, rate, near, differences, points, weights):
    """Write the points and weights of the element (j, i); return their number."""
    points[0], weights[0] = 0.0, rate
    count = 1
    for m in range(near.shape[1]):
        other = near[j, m]
        if other < 0:
            break
        if other != i:
            points[count], weights[count] = precision[other, i], differences[j, other]
            count += 1
    for m in range(near.shape[1]):
        other = near[i, m]
        if other < 0:
            break
        if other != j:
            points[count], weights[count] = precision[j, other], differences[i, other]
            count += 1
    return count


@kernel
def fused_sweep(
    rng, precision, covariance, scatter, n, rates, near, differences, rate, columns, knots
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
    near : (p, most) int64
        Neighbours of each column, then -1.
    differences : (p, p) float64
        Rate of the differences of two neighbours.
    rate : float
        Rate of the exponential prior of the diagonal.
    columns : (2, p) float64
        Work space.
    knots : (3, 2 most + 2) float64
        Work space.
    """
    p = precision.shape[0]
    column, product = columns[0], columns[1]
    points, weights, masses = knots[0], knots[1], knots[2]
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
            count = _collect(precision, j, i, rates[j, i], near, differences, points, weights)
            new = piecewise_normal(rng, b, h, points, weights, count, masses)
            shift_column(covariance, column, product, i, new - old, ratio)
            precision[j, i] = new
            precision[i, j] = new
        v = rng.standard_gamma(0.5 * n + 1.0) * 2.0 / a
        close_column(precision, covariance, j, v, column, product, pivot)


@kernel
def neighbour_list(differences):
    """Neighbours of each column, those with a positive rate, then -1: (p, most) int64."""
    p, most = differences.shape[0], 0
    for a in range(p):
        count = 0
        for b in range(p):
            count += differences[a, b] > 0.0
        most = max(most, count)
    near = np.full((p, max(most, 1)), -1, np.int64)
    for a in range(p):
        count = 0
        for b in range(p):
            if differences[a, b] > 0.0:
                near[a, count] = b
                count += 1
    return near


@kernel
def draw_fused(rng, rates, differences, rate):
    """Draw a precision matrix from the prior of this module (p, p), by sweeps without data from a diagonal start."""
    return sweep_fused_prior(rng, rates, differences, rate, 1.0, 1)[0]


@kernel
def sweep_fused_prior(rng, rates, differences, rate, bound, sweeps):
    """Last matrix of a run without data, and the share of each partial correlation beyond ``bound`` after the first sweeps."""
    p = rates.shape[0]
    precision, covariance, nothing = np.eye(p), np.eye(p), np.zeros((p, p))
    beyond = np.zeros((p, p))
    near = neighbour_list(differences)
    columns, knots = np.empty((2, p)), np.empty((3, 2 * near.shape[1] + 2))
    for t in range(SWEEPS + sweeps):
        fused_sweep(
            rng, precision, covariance, nothing, 0.0, rates, near, differences, rate, columns, knots
        )
        if t >= SWEEPS:
            for i in range(p):
                for j in range(i):
                    scale = precision[i, i] * precision[j, j]
                    beyond[i, j] += precision[i, j] ** 2 > bound * bound * scale
    return precision, (beyond + beyond.T) / sweeps
