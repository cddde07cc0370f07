"""Evidence of all parent sets among some candidates, for columns of several kinds."""

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.networks.kernels.scores.mixed_families import (
    INTERCEPT_DEVIATION,
    LAPLACE,
    MULTINOMIAL,
    NORMAL,
    ORDINAL,
    STUDENT,
    evaluate,
    prior_precision,
    work_rows,
)
from bayesstruct.networks.kernels.scores.mixed_mode import find_mode, normal_evidence

__all__ = ["family_density", "family_mode", "mixed_subsets"]


@inner
def _n_extras(code, states):
    """Return the number of parameters besides the coefficients."""
    if code == ORDINAL:
        return states - 1
    if code == STUDENT:
        return 2
    return 1 if code == LAPLACE else 0


@inner
def _first_start(code, states, y, theta, size):
    """Start of a climb without parents: shares of the states, or moments of standardised numbers."""
    theta[:] = 0.0
    if code == ORDINAL:
        theta[size] = -1.0
    elif code == STUDENT:
        theta[size + 1] = 2.0
    elif code == MULTINOMIAL:
        count = np.full(states, 0.5)
        for m in range(len(y)):
            count[int(y[m])] += 1.0
        q = size // (states - 1)
        for o in range(states - 1):
            theta[o * q] = np.log(count[o + 1] / count[0])


@inner
def _wide(code):
    return 1.0 if code in (NORMAL, STUDENT, LAPLACE) else INTERCEPT_DEVIATION


@inner
def _coefficients(code, states, columns):
    """Return the number of coefficients of a child, with intercepts."""
    outputs = states - 1 if code == MULTINOMIAL else 1
    return outputs * (len(columns) + (0 if code == ORDINAL else 1))


@inner
def _delta(n):
    """Distance within which Laplace noise is rounded off."""
    return 0.7 * max(n, 1) ** (-1.0 / 3.0)


@inner
def _prior(code, states, owner, kinds, columns, scale):
    """Precision of the coefficients, and the logarithm of its determinant."""
    size = _coefficients(code, states, columns)
    precision = np.empty((size, size))
    outputs = states - 1 if code == MULTINOMIAL else 1
    ordinal = code == ORDINAL
    log_det = prior_precision(
        owner, kinds, columns, outputs, ordinal, scale, _wide(code), precision
    )
    return precision, log_det


@inner
def _continue(code, states, old, theta, size):
    """Start a climb at the mode of a smaller parent set, whose features come first."""
    outputs = states - 1 if code == MULTINOMIAL else 1
    extras = _n_extras(code, states)
    before, now = (len(old) - extras) // outputs, size // outputs
    theta[:] = 0.0
    for o in range(outputs):
        for a in range(before):
            theta[o * now + a] = old[o * before + a]
    for e in range(extras):
        theta[size + e] = old[len(old) - extras + e]


@kernel
def mixed_subsets(code, states, y, x, owner, kinds, first, candidates, fixed, most, scale, out):
    """Score a child with each subset of some candidates as parents.

    Parameters
    ----------
    code, states : int
        Family of the child, and its number of states.
    y : (n,) float64
    x : (features, n) float64
    owner : (features,) int64
        Column of each feature.
    kinds : (d,) int64
        Number of states of columns whose features are states, 0 for the others.
    first : (d + 1,) int64
        First feature of each column.
    candidates, fixed : (k,), (f,) int64
        Columns that may be, and that are, parents.
    most : int
        Greatest size of a set; larger ones score -inf.
    scale : float
        Standard deviation of the prior of coefficients.
    out : (2**k,) float64
        Filled; entry m belongs to `fixed` and the candidates of the bits of m.
    """
    k, f = len(candidates), len(fixed)
    work = np.empty((work_rows(code, states), len(y)))
    columns = np.empty(len(x), np.int64)
    widest = 0
    for b in range(k + f):
        j = candidates[b] if b < k else fixed[b - k]
        widest += first[j + 1] - first[j]
    widest = _coefficients(code, states, columns[:widest]) + _n_extras(code, states)
    modes, lengths = np.empty((1 << k if code != NORMAL else 0, widest)), np.zeros(1 << k, np.int64)
    out[:] = -np.inf
    for mask in range(1 << k):
        count, q, top = f, 0, 0
        for b in range(k + f):
            j = fixed[b] if b < f else candidates[b - f]
            if b >= f:
                if not mask >> (b - f) & 1:
                    continue
                count += 1
                top = 1 << (b - f)
            for a in range(first[j], first[j + 1]):
                columns[q] = a
                q += 1
        if count > most:
            continue
        precision, log_det = _prior(code, states, owner, kinds, columns[:q], scale)
        size = len(precision)
        if code == NORMAL:
            factor, mean = np.empty((size, size)), np.empty(size)
            out[mask] = normal_evidence(y, x, columns[:q], precision, log_det, factor, mean)[0]
            continue
        total = size + _n_extras(code, states)
        theta, lengths[mask] = np.empty(total), total
        smaller = mask ^ top
        # Student noise may have several modes: its climbs begin at the same point always.
        if mask and lengths[smaller] and code != STUDENT:
            _continue(code, states, modes[smaller, : lengths[smaller]], theta, size)
        else:
            _first_start(code, states, y, theta, size)
        grad, hess, factor = np.empty(total), np.empty((total, total)), np.zeros((total, total))
        args = code, states, y, x, columns[:q], precision, log_det, _delta(len(y)), theta
        out[mask] = find_mode(*args, work, grad, hess, factor)
        modes[mask, :total] = theta


@kernel
def family_mode(code, states, y, x, owner, kinds, columns, scale, begin):
    """Fit one family.

    Parameters
    ----------
    code, states, y, x, owner, kinds, scale
        As of :func:`mixed_subsets`.
    columns : (q,) int64
        Features of the parents.
    begin : (k,) float64
        Parameters where the climb begins; empty for a default.

    Returns
    -------
    float
        The Laplace approximation of the log evidence, or the log evidence of normal noise.
    mode : (k,) float64
    factor : (k, k) float64
        Cholesky factor of minus the second derivatives; for normal noise, of the precision of the coefficients over the noise.
    precision, log_det
        Of the prior of the coefficients.
    shape, rate : float
        Of the variance of normal noise; 0 for others.
    """
    precision, log_det = _prior(code, states, owner, kinds, columns, scale)
    size = len(precision)
    total = size + _n_extras(code, states)
    theta, factor = np.empty(total), np.zeros((total, total))
    if code == NORMAL:
        value, shape, rate = normal_evidence(y, x, columns, precision, log_det, factor, theta)
        return value, theta, factor, precision, log_det, shape, rate
    if len(begin) == total:
        theta[:] = begin
    else:
        _first_start(code, states, y, theta, size)
    work = np.empty((work_rows(code, states), len(y)))
    grad, hess = np.empty(total), np.empty((total, total))
    args = code, states, y, x, columns, precision, log_det, _delta(len(y)), theta
    value = find_mode(*args, work, grad, hess, factor)
    return value, theta, factor, precision, log_det, 0.0, 0.0


@kernel
def family_density(code, states, y, x, columns, precision, log_det, theta):
    """Log likelihood plus log prior of free parameters of one family; not of normal noise."""
    total = len(theta)
    work = np.empty((work_rows(code, states), len(y)))
    grad, hess = np.empty(total), np.empty((total, total))
    args = code, states, y, x, columns, precision, log_det, 0.0, theta
    return evaluate(*args, False, work, grad, hess)
