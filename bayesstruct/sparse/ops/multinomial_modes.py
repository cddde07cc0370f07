r"""Modes of sparse multinomial regressions, and their derivatives: NumPy in, NumPy out.

.. math::

    \min_{W, b} \; \sum_i \Big( t_i \log \sum_c e^{z_{ic}} - \sum_c y_{ic} z_{ic} \Big)
    + \sum_j \lambda_j \|w_j\|, \qquad z_i = W' x_i + b, \quad t_i = \sum_c y_{ic}

where :math:`w_j`, a row of W, holds the coefficients of predictor j, one for each category, and the
norm sums absolute values or is Euclidean.

The loss does not change when a number is added to all of b or to all of one row. Where the penalty
does not change either, the mode is not unique, and the one of least Euclidean norm is taken:

- intercepts, and rows without a rate, sum to zero;
- a row under a Euclidean norm sums to zero by itself;
- absolute values do not change while half of the row is positive and half is negative, which at the
  mode of an even number of categories happens with positive probability. Such a row sums to zero
  if no coefficient changes its sign on the way, and is moved until one is zero otherwise.

On the support the mode so chosen moves smoothly. Where a row may be shifted without a change of the
objective and sums to zero, the Hessian H is singular along a shift, and so is the constraint's
normal: derivatives take the pseudo-inverse of H.
"""

from dataclasses import dataclass

import numpy as np

from bayesstruct.sparse.ops.sparse import design_cotangent, newton_solve
from bayesstruct.sparse.solvers.groups import GroupProblem
from bayesstruct.sparse.solvers.proximal_newton import Problem, line_search
from bayesstruct.sparse.solvers.quadratic import GramModel

__all__ = ["mode_cotangents", "modes"]

_EXACT = 1e-12  # residual, relative to the largest gradient at zero, at which the mode is final
_GOOD = 1e-8  # at which it is accepted in the end
_FIRST_SIZE = 128
_MAX_NEWTON = 20
_STUCK = 4  # passes over all columns without progress, after which rounding is the limit
_RIDGE = 1e-10  # of the largest curvature: steps do not wander where the objective is flat
_SEPARATED = 1e-9  # curvature of a row below which the unpenalised columns separate the categories


@dataclass(frozen=True, eq=False)
class _Regression:
    """One design and one table of counts; coefficients are flattened row by row.

    Attributes
    ----------
    X : (n, p) numpy.ndarray
        Predictors, and a column of ones if there is an intercept.
    Y : (n, k) numpy.ndarray
        Counts of the categories.
    rates : (p,) numpy.ndarray
        Finite, zero for the intercept.
    grouped : bool
        Whether the norm is Euclidean.
    """

    X: np.ndarray
    Y: np.ndarray
    rates: np.ndarray
    grouped: bool

    @property
    def k(self):
        """Number of categories."""
        return self.Y.shape[1]

    def penalty(self):
        """Return the problem of the rates, with this as its loss."""
        size = self.X.shape[1] * self.k
        if self.grouped:
            start = np.arange(0, size + 1, self.k)
            return GroupProblem(None, self, np.arange(size), start, self.rates)
        up = np.repeat(self.rates, self.k)
        return Problem(None, self, up, up)

    def value(self, z):
        """Negative log-likelihood at linear predictors."""
        from scipy.special import logsumexp

        return float(self.Y.sum(axis=1) @ logsumexp(z, axis=1) - np.vdot(self.Y, z))

    def means(self, z):
        """Probabilities, and expected counts minus counts."""
        from scipy.special import softmax

        P = softmax(z, axis=1)
        return P, self.Y.sum(axis=1, keepdims=True) * P - self.Y

    def hessian(self, P, index):
        """Second derivatives of the loss in some entries of the flat coefficients."""
        H = np.empty((len(index), len(index)))
        trials = self.Y.sum(axis=1)
        at = [np.flatnonzero(index % self.k == c) for c in range(self.k)]
        blocks = [self.X[:, index[places] // self.k] for places in at]
        for c in range(self.k):
            for d in range(c + 1):
                weights = trials * P[:, c] * ((c == d) - P[:, d])
                product = (blocks[c] * weights[:, None]).T @ blocks[d]
                H[np.ix_(at[c], at[d])] = product
                H[np.ix_(at[d], at[c])] = product.T
        return H

    def bend(self, w, index, H):
        """Add the curvature of Euclidean norms of rows that are not zero, in place."""
        if not self.grouped:
            return
        rows = w.reshape(-1, self.k)
        norms = np.linalg.norm(rows, axis=1)
        for j in np.flatnonzero((norms > 0) & (self.rates > 0)):
            at = np.flatnonzero(index // self.k == j)
            e = rows[j] / norms[j]
            H[np.ix_(at, at)] += self.rates[j] / norms[j] * (np.eye(self.k) - np.outer(e, e))

    def support(self, w):
        """Entries that move with the data."""
        rows = w.reshape(-1, self.k)
        inside = rows != 0
        if self.grouped:
            inside = np.repeat(inside.any(axis=1, keepdims=True), self.k, axis=1)
        inside[self.rates == 0] = True
        return np.flatnonzero(inside)

    def loose(self, w):
        """Rows that can be shifted at no cost; all of their entries are in the support."""
        free = self.rates == 0
        return free if self.grouped else free | (w.reshape(-1, self.k) != 0).all(axis=1)

    def stiffen(self, H, index, rows):
        """Make shifts of rows as stiff as the rest, in place."""
        size = np.diagonal(H).mean() if len(H) else 0.0
        for j in np.flatnonzero(rows):
            at = np.flatnonzero(index // self.k == j)
            H[np.ix_(at, at)] += size / self.k


def modes(
    X: np.ndarray, Y: np.ndarray, rates: np.ndarray, intercept: bool, grouped: bool, max_iter: int
) -> tuple[np.ndarray, np.ndarray]:
    """Solve for each table of counts and its rates; NaN where input is invalid.

    Parameters
    ----------
    X : (n, p) numpy.ndarray
    Y : (m, n, k) numpy.ndarray
    rates : (m, p) numpy.ndarray
    intercept, grouped, max_iter
        As in `sparse_multinomial`.

    Returns
    -------
    (m, p, k), (m, k) numpy.ndarray
        Coefficients and intercepts.
    """
    m, n, k = Y.shape
    W, b = np.full((m, X.shape[1], k), np.nan), np.full((m, k), np.nan)
    if 0 in X.shape or 0 in Y.shape or n != len(X) or not np.isfinite(X).all():
        return W, b
    valid = (np.isfinite(Y) & (Y >= 0)).all(axis=(1, 2)) & (rates >= 0).all(axis=1)
    if intercept:
        valid &= (Y.sum(axis=1) > 0).all(axis=1)  # else the constant of that category has no bound
    for i in np.flatnonzero(valid):
        kept = np.flatnonzero(np.isfinite(rates[i]))
        regression = _regression(X[:, kept], Y[i], rates[i, kept], intercept, grouped)
        w = _solve(regression, max_iter)
        if w is not None:
            W[i] = 0.0
            W[i, kept] = w[: len(kept)] + 0.0  # no negative zeros
            b[i] = w[-1] if intercept else 0.0
    return W, b


def _regression(X, Y, rates, intercept, grouped):
    if intercept:
        X, rates = np.column_stack([X, np.ones(len(X))]), np.append(rates, 0.0)
    return _Regression(X, np.ascontiguousarray(Y), rates, grouped)


def _solve(regression, max_iter):
    """Rows of the mode of least norm, or None.

    Proximal Newton steps on working sets, as `bayesstruct.sparse.solvers.proximal_newton.proximal_newton`.
    """
    X, k, penalty = regression.X, regression.k, regression.penalty()
    w = np.zeros(X.shape[1] * k)
    best, least, lowest = w, np.inf, np.inf
    size, stuck, scale = _FIRST_SIZE, 0, None
    for _ in range(max_iter):
        z = X @ w.reshape(-1, k)
        gradient = (X.T @ regression.means(z)[1]).ravel()
        scale = max(np.abs(gradient).max(initial=0.0), 1e-300) if scale is None else scale
        residual, objective = (
            penalty.residual(w, gradient),
            regression.value(z) + penalty.penalty(w),
        )
        stuck = 0 if residual < least or objective < lowest else stuck + 1
        lowest = min(lowest, objective)
        if residual < least:
            best, least = w.copy(), residual
        if least <= _EXACT * scale or stuck >= _STUCK:
            break
        index = penalty.working_set(w, gradient, size)
        size = max(size, np.count_nonzero(w))
        _descend(regression, penalty.restricted(index), index, w, 0.03 * residual)
    if not least <= _GOOD * scale:
        return None
    rows = best.reshape(-1, k)
    return None if _separated(regression, rows) else _least_norm(regression, rows)


def _descend(regression, part, index, w, tol):
    """Proximal Newton steps on some entries, in place."""
    k = regression.k
    rows, place = np.unique(index // k, return_inverse=True)
    inner = _Regression(
        regression.X[:, rows], regression.Y, regression.rates[rows], regression.grouped
    )
    at = place * k + index % k
    v = np.zeros(len(rows) * k)
    z = inner.X @ w.reshape(-1, k)[rows]
    for _ in range(_MAX_NEWTON):
        P, rest = inner.means(z)
        gradient = (inner.X.T @ rest).ravel()[at]
        residual = part.residual(w[index], gradient)
        if residual <= tol:
            return
        H = inner.hessian(P, at)
        H[np.diag_indices(len(at))] += _RIDGE * np.diagonal(H).max()
        inner.stiffen(H, at, inner.rates == 0)
        new = part.minimise(GramModel(H, gradient), w[index], 1e-3 * residual)
        v[at] = new - w[index]
        move = inner.X @ v.reshape(-1, k)
        t, z = line_search(part, w[index], new, z, gradient, move)
        if t == 0.0:
            return
        w[index] = new if t == 1.0 else w[index] + t * v[at]


def _separated(regression, rows):
    """Whether coefficients without a rate diverge: the loss has no curvature left for them."""
    from scipy.linalg import orth

    free = regression.rates == 0
    if not free.any():
        return False
    basis = orth(regression.X[:, free])
    turned = _Regression(basis, regression.Y, np.zeros(basis.shape[1]), False)
    index = np.arange(basis.shape[1] * regression.k)
    H = turned.hessian(turned.means(regression.X @ rows)[0], index)
    turned.stiffen(H, index, turned.rates == 0)
    least = np.linalg.eigvalsh(H)[0]
    return least < _SEPARATED * regression.Y.sum() / len(regression.Y)


def _least_norm(regression, rows):
    """Shift rows, where that is free, to where their norm is least."""
    middle = rows.mean(axis=1)
    if not regression.grouped:
        ordered, half = np.sort(rows, axis=1), (regression.k - 1) // 2
        between = np.clip(middle, ordered[:, half], ordered[:, regression.k // 2])
        middle = np.where(regression.rates == 0, middle, between)
        return rows - middle[:, None]
    return np.where((regression.rates == 0)[:, None], rows - middle[:, None], rows)


def mode_cotangents(
    X: np.ndarray,
    Y: np.ndarray,
    rates: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    W_bar: np.ndarray,
    b_bar: np.ndarray,
    intercept: bool,
    grouped: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Cotangents of designs, counts and rates from those of coefficients and intercepts.

    With :math:`v = H^+ \bar w` on the support, :math:`q_i = V' x_i + v_b`, probabilities
    :math:`\pi_i` and :math:`r_i = t_i \pi_i - y_i`,

    .. math::

        \bar y_i = q_i - (\pi_i' q_i) 1, \qquad
        \bar\lambda_j = -v_j' \nabla \|w_j\|, \qquad
        \bar x_i = -(V r_i + W t_i (\pi_i \circ q_i - \pi_i \pi_i' q_i)).

    Parameters
    ----------
    X, Y, rates, intercept, grouped
        As in `modes`.
    W, W_bar : (m, p, k) numpy.ndarray
    b, b_bar : (m, k) numpy.ndarray

    Returns
    -------
    (n, p), (m, n, k), (m, p) numpy.ndarray
        Of X, Y and the rates.
    """
    m, n, k = Y.shape
    V, rates_bar, Y_bar = np.zeros(W.shape), np.zeros(rates.shape), np.zeros(Y.shape)
    rest, weighted = np.zeros(Y.shape), np.zeros(Y.shape)
    for i in range(m):
        if not np.isfinite(W[i]).all():
            V[i] = rest[i] = rates_bar[i] = Y_bar[i] = np.nan
            continue
        rows, bar = W[i], W_bar[i]
        if intercept:
            rows, bar = np.vstack([rows, b[i]]), np.vstack([bar, b_bar[i]])
        regression = _regression(X, Y[i], rates[i], intercept, grouped)
        P, rest[i] = regression.means(regression.X @ rows)
        v = _implicit(regression, P, rows.ravel(), bar.ravel()).reshape(rows.shape)
        V[i] = v[: X.shape[1]]
        q = regression.X @ v
        along = (P * q).sum(axis=1, keepdims=True)
        Y_bar[i] = q - along
        weighted[i] = Y[i].sum(axis=1, keepdims=True) * P * (q - along)
        rates_bar[i] = -(V[i] * _directions(W[i], rates[i], grouped)).sum(axis=1)
    categories = [np.swapaxes(x, 1, 2).reshape(m * k, -1) for x in (V, W)]
    by_category = [np.swapaxes(x, 1, 2).reshape(m * k, n) for x in (rest, weighted)]
    X_bar = design_cotangent(X, by_category[0], categories[0], by_category[1], categories[1])
    return X_bar, Y_bar, rates_bar


def _implicit(regression, P, w, bar):
    """Pseudo-inverse of the Hessian on the support times a cotangent."""
    index, loose = regression.support(w), regression.loose(w)
    v = np.zeros(len(w))
    g = bar.reshape(-1, regression.k).copy()
    g[loose] -= g[loose].mean(axis=1, keepdims=True)
    g = g.ravel()[index]
    if g.any():
        H = regression.hessian(P, index)
        regression.bend(w, index, H)
        regression.stiffen(H, index, loose)
        v[index] = newton_solve(H, g)
    return v


def _directions(W, rates, grouped):
    """Gradient of the norm of each row, zero where that has none."""
    if grouped:
        norms = np.linalg.norm(W, axis=1, keepdims=True)
        return np.divide(W, norms, out=np.zeros(W.shape), where=norms > 0)
    # A row without a rate has another gauge; its differences move as those of a row of median zero.
    middle = np.where(rates == 0, np.median(W, axis=1), 0.0)
    return np.sign(W - middle[:, None])
