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

from bayesstruct.core.jit import inner, kernel, vector_inner
from bayesstruct.core.special import LOG_2PI, log_normal_cdf

__all__ = [
    "INTERCEPT_DEVIATION",
    "NOISE_RATE",
    "evaluate",
    "find_mode",
    "normal_evidence",
    "prior_precision",
    "work_rows",
]

#: Standard deviation of the prior of intercepts of states; rate of the prior of noise variances.
INTERCEPT_DEVIATION = 2.5
NOISE_RATE = 0.25
NORMAL, STUDENT, LAPLACE, LOGISTIC, PROBIT, CLOGLOG, MULTINOMIAL, ORDINAL = range(8)
_STEPS = 200
_PROMISE = 1e-8
_LARGEST = 60.0  # linear predictors of a complementary log-log beyond


@inner
def work_rows(code, states):
    """Return the rows of work that `evaluate` needs."""
    if code == MULTINOMIAL:
        return 2 * (states - 1) + states * (states - 1) // 2
    return 10 if code == STUDENT or code == LAPLACE else 3


@inner
def digamma(x):
    """Derivative of the logarithm of the gamma function, x > 0."""
    out = 0.0
    while x < 8.0:
        out -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r / 132))))
    return out + math.log(x) - 0.5 / x - series


@inner
def trigamma(x):
    """Second derivative of the logarithm of the gamma function, x > 0."""
    out = 0.0
    while x < 8.0:
        out += 1.0 / (x * x)
        x += 1.0
    r = 1.0 / (x * x)
    series = 1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * 5 / 66)))
    return out + 1.0 / x + 0.5 * r + series * r / x


@inner
def sigmoid(x):
    """Logistic function."""
    tail = math.exp(-abs(x))
    return 1.0 / (1.0 + tail) if x > 0 else tail / (1.0 + tail)


@inner
def log_sigmoid(x):
    """Logarithm of the logistic function."""
    return min(x, 0.0) - math.log1p(math.exp(-abs(x)))


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


@vector_inner
def _predict(x, columns, first, theta, at, eta):
    """Write one linear predictor of all rows."""
    n = len(eta)
    start = theta[at] if first == 1 else 0.0
    for m in range(n):
        eta[m] = start
    for a in range(len(columns)):
        weight, row = theta[at + first + a], x[columns[a]]
        for m in range(n):
            eta[m] += weight * row[m]


@vector_inner
def _weighted(row, weight):
    out = 0.0
    for m in range(len(weight)):
        out += row[m] * weight[m]
    return out


@vector_inner
def _weighted_pair(row, other, weight):
    out = 0.0
    for m in range(len(weight)):
        out += row[m] * other[m] * weight[m]
    return out


@vector_inner
def _total(weight):
    out = 0.0
    for m in range(len(weight)):
        out += weight[m]
    return out


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


@inner
def _noise_rows(code, y, eta, log_s, log_g, delta, slope, curve):
    """Log likelihood of numbers; derivatives by rows.

    Rows of `slope`: predictor, log s, log g. Rows of `curve`: pairs (0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2).
    """
    n, inverse = len(y), math.exp(-log_s)
    value = -n * log_s
    if code == STUDENT:
        g = math.exp(log_g)
        constant = (
            math.lgamma(0.5 * (g + 3.0))
            - math.lgamma(0.5 * (g + 2.0))
            - 0.5 * math.log(math.pi * g)
        )
        first = 0.5 * (digamma(0.5 * (g + 3.0)) - digamma(0.5 * (g + 2.0))) - 0.5 / g
        second = 0.25 * (trigamma(0.5 * (g + 3.0)) - trigamma(0.5 * (g + 2.0))) + 0.5 / (g * g)
        value += n * constant
        for m in range(n):
            z = y[m] * inverse
            e = z - eta[m]
            square = e * e
            spread = g + square
            log_term = math.log1p(square / g)
            value -= 0.5 * (g + 3.0) * log_term
            d1 = -(g + 3.0) * e / spread
            d2 = -(g + 3.0) * (g - square) / (spread * spread)
            f_g = first - 0.5 * log_term + 0.5 * (g + 3.0) * square / (g * spread)
            f_gg = second + square / (g * spread)
            f_gg -= 0.5 * (g + 3.0) * square * (g + spread) / (g * g * spread * spread)
            f_eu = g * e * (3.0 - square) / (spread * spread)
            slope[0, m] = -d1
            slope[1, m] = -1.0 - d1 * z
            slope[2, m] = g * f_g
            curve[0, m] = -d2
            curve[1, m] = -d2 * z
            curve[2, m] = -(d2 * z * z + d1 * z)
            curve[3, m] = f_eu
            curve[4, m] = f_eu * z
            curve[5, m] = -(g * g * f_gg + g * f_g)
        return value
    root2 = math.sqrt(2.0)
    value -= 0.5 * n * math.log(2.0)
    for m in range(n):
        z = y[m] * inverse
        e = z - eta[m]
        if delta > 0.0:
            size = math.sqrt(e * e + delta * delta)
            value -= root2 * (size - delta)
            d1 = -root2 * e / size
            d2 = -root2 * delta * delta / (size * size * size)
        else:
            value -= root2 * abs(e)
            d1 = -root2 if e > 0 else root2
            d2 = 0.0
        slope[0, m] = -d1
        slope[1, m] = -1.0 - d1 * z
        curve[0, m] = -d2
        curve[1, m] = -d2 * z
        curve[2, m] = -(d2 * z * z + d1 * z)
    return value


@inner
def _noise_prior(code, theta, at, q, grad, hess):
    """Log prior of noise scale and degrees of freedom, for `q` features of parents; derivatives are added."""
    shape = 0.5 * (3.0 + q)
    tail = NOISE_RATE * math.exp(-2.0 * theta[at])
    value = shape * math.log(NOISE_RATE) - math.lgamma(shape) + math.log(2.0)
    value += -2.0 * shape * theta[at] - tail
    grad[at] += -2.0 * shape + 2.0 * tail
    hess[at, at] += 4.0 * tail
    if code == STUDENT:
        g = math.exp(theta[at + 1])
        value += 2.0 * math.log(0.1) + 2.0 * theta[at + 1] - 0.1 * g
        grad[at + 1] += 2.0 - 0.1 * g
        hess[at + 1, at + 1] += 0.1 * g
    return value


@inner
def _ordinal(y, states, x, columns, theta, eta, derive, work, grad, hess):
    """Log likelihood and log prior of the thresholds of ordered states; derivatives are added.

    A probability is sigmoid(high - eta) sigmoid(eta - low) (1 - exp(low - high)).
    """
    q, cuts, n = len(columns), states - 1, len(y)
    cut, step, count = np.empty(cuts), np.ones(cuts), np.zeros(states)
    cut[0] = theta[q]
    for k in range(1, cuts):
        step[k] = math.exp(theta[q + k])
        cut[k] = cut[k - 1] + step[k]
    value = math.lgamma(float(states))
    by_cut, weight, cross = np.zeros(cuts), np.zeros(cuts), np.zeros((cuts, q))
    slope, curve = work[0], work[1]
    for m in range(n):
        own = int(y[m])
        count[own] += 1.0
        slope[m] = 0.0
        curve[m] = 0.0
        if own < cuts:
            z = cut[own] - eta[m]
            p = sigmoid(z)
            value += log_sigmoid(z)
            slope[m] -= 1.0 - p
            by_cut[own] += 1.0 - p
            w = p * (1.0 - p)
            curve[m] += w
            weight[own] += w
            if derive:
                for a in range(q):
                    cross[own, a] += w * x[columns[a], m]
        if own > 0:
            z = cut[own - 1] - eta[m]
            p = sigmoid(z)
            value += log_sigmoid(-z)
            slope[m] += p
            by_cut[own - 1] -= p
            w = p * (1.0 - p)
            curve[m] += w
            weight[own - 1] += w
            if derive:
                for a in range(q):
                    cross[own - 1, a] += w * x[columns[a], m]
    for k in range(cuts):  # the prior has one value in each cell between thresholds
        p = sigmoid(cut[k])
        value += log_sigmoid(cut[k]) + log_sigmoid(-cut[k])
        by_cut[k] += 1.0 - 2.0 * p
        weight[k] += 2.0 * p * (1.0 - p)
    for k in range(1, cuts):
        # log(1 - exp(-step)) for each row of the state, and the Jacobian.
        short = -math.expm1(-step[k])
        value += count[k] * math.log(short) + theta[q + k]
        if derive:
            t = step[k] * (1.0 - short) / short
            grad[q + k] += count[k] * t + 1.0
            hess[q + k, q + k] -= count[k] * t * (1.0 - step[k] - t)
    if not derive:
        return value
    for a in range(q):
        row = x[columns[a]]
        grad[a] += _weighted(row, slope[:n])
        for b in range(a + 1):
            hess[a, b] += _weighted_pair(row, x[columns[b]], curve[:n])
    # From thresholds to the first one and the logarithms of the steps: cut k moves by step[m], m <= k.
    for m in range(cuts):
        move = step[m]
        later = 0.0
        for k in range(m, cuts):
            later += by_cut[k]
        grad[q + m] += move * later
        if m > 0:
            hess[q + m, q + m] -= move * later
        for a in range(q):
            total = 0.0
            for k in range(m, cuts):
                total += cross[k, a]
            hess[q + m, a] -= move * total
        for r in range(m + 1):
            total = 0.0
            for k in range(m, cuts):
                total += weight[k]
            hess[q + m, q + r] += move * step[r] * total
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
    size, total = outputs * q, len(theta)
    grad[:] = 0.0
    hess[:] = 0.0
    for o in range(outputs):
        _predict(x, columns, first, theta, o * q, work[o])
    dims = outputs
    if code == ORDINAL:
        value = _ordinal(y, states, x, columns, theta, work[0], derive, work[1:], grad, hess)
    elif code == MULTINOMIAL:
        value = _multinomial_rows(
            y, work[:outputs], work[outputs : 2 * outputs], work[2 * outputs :]
        )
    elif code == STUDENT or code == LAPLACE:
        dims = total - size + 1
        log_g = theta[size + 1] if code == STUDENT else 0.0
        value = _noise_rows(code, y, work[0], theta[size], log_g, delta, work[1:4], work[4:])
        value += _noise_prior(code, theta, size, q - 1, grad, hess)
    else:
        value = _binary_rows(code, y, work[0], work[1], work[2])
    if derive and code != ORDINAL:
        curves = outputs + dims
        if code == STUDENT or code == LAPLACE:
            curves = 4
        _gather(x, columns, q, outputs, dims, work[outputs:, :n], work[curves:, :n], grad, hess)
    value += 0.5 * log_det - 0.5 * size * LOG_2PI
    for a in range(size):
        push = 0.0
        for b in range(size):
            push += precision[a, b] * theta[b]
            if derive and b <= a:
                hess[a, b] += precision[a, b]
        value -= 0.5 * theta[a] * push
        grad[a] -= push
    if derive:
        for a in range(total):
            for b in range(a):
                hess[b, a] = hess[a, b]
    return value


@inner
def _gather(x, columns, q, outputs, dims, slope, curve, grad, hess):
    """Add sums over rows: outputs have q coefficients each, further dimensions have one parameter."""
    size, at = outputs * q, 0
    for o in range(dims):
        if o < outputs:
            for a in range(q):
                total = _total(slope[o]) if a == 0 else _weighted(x[columns[a - 1]], slope[o])
                grad[o * q + a] += total
        else:
            grad[size + o - outputs] += _total(slope[o])
        for r in range(o + 1):
            w = curve[at]
            at += 1
            if o >= outputs and r >= outputs:
                hess[size + o - outputs, size + r - outputs] += _total(w)
                continue
            for b in range(q):
                one = _total(w) if b == 0 else _weighted(x[columns[b - 1]], w)
                if o >= outputs:
                    hess[size + o - outputs, r * q + b] += one
                    continue
                hess[o * q, r * q + b] += one
                if b > 0:
                    if o != r:
                        hess[o * q + b, r * q] += one
                    for a in range(b, q):
                        two = _weighted_pair(x[columns[a - 1]], x[columns[b - 1]], w)
                        hess[o * q + a, r * q + b] += two
                        if o != r and a != b:
                            hess[o * q + b, r * q + a] += two
            if o == r and o < outputs:
                for b in range(1, q):  # the first row was written; the lower triangle counts
                    hess[o * q + b, o * q] += hess[o * q, o * q + b]
                    hess[o * q, o * q + b] = 0.0


@inner
def factorise(a, factor):
    """Cholesky factor of a matrix; whether it is positive definite."""
    k = len(a)
    for j in range(k):
        for i in range(j, k):
            total = a[i, j]
            for m in range(j):
                total -= factor[i, m] * factor[j, m]
            if i == j:
                if not total > 0.0:
                    return False
                factor[j, j] = math.sqrt(total)
            else:
                factor[i, j] = total / factor[j, j]
                factor[j, i] = 0.0
    return True


@inner
def _solve(factor, vector):
    """Solve with a Cholesky factor, in place."""
    k = len(vector)
    for i in range(k):
        for j in range(i):
            vector[i] -= factor[i, j] * vector[j]
        vector[i] /= factor[i, i]
    for i in range(k - 1, -1, -1):
        for j in range(i + 1, k):
            vector[i] -= factor[j, i] * vector[j]
        vector[i] /= factor[i, i]


@kernel
def find_mode(
    code, states, y, x, columns, precision, log_det, delta, theta, work, grad, hess, factor
):
    """Climb to a mode by damped Newton steps; return the Laplace approximation of the log evidence.

    The parameters are those of :func:`evaluate`; `theta` is the start and becomes the mode, and `factor`, (k, k), the Cholesky
    factor of minus the second derivatives there.
    """
    k = len(theta)
    step, trial = np.empty(k), np.empty(k)
    args = code, states, y, x, columns, precision, log_det, delta
    value = evaluate(*args, theta, True, work, grad, hess)
    damping, ready = 0.0, False
    for _ in range(_STEPS):
        while True:
            if damping > 0.0:
                for a in range(k):
                    hess[a, a] += damping
            if factorise(hess, factor):
                break
            damping = 4.0 * damping if damping > 0.0 else 1e-2
        promise = 0.0
        step[:] = grad
        _solve(factor, step)
        for a in range(k):
            promise += grad[a] * step[a]
        if not promise > _PROMISE:
            ready = damping == 0.0  # the factor is that of the second derivatives
            break
        length, found = 1.0, False
        while length > 1e-8:
            for a in range(k):
                trial[a] = theta[a] + length * step[a]
            reached = evaluate(*args, trial, True, work, grad, hess)
            if reached >= value + 1e-4 * length * promise:
                found = True
                break
            length *= 0.4
        if not found:
            break
        theta[:] = trial
        value = reached
        damping = 0.0 if damping < 1e-2 else 0.25 * damping
    if not ready:
        value = evaluate(*args, theta, True, work, grad, hess)
        extra = 1e-6
        while not factorise(hess, factor):
            for a in range(k):
                hess[a, a] += extra
            extra *= 4.0
    if code == LAPLACE:
        value = evaluate(*args[:7], 0.0, theta, False, work, grad, hess)
    out = value + 0.5 * k * LOG_2PI
    for a in range(k):
        out -= math.log(factor[a, a])
    return out


@kernel
def normal_evidence(y, x, columns, precision, log_det, factor, mean):
    """Log evidence of a column with normal noise; shape and rate of its variance given the rows.

    Parameters
    ----------
    y, x, columns, precision, log_det
        As of :func:`evaluate`.
    factor : (k, k) float64
        Becomes the Cholesky factor of the precision of the coefficients divided by the noise.
    mean : (k,) float64
        Becomes their mean.

    Returns
    -------
    float, float, float
    """
    k, n = len(mean), len(y)
    gram = precision.copy()
    for a in range(k):
        left = x[columns[a - 1]] if a > 0 else y
        mean[a] = _total(y) if a == 0 else _weighted(left, y)
        for b in range(a + 1):
            if a == 0:
                gram[0, 0] += n
            else:
                gram[a, b] += _total(left) if b == 0 else _weighted(left, x[columns[b - 1]])
    push = mean.copy()
    factorise(gram, factor)
    _solve(factor, mean)
    rate = NOISE_RATE + 0.5 * _weighted(y, y)
    for a in range(k):
        rate -= 0.5 * push[a] * mean[a]
    shape = 0.5 * (3.0 + k - 1.0)
    out = shape * math.log(NOISE_RATE) - math.lgamma(shape) + 0.5 * log_det - 0.5 * n * LOG_2PI
    shape += 0.5 * n
    rate = max(rate, 1e-300)
    out += math.lgamma(shape) - shape * math.log(rate)
    for a in range(k):
        out -= math.log(factor[a, a])
    return out, shape, rate
