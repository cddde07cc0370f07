r"""Differences of approximate entropies of pairs of columns, and the column that they make the first cause.

The maximum-entropy approximation of the entropy of a standardised variable is (Hyvärinen 1998)

.. math:: H(u) \approx \tfrac12 \log 2 \pi e - k_1 (E \log\cosh u - \gamma)^2 - k_2 (E\, u e^{-u^2/2})^2

and the log-likelihood ratio of i -> j against j -> i of standardised columns with correlation :math:`\rho` is

.. math:: R_{ij} = H(x_j) + H(x_{i \cdot j}) - H(x_i) - H(x_{j \cdot i}),

with :math:`x_{i \cdot j} = (x_i - \rho x_j) / \sqrt{1 - \rho^2}` (Hyvärinen and Smith 2013).
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel, vector_inner

__all__ = ["column_entropies", "first_cause"]

_K1 = 79.047
_K2 = 7.4129
_GAMMA = 0.37457
_NORMAL = 0.5 * (1.0 + math.log(2.0 * math.pi))
_LOG2 = math.log(2.0)
_FAR = 40.0  # exp(-40) is nothing beside 1
_SINGULAR = 1e-12


@vector_inner
def _exp_minus(t):
    """exp(-t) for t from 0 to 40, to 1e-8 of itself; a loop of these vectorises."""
    z = t * (-1.0 / 64.0)
    e = 1.0 + z / 9.0
    e = 1.0 + z / 8.0 * e
    e = 1.0 + z / 7.0 * e
    e = 1.0 + z / 6.0 * e
    e = 1.0 + z / 5.0 * e
    e = 1.0 + z / 4.0 * e
    e = 1.0 + z / 3.0 * e
    e = 1.0 + z / 2.0 * e
    e = 1.0 + z * e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@vector_inner
def _log_one_plus(z):
    """log(1 + z) for z from 0 to 1, to 1e-9; a loop of these vectorises."""
    s = z / (2.0 + z)
    q = s * s
    series = 1.0 / 15.0 + q / 17.0
    series = 1.0 / 13.0 + q * series
    series = 1.0 / 11.0 + q * series
    series = 1.0 / 9.0 + q * series
    series = 1.0 / 7.0 + q * series
    series = 1.0 / 5.0 + q * series
    series = 1.0 / 3.0 + q * series
    return 2.0 * s * (1.0 + q * series)


@vector_inner
def _entropy(x, y, rho, scale):
    """Approximate entropy of (x - rho y) scale."""
    n = x.shape[0]
    even = 0.0
    odd = 0.0
    for r in range(n):
        u = (x[r] - rho * y[r]) * scale
        a = abs(u)
        even += a + _log_one_plus(_exp_minus(min(2.0 * a, _FAR)))
        odd += u * _exp_minus(min(0.5 * a * a, _FAR))
    even = even / n - _LOG2 - _GAMMA
    odd /= n
    return _NORMAL - _K1 * even * even - _K2 * odd * odd


@kernel
def column_entropies(rows):
    """Approximate entropies of standardised variables.

    Parameters
    ----------
    rows : (k, n) array
        One variable a row.

    Returns
    -------
    (k,) array
    """
    out = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        out[i] = _entropy(rows[i], rows[i], 0.0, 1.0)
    return out


@inner
def _ratio(rows, entropies, correlation, i, j):
    """R_ij; 0 where one of the two columns determines the other."""
    rho = correlation[i, j]
    rest = 1.0 - rho * rho
    if rest < _SINGULAR:
        return 0.0
    scale = 1.0 / math.sqrt(rest)
    forward = entropies[i] + _entropy(rows[j], rows[i], rho, scale)
    backward = entropies[j] + _entropy(rows[i], rows[j], rho, scale)
    return backward - forward


@kernel
def first_cause(rows, correlation, candidate, compared, ratios, complete):
    r"""Return the candidate i that minimises :math:`T_i = \sum_j \min(0, R_{ij})^2`.

    Pairs are evaluated best first: always one of the candidate whose sum so far is smallest. When that sum
    is complete it is the smallest, since terms are not negative.

    Parameters
    ----------
    rows : (k, n) array
        Standardised variables, one a row.
    correlation : (k, k) array
    candidate : (k,) bool array
        Variables among which the first cause is.
    compared : (k, k) bool array
        Whether the term j is part of the sum of i.
    ratios : (k, k) array
        Guesses of R, by which the order of the pairs is chosen; where they are evaluated they are replaced.
    complete : bool
        Whether all pairs are evaluated first, which changes the time and nothing else.

    Returns
    -------
    sums : (k,) array
        T, complete for the best, else lower bounds; infinite for what is no candidate.
    best : int
    evaluated : int
        Number of pairs.
    """
    k = rows.shape[0]
    entropies = column_entropies(rows)
    known = np.zeros((k, k), np.bool_)
    sums = np.empty(k)
    for i in range(k):
        sums[i] = 0.0 if candidate[i] else np.inf
    evaluated = 0
    best = 0
    while True:
        best = 0
        for i in range(1, k):
            if sums[i] < sums[best]:
                best = i
        i, j = _next_pair(best, compared, known, ratios)
        if complete and j < 0:
            for other in range(k):
                if j < 0 and candidate[other]:
                    i, j = _next_pair(other, compared, known, ratios)
        if j < 0:
            return sums, best, evaluated
        ratio = _ratio(rows, entropies, correlation, i, j)
        ratios[i, j] = ratio
        ratios[j, i] = -ratio
        known[i, j] = known[j, i] = True
        evaluated += 1
        if ratio < 0.0 and compared[i, j]:
            sums[i] += ratio * ratio
        elif ratio > 0.0 and compared[j, i]:
            sums[j] += ratio * ratio


@inner
def _next_pair(i, compared, known, ratios):
    """Pair of i that is not known and has the lowest guess; j = -1 if there is none."""
    found = -1
    for j in range(compared.shape[0]):
        if j != i and compared[i, j] and not known[i, j]:
            if found < 0 or ratios[i, j] < ratios[i, found]:
                found = j
    return i, found
