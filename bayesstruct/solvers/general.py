r"""Regressions under any penalty with a proximal map, whatever the loss.

.. math:: \min_{W, b} \; L(X W + 1 b') + \Omega(W)

Quasi-Newton soft-threshold steps see the loss through its value and gradient only. The dual
function of the loss and the dual norm of the penalty certify the result, as in
`bayesstruct.solvers.proximal_newton`; a loss without one is stopped by its optimality conditions.
"""

import warnings

from dataclasses import dataclass

import numpy as np

from bayesstruct.penalties import Penalty
from bayesstruct.solvers.designs import Design
from bayesstruct.solvers.losses import Custom, Loss
from bayesstruct.solvers.soft_threshold import qnst
from bayesstruct.solvers.solution import ConvergenceWarning

__all__ = ["GeneralRegression", "GeneralState"]

_FIRST_TOL = 1e-3  # of the rate: residual at which a gap is first looked at
_LAST_TOL = 1e-12


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
    """

    W: np.ndarray
    b: np.ndarray
    objective: float
    gap: float
    residual: float
    gradient: np.ndarray
    evaluations: int
    converged: bool


class _WithIntercepts(Penalty):
    """A penalty of the first coefficients; the last ones are free."""

    def __init__(self, penalty, size, extra):
        self.inner, self.head, self.extra = penalty, size, extra
        self.rate, self.size = penalty.rate, size + extra

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
        Loss without penalised coefficients: tolerances are relative to it.
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
        self.null_objective = max(value, np.finfo(float).tiny)
        self.null_gradient = gradient[: self.p * self.k]
        self._null_alpha = -self._derivative(self.null)
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
            Most evaluations of the loss.
        """
        extra = self.k if self.design.intercept else 0
        wrapped = _WithIntercepts(penalty, self.p * self.k, extra)
        scale = max(np.abs(self.null_gradient).max(initial=0.0), np.finfo(float).tiny)
        x, used, residual_tol = start, 0, _FIRST_TOL * scale
        while True:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found = qnst(
                    self.value_and_gradient,
                    x,
                    wrapped,
                    tol=residual_tol,
                    max_evaluations=max(max_iter - used, 1),
                )
            x, used = found.coefficients, used + found.evaluations
            gap, gradient = self._gap(penalty, x, found.objective)
            known = np.isfinite(gap)
            done = gap <= tol * self.null_objective if known else found.gap <= tol * scale
            if done or not found.converged or used >= max_iter or residual_tol < _LAST_TOL * scale:
                break
            residual_tol *= 0.03
        head = self.p * self.k
        return GeneralState(
            W=x[:head].reshape(self.p, self.k),
            b=x[head:] if extra else np.zeros(self.k),
            objective=found.objective,
            gap=gap,
            residual=found.gap,
            gradient=gradient.reshape(self.p, self.k),
            evaluations=used,
            converged=bool(done),
        )

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Loss and its gradient in coefficients and intercepts."""
        z = self._predictor(x)
        gradient = self.design.tdot(self.loss.derivative(z))
        return self.loss.value(z), np.asarray(gradient).ravel()

    def _predictor(self, x):
        return self.design.dot(x if len(self.loss.shape) == 1 else x.reshape(-1, self.k))

    def _derivative(self, x):
        return self.loss.derivative(self._predictor(x))

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

    def _gap(self, penalty, x, objective):
        """Objective minus a dual value, and the gradient in the coefficients."""
        derivative = self._derivative(x)
        gradient = np.asarray(self.design.tdot(derivative))[: self.p].ravel()
        if isinstance(self.loss, Custom):
            return np.inf, gradient
        for share in (0.0, 1e-10, 1e-6, 1e-3):
            alpha = self._orthogonal((share - 1) * derivative + share * self._null_alpha)
            products = np.asarray(self.design.tdot(alpha))[: self.p].ravel()
            size = penalty.dual_norm(products, ignore_unpenalised=True)
            value = self.loss.dual(alpha / max(size, 1.0))
            if np.isfinite(value):
                return max(objective - value, 0.0), gradient
        return np.inf, gradient

    def _orthogonal(self, alpha):
        columns = alpha.reshape(len(alpha), self.k).copy()
        for c, U in enumerate(self._bases):
            if U is not None:
                columns[:, c] -= U @ (U.T @ columns[:, c])
        return columns.reshape(alpha.shape)
