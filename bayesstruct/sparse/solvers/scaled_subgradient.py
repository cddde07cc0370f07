r"""Projected scaled sub-gradient methods: quasi-Newton steps for the l1 norm.

.. math:: \min_x \; L(x) + \sum_i \lambda_i |x_i|

All take the step :math:`P_O(x + t d)`, where :math:`P_O` sets to zero the penalised coordinates
whose sign would change, and differ in the direction d, made from the pseudo-gradient (the
sub-gradient of least norm) and a limited-memory matrix of its differences.
"""

from collections.abc import Callable

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.data.names import nearest
from bayesstruct.sparse.penalties.l1 import L1
from bayesstruct.sparse.solvers.lbfgs import LimitedMemory
from bayesstruct.sparse.solvers.line_search import (
    Descent,
    Objective,
    SmoothSolution,
    check_start,
    solve,
)

__all__ = ["projected_scaled_subgradient", "scaled_subgradient_steps"]


class _ScaledSubgradient(Descent):
    """Steps projected on the orthant of the present point."""

    def __init__(self, penalty: L1, size: int, memory: int, tol: float):
        self.penalty, self.tol = penalty, tol
        self.up, down = penalty.rates(size)
        self.bound = penalty.penalised(size)
        self.nonnegative = ~np.isfinite(down)
        self.memory = LimitedMemory(size, memory)
        self._seen = None

    def residual(self, point):
        return self.penalty.residual(point.x, point.gradient)

    def pseudo(self, point):
        """Pseudo-gradient, kept for the last point."""
        if self._seen is None or self._seen[0] is not point:
            self._seen = point, self.penalty.pseudo_gradient(point.x, point.gradient)
        return self._seen[1]

    def aim(self, point):
        slope = self.pseudo(point)
        if self.memory.count:
            self.toward = self.direction(point.x, slope)
        else:
            self.toward = -min(1.0, 1.0 / np.abs(slope).sum()) * slope
        return 1.0

    def move(self, point, step):
        x = point.x + step * self.toward
        x[self.bound & (x * point.x < 0)] = 0.0
        x[self.nonnegative & (x < 0)] = 0.0
        return x

    def decrease(self, point, s):
        return float(self.pseudo(point) @ s)

    def learn(self, old, new):
        slope = self.pseudo(old)
        self.memory.add(new.x - old.x, self.pseudo(new) - slope)

    def forget(self):
        any_pairs = self.memory.count > 0
        self.memory.clear()
        return any_pairs

    def working(self, x):
        """Coordinates where the objective is smooth."""
        return (x != 0) | ~(self.bound | self.nonnegative)

    def direction(self, x, slope):
        raise NotImplementedError


class _GafniBertsekas(_ScaledSubgradient):
    """Quasi-Newton steps where the objective is smooth, steepest descent elsewhere."""

    def direction(self, x, slope):
        on = self.working(x)
        return np.where(on, -self.memory.solve(slope, on), -slope / self.memory.scale)


class _OrthantWise(_ScaledSubgradient):
    """Quasi-Newton steps without the parts that would not descend."""

    def direction(self, x, slope):
        d = -self.memory.solve(slope)
        return np.where(d * slope < 0, d, 0.0)


class _SignProjection(_ScaledSubgradient):
    """Quasi-Newton steps without the parts at zero that would not descend."""

    def direction(self, x, slope):
        d = -self.memory.solve(slope)
        return np.where(self.working(x) | (d * slope < 0), d, 0.0)


class _ActiveSet(_ScaledSubgradient):
    """Quasi-Newton steps on as many coordinates at zero as descend together."""

    def direction(self, x, slope):
        on = self.working(x)
        order = np.argsort(-np.abs(slope[~on]), kind="stable")
        rest = np.flatnonzero(~on)[order]
        d = -self.memory.solve(slope, on)
        none, many = 0, 1 + int((slope[rest] != 0).sum())
        while many - none > 1:
            k = (many + none) // 2
            added = rest[:k]
            wider = on.copy()
            wider[added] = True
            trial = -self.memory.solve(slope, wider)
            if (trial[added] * slope[added] < 0).all():
                none, d = k, trial
            else:
                many = k
        if none == 0 and len(rest) and np.abs(slope[on]).max(initial=0.0) <= self.tol:
            d[rest[0]] = -slope[rest[0]] / self.memory.scale
        return d


_VARIANTS = {
    "gafni_bertsekas": _GafniBertsekas,
    "active_set": _ActiveSet,
    "sign_projection": _SignProjection,
    "orthant_wise": _OrthantWise,
}


def projected_scaled_subgradient(
    value_and_gradient: Callable,
    start: ArrayLike,
    penalty: L1,
    *,
    variant: str = "gafni_bertsekas",
    tol: float = 1e-5,
    max_evaluations: int = 1000,
    memory: int = 20,
) -> SmoothSolution:
    r"""Mode under Laplace priors by projected scaled sub-gradients.

    .. math:: \min_x \; L(x) + \sum_i \lambda_i |x_i|

    The mode of :math:`e^{-L(x)}` with independent priors
    :math:`x_i \sim \mathrm{Laplace}(0, 1 / \lambda_i)`, flat where :math:`\lambda_i = 0`. The
    method of choice for expensive :math:`L` and an l1 penalty.

    Parameters
    ----------
    value_and_gradient : callable
        Takes a (p,) array, returns the float :math:`L(x)` and its (p,) gradient. It may be infinite
        or NaN outside of its domain.
    start : (p,) array_like
        Where to begin; the mode at another rate is a warm start.
    penalty : L1
        Rates of the coefficients, in units of the summed loss.
    variant : {"gafni_bertsekas", "active_set", "sign_projection", "orthant_wise"}
        Direction of a step. ``"gafni_bertsekas"`` (PSSgb in the source): quasi-Newton for the
        coefficients that are not zero or without penalty, steepest descent for the others.
        ``"active_set"`` (PSSas): the quasi-Newton step includes as many of the coefficients at
        zero, those with the largest pseudo-gradient first, as move downhill in it; the others rest.
        The number is found by bisection, in O(m p log p). ``"sign_projection"`` (PSSsp):
        quasi-Newton for all coefficients; those at zero stay there where the step would not
        descend. ``"orthant_wise"`` (OWL-QN): quasi-Newton for all coefficients; the parts that
        would not descend are set to zero.
    tol : float
        Stop when the pseudo-gradient is at most this in every coordinate.
    max_evaluations : int
        Maximum number of calls of ``value_and_gradient``.
    memory : int
        Pairs kept by the limited-memory matrix. The source has 10; 20 save a sixth of the
        evaluations in `benchmarks/expensive_objectives.py`.

    Returns
    -------
    SmoothSolution
        The mode, its objective with the penalty, its residual, and the evaluations it took.

    Raises
    ------
    TypeError
        If the penalty is not an l1 norm.
    ValueError
        If the variant is unknown, the start does not fit, or value or gradient are not finite
        there.

    Warns
    -----
    ConvergenceWarning
        If the residual is above `tol` when evaluations are used up or the objective stalls.

    Notes
    -----
    Changes to the source: coefficients without penalty are not projected on their orthant, so that
    without any penalty this is L-BFGS (except for ``"orthant_wise"``); the scale
    :math:`\sigma = y^\top y / y^\top s` is that of the Hessian, not of its inverse; the first step
    is :math:`\min(1, 1/\|g\|_1)`; the step is :math:`x - \alpha H^{-1} g`; values that differ by
    rounding are compared by their slopes.

    A coefficient descends when :math:`d_i \tilde\nabla_i f < 0`; the source has the sign reversed
    in three variants. If the active set can take in no coefficient and those in it are optimal, the
    first one is let in on its own, as in the source's algorithm 3. The matrix of
    ``"orthant_wise"`` is made of differences of pseudo-gradients, as in the thesis, not of
    gradients, as in the original [2]_; its searches start at a step of 1: the thesis's quadratic
    guess took 184 evaluations where this takes 151, in `benchmarks/expensive_objectives.py`.

    References
    ----------
    .. [1] Schmidt, M. (2010). Graphical model structure learning with l1-regularization. PhD
       thesis, University of British Columbia: sections 2.3.1 (algorithms 1 and 4), 2.3.2, 2.3.3
       (algorithm 5) and 2.2.1 (algorithm 2).
    .. [2] Andrew, G., Gao, J. (2007). Scalable training of l1-regularized log-linear models. ICML
       24, 33-40.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.penalties import L1
    >>> from bayesstruct.solvers import optimizers
    >>> center = np.array([3.0, -0.5, 2.0])
    >>> half_squares = lambda x: (0.5 * ((x - center) ** 2).sum(), x - center)
    >>> found = optimizers.projected_scaled_subgradient(half_squares, np.zeros(3), L1(1.0))
    >>> found.coefficients.round(4)
    array([2., 0., 1.])
    """
    solution = scaled_subgradient_steps(
        value_and_gradient,
        start,
        penalty,
        variant=variant,
        tol=tol,
        max_evaluations=max_evaluations,
        memory=memory,
    )
    solution.warn_unless_converged(
        "projected_scaled_subgradient", "Raise `max_evaluations` or `tol`."
    )
    return solution


def scaled_subgradient_steps(
    value_and_gradient: Callable,
    start: ArrayLike,
    penalty: L1,
    *,
    variant: str = "gafni_bertsekas",
    tol: float,
    max_evaluations: int,
    memory: int = 20,
) -> SmoothSolution:
    """Minimise without a warning, for solvers that judge the result themselves.

    Parameters
    ----------
    value_and_gradient, start, penalty, variant, tol, max_evaluations, memory
        As in `projected_scaled_subgradient`.
    """
    if variant not in _VARIANTS:
        raise ValueError(nearest("variant", variant, _VARIANTS))
    if not isinstance(penalty, L1):
        raise TypeError(
            "projected_scaled_subgradient is for L1 penalties, not for "
            f"{type(penalty).__name__}; use soft_threshold"
        )
    x = check_start(start, penalty)
    objective = Objective(value_and_gradient, penalty, max_evaluations)
    descent = _VARIANTS[variant](penalty, len(x), memory, tol)
    return solve(objective, descent, x, tol=tol, recent=1)
