r"""Gibbs sweeps over a precision matrix under element-wise priors, one column at a time.

Write ``u`` for the off-diagonal part of column ``j`` of the precision matrix ``K``, ``K11`` for
``K`` without row and column ``j``, ``A = inv(K11)`` and ``v = K_jj - u' A u``. For ``n`` rows of
data with scatter matrix ``S`` and an exponential prior of rate ``d`` on the diagonal,

.. math::

    p(u, v \mid K_{11}) \propto v^{n/2} e^{-a v / 2}
        \exp(-\tfrac{a}{2} u' A u - s' u) \prod_i p(u_i), \qquad a = S_{jj} + 2 d,

so ``v`` is gamma whatever ``u`` is (Wang 2012, section 2.3), and ``K`` stays positive definite
because ``v > 0``. Wang draws ``u`` as a block, which costs a factorisation, O(p^3), for each column.
Here its coordinates are drawn one after the other from their exact conditionals, with the latent
variables of the prior (the indicator of the spike or slab; the scale of the Laplace) summed out.
That costs O(p) a coordinate and so O(p^3) a sweep (the order reached by Gao, Sagar and Bhadra 2025,
arXiv:2509.26385, with another parametrisation): ``g = A u`` is minus column ``j`` of ``W = inv(K)``
over ``W_jj`` to begin with, and a step of ``u_i`` moves it by one column of
``A = W - w w' / W_jj``, which never has to be formed.

The functions change ``precision`` and ``covariance`` (its inverse) in place and allocate nothing.
"""

import math

from bayesstruct.core.jit import fused_kernel, inlined, inner, kernel
from bayesstruct.core.special import log_normal_cdf


@inlined
def open_column(covariance, j, column, product):
    """Copy column j of the covariance and write ``A u`` to ``product``."""
    pivot = covariance[j, j]
    for k in range(covariance.shape[0]):
        column[k] = covariance[j, k]
        product[k] = -covariance[j, k] / pivot
    return pivot


@fused_kernel
def shift_column(covariance, column, product, i, delta, ratio):
    """Add ``delta`` times column i of ``A`` to ``product``."""
    for k in range(product.shape[0]):
        product[k] += delta * (covariance[i, k] - ratio * column[k])


@fused_kernel
def close_column(precision, covariance, j, v, column, product, pivot):
    """Set the diagonal element to ``v + u' A u`` and bring the covariance up to date."""
    p = precision.shape[0]
    quadratic = 0.0
    product[j] = 0.0
    for k in range(p):
        if k != j:
            quadratic += precision[j, k] * product[k]
    precision[j, j] = v + quadratic
    down, up = 1.0 / pivot, 1.0 / v
    for i in range(p):
        if i != j:
            lost, won = down * column[i], up * product[i]
            for k in range(p):
                covariance[i, k] += won * product[k] - lost * column[k]
    for k in range(p):
        covariance[j, k] = -up * product[k]
        covariance[k, j] = -up * product[k]
    covariance[j, j] = up


@inlined
def draw_schur(rng, n, rate):
    """Draw ``v``, the diagonal element less its quadratic form, from its gamma distribution."""
    return rng.standard_gamma(0.5 * n + 1.0) * 2.0 / rate


@kernel
def marginal_log_odds(b, h, spike_precision, slab_precision):
    """Log odds of slab against spike for one coordinate with likelihood ``exp(b u - h u^2 / 2)``.

    The coordinate is integrated out; with ``b = h = 0`` the odds are one.
    """
    slab, spike = h + slab_precision, h + spike_precision
    ratio = (slab_precision * spike) / (spike_precision * slab)
    return 0.5 * (math.log(ratio) + b * b / slab - b * b / spike)


@kernel
def spike_slab_sweep(
    rng, precision, covariance, edges, inclusion, scatter, n, log_odds, spike, slab, rate, work
):
    """Update every column of K and its indicators under the spike-and-slab prior, once.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision, covariance : (p, p) float64, changed in place
        ``K`` and its inverse.
    edges : (p, p) int8, changed in place
        Indicators, symmetric.
    inclusion : (p, p) float64, changed in place
        The conditional probability of each edge, its element of K summed out, is added here.
    scatter : (p, p) float64
        Sum of outer products of the rows about their mean.
    n : float
        Number of rows.
    log_odds : (p, p) float64
        Prior log odds of each edge; ``-inf`` forbids and ``inf`` requires it.
    spike, slab : float
        Standard deviations of the two components.
    rate : float
        Rate of the exponential prior of the diagonal.
    work : (2, p) float64
        Work space.
    """
    p = precision.shape[0]
    column, product = work[0], work[1]
    t0, t1 = 1.0 / (spike * spike), 1.0 / (slab * slab)
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
            odds = log_odds[j, i] + marginal_log_odds(b, h, t0, t1)
            chance = 1.0 / (1.0 + math.exp(-odds))
            inclusion[j, i] += chance
            edge = rng.random() < chance
            total = h + (t1 if edge else t0)
            new = b / total + rng.standard_normal() / math.sqrt(total)
            shift_column(covariance, column, product, i, new - old, ratio)
            precision[j, i] = new
            precision[i, j] = new
            edges[j, i] = edge
            edges[i, j] = edge
        v = draw_schur(rng, n, a)
        close_column(precision, covariance, j, v, column, product, pivot)


@inner
def positive_normal(rng, mean):
    """Draw from the unit-variance normal with this mean, given that it is positive.

    Plain rejection where most of the mass is positive, else the exponential proposal of Robert
    (1995).
    """
    if mean > -0.5:
        while True:
            x = mean + rng.standard_normal()
            if x > 0.0:
                return x
    bound = -mean
    rate = 0.5 * (bound + math.sqrt(bound * bound + 4.0))
    while True:
        x = rng.standard_exponential() / rate
        gap = x + bound - rate
        if rng.random() < math.exp(-0.5 * gap * gap):
            return x


@kernel
def laplace_normal(rng, b, h, rate):
    """Draw u from the density proportional to ``exp(b u - h u^2 / 2 - rate |u|)`` (Hans 2009)."""
    root = math.sqrt(h)
    right, left = (b - rate) / root, (-b - rate) / root
    odds = log_normal_cdf(right) + 0.5 * right * right - log_normal_cdf(left) - 0.5 * left * left
    if rng.random() * (1.0 + math.exp(-odds)) < 1.0:
        return positive_normal(rng, right) / root
    return -positive_normal(rng, left) / root


@kernel
def laplace_sweep(rng, precision, covariance, scatter, n, rates, diagonal_rate, work):
    """Update every column of K under the graphical-lasso prior, once.

    Parameters are those of :func:`spike_slab_sweep`; ``rates`` is the (p, p) matrix of the Laplace
    rates of the off-diagonal elements.
    """
    p = precision.shape[0]
    column, product = work[0], work[1]
    for j in range(p):
        pivot = open_column(covariance, j, column, product)
        a = scatter[j, j] + 2.0 * diagonal_rate
        for i in range(p):
            if i == j:
                continue
            ratio = column[i] / pivot
            h = a * (covariance[i, i] - ratio * column[i])
            old = precision[j, i]
            b = h * old - a * product[i] - scatter[j, i]
            new = laplace_normal(rng, b, h, rates[j, i])
            shift_column(covariance, column, product, i, new - old, ratio)
            precision[j, i] = new
            precision[i, j] = new
        v = draw_schur(rng, n, a)
        close_column(precision, covariance, j, v, column, product, pivot)
