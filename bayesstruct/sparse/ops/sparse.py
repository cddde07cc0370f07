r"""Modes of sparse regressions as PyTensor operations, differentiable in data, responses and rates.

On a fixed active set A with signs s the mode obeys :math:`X_A' \ell'(z) + \lambda_A \circ s_A = 0` at
:math:`z = X w + b`. With :math:`H = X_A' D X_A`, D the second derivatives of the loss (and a column
of ones in X for an intercept), a cotangent :math:`\bar w` of the mode gives, for
:math:`v = H^{-1} \bar w_A` and :math:`q = X_A v`,

.. math::

    \bar y = q, \qquad \bar\lambda_A = -v \circ s_A, \qquad
    \bar X_A = -(\ell'(z) v' + D q w_A').
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.blockwise import Blockwise

from bayesstruct.core.ops import InterpretedOp
from bayesstruct.data.arguments import number, numbers, table_numbers, truth, whole_number
from bayesstruct.sparse.solvers.designs import as_design
from bayesstruct.sparse.solvers.losses import Gaussian, Logistic
from bayesstruct.sparse.solvers.proximal_newton import (
    Certifier,
    GramCache,
    Problem,
    proximal_newton,
)

if TYPE_CHECKING:
    from pytensor.tensor import TensorLike
    from pytensor.tensor.variable import TensorVariable

__all__ = ["Lasso", "SparseLogistic", "lasso", "sparse_logistic"]

_FOUND = 1e-6  # duality gap, relative to the loss at zero, beyond which a point is not a mode
_POLISH = 20  # maximum number of Newton steps on the final signs


def lasso(
    X: "TensorLike",
    y: "TensorLike",
    rate: "TensorLike",
    *,
    intercept: bool = False,
    tol: float = 1e-14,
    max_iter: int = 200,
) -> "TensorVariable | list[TensorVariable]":
    r"""Mode of a Gaussian regression's coefficients under a Laplace prior.

    .. math:: \min_{w, b} \; \tfrac12 \|y - X w - b\|^2 + \sum_j \lambda_j |w_j|

    Parameters
    ----------
    X : tensor_like, shape (..., n, p)
        Predictors.
    y : tensor_like, shape (..., n)
        Responses of unit noise variance (for a standard deviation :math:`\sigma` multiply the
        prior's rate by :math:`\sigma^2`). Leading dimensions are batches: responses to one ``X``
        are solved in one call that shares its products.
    rate : tensor_like
        :math:`\lambda`, the rate of the Laplace prior (its scale is 1 over it): a number, or shape
        (..., p). Zero leaves a coefficient without penalty, infinity keeps it out.
    intercept : bool
        Add an unpenalised constant b, and return it too.
    tol : float
        Duality gap relative to the loss without penalised coefficients at which the active set is
        taken as final; Newton steps on it follow, to machine precision.
    max_iter : int
        Maximum number of passes over all columns.

    Returns
    -------
    TensorVariable, shape (..., p)
        The mode, with exact zeros; all NaN where input is invalid, or `max_iter` is too small to
        come near it. With an intercept, a list of this and the intercepts, (...).

    Raises
    ------
    TypeError
        If ``X`` has fewer than two dimensions, ``y`` none, or one of the inputs is complex.

    Notes
    -----
    The derivatives in ``X``, ``y`` and ``rate`` are exact where no coefficient is on the verge of
    leaving or entering the active set, which excludes a set of measure zero. They are NaN where the
    active columns are linearly dependent, so that the mode is not unique.

    References
    ----------
    Tibshirani, R. (1996). Regression shrinkage and selection via the lasso. *JRSS B* 58, 267-288. --
    Bertrand, Q. et al. (2020). Implicit differentiation of lasso-type models for hyperparameter
    optimization. *ICML*.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct import ops
    >>> ops.lasso(np.eye(3), [3.0, 0.2, -2.0], 1.0).eval()
    array([ 2.,  0., -1.])

    All neighbourhoods of a table in one call, each column on the others:

    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> rate = np.where(np.eye(4), np.inf, 5.0)
    >>> ops.lasso(X, X.T, rate).type.shape
    (4, 4)
    """
    return _modes(Lasso(intercept=intercept, tol=tol, max_iter=max_iter), X, y, rate)


def sparse_logistic(
    X: "TensorLike",
    y: "TensorLike",
    rate: "TensorLike",
    *,
    intercept: bool = False,
    tol: float = 1e-14,
    max_iter: int = 200,
) -> "TensorVariable | list[TensorVariable]":
    r"""Mode of a logistic regression's coefficients under a Laplace prior.

    .. math::

        \min_{w, b} \; \sum_i \log(1 + e^{z_i}) - y_i z_i + \sum_j \lambda_j |w_j|,
        \qquad z = X w + b

    Parameters
    ----------
    X, rate, intercept, tol, max_iter
        As in `lasso`.
    y : tensor_like, shape (..., n)
        Labels 0 and 1, or probabilities between them.

    Returns
    -------
    TensorVariable, shape (..., p)
        As in `lasso`; NaN also where labels are outside of 0 and 1, or unpenalised columns separate
        them.

    Raises
    ------
    TypeError
        As in `lasso`.

    References
    ----------
    Ravikumar, P., Wainwright, M. J., Lafferty, J. D. (2010). High-dimensional Ising model selection
    using l1-regularized logistic regression. *Annals of Statistics* 38, 1287-1319: the neighbourhoods
    of a graph of binary variables.
    """
    return _modes(SparseLogistic(intercept=intercept, tol=tol, max_iter=max_iter), X, y, rate)


def _modes(op, X, y, rate):
    X, y, rate = (real(x, name, op.title) for x, name in ((X, "X"), (y, "y"), (rate, "rate")))
    rate = for_columns(rate, X, op.title)
    return arrange(op, op.title, X, y, rate)


def for_columns(rate: "TensorVariable", X: "TensorVariable", title: str) -> "TensorVariable":
    """Return one rate for each column of X.

    Raises
    ------
    ValueError
        If both numbers are known and differ.
    """
    if rate.type.ndim == 0:
        return pt.full((X.shape[-1],), rate)
    have, want = rate.type.shape[-1], X.type.shape[-1] if X.type.ndim else None
    if None not in (have, want) and have != want:
        raise ValueError(f"{title}: there are {have} rates, X has {want} columns")
    return rate


def arrange(
    op: Any,
    title: str,
    X: "TensorVariable",
    y: "TensorVariable",
    rate: "TensorVariable",
    core: int = 1,
) -> "TensorVariable | list[TensorVariable]":
    """Apply to batches: responses to one design in one call, designs one after the other.

    Parameters
    ----------
    op : Op
        Of a design, stacked responses and rows of rates; gives stacked coefficients, intercepts.
    title : str
        For messages.
    X, y, rate : TensorVariable
        Shapes (..., n, p), (..., n) and (..., rates).
    core : int
        Dimensions of a response: one number for each row, or one for each row and category.

    Returns
    -------
    TensorVariable or list of TensorVariable
        Coefficients (..., p), with the intercepts (...) if the Op has them; followed by a dimension
        of categories if responses have one.
    """
    if X.type.ndim < 2 or y.type.ndim < core:
        kind = "a vector" if core == 1 else "a table"
        raise TypeError(
            f"{title} needs a matrix X and {kind} y, or batches of them; they have "
            f"{X.type.ndim} and {y.type.ndim} dimensions."
        )
    _check_lengths(title, X, y, core)
    if X.type.ndim > 2:
        inner = (slice(None),) * core
        stacked: Any = Blockwise(op)
        w, b = stacked(X, y[(..., None, *inner)], rate[..., None, :])
        w, b = w[(..., 0, *inner)], b[(..., 0, *inner[1:])]
    else:
        own = tuple(y.shape[i] for i in range(-core, 0))
        batch = tuple(pt.broadcast_shape(y[(..., *(0,) * core)], rate[..., 0]))
        rows = _rows(batch)
        responses = pt.broadcast_to(y, (*batch, *own)).reshape((rows, *own))
        rates = pt.broadcast_to(rate, (*batch, rate.shape[-1])).reshape((rows, rate.shape[-1]))
        w, b = op(X, responses, rates)
        last = own[1:]  # categories
        w, b = w.reshape((*batch, X.shape[-1], *last)), b.reshape((*batch, *last))
    return [w, b] if op.intercept else w


def _check_lengths(title, X, y, core):
    """Refuse lengths that are known and do not fit."""
    rows, responses = X.type.shape[-2], y.type.shape[-core]
    if None not in (rows, responses) and rows != responses:
        raise ValueError(f"{title}: X has {rows} rows, y has {responses} responses")


def _rows(batch):
    count = 1
    for length in batch:
        count = count * length
    return count


def real(x: "TensorLike", name: str, title: str) -> "TensorVariable":
    """Return a real tensor in double precision; columns of tables and lists of numbers are converted.

    Raises
    ------
    TypeError
        If it is complex or sparse.
    ValueError
        If it is text, or a column of a table has missing values.
    """
    x = pt.as_tensor_variable(x if _symbolic(x) else _values(x, f"{title}: {name}"))
    if x.type.dtype.startswith("complex"):
        raise TypeError(f"{title} works on real numbers; {name} is {x.type.dtype}.")
    return x if x.type.dtype == "float64" else pt.cast(x, "float64")


def _symbolic(x):
    if isinstance(x, list | tuple):
        return any(map(_symbolic, x))
    return isinstance(x, Variable)


def _values(x, name):
    """Values of an input that is not a tensor; missing values of tables are refused."""
    if hasattr(x, "toarray"):
        raise TypeError(f"{name} is a sparse matrix; give its toarray()")
    labels = getattr(x, "columns", None)
    is_column = hasattr(x, "to_numpy")  # or a table of them
    is_table = is_column and labels is not None
    array = np.asarray(table_numbers(x) if is_table else x)
    values = array if array.dtype.kind in "fiubc" else numbers(name, x)
    if (is_column or array.dtype.kind == "O") and np.isnan(values).any():
        column = np.isnan(values).reshape(len(values), -1).any(axis=0).argmax()
        where = f" in column {list(labels)[column]!r}" if is_table else ""
        raise ValueError(f"{name} has missing values{where}; leave out or impute those rows")
    return values


def modes(
    loss: Callable[[np.ndarray], Any],
    X: np.ndarray,
    Y: np.ndarray,
    rates: np.ndarray,
    intercept: bool,
    tol: float,
    max_iter: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve for each row of responses and of rates; NaN where input is invalid.

    Parameters
    ----------
    loss : type
        Of :mod:`bayesstruct.sparse.solvers.losses`, made from responses.
    X : (n, p) numpy.ndarray
    Y : (k, n) numpy.ndarray
    rates : (k, p) numpy.ndarray
    intercept, tol, max_iter
        As in `lasso`.

    Returns
    -------
    (k, p), (k,) numpy.ndarray
        Coefficients and intercepts.
    """
    W, b = np.full(rates.shape, np.nan), np.full(len(rates), np.nan)
    if 0 in X.shape or not np.isfinite(X).all() or Y.shape[1:] != X.shape[:1]:
        return W, b
    design = as_design(X, intercept=intercept)
    cache = None
    for k in np.flatnonzero(_valid(loss, Y, rates)):
        up = np.append(rates[k], 0.0) if intercept else rates[k].copy()
        problem = Problem(design, loss(np.ascontiguousarray(Y[k])), up, up)
        if cache is None or not problem.loss.quadratic:
            cache = GramCache(problem)
        try:
            certifier = Certifier(problem)
        except ValueError:  # unpenalised columns separate the labels
            continue
        start = certifier.null
        state = proximal_newton(
            problem, certifier, start=start, tol=tol, max_iter=max_iter, cache=cache
        )
        if state.gap <= _FOUND * certifier.null_objective:
            w = _polish(problem, state.w)
            W[k], b[k] = w[: len(rates[k])], w[-1] if intercept else 0.0
    return W, b


def _valid(loss, Y, rates):
    valid = np.isfinite(Y).all(axis=1) & (rates >= 0).all(axis=1)  # false for NaN
    if loss is Logistic:
        valid &= (Y >= 0).all(axis=1) & (Y <= 1).all(axis=1)
    return valid


def _polish(problem, w):
    """Newton steps on the present signs while they last and the slope falls."""
    active = np.flatnonzero((w != 0) | problem.free)
    if not len(active):
        return w
    block = problem.design.columns(active)
    signed = problem.up[active] * np.sign(w[active])
    best, least = w, np.inf
    for _ in range(_POLISH):
        z = block @ w[active]
        slope = block.T @ problem.loss.derivative(z) + signed
        size = np.abs(slope).max()
        if not size < least:
            return best
        best, least = w, size
        step = newton_solve(problem.design.gram(block, _curvature(problem.loss, z)), slope)
        w = w.copy()
        w[active] -= step
        flipped = np.sign(w[active]) != np.sign(best[active])
        if not np.isfinite(step).all() or (flipped & (problem.up[active] > 0)).any():
            return best
    return best


def _curvature(loss, z):
    return None if loss.quadratic else loss.curvature(z)


def newton_solve(H: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Solve a positive definite system; NaN if it is not numerically."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        factor = cho_factor(H, lower=True, check_finite=False)
    except LinAlgError:
        return np.full(len(g), np.nan)
    pivots = np.diagonal(factor[0])
    if not pivots.min() > 1e-7 * pivots.max():  # relative to the largest, squared: 1e-14
        return np.full(len(g), np.nan)
    return cho_solve(factor, g, check_finite=False)


def mode_cotangents(
    loss: Callable[[np.ndarray], Any],
    X: np.ndarray,
    Y: np.ndarray,
    rates: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    W_bar: np.ndarray,
    b_bar: np.ndarray,
    intercept: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cotangents of designs, responses and rates from those of coefficients and intercepts."""
    V, Q = np.zeros(W.shape), np.zeros(Y.shape)
    derivative, weighted = np.zeros(Y.shape), np.zeros(Y.shape)
    for k in range(len(W)):
        if not np.isfinite(W[k]).all():
            V[k] = Q[k] = derivative[k] = np.nan
            continue
        active = np.flatnonzero((W[k] != 0) | (rates[k] == 0))
        block = X[:, active]
        response = loss(Y[k])
        z = block @ W[k, active] + b[k]
        h = response.curvature(z)
        g = W_bar[k, active]
        if intercept:
            block = np.column_stack([block, np.ones(len(X))])
            g = np.append(g, b_bar[k])
        derivative[k] = response.derivative(z)
        if not g.any():
            continue
        left = block if response.quadratic else block * h[:, None]
        v = newton_solve(left.T @ block, g)
        Q[k] = block @ v
        weighted[k] = h * Q[k]
        V[k, active] = v[: len(active)]
    return design_cotangent(X, derivative, V, weighted, W), Q, -V * np.sign(W)


def design_cotangent(
    X: np.ndarray, derivative: np.ndarray, V: np.ndarray, weighted: np.ndarray, W: np.ndarray
) -> np.ndarray:
    """Return ``-(derivative' V + weighted' W)``, in the columns where V or W are not zero."""
    X_bar = np.zeros(X.shape)
    used = np.flatnonzero(((V != 0) | (W != 0)).any(axis=0))  # true for NaN
    W = np.where(np.isnan(W[:, used]), 0.0, W[:, used])  # V is NaN there
    X_bar[:, used] = -(derivative.T @ V[:, used] + weighted.T @ W)
    return X_bar


class ModeOp(InterpretedOp):
    """Op of a design, rows of responses and rows of rates to modes and intercepts."""

    def derivative_op(self):
        """Return the Op of the cotangents, from inputs, outputs and the outputs' cotangents."""
        raise NotImplementedError

    def infer_shape(self, node, input_shapes):
        """Rows of the responses, columns of the design."""
        rows = input_shapes[1][0]
        return [(rows, input_shapes[0][1]), (rows,)]

    def pullback(self, inputs, outputs, cotangents):
        """Implicit function theorem on the support of the mode."""
        if all(isinstance(c.type, DisconnectedType) for c in cotangents):
            return [disconnected_type() for _ in inputs]
        filled = [
            pt.zeros_like(out) if isinstance(c.type, DisconnectedType) else c
            for out, c in zip(outputs, cotangents, strict=True)
        ]
        return list(self.derivative_op()(*inputs, *outputs, *filled))


class _SparseMode(ModeOp):
    """Modes of several responses to one design."""

    __props__ = ("intercept", "tol", "max_iter")
    gufunc_signature = "(n,p),(k,n),(k,p)->(k,p),(k)"
    loss: Any = None
    title: Any = None
    derivative: Any = None

    def __init__(self, intercept=False, tol=1e-14, max_iter=200):
        self.intercept = truth("intercept", intercept)
        self.tol = number("tol", tol, least=0)
        self.max_iter = whole_number("max_iter", max_iter, 1)

    def make_node(self, X, y, rate):
        """Apply to a design, rows of responses and rows of rates."""
        self.register()
        X, y, rate = (real(x, name, self.title) for x, name in ((X, "X"), (y, "y"), (rate, "rate")))
        if (X.type.ndim, y.type.ndim, rate.type.ndim) != (2, 2, 2):
            raise TypeError(f"{type(self).__name__} works on matrices X, y and rate.")
        k = y.type.shape[0] if rate.type.shape[0] is None else rate.type.shape[0]
        p = X.type.shape[1] if rate.type.shape[1] is None else rate.type.shape[1]
        outputs = [pt.tensor(dtype="float64", shape=(k, p)), pt.tensor(dtype="float64", shape=(k,))]
        return Apply(self, [X, y, rate], outputs)

    def compute(self, X, y, rate):
        """Solve."""
        return modes(type(self).loss, X, y, rate, self.intercept, self.tol, self.max_iter)

    def derivative_op(self):
        """Return the Op of the cotangents."""
        return type(self).derivative(self.intercept)


class _SparsePullback(InterpretedOp):
    """Derivative of a `_SparseMode`; see `mode_cotangents`."""

    __props__ = ("intercept",)
    gufunc_signature = "(n,p),(k,n),(k,p),(k,p),(k),(k,p),(k)->(n,p),(k,n),(k,p)"
    loss: Any = None

    def __init__(self, intercept=False):
        self.intercept = bool(intercept)

    def make_node(self, *inputs):
        """Apply to inputs, outputs and cotangents of the mode."""
        self.register()
        inputs = [pt.as_tensor_variable(x) for x in inputs]
        outputs = [pt.tensor(dtype="float64", shape=x.type.shape) for x in inputs[:3]]
        return Apply(self, inputs, outputs)

    def compute(self, *inputs):
        """Compute the cotangents."""
        return mode_cotangents(type(self).loss, *inputs, self.intercept)

    def infer_shape(self, node, input_shapes):
        """Shapes of the mode's inputs."""
        return input_shapes[:3]


class LassoPullback(_SparsePullback):
    """Derivative of `Lasso`."""

    loss = Gaussian


class SparseLogisticPullback(_SparsePullback):
    """Derivative of `SparseLogistic`."""

    loss = Logistic


class Lasso(_SparseMode):
    """Modes of `lasso`, for rows of responses and of rates."""

    loss = Gaussian
    title = "lasso"
    derivative = LassoPullback


class SparseLogistic(_SparseMode):
    """Modes of `sparse_logistic`, for rows of responses and of rates."""

    loss = Logistic
    title = "sparse_logistic"
    derivative = SparseLogisticPullback
