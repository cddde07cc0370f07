r"""Scans over the triangular coordinates of a precision matrix, to compare with the sweep of the package.

The reverse telescoping decomposition of Gao, Sagar and Bhadra (2025, arXiv:2509.26385) writes

.. math:: K = \sum_j \frac{1}{v_j} \binom{u_j}{v_j} \binom{u_j}{v_j}', \qquad u_j \in R^{j-1}, \; v_j > 0,

with zeros below, so that :math:`k_{ij} = u_{ij} + C_{ij}` where C holds the terms of the columns after j. The Jacobian is one. With
the scatter of ``n`` rows and an exponential prior of rate ``d`` of the diagonal, :math:`M = S + 2 d I`, the likelihood is a product
over columns of

.. math:: v_j^{n/2} \exp(-\tfrac{1}{2} (M_{jj} v_j + 2 M_{<j,j}' u_j + u_j' M_{<j,<j} u_j / v_j)),

and given the variance of each element the prior is normal. These scans are here to be compared, and are no part of the package.
"""

import math

import numpy as np

from bayesstruct.core.jit import fused_kernel, kernel
from bayesstruct.precision.kernels.gibbs import draw_schur
from bayesstruct.precision.kernels.horseshoe.sweep import element_variances

__all__ = [
    "exact_scan",
    "generalized_inverse_gaussian",
    "horseshoe_chain",
    "published_scan",
    "triangular",
]


def triangular(precision):
    """Coordinates of a precision matrix: column j holds ``u_j`` above ``v_j``, and zeros below."""
    factor = np.linalg.cholesky(precision[::-1, ::-1])[::-1, ::-1]
    return np.ascontiguousarray(factor * np.diag(factor))


@kernel
def matrix_of(coordinates):
    """Precision matrix with these coordinates."""
    scaled = coordinates / np.diag(coordinates)
    return np.dot(scaled, np.ascontiguousarray(coordinates.T))


@kernel
def generalized_inverse_gaussian(rng, power, rate, inverse_rate):
    """Draw from ``x^(power - 1) exp(-(rate x + inverse_rate / x) / 2)``, ``power > 0``.

    The logarithm of x has a log-concave density; the envelope is flat around the mode and exponential beyond its tangents.
    """
    curvature = math.sqrt(power * power + rate * inverse_rate)
    mode = (power + curvature) / rate
    up, down = 0.5 * rate * mode, 0.5 * inverse_rate / mode
    t = math.sqrt(2.0 / curvature)
    ends, slopes = np.empty(2), np.empty(2)
    for side in range(2):
        s = t if side else -t
        value = power * s - up * math.expm1(s) - down * math.expm1(-s)
        slopes[side] = power - up * math.exp(s) + down * math.exp(-s)
        ends[side] = s - value / slopes[side]
    width, left, right = ends[1] - ends[0], 1.0 / slopes[0], -1.0 / slopes[1]
    while True:
        place = rng.random() * (width + left + right)
        height = 0.0
        if place < width:
            s = ends[0] + place
        else:
            height = -rng.standard_exponential()
            s = ends[0] + height * left if place < width + left else ends[1] - height * right
        if math.log(rng.random()) + height < power * s - up * math.expm1(s) - down * math.expm1(-s):
            return mode * math.exp(s)


@kernel
def published_scan(rng, coordinates, M, rows, n, variances, rate):
    """Draw every column once as in the public code of the authors (`RTsampler`), from the last to the first.

    Column j is drawn from the factor of the density that bears its number alone. The prior of the elements ``(i, k)`` between
    columns before j depends on it too, by ``C_ik``, and is left out: **the posterior is not invariant** from three columns on.
    `rows` is the table, by which a column after the first n is drawn at the cost of an (n, n) matrix.
    """
    p = len(M)
    C = np.zeros((p, p))
    for j in range(p - 1, 0, -1):
        u = coordinates[:j, j].copy()
        inner = M[:j, :j].copy()
        v = generalized_inverse_gaussian(rng, 0.5 * n + 1.0, M[j, j], u @ np.dot(inner, u))
        prior = variances[:j, j].copy()
        target = -M[:j, j] - C[:j, j] / prior
        if j > len(rows):
            diagonal = 1.0 / (2.0 * rate / v + 1.0 / prior)
            X = rows[:, :j] / math.sqrt(v)
            start = diagonal * target + np.sqrt(diagonal) * rng.standard_normal(j)
            wide = np.dot(X * diagonal, X.T) + np.eye(len(rows))
            shift = np.dot(X, start) + rng.standard_normal(len(rows))
            u = start - diagonal * np.dot(np.linalg.solve(wide, shift), X)
        else:
            Q = inner / v
            for i in range(j):
                Q[i, i] += 1.0 / prior[i]
            L = np.linalg.cholesky(Q)
            u = np.linalg.solve(L.T, np.linalg.solve(L, target) + rng.standard_normal(j))
        coordinates[:j, j], coordinates[j, j] = u, v
        for i in range(j):
            for k in range(j):
                C[i, k] += u[i] * u[k] / v
    coordinates[0, 0] = draw_schur(rng, n, M[0, 0])
    return matrix_of(coordinates)


@kernel
def _log_density_of_pivot(y, terms):
    """Log density of the logarithm of ``v_j``, less that of the present one."""
    power, now, up, down, slope, square = terms
    change = math.exp(-y) - math.exp(-now)
    return (
        power * (y - now)
        - up * (math.exp(y) - math.exp(now))
        - (down + slope) * change
        - square * change * change
    )


@kernel
def _slice(rng, terms, step):
    """Move the logarithm of ``v_j`` by one slice of its density (Neal 2003)."""
    y, level = terms[1], -rng.standard_exponential()
    low = y - step * rng.random()
    high = low + step
    while _log_density_of_pivot(low, terms) > level:
        low -= step
    while _log_density_of_pivot(high, terms) > level:
        high += step
    while True:
        new = low + (high - low) * rng.random()
        if _log_density_of_pivot(new, terms) > level:
            return new
        if new < y:
            low = new
        else:
            high = new


@fused_kernel
def exact_scan(rng, coordinates, precision, M, n, variances):
    """Draw every coordinate once given all others, from the last column to the first.

    ``u_ij`` shifts ``k_ij``, and the elements between i and the other columns before j: all normal, O(p) a coordinate. ``v_j`` moves
    by a slice of its logarithm. `precision` is changed in place.
    """
    p = len(M)
    tight = 1.0 / variances
    K, c, product = precision, np.empty(p), np.empty(p)
    for j in range(p - 1, 0, -1):
        v = coordinates[j, j]
        for i in range(j):
            c[i] = coordinates[i, j] / v
            product[i] = 0.0
            for k in range(j):
                product[i] += M[i, k] * coordinates[k, j]
        for i in range(j):
            weight = c[i]
            c[i] = 0.0
            h = M[i, i] / v + tight[i, j]
            slope = -M[i, j] - product[i] / v - K[i, j] * tight[i, j]
            for k in range(j):
                h += c[k] * c[k] * tight[i, k]
                slope -= c[k] * K[i, k] * tight[i, k]
            delta = slope / h + rng.standard_normal() / math.sqrt(h)
            for k in range(j):
                product[k] += delta * M[i, k]
                K[i, k] += delta * c[k]
            for k in range(j):
                K[k, i] = K[i, k]
            K[i, j] += delta
            K[j, i] = K[i, j]
            coordinates[i, j] += delta
            c[i] = weight + delta / v
        down, slope, square = 0.0, 0.0, 0.0
        for i in range(j):
            down += 0.5 * coordinates[i, j] * product[i]
            for k in range(i):
                both = coordinates[i, j] * coordinates[k, j]
                slope += both * K[i, k] * tight[i, k]
                square += 0.5 * both * both * tight[i, k]
        terms = 0.5 * n + 1.0, math.log(v), 0.5 * M[j, j], down, slope, square
        new = math.exp(_slice(rng, terms, 4.0 / math.sqrt(n + 2.0)))
        for i in range(j):
            for k in range(i):
                K[i, k] += coordinates[i, j] * coordinates[k, j] * (1.0 / new - 1.0 / v)
                K[k, i] = K[i, k]
        coordinates[j, j] = new
    coordinates[0, 0] = draw_schur(rng, n, M[0, 0])
    precision[:] = matrix_of(coordinates)


@kernel
def horseshoe_chain(rng, rows, scale, rate, sweeps, exact):
    """Matrices after each scan, of either kind, under the graphical horseshoe with a known global scale; (sweeps, p, p)."""
    n, p = rows.shape
    M = np.dot(rows.T, rows) + 2.0 * rate * np.eye(p)
    scales, out = np.full((p, p), scale), np.empty((sweeps, p, p))
    coordinates = np.triu(np.full((p, p), 0.1)) + 0.9 * np.eye(
        p
    )  # no element is zero, where a local scale would be stuck
    K = matrix_of(coordinates)
    for t in range(-500, sweeps):
        variances = element_variances(rng, K, scales)
        if exact:
            exact_scan(rng, coordinates, K, M, float(n), variances)
        else:
            K = published_scan(rng, coordinates, M, rows, float(n), variances, rate)
        if t >= 0:
            out[t] = K
    return out
