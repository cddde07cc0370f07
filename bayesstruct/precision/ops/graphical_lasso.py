"""The graphical lasso as a PyTensor operation, differentiable in its data and its penalty."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytensor.tensor as pt

from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply
from pytensor.tensor.blockwise import Blockwise

from bayesstruct.core.ops import InterpretedOp
from bayesstruct.precision.solvers.graphical_lasso import solve, solve_on_support

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["GraphicalLasso", "graphical_lasso"]


def graphical_lasso(
    S: Any, lam: Any, *, penalize_diagonal: bool = False, tol: float = 1e-22, max_iter: int = 100
) -> "TensorVariable":
    r"""Precision matrix that maximises an :math:`\ell_1`-penalised Gaussian log-likelihood.

    Same problem, prior and references as `bayesstruct.solvers.graphical_lasso`.

    Parameters
    ----------
    S : tensor_like, shape (..., p, p)
        Covariance matrix, of which the symmetric part counts. May be batched.
    lam : tensor_like
        Penalty: a scalar, a vector of scalars (one for each batch entry of `S`, or a batch by
        itself), or symmetric matrices (..., p, p) whose diagonals always count.
    penalize_diagonal : bool
        Whether scalar penalties apply to the diagonal.
    tol : float
        Duality gap divided by p. The error of the precision goes with its square root: the
        default leaves about 1e-10, so that finite differences work too.
    max_iter : int
        Maximum number of Newton steps.

    Returns
    -------
    TensorVariable, shape (..., p, p)
        The mode; all NaN where `S` or `lam` is invalid or no finite bound on the error was
        found. Other failures to reach `tol` within `max_iter` are silent: use the solver to see
        them.

    Notes
    -----
    The derivative is exact where no entry is on the verge of leaving or entering the support,
    which excludes a set of measure zero.
    """
    S = pt.as_tensor_variable(S)
    lam = pt.as_tensor_variable(lam)
    if lam.type.ndim < 2:
        p = S.shape[-1]
        penalised = pt.ones((p, p)) if penalize_diagonal else 1.0 - pt.eye(p)
        lam = lam[..., None, None] * penalised
    op = Blockwise(GraphicalLasso(tol=tol, max_iter=max_iter))
    return cast("TensorVariable", op(S, lam))


def _matrix(x):
    x = pt.as_tensor_variable(x)
    if x.type.ndim != 2:
        raise TypeError(f"graphical_lasso works on matrices, got {x.type.ndim} dimensions.")
    return x if x.type.dtype == "float64" else pt.cast(x, "float64")


def mode(S: np.ndarray, lam: np.ndarray, tol: float, max_iter: int) -> np.ndarray:
    """Solve for the symmetric parts of ``S`` and ``lam``; NaN where no mode was certified."""
    S, lam = 0.5 * (S + S.T), 0.5 * (lam + lam.T)
    valid = np.isfinite(S).all() and np.isfinite(lam).all() and lam.min(initial=0.0) >= 0
    if valid and np.all(S.diagonal() + lam.diagonal() > 0):
        K, _, gap, _, _ = solve(S, lam, None, tol, max_iter)
        if np.isfinite(gap):
            return K
    return np.full(S.shape, np.nan)


def active_set_solve(K: np.ndarray, G: np.ndarray, tol: float) -> np.ndarray:
    r"""Symmetric ``X`` on the support of ``K`` with ``inv(K) X inv(K) = (G + G') / 2`` there.

    On a fixed active set the mode obeys :math:`W = K^{-1} = S + \lambda \circ \operatorname{sign} K`,
    hence :math:`(W\,dK\,W)_{ij} = -dS_{ij} - \operatorname{sign}(K_{ij})\,d\lambda_{ij}`: for a
    cotangent ``G`` of ``K``, those of ``S`` and ``lam`` are ``-X`` and ``-X * sign(K)``.
    """
    if not np.isfinite(K).all():
        return np.full(K.shape, np.nan)
    return solve_on_support(K, 0.5 * (G + G.T), tol)


class _SquareOp(InterpretedOp):
    """An Op of two (p, p) matrices that gives one of their shape."""

    gufunc_signature = "(p,p),(p,p)->(p,p)"

    def make_node(self, a, b):
        """Apply to two matrices."""
        self.register()
        a, b = _matrix(a), _matrix(b)
        return Apply(self, [a, b], [pt.tensor(dtype="float64", shape=a.type.shape)])

    def infer_shape(self, node, input_shapes):
        """Shape of the first input."""
        return [input_shapes[0]]


class GraphicalLasso(_SquareOp):
    """Mode of a precision matrix, given a covariance and a penalty matrix."""

    __props__ = ("tol", "max_iter")

    def __init__(self, tol=1e-22, max_iter=100):
        self.tol = float(tol)
        self.max_iter = int(max_iter)

    def compute(self, S, lam):
        """Solve, see `mode`."""
        return mode(S, lam, self.tol, self.max_iter)

    def pullback(self, inputs, outputs, cotangents):
        """Implicit function theorem on the active set; see `active_set_solve`."""
        if isinstance(cotangents[0].type, DisconnectedType):
            return [disconnected_type(), disconnected_type()]
        X = ActiveSetSolve()(outputs[0], cotangents[0])
        return [-X, -X * pt.sign(outputs[0])]


class ActiveSetSolve(_SquareOp):
    """Derivative of `GraphicalLasso`: see `active_set_solve`."""

    __props__ = ("tol",)

    def __init__(self, tol=1e-12):
        self.tol = float(tol)

    def compute(self, K, G):
        """Solve, see `active_set_solve`."""
        return active_set_solve(K, G, self.tol)
