"""Coordinate descent on a quadratic with a separable absolute-value penalty."""

from bayesstruct.core.jit import fused_kernel, inner, kernel

__all__ = ["predictor", "sweep", "sweep_columns"]


@inner
def _shrunk(a, up, down):
    """Soft threshold with a rate for each sign."""
    if a > up:
        return a - up
    return a + down if a < -down else 0.0


@fused_kernel
def _slope(data, rows, first, last, r):
    """Inner product of a sparse column with ``r``."""
    total = 0.0
    for at in range(first, last):
        total += data[at] * r[rows[at]]
    return total


@fused_kernel
def _move(data, rows, first, last, step, r):
    """Add ``step`` times a sparse column to ``r``."""
    for at in range(first, last):
        r[rows[at]] += step * data[at]


@kernel
def predictor(data, rows, start, w, z):
    """Add the product of a sparse matrix and coefficients, few of them not zero, to ``z``.

    Parameters
    ----------
    data, rows, start : arrays
        Compressed columns of the matrix.
    w : (p,) array
        Coefficients; columns of zero ones are not read.
    z : (n,) array
        Updated.
    """
    for j in range(len(start) - 1):
        if w[j] != 0.0:
            _move(data, rows, start[j], start[j + 1], w[j], z)


@fused_kernel
def sweep(Q, v, u, up, down, passes, tol):
    r"""Descend on :math:`\tfrac12 v'Qv + b'v + \sum_j up_j v_j^+ + down_j v_j^-`, in place.

    Passes over all coordinates alternate with passes over the non-zero ones. An infinite ``down``
    keeps a coordinate non-negative.

    Parameters
    ----------
    Q : (k, k) array
        Symmetric, positive semi-definite.
    v, u : (k,) arrays
        Point and gradient ``Q v + b`` there; both are updated.
    up, down : (k,) arrays
        Rates of positive and of negative values, non-negative.
    passes : int
        Maximum number of passes.
    tol : float
        Stop when no coordinate changes its gradient by more than this in a full pass.

    Returns
    -------
    float
        Largest change of a gradient by its own coordinate's step, in the last full pass.
    """
    k = len(v)
    largest = 0.0
    full = True
    for _ in range(passes):
        change = 0.0
        for j in range(k):
            curvature = Q[j, j]
            old = v[j]
            if curvature <= 0.0 or (not full and old == 0.0 and up[j] + down[j] > 0.0):
                continue
            new = _shrunk(curvature * old - u[j], up[j], down[j]) / curvature
            step = new - old
            if step != 0.0:
                v[j] = new
                for i in range(k):
                    u[i] += step * Q[j, i]
                change = max(change, abs(step) * curvature)
        if full:
            largest = change
            if change <= tol:
                break
        full = change <= 0.1 * largest if not full else False
        if change <= tol:
            full = True
    return largest


@fused_kernel
def sweep_columns(data, rows, start, r, curvature, v, up, down, passes, tol):
    r"""Do the same as `sweep` for ``Q = B'B`` with few non-zeros in each column of ``B``.

    Cheaper than the Gram matrix where there are more columns than non-zeros in one.

    Parameters
    ----------
    data, rows, start : arrays
        Compressed columns of the matrix ``B``.
    r : (n,) array
        ``B v`` plus a constant, such that ``B' r`` is the gradient; updated.
    curvature : (k,) array
        Diagonal of ``Q``.
    v : (k,) array
        Point; updated.
    up, down, passes, tol
        As in `sweep`.

    Returns
    -------
    float
        Largest change of a gradient by its own coordinate's step, in the last full pass.
    """
    largest = 0.0
    full = True
    for _ in range(passes):
        change = 0.0
        for k in range(len(v)):
            old = v[k]
            if curvature[k] <= 0.0 or (not full and old == 0.0 and up[k] + down[k] > 0.0):
                continue
            slope = _slope(data, rows, start[k], start[k + 1], r)
            new = _shrunk(curvature[k] * old - slope, up[k], down[k]) / curvature[k]
            step = new - old
            if step != 0.0:
                v[k] = new
                _move(data, rows, start[k], start[k + 1], step, r)
                change = max(change, abs(step) * curvature[k])
        if full:
            largest = change
            if change <= tol:
                break
        full = change <= 0.1 * largest if not full else False
        if change <= tol:
            full = True
    return largest
