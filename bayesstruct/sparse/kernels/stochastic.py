"""Steps of stochastic methods, which read one column, or one row, of a table at a time."""

import math

from bayesstruct.core.jit import inner, kernel

__all__ = [
    "GAUSSIAN",
    "LOGISTIC",
    "descend_columns",
    "descend_sparse_columns",
    "link",
    "mirror_rows",
    "slope",
]

GAUSSIAN, LOGISTIC = 0, 1


@kernel
def slope(kind, z, y):
    """Return the derivative of a loss in the linear predictor of one row.

    Parameters
    ----------
    kind : int
        ``GAUSSIAN``, half the square, or ``LOGISTIC``, with labels 0 and 1.
    z, y : float
        Linear predictor and response.
    """
    if kind == GAUSSIAN:
        return z - y
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z)) - y
    e = math.exp(z)
    return e / (1.0 + e) - y


@inner
def _shrink(v, up, down):
    if v > up:
        return v - up
    if v < -down:
        return v + down
    return 0.0


@kernel
def descend_columns(X, y, kind, w, z, bound, up, down, order):
    """Minimise an upper bound of the objective in one coordinate after the other, in place.

    Parameters
    ----------
    X : (n, p) array
        Predictors, columns contiguous.
    y : (n,) array
        Responses.
    kind : int
        Of loss, see `slope`.
    w, z : (p,) or (p + 1,) array, (n,) array
        Coefficients, the one after the last column a constant, and linear predictor; updated.
    bound : array like ``w``
        Largest curvature of the summed loss in each coordinate.
    up, down : arrays like ``w``
        Rates of positive and of negative values.
    order : (steps,) array of int
        Coordinates.
    """
    n, p = X.shape
    for j in order:
        if bound[j] <= 0.0:
            continue
        g = 0.0
        if j == p:
            for i in range(n):
                g += slope(kind, z[i], y[i])
        else:
            for i in range(n):
                g += slope(kind, z[i], y[i]) * X[i, j]
        new = _shrink(w[j] - g / bound[j], up[j] / bound[j], down[j] / bound[j])
        step = new - w[j]
        if step != 0.0:
            w[j] = new
            if j == p:
                for i in range(n):
                    z[i] += step
            else:
                for i in range(n):
                    z[i] += step * X[i, j]


@kernel
def descend_sparse_columns(data, rows, start, y, kind, w, z, bound, up, down, order):
    """Do the same as `descend_columns` for compressed columns ``data, rows, start``."""
    p = len(start) - 1
    for j in order:
        if bound[j] <= 0.0:
            continue
        g = 0.0
        if j == p:
            for i in range(len(z)):
                g += slope(kind, z[i], y[i])
        else:
            for at in range(start[j], start[j + 1]):
                i = rows[at]
                g += slope(kind, z[i], y[i]) * data[at]
        new = _shrink(w[j] - g / bound[j], up[j] / bound[j], down[j] / bound[j])
        step = new - w[j]
        if step != 0.0:
            w[j] = new
            if j == p:
                for i in range(len(z)):
                    z[i] += step
            else:
                for at in range(start[j], start[j + 1]):
                    z[rows[at]] += step * data[at]


@kernel
def link(theta, power, out):
    r"""Gradient of :math:`\tfrac12 \|\theta\|_r^2` for the norm of ``power`` r.

    Its inverse is the same map for the power ``r / (r - 1)``, and the norm of the one is the
    conjugate norm of the other.

    Parameters
    ----------
    theta : (p,) array
        Vector.
    power : float
        Above 1.
    out : (p,) array
        Set to the gradient.
    """
    largest = 0.0
    for x in theta:
        largest = max(largest, abs(x))
    if largest == 0.0:
        out[:] = 0.0
        return
    if power == 2.0:
        out[:] = theta
        return
    total = 0.0
    for j in range(len(theta)):
        share = abs(theta[j]) / largest
        if share > 0.0:
            raised = share ** (power - 1.0)
            total += raised * share
            out[j] = math.copysign(raised, theta[j])
        else:
            out[j] = 0.0
    factor = largest * total ** (-(power - 2.0) / power)
    for j in range(len(theta)):
        out[j] *= factor


@kernel
def mirror_rows(data, columns, start, y, kind, theta, w, constant, power, step, up, down, total):
    """Stochastic mirror descent made sparse: one step for each row, in place.

    Parameters
    ----------
    data, columns, start : arrays
        Compressed rows.
    y : (rows,) array
        Responses.
    kind : int
        Of loss, see `slope`.
    theta, w : (p,) arrays
        Dual vector and coefficients, its image under `link`; updated.
    constant : (2,) array
        Intercept and the sum of it before each row; updated. Its steps are Euclidean.
    power, step : float
        Of the link; size of a step. The intercept does not move where ``constant`` has length 0.
    up, down : (p,) arrays
        Rates of positive and of negative values, for the loss of one row.
    total : (p,) or (0,) array
        Sum of the coefficients before each row, kept unless empty.

    Returns
    -------
    float
        Sum of the losses, each before the row's own step.
    """
    loss = 0.0
    p = len(theta)
    for i in range(len(y)):
        z = constant[0] if len(constant) else 0.0
        for at in range(start[i], start[i + 1]):
            z += data[at] * w[columns[at]]
        if kind == GAUSSIAN:
            loss += 0.5 * (y[i] - z) ** 2
        else:
            loss += max(z, 0.0) + math.log1p(math.exp(-abs(z))) - y[i] * z
        if len(total):
            for j in range(p):
                total[j] += w[j]
        g = slope(kind, z, y[i])
        for at in range(start[i], start[i + 1]):
            theta[columns[at]] -= step * g * data[at]
        for j in range(p):
            theta[j] = _shrink(theta[j], step * up[j], step * down[j])
        link(theta, power, w)
        if len(constant):
            constant[1] += constant[0]
            constant[0] -= step * g
    return loss
