r"""Columns of a precision matrix of least L1 norm within a box: a parametric simplex method.

One column solves, for a symmetric matrix S restricted to m rows and k columns (X below),

.. math::

    \min_w \|w\|_1 \quad \text{subject to} \quad |e - X w|_\infty \le \lambda,

whose dual is :math:`\max_y \; e'y - \lambda \|y\|_1` subject to :math:`|X' y|_\infty \le 1`. At
:math:`\lambda = 1` the solution is 0. A basis is a set R of rows whose constraints hold with equality and a set A of
as many columns that are not zero. While it stays, w is linear in :math:`\lambda` and y constant. It changes where a row joins R or a
column leaves A; y then moves along the one direction that keeps the remaining equations, until one of its elements
vanishes (a row leaves R) or a column joins A. The method visits each basis between 1 and the smallest penalty
once, so that a path costs as much as its last point.

Ties would let it cycle. Both right-hand sides are therefore raised by fractions of `_TIE`, different ones for each row and
column; what is returned solves the equations of the basis without them, and the caller computes the duality gap.
"""

import numpy as np

from bayesstruct.core.jit import vector_inner, vector_kernel

__all__ = ["DONE", "INFEASIBLE", "STALLED", "column_path"]

#: All penalties were reached; no vector meets the constraints below the last one; rounding errors ended the path.
DONE, INFEASIBLE, STALLED = 0, 1, 2
_TIE = 1e-9
_SMALL = 1e-11  # a rate of change that counts as zero, relative to the largest of its kind
_REFRESH = 40  # changes of the basis between two inversions from scratch


@vector_inner
def _inverse(M, out, k):
    """Invert ``M[:k, :k]``, which is overwritten, by elimination with partial pivots; False if it is singular."""
    largest = 0.0
    for i in range(k):
        for j in range(k):
            out[i, j] = 1.0 if i == j else 0.0
            largest = max(largest, abs(M[i, j]))
    for c in range(k):
        best = c
        for i in range(c + 1, k):
            if abs(M[i, c]) > abs(M[best, c]):
                best = i
        if not abs(M[best, c]) > 1e-14 * largest:
            return False
        if best != c:
            for j in range(k):
                M[c, j], M[best, j] = M[best, j], M[c, j]
                out[c, j], out[best, j] = out[best, j], out[c, j]
        scale = 1.0 / M[c, c]
        for j in range(k):
            M[c, j] *= scale
            out[c, j] *= scale
        for i in range(k):
            factor = M[i, c]
            if i != c and factor != 0.0:
                for j in range(k):
                    M[i, j] -= factor * M[c, j]
                    out[i, j] -= factor * out[c, j]
    return True


@vector_inner
def _solve_basis(X, A, R, k, inverse, work):
    """Invert the basis from scratch; `inverse` has columns as its rows, and rows as its columns."""
    for r in range(k):
        for a in range(k):
            work[r, a] = X[R[r], A[a]]
    return _inverse(work, inverse, k)


@vector_inner
def _primal(inverse, R, signs, bounds, k, target, level, w):
    """Elements of w in the basis at one penalty."""
    for a in range(k):
        total = 0.0
        for r in range(k):
            right = -level * signs[r] * bounds[R[r]]
            if R[r] == target:
                right += 1.0
            total += inverse[a, r] * right
        w[a] = total


@vector_inner
def _dual(inverse, A, slopes, costs, k, y):
    """Elements of y in the basis."""
    for r in range(k):
        y[r] = 0.0
    for a in range(k):
        for r in range(k):
            y[r] += slopes[a] * costs[A[a]] * inverse[a, r]


@vector_inner
def _combine(matrix, index, factors, k, out):
    """Sum of some rows of a matrix, with these factors."""
    for i in range(out.shape[0]):
        out[i] = 0.0
    for a in range(k):
        f, row = factors[a], index[a]
        for i in range(out.shape[0]):
            out[i] += f * matrix[row, i]


@vector_inner
def _first_primal(A, slopes, w, speed, in_rows, residual, drift, bounds, level, k):
    """How far the penalty can fall, and the column (negative, -1 - place) or row that ends it."""
    step, event, largest = np.inf, 0, 0.0
    for a in range(k):
        largest = max(largest, abs(speed[a]))
    for a in range(k):
        rate = -slopes[a] * speed[a]
        if rate > _SMALL * largest:
            t = max(slopes[a] * w[a], 0.0) / rate
            if t < step:
                step, event = t, -1 - a
    for i in range(residual.shape[0]):
        if not in_rows[i]:
            if bounds[i] - drift[i] > _SMALL:
                t = max(level * bounds[i] - residual[i], 0.0) / (bounds[i] - drift[i])
                if t < step:
                    step, event = t, i
            if bounds[i] + drift[i] > _SMALL:
                t = max(level * bounds[i] + residual[i], 0.0) / (bounds[i] + drift[i])
                if t < step:
                    step, event = t, i
    return step, event


@vector_inner
def _first_dual(signs, y, turn, in_columns, cover, shift, costs, k, unit):
    """How far y can move, and the row (negative, -1 - place) or column that ends it; `unit` is the largest of X."""
    step, event, largest = np.inf, 0, 0.0
    for r in range(k):
        largest = max(largest, abs(turn[r]))
    for r in range(k):
        rate = -signs[r] * turn[r]
        if rate > _SMALL * largest:
            t = max(signs[r] * y[r], 0.0) / rate
            if t < step:
                step, event = t, -1 - r
    # Changes of X'y that are sums of rounding errors count as zero.
    largest = unit * max(largest, 1.0)
    for j in range(cover.shape[0]):
        if not in_columns[j]:
            rate = abs(shift[j])
            if rate > _SMALL * largest:
                room = costs[j] - cover[j] if shift[j] > 0.0 else costs[j] + cover[j]
                t = max(room, 0.0) / rate
                if t < step:
                    step, event = t, j
    return step, event


@vector_inner
def _grow(inverse, u, z, corner, k):
    """Add a row and a column to the basis: `u` its inverse times the column, `z` the row times its inverse."""
    for a in range(k):
        f = u[a] / corner
        for r in range(k):
            inverse[a, r] += f * z[r]
        inverse[a, k] = -f
    for r in range(k):
        inverse[k, r] = -z[r] / corner
    inverse[k, k] = 1.0 / corner


@vector_inner
def _replace_row(inverse, z, q, k):
    """Replace row q of the basis by one with `z`, the row times its inverse."""
    for a in range(k):
        f = inverse[a, q] / z[q]
        for r in range(k):
            inverse[a, r] -= f * z[r]
        inverse[a, q] = f


@vector_inner
def _replace_column(inverse, u, a, k):
    """Replace column a of the basis by one with `u`, its inverse times the column."""
    for r in range(k):
        inverse[a, r] /= u[a]
    for b in range(k):
        if b != a:
            for r in range(k):
                inverse[b, r] -= u[b] * inverse[a, r]


@vector_inner
def _shrink(inverse, a, q, k):
    """Remove column a and row q of the basis; the last ones take their places."""
    pivot = inverse[a, q]
    for b in range(k):
        if b != a:
            f = inverse[b, q] / pivot
            for r in range(k):
                inverse[b, r] -= f * inverse[a, r]
    for r in range(k):
        inverse[a, r] = inverse[k - 1, r]
    for b in range(k):
        inverse[b, q] = inverse[b, k - 1]


@vector_inner
def _times_column(inverse, columns, j, R, k, u):
    """Inverse of the basis times a column."""
    for a in range(k):
        total = 0.0
        for r in range(k):
            total += inverse[a, r] * columns[j, R[r]]
        u[a] = total


@vector_inner
def _row_times(inverse, X, i, A, k, z):
    """A row times the inverse of the basis."""
    for r in range(k):
        z[r] = 0.0
    for a in range(k):
        x = X[i, A[a]]
        for r in range(k):
            z[r] += x * inverse[a, r]


@vector_kernel
def column_path(X, columns, target, penalties, weights, duals):
    """Solve for one column at a decreasing sequence of penalties.

    Parameters
    ----------
    X : (m, k) ndarray
        C-contiguous.
    columns : (k, m) ndarray
        Its transpose, C-contiguous.
    target : int
        Row in which the right-hand side e is 1.
    penalties : (q,) ndarray
        Decreasing, below 1.
    weights : (q, k) ndarray
        Zeros; receives w for each penalty.
    duals : (q, m) ndarray
        Zeros; receives y.

    Returns
    -------
    status : int
    reached : int
        Number of penalties that were reached.
    level : float
        Penalty at the end, under `INFEASIBLE` the smallest that can be met.
    pivots : int
    """
    m, n = X.shape
    most = min(m, n) + 1
    bounds, costs = np.ones(m), np.ones(n)
    for i in range(m):
        bounds[i] += _TIE * ((i * 0.6180339887498949) % 1.0)
    bounds[target] = 1.0
    for j in range(n):
        costs[j] += _TIE * ((j * 0.7548776662466927) % 1.0)
    A, R = np.zeros(most, np.int64), np.zeros(most, np.int64)
    slopes, signs = np.zeros(most), np.zeros(most)
    w, y = np.zeros(most), np.zeros(most)
    in_rows, in_columns = np.zeros(m, np.bool_), np.zeros(n, np.bool_)
    residual, cover = np.zeros(m), np.zeros(n)
    drift, shift = np.zeros(m), np.zeros(n)
    speed, turn, u, z = np.zeros(most), np.zeros(most), np.zeros(most), np.zeros(most)
    inverse, work = np.zeros((most, most)), np.zeros((most, most))
    level, done, pivots, unit = 1.0, 0, 0, 0.0
    for i in range(m):
        for j in range(n):
            unit = max(unit, abs(X[i, j]))

    first, theta = -1, np.inf
    for j in range(n):
        if abs(X[target, j]) > 0.0 and costs[j] / abs(X[target, j]) < theta:
            first, theta = j, costs[j] / abs(X[target, j])
    if first < 0:
        return INFEASIBLE, 0, 1.0, 0
    k = 1
    A[0], R[0], signs[0], y[0] = first, target, 1.0, theta
    slopes[0] = 1.0 if X[target, first] > 0.0 else -1.0
    inverse[0, 0] = 1.0 / X[target, first]
    in_rows[target], in_columns[first] = True, True
    residual[target] = 1.0
    for j in range(n):
        cover[j] = theta * X[target, j]

    limit = 50 * (m + n) + 1000
    while pivots < limit:
        for a in range(k):
            total = 0.0
            for r in range(k):
                total += inverse[a, r] * signs[r] * bounds[R[r]]
            speed[a] = total
        _combine(columns, A, speed, k, drift)
        step, event = _first_primal(A, slopes, w, speed, in_rows, residual, drift, bounds, level, k)
        while done < penalties.shape[0] and level - step <= penalties[done]:
            if not _solve_basis(X, A, R, k, inverse, work):
                return STALLED, done, level, pivots
            ones = np.ones(max(m, n))
            _primal(inverse, R, signs, ones, k, target, penalties[done], z)
            for a in range(k):
                weights[done, A[a]] = z[a]
            _dual(inverse, A, slopes, ones, k, z)
            for r in range(k):
                duals[done, R[r]] = z[r]
            done += 1
        if done == penalties.shape[0]:
            return DONE, done, penalties[done - 1], pivots
        if not np.isfinite(step):
            return STALLED, done, level, pivots

        level -= step
        for a in range(k):
            w[a] += step * speed[a]
        for i in range(m):
            residual[i] -= step * drift[i]
        for r in range(k):
            residual[R[r]] = level * signs[r] * bounds[R[r]]
        leaves, side = event < 0, 1.0
        if leaves:
            place = -1 - event
            w[place] = 0.0
            for r in range(k):
                turn[r] = -slopes[place] * inverse[place, r]
            in_columns[A[place]] = False
            _combine(X, R, turn, k, shift)
        else:
            side = 1.0 if residual[event] > 0.0 else -1.0
            _row_times(inverse, X, event, A, k, z)
            for r in range(k):
                turn[r] = -side * z[r]
            _combine(X, R, turn, k, shift)
            for j in range(n):
                shift[j] += side * X[event, j]
        theta, second = _first_dual(signs, y, turn, in_columns, cover, shift, costs, k, unit)
        if not np.isfinite(theta):
            return INFEASIBLE, done, level, pivots
        for r in range(k):
            y[r] += theta * turn[r]
        for j in range(n):
            cover[j] += theta * shift[j]

        if second < 0 and not leaves:  # one row takes the place of another
            q = -1 - second
            _replace_row(inverse, z, q, k)
            in_rows[R[q]], in_rows[event] = False, True
            R[q], signs[q], y[q] = event, side, side * theta
        elif second < 0:  # a column and a row leave
            q = -1 - second
            in_rows[R[q]] = False
            _shrink(inverse, place, q, k)
            k -= 1
            A[place], slopes[place], w[place] = A[k], slopes[k], w[k]
            R[q], signs[q], y[q] = R[k], signs[k], y[k]
        else:
            _times_column(inverse, columns, second, R, k, u)
            slope = 1.0 if cover[second] > 0.0 else -1.0
            if leaves:  # one column takes the place of another, or its own with the other sign
                _replace_column(inverse, u, place, k)
            else:
                corner = X[event, second]
                for a in range(k):
                    corner -= X[event, A[a]] * u[a]
                if corner == 0.0 or k + 1 >= most:
                    return STALLED, done, level, pivots
                _grow(inverse, u, z, corner, k)
                place = k
                R[k], signs[k], y[k] = event, side, side * theta
                in_rows[event] = True
                k += 1
            A[place], slopes[place], w[place] = second, slope, 0.0
            in_columns[second] = True
        pivots += 1
        if k == 0:
            return STALLED, done, level, pivots
        if pivots % _REFRESH == 0:
            if not _solve_basis(X, A, R, k, inverse, work):
                return STALLED, done, level, pivots
            _primal(inverse, R, signs, bounds, k, target, level, w)
            _dual(inverse, A, slopes, costs, k, y)
            _combine(X, R, y, k, cover)
            _combine(columns, A, w, k, residual)
            for i in range(m):
                residual[i] = -residual[i]
            residual[target] += 1.0
    return STALLED, done, level, pivots
