r"""Metropolis sweeps over the edges of a graph whose precision matrix is G-Wishart.

Let e = (i, j), and A the inverse of the block e of :math:`K^{-1}`. In the Cholesky factor of K with i and j last, the element of e
is free if e is an edge, and otherwise determined by the others. It is integrated out: with
:math:`\phi = A_{ii}^{1/2}` and :math:`x_0 = -(K_{ij} - A_{ij}) / \phi` its value without the edge, the densities with and without the edge
have the ratio

.. math::

    N(K, D) = \phi \, (2 \pi / D_{jj})^{1/2} \exp\{\tfrac12 D_{jj} (x_0 + D_{ij} \phi / D_{jj})^2\}

before normalisation, so that the odds of the edge are its prior odds times :math:`N(K, D + S) \, I_G(b, D) / I_{G + e}(b, D)` [1]_, [2]_. That takes a
few operations for any pair once :math:`K^{-1}` is known.

The ratio of constants has a closed form for some pairs. For the others a change of the edge has to pass twice [3]_: first with the closed form as
an approximation, and then, with what was left out, by an exchange: the ratio of constants is replaced by
:math:`N(\tilde K, D)` at an exact draw from the G-Wishart distribution of the *proposed* graph, made for changes that have
passed only. Both leave the posterior invariant: it contains no approximate constant.

.. [1] M. Hinne, A. Lenkoski, T. Heskes and M. van Gerven (2014). Efficient sampling of Gaussian graphical models using conditional Bayes factors.
   Stat 3, 326-336.
.. [2] Y. Cheng and A. Lenkoski (2012). Hierarchical Gaussian graphical models: beyond reversible jump. Electronic Journal of Statistics 6,
   2309-2331.
.. [3] W. van den Boom, A. Beskos and M. De Iorio (2022). The G-Wishart weighted proposal algorithm. Journal of Computational and
   Graphical Statistics 31, 1215-1224.
"""

import math

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.g_wishart.constant_ratios import draw_pair, log_constant_ratio
from bayesstruct.precision.kernels.g_wishart.elimination import closed_separator, plan_elimination
from bayesstruct.precision.kernels.g_wishart.rough_draws import rough_pair

__all__ = ["count_common", "graph_sweep"]

_LOG_2PI = math.log(2.0 * math.pi)


@kernel
def count_common(adjacency, common):
    """Write the number of common neighbours of each pair to ``common``, (p, p) int64."""
    p = adjacency.shape[0]
    common[:] = 0
    for v in range(p):
        for i in range(p):
            if adjacency[v, i]:
                for j in range(i):
                    if adjacency[v, j]:
                        common[i, j] += 1
                        common[j, i] += 1


@inner
def _log_exchange(rng, b, adjacency, i, j, edge, tries, whole, codes, filled, rough):
    """Log of ``N(K, I)`` at a draw of the matrix given the graph with or without the edge."""
    m = plan_elimination(adjacency, i, j, filled, codes, whole)
    root, total = draw_pair(rng, b, edge, m, rough[0], codes, whole, tries)
    failed = root < 0.0
    if failed:
        root, total = rough_pair(rng, b, edge, m, codes, whole, filled, rough)
    return math.log(root) + 0.5 * (_LOG_2PI + total * total / (root * root)), failed


@inner
def _move(precision, covariance, i, j, phi, old, new, work):
    """Change the Cholesky element of a pair from ``old`` to ``new``, in the matrix and its inverse."""
    p = precision.shape[0]
    # A before and after, and M = A A'^-1 (A' - A).
    last = 1.0 / covariance[j, j]
    a00, a01, a11 = phi * phi, phi * old, old * old + last
    c01, c11 = phi * new, new * new + last
    d01, d11 = c01 - a01, c11 - a11
    det = a00 * last
    # A A'^-1 = [[r00, r01], [r10, r11]]
    r00, r01 = (a00 * c11 - a01 * c01) / det, (a01 * a00 - a00 * c01) / det
    r10, r11 = (a01 * c11 - a11 * c01) / det, (a11 * a00 - a01 * c01) / det
    m00, m01 = r01 * d01, r00 * d01 + r01 * d11
    m11 = r10 * d01 + r11 * d11
    first, second = work[0], work[1]
    for k in range(p):
        first[k] = covariance[i, k]
        second[k] = covariance[j, k]
    for k in range(p):
        left, right = m00 * first[k] + m01 * second[k], m01 * first[k] + m11 * second[k]
        for u in range(p):
            covariance[k, u] -= left * first[u] + right * second[u]
    precision[i, j] += d01
    precision[j, i] += d01
    precision[j, j] += d11


@inner
def _set_edge(adjacency, common, i, j, edge):
    """Add or delete an edge, and count common neighbours anew."""
    adjacency[i, j] = edge
    adjacency[j, i] = edge
    step = 1 if edge else -1
    for u in range(adjacency.shape[0]):
        if u in (i, j):
            continue
        if adjacency[j, u]:
            common[i, u] += step
            common[u, i] += step
        if adjacency[i, u]:
            common[j, u] += step
            common[u, j] += step


@kernel
def graph_sweep(
    rng,
    precision,
    covariance,
    adjacency,
    common,
    scale,
    prior_odds,
    b,
    tries,
    whole,
    codes,
    filled,
    work,
    rough,
):
    """Propose to change every edge once, together with its element of the matrix.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision, covariance : (p, p) float64, changed in place
        K and its inverse.
    adjacency : (p, p) int8, changed in place
    common : (p, p) int64, changed in place
        Numbers of common neighbours.
    scale : (p, p) float64
        D + S of the posterior.
    prior_odds : (p, p) float64
        Prior log odds of each edge, minus the log constant of ``I_{G + e} / I_G`` that a diagonal D other than I adds; infinite
        where an edge is required or forbidden.
    b : float
        Degrees of freedom of the prior.
    tries : int
        Rows that an exact draw may take before a rough one replaces it.
    whole : (8, p) int64; codes, filled : (p, p) int8; work : (3, p) float64; rough : (4, p + 3, p) float64
        Work space.

    Returns
    -------
    changes, auxiliary, failed : int
        Changed edges, auxiliary draws, and how many of these were rough.
    """
    p = precision.shape[0]
    ratios = work[2]
    for d in range(p):
        ratios[d] = log_constant_ratio(b, d)
    swap = rng.random() < 0.5
    changes, auxiliary, failures = 0, 0, 0
    for low in range(p - 1):
        for high in range(low + 1, p):
            if math.isinf(prior_odds[low, high]):
                continue
            i, j = (high, low) if swap else (low, high)
            last = covariance[j, j]
            det = covariance[i, i] * last - covariance[i, j] * covariance[i, j]
            phi = math.sqrt(last / det)
            element = -covariance[i, j] / det
            without = (element - precision[i, j]) / phi
            shift = scale[i, j] * phi / scale[j, j]
            log_density = math.log(phi) + 0.5 * (_LOG_2PI - math.log(scale[j, j]))
            log_density += 0.5 * scale[j, j] * (without + shift) * (without + shift)
            sign = -1.0 if adjacency[i, j] else 1.0
            guess = ratios[common[i, j]]
            if -rng.standard_exponential() > sign * (prior_odds[i, j] + log_density - guess):
                continue
            edge = not adjacency[i, j]
            if closed_separator(adjacency, i, j, whole) < 0:
                auxiliary += 1
                exact, failed = _log_exchange(
                    rng, b, adjacency, i, j, edge, tries, whole, codes, filled, rough
                )
                failures += failed
                if -rng.standard_exponential() > sign * (guess - exact):
                    continue
            changes += 1
            new = without
            if edge:
                new = rng.standard_normal() / math.sqrt(scale[j, j]) - shift
            _move(precision, covariance, i, j, phi, element / phi, new, work)
            if not edge:
                precision[i, j] = 0.0
                precision[j, i] = 0.0
            _set_edge(adjacency, common, i, j, edge)
    return changes, auxiliary, failures
