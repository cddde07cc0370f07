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

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import vector_inner, vector_kernel

__all__ = ["DONE", "INFEASIBLE", "STALLED", "column_path"]

#: All penalties were reached; no vector meets the constraints below the last one; rounding errors ended the path.
DONE, INFEASIBLE, STALLED = 0, 1, 2
_TIE = 1e-9
_SMALL = 1e-11  # a rate of change that counts as zero, relative to the largest of its kind
_REFRESH = 40  # changes of the basis between two inversions from scratch


class _Basis(NamedTuple):
    """Which k rows and columns are in the basis, and where w and y are; the first k elements of most arrays count."""

    columns: np.ndarray
    rows: np.ndarray
    slopes: np.ndarray  # signs of w
    signs: np.ndarray  # signs of y, and of the residuals of the rows
    w: np.ndarray
    y: np.ndarray
    in_columns: np.ndarray
    in_rows: np.ndarray
    residual: np.ndarray  # e - X w, all rows
    cover: np.ndarray  # X'y, all columns
    inverse: np.ndarray  # its rows are columns of the basis
    work: np.ndarray


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
def _invert(X, basis, k):
    """Invert the basis from scratch; False if it is singular."""
    for r in range(k):
        for a in range(k):
            basis.work[r, a] = X[basis.rows[r], basis.columns[a]]
    return _inverse(basis.work, basis.inverse, k)


@vector_inner
def _solve(basis, k, target, level, bounds, costs, w, y):
    """Elements of w at one penalty, and those of y."""
    for r in range(k):
        y[r] = 0.0
    for a in range(k):
        total, slope = 0.0, basis.slopes[a] * costs[basis.columns[a]]
        for r in range(k):
            right = -level * basis.signs[r] * bounds[basis.rows[r]]
            if basis.rows[r] == target:
                right += 1.0
            total += basis.inverse[a, r] * right
            y[r] += slope * basis.inverse[a, r]
        w[a] = total


@vector_inner
def _refine(X, basis, k, target, level, w, y):
    """Correct the solutions of the equations of the basis by what rounding errors of its inverse left."""
    wrong = basis.work[0]
    for r in range(k):
        wrong[r] = -level * basis.signs[r]
        if basis.rows[r] == target:
            wrong[r] += 1.0
        for a in range(k):
            wrong[r] -= X[basis.rows[r], basis.columns[a]] * w[a]
    for a in range(k):
        for r in range(k):
            w[a] += basis.inverse[a, r] * wrong[r]
    for a in range(k):
        wrong[a] = basis.slopes[a]
        for r in range(k):
            wrong[a] -= X[basis.rows[r], basis.columns[a]] * y[r]
    for a in range(k):
        for r in range(k):
            y[r] += basis.inverse[a, r] * wrong[a]


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
def _add_magnitudes(matrix, index, factors, k, out):
    """Add the magnitudes of the terms that `_combine` sums."""
    for a in range(k):
        f, row = abs(factors[a]), index[a]
        for i in range(out.shape[0]):
            out[i] += f * abs(matrix[row, i])


@vector_inner
def _first_primal(basis, k, level, speed, drift, bounds):
    """How far the penalty can fall, and the column (negative, -1 - place) or row that ends it."""
    step, event, largest = np.inf, 0, 0.0
    for a in range(k):
        largest = max(largest, abs(speed[a]))
    for a in range(k):
        rate = -basis.slopes[a] * speed[a]
        if rate > _SMALL * largest:
            t = max(basis.slopes[a] * basis.w[a], 0.0) / rate
            if t < step:
                step, event = t, -1 - a
    for i in range(drift.shape[0]):
        if not basis.in_rows[i]:
            for side in (-1.0, 1.0):
                rate = bounds[i] - side * drift[i]
                if rate > _SMALL:
                    t = max(level * bounds[i] - side * basis.residual[i], 0.0) / rate
                    if t < step:
                        step, event = t, i
    return step, event


@vector_inner
def _first_dual(basis, k, turn, shift, mass, costs):
    """How far y can move, and the row (negative, -1 - place) or column that ends it; `mass` has what `shift` is the sum of."""
    step, event, largest = np.inf, 0, 0.0
    for r in range(k):
        largest = max(largest, abs(turn[r]))
    for r in range(k):
        rate = -basis.signs[r] * turn[r]
        if rate > _SMALL * largest:
            t = max(basis.signs[r] * basis.y[r], 0.0) / rate
            if t < step:
                step, event = t, -1 - r
    for j in range(shift.shape[0]):
        if not basis.in_columns[j] and abs(shift[j]) > _SMALL * mass[j]:
            side = 1.0 if shift[j] > 0.0 else -1.0
            t = max(costs[j] - side * basis.cover[j], 0.0) / abs(shift[j])
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
    """Multiply a row by the inverse of the basis."""
    for r in range(k):
        z[r] = 0.0
    for a in range(k):
        x = X[i, A[a]]
        for r in range(k):
            z[r] += x * inverse[a, r]


@vector_inner
def _empty(m, n):
    """Return an empty basis."""
    size = min(m, n) + 1
    return _Basis(
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros(n, np.bool_),
        np.zeros(m, np.bool_),
        np.zeros(m),
        np.zeros(n),
        np.zeros((size, size)),
        np.zeros((size, size)),
    )


@vector_inner
def _begin(X, target, costs, basis):
    """First basis, at the penalty 1; False if no column reaches the target."""
    first, theta = -1, np.inf
    for j in range(X.shape[1]):
        x = abs(X[target, j])
        if x > 0.0 and costs[j] / x < theta:
            first, theta = j, costs[j] / x
    if first < 0:
        return False
    pivot = X[target, first]
    basis.columns[0], basis.rows[0] = first, target
    basis.slopes[0], basis.signs[0], basis.y[0] = (1.0 if pivot > 0.0 else -1.0), 1.0, theta
    basis.inverse[0, 0] = 1.0 / pivot
    basis.in_rows[target], basis.in_columns[first] = True, True
    basis.residual[target] = 1.0
    for j in range(X.shape[1]):
        basis.cover[j] = theta * X[target, j]
    return True


@vector_inner
def _write(X, basis, k, target, penalty, weights, duals, work):
    """Solution of the basis at a penalty, without the perturbations; False if the basis is singular."""
    if not _invert(X, basis, k):
        return False
    ones = np.ones(max(weights.shape[0], duals.shape[0]))
    _solve(basis, k, target, penalty, ones, ones, work[0], work[1])
    _refine(X, basis, k, target, penalty, work[0], work[1])
    for a in range(k):
        weights[basis.columns[a]] = work[0, a]
    for r in range(k):
        duals[basis.rows[r]] = work[1, r]
    return True


@vector_inner
def _write_ray(basis, k, event, turn, duals):
    """Direction in which y may go for ever."""
    for r in range(k):
        duals[basis.rows[r]] = turn[r]
    if event >= 0:
        duals[event] = 1.0 if basis.residual[event] > 0.0 else -1.0


@vector_inner
def _rates(columns, basis, k, bounds, speed, drift):
    """Rates of change of w, and of -X w, as the penalty falls."""
    for a in range(k):
        total = 0.0
        for r in range(k):
            total += basis.inverse[a, r] * basis.signs[r] * bounds[basis.rows[r]]
        speed[a] = total
    _combine(columns, basis.columns, speed, k, drift)


@vector_inner
def _fall(basis, k, step, level, speed, drift, bounds):
    """Move w along with the penalty."""
    for a in range(k):
        basis.w[a] += step * speed[a]
    for i in range(drift.shape[0]):
        basis.residual[i] -= step * drift[i]
    for r in range(k):
        basis.residual[basis.rows[r]] = level * basis.signs[r] * bounds[basis.rows[r]]


@vector_inner
def _direction(X, basis, k, event, turn, shift, mass, z):
    """Direction of y, and the sign of the row that joins, when a row joins or a column leaves."""
    for j in range(X.shape[1]):
        mass[j] = 0.0
    if event < 0:
        place = -1 - event
        for r in range(k):
            turn[r] = -basis.slopes[place] * basis.inverse[place, r]
        _combine(X, basis.rows, turn, k, shift)
        _add_magnitudes(X, basis.rows, turn, k, mass)
        return 1.0
    side = 1.0 if basis.residual[event] > 0.0 else -1.0
    _row_times(basis.inverse, X, event, basis.columns, k, z)
    for r in range(k):
        turn[r] = -side * z[r]
    _combine(X, basis.rows, turn, k, shift)
    _add_magnitudes(X, basis.rows, turn, k, mass)
    for j in range(X.shape[1]):
        shift[j] += side * X[event, j]
        mass[j] += abs(X[event, j])
    return side


@vector_inner
def _row_for_row(basis, k, q, event, side, theta, z):
    """Let one row take the place of another."""
    _replace_row(basis.inverse, z, q, k)
    basis.in_rows[basis.rows[q]] = False
    basis.in_rows[event] = True
    basis.rows[q], basis.signs[q], basis.y[q] = event, side, side * theta


@vector_inner
def _drop(basis, k, place, q):
    """Let a column and a row leave."""
    basis.in_rows[basis.rows[q]] = False
    _shrink(basis.inverse, place, q, k)
    k -= 1
    basis.columns[place], basis.slopes[place] = basis.columns[k], basis.slopes[k]
    basis.w[place] = basis.w[k]
    basis.rows[q], basis.signs[q], basis.y[q] = basis.rows[k], basis.signs[k], basis.y[k]
    return k


@vector_inner
def _put_column(basis, place, column):
    """Put a column, whose element is zero so far, into a place of the basis."""
    basis.columns[place], basis.w[place] = column, 0.0
    basis.slopes[place] = 1.0 if basis.cover[column] > 0.0 else -1.0
    basis.in_columns[column] = True


@vector_inner
def _add(X, basis, k, event, column, side, theta, u, z):
    """Let a row and a column join; 0 if the basis would be singular."""
    corner = X[event, column]
    for a in range(k):
        corner -= X[event, basis.columns[a]] * u[a]
    if corner == 0.0 or k + 1 >= basis.w.shape[0]:
        return 0
    _grow(basis.inverse, u, z, corner, k)
    basis.rows[k], basis.signs[k], basis.y[k] = event, side, side * theta
    basis.in_rows[event] = True
    _put_column(basis, k, column)
    return k + 1


@vector_inner
def _exchange(X, columns, basis, k, event, second, side, theta, u, z):
    """Change the basis; the number of its rows afterwards, 0 if it fails."""
    if second < 0:
        if event < 0:
            return _drop(basis, k, -1 - event, -1 - second)
        _row_for_row(basis, k, -1 - second, event, side, theta, z)
        return k
    _times_column(basis.inverse, columns, second, basis.rows, k, u)
    if event >= 0:
        return _add(X, basis, k, event, second, side, theta, u, z)
    _replace_column(basis.inverse, u, -1 - event, k)  # by another, or itself with the other sign
    _put_column(basis, -1 - event, second)
    return k


@vector_inner
def _renew(X, columns, basis, k, target, level, bounds, costs):
    """Compute the state of a basis from scratch; False if it is singular."""
    if not _invert(X, basis, k):
        return False
    _solve(basis, k, target, level, bounds, costs, basis.w, basis.y)
    _combine(X, basis.rows, basis.y, k, basis.cover)
    _combine(columns, basis.columns, basis.w, k, basis.residual)
    for i in range(X.shape[0]):
        basis.residual[i] = -basis.residual[i]
    basis.residual[target] += 1.0
    return True


@vector_inner
def _perturbed(size, factor):
    """Ones, raised by small different fractions."""
    values = np.ones(size)
    for i in range(size):
        values[i] += _TIE * ((i * factor) % 1.0)
    return values


@vector_inner
def _next_basis(X, columns, basis, k, event, costs, turn, shift, mass, work):
    """Move y after an event and change the basis: the number of its rows; 0 if that fails, -1 if nothing stops y."""
    if event < 0:
        basis.w[-1 - event] = 0.0
        basis.in_columns[basis.columns[-1 - event]] = False
    side = _direction(X, basis, k, event, turn, shift, mass, work[1])
    theta, second = _first_dual(basis, k, turn, shift, mass, costs)
    if not np.isfinite(theta):
        return -1
    for r in range(k):
        basis.y[r] += theta * turn[r]
    for j in range(shift.shape[0]):
        basis.cover[j] += theta * shift[j]
    return _exchange(X, columns, basis, k, event, second, side, theta, work[0], work[1])


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
        Zeros; receives y, and under `INFEASIBLE` after the last one a direction d with :math:`X'd = 0` that shows it.

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
    bounds, costs = _perturbed(m, 0.6180339887498949), _perturbed(n, 0.7548776662466927)
    bounds[target] = 1.0
    basis = _empty(m, n)
    size = basis.w.shape[0]
    speed, turn, work = np.zeros(size), np.zeros(size), np.zeros((2, size))
    drift, shift, mass = np.zeros(m), np.zeros(n), np.zeros(n)
    if not _begin(X, target, costs, basis):
        return INFEASIBLE, 0, 1.0, 0
    k, level, done = 1, 1.0, 0
    for pivots in range(50 * (m + n) + 1000):
        if pivots % _REFRESH == _REFRESH - 1 and not _renew(
            X, columns, basis, k, target, level, bounds, costs
        ):
            return STALLED, done, level, pivots
        _rates(columns, basis, k, bounds, speed, drift)
        step, event = _first_primal(basis, k, level, speed, drift, bounds)
        while done < penalties.shape[0] and level - step <= penalties[done]:
            if not _write(X, basis, k, target, penalties[done], weights[done], duals[done], work):
                return STALLED, done, level, pivots
            done += 1
        if done == penalties.shape[0]:
            return DONE, done, penalties[done - 1], pivots
        level -= step
        _fall(basis, k, step, level, speed, drift, bounds)
        after = _next_basis(X, columns, basis, k, event, costs, turn, shift, mass, work)
        if after < 0:
            _write_ray(basis, k, event, turn, duals[done])
        if after <= 0:
            return (INFEASIBLE if after < 0 else STALLED), done, level, pivots
        k = after
    return STALLED, done, level, pivots
