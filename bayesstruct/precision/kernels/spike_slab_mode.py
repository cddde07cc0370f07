r"""Mode of a precision matrix under a spike-and-slab prior, and its implicit derivatives.

The columns are opened and closed as in :mod:`bayesstruct.precision.kernels.gibbs`; where the sampler
draws from a conditional, the mode takes its maximum. So each update raises the log posterior

.. math::

    F(K) = \tfrac{n}{2} \log|K| - \tfrac12 \mathrm{tr}(S K)
        + \sum_{i<j} \log m_{ij}(k_{ij}) - d \sum_i k_{ii}, \qquad
    m = \pi N(0, v_1^2) + (1 - \pi) N(0, v_0^2).
"""

import math

import numpy as np

from bayesstruct.core.arrays import scaled_identity
from bayesstruct.core.jit import inlined, inner, kernel
from bayesstruct.precision.kernels.gibbs import close_column, open_column, shift_column
from bayesstruct.precision.kernels.odds import edge_log_odds

_EM_STEPS = 3


@inlined
def _slab_share(value, log_odds, spike, slab):
    """Probability of the slab given the element."""
    return 1.0 / (1.0 + math.exp(-edge_log_odds(value, log_odds, spike, slab)))


@inner
def _log_mixture(value, log_odds, spike, slab):
    """Log of the mixture density up to a constant that depends on the log odds only."""
    # Relative to the component that is certain when the odds are infinite.
    a = -0.5 * value * value / (slab * slab) - math.log(slab)
    b = -0.5 * value * value / (spike * spike) - math.log(spike)
    if log_odds == np.inf:
        return a
    if log_odds == -np.inf:
        return b
    a += log_odds
    top = max(a, b)
    return top + math.log(math.exp(a - top) + math.exp(b - top))


@inlined
def _softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@inner
def _best_coordinate(old, b, h, odds, t0, t1):
    """Raise ``b u - h u^2 / 2 + log m(u)``; ``odds`` are those of slab against spike at u = 0.

    The best of the present value and of the maxima under either component is moved by a few steps
    of expectation-maximisation; none of this lowers the objective.
    """
    if math.isinf(odds):
        return b / (h + (t1 if odds > 0.0 else t0))
    half = 0.5 * (t0 - t1)
    best, top = old, -math.inf
    for value in (old, b / (h + t0), b / (h + t1)):
        square = value * value
        height = b * value - 0.5 * (h + t0) * square + _softplus(odds + half * square)
        if height > top:
            best, top = value, height
    for _ in range(_EM_STEPS):
        share = 1.0 / (1.0 + math.exp(-odds - half * best * best))
        best = b / (h + share * t1 + (1.0 - share) * t0)
    return best


@kernel
def mode_sweep(precision, covariance, scatter, n, log_odds, spike, slab, rate, work):
    """Maximise over every column of K once, in place."""
    p = precision.shape[0]
    column, product = work[0], work[1]
    t0, t1, ratio_of_scales = 1.0 / (spike * spike), 1.0 / (slab * slab), math.log(spike / slab)
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
            new = _best_coordinate(old, b, h, log_odds[j, i] + ratio_of_scales, t0, t1)
            shift_column(covariance, column, product, i, new - old, ratio)
            precision[j, i] = new
            precision[i, j] = new
        close_column(precision, covariance, j, n / a, column, product, pivot)


@kernel
def mode_residual(precision, covariance, scatter, n, log_odds, spike, slab, rate):
    """Largest absolute element of the gradient of F, over n."""
    p = precision.shape[0]
    t0, t1 = 1.0 / (spike * spike), 1.0 / (slab * slab)
    worst = 0.0
    for i in range(p):
        for j in range(i):
            k = precision[i, j]
            share = _slab_share(k, log_odds[i, j], spike, slab)
            slope = n * covariance[i, j] - scatter[i, j] - k * (share * t1 + (1.0 - share) * t0)
            worst = max(worst, abs(slope))
        slope = 0.5 * (n * covariance[i, i] - scatter[i, i]) - rate
        worst = max(worst, abs(slope))
    return worst / n


@kernel
def mode_objective(precision, scatter, n, log_odds, spike, slab, rate):
    """F(K) up to constants that depend on the hyperparameters only."""
    p = precision.shape[0]
    factor = np.linalg.cholesky(precision)
    total = 0.0
    for i in range(p):
        total += n * math.log(factor[i, i]) - (0.5 * scatter[i, i] + rate) * precision[i, i]
        for j in range(i):
            k = precision[i, j]
            total += _log_mixture(k, log_odds[i, j], spike, slab) - scatter[i, j] * k
    return total


@kernel
def spike_slab_mode(scatter, n, log_odds, spike, slab, rate, start, tol, max_iter):
    """Sweep until the gradient is below ``tol`` times n; return K, residual and sweeps.

    The updates use the inverse of K, which is computed anew every twenty sweeps.
    """
    p = scatter.shape[0]
    precision, work = start.copy(), np.empty((2, p))
    covariance = np.linalg.inv(precision)
    residual, sweeps = np.inf, 0
    while sweeps < max_iter:
        mode_sweep(precision, covariance, scatter, n, log_odds, spike, slab, rate, work)
        sweeps += 1
        residual = mode_residual(precision, covariance, scatter, n, log_odds, spike, slab, rate)
        if residual <= tol or sweeps % 20 == 0:
            covariance = np.linalg.inv(precision)
            residual = mode_residual(precision, covariance, scatter, n, log_odds, spike, slab, rate)
        if residual <= tol:
            break
    return precision, residual, sweeps


@inner
def _slopes(k, share, spike, slab):
    """Differentiate ``g = (log m)'`` at k: in k, in the log odds, in the spike, in the slab."""
    t0, t1 = 1.0 / (spike * spike), 1.0 / (slab * slab)
    by_odds = k * (t0 - t1) * share * (1.0 - share)
    by_k = -(share * t1 + (1.0 - share) * t0) + by_odds * k * (t0 - t1)
    by_spike = by_odds * (1.0 / spike - k * k * t0 / spike) + 2.0 * k * (1.0 - share) * t0 / spike
    by_slab = by_odds * (-1.0 / slab + k * k * t1 / slab) + 2.0 * k * share * t1 / slab
    return by_k, by_odds, by_spike, by_slab


@inner
def _curvature(X, covariance, weight, n):
    """Negative Hessian of F applied to a symmetric matrix, entries of a pair sharing theirs."""
    return 0.5 * n * (covariance @ X @ covariance) - weight * X


@inner
def spike_slab_pullback(precision, n, log_odds, spike, slab, cotangent):
    """Cotangents of scatter, n, log odds, spike, slab and rate from that of the mode.

    The gradient of F vanishes at the mode, so ``dK = H^{-1} d(grad F)`` with the negative Hessian H;
    it is inverted by conjugate gradients, H being positive definite at a strict maximum.
    """
    p = precision.shape[0]
    covariance = np.linalg.inv(precision)
    slopes = np.zeros((4, p, p))
    for i in range(p):
        for j in range(p):
            if i != j:
                k = precision[i, j]
                share = _slab_share(k, log_odds[i, j], spike, slab)
                values = _slopes(k, share, spike, slab)
                for q in range(4):
                    slopes[q, i, j] = 0.5 * values[q]
    target = 0.5 * (cotangent + cotangent.T)
    X = np.zeros((p, p))
    R = target.copy()
    D = R.copy()
    energy = (R * R).sum()
    floor = 1e-28 * energy
    for _ in range(20 * p * p):
        if energy <= floor:
            break
        image = _curvature(D, covariance, slopes[0], n)
        step = energy / (D * image).sum()
        X += step * D
        R -= step * image
        previous, energy = energy, (R * R).sum()
        D = R + (energy / previous) * D
    odds = X * slopes[1] * 2.0  # both entries of a pair move with its single log odds
    return (
        -0.5 * X,
        0.5 * (X * covariance).sum(),
        0.5 * odds,
        (X * slopes[2]).sum(),
        (X * slopes[3]).sum(),
        -np.trace(X),
    )


@kernel
def mode(scatter, n, log_odds, spike, slab, rate, tol, max_iter):
    """Mode from the identity, for arrays of which the symmetric parts count."""
    symmetric = 0.5 * (scatter + scatter.T)
    odds = 0.5 * (log_odds + log_odds.T)
    start = scaled_identity(scatter.shape[0], 1.0)
    scales = (spike.item(), slab.item(), rate.item())
    return spike_slab_mode(symmetric, n.item(), odds, *scales, start, tol, max_iter)[0]


@kernel
def pullback(precision, n, log_odds, spike, slab, cotangent):
    """Cotangents of the six inputs of :func:`mode` as arrays."""
    odds = 0.5 * (log_odds + log_odds.T)
    precision, cotangent = np.ascontiguousarray(precision), np.ascontiguousarray(cotangent)
    scatter, rows, odds, spike_, slab_, rate = spike_slab_pullback(
        precision, n.item(), odds, spike.item(), slab.item(), cotangent
    )
    return scatter, np.array(rows), odds, np.array(spike_), np.array(slab_), np.array(rate)
