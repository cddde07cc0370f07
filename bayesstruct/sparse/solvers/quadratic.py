"""Quadratic models of a loss on some columns, and their minimum under absolute values."""

from collections.abc import Callable

import numpy as np

__all__ = ["ColumnModel", "GramModel", "minimise_quadratic"]

_PASSES = 10
_MAX_ROUNDS = 50
_CG_TOL = 1e-2  # of the slope: sweeps and steps alternate, so that a rough step will do


class GramModel:
    """Quadratic model held as its Gram matrix and gradient."""

    def __init__(self, Q: np.ndarray, gradient: np.ndarray):
        self.Q = Q
        self.u = np.array(gradient)

    def gradient(self) -> np.ndarray:
        """Gradient at the present point."""
        return self.u

    def sweep(self, v, up, down, passes, tol) -> None:
        """Coordinate descent, in place."""
        from bayesstruct.sparse.kernels.quadratic_l1 import sweep

        sweep(self.Q, v, self.u, up, down, passes, tol)

    def newton(self, S, slope, bend=None):
        """Step to the minimum over the coordinates ``S``, and the curvature as a product.

        ``bend`` adds to the curvature when the step is chosen.
        """
        H = self.Q[np.ix_(S, S)]
        return _solve(H if bend is None else H + bend, -slope), lambda move: H @ move

    def move(self, S, step) -> None:
        """Follow a step of the coordinates ``S``."""
        self.u += self.Q[:, S] @ step


class ColumnModel:
    """Quadratic model held as sparse columns B: the curvature is ``B'B``, the gradient ``B'r``."""

    def __init__(self, B, r: np.ndarray):
        self.B, self.r = B, r
        self.curvature = np.asarray(B.power(2).sum(axis=0)).ravel()

    @classmethod
    def of(cls, block, weights: np.ndarray, derivative: np.ndarray) -> "ColumnModel":
        """Return the model of columns under weights of the rows, and derivatives in these."""
        root = np.sqrt(weights)
        B = block.copy()
        B.data *= root[B.indices]
        return cls(B, derivative / root)

    def gradient(self) -> np.ndarray:
        """Gradient at the present point."""
        return self.B.T @ self.r

    def sweep(self, v, up, down, passes, tol) -> None:
        """Coordinate descent, in place."""
        from bayesstruct.sparse.kernels.quadratic_l1 import sweep_columns

        arrays = self.B.data, self.B.indices, self.B.indptr, self.r, self.curvature
        sweep_columns(*arrays, v, up, down, passes, tol)

    def newton(self, S, slope):
        """Step towards the minimum over ``S`` by conjugate gradients, and the curvature."""
        from scipy.sparse.linalg import LinearOperator, cg

        A = self.B[:, S]

        def product(move):
            return A.T @ (A @ move)

        H = LinearOperator((len(S), len(S)), matvec=product, dtype=float)
        scale = np.maximum(self.curvature[S], np.finfo(float).tiny)
        M = LinearOperator(H.shape, matvec=lambda r: r / scale, dtype=float)
        return cg(H, -slope, rtol=_CG_TOL, maxiter=200, M=M)[0], product

    def move(self, S, step) -> None:
        """Follow a step of the coordinates ``S``."""
        self.r += self.B[:, S] @ step


def minimise_quadratic(
    model: GramModel | ColumnModel,
    w: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    tol: float,
    residual: Callable[[np.ndarray, np.ndarray], float],
) -> np.ndarray:
    r"""Minimise a quadratic model plus absolute values at their rates, from ``w``.

    Passes of coordinate descent find the signs; Newton steps on them finish, however badly the
    columns are conditioned. Both only ever descend.
    """
    v = w.copy()
    for _ in range(_MAX_ROUNDS):
        model.sweep(v, up, down, _PASSES, tol)
        if residual(v, model.gradient()) <= tol:
            break
        _newton_on_signs(model, v, up, down)
        if residual(v, model.gradient()) <= tol:
            break
    return v


def _newton_on_signs(model, v, up, down):
    """One Newton step within the present orthant, cut off at its boundary, in place."""
    S = np.flatnonzero((v != 0) | ((up == 0) & (down == 0)))
    if not len(S):
        return
    rates = np.where(v[S] > 0, up[S], np.where(v[S] < 0, -down[S], 0.0))
    slope = model.gradient()[S] + rates
    step, product = model.newton(S, slope)
    reaches = (v[S] * step < 0) & (rates != 0)
    first = np.min(-v[S][reaches] / step[reaches], initial=np.inf)
    for t in (1.0, 0.5, 0.25, min(first, 1.0)):  # the last stays in the orthant
        move = t * step
        crosses = reaches & (np.abs(move) >= np.abs(v[S]))
        move[crosses] = -v[S[crosses]]
        if slope @ move + 0.5 * move @ product(move) < 0.0:
            v[S] += move
            v[S[crosses]] = 0.0
            model.move(S, move)
            return


def _solve(H, b):
    """Solution of a positive semi-definite system, a little regularised if it is singular."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    ridge = 0.0
    for _ in range(6):
        try:
            factor = cho_factor(
                H + ridge * np.eye(len(b)) if ridge else H, lower=True, check_finite=False
            )
        except LinAlgError:
            ridge = max(100.0 * ridge, 1e-12 * np.trace(H) / len(b))
            continue
        return cho_solve(factor, b, check_finite=False)
    return np.zeros(len(b))
