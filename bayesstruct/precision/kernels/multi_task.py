r"""Block coordinate ascent for several precision matrices with one sparsity pattern.

With task weights :math:`T_k`, covariance matrices :math:`S_k` and a norm over the tasks, the objective is

.. math::

    \sum_k T_k (\log\det K_k - \operatorname{tr} S_k K_k) - \rho \sum_{i \ne j} \|k_{ij}\|
        - \rho_d \sum_i \|k_{ii}\|

(Honorio 2012, chapter 4). Write ``u`` for the off-diagonal part of column ``j`` of one matrix, ``A`` for the inverse of the
matrix without it, ``b = u' A u`` and ``z`` for the diagonal element. Given ``u``, the best ``z`` of all tasks are `diagonal_linf`
or `diagonal_l2`; then :math:`z_k = b_k + 1 / (S_{jj} + r_k / T_k)` with the multipliers ``r`` of the penalty of the diagonal
(zero without one), and the elements of ``u`` at one position in all tasks are a `knapsack` or a `trust_region` problem with
curvature :math:`T_k (S_{jj} + r_k / T_k) A_{ii}`. The term :math:`r_k / T_k` is missing in the source (section 4.8), whose
iterations therefore end at another point.
"""

import math

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.gibbs import close_column, open_column, shift_column
from bayesstruct.sparse.kernels.projections import secular_root

_MAX_NEWTON = 200
_HALVINGS = 30


@kernel
def knapsack(q, c, rate, x):
    r"""Minimise :math:`\tfrac12 \sum_k q_k x_k^2 - c'x + \rho \|x\|_\infty`; write to ``x``.

    :math:`x_k = \operatorname{sign}(c_k) \min(|c_k| / q_k, t)`, where :math:`\sum_k \max(|c_k| - t q_k, 0) = \rho`. The sum is convex
    and piecewise linear in the level t, so that Newton's method from zero rises to the root in as many steps as there are pieces.
    """
    total = 0.0
    for k in range(len(c)):
        total += abs(c[k])
    t = 0.0
    if total > rate:
        for _ in range(len(c) + 1):
            above, slope = 0.0, 0.0
            for k in range(len(c)):
                if abs(c[k]) > t * q[k]:
                    above += abs(c[k])
                    slope += q[k]
            if slope == 0.0:
                break
            new = (above - rate) / slope
            if new <= t:
                break
            t = new
    for k in range(len(c)):
        x[k] = math.copysign(min(abs(c[k]) / q[k], t), c[k]) if t > 0.0 else 0.0


@kernel
def trust_region(q, c, rate, x):
    r"""Minimise :math:`\tfrac12 \sum_k q_k x_k^2 - c'x + \rho \|x\|_2`; write to ``x``."""
    s = secular_root(c, q, rate) if rate > 0.0 else 0.0
    for k in range(len(c)):
        x[k] = s * c[k] / (1.0 + s * q[k]) if rate > 0.0 else c[k] / q[k]


@kernel
def diagonal_linf(q, c, b, rate, r):
    r"""Multipliers of :math:`\max_z \sum_k q_k \log(z_k - b_k) - c'z - \rho \|z\|_\infty`.

    :math:`r_k = \max(q_k / (t - b_k) - c_k, 0)` at the level t where they add up to the rate, and :math:`z_k = b_k + q_k / (c_k + r_k)`.
    Newton's method from the left end of the bracket, which is above all ``b``, rises to the root.
    """
    t = 0.0
    for k in range(len(q)):
        t = max(t, b[k] + q[k] / (c[k] + rate))
    for _ in range(_MAX_NEWTON):
        excess, slope = -rate, 0.0
        for k in range(len(q)):
            weight = q[k] / (t - b[k]) - c[k]
            if weight > 0.0:
                excess += weight
                slope += q[k] / (t - b[k]) ** 2
        if excess <= 1e-15 * rate or slope == 0.0:
            break
        new = t + excess / slope
        if new <= t:
            break
        t = new
    for k in range(len(q)):
        r[k] = max(q[k] / (t - b[k]) - c[k], 0.0)


@inner
def _weights(q, c, b, s, r):
    """Positive roots r of ``s r^2 + (s c - b) r = b c + q``; their norm and its derivative in log s."""
    square, slope = 0.0, 0.0
    for k in range(len(q)):
        half = s * c[k] - b[k]
        root = math.sqrt((s * c[k] + b[k]) ** 2 + 4.0 * s * q[k])
        if half > 0.0:
            r[k] = 2.0 * (b[k] * c[k] + q[k]) / (half + root)
        else:
            r[k] = (root - half) / (2.0 * s)
        square += r[k] * r[k]
        slope -= r[k] * r[k] * (r[k] + c[k]) * s / root
    norm = math.sqrt(square)
    return norm, slope / norm


@kernel
def diagonal_l2(q, c, b, rate, r):
    r"""Multipliers of :math:`\max_z \sum_k q_k \log(z_k - b_k) - c'z - \rho \|z\|_2`.

    Newton's method on :math:`\log \|r(s)\| - \log \rho` in :math:`\log s`, where :math:`s = \|z\|_2 / \rho`, inside a bracket.
    """
    low, high = 0.0, 0.0
    for k in range(len(q)):
        low += (b[k] + q[k] / (c[k] + rate)) ** 2
        high += (b[k] + q[k] / c[k]) ** 2 if c[k] > 0.0 else math.inf
    low, high = 0.5 * math.log(low) - math.log(rate), 0.5 * math.log(high) - math.log(rate)
    x = low
    for _ in range(_MAX_NEWTON):
        norm, slope = _weights(q, c, b, math.exp(x), r)
        excess = math.log(norm / rate)
        if abs(excess) <= 1e-15:
            break
        if excess > 0.0:
            low = x
        else:
            high = x
        new = x - excess * norm / slope
        if not low <= new <= high:
            new = 0.5 * (low + high) if high < math.inf else low + 1.0
        if new == x:
            break
        x = new


@inner
def _schur(S, T, j, b, rate, linf, q, c, r, v):
    """Write the best Schur complement of the diagonal element of each task to ``v``, given ``b = u' A u``."""
    for k in range(len(T)):
        q[k], c[k], r[k] = T[k], T[k] * S[k, j, j], 0.0
    if rate > 0.0:
        if linf:
            diagonal_linf(q, c, b, rate, r)
        else:
            diagonal_l2(q, c, b, rate, r)
    for k in range(len(T)):
        v[k] = 1.0 / (S[k, j, j] + r[k] / T[k])


@inner
def _norm(x, linf):
    total = 0.0
    for k in range(len(x)):
        total = max(total, abs(x[k])) if linf else total + x[k] * x[k]
    return total if linf else math.sqrt(total)


@inner
def _column_value(S, T, K, j, rates, rate, linf, quadratic, v, x):
    """Part of the objective that depends on column j; ``quadratic`` are the ``u' A u``."""
    total = 0.0
    for k in range(len(T)):
        x[k] = quadratic[k] + v[k]
        total += T[k] * (math.log(v[k]) - S[k, j, j] * x[k])
    total -= rate * _norm(x, linf)
    for i in range(K.shape[1]):
        if i != j:
            for k in range(len(T)):
                x[k] = K[k, j, i]
                total -= 2.0 * T[k] * S[k, j, i] * x[k]
            total -= 2.0 * rates[j, i] * _norm(x, linf)
    return total


@inner
def _quadratics(K, products, j, out):
    for k in range(K.shape[0]):
        total = 0.0
        for i in range(K.shape[1]):
            if i != j:
                total += K[k, j, i] * products[k, i]
        out[k] = total


@inner
def _coordinates(S, T, K, W, j, rates, linf, v, pivots, columns, products, task):
    """Solve for the elements of column j one position after the other; whether any changed."""
    q, c, x = task[0], task[1], task[2]
    changed = False
    for i in range(K.shape[1]):
        if i == j:
            continue
        for k in range(len(T)):
            h = W[k, i, i] - columns[k, i] ** 2 / pivots[k]
            q[k] = T[k] / v[k] * h
            c[k] = q[k] * K[k, j, i] - T[k] * (products[k, i] / v[k] + S[k, j, i])
        if linf:
            knapsack(q, c, rates[j, i], x)
        else:
            trust_region(q, c, rates[j, i], x)
        for k in range(len(T)):
            delta = x[k] - K[k, j, i]
            if delta != 0.0:
                ratio = columns[k, i] / pivots[k]
                shift_column(W[k], columns[k], products[k], i, delta, ratio)
                K[k, j, i] = x[k]
                K[k, i, j] = x[k]
                changed = True
    return changed


@kernel
def multi_task_sweep(S, T, K, W, rates, diagonal_rates, linf, pairs, task):
    """Update every column of all matrices once; no step lowers the objective.

    Parameters
    ----------
    S : (tasks, p, p) float64
        Covariance matrices.
    T : (tasks,) float64
        Weights: numbers of rows.
    K, W : (tasks, p, p) float64, changed in place
        Precision matrices and their inverses.
    rates : (p, p) float64
        Penalty of each ordered pair off the diagonal.
    diagonal_rates : (p,) float64
        Penalty of the diagonal elements.
    linf : bool
        Whether the norm over the tasks is the largest absolute value; otherwise Euclidean.
    pairs : (4, tasks, p) float64
        Work space.
    task : (8, tasks) float64
        Work space.
    """
    columns, products, old, start = pairs[0], pairs[1], pairs[2], pairs[3]
    b, r, v, pivots, first = task[3], task[4], task[5], task[6], task[7]
    slack = 1e-14 * K.shape[1] * T.sum()  # rounding of the values that are compared
    for j in range(K.shape[1]):
        for k in range(len(T)):
            pivots[k] = open_column(W[k], j, columns[k], products[k])
            for i in range(K.shape[1]):
                old[k, i], start[k, i] = K[k, j, i], products[k, i]
        _quadratics(K, products, j, first)
        rate = diagonal_rates[j]
        _schur(S, T, j, first, rate, linf, task[0], task[1], r, v)
        before = 0.0
        if rate > 0.0:
            before = _column_value(S, T, K, j, rates, rate, linf, first, v, task[2])
        if _coordinates(S, T, K, W, j, rates, linf, v, pivots, columns, products, task):
            _quadratics(K, products, j, b)
            _schur(S, T, j, b, rate, linf, task[0], task[1], r, v)
            # The multipliers of the diagonal moved with the column: its best value for the old ones may be too far.
            halvings = 0
            while (
                rate > 0.0
                and halvings < _HALVINGS
                and _column_value(S, T, K, j, rates, rate, linf, b, v, task[2]) < before - slack
            ):
                halvings += 1
                for k in range(len(T)):
                    for i in range(K.shape[1]):
                        if i != j:
                            K[k, j, i] = 0.5 * (K[k, j, i] + old[k, i])
                            K[k, i, j] = K[k, j, i]
                            products[k, i] = 0.5 * (products[k, i] + start[k, i])
                _quadratics(K, products, j, b)
                _schur(S, T, j, b, rate, linf, task[0], task[1], r, v)
        for k in range(len(T)):
            close_column(K[k], W[k], j, v[k], columns[k], products[k], pivots[k])
