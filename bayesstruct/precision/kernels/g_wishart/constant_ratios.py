r"""Ratios of constants of the G-Wishart distribution, and exact draws in place of ratios without closed form.

Let e = (i, j) be a pair, G a graph without it, and all constants those of b degrees of freedom and the identity as scale. If the
common neighbours of i and j are complete and separate them in G, d in number, then

.. math:: I_{G + e} / I_G = 2 \sqrt{\pi} \, \Gamma((b + d + 1) / 2) / \Gamma((b + d) / 2).

Otherwise write :math:`K = \Psi' \Psi` with i and j last. Free elements of Psi are independent, normal or the root of a
chi-squared variable; the density has the further factor :math:`\exp(-\tfrac12 \sum \psi_{ku}^2) \le 1` over the elements that the zeros of the
graph determine. Rejection is therefore exact. It is done row by row: a row that is refused takes only its own subtree with it.
"""

import math

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.g_wishart.elimination import FIRST, LATER

__all__ = ["draw_pair", "draw_rows", "log_constant_ratio"]

_LOG_4PI = math.log(4.0 * math.pi)


@kernel
def log_constant_ratio(b, d):
    """Log of ``I_{G + e} / I_G`` when d common neighbours are complete and separate the ends of e."""
    return 0.5 * _LOG_4PI + math.lgamma(0.5 * (b + d + 1.0)) - math.lgamma(0.5 * (b + d))


@inner
def _row(rng, b, k, columns, rows, codes, whole):
    """Draw row k of Psi given its subtree; return whether it is accepted."""
    root = math.sqrt(2.0 * rng.standard_gamma(0.5 * (b + whole[LATER, k])))
    rows[k, k] = root
    first = whole[FIRST, k]
    if first < k:
        limit = 2.0 * rng.standard_exponential()
        for u in range(k + 1, columns):
            if codes[k, u] == 2:
                total = 0.0
                for r in range(first, k):
                    total += rows[r, k] * rows[r, u]
                total /= -root
                rows[k, u] = total
                limit -= total * total
                if limit < 0.0:
                    return False
    for u in range(k + 1, columns):
        if codes[k, u] == 1:
            rows[k, u] = rng.standard_normal()
        elif codes[k, u] == 0:
            rows[k, u] = 0.0
    return True


@kernel
def draw_rows(rng, b, m, rows, codes, whole, tries):
    """Draw m rows of Psi by rejection; return whether there were enough tries. See `draw_pair`."""
    k = 0
    while k < m:
        if tries <= 0:
            return False
        tries -= 1
        k = k + 1 if _row(rng, b, k, m, rows, codes, whole) else whole[FIRST, k]
    return True


@kernel
def draw_pair(rng, b, edge, m, rows, codes, whole, tries):
    """Draw ``psi_ii`` and ``sum_r psi_ri psi_rj`` of a G-Wishart(b, I) matrix by rejection.

    Parameters
    ----------
    rng : numpy.random.Generator
    b : float
    edge : bool
        Whether the graph has the edge between i and j.
    m : int
    codes, whole : ndarray
        Of :func:`bayesstruct.precision.kernels.g_wishart.elimination.plan_elimination`.
    rows : (p, p) float64
        Work space.
    tries : int
        Rows to draw at most.

    Returns
    -------
    root, total : float
        ``root`` is negative if there were not enough tries.
    """
    k = 0
    while True:
        if tries <= 0:
            return -1.0, 0.0
        if k < m:
            tries -= 1
            k = k + 1 if _row(rng, b, k, m + 2, rows, codes, whole) else whole[FIRST, k]
            continue
        total = 0.0
        for r in range(m):
            total += rows[r, m] * rows[r, m + 1]
        root = math.sqrt(2.0 * rng.standard_gamma(0.5 * (b + (1.0 if edge else 0.0))))
        if edge or 2.0 * rng.standard_exponential() * root * root > total * total:
            return root, total
        k = 0
        tries -= 1
