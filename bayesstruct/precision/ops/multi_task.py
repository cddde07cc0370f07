"""Modes of several precision matrices with one graph as a PyTensor operation, differentiable in its data and its rates."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytensor.tensor as pt

from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply

from bayesstruct.core.ops import InterpretedOp
from bayesstruct.data.names import nearest
from bayesstruct.precision.solvers.faces import conjugate_gradients
from bayesstruct.precision.solvers.multi_task import NORMS, as_weights, solve_tasks

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["MultiTaskMode", "multi_task_graphical_lasso"]


def multi_task_graphical_lasso(
    S: Any,
    n: Any,
    rate: Any,
    *,
    norm: str = "l2",
    diagonal_rate: Any = 0.0,
    tol: float = 1e-18,
    max_iter: int = 10_000,
) -> "TensorVariable":
    """Precision matrices with one graph that maximise the posterior density of several tables.

    Same problem, prior and references as `bayesstruct.solvers.multi_task_graphical_lasso`.

    Parameters
    ----------
    S : tensor_like, shape (tasks, p, p)
        Covariance matrix of each table, of which the symmetric part counts.
    n : float or (tasks,) array_like
        Numbers of rows; constants.
    rate : tensor_like
        Rate of the off-diagonal elements: a scalar or a symmetric (p, p) matrix, whose diagonal is not used.
    norm : {"l2", "linf"}
        Norm over the tables.
    diagonal_rate : tensor_like
        Rate of the diagonal elements, a scalar.
    tol : float
        Duality gap in units of the log density. The error of the matrices goes with its square root.
    max_iter : int
        Maximum number of sweeps.

    Returns
    -------
    TensorVariable, shape (tasks, p, p)
        The mode; all NaN where an input is invalid or no finite bound on the error was found. Other failures to reach `tol`
        within `max_iter` are silent: use the solver to see them.

    Notes
    -----
    The derivative is exact where no pair of columns is on the verge of leaving or entering the graph and, with "linf", no
    element on that of being the largest one: this excludes a set of measure zero.
    """
    if norm not in NORMS:
        raise ValueError(nearest("norm", norm, NORMS))
    S, rate = pt.as_tensor_variable(S), pt.as_tensor_variable(rate)
    p = S.shape[-1]
    same = pt.eye(p)
    rates = pt.switch(pt.eq(same, 1.0), 2.0 * pt.as_tensor_variable(diagonal_rate), rate)
    weights = np.asarray(n, dtype=float)
    op = MultiTaskMode(tuple(weights.ravel().tolist()), norm, tol, max_iter)
    return cast("TensorVariable", op(S, rates))


class _TasksOp(InterpretedOp):
    """An Op whose first input and output have one matrix for each task."""

    def infer_shape(self, node, input_shapes):
        """Shape of the first input."""
        return [input_shapes[0]]

    def make_node(self, *inputs):
        """Apply to arrays of numbers."""
        self.register()
        arrays = [pt.cast(pt.as_tensor_variable(x), "float64") for x in inputs]
        if [x.type.ndim for x in arrays] != list(self.dimensions):
            raise TypeError(
                "multi_task_graphical_lasso works on (tasks, p, p) covariance matrices."
            )
        return Apply(self, arrays, [pt.tensor(dtype="float64", shape=arrays[0].type.shape)])


class MultiTaskMode(_TasksOp):
    """Mode of several precision matrices, given covariance matrices and a matrix of rates."""

    __props__ = ("n", "norm", "tol", "max_iter")
    dimensions = (3, 2)

    def __init__(self, n, norm, tol, max_iter):
        self.n, self.norm, self.tol, self.max_iter = n, norm, float(tol), int(max_iter)

    def compute(self, S, rates):
        """Solve; NaN where no mode was certified."""
        S = 0.5 * (S + S.transpose(0, 2, 1))
        rates = 0.5 * (rates + rates.T)
        valid = np.isfinite(S).all() and np.isfinite(rates).all() and rates.min(initial=0.0) >= 0
        if valid and np.all(S.diagonal(axis1=1, axis2=2) + rates.diagonal() > 0):
            weights = as_weights(self.n if len(self.n) > 1 else self.n[0], len(S))
            solution = solve_tasks(S, weights, rates, self.norm, None, self.tol, self.max_iter)
            if np.isfinite(solution.gap):
                return solution.precision
        return np.full(S.shape, np.nan)

    def pullback(self, inputs, outputs, cotangents):
        """Implicit function theorem on the graph of the solution; see `implicit_solve`."""
        if isinstance(cotangents[0].type, DisconnectedType):
            return [disconnected_type(), disconnected_type()]
        [K], [G] = outputs, cotangents
        X = MultiTaskSolve(self.n, self.norm)(K, inputs[1], G)
        weights = pt.as_tensor_variable(np.asarray(self.n))[:, None, None]
        slope = MultiTaskSlope(self.norm)(K)
        return [-weights * X, -(X * slope).sum(axis=0)]


class MultiTaskSolve(_TasksOp):
    """Derivative of `MultiTaskMode`: see `implicit_solve`."""

    __props__ = ("n", "norm")
    dimensions = (3, 2, 3)

    def __init__(self, n, norm):
        self.n, self.norm = n, norm

    def compute(self, K, rates, G):
        """Solve, see `implicit_solve`."""
        weights = as_weights(self.n if len(self.n) > 1 else self.n[0], len(K))
        return implicit_solve(K, weights, 0.5 * (rates + rates.T), self.norm, G)


class MultiTaskSlope(_TasksOp):
    """Gradient of each pair's norm along the tangent of its face; see `slopes`."""

    __props__ = ("norm",)
    dimensions = (3,)

    def __init__(self, norm):
        self.norm = norm

    def compute(self, K):
        """Return the gradients."""
        return slopes(K, self.norm)


def slopes(K: np.ndarray, norm: str) -> np.ndarray:
    """Gradient of each pair's norm over the tasks, in the directions in which it is smooth; zero where all elements are."""
    size = np.linalg.norm(K, 2 if norm == "l2" else np.inf, axis=0)
    if norm == "l2":
        return K / np.where(size > 0, size, 1.0)
    tied = _tied(K, size)
    return tied * np.sign(K) / np.maximum(tied.sum(axis=0), 1)


def _tied(K, size):
    return (np.abs(K) >= size * (1.0 - 1e-12)) & (size > 0)


def implicit_solve(
    K: np.ndarray, weights: np.ndarray, rates: np.ndarray, norm: str, G: np.ndarray
) -> np.ndarray:
    r"""Solve ``M X = (G + G') / 2`` in the directions that keep the zeros and ties of the mode.

    On a fixed graph the mode obeys :math:`T_k (K_k^{-1} - S_k)_{ij} = \rho_{ij} \, \partial \|k_{ij}\|`. Its differential is
    :math:`M \, dK = -T \, dS - d\rho \, g` with :math:`M \, dK = T K^{-1} dK K^{-1} + \rho H \, dK`, the gradients g of the norms and
    their second derivatives H: for a cotangent G of K, those of S and :math:`\rho` are ``-T X`` and ``-sum_k X_k g_k``.
    Largest absolute values have no second derivative; elements that share one move together.
    """
    if not np.isfinite(K).all():
        return np.full(K.shape, np.nan)
    W = np.linalg.inv(K)
    size = np.linalg.norm(K, 2 if norm == "l2" else np.inf, axis=0)
    support, gradient = size > 0, slopes(K, norm)
    curvature = (
        np.where(support, rates / np.where(support, size, 1.0), 0.0) if norm == "l2" else 0.0
    )
    tied = _tied(K, size) if norm == "linf" else None

    def project(X):
        X = np.where(support, X, 0.0)
        if tied is None:
            return X
        return np.where(
            tied, np.sign(K) * (np.sign(K) * tied * X).sum(0) / np.maximum(tied.sum(0), 1), X
        )

    def apply(X):
        out = weights[:, None, None] * (W @ X @ W)
        if tied is None:
            out += curvature * (X - gradient * (gradient * X).sum(axis=0))
        return project(out)

    d = W.diagonal(axis1=1, axis2=2)
    scale = weights[:, None, None] * (d[:, :, None] * d[:, None, :]) + curvature
    return conjugate_gradients(
        apply, project(0.5 * (G + G.transpose(0, 2, 1))), lambda R: project(R / scale)
    )
