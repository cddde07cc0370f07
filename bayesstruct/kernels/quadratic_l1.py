"""Coordinate descent on a quadratic with a separable absolute-value penalty."""

import numba

__all__ = ["sweep", "sweep_columns"]


@numba.njit(cache=True, nogil=True)
def _shrunk(a, up, down):
    """Soft threshold with a rate for each sign."""
    if a > up:
        return a - up
    return a + down if a < -down else 0.0


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _slope(data, rows, start, j, m):
    """Inner product of a sparse column, or of the column of ones, with ``m``."""
    total = 0.0
    if j < 0:
        for i in range(len(m)):
            total += m[i]
    else:
        for at in range(start[j], start[j + 1]):
            total += data[at] * m[rows[at]]
    return total


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _move(data, rows, start, j, h, step, m):
    """Add ``step`` times ``h`` times a column to ``m``."""
    if j < 0:
        for i in range(len(m)):
            m[i] += step * h[i]
    else:
        for at in range(start[j], start[j + 1]):
            m[rows[at]] += step * h[rows[at]] * data[at]


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
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
        Most passes.
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


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def sweep_columns(data, rows, start, index, h, m, curvature, v, up, down, passes, tol):
    r"""Do the same as `sweep` for ``Q = A' diag(h) A`` with few non-zeros in each column of ``A``.

    Cheaper than the Gram matrix where there are more columns than non-zeros in one.

    Parameters
    ----------
    data, rows, start : arrays
        Compressed columns of a sparse matrix.
    index : (k,) array of int
        Its columns that take part; -1 is a column of ones.
    h : (n,) array
        Curvature of each row.
    m : (n,) array
        Derivative of the quadratic model in each row's predictor; updated.
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
            slope = _slope(data, rows, start, index[k], m)
            new = _shrunk(curvature[k] * old - slope, up[k], down[k]) / curvature[k]
            step = new - old
            if step != 0.0:
                v[k] = new
                _move(data, rows, start, index[k], h, step, m)
                change = max(change, abs(step) * curvature[k])
        if full:
            largest = change
            if change <= tol:
                break
        full = change <= 0.1 * largest if not full else False
        if change <= tol:
            full = True
    return largest
