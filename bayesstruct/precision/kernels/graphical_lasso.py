r"""Inner loops of the graphical lasso and of its derivative.

The objective, minimised over positive-definite :math:`K`, is

.. math:: f(K) = -\log\det K + \operatorname{tr}(SK) + \sum_{ij} \lambda_{ij} |K_{ij}|

for one connected component, rescaled so that :math:`S_{ii} + \lambda_{ii} = 1`. The algorithm that
strings these loops together is in `bayesstruct.solvers.graphical_lasso`; it is kept in Python
because each Numba function compiles everything it calls again.

Arrays are C-contiguous float64 unless said otherwise. The *free set* is the set of entries with
:math:`K_{ij} \ne 0` or :math:`|S_{ij} - W_{ij}| > \lambda_{ij}`, :math:`W = K^{-1}`, and the
diagonal; it is stored by rows (both triangles) as ``rows`` (offsets), ``columns`` and ``values``
(S, lam, W and K there).
"""

import numpy as np

from bayesstruct.core.arrays import copy_matrix, copy_vector
from bayesstruct.core.jit import vector_inner, vector_kernel

# Above one free entry in this many, matrix products beat sparse loops.
_DENSE = 8
_MAX_SWEEPS = 50


@vector_inner
def _factor_panel(P, m, inverse):
    """Overwrite the lower triangle of ``P[:m, :m]`` by its Cholesky factor; False if not PD."""
    for j in range(m):
        for i in range(j, m):
            s = P[i, j]
            for k in range(j):
                s -= P[i, k] * P[j, k]
            if i > j:
                P[i, j] = s / P[j, j]
            elif s > 0.0:
                P[j, j] = np.sqrt(s)
            else:
                return False
    for i in range(m):
        for j in range(m):
            inverse[i, j] = 0.0
        for k in range(i):
            for j in range(k + 1):
                inverse[i, j] += P[i, k] * inverse[k, j]
        scale = 1.0 / P[i, i]
        for j in range(i):
            inverse[i, j] *= -scale
        inverse[i, i] = scale
    return True


@vector_kernel
def factor(K, L, blocks):
    """Blocked Cholesky factor of ``K`` into the lower triangle of ``L``.

    Written on top of matrix products so that a failure is a flag (an exception would leak inside
    Numba) and `invert` can follow at two thirds of the time of LAPACK's ``potri``.

    Returns
    -------
    positive : bool
    logdet : float
    """
    p = K.shape[0]
    size = blocks.shape[1]
    logdet = 0.0
    for b in range(blocks.shape[0]):
        lo = b * size
        hi = min(p, lo + size)
        m = hi - lo
        P = K[lo:, lo:hi].copy()
        if lo > 0:
            left = L[lo:, :lo].copy()
            P -= np.dot(left, left[:m].T)
        if not _factor_panel(P, m, blocks[b]):
            return False, -np.inf
        for i in range(m):
            logdet += 2.0 * np.log(P[i, i])
            for j in range(i + 1):
                L[lo + i, lo + j] = P[i, j]
        if hi < p:
            rest = np.dot(P[m:], np.ascontiguousarray(blocks[b, :m, :m]).T)
            copy_matrix(L[hi:, lo:hi], rest)
    return np.isfinite(logdet), logdet


@vector_kernel
def invert(L, blocks, W):
    """Inverse of ``L L'`` into ``W``, growing from the last diagonal block to the first."""
    p = L.shape[0]
    size = blocks.shape[1]
    for b in range(blocks.shape[0] - 1, -1, -1):
        lo = b * size
        hi = min(p, lo + size)
        m = hi - lo
        D = np.ascontiguousarray(blocks[b, :m, :m])
        corner = np.dot(D.T, D)
        if hi < p:
            Y = np.dot(L[hi:, lo:hi].copy(), D)
            X = np.dot(W[hi:, hi:].copy(), Y)
            corner += np.dot(Y.T, X)
            for i in range(p - hi):
                for j in range(m):
                    W[hi + i, lo + j] = -X[i, j]
                    W[lo + j, hi + i] = -X[i, j]
        for i in range(m):
            for j in range(i + 1):
                W[lo + i, lo + j] = corner[i, j]
                W[lo + j, lo + i] = corner[i, j]


@vector_kernel
def asymmetry(S):
    """Return whether all entries are finite, the largest of them and the largest asymmetry."""
    finite = True
    largest = 0.0
    difference = 0.0
    for i in range(S.shape[0]):
        for j in range(i + 1):
            size = max(abs(S[i, j]), abs(S[j, i]))
            finite &= abs(S[i, j]) < np.inf and abs(S[j, i]) < np.inf
            largest = max(largest, size)
            difference = max(difference, abs(S[i, j] - S[j, i]))
    return finite, largest, difference


@vector_kernel
def components(S, lam):
    """Label the connected components of ``|S_ij| > lam_ij``; return their number too."""
    p = S.shape[0]
    labels = np.full(p, -1)
    queue = np.empty(p, np.int64)
    count = 0
    for root in range(p):
        if labels[root] >= 0:
            continue
        labels[root] = count
        queue[0] = root
        head, end = 0, 1
        while head < end:
            i = queue[head]
            head += 1
            for j in range(p):
                if labels[j] < 0 and abs(S[i, j]) > lam[i, j]:
                    labels[j] = count
                    queue[end] = j
                    end += 1
        count += 1
    return labels, count


@vector_inner
def _soft(z, threshold):
    if z > threshold:
        return z - threshold
    if z < -threshold:
        return z + threshold
    return 0.0


@vector_inner
def _gather(j, S, lam, W, beta, r, active):
    """Compute ``r = W beta`` and list the active set of column ``j``; return its size."""
    p = S.shape[0]
    r[:] = 0.0
    for k in range(p):
        if beta[k] != 0.0:
            b = np.float32(beta[k])
            for l in range(p):
                r[l] += b * W[k, l]
    count = 0
    for k in range(p):
        if k != j and (beta[k] != 0.0 or abs(S[j, k] - r[k]) > lam[j, k]):
            active[count] = k
            count += 1
    return count


@vector_inner
def _regress(j, S, lam, W, beta, r, active, floor):
    """Coordinate sweeps of the lasso of variable ``j`` on the others; keeps ``r = W beta``.

    Two sweeps, or as many as bring the residual variance above ``floor``: it is at the exact
    solution, and ``W`` would stop being positive definite.

    Returns
    -------
    change : float
        Summed squares of the changes in ``beta``.
    variance : float
        Residual variance ``1 - beta' W beta``.
    """
    p = S.shape[0]
    count = _gather(j, S, lam, W, beta, r, active)
    change = 0.0
    variance = 1.0
    for sweep in range(_MAX_SWEEPS):
        for q in range(count):
            k = active[q]
            new = _soft(beta[k] + (S[j, k] - r[k]), lam[j, k])
            if new != beta[k]:
                change += (new - beta[k]) ** 2
                step = np.float32(new - beta[k])
                beta[k] = new
                for l in range(p):
                    r[l] += step * W[k, l]
        if sweep > 0:
            variance = 1.0
            for q in range(count):
                variance -= beta[active[q]] * r[active[q]]
            if variance > floor:
                break
    return change, variance


@vector_inner
def _largest_shrinkage(S, lam):
    """Largest ``t`` for which ``(1 - t) S`` off the diagonal stays within ``lam`` of ``S``."""
    p = S.shape[0]
    shrinkage = 1.0
    for i in range(p):
        for j in range(p):
            if i != j and lam[i, j] < shrinkage * abs(S[i, j]):
                shrinkage = lam[i, j] / abs(S[i, j])
    return shrinkage


@vector_kernel
def shrink(S, lam, W):
    """Fill single-precision ``W`` with a positive-definite dual point; return its shrinkage."""
    p = S.shape[0]
    shrinkage = _largest_shrinkage(S, lam)
    for i in range(p):
        for j in range(p):
            W[i, j] = np.float32((1.0 - shrinkage) * S[i, j])
        W[i, i] = np.float32(1.0)
    return shrinkage


@vector_kernel
def block_ascent(S, lam, beta, W, variances, floor, target, passes):
    """Block-coordinate ascent on the dual, one lasso regression for each column in turn.

    Parameters
    ----------
    S, lam : (p, p) array
    beta : (p, p) array
        Row j: coefficients of variable j on the others. Updated.
    W : (p, p) array of float32
        Dual point. Updated; single precision will do, as the result is only a start.
    variances : (p,) array
        Residual variances. Updated.
    floor : float
        Smallest residual variance to accept.
    target : float
        Stop when the estimated norm of the residual is below this, or stalls.
    passes : int
        Most passes.

    Returns
    -------
    bool
        False when a column could not be solved well enough to go on.
    """
    p = S.shape[0]
    r = np.empty(p, np.float32)
    active = np.empty(p, np.int64)
    previous = np.inf
    for iteration in range(passes):
        total = 0.0
        for j in range(p):
            change, variance = _regress(j, S, lam, W, beta[j], r, active, floor)
            if not variance > 0.5 * floor:
                return False
            for k in range(p):
                if k != j:
                    W[j, k] = r[k]
                    W[k, j] = r[k]
            variances[j] = variance
            total += 2.0 * change / variance
        norm = np.sqrt(total)
        if norm < target or (iteration > 3 and norm > 0.95 * previous):
            break
        previous = norm
    return True


@vector_kernel
def assemble(beta, variances, K):
    """Symmetric precision matrix of all the regressions."""
    for j in range(K.shape[0]):
        K[j, j] = 1.0 / variances[j]
        for k in range(j):
            mean = beta[j, k] / variances[j] + beta[k, j] / variances[k]
            K[j, k] = 0.0 - 0.5 * mean
            K[k, j] = K[j, k]


@vector_kernel
def free_set(S, lam, W, K):
    """Rows of the free set (both triangles, diagonal included) in compressed form."""
    p = S.shape[0]
    rows = np.empty(p + 1, np.int64)
    rows[0] = 0
    for i in range(p):
        count = 0
        for j in range(p):
            count += (K[i, j] != 0.0) | (abs(S[i, j] - W[i, j]) > lam[i, j]) | (i == j)
        rows[i + 1] = rows[i] + count
    columns = np.empty(rows[p], np.int32)
    values = np.empty((4, rows[p]))
    for i in range(p):
        n = rows[i]
        for j in range(p):
            if K[i, j] != 0.0 or abs(S[i, j] - W[i, j]) > lam[i, j] or i == j:
                columns[n] = j
                values[0, n] = S[i, j]
                values[1, n] = lam[i, j]
                values[2, n] = W[i, j]
                values[3, n] = K[i, j]
                n += 1
    return rows, columns, values


@vector_inner
def _scatter(rows, columns, X):
    """Dense form of ``X`` stored on the free set."""
    p = rows.shape[0] - 1
    dense = np.zeros((p, p))
    for i in range(p):
        for n in range(rows[i], rows[i + 1]):
            dense[i, columns[n]] = X[n]
    return dense


@vector_inner
def _sparse_sandwich(rows, columns, K, X, out):
    """``K X K`` on the free set, for ``K`` and ``X`` stored on it."""
    p = rows.shape[0] - 1
    if _DENSE * X.shape[0] > p * p:
        full = np.dot(
            np.dot(_scatter(rows, columns, K), _scatter(rows, columns, X)),
            _scatter(rows, columns, K),
        )
        for i in range(p):
            for n in range(rows[i], rows[i + 1]):
                out[n] = full[i, columns[n]]
        return
    row = np.empty(p)
    for i in range(p):
        row[:] = 0.0
        for n in range(rows[i], rows[i + 1]):
            if K[n] != 0.0:
                k = columns[n]
                for m in range(rows[k], rows[k + 1]):
                    row[columns[m]] += K[n] * X[m]
        for n in range(rows[i], rows[i + 1]):
            k = columns[n]
            inner = 0.0
            for m in range(rows[k], rows[k + 1]):
                inner += row[columns[m]] * K[m]
            out[n] = inner


@vector_inner
def _times_dense(rows, columns, X, W, U):
    """``U = X W`` for ``X`` on the free set."""
    p = W.shape[0]
    U[:] = 0.0
    for i in range(p):
        for n in range(rows[i], rows[i + 1]):
            x = W.dtype.type(X[n])
            k = columns[n]
            if x != 0.0:
                for l in range(p):
                    U[i, l] += x * W[k, l]


@vector_inner
def _dense_sandwich(rows, columns, W, X, U, out):
    """``W X W`` on the free set, for ``X`` stored on it; ``U`` is scratch."""
    p = W.shape[0]
    if _DENSE * X.shape[0] > p * p:
        U[:] = 0.0
        for i in range(p):
            for n in range(rows[i], rows[i + 1]):
                U[i, columns[n]] = W.dtype.type(X[n])
        product = np.dot(np.dot(W, U), W)
        for i in range(p):
            for n in range(rows[i], rows[i + 1]):
                out[n] = product[i, columns[n]]
        return
    _times_dense(rows, columns, X, W, U)
    column = np.empty(p, W.dtype)
    for i in range(p):
        for k in range(p):
            column[k] = U[k, i]
        for n in range(rows[i], rows[i + 1]):
            j = columns[n]
            dot = W.dtype.type(0.0)
            for k in range(p):
                dot += W[j, k] * column[k]
            out[n] = dot


@vector_kernel
def solve_active(rows, columns, K, active, W, U, rhs, tol):
    """Symmetric ``X`` on the active entries with ``(W X W) = rhs`` there.

    Conjugate gradients preconditioned by ``R -> K R K``, the exact inverse if all is active.
    """
    size = rhs.shape[0]
    X = np.zeros(size)
    residual = rhs * active
    first = np.sqrt(np.sum(residual * residual))
    z = np.empty(size)
    image = np.empty(size)
    direction = np.zeros(size)
    rho = 1.0
    for it in range(10 * size):
        norm = np.sqrt(np.sum(residual * residual))
        if not norm > tol * first:
            break
        _sparse_sandwich(rows, columns, K, residual, z)
        z *= active
        new = np.sum(z * residual)
        direction = z + (new / rho) * direction if it > 0 else z.copy()
        rho = new
        _dense_sandwich(rows, columns, W, direction, U, image)
        image *= active
        step = rho / np.sum(direction * image)
        X += step * direction
        residual -= step * image
    return X


@vector_kernel
def residual_norm(rows, columns, values):
    r"""Norm of :math:`F`: ``sqrt(tr(K E K E))``, ``E`` the move from ``W`` to the dual point."""
    S, lam, W, K = values[0], values[1], values[2], values[3]
    E = np.empty(K.shape[0])
    for n in range(K.shape[0]):
        slack = W[n] - S[n]
        if K[n] > 0.0 or (K[n] == 0.0 and slack > lam[n]):
            slack = lam[n]
        elif K[n] < 0.0 or slack < -lam[n]:
            slack = -lam[n]
        E[n] = S[n] + slack - W[n]
    image = np.empty(K.shape[0])
    _sparse_sandwich(rows, columns, K, E, image)
    return np.sqrt(max(np.sum(E * image), 0.0))


@vector_kernel
def sweep(rows, columns, values, D, W, U, column):
    """One coordinate-descent sweep over the Newton model; returns the decrease it achieved.

    ``D`` is the step on the free set (upper triangle) and ``U = D W``; ``W``, ``U`` and the
    scratch ``column`` share one precision.
    """
    p = rows.shape[0] - 1
    decrease = 0.0
    for i in range(p):
        for k in range(p):
            column[k] = U[k, i]
        for n in range(rows[i], rows[i + 1]):
            j = columns[n]
            if j < i:
                continue
            dot = W.dtype.type(0.0)
            for k in range(p):
                dot += W[j, k] * column[k]
            w = values[2, n]
            gradient = values[0, n] - w + np.float64(dot)
            current = values[3, n] + D[n]
            if i == j:
                curvature = w * w
                new = current - (gradient + values[1, n]) / curvature
                weight = 0.5
            else:
                curvature = w * w + np.float64(W[i, i]) * np.float64(W[j, j])
                new = _soft(current - gradient / curvature, values[1, n] / curvature)
                weight = 1.0
            step = new - current
            if step == 0.0:
                continue
            # Not D + step, which would leave rounding where the entry becomes zero.
            D[n] = new - values[3, n]
            decrease += weight * curvature * step * step
            s = W.dtype.type(step)
            for k in range(p):
                U[i, k] += s * W[j, k]
            if i != j:
                for k in range(p):
                    U[j, k] += s * W[i, k]
            column[i] = U[i, i]
            column[j] = U[j, i]
    return decrease


@vector_inner
def _mirror(rows, columns, D):
    """Copy the upper triangle of ``D``, which sweeps keep, to the lower."""
    for i in range(rows.shape[0] - 1):
        for n in range(rows[i], rows[i + 1]):
            j = columns[n]
            if j < i:
                D[n] = D[rows[j] + np.searchsorted(columns[rows[j] : rows[j + 1]], i)]


@vector_inner
def _model_change(values, D, image, trial, trial_image):
    """Newton model at ``trial`` minus at ``D``, for equal signs; ``image`` is ``W D W``.

    Summed from differences: near the solution the model itself is rounded.
    """
    total = 0.0
    for n in range(D.shape[0]):
        slope = values[0, n] - values[2, n] + 0.5 * (image[n] + trial_image[n])
        slope += values[1, n] * np.sign(values[3, n] + D[n])
        total += slope * (trial[n] - D[n])
    return total


@vector_kernel
def accelerate(rows, columns, values, D, W, U):
    """Move ``D`` towards the minimiser of the Newton model with the present signs.

    Entries that would change sign stop at zero; the step is halved until the model decreases.
    Leaves ``U = D W``.
    """
    size = D.shape[0]
    _mirror(rows, columns, D)
    current = values[3] + D
    active = np.empty(size)
    rhs = np.empty(size)
    image = np.empty(size)
    _dense_sandwich(rows, columns, W, D, U, image)
    for n in range(size):
        active[n] = 1.0 if current[n] != 0.0 else 0.0
        rhs[n] = -(values[0, n] - values[2, n] + values[1, n] * np.sign(current[n]) + image[n])
    X = solve_active(rows, columns, values[3], active, W, U, rhs, 1e-3)
    trial = np.empty(size)
    trial_image = np.empty(size)
    step = 1.0
    while step > 1e-3:
        for n in range(size):
            new = current[n] + step * X[n]
            trial[n] = (new if new * current[n] > 0.0 else 0.0) - values[3, n]
        _dense_sandwich(rows, columns, W, trial, U, trial_image)
        if _model_change(values, D, image, trial, trial_image) < 0.0:
            copy_vector(D, trial)
            break
        step *= 0.5
    _times_dense(rows, columns, D, W, U)


@vector_kernel
def move(rows, columns, D, K, step):
    """Add ``step D`` (upper triangle) to ``K``, symmetrically."""
    for i in range(K.shape[0]):
        for n in range(rows[i], rows[i + 1]):
            j = columns[n]
            if j >= i:
                K[i, j] += step * D[n]
                K[j, i] = K[i, j]


@vector_kernel
def penalised_trace(rows, columns, values, K):
    """Return ``tr(S K) + sum lam |K|`` for ``K`` supported on the free set."""
    total = 0.0
    for i in range(K.shape[0]):
        for n in range(rows[i], rows[i + 1]):
            k = K[i, columns[n]]
            total += values[0, n] * k + values[1, n] * abs(k)
    return total


@vector_kernel
def slope(rows, columns, values, D):
    """Decrease promised by a full step to first order (negative)."""
    total = 0.0
    for i in range(rows.shape[0] - 1):
        for n in range(rows[i], rows[i + 1]):
            if columns[n] >= i:
                k = values[3, n]
                slope = (values[0, n] - values[2, n]) * D[n]
                slope += values[1, n] * (abs(k + D[n]) - abs(k))
                total += slope if columns[n] == i else 2.0 * slope
    return total
