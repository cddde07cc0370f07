r"""Nuclear norms of groups of coordinates, their derivatives, and draws from their priors.

Group g is the matrix of ``shapes[g]`` (rows, columns) whose entries, in C order, are the coordinates
``order[start[g]:start[g + 1]]``. Below k is the shorter side of a matrix and n the longer; it is
worked on as (k, n), transposed if need be.

Singular values come from Jacobi rotations of pairs of rows (Hestenes 1958): for the small matrices
that groups are, faster than LAPACK, and accurate for small singular values too.
"""

import math

import numpy as np

from bayesstruct.core.jit import numpy_inner, numpy_kernel

SWEEPS = 50  # of `sweep_singular_values` for a draw, and so many more for every singular value
SWEEPS_VALUE = 5
_LOG_ACCEPTANCE = 5.0  # draws are by rejection where one proposal in exp(5) or more is accepted
_COSINE = 1e-14  # between rows that count as orthogonal, times the root of their length
_ROUNDS = 40  # of rotations at most; some eight are needed
_EPS = float(np.finfo(float).eps)


@numpy_kernel
def nuclear_norms(w, order, start, shapes):
    """Nuclear norms of the groups of each row of ``w``, and their gradients.

    Parameters
    ----------
    w : (m, p) float64 array
        Rows of coordinates.
    order : (p,) int64 array
    start : (groups + 1,) int64 array
    shapes : (groups, 2) int64 array

    Returns
    -------
    norms : (m, groups) array
    gradients : (m, p) array
        U V' of each group, over its singular values that are not zero: the subgradient of least
        Euclidean norm.
    """
    norms, gradients = np.empty((w.shape[0], len(shapes))), np.empty(w.shape)
    squares, blocks, values = _memory(shapes)
    Z, Q = _views(squares, blocks, shapes, 0)
    for r in range(w.shape[0]):
        x, slope = w[r], gradients[r]
        for g in range(len(shapes)):
            rows, columns = shapes[g, 0], shapes[g, 1]
            if min(rows, columns) != Z.shape[0] or max(rows, columns) != Q.shape[1]:
                Z, Q = _views(squares, blocks, shapes, g)
            _gather(x, order, start[g], rows, Q)
            norms[r, g] = _decompose(Q, Z, values)
            _scatter_product(Z, Q, slope, order, start[g], rows)
    return norms, gradients


@numpy_kernel
def nuclear_curvature(w, v, order, start, shapes):
    """Hessian of the sum of the nuclear norms at each row of ``w``, times that row of ``v``.

    Where singular values are zero it is that of the norm on the matrices of the same rank.

    Parameters
    ----------
    w, v : (m, p) float64 array
    order, start, shapes
        As in `nuclear_norms`.

    Returns
    -------
    (m, p) array
    """
    out = np.empty(w.shape)
    squares, blocks, values = _memory(shapes)
    inner, moved = np.empty_like(squares), np.empty_like(blocks)
    for r in range(w.shape[0]):
        for g in range(len(shapes)):
            Z, Q = _views(squares, blocks, shapes, g)
            A, R = _views(inner, moved, shapes, g)
            _gather(w[r], order, start[g], shapes[g, 0], Q)
            _decompose(Q, Z, values)
            _gather(v[r], order, start[g], shapes[g, 0], R)
            _curve(Z, Q, values, R, A)
            _scatter_product(Z, R, out[r], order, start[g], shapes[g, 0])
    return out


@numpy_kernel
def draw_group_nuclear(rng, rates, order, start, size, shapes):
    r"""Draw matrices from densities proportional to :math:`e^{-\lambda \|W\|_*}`.

    With W = S Q, S positive definite and Q of orthonormal rows (uniform, and independent of S), the
    density of S is proportional to :math:`\det(S)^{n-k} e^{-\lambda \mathrm{tr} S} \prod_{i<j}
    (s_i + s_j)` in its eigenvalues s: a Wishart density of 2 n - k + 1 degrees of freedom times a
    product that is largest, given the trace, at equal eigenvalues. So a Wishart matrix is drawn and
    accepted with the probability of the product over its bound; for k at most 2 the product is
    constant. The norm, which is the trace, is Gamma(k n) and independent of the rest.

    Where acceptance is expected to be rarer than one in 150 (k above 7, unless n is large too), the
    singular values are those of such a Wishart matrix after ``SWEEPS + SWEEPS_VALUE * k`` of
    `sweep_singular_values`.

    Parameters
    ----------
    rng : numpy.random.Generator
    rates : (groups,) float64 array
    order, start, shapes
        As in `nuclear_norms`.
    size : int
        Number of coordinates.

    Returns
    -------
    (size,) array
    """
    w = np.zeros(size)
    squares, blocks, values = _memory(shapes)
    triangles = np.empty_like(squares)
    for g in range(len(shapes)):
        F, Q = _views(squares, blocks, shapes, g)
        k, n = Q.shape
        norm = _draw_left(rng, n, F, triangles[: k * k].reshape(k, k), values[:k])
        factor = rng.standard_gamma(float(k * n)) / (rates[g] * norm)
        for i in range(k):
            for j in range(k):
                F[i, j] *= factor
        _draw_orthonormal(rng, Q)
        _scatter_product(F, Q, w, order, start[g], shapes[g, 0])
    return w


@numpy_kernel
def sweep_singular_values(rng, s, n, sweeps):
    r"""Slice sampling of the singular values of a k x n matrix with density :math:`e^{-\|W\|_*}`.

    Their density, :math:`\prod_{i<j} |s_i^2 - s_j^2| \prod_i s_i^{n-k} e^{-s_i}`, is log-concave in
    each between its neighbours. Each sweep also replaces the norm, Gamma(k n), by an independent one.

    Parameters
    ----------
    rng : numpy.random.Generator
    s : (k,) float64 array
        Positive and decreasing; updated in place.
    n : int
    sweeps : int
    """
    k = len(s)
    for _ in range(sweeps):
        norm = 0.0
        for i in range(k):
            norm += s[i]
        factor = rng.standard_gamma(float(k * n)) / norm
        for i in range(k):
            s[i] *= factor
        for i in range(k):
            _slice_singular_value(rng, s, i, n - k)


@numpy_inner
def _slice_singular_value(rng, s, i, power):
    level = _log_density(s, i, s[i], power) - rng.standard_exponential()
    low = s[i + 1] if i + 1 < len(s) else 0.0
    if i > 0:
        high = s[i - 1]
    else:  # step out until beyond the slice, an interval
        high = s[0] + 1.0
        while _log_density(s, 0, high, power) > level:
            high += high - s[0]
    while True:
        x = low + (high - low) * rng.random()
        if _log_density(s, i, x, power) >= level:
            s[i] = x
            return
        if x < s[i]:
            low = x
        else:
            high = x


@numpy_inner
def _log_density(s, i, x, power):
    """Log density of singular value i at x given the others."""
    total = power * math.log(x) - x if power > 0 else -x
    for j in range(len(s)):
        if j != i:
            total += math.log(abs(x - s[j]) * (x + s[j]))
    return total


@numpy_inner
def _draw_left(rng, n, F, L, s):
    """Draw F with F' Q of the prior's direction for uniform orthonormal rows Q; return the norm.

    L and s are memory.
    """
    k = len(s)
    dof = 2 * n - k + 1
    # Minus the log of the expected acceptance, to second order in the spread of the eigenvalues.
    if (k - 2) * (k - 1) * (k + 2) <= 8.0 * _LOG_ACCEPTANCE * dof:
        while True:
            trace = _draw_wishart(rng, dof, F, L)
            if k <= 2 or _accept(rng, L, trace):
                return trace
    _draw_wishart(rng, dof, F, L)
    _orthogonalise(L, _no_columns(L))
    for i in range(k):
        _insert(s, i, _inner(L, i, L, i))
    sweep_singular_values(rng, s, n, SWEEPS + SWEEPS_VALUE * k)
    _draw_orthonormal(rng, F)
    total = 0.0
    for i in range(k):  # the matrix will be F' Q
        total += s[i]
        for j in range(k):
            F[i, j] *= s[i]
    return total


@numpy_inner
def _accept(rng, L, trace):
    r"""Accept with probability :math:`\prod_{i<j} k (s_i + s_j) / 2 \mathrm{tr}`, given L.

    The squared rows of L are the diagonal of a rotated S: they turn into its eigenvalues s, and the
    product, Schur-concave, decreases with every rotation. Most proposals are refused early.
    """
    k, bound = len(L), rng.random()
    for _ in range(_ROUNDS):
        turned = _turn_pairs(L, _no_columns(L))
        product = 1.0
        for i in range(k - 1):
            for j in range(i + 1, k):
                product *= (_inner(L, i, L, i) + _inner(L, j, L, j)) * (0.5 * k / trace)
        if product < bound:
            return False
        if not turned:
            break
    return True


@numpy_inner
def _insert(s, i, x):
    """Insert x into the i first entries of s, which decrease."""
    while i > 0 and s[i - 1] < x:
        s[i] = s[i - 1]
        i -= 1
    s[i] = x


@numpy_inner
def _no_columns(B):
    return B.reshape(-1)[:0].reshape(len(B), 0)


@numpy_inner
def _draw_wishart(rng, dof, S, L):
    """Draw S = L L' from a Wishart distribution by the factor of Bartlett (1933); return its trace."""
    trace = 0.0
    for i in range(len(L)):
        for j in range(len(L)):
            L[i, j] = rng.standard_normal() if j < i else 0.0
        L[i, i] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (dof - i)))
        for j in range(i + 1):
            S[i, j] = _inner(L, i, L, j)
            S[j, i] = S[i, j]
        trace += S[i, i]
    return trace


@numpy_inner
def _draw_orthonormal(rng, Q):
    """Draw orthonormal rows, uniformly: normal ones, made orthogonal one after the other."""
    k, n = Q.shape
    for i in range(k):
        left = 0.0
        while left == 0.0:
            for c in range(n):
                Q[i, c] = rng.standard_normal()
            for _ in range(2):  # once leaves rounding errors of rows that were nearly dependent
                for j in range(i):
                    along = _inner(Q, i, Q, j)
                    for c in range(n):
                        Q[i, c] -= along * Q[j, c]
            left = math.sqrt(_inner(Q, i, Q, i))
        for c in range(n):
            Q[i, c] /= left


@numpy_inner
def _decompose(B, Z, values):
    """Write B as Z' diag(values) Q, and Q over B; return the sum of the values.

    Rows of Q that belong to singular values of zero are zero.
    """
    k, n = B.shape
    scale = _largest(B)
    divisor = scale if scale > 0.0 else 1.0  # the rows become nan if it is not finite
    for i in range(k):
        for c in range(n):
            B[i, c] /= divisor
        for j in range(k):
            Z[i, j] = 1.0 if i == j else 0.0
    _orthogonalise(B, Z)
    largest, total = 0.0, 0.0
    for i in range(k):
        values[i] = math.sqrt(_inner(B, i, B, i))
        largest = max(largest, values[i])
        total += values[i]
    for i in range(k):
        zero = values[i] <= 8.0 * _EPS * n * largest
        inverse = 0.0 if zero else 1.0 / values[i]
        values[i] = 0.0 if zero else values[i] * scale
        for c in range(n):
            B[i, c] *= inverse
    return total * scale if math.isfinite(scale) else scale


@numpy_inner
def _largest(B):
    """Largest absolute value, or nan if one is."""
    largest = 0.0
    for i in range(B.shape[0]):
        for c in range(B.shape[1]):
            size = abs(B[i, c])
            if not size <= largest:  # true for nan
                largest = size
                if math.isnan(size):
                    return size
    return largest


@numpy_inner
def _orthogonalise(B, Z):
    """Rotate pairs of rows of B until all are orthogonal, and those of Z with them."""
    for _ in range(_ROUNDS):
        if not _turn_pairs(B, Z):
            return


@numpy_inner
def _turn_pairs(B, Z):
    """Rotate each pair of rows so that it is orthogonal; return whether any was not before."""
    k, n = B.shape
    bound, turned = _COSINE * math.sqrt(n), False
    for i in range(k - 1):
        for j in range(i + 1, k):
            first, second, between = 0.0, 0.0, 0.0
            for c in range(n):
                x, y = B[i, c], B[j, c]
                first += x * x
                second += y * y
                between += x * y
            if abs(between) > bound * math.sqrt(first * second):  # false for nan
                half = 0.5 * (second - first) / between
                size = abs(half) + math.sqrt(1.0 + half * half)
                tangent = math.copysign(1.0, half) / size
                cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
                _rotate(B, i, j, cosine, cosine * tangent)
                _rotate(Z, i, j, cosine, cosine * tangent)
                turned = True
    return turned


@numpy_inner
def _rotate(B, i, j, cosine, sine):
    for c in range(B.shape[1]):
        x, y = B[i, c], B[j, c]
        B[i, c] = cosine * x - sine * y
        B[j, c] = sine * x + cosine * y


@numpy_inner
def _curve(Z, Q, values, R, A):
    """Turn R into the R for which Z' R is the Hessian at Z' diag(values) Q times the old R.

    The derivative of the polar factor Z' Q: with A = Z R Q', rows of Q turn by the antisymmetric
    (A_ij - A_ji) / (s_i + s_j), and the part of Z R outside of the span of Q is divided by s_i.
    """
    k, n = R.shape
    for c in range(n):
        for i in range(k):
            A[i, 0] = 0.0
            for a in range(k):
                A[i, 0] += Z[i, a] * R[a, c]
        for i in range(k):
            R[i, c] = A[i, 0]
    for i in range(k):
        for j in range(k):
            A[i, j] = _inner(R, i, Q, j)
    for i in range(k):
        inverse = 1.0 / values[i] if values[i] > 0.0 else 0.0
        for c in range(n):
            outside, turned = R[i, c], 0.0
            for j in range(k):
                outside -= A[i, j] * Q[j, c]
                if values[i] + values[j] > 0.0:
                    turned += (A[i, j] - A[j, i]) / (values[i] + values[j]) * Q[j, c]
            R[i, c] = inverse * outside + turned


@numpy_inner
def _memory(shapes):
    """Memory for the (k, k), (k, n) and (k,) arrays of any group."""
    square, block, side = 1, 1, 1
    for g in range(len(shapes)):
        k, n = min(shapes[g, 0], shapes[g, 1]), max(shapes[g, 0], shapes[g, 1])
        side, square, block = max(side, k), max(square, k * k), max(block, k * n)
    return np.empty(square), np.empty(block), np.empty(side)


@numpy_inner
def _views(squares, blocks, shapes, g):
    """Parts of the memory as the (k, k) and (k, n) arrays of group g."""
    k, n = min(shapes[g, 0], shapes[g, 1]), max(shapes[g, 0], shapes[g, 1])
    return squares[: k * k].reshape(k, k), blocks[: k * n].reshape(k, n)


@numpy_inner
def _steps(B, rows):
    """Distances in C order of a matrix with ``rows`` between rows, and columns, of its B (k, n)."""
    k, n = B.shape
    return (n, 1) if rows == k else (1, k)


@numpy_inner
def _gather(x, order, first, rows, B):
    """Read a group of the vector ``x`` into B (k, n)."""
    across, along = _steps(B, rows)
    for i in range(B.shape[0]):
        for c in range(B.shape[1]):
            B[i, c] = x[order[first + i * across + c * along]]


@numpy_inner
def _scatter_product(Z, Q, x, order, first, rows):
    """Write Z' Q, (k, n), into a group of the vector ``x``."""
    across, along = _steps(Q, rows)
    for i in range(Q.shape[0]):
        for c in range(Q.shape[1]):
            total = 0.0
            for b in range(Z.shape[0]):
                total += Z[b, i] * Q[b, c]
            x[order[first + i * across + c * along]] = total


@numpy_inner
def _inner(A, i, B, j):
    """Inner product of row i of A and row j of B; slices would take long to compile."""
    total = 0.0
    for c in range(A.shape[1]):
        total += A[i, c] * B[j, c]
    return total
