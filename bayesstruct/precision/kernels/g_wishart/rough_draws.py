"""Approximate draws from the G-Wishart distribution where rejection takes too long: a guess, and Gibbs sweeps from it."""

import math

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.g_wishart.elimination import FIRST, LATER, ORDER
from bayesstruct.precision.kernels.g_wishart.matrix_sweep import matrix_sweep

__all__ = ["SWEEPS", "rough_pair"]

SWEEPS = 10
_LONG = 50  # sweeps from a diagonal matrix
_REPEATS = 50


@inner
def _guess_row(rng, b, k, columns, rows, codes, whole):
    """Draw row k of Psi: what it owes to the rows before is refused with the row alone, not with its subtree.

    Return whether some repeats were enough.
    """
    first = whole[FIRST, k]
    for repeat in range(_REPEATS):
        rows[k, k] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (b + whole[LATER, k])))
        limit = 2.0 * rng.standard_exponential()
        for u in range(k + 1, columns):
            if codes[k, u] == 1:
                rows[k, u] = rng.standard_normal()
                continue
            total = 0.0
            if codes[k, u] == 2:
                for r in range(first, k):
                    total -= rows[r, k] * rows[r, u]
                total /= rows[k, k]
            rows[k, u] = total
            limit -= total * total
        if limit > 0.0:
            return True
    return False


@inner
def _last_rows(rng, b, edge, m, rows):
    """Draw the rows of i and j."""
    total = 0.0
    for r in range(m):
        total += rows[r, m] * rows[r, m + 1]
    rows[m, m] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (b + (1.0 if edge else 0.0))))
    rows[m, m + 1] = rng.standard_normal() if edge else -total / rows[m, m]
    rows[m + 1, m + 1] = math.sqrt(2.0 * rng.standard_gamma(0.5 * b))


@inner
def _multiply(rows, size, inverse, precision, covariance):
    """Write ``Psi' Psi`` and its inverse."""
    for k in range(size - 1, -1, -1):
        for u in range(size):
            inverse[k, u] = 0.0
        inverse[k, k] = 1.0 / rows[k, k]
        for u in range(k + 1, size):
            total = 0.0
            for r in range(k + 1, u + 1):
                total += rows[k, r] * inverse[r, u]
            inverse[k, u] = -total / rows[k, k]
    for k in range(size):
        for u in range(k + 1):
            total = 0.0
            for r in range(u + 1):
                total += rows[r, k] * rows[r, u]
            precision[k, u] = total
            precision[u, k] = total
            total = 0.0
            for r in range(k, size):
                total += inverse[k, r] * inverse[u, r]
            covariance[k, u] = total
            covariance[u, k] = total


@inner
def _diagonal(matrix, value):
    """Write a multiple of the identity."""
    for k in range(matrix.shape[0]):
        for u in range(matrix.shape[1]):
            matrix[k, u] = value if k == u else 0.0


@inner
def _restart(b, matrix, inverse):
    """Begin with a diagonal matrix; return the number of sweeps from there."""
    _diagonal(matrix, b)
    _diagonal(inverse, 1.0 / b)
    return _LONG


@inner
def _read_graph(edge, m, codes, graph, precision):
    """Write the adjacency matrix of the rows, and zeros to the matrix off the graph."""
    for k in range(m + 2):
        for u in range(k + 1):
            joined = u < m and k > u and codes[u, k] == 1
            if u == m and k == m + 1:
                joined = edge
            graph[k, u] = joined
            graph[u, k] = joined
            if u < k and not joined:
                precision[k, u] = 0.0
                precision[u, k] = 0.0


@kernel
def rough_pair(rng, b, edge, m, codes, whole, graph, rough):
    """Draw what :func:`bayesstruct.precision.kernels.g_wishart.constant_ratios.draw_pair` draws, approximately.

    ``graph`` is (p, p) int8 and ``rough`` (4, p + 3, p) float64 of work space; the other parameters are those of `draw_pair`.
    """
    size = m + 2
    rows, precision, covariance, work = rough[0], rough[1], rough[2], rough[3]
    guessed = True
    for k in range(m):
        guessed = guessed and _guess_row(rng, b, k, size, rows, codes, whole)
    if guessed:
        _last_rows(rng, b, edge, m, rows)
        _multiply(rows, size, work, precision, covariance)
    _read_graph(edge, m, codes, graph, precision)
    matrix, inverse = precision[:size, :size], covariance[:size, :size]
    identity, joined = rows[:size, :size], graph[:size, :size]
    _diagonal(identity, 1.0)
    left = SWEEPS
    if not guessed:
        left = _restart(b, matrix, inverse)
    while left > 0:
        left -= 1
        if not matrix_sweep(rng, matrix, inverse, joined, identity, b, whole[ORDER], work):
            left = _restart(b, matrix, inverse)
    i, j = m, m + 1
    det = inverse[i, i] * inverse[j, j] - inverse[i, j] * inverse[i, j]
    return math.sqrt(inverse[j, j] / det), matrix[i, j] + inverse[i, j] / det
