r"""Log posterior densities of the parameters of one column given its parents, with first and second derivatives.

The families are those of :mod:`bayesstruct.networks.kernels.mixed_layout`. Parameters are free numbers: the coefficients,
an output after the other, each with its intercept first; then, of columns of numbers, the logarithms of the noise scale s and
of the degrees of freedom less two; of ordered states, the first threshold and the logarithms of the distances to the next ones.
Coefficients of numbers are divided by s here, so that their prior does not depend on s.

Priors: coefficients of a number are normal with standard deviation `scale`; those of states are such that the difference between
any two states, of the parent and of the child, has that standard deviation. Intercepts likewise with the deviation
`wide`, 1 for numbers. :math:`s^2` is inverse gamma with shape :math:`(3 + q) / 2`, q being the number of features of the parents,
and rate 1/4; with `scale` :math:`\sqrt 2` that is the prior of the BGe score. Degrees of freedom less two are gamma with
shape 2 and rate 0.1. Thresholds are such that the probabilities of the states at :math:`\eta = 0` are uniform on the simplex.

The absolute value in the density of Laplace noise is rounded off within a distance of order :math:`n^{-1/3}`, where derivatives are
taken.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.core.special import LOG_2PI, log_normal_cdf
from bayesstruct.networks.kernels.scores.mixed_noise import noise_prior, noise_rows
from bayesstruct.networks.kernels.scores.mixed_ordinal import ordinal_density
from bayesstruct.networks.kernels.scores.mixed_sums import (
    predict,
    total_of,
    weighted,
    weighted_pair,
)

__all__ = ["INTERCEPT_DEVIATION", "evaluate", "prior_precision", "work_rows"]

#: Standard deviation of the prior of intercepts of states.
INTERCEPT_DEVIATION = 2.5
NORMAL, STUDENT, LAPLACE, LOGISTIC, PROBIT, CLOGLOG, MULTINOMIAL, ORDINAL = range(8)
_LARGEST = 60.0  # linear predictors of a complementary log-log beyond


@inner
def work_rows(code, states):
    """Return the rows of work that `evaluate` needs."""
    if code == MULTINOMIAL:
        return 2 * (states - 1) + states * (states - 1) // 2
    return 10 if code in (STUDENT, LAPLACE) else 3


@kernel
def prior_precision(owner, kinds, columns, outputs, ordinal, scale, wide, out):
    """Precision matrix of the coefficients of a child, and the logarithm of its determinant.

    Parameters
    ----------
    owner : (features,) int64
        Column of each feature of the table.
    kinds : (d,) int64
        Number of states of columns whose features are states, 0 for the others.
    columns : (q,) int64
        Features of the parents.
    outputs : int64
        Of the child.
    ordinal : bool
        Whether there is no intercept.
    scale, wide : float
        Deviations of coefficients and intercepts.
    out : (outputs * (1 + q), outputs * (1 + q)) float64, or without the ones
        Written.

    Returns
    -------
    float
    """
    first = 0 if ordinal else 1
    q = len(columns) + first
    log_det = 0.0
    out[:] = 0.0
    share = np.zeros((q, q))
    if first == 1:
        share[0, 0] = 1.0 / (wide * wide)
        log_det -= 2.0 * math.log(wide)
    for a in range(len(columns)):
        k = kinds[owner[columns[a]]]
        log_det -= 2.0 * math.log(scale)
        if k == 0:
            share[first + a, first + a] = 1.0 / (scale * scale)
            continue
        if a == 0 or owner[columns[a - 1]] != owner[columns[a]]:
            log_det += (k - 1) * math.log(2.0) - math.log(k)
        for b in range(len(columns)):
            if owner[columns[b]] == owner[columns[a]]:
                same = 1.0 if a == b else 0.0
                share[first + a, first + b] = 2.0 * (same - 1.0 / k) / (scale * scale)
    states = outputs + 1
    for o in range(outputs):
        for p in range(outputs):
            same = 1.0 if o == p else 0.0
            weight = 2.0 * (same - 1.0 / states)
            for a in range(q):
                for b in range(q):
                    out[o * q + a, p * q + b] = weight * share[a, b]
    return outputs * log_det + q * (outputs * math.log(2.0) - math.log(states))


@inner
def _binary_rows(code, y, eta, slope, curve):
    """Log likelihood of two states; derivatives by rows."""
    value = 0.0
    for m in range(len(y)):
        s = eta[m]
        one = y[m] > 0.5
        if code == LOGISTIC:
            tail = math.exp(-abs(s))
            share = 1.0 / (1.0 + tail) if s > 0 else tail / (1.0 + tail)
            value += (s if one else 0.0) - max(s, 0.0) - math.log1p(tail)
            slope[m] = (1.0 if one else 0.0) - share
            curve[m] = tail / ((1.0 + tail) * (1.0 + tail))
        elif code == PROBIT:
            sign = 1.0 if one else -1.0
            z = sign * s
            log_cdf = log_normal_cdf(z)
            ratio = math.exp(-0.5 * z * z - 0.5 * LOG_2PI - log_cdf)
            value += log_cdf
            slope[m] = sign * ratio
            curve[m] = max(ratio * (ratio + z), 0.0)
        else:
            rate = math.exp(min(s, _LARGEST))
            if one:
                value += math.log(-math.expm1(-rate)) if rate < 30.0 else 0.0
                t = rate / math.expm1(rate) if rate < 500.0 else 0.0
                slope[m] = t
                curve[m] = max(t * (rate + t - 1.0), 0.0)
            else:
                value -= rate
                slope[m] = -rate
                curve[m] = rate
    return value


@inner
def _multinomial_rows(y, eta, slope, curve):
    """Log likelihood of states without an order; derivatives by rows, pairs (a, b <= a) of outputs in `curve`."""
    value, outputs = 0.0, len(eta)
    p = np.empty(outputs)
    for m in range(len(y)):
        top = 0.0
        for o in range(outputs):
            top = max(top, eta[o, m])
        total = math.exp(-top)
        for o in range(outputs):
            p[o] = math.exp(eta[o, m] - top)
            total += p[o]
        own = int(y[m])
        value += (eta[own - 1, m] if own > 0 else 0.0) - top - math.log(total)
        at = 0
        for o in range(outputs):
            p[o] /= total
            slope[o, m] = (1.0 if own == o + 1 else 0.0) - p[o]
            for r in range(o):
                curve[at, m] = -p[o] * p[r]
                at += 1
            curve[at, m] = p[o] * (1.0 - p[o])
            at += 1
    return value


@kernel
def evaluate(
    code, states, y, x, columns, precision, log_det, delta, theta, derive, work, grad, hess
):
    """Log posterior density of the parameters of a column, up to the evidence.

    Parameters
    ----------
    code : int
        Position of the family; not of the normal one.
    states : int
        Of the child.
    y : (n,) float64
        Its values.
    x : (features, n) float64
    columns : (q,) int64
        Features of the parents.
    precision : (coefficients, coefficients) float64
        Of `prior_precision`.
    log_det : float
        Logarithm of its determinant.
    delta : float
        Distance within which Laplace noise is rounded off; 0 for its density.
    theta : (k,) float64
    derive : bool
        Whether derivatives are wanted.
    work : (rows, n) float64
        Overwritten; as many rows as `work_rows` says.
    grad : (k,), hess : (k, k) float64
        Gradient, and minus the matrix of second derivatives, written if wanted.

    Returns
    -------
    float
    """
    first = 0 if code == ORDINAL else 1
    outputs = states - 1 if code == MULTINOMIAL else 1
    q, n = len(columns) + first, len(y)
    size = outputs * q
    grad[:] = 0.0
    hess[:] = 0.0
    for o in range(outputs):
        predict(x, columns, first, theta, o * q, work[o])
    if code == ORDINAL:
        value = ordinal_density(y, states, x, columns, theta, work[0], derive, work[1:], grad, hess)
    elif code in (STUDENT, LAPLACE):
        value = _noise(code, y, theta, size, q, delta, work, grad, hess)
        if derive:
            dims = len(theta) - size + 1
            _gather(x, columns, q, 1, dims, work[1:, :n], work[4:, :n], grad, hess)
    else:
        value = _states(code, y, outputs, work)
        if derive:
            slope, curve = work[outputs:, :n], work[2 * outputs :, :n]
            _gather(x, columns, q, outputs, outputs, slope, curve, grad, hess)
    value += 0.5 * log_det - 0.5 * size * LOG_2PI
    return value + _coefficients(precision, theta, size, grad, hess)


@inner
def _noise(code, y, theta, size, q, delta, work, grad, hess):
    """Log likelihood of numbers, and log prior of noise scale and degrees of freedom."""
    student = code == STUDENT
    log_g = theta[size + 1] if student else 0.0
    value = noise_rows(student, y, work[0], theta[size], log_g, delta, work[1:4], work[4:])
    return value + noise_prior(student, theta, size, q - 1, grad, hess)


@inner
def _states(code, y, outputs, work):
    """Log likelihood of states without an order."""
    if code == MULTINOMIAL:
        slope, curve = work[outputs : 2 * outputs], work[2 * outputs :]
        return _multinomial_rows(y, work[:outputs], slope, curve)
    return _binary_rows(code, y, work[0], work[1], work[2])


@inner
def _coefficients(precision, theta, size, grad, hess):
    """Log prior of the coefficients but for a constant; derivatives are added, and the matrix is made symmetric."""
    value = 0.0
    for a in range(size):
        push = 0.0
        for b in range(size):
            push += precision[a, b] * theta[b]
            if b <= a:
                hess[a, b] += precision[a, b]
        value -= 0.5 * theta[a] * push
        grad[a] -= push
    for a in range(len(theta)):
        for b in range(a):
            hess[b, a] = hess[a, b]
    return value


@inner
def _gather(x, columns, q, outputs, dims, slope, curve, grad, hess):
    """Add sums over rows: outputs have q coefficients each, further dimensions have one parameter."""
    size, at = outputs * q, 0
    for o in range(dims):
        if o >= outputs:
            grad[size + o - outputs] += total_of(slope[o])
        else:
            for a in range(q):
                grad[o * q + a] += _one(x, columns, a, slope[o])
        for r in range(o + 1):
            w = curve[at]
            at += 1
            if r >= outputs:
                hess[size + o - outputs, size + r - outputs] += total_of(w)
            elif o >= outputs:
                for b in range(q):
                    hess[size + o - outputs, r * q + b] += _one(x, columns, b, w)
            else:
                _block(x, columns, q, w, hess, o * q, r * q)


@inner
def _one(x, columns, a, w):
    """Sum of a feature, the first of which is the constant."""
    return total_of(w) if a == 0 else weighted(x[columns[a - 1]], w)


@inner
def _block(x, columns, q, w, hess, row, column):
    """Add the sums of products of all features of two outputs; the lower triangle alone on the diagonal."""
    for a in range(q):
        for b in range(a + 1):
            if b == 0:
                two = _one(x, columns, a, w)
            else:
                two = weighted_pair(x[columns[a - 1]], x[columns[b - 1]], w)
            hess[row + a, column + b] += two
            if row != column and a != b:
                hess[row + b, column + a] += two
