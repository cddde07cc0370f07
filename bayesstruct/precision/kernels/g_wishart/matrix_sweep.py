r"""Gibbs sweeps over a precision matrix with the zeros of a graph, one node at a time.

The density is that of the G-Wishart distribution, :math:`|K|^{(b - 2) / 2} \exp(-\mathrm{tr}(K D) / 2)`. With the notation of
:mod:`bayesstruct.precision.kernels.gibbs`, the elements u of the edges of node j and :math:`v = K_{jj} - u' A u` are independent given
the rest: v is gamma, and u normal with precision :math:`D_{jj} A_{NN}` and linear term :math:`-D_{Nj}`, N being the neighbours of j.
The functions change ``precision`` and ``covariance`` (its inverse) in place and allocate nothing.
"""

import math

from bayesstruct.core.jit import kernel
from bayesstruct.precision.kernels.gibbs import close_column

__all__ = ["matrix_sweep"]


@kernel
def _draw_normal(rng, h, b, size):
    """Replace b by a draw from the normal distribution with precision h, a lower triangle, and linear term b."""
    for i in range(size):
        for j in range(i + 1):
            total = h[i, j]
            for k in range(j):
                total -= h[i, k] * h[j, k]
            if i == j:
                if total <= 0.0:
                    return False
                h[i, i] = math.sqrt(total)
            else:
                h[i, j] = total / h[j, j]
        total = b[i]
        for k in range(i):
            total -= h[i, k] * b[k]
        b[i] = total / h[i, i]
    for i in range(size - 1, -1, -1):
        total = b[i] + rng.standard_normal()
        for k in range(i + 1, size):
            total -= h[k, i] * b[k]
        b[i] = total / h[i, i]
    return True


@kernel
def matrix_sweep(rng, precision, covariance, adjacency, scale, b, near, work):
    """Draw the elements of each node in turn given all others.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision, covariance : (p, p) float64, changed in place
        K, zero off the graph, and its inverse.
    adjacency : (p, p) int8
    scale : (p, p) float64
        D.
    b : float
    near : (p,) int64
        Work space.
    work : (p + 3, p) float64
        Work space.

    Returns
    -------
    bool
        Whether the matrix stayed positive definite; rounding may end that.
    """
    p = precision.shape[0]
    column, product, linear, system = work[0], work[1], work[2], work[3:]
    for j in range(p):
        pivot = covariance[j, j]
        a = scale[j, j]
        size = 0
        for k in range(p):
            column[k] = covariance[j, k]
            product[k] = 0.0
            if adjacency[j, k]:
                near[size] = k
                size += 1
        for i in range(size):
            u = near[i]
            linear[i] = -scale[j, u]
            for k in range(i + 1):
                w = near[k]
                system[i, k] = a * (covariance[u, w] - column[u] * column[w] / pivot)
        if not _draw_normal(rng, system, linear, size):
            return False
        along = 0.0
        for i in range(size):
            u = near[i]
            precision[j, u] = linear[i]
            precision[u, j] = linear[i]
            along += linear[i] * column[u] / pivot
            for k in range(p):
                product[k] += linear[i] * covariance[u, k]
        for k in range(p):
            product[k] -= along * column[k]
        v = rng.standard_gamma(0.5 * b) * 2.0 / a
        close_column(precision, covariance, j, v, column, product, pivot)
    return True
