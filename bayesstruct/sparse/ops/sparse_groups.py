r"""Modes of regressions under priors of groups as PyTensor operations.

On the support A of the mode, the coefficients all of whose groups are not zero, penalty and loss are
smooth and the gradient vanishes: :math:`X_A' \ell'(z) + \sum_g r_g w_{gA} / \|w_g\| = 0`. With the
Hessian H of the objective on A, a cotangent :math:`\bar w` gives, for
:math:`v = H^{-1} \bar w_A` and :math:`q = X_A v`,

.. math::

    \bar y = q, \qquad \bar r_g = -\frac{w_g' v_g}{\|w_g\|}, \qquad
    \bar X_A = -(\ell'(z) v' + D q w_A').
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from numpy.typing import ArrayLike
from pytensor.graph.basic import Apply

from bayesstruct.core.ops import InterpretedOp
from bayesstruct.data.arguments import truth, whole_number
from bayesstruct.sparse.ops.sparse import ModeOp, arrange, design_cotangent, newton_solve, real
from bayesstruct.sparse.penalties.group import Group
from bayesstruct.sparse.penalties.structure import Structure
from bayesstruct.sparse.penalties.tree import Tree
from bayesstruct.sparse.solvers.designs import as_design
from bayesstruct.sparse.solvers.groups import group_problem
from bayesstruct.sparse.solvers.losses import Gaussian, Logistic
from bayesstruct.sparse.solvers.proximal_newton import Certifier, GramCache, proximal_newton
from bayesstruct.sparse.solvers.soft_threshold import soft_threshold_steps

if TYPE_CHECKING:
    from pytensor.tensor import TensorLike
    from pytensor.tensor.variable import TensorVariable

__all__ = ["GroupMode", "group_lasso", "tree_lasso"]

_FAMILIES = {"gaussian": Gaussian, "logistic": Logistic}
# Tolerances between which Newton steps on the support are tried: residuals of the descent, and gaps,
# which are squares, of proximal Newton steps.
_ROUNDS = (1e-3, 1e-5, 1e-7, 1e-9)
_NEWTON_ROUNDS = (1e-9, 1e-14)
_EXACT = 1e-11  # residual, relative to the largest gradient, at which the mode is final
_ROUNDED = 1e-14  # at which Newton steps on the support gain nothing
_GOOD = 1e-8  # at which it is accepted in the end
_POLISH = 50


def group_lasso(
    X: "TensorLike",
    y: "TensorLike",
    groups: ArrayLike | Sequence[ArrayLike],
    rate: "TensorLike",
    *,
    weights: ArrayLike | None = None,
    family: str = "gaussian",
    intercept: bool = False,
    max_iter: int = 200,
) -> "TensorVariable | list[TensorVariable]":
    r"""Mode of a regression's coefficients under the group-Laplace prior.

    .. math:: \min_{w, b} \; L(X w + b) + \lambda \sum_A a_A \|w_A\|_2

    Parameters
    ----------
    X : tensor_like, shape (..., n, p)
        Predictors.
    y : tensor_like, shape (..., n)
        Responses: numbers of unit noise variance, or labels 0 and 1 (or probabilities).
    groups : (p,) array_like of int, or list of array_like of int
        As in :class:`bayesstruct.penalties.Group`; coefficients in no group are without penalty.
    rate : tensor_like
        :math:`\lambda`: a number, or shape (..., groups), one for each in the order of the labels;
        finite.
    weights : (groups,) array_like, optional
        :math:`a_A`, constants, 1 by default.
    family : {"gaussian", "logistic"}
        Half the sum of squares, or the Bernoulli loss.
    intercept : bool
        Add an unpenalised constant b, and return it too.
    max_iter : int
        Maximum number of passes over all columns.

    Returns
    -------
    TensorVariable, shape (..., p)
        The mode, with exact zeros; all NaN where input is invalid, unpenalised columns separate
        labels, or no mode was found to a relative residual of 1e-8 (it is 1e-11 or less normally).
        With an intercept, a list of this and the intercepts, (...).

    Raises
    ------
    TypeError
        If ``X`` has fewer than two dimensions, ``y`` none, or one of the inputs is complex.
    ValueError
        If the family is unknown, or the groups cannot be used or do not fit ``X``.

    Notes
    -----
    The derivatives in ``X``, ``y`` and ``rate`` are exact where no group is on the verge of leaving or
    entering, and NaN where the objective is flat in some direction on the support. Proximal Newton
    steps on working sets of groups, as in :func:`bayesstruct.solvers.sparse_mode`, finished by Newton
    steps on the support.

    References
    ----------
    Yuan, M. and Lin, Y. (2006). Model selection and estimation in regression with grouped variables.
    *JRSS B* 68, 49-67. -- Vaiter, S. et al. (2012). The degrees of freedom of the group lasso. *ICML*
    (the derivative).

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct import ops
    >>> ops.group_lasso(np.eye(3), [3.0, 4.0, 0.5], [0, 0, 1], 1.0).eval().round(10)
    array([2.4, 3.2, 0. ])
    """
    penalty = Group(1.0, groups, weights=weights)
    return _modes(penalty, "group_lasso", X, y, rate, family, intercept, max_iter)


def tree_lasso(
    X: "TensorLike",
    y: "TensorLike",
    groups: Sequence[ArrayLike] | None,
    rate: "TensorLike",
    *,
    parents: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    family: str = "gaussian",
    intercept: bool = False,
    max_evaluations: int = 10_000,
) -> "TensorVariable | list[TensorVariable]":
    r"""Mode of a regression's coefficients under the prior of nested groups.

    .. math:: \min_{w, b} \; L(X w + b) + \lambda \sum_g a_g \|w_g\|_2

    Parameters
    ----------
    X, y, family, intercept
        As in `group_lasso`.
    groups : list of array_like of int, or None
        As in :class:`bayesstruct.penalties.Tree`.
    rate : tensor_like
        :math:`\lambda`, a finite number.
    parents : (p,) array_like of int
        Instead of ``groups``: parent of each coefficient, -1 for roots.
    weights : (groups,) array_like, optional
        :math:`a_g`, constants, 1 by default.
    max_evaluations : int
        Maximum number of evaluations of the loss in each of the four rounds of descent.

    Returns
    -------
    TensorVariable, shape (..., p)
        As in `group_lasso`.

    Raises
    ------
    TypeError, ValueError
        As in `group_lasso`.

    Notes
    -----
    Derivatives are as those of `group_lasso`. Descent by Barzilai-Borwein soft-threshold steps
    (:func:`bayesstruct.solvers.optimizers.soft_threshold`), finished by Newton steps on the support.

    References
    ----------
    Jenatton, R., Mairal, J., Obozinski, G., Bach, F. (2011). Proximal methods for hierarchical
    sparse coding. *JMLR* 12, 2297-2334.
    """
    if (groups is None) == (parents is None):
        raise ValueError("give either `groups` or `parents`")
    if parents is not None:
        penalty = Tree.from_parents(1.0, parents, weights=weights)
    else:
        penalty = Tree(1.0, groups, weights=weights)
    return _modes(penalty, "tree_lasso", X, y, rate, family, intercept, max_evaluations)


def _modes(penalty, title, X, y, rate, family, intercept, max_iter):
    if not isinstance(family, str) or family not in _FAMILIES:
        raise ValueError(f"`family` must be one of {sorted(_FAMILIES)}, it is {family!r}")
    structure = Structure.of(penalty)
    X, y, rate = (real(x, name, title) for x, name in ((X, "X"), (y, "y"), (rate, "rate")))
    columns = X.type.shape[-1:]
    if columns and columns[0] not in {None, structure.size}:
        raise ValueError(
            f"X has {columns[0]} columns, and the groups hold {structure.size} coefficients"
        )
    op = GroupMode(structure, family, intercept, max_iter)
    used = penalty.weights if isinstance(penalty, Group) else structure.arrays[0]
    rates = pt.full((len(used),), rate) if rate.type.ndim == 0 else rate
    if rate.type.ndim > 0 and isinstance(penalty, Tree):
        raise TypeError(
            "tree_lasso takes one rate; put rates that differ between groups into `weights`."
        )
    return arrange(op, title, X, y, rates * used)


class _Regression:
    """One design, and the products that the losses of several responses share."""

    def __init__(self, X, structure, family, intercept):
        self.p, self.intercept = X.shape[1], intercept
        self.X = np.column_stack([X, np.ones(len(X))]) if intercept else np.ascontiguousarray(X)
        self.design = as_design(X, intercept=intercept)
        self.structure, self.loss = structure, _FAMILIES[family]
        groups = replace(structure.penalty.groups, size=self.X.shape[1])
        self.kind = Group if isinstance(structure.penalty, Group) else Tree
        self.groups = groups
        self.gram = self.cache = None
        self.flat = np.concatenate(structure.members)
        self.starts = np.cumsum([0, *(len(group) for group in structure.members)])[:-1]

    def prepare(self):
        """Compute what many evaluations of a quadratic loss save time by."""
        if self.kind is Tree and self.loss.quadratic and self.X.shape[0] > self.X.shape[1]:
            self.gram = self.X.T @ self.X
        return self

    def penalty(self, rates):
        """Return the penalty with these rates of its groups."""
        if self.kind is Group:
            return Group(1.0, self.groups, weights=rates)
        weights = np.zeros(1 + self.groups.given.max())
        weights[self.groups.given] = rates
        return Tree(1.0, self.groups, weights=weights)

    def objective(self, loss):
        """Value and gradient of the loss in the coefficients."""
        if self.gram is None:

            def from_rows(w):
                z = self.X @ w
                return loss.value(z), self.X.T @ loss.derivative(z)

            return from_rows
        target, square = self.X.T @ loss.y, 0.5 * loss.y @ loss.y

        def from_gram(w):
            product = self.gram @ w
            return w @ (0.5 * product - target) + square, product - target

        return from_gram

    def solve(self, y, rates, max_iter):
        """Mode of one response, or NaN."""
        loss, penalty = self.loss(np.ascontiguousarray(y)), self.penalty(rates)
        objective = self.objective(loss)
        w = np.zeros(self.X.shape[1])
        scale = max(np.abs(objective(w)[1]).max(), np.finfo(float).tiny)
        best, least = w, penalty.residual(w, objective(w)[1])
        rounds = _ROUNDS if self.kind is Tree else _NEWTON_ROUNDS
        for tol in rounds:
            if least <= _EXACT * scale:
                break
            if self.kind is Tree:
                w = self._descend(objective, penalty, best, tol * scale, max_iter)
            else:
                w = self._newton(loss, rates, best, tol, max_iter)
            if w is None:
                return np.full(len(best), np.nan)
            for candidate in (w, self._polish(loss, penalty, rates, w, _ROUNDED * scale)):
                residual = penalty.residual(candidate, objective(candidate)[1])
                if residual < least:
                    best, least = candidate, residual
        return best if least <= _GOOD * scale else np.full(len(w), np.nan)

    def _descend(self, objective, penalty, start, tol, max_evaluations):
        """Barzilai-Borwein soft-threshold steps until a residual is at most ``tol``."""
        options = {"step": "barzilai_borwein", "tol": tol, "max_evaluations": max_evaluations}
        return soft_threshold_steps(objective, start, penalty, **options).coefficients

    def _newton(self, loss, rates, start, tol, max_iter):
        """Proximal Newton steps until a gap is at most ``tol``, relatively; None if there is no mode."""
        penalty = Group(1.0, self.structure.penalty.groups, weights=rates)
        problem = group_problem(self.design, loss, penalty)
        if self.cache is None or not loss.quadratic:
            self.cache = GramCache(problem)
        try:
            certifier = Certifier(problem)
        except ValueError:  # unpenalised columns separate the labels
            return None
        start = start if start.any() else certifier.null
        options = {"start": start, "tol": tol, "max_iter": max_iter, "cache": self.cache}
        return proximal_newton(problem, certifier, **options).w

    def _polish(self, loss, penalty, rates, w, enough):
        """Newton steps on the support while the slope falls, until it is at most ``enough``."""
        support = np.flatnonzero(penalty.support(w))
        if not len(support):
            return w
        best, least = w, np.inf
        for _ in range(_POLISH):
            slope = self.slope(loss, rates, w, support)
            size = np.abs(slope).max()
            if not size < least:
                break
            best, least = w, size
            if size <= enough:
                break
            w = w.copy()
            w[support] -= newton_solve(self.hessian(loss, rates, best, support), slope)
            if not np.isfinite(w).all():
                break
        return best

    def slope(self, loss, rates, w, support):
        """Gradient of the objective on the support."""
        block = self.X[:, support]
        slope = block.T @ loss.derivative(block @ w[support])
        for rate, at, direction, _ in self.directions(rates, w, support):
            slope[at] += rate * direction
        return slope

    def hessian(self, loss, rates, w, support):
        """Hessian of the objective on the support."""
        if self.gram is not None:
            H = self.gram[np.ix_(support, support)]
        else:
            block = self.X[:, support]
            h = loss.curvature(block @ w[support])
            H = block.T @ (block if loss.quadratic else h[:, None] * block)
        for rate, at, direction, norm in self.directions(rates, w, support):
            bend = np.eye(len(at)) - np.outer(direction, direction)
            H[np.ix_(at, at)] += rate / norm * bend
        return H

    def directions(self, rates, w, support):
        """Rates, places in the support, directions and norms of the groups that are not zero."""
        place = np.full(len(w), -1)
        place[support] = np.arange(len(support))
        norms = self.norms(w)
        for g in np.flatnonzero((norms > 0) & (rates > 0)):
            group = self.structure.members[g]
            inside = group[place[group] >= 0]
            yield rates[g], place[inside], w[inside] / norms[g], norms[g]

    def norms(self, w):
        """Norm of each group."""
        return np.sqrt(np.add.reduceat(w[self.flat] ** 2, self.starts))


def modes(
    structure: Structure,
    family: str,
    X: np.ndarray,
    Y: np.ndarray,
    rates: np.ndarray,
    intercept: bool,
    max_iter: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve for each row of responses and rates; NaN where input is invalid.

    Returns
    -------
    (k, p), (k,) numpy.ndarray
        Coefficients and intercepts.
    """
    if X.shape[1] != structure.size or Y.shape[1] != len(X):
        raise ValueError(
            f"X has {len(X)} rows and {X.shape[1]} columns, y {Y.shape[1]} entries, and the groups hold "
            f"{structure.size} coefficients"
        )
    W, b = np.full((len(Y), X.shape[1]), np.nan), np.full(len(Y), np.nan)
    if not len(X) or not np.isfinite(X).all():
        return W, b
    regression = _Regression(X, structure, family, intercept).prepare()
    valid = np.isfinite(Y).all(axis=1) & (np.isfinite(rates) & (rates >= 0)).all(axis=1)
    if family == "logistic":
        valid &= (Y >= 0).all(axis=1) & (Y <= 1).all(axis=1)
    for k in np.flatnonzero(valid):
        w = regression.solve(Y[k], rates[k], max_iter)
        W[k], b[k] = w[: X.shape[1]] + 0.0, w[-1] if intercept else 0.0  # no negative zeros
    b[np.isnan(W).any(axis=1)] = np.nan
    return W, b


def mode_cotangents(
    structure: Structure,
    family: str,
    intercept: bool,
    X: np.ndarray,
    Y: np.ndarray,
    rates: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    W_bar: np.ndarray,
    b_bar: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cotangents of designs, responses and rates from those of coefficients and intercepts."""
    V, Q, rates_bar = np.zeros(W.shape), np.zeros(Y.shape), np.zeros(rates.shape)
    derivative, weighted = np.zeros(Y.shape), np.zeros(Y.shape)
    regression = _Regression(X, structure, family, intercept)
    for k in range(len(W)):
        if np.isnan(W[k]).any():
            V[k] = Q[k] = rates_bar[k] = np.nan
            continue
        w, g = W[k], W_bar[k]
        if intercept:
            w, g = np.append(w, b[k]), np.append(g, b_bar[k])
        loss = regression.loss(Y[k])
        support = np.flatnonzero(regression.penalty(rates[k]).support(w))
        if not g[support].any():
            continue
        v = np.zeros(len(w))
        v[support] = newton_solve(regression.hessian(loss, rates[k], w, support), g[support])
        z, q = regression.X[:, support] @ w[support], regression.X[:, support] @ v[support]
        V[k], Q[k] = v[: X.shape[1]], q
        derivative[k], weighted[k] = loss.derivative(z), loss.curvature(z) * q
        norms = regression.norms(w)
        inner = np.add.reduceat((w * v)[regression.flat], regression.starts)
        rates_bar[k] = np.where(norms > 0, -inner / np.where(norms > 0, norms, 1.0), 0.0)
    return design_cotangent(X, derivative, V, weighted, W), Q, rates_bar


class GroupMode(ModeOp):
    """Modes of several responses to one design, under one structure of groups."""

    __props__ = ("structure", "family", "intercept", "max_iter")
    gufunc_signature = "(n,p),(k,n),(k,g)->(k,p),(k)"

    def __init__(self, structure, family="gaussian", intercept=False, max_iter=10_000):
        self.structure, self.family = structure, family
        self.intercept = truth("intercept", intercept)
        self.max_iter = whole_number("max_iter", max_iter, 1)

    def make_node(self, X, y, rates):
        """Apply to a design, rows of responses and rows of the rates of the groups."""
        self.register()
        inputs = [real(x, name, "GroupMode") for x, name in ((X, "X"), (y, "y"), (rates, "rate"))]
        if any(x.type.ndim != 2 for x in inputs):
            raise TypeError("GroupMode works on matrices X, y and rates.")
        k = inputs[1].type.shape[0]
        outputs = [
            pt.tensor(dtype="float64", shape=(k, self.structure.size)),
            pt.tensor(dtype="float64", shape=(k,)),
        ]
        return Apply(self, inputs, outputs)

    def compute(self, X, y, rates):
        """Solve."""
        options = self.intercept, self.max_iter
        return modes(self.structure, self.family, X, y, rates, *options)

    def derivative_op(self):
        """Return the Op of the cotangents."""
        return GroupModePullback(self.structure, self.family, self.intercept)


class GroupModePullback(InterpretedOp):
    """Derivative of `GroupMode`; see `mode_cotangents`."""

    __props__ = ("structure", "family", "intercept")
    gufunc_signature = "(n,p),(k,n),(k,g),(k,p),(k),(k,p),(k)->(n,p),(k,n),(k,g)"

    def __init__(self, structure, family="gaussian", intercept=False):
        self.structure, self.family, self.intercept = structure, family, bool(intercept)

    def make_node(self, *inputs):
        """Apply to inputs, outputs and cotangents of the mode."""
        self.register()
        inputs = [pt.as_tensor_variable(x) for x in inputs]
        outputs = [pt.tensor(dtype="float64", shape=x.type.shape) for x in inputs[:3]]
        return Apply(self, inputs, outputs)

    def compute(self, *inputs):
        """Compute the cotangents."""
        return mode_cotangents(self.structure, self.family, self.intercept, *inputs)

    def infer_shape(self, node, input_shapes):
        """Shapes of the mode's inputs."""
        return input_shapes[:3]
