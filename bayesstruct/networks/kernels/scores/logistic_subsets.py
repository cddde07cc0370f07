r"""Greatest likelihood of logistic regressions, and the BIC of all parent sets among some candidates.

The local score of a child :math:`y \in \{0, 1\}` with p parents is

.. math::

    \sup_{b, w} \sum_m \bigl\{ y_m (b + x_m' w) - \log(1 + e^{b + x_m' w}) \bigr\}
        - \frac{p + 1}{2} \log n,

minus half of the BIC (Schwarz 1978). Newton steps on standardised parents start at the logistic regression
without parents. Where the parents separate the states of the child, in full or for some of the rows, the
supremum is not attained: the steps then walk towards infinity and each divides the distance to the supremum by about e. They
end as soon as a step promises less than 1e-9. A ridge of 1e-11 n keeps their equations regular; it
is no part of the score.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.networks.kernels.scores.count_subsets import row_classes

__all__ = ["logistic_subsets"]

_RIDGE = 1e-11
_PROMISE = 1e-9
_STEPS = 100
_COLLINEAR = 1e-10  # share of a parent's variance that the other parents have to leave


@inner
def _cholesky(a, p, tol):
    """Factorise the leading (p, p) block in place; False if a pivot is `tol` of its diagonal."""
    for j in range(p):
        diagonal = a[j, j]
        for i in range(j):
            a[j, j] -= a[j, i] * a[j, i]
        if not a[j, j] > tol * diagonal:
            return False
        a[j, j] = math.sqrt(a[j, j])
        for row in range(j + 1, p):
            for i in range(j):
                a[row, j] -= a[row, i] * a[j, i]
            a[row, j] /= a[j, j]
    return True


@inner
def _solve(a, p, vector):
    """Solve with the factor of `_cholesky`, in place."""
    for i in range(p):
        for j in range(i):
            vector[i] -= a[i, j] * vector[j]
        vector[i] /= a[i, i]
    for i in range(p - 1, -1, -1):
        for j in range(i + 1, p):
            vector[i] -= a[j, i] * vector[j]
        vector[i] /= a[i, i]


@inner
def _standardise(rows, p, total):
    """Centre and scale columns 1, ..., p - 1; False if one is constant."""
    n = total.sum()
    for j in range(1, p):
        mean = size = 0.0
        for i in range(len(rows)):
            mean += total[i] * rows[i, j] / n
            if total[i] > 0:
                size = max(size, abs(rows[i, j]))
        square = 0.0
        for i in range(len(rows)):
            rows[i, j] -= mean
            square += total[i] * rows[i, j] * rows[i, j]
        sd = math.sqrt(square / n)
        if sd <= 1e-12 * size:
            return False
        for i in range(len(rows)):
            rows[i, j] /= sd
    return True


@inner
def _derivatives(rows, p, positive, total, beta, gradient, hessian):
    """Log likelihood; its gradient and minus its second derivative are written."""
    gradient[:p] = 0.0
    hessian[:p, :p] = 0.0
    value = 0.0
    for m in range(len(rows)):
        eta = 0.0
        for j in range(p):
            eta += rows[m, j] * beta[j]
        tail = math.exp(-abs(eta))
        value += positive[m] * eta - total[m] * (max(eta, 0.0) + math.log1p(tail))
        share = 1.0 / (1.0 + tail) if eta > 0 else tail / (1.0 + tail)
        residual = positive[m] - total[m] * share
        weight = total[m] * tail / (1.0 + tail) ** 2
        for j in range(p):
            gradient[j] += residual * rows[m, j]
            for i in range(j + 1):
                hessian[j, i] += weight * rows[m, j] * rows[m, i]
    return value


@inner
def _supremum(rows, p, positive, total, work):
    """Supremum of the log likelihood; -inf for collinear columns. The rows are changed.

    `work` is a (p + 4, p) array that is overwritten.
    """
    hessian, beta, gradient, trial = work[:p, :p], work[p], work[p + 1], work[p + 2]
    n = total.sum()
    if not _standardise(rows, p, total):
        return -np.inf
    # At zero all weights are 1/4: minus the second derivative is a quarter of the Gram matrix.
    beta[:p] = 0.0
    _derivatives(rows, p, positive, total, beta, gradient, hessian)
    if not _cholesky(hessian, p, _COLLINEAR):
        return -np.inf
    share = positive.sum() / n
    if share <= 0.0 or share >= 1.0:
        return 0.0
    beta[0] = math.log(share / (1.0 - share))
    value = _derivatives(rows, p, positive, total, beta, gradient, hessian)
    for _ in range(_STEPS):
        for j in range(p):
            hessian[j, j] += _RIDGE * n
        _cholesky(hessian, p, 0.0)
        step = work[p + 3]
        step[:p] = gradient[:p]
        _solve(hessian, p, step)
        promise = 0.0
        for j in range(p):
            promise += gradient[j] * step[j]
        if not promise > _PROMISE:
            break
        length, found = 1.0, False
        while length > 1e-6:
            for j in range(p):
                trial[j] = beta[j] + length * step[j]
            reached = _derivatives(rows, p, positive, total, trial, gradient, hessian)
            if reached >= value + 1e-4 * length * promise:
                found = True
                break
            length *= 0.5
        if not found:
            break
        beta[:p] = trial[:p]
        value = reached
    return value


@kernel
def logistic_subsets(values, x, states, weights, child, candidates, fixed, most, price, codes, out):
    """Score a child of two states with each subset of some candidates as parents.

    Parameters
    ----------
    values : (variables, rows) float64
        The numbers that enter the regressions.
    x : (variables, rows) uint8
        Their ranks, for variables of few different values.
    states : (variables,) int64
        How many values there are; 0 if they are many: rows are then not merged.
    weights : (rows,) int32
        Multiplicities of the rows.
    child : int
        Its states are 0 and 1 in `x`.
    candidates, fixed : (k,), (f,) int64
        Variables that may be, and that are, parents.
    most : int
        Greatest size of a set; larger ones score -inf.
    price : float
        Of a parameter: log(n) / 2.
    codes : (rows,) int32
        Overwritten.
    out : (2**k,) float64
        Filled; entry m belongs to `fixed` and the candidates of the bits of m.
    """
    k, f, n = len(candidates), len(fixed), x.shape[1]
    widest = k + f + 1
    parents = np.empty(k + f, np.int64)
    parents[:f] = fixed
    rows = np.empty((n, widest))
    positive, total = np.empty(n), np.empty(n)
    work = np.empty((widest + 4, widest))
    out[:] = -np.inf
    for mask in range(1 << k):
        p = f
        for b in range(k):
            if mask >> b & 1:
                parents[p] = candidates[b]
                p += 1
        if p > most:
            continue
        merged = True
        for j in range(p):
            merged &= states[parents[j]] > 0
        count = row_classes(x, parents[:p], states, codes, n) if merged else n
        positive[:count] = 0.0
        total[:count] = 0.0
        for m in range(n):
            at = codes[m] if merged else m
            total[at] += weights[m]
            positive[at] += weights[m] * x[child, m]
            rows[at, 0] = 1.0
            for j in range(p):
                rows[at, j + 1] = values[parents[j], m]
        value = _supremum(rows[:count], p + 1, positive[:count], total[:count], work)
        out[mask] = value - price * (p + 1)
