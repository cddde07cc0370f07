"""Conditional normal draws and means of the missing values of a table."""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel


@inner
def _gather(precision, residual, missing, block, push):
    """Fill ``block = K_mm`` and ``push = K_mo e_o`` for one row; return the number of missing values."""
    p, m = precision.shape[0], 0
    for k in range(p):
        if missing[k]:
            block[m, m] = precision[k, k]
            total, other = 0.0, 0
            for i in range(p):
                if not missing[i]:
                    total += precision[k, i] * residual[i]
                else:
                    block[m, other] = precision[k, i]
                    other += 1
            push[m] = total
            m += 1
    return m


@inner
def _factor(block, m):
    """Overwrite the leading (m, m) block by its lower Cholesky factor."""
    for i in range(m):
        for j in range(i + 1):
            total = block[i, j]
            for k in range(j):
                total -= block[i, k] * block[j, k]
            block[i, j] = math.sqrt(total) if i == j else total / block[j, j]


@inner
def _solve_lower(factor, vector, m):
    for i in range(m):
        total = vector[i]
        for k in range(i):
            total -= factor[i, k] * vector[k]
        vector[i] = total / factor[i, i]


@inner
def _solve_upper(factor, vector, m):
    """Solve with the transpose of a lower factor."""
    for i in range(m - 1, -1, -1):
        total = vector[i]
        for k in range(i + 1, m):
            total -= factor[k, i] * vector[k]
        vector[i] = total / factor[i, i]


@inner
def _spread(residual, missing, values):
    m = 0
    for k in range(residual.shape[0]):
        if missing[k]:
            residual[k] = values[m]
            m += 1


@kernel
def draw_missing(rng, precision, residuals, missing):
    """Draw the missing values of each row given its observed ones, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision : (p, p) float64
    residuals : (n, p) float64, changed in place
        Standardised rows less their means.
    missing : (n, p) bool
    """
    p = precision.shape[0]
    block, push = np.empty((p, p)), np.empty(p)
    for r in range(residuals.shape[0]):
        m = _gather(precision, residuals[r], missing[r], block, push)
        _factor(block, m)
        _solve_lower(block, push, m)
        for k in range(m):
            push[k] = rng.standard_normal() - push[k]
        _solve_upper(block, push, m)
        _spread(residuals[r], missing[r], push)


@kernel
def expect_missing(precision, residuals, missing, covariance):
    """Put conditional means in place of the missing values and add their covariances to ``covariance``."""
    p = precision.shape[0]
    block, push, unit = np.empty((p, p)), np.empty(p), np.empty(p)
    places = np.empty(p, np.int64)
    for r in range(residuals.shape[0]):
        m = _gather(precision, residuals[r], missing[r], block, push)
        _factor(block, m)
        _solve_lower(block, push, m)
        for k in range(m):
            push[k] = -push[k]
        _solve_upper(block, push, m)
        _spread(residuals[r], missing[r], push)
        at = 0
        for k in range(p):
            if missing[r, k]:
                places[at] = k
                at += 1
        for k in range(m):
            unit[:] = 0.0
            unit[k] = 1.0
            _solve_lower(block, unit, m)
            _solve_upper(block, unit, m)
            for i in range(m):
                covariance[places[i], places[k]] += unit[i]
