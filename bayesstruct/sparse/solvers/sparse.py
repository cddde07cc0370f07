"""Posterior modes of regressions under sparse priors: one entry point, and paths over the rate."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.core.solution import Solution
from bayesstruct.data.arguments import number, numbers, whole_number
from bayesstruct.sparse.penalties.base import Penalty
from bayesstruct.sparse.penalties.group import Group
from bayesstruct.sparse.penalties.l1 import L1
from bayesstruct.sparse.solvers.categories import CategoryDesign
from bayesstruct.sparse.solvers.designs import Design, as_design, centred
from bayesstruct.sparse.solvers.general import GeneralRegression
from bayesstruct.sparse.solvers.groups import group_problem
from bayesstruct.sparse.solvers.losses import Custom, Loss, Multinomial, loss_for
from bayesstruct.sparse.solvers.proximal_newton import (
    NEAR,
    Certifier,
    GramCache,
    l1_problem,
    proximal_newton,
)

__all__ = ["SparseSolution", "check_start", "rates_of", "sparse_mode", "sparse_path"]


@dataclass(frozen=True, eq=False)
class SparseSolution(Solution):
    """A `Solution` whose estimate is a vector of coefficients.

    Attributes
    ----------
    coefficients : (p,) or (p, k) numpy.ndarray
        The mode; exact zeros off its support. One column for each category of a multinomial.
    intercept : float or (k,) numpy.ndarray
        The unpenalised constant, 0 without one.
    rate : float
        Rate of the penalty.
    method : str
        The solver that was chosen.
    gradient : numpy.ndarray
        Gradient of the loss in the coefficients, at the intercept that is best for them.
    classes : (k,) numpy.ndarray, optional
        Labels of a logistic or multinomial regression: a positive coefficient of a logistic one
        speaks for the second of two, column c of a multinomial's for label c.
    stalled : bool
        Whether the solver stopped short of its tolerance because rounding let it get no nearer.

    Notes
    -----
    The ``gap`` is infinite for a custom loss, whose dual function is not known: the solver stops when
    its optimality conditions hold.
    """

    coefficients: np.ndarray
    intercept: float | np.ndarray
    rate: float
    method: str
    gradient: np.ndarray
    classes: np.ndarray | None = None
    stalled: bool = False


def sparse_mode(
    X: ArrayLike,
    y: ArrayLike,
    *,
    family: str | Loss = "gaussian",
    penalty: Penalty | None = None,
    rate: float | None = None,
    groups: ArrayLike | None = None,
    intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int | None = None,
    start: SparseSolution | None = None,
) -> SparseSolution:
    r"""Mode of a regression's coefficients under a sparse prior.

    .. math:: \min_{w, b} \; \sum_i \ell(y_i, x_i' w + b) + \Omega(w)

    Parameters
    ----------
    X : (n, p) array_like, DataFrame or scipy.sparse matrix
        Predictors, used as they are: standardise them first if one prior is to suit all.
    y : (n,) array_like
        Responses, see `bayesstruct.sparse.solvers.losses.loss_for`.
    family : {"gaussian", "logistic", "multinomial", "poisson", "huber"} or Loss
        Loss of a response. Gaussian responses have unit variance: for a standard deviation
        :math:`\sigma` multiply the prior's rate by :math:`\sigma^2`.
    penalty : Penalty, optional
        Minus the log prior; ``L1(rate)`` unless given. A multinomial regression has (p, k)
        coefficients, flattened row by row.
    rate : float, optional
        Rate of the penalty, in place of its own.
    groups : (p,) array_like or sequence of sequences of int, optional
        Short for the penalty ``Group(rate, groups)``, Euclidean norms of groups.
    intercept : bool
        Add an unpenalised constant.
    tol : float
        Stop when the duality gap is at most this times the loss of the model without penalised
        coefficients (Poisson: half its deviance).
    max_iter : int, optional
        Maximum number of passes over the whole design matrix: 200 for proximal Newton steps, 20,000
        for quasi-Newton steps, which are many and cheap.
    start : SparseSolution, optional
        Warm start, of the same problem at another rate.

    Returns
    -------
    SparseSolution
        The estimate, its objective, its gap, and the ``method`` that found it.

    Raises
    ------
    ValueError
        If the table, the responses or the penalty cannot be used; the message names the remedy.

    Warns
    -----
    ConvergenceWarning
        If the gap is above `tol` after `max_iter` iterations.

    Notes
    -----
    Absolute values of coefficients, and (for dense columns) Euclidean norms of groups of them, under
    a loss with a second derivative are solved by proximal Newton steps, everything else by
    quasi-Newton soft-threshold steps; both on working sets, with a gap over all columns at the end.
    The steps of a multinomial regression have the full Hessian between categories.

    The likelihood of a multinomial does not change when a number is added to all intercepts: they
    sum to zero. With an even number of categories absolute values may also leave an interval of
    shifts of a column's coefficients, of which any is returned.

    The sum over the rows is not divided by their number, so the rate is that of the prior, not of
    an average loss.

    With an intercept, columns whose mean is far off zero are centred on the way, which changes
    the intercept only and is undone.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.solvers import sparse_mode
    >>> sparse_mode(np.eye(3), [3.0, 0.2, -2.0], rate=1.0, intercept=False).coefficients
    array([ 2.,  0., -1.])
    """
    if groups is not None:
        penalty = _of_groups(penalty, rate, groups)
    penalty = _with_rate(penalty, rate)
    tol, max_iter = _stop(tol, max_iter)
    solver = _problem(X, y, family, intercept, penalty)
    if start is not None:
        check_start(start, solver.shape)
    solution = solver.solve(penalty, tol, max_iter, start)
    solution.warn_unless_converged("sparse_mode", _advice(solution))
    return solution


def sparse_path(
    X: ArrayLike,
    y: ArrayLike,
    *,
    family: str | Loss = "gaussian",
    penalty: Penalty | None = None,
    rates: ArrayLike | None = None,
    intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int | None = None,
) -> list[SparseSolution]:
    """Modes at a sequence of rates, each started at the one before.

    Parameters
    ----------
    X, y, family, penalty, intercept, tol, max_iter
        As in `sparse_mode`; the rate of the penalty is ignored.
    rates : (k,) array_like, optional
        Rates, best in falling order. By default 30 from the smallest at which the mode is zero
        down to a hundredth of it.

    Returns
    -------
    list of SparseSolution
        One for each rate.

    Notes
    -----
    Where working sets are used (see `sparse_mode`), the first one at each rate leaves out what the
    strong rule discards. The rule may err, so all columns are checked before a mode is accepted.

    References
    ----------
    Tibshirani, R., Bien, J., Friedman, J., Hastie, T., Simon, N., Taylor, J., Tibshirani, R. J.
    (2012). Strong rules for discarding predictors in lasso-type problems. *JRSS B* 74(2), 245-266.
    """
    tol, max_iter = _stop(tol, max_iter)
    # At a rate of one: a rate of zero would leave every coefficient free.
    penalty = _with_rate(penalty, 1.0)
    path = _problem(X, y, family, intercept, penalty)
    if rates is None:
        # Where no coefficient would ever move, any rate serves.
        rates = (path.rate_max or 1.0) * np.geomspace(1.0, 0.01, 30)
    solutions, last = [], None
    for rate in rates_of(rates):
        last = path.solve(penalty.with_rate(rate), tol, max_iter, last)
        solutions.append(last)
    bad = [s for s in solutions if not s.converged]
    if bad:
        bad[0].warn_unless_converged(
            f"sparse_path at {len(bad)} of {len(solutions)} rates", _advice(bad[0])
        )
    return solutions


def rates_of(rates: ArrayLike) -> np.ndarray:
    """Return the rates of a path as an array.

    Raises
    ------
    ValueError
        If they are not a row of numbers, at least one.
    """
    rates = numbers("`rates`", rates, flags=False)
    if rates.ndim != 1 or not len(rates):
        raise ValueError(f"`rates` must be a list of numbers, they have shape {rates.shape}")
    return rates


def _advice(solution):
    if not np.isfinite(solution.objective):
        return "Sums overflow: divide columns or responses of extreme size by a power of ten."
    if solution.stalled:
        return (
            "It made no more progress: the accuracy of floating-point numbers is reached. Raise `tol` or the "
            "rate, and scale columns of extreme size."
        )
    return "Raise `max_iter` or `tol`."


def _stop(tol, max_iter):
    tol = number("tol", tol, least=0)
    return tol, None if max_iter is None else whole_number("max_iter", max_iter, 1)


def check_start(start: SparseSolution, shape: tuple) -> None:
    """Refuse a start that is not the solution of a problem of the same shape.

    Raises
    ------
    TypeError
        If it is not a solution.
    ValueError
        If its coefficients have another shape.
    """
    if not isinstance(start, SparseSolution):
        raise TypeError(f"`start` must be a result of sparse_mode, not {type(start).__name__}")
    if start.coefficients.shape != shape:
        raise ValueError(
            f"`start` has coefficients of shape {start.coefficients.shape}, those of this problem "
            f"have shape {shape}; leave it out"
        )


def _with_rate(penalty, rate):
    if penalty is None:
        if rate is None:
            raise ValueError("give a `rate`, or a `penalty` such as L1(rate)")
        return L1(rate)
    if not isinstance(penalty, Penalty):
        raise TypeError(
            f"`penalty` must be an object such as L1(rate) or Group(rate, groups), not {penalty!r}"
        )
    return penalty if rate is None else penalty.with_rate(rate)


def _of_groups(penalty, rate, groups):
    if penalty is not None:
        raise ValueError("give `groups` or a `penalty`, which has groups of its own, not both")
    if rate is None:
        raise ValueError("`groups` need a `rate`, that of Group(rate, groups)")
    return Group(rate, groups)


@dataclass(frozen=True, eq=False)
class _Regression:
    design: Design
    loss: Loss


def _problem(X, y, family, intercept, penalty):
    """Check the data and choose the solver."""
    design, loss = as_design(X, intercept=intercept), loss_for(family, y)
    if len(loss.shape) and loss.shape[0] != design.n:
        raise ValueError(f"`X` has {design.n} rows, `y` has {loss.shape[0]}")
    _refuse_overflow(loss)
    design, means = centred(design)
    solver = _solver(_Regression(design, loss), penalty)
    return solver if means is None else _Centred(solver, means)


def _refuse_overflow(loss):
    """Refuse responses whose loss exceeds the largest number: no gap can be computed then."""
    if isinstance(loss, Custom):
        return
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(loss.value(np.zeros(loss.shape)))
    if not finite:
        raise ValueError(
            "the responses are so large that their loss is not finite; divide them and the rate "
            "by a power of ten"
        )


class _Centred:
    """A solver that works on centred columns, seen from outside."""

    def __init__(self, solver, means: np.ndarray):
        self.solver, self.means, self.shape = solver, means, solver.shape

    @property
    def rate_max(self) -> float:
        """Smallest rate at which all penalised coefficients are zero."""
        return self.solver.rate_max

    def solve(self, penalty, tol, max_iter, start) -> SparseSolution:
        start = None if start is None else self._shifted(start, 1.0)
        return self._shifted(self.solver.solve(penalty, tol, max_iter, start), -1.0)

    def _shifted(self, solution, sign):
        intercept = solution.intercept + sign * (self.means @ solution.coefficients)
        return replace(solution, intercept=_intercept(intercept))


def _solver(regression, penalty):
    """Choose the fast solver where it applies, the general one elsewhere."""
    design, loss = regression.design, regression.loss
    if isinstance(loss, Multinomial):
        regression = _Regression(CategoryDesign(design, loss.shape[1]), loss)
    if isinstance(penalty, L1) and not isinstance(loss, Custom):
        return _Newton(regression, penalty)
    plain = isinstance(penalty, Group) and penalty.norm == 2
    if plain and not design.sparse and not isinstance(loss, Custom):
        return _GroupNewton(regression, penalty)
    return _SoftThreshold(_Regression(design, loss), penalty)


def _intercept(value):
    """Return a number; of a multinomial the constants of sum zero, as a shift changes nothing."""
    value = np.squeeze(value)
    return float(value) if value.ndim == 0 else value - value.mean()


class _Newton:
    """Proximal Newton steps; the null model and Gram matrices are shared by all rates."""

    def __init__(self, regression: _Regression, penalty: Penalty):
        self.design, self.loss, self.penalty = regression.design, regression.loss, penalty
        problem = self._at(penalty)
        self.certifier = Certifier(problem)
        self.cache = GramCache(problem)
        self.p = self.design.p - self.design.extra
        k = self.loss.shape[1:]  # categories of a multinomial
        self.shape = (self.p // k[0], *k) if k else (self.p,)
        self.last: Any = None

    @property
    def rate_max(self) -> float:
        """Smallest rate at which all penalised coefficients are zero."""
        return self.penalty.rate_max(self.certifier.null_gradient[: self.p])

    def solve(self, penalty, tol, max_iter, start) -> SparseSolution:
        w, known = self._start(start, penalty.rate)
        state = proximal_newton(
            self._at(penalty),
            self.certifier,
            start=w,
            tol=tol,
            max_iter=200 if max_iter is None else max_iter,
            cache=self.cache,
            **known,
        )
        solution = SparseSolution(
            objective=state.objective,
            gap=state.gap,
            iterations=state.iterations,
            converged=bool(
                np.isfinite(state.gap) and state.gap <= tol * self.certifier.null_objective
            ),
            coefficients=state.w[: self.p].reshape(self.shape),
            intercept=self._constant(state.w[self.p :]),
            rate=penalty.rate,
            method="proximal Newton",
            gradient=state.gradient[: self.p].reshape(self.shape),
            classes=self.loss.classes,
            stalled=state.stalled,
        )
        self.last = solution, state
        return solution

    def _constant(self, values):
        return _intercept(values if len(values) else np.zeros(self.loss.shape[1:]))

    def _start(self, start, rate):
        """Point to start from; on a path the gradient there, and the strong rule's bound on it.

        Gradients rarely move faster than their bounds: those below twice the new rate minus the old
        one will not reach it (Tibshirani et al. 2012, equation 20), and are not let in until a look
        at all columns says otherwise.
        """
        if start is None:
            return self.certifier.null, {}
        if self.last is None or start.coefficients is not self.last[0].coefficients:
            return _flat(start, self.design), {}
        solution, state = self.last
        if not 0 < rate <= solution.rate:
            return state.w, {"gradient": state.gradient}
        near = max(2.0 - solution.rate / rate, NEAR)
        return state.w, {"gradient": state.gradient, "near": near}

    def _at(self, penalty):
        return l1_problem(self.design, self.loss, penalty)


def _flat(solution, design):
    w = np.ravel(solution.coefficients)
    return np.append(w, solution.intercept) if design.intercept else w


class _GroupNewton(_Newton):
    """The same for Euclidean norms of groups."""

    def _at(self, penalty):
        return group_problem(self.design, self.loss, penalty)


class _SoftThreshold:
    """Quasi-Newton soft-threshold steps."""

    def __init__(self, regression: _Regression, penalty: Penalty):
        self.penalty = penalty
        self.problem = GeneralRegression(regression.design, regression.loss, penalty)
        self.shape = (self.problem.p, *regression.loss.shape[1:])

    @property
    def rate_max(self) -> float:
        """Smallest rate at which all penalised coefficients are zero."""
        return self.penalty.rate_max(self.problem.null_gradient)

    def solve(self, penalty, tol, max_iter, start) -> SparseSolution:
        first = self.problem.null if start is None else _flat(start, self.problem.design)
        state = self.problem.solve(
            penalty, first, tol=tol, max_iter=20_000 if max_iter is None else max_iter
        )
        single = len(self.problem.loss.shape) == 1
        return SparseSolution(
            objective=state.objective,
            gap=state.gap,
            iterations=state.evaluations,
            converged=state.converged,
            coefficients=state.W[:, 0] if single else state.W,
            intercept=float(state.b[0]) if single else state.b,
            rate=penalty.rate,
            method="quasi-Newton soft-threshold",
            gradient=state.gradient[:, 0] if single else state.gradient,
            classes=self.problem.loss.classes,
            stalled=state.stalled,
        )
