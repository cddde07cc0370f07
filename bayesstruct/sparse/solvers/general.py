r"""Regressions with any loss, under any penalty with a proximal map.

.. math:: \min_{W, b} \; L(X W + 1 b') + \Omega(W)

Quasi-Newton soft-threshold steps see the loss through its value and gradient only, and of the
design the columns of a working set: groups that are in the model, and those that want to enter it
most, which is where the least subgradient is largest. The dual function of the loss and the dual
norm of the penalty, over all columns, certify the result, as in
`bayesstruct.sparse.solvers.proximal_newton`; a loss without one is stopped by its optimality conditions.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesstruct.sparse.penalties.base import Penalty
from bayesstruct.sparse.solvers.designs import Design
from bayesstruct.sparse.solvers.losses import Custom, Loss
from bayesstruct.sparse.solvers.soft_threshold import soft_threshold_steps

__all__ = ["GeneralRegression", "GeneralState"]

_FIRST_TOL = 1e-3  # of the rate: residual at which a gap is first computed
_LAST_TOL = 1e-12
_LOOSE = 0.1  # of the residual over all columns, while working sets grow
_TIGHTER = 0.03  # of the last residual, when they no longer do
_FIRST_SIZE = 128  # rows of coefficients that may enter at once, or as many as are in


@dataclass(frozen=True, eq=False)
class GeneralState:
    """Where the solver stands.

    Attributes
    ----------
    W : (p, k) numpy.ndarray
        Coefficients.
    b : (k,) numpy.ndarray
        Intercepts, zero without them.
    objective, gap, residual : float
        Objective, bound on its distance to the minimum (infinite if none is known), and distance
        from the optimality conditions.
    gradient : (p, k) numpy.ndarray
        Gradient of the loss in the coefficients.
    evaluations : int
        Values and gradients of the loss.
    converged : bool
        Whether the gap, or where none is known the residual, meets the tolerance.
    stalled : bool
        Whether rounding kept it from getting nearer.
    """

    W: np.ndarray
    b: np.ndarray
    objective: float
    gap: float
    residual: float
    gradient: np.ndarray
    evaluations: int
    converged: bool
    stalled: bool


class _WithIntercepts(Penalty):
    """A penalty of the first coefficients; the last ones are free."""

    def __init__(self, penalty, size, extra):
        self.inner, self.head, self.extra = penalty, size, extra
        self.rate, self.size = penalty.rate, size + extra

    def blocks(self, size=None):
        return self.inner.blocks(self.head)

    def restricted(self, index):
        return _WithIntercepts(self.inner.restricted(index), len(index), self.extra)

    def penalised(self, size=None):
        return np.append(self.inner.penalised(self.head), np.zeros(self.extra, dtype=bool))

    def support(self, w):
        return np.append(self.inner.support(w[: self.head]), np.ones(self.extra, dtype=bool))

    def _value(self, w):
        return self.inner.value(w[: self.head])

    def _prox(self, v, step, out):
        out[:] = v
        out[:, : self.head] = self.inner.prox(v[:, : self.head], step)

    def _dual(self, g):
        return self.inner.dual_norm(g[: self.head], ignore_unpenalised=True)

    def _nearest(self, w, y):
        head = -self.inner.pseudo_gradient(w[: self.head], -y[: self.head])
        return np.append(head, y[self.head :])

    def _size_of_gradient(self, e):
        return np.abs(e).max(initial=0.0)

    def _slope(self, w, d):
        return self.inner.directional_derivative(w[: self.head], d[: self.head])

    def _log_normalizer(self, size):
        return np.inf


class GeneralRegression:
    """One regression, to be solved at several rates.

    Parameters
    ----------
    design : Design
        Predictors.
    loss : Loss
        Loss of the linear predictor, one column of it or several.
    penalty : Penalty
        For the coefficients, (p, k) flattened in C order.

    Attributes
    ----------
    null_objective : float
        Loss without penalised coefficients, less its bound: tolerances are relative to it.
    null_gradient : (p k,) numpy.ndarray
        Gradient of the loss in the coefficients there.
    """

    def __init__(self, design: Design, loss: Loss, penalty: Penalty):
        self.design, self.loss = design, loss
        self.k = 1 if len(loss.shape) == 1 else loss.shape[1]
        self.p = design.p - design.intercept
        if penalty.size not in {None, self.p * self.k}:
            raise ValueError(
                f"the penalty is for {penalty.size} coefficients, the model has {self.p * self.k}"
            )
        free = np.append(
            ~penalty.penalised(self.p * self.k),
            np.ones(self.k if design.intercept else 0, dtype=bool),
        )
        self.null = self._null_mode(free)
        value, gradient = self.value_and_gradient(self.null)
        self.null_objective = max(value - loss.least, np.finfo(float).tiny)
        self.null_gradient = gradient[: self.p * self.k]
        self._null_alpha = -loss.derivative(self._predictor(design, self.null))
        self._bases = self._free_bases(free)

    def solve(self, penalty: Penalty, start: np.ndarray, *, tol: float, max_iter: int):
        """Return the `GeneralState` at the mode under a penalty.

        Parameters
        ----------
        penalty : Penalty
            The penalty at its rate.
        start : numpy.ndarray
            Coefficients and intercepts in one vector.
        tol : float
            Largest gap, relative to the loss without penalised coefficients; where no gap is
            known, largest residual relative to the rate at which all coefficients vanish.
        max_iter : int
            Maximum number of evaluations of the loss.
        """
        extra = self.k if self.design.intercept else 0
        wrapped = _WithIntercepts(penalty, self.p * self.k, extra)
        scale = max(np.abs(self.null_gradient).max(initial=0.0), np.finfo(float).tiny)
        working = _WorkingSet(self, wrapped)
        x, used, inner_tol, stuck, stalled = start, 0, np.inf, False, False
        while True:
            look, used = self._look(penalty, wrapped, x), used + 1
            known = np.isfinite(look.gap)
            done = look.gap <= tol * self.null_objective if known else look.residual <= tol * scale
            if done or used >= max_iter:
                break
            if working.grow(x, look.gradient):
                inner_tol = max(_LOOSE * look.residual, _FIRST_TOL * scale)
            elif stuck or inner_tol < _LAST_TOL * scale:
                stalled = True
                break
            else:
                inner_tol = _TIGHTER * min(inner_tol, look.residual, _FIRST_TOL * scale)
            x, found = working.solve(x, inner_tol, max(max_iter - used, 1))
            used, stuck = used + found.evaluations, not found.converged
        head = self.p * self.k
        return GeneralState(
            W=x[:head].reshape(self.p, self.k),
            b=x[head:] if extra else np.zeros(self.k),
            objective=look.objective,
            gap=look.gap,
            residual=look.residual,
            gradient=look.gradient[:head].reshape(self.p, self.k),
            evaluations=used,
            converged=bool(done),
            stalled=stalled,
        )

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Loss and its gradient in coefficients and intercepts."""
        return self.value_and_gradient_of(self.design, x)

    def value_and_gradient_of(self, design: Design, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the same for a design of some of the columns."""
        z = self._predictor(design, x)
        gradient = design.tdot(self.loss.derivative(z))
        return self.loss.value(z), np.asarray(gradient).ravel()

    def _predictor(self, design, x):
        return design.dot(x if len(self.loss.shape) == 1 else x.reshape(-1, self.k))

    def _look(self, penalty, wrapped, x) -> "_Look":
        """Evaluate everything at a point, over all columns."""
        z = self._predictor(self.design, x)
        derivative = self.loss.derivative(z)
        gradient = np.asarray(self.design.tdot(derivative)).ravel()
        objective = self.loss.value(z) + wrapped.value(x)
        gap = self._gap(penalty, derivative, objective)
        return _Look(objective, gap, wrapped.residual(x, gradient), gradient)

    def _null_mode(self, free):
        """Mode of the free coefficients alone."""
        from scipy.optimize import minimize

        x = np.zeros(len(free))
        if not free.any():
            return x

        def restricted(values):
            full = x.copy()
            full[free] = values
            value, gradient = self.value_and_gradient(full)
            return value, gradient[free]

        options = {"maxiter": 1000, "gtol": 1e-10, "ftol": 0.0}
        x[free] = minimize(restricted, x[free], jac=True, method="L-BFGS-B", options=options).x
        return x

    def _free_bases(self, free):
        """Return an orthonormal basis of the free columns of each column of the predictor."""
        rows = self.p + bool(self.design.intercept)
        free = free.reshape(rows, self.k)
        bases = []
        for c in range(self.k):
            index = np.flatnonzero(free[:, c])
            block = self.design.columns(index)
            block = block.toarray() if hasattr(block, "toarray") else block
            bases.append(np.linalg.qr(block)[0] if len(index) else None)
        return bases

    def _gap(self, penalty, derivative, objective):
        """Objective minus a dual value; infinite if none is known."""
        if isinstance(self.loss, Custom):
            return np.inf
        for share in (0.0, 1e-10, 1e-6, 1e-3):
            alpha = self._orthogonal((share - 1) * derivative + share * self._null_alpha)
            products = np.asarray(self.design.tdot(alpha))[: self.p].ravel()
            size = penalty.dual_norm(products, ignore_unpenalised=True)
            value = self.loss.dual(alpha / max(size, 1.0))
            if np.isfinite(value):
                return max(objective - value, 0.0)
        return np.inf

    def _orthogonal(self, alpha):
        columns = alpha.reshape(len(alpha), self.k).copy()
        for c, U in enumerate(self._bases):
            if U is not None:
                columns[:, c] -= U @ (U.T @ columns[:, c])
        return columns.reshape(alpha.shape)


class _Look(NamedTuple):
    """Objective, gap, residual and gradient at a point, over all columns."""

    objective: float
    gap: float
    residual: float
    gradient: np.ndarray


class _WorkingSet:
    """Columns that are solved for while the others' coefficients are zero.

    Parameters
    ----------
    regression : GeneralRegression
        All columns.
    penalty : _WithIntercepts
        Of all of them.

    Notes
    -----
    Off the set coefficients stay at zero. At a minimum over the set that is none over all, the
    least subgradient is not zero, and so a direction of descent; it cannot be one within the set.
    So a set to which its blocks are added ends at the minimum over all columns.
    """

    def __init__(self, regression: GeneralRegression, penalty: _WithIntercepts):
        self.regression, self.penalty = regression, penalty
        self.p, self.k = regression.p, regression.k
        self.block = _rows_together(penalty.blocks(), self.p, self.k)
        self.rows = np.bincount(self.block)
        self.bound = self._of_blocks(penalty.penalised()) > 0
        self.on = np.zeros(len(self.rows), dtype=bool)

    def grow(self, x: np.ndarray, gradient: np.ndarray) -> bool:
        """Add nonzero and free coefficients, and the largest violations; return whether any was new."""
        inside = self._of_blocks(self.penalty.support(x)) > 0
        on = self.on | inside
        pull = self._of_blocks(np.abs(self.penalty.pseudo_gradient(x, gradient)))
        pull[on] = 0.0
        order = np.argsort(-pull, kind="stable")[: np.count_nonzero(pull)]
        before = np.cumsum(self.rows[order]) - self.rows[order]
        on[order[before < max(_FIRST_SIZE, self.rows[inside].sum())]] = True
        if 2 * self.rows[on].sum() > self.p or not (on & self.bound).any():
            on[:] = True  # gathering columns would not pay
        grown = bool((on & ~self.on).any())
        self.on = on
        return grown

    def solve(self, x: np.ndarray, tol: float, max_evaluations: int):
        """Return the minimum over the set, and how the solver found it."""
        design, penalty, at = self.regression.design, self.penalty, np.arange(len(x))
        if not self.on.all():
            rows = np.flatnonzero(self.on[self.block])
            index = (rows[:, None] * self.k + np.arange(self.k)).ravel()
            at = np.append(index, at[self.p * self.k :])
            design, penalty = design.restricted(rows), penalty.restricted(index)
        found = soft_threshold_steps(
            lambda v: self.regression.value_and_gradient_of(design, v),
            x[at],
            penalty,
            tol=tol,
            max_evaluations=max_evaluations,
        )
        out = x.copy()
        out[at] = found.coefficients
        return out, found

    def _of_blocks(self, values):
        """Largest value in each block, the intercepts left aside."""
        out = np.zeros(len(self.rows))
        rows = values[: self.p * self.k].reshape(self.p, self.k).max(axis=1)
        np.maximum.at(out, self.block, rows)
        return out


def _rows_together(blocks, p, k):
    """Return a label for each row of coefficients; those that share one are in or out together."""
    if k == 1:
        return np.unique(blocks, return_inverse=True)[1]
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    number = np.unique(blocks, return_inverse=True)[1]
    size = p + number.max() + 1
    links = coo_array((np.ones(p * k), (np.repeat(np.arange(p), k), p + number)), (size, size))
    return connected_components(links, directed=False)[1][:p]
