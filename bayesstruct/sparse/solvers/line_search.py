r"""Line searches of the methods for expensive objectives.

.. math:: \min_x F(x) = L(x) + \Omega(x)

where one value of the smooth, convex :math:`L`, with its gradient, costs more than everything else:
the partition function of a Markov random field, say. So evaluations are counted and never repeated,
and the rest takes O(m p) operations for each of them. A method says along which path to look for
the next point; the loop here backtracks on it and stops on the residual of the optimality
conditions.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.core.solution import Solution
from bayesstruct.sparse.penalties.base import Penalty
from bayesstruct.sparse.solvers.lbfgs import CompactMatrix

__all__ = [
    "Descent",
    "Objective",
    "Point",
    "SmoothSolution",
    "SpectralStep",
    "active_set",
    "backtrack",
    "check_start",
    "cubic_step",
    "descend",
    "first_step",
    "quadratic_model",
    "solve",
]

_ARMIJO = 1e-4
_SHRINK = 1e-3, 0.6  # a rejected step is multiplied by something between
_LEAST_STEP = 1e-12  # of the first one tried
_SPECTRAL = 1e-10, 1e10  # bounds of the step of Barzilai and Borwein
_ROUNDING = 1e-12  # of the objective, relative: differences below it decide nothing
_LESS = 0.9  # of the residual, for steps whose values say nothing
_LOOSE = 0.1  # of the residual, while working sets grow
_PATIENCE = 100  # evaluations without a better value or residual


@dataclass(frozen=True, eq=False)
class SmoothSolution(Solution):
    """A `Solution` found through values and gradients of a smooth function.

    The ``gap`` is no bound on the objective, for which a dual function would be needed: it is the
    residual of the optimality conditions, `Penalty.residual`, in units of the gradient.

    Attributes
    ----------
    coefficients : (p,) numpy.ndarray
        The mode; exact zeros off its support.
    evaluations : int
        Values and gradients that were asked for.
    """

    coefficients: np.ndarray
    evaluations: int


class Point(NamedTuple):
    """An evaluated point.

    Attributes
    ----------
    x : (p,) numpy.ndarray
        Where.
    value : float
        Objective with its penalty.
    gradient : (p,) numpy.ndarray
        Gradient of the smooth part.
    """

    x: np.ndarray
    value: float
    gradient: np.ndarray


class Objective:
    """A smooth function plus a penalty, with its evaluations counted.

    Parameters
    ----------
    value_and_gradient : callable
        Takes (p,) coefficients, returns a float and the (p,) gradient. The value may be infinite or
        NaN outside of its domain, from where line searches turn back, but not at the start.
    penalty : Penalty or None
        Penalty that is added to it.
    max_evaluations : int
        Maximum number of calls.
    """

    def __init__(self, value_and_gradient: Callable, penalty: Penalty | None, max_evaluations: int):
        self._call, self.penalty, self._max_evaluations = (
            value_and_gradient,
            penalty,
            max_evaluations,
        )
        self.evaluations = 0

    @property
    def exhausted(self) -> bool:
        """Whether no call is left."""
        return self.evaluations >= self._max_evaluations

    def __call__(self, x: np.ndarray) -> Point:
        """Evaluate a point; outside of the domain its value is infinite."""
        self.evaluations += 1
        value, gradient = self._call(x.copy())  # the callable may keep or change its argument
        value = float(value)
        if not np.isfinite(value):
            return Point(x, value, np.full(len(x), np.nan))
        gradient = np.array(gradient, dtype=np.float64)
        if gradient.shape != x.shape:
            raise ValueError(
                f"value_and_gradient returned a gradient of shape {gradient.shape} for "
                f"{len(x)} coefficients"
            )
        if not np.isfinite(gradient).all():
            raise ValueError(
                f"the gradient is not finite at coefficient {np.flatnonzero(~np.isfinite(gradient))[0]} "
                f"while the objective is {value:.6g}; it must be infinite outside of its domain"
            )
        return Point(x, value + (self.penalty.value(x) if self.penalty else 0.0), gradient)

    def start(self, x: np.ndarray) -> Point:
        """Evaluate the start, where the objective has to be finite."""
        point = self(x)
        if not np.isfinite(point.value):
            raise ValueError(
                f"the objective is {point.value} at the start; give a `start` inside its domain"
            )
        return point

    def slope_from(self, new: Point, s: np.ndarray) -> float:
        """Return the derivative along a step, at its end and from the side of its start."""
        slope = float(new.gradient @ s)
        return slope - self.penalty.directional_derivative(new.x, -s) if self.penalty else slope


class Descent(ABC):
    """Path on which the next point is sought; the state of a method between evaluations."""

    @abstractmethod
    def residual(self, point: Point) -> float:
        """How far the point is from optimal."""

    @abstractmethod
    def aim(self, point: Point) -> float:
        """Choose the path from a point; return the first step to try on it."""

    @abstractmethod
    def move(self, point: Point, step: float) -> np.ndarray:
        """Return the place at a step on the path."""

    @abstractmethod
    def decrease(self, point: Point, s: np.ndarray) -> float:
        """First-order change of the objective along a move, negative if it descends."""

    def learn(self, old: Point, new: Point) -> None:
        """Take note of an accepted step."""

    def forget(self) -> bool:
        """Drop the learned curvature; return whether there was any."""
        return False


def first_step(point: Point) -> float:
    r"""Return :math:`\min(1, 1 / \|g\|_1)`, the first step of all methods."""
    return min(1.0, 1.0 / max(np.abs(point.gradient).sum(), np.finfo(float).tiny))


class SpectralStep:
    r"""The step length of Barzilai and Borwein, :math:`s^\top y / y^\top y`.

    Parameters
    ----------
    first : float, optional
        The first one; `first_step` by default.
    """

    def __init__(self, first: float | None = None):
        self._first = first
        self._step: float | None = None

    def next(self, point: Point) -> float:
        """Return the step to try from a point."""
        if self._step is not None:
            return self._step
        return first_step(point) if self._first is None else self._first

    def learn(self, old: Point, new: Point) -> None:
        """Measure the curvature along an accepted step; where there is none, keep the last."""
        s, y = new.x - old.x, new.gradient - old.gradient
        if (curvature := s @ y) > 0:
            self._step = float(np.clip(curvature / (y @ y), *_SPECTRAL))

    def forget(self) -> bool:
        """Go back to the first step; return whether that is another one."""
        known, self._step = self._step is not None, None
        return known


def quadratic_model(point: Point, matrix: CompactMatrix, step: float = 1.0) -> Callable:
    r"""Return :math:`z \mapsto \nabla L(x)^\top d + \tfrac{1}{2t} d^\top B d` with its gradient.

    Here :math:`d = z - x`: the smooth function around a point, up to its value there.
    """

    def value_and_gradient(z):
        d = z - point.x
        bend = (matrix @ d) / step
        return float(point.gradient @ d + 0.5 * (d @ bend)), point.gradient + bend

    return value_and_gradient


def cubic_step(change: float, slope: float, new_slope: float) -> float:
    """Where in (0, 1) the cubic through two values and slopes is least, safeguarded.

    Parameters
    ----------
    change : float
        Value at 1 minus value at 0; not finite where 1 is outside of the domain.
    slope, new_slope : float
        Derivatives at 0, which is negative, and at 1.

    Returns
    -------
    float
        Within [0.001, 0.6], the thesis's safeguards; a half where the cubic has no minimum there.
    """
    if not (np.isfinite(change) and np.isfinite(new_slope)):
        return 0.5
    a = slope + new_slope - 3.0 * change
    inside = a * a - slope * new_slope
    if inside < 0:
        return 0.5
    root = np.sqrt(inside)
    below = new_slope - slope + 2.0 * root
    u = 1.0 - (new_slope + root - a) / below if below > 0 else 0.5
    return float(np.clip(u, *_SHRINK))


def backtrack(
    objective: Objective, descent: Descent, point: Point, reference: float
) -> Point | None:
    r"""Shorten the step on a path until the objective has decreased enough.

    Parameters
    ----------
    objective : Objective
        Objective to decrease.
    descent : Descent
        The path.
    point : Point
        Its start.
    reference : float
        The value to stay below: that of the point, or for a non-monotone search the largest of the
        last ones.

    Returns
    -------
    Point or None
        None where no step will do or no evaluation is left.

    Notes
    -----
    A step :math:`s` is accepted when :math:`F(x + s) \le \text{reference} + 10^{-4} \delta`, with
    :math:`\delta` the first-order change along it. Near the optimum values differ by their rounding
    errors only. There a step is accepted also if the mean of the slopes at both ends, which for
    quadratic functions is the difference, says so (Hager and Zhang 2005, approximate Wolfe
    conditions), or if it takes the residual down.
    """
    step = descent.aim(point)
    least = _LEAST_STEP * step
    noise = _noise(point)
    while step > least and not objective.exhausted:
        x = descent.move(point, step)
        s = x - point.x
        decrease = descent.decrease(point, s)
        if not s.any() or decrease > noise:
            return None
        new = objective(x)
        if new.value <= reference + _ARMIJO * decrease and decrease < 0:
            return new
        slope = np.nan
        if np.isfinite(new.value):
            slope = objective.slope_from(new, s)
        if new.value <= reference + noise:
            agrees = decrease < 0 and slope <= (2 * _ARMIJO - 1) * decrease
            if agrees or descent.residual(new) < _LESS * descent.residual(point):
                return new
        if decrease >= 0:
            return None
        step *= cubic_step(new.value - point.value, decrease, slope)
    return None


def _noise(point):
    return _ROUNDING * max(1.0, abs(point.value))


def descend(
    objective: Objective,
    descent: Descent,
    start: Point,
    *,
    tol: float,
    recent: int,
    steps: float = np.inf,
) -> tuple[Point, float, int]:
    """Follow a method until the residual is small, or nothing more can be gained.

    That is when no step is accepted, not even after the method forgot its curvature, or when
    neither value nor residual has become better in the last 100 evaluations.

    Parameters
    ----------
    objective, descent
        Objective and method.
    start : Point
        Where to begin.
    tol : float
        Residual to reach.
    recent : int
        Values that a step may go back to: 1 for a decrease in each step.
    steps : int
        Maximum number of steps.

    Returns
    -------
    Point, float, int
        The last point, or the best one if the residual was not reached; its residual; steps taken.
    """
    point, taken = start, 0
    residual = descent.residual(point)
    best, lately = (point, residual), objective.evaluations
    values = deque([point.value], maxlen=recent)
    while residual > tol and taken < steps:
        new = backtrack(objective, descent, point, max(values))
        if new is None:
            if objective.exhausted or not descent.forget():
                break
            continue
        descent.learn(point, new)
        point, taken = new, taken + 1
        residual = descent.residual(point)
        values.append(point.value)
        noise = _noise(point)
        if point.value < best[0].value - noise or (
            point.value <= best[0].value + noise and residual < best[1]
        ):
            best, lately = (point, residual), objective.evaluations
        elif objective.evaluations - lately > _PATIENCE:
            break
    if residual > tol:
        point, residual = best
    return point, residual, taken


def solve(
    objective: Objective, descent: Descent, start: np.ndarray, *, tol: float, recent: int
) -> SmoothSolution:
    """Run `descend` from a start and report, without a warning."""
    point, residual, steps = descend(
        objective, descent, objective.start(start), tol=tol, recent=recent
    )
    return _report(point, residual, steps, objective.evaluations, tol)


def check_start(start: ArrayLike, penalty: Penalty | None = None) -> np.ndarray:
    """Return the start as a vector of its own, or raise a `ValueError` with the reason."""
    x = np.array(start, dtype=np.float64)
    if x.ndim != 1 or not len(x):
        raise ValueError(f"`start` must be a vector, it has shape {x.shape}")
    if not np.isfinite(x).all():
        bad = np.flatnonzero(~np.isfinite(x))[0]
        raise ValueError(f"`start` must be finite, entry {bad} is {x[bad]}")
    if penalty is not None and penalty.size not in {None, len(x)}:
        raise ValueError(f"`start` has {len(x)} coefficients, the penalty has {penalty.size}")
    return x


def active_set(
    method: Callable[..., SmoothSolution],
    value_and_gradient: Callable,
    start: ArrayLike,
    penalty: Penalty,
    *,
    restrict: Callable | None = None,
    tol: float = 1e-5,
    max_evaluations: int = 1000,
    **options,
) -> SmoothSolution:
    r"""Solve on growing working sets of coefficients, until the rest is optimal at zero.

    The working set has the coefficients that are not zero at the last solution and those that violate
    their optimality condition there; when the solution on it is optimal for all coefficients, it is the mode. Worth
    while where an objective is cheaper with many coefficients at zero.

    Parameters
    ----------
    method : callable
        `projected_scaled_subgradient`, `soft_threshold`, `cone_mode`, or another function with
        their signature.
    value_and_gradient, start, penalty, max_evaluations
        As in `method`.
    restrict : callable, optional
        Takes a (p,) mask of the working set; returns a function like ``value_and_gradient`` for
        coefficients that are zero off the mask, whose gradient off the mask is not used. By
        default ``value_and_gradient`` itself.
    tol : float
        Residual to reach, over all coefficients.
    **options
        Go to `method`.

    Returns
    -------
    SmoothSolution
        Its evaluations count those of the restricted functions too.

    Warns
    -----
    ConvergenceWarning
        If the residual stays above `tol`, from here or from `method`.

    Notes
    -----
    Off the working set the method sees a gradient of zero, which keeps penalised coefficients at
    zero: so any penalty can be used. While the working set grows it is solved to a tenth of the
    residual over all coefficients; when it no longer does, to `tol`.

    References
    ----------
    Schmidt (2010), section 2.5 and equation (2.12).
    """
    x = check_start(start, penalty)
    whole = Objective(value_and_gradient, penalty, max_evaluations)
    point, used, steps = whole.start(x), 0, 0
    tried, inner_tol = np.zeros(len(x), dtype=bool), np.inf
    while True:
        residual = penalty.residual(point.x, point.gradient)
        spent = whole.evaluations + used
        on = penalty.support(point.x) | (penalty.pseudo_gradient(point.x, point.gradient) != 0)
        grown = (on & ~tried).any()
        # One evaluation is kept for the check of all coefficients.
        stuck = not grown and inner_tol <= tol
        if residual <= tol or stuck or spent + 1 >= max_evaluations:
            break
        inner_tol = max(tol, _LOOSE * residual) if grown else tol
        tried = on
        part = value_and_gradient if restrict is None else restrict(on.copy())
        inner = method(
            _on(part, on),
            point.x,
            penalty,
            tol=inner_tol,
            max_evaluations=max_evaluations - spent - 1,
            **options,
        )
        used += inner.evaluations
        steps += inner.iterations
        point = whole(inner.coefficients)
        if not inner.converged:
            residual = penalty.residual(point.x, point.gradient)
            return _report(point, residual, steps, whole.evaluations + used, tol)
    solution = _report(point, residual, steps, spent, tol)
    solution.warn_unless_converged("active_set", "Raise `max_evaluations` or `tol`.")
    return solution


def _report(point, residual, steps, evaluations, tol):
    return SmoothSolution(
        objective=point.value,
        gap=residual,
        iterations=steps,
        converged=bool(residual <= tol),
        coefficients=point.x,
        evaluations=evaluations,
    )


def _on(value_and_gradient, on):
    def masked(x):
        value, gradient = value_and_gradient(x)
        return value, np.where(on, gradient, 0.0)

    return masked
