r"""Soft-threshold methods: for every penalty with a proximal map.

.. math:: \min_x \; L(x) + \Omega(x)

Each step minimises :math:`\Omega` plus a model of the smooth :math:`L` around the present point:
a Barzilai-Borwein step a sphere, whose curvature is that of the last step, a quasi-Newton step a
limited-memory quadratic. The first needs one proximal map for each evaluation, the second fewer
evaluations.
"""

from collections.abc import Callable

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.data.names import nearest
from bayesstruct.sparse.penalties.base import Penalty
from bayesstruct.sparse.solvers.lbfgs import LimitedMemory
from bayesstruct.sparse.solvers.line_search import (
    Descent,
    Objective,
    SmoothSolution,
    SpectralStep,
    check_start,
    descend,
    first_step,
    quadratic_model,
    solve,
)

__all__ = ["soft_threshold", "soft_threshold_steps"]

_RECENT = 10  # values that a non-monotone search may go back to
_INNER_TOL = 0.05  # of the present residual
_STEPS = ("quasi_newton", "barzilai_borwein")
_MEMORY = 20  # the source has 10; 20 save a sixth in benchmarks/expensive_objectives.py
_INNER_ITERATIONS = 100


class _Thresholding(Descent):
    """Base of the two kinds of steps."""

    def __init__(self, penalty: Penalty):
        self.penalty = penalty

    def residual(self, point):
        return self.penalty.residual(point.x, point.gradient)

    def move(self, point, step):
        self.tried = step
        return self.penalty.prox(point.x - step * point.gradient, step)

    def decrease(self, point, s):
        # Not less than the first-order change, by the optimality of the map; without its rounding.
        return -float(s @ s) / self.tried


class _BarzilaiBorwein(_Thresholding):
    """Spheres with the curvature of the last step."""

    def __init__(self, penalty, step=None):
        super().__init__(penalty)
        self.step = SpectralStep(step)

    def aim(self, point):
        return self.step.next(point)

    def learn(self, old, new):
        self.step.learn(old, new)

    def forget(self):
        return self.step.forget()


class _OnModel(_BarzilaiBorwein):
    """The same on a quadratic, with a residual that takes no more than one proximal map."""

    def __init__(self, penalty, step):
        super().__init__(penalty, step)
        self.length = step

    def residual(self, point):
        s = super().move(point, self.length) - point.x
        return float(np.abs(s).max()) / self.length


class _QuasiNewton(_Thresholding):
    """Limited-memory quadratics, minimised by `_BarzilaiBorwein`."""

    def __init__(self, penalty, size, memory, inner_iterations):
        super().__init__(penalty)
        self.memory, self.iterations = LimitedMemory(size, memory), inner_iterations

    def aim(self, point):
        if not self.memory.count:
            return first_step(point)
        self.matrix = self.memory.matrix()
        self.inner_tol = _INNER_TOL * self.residual(point)
        return 1.0

    def move(self, point, step):
        if not self.memory.count:
            return super().move(point, step)
        model = quadratic_model(point, self.matrix, step)
        inner = Objective(model, self.penalty, 20 * self.iterations)
        spheres = _OnModel(self.penalty, step / self.matrix.scale)
        best, _, _ = descend(
            inner,
            spheres,
            inner.start(point.x),
            tol=self.inner_tol,
            recent=_RECENT,
            steps=self.iterations,
        )
        return best.x

    def decrease(self, point, s):
        if not self.memory.count:
            return super().decrease(point, s)
        return float(point.gradient @ s) + self.penalty.directional_derivative(point.x, s)

    def learn(self, old, new):
        self.memory.add(new.x - old.x, new.gradient - old.gradient)

    def forget(self):
        any_pairs = self.memory.count > 0
        self.memory.clear()
        return any_pairs


def soft_threshold(
    value_and_gradient: Callable,
    start: ArrayLike,
    penalty: Penalty,
    *,
    step: str = "quasi_newton",
    tol: float = 1e-5,
    max_evaluations: int = 1000,
    memory: int | None = None,
    inner_iterations: int | None = None,
) -> SmoothSolution:
    r"""Mode under any penalty by soft-threshold steps.

    .. math:: \min_x \; L(x) + \Omega(x)

    The mode of :math:`e^{-L(x)}` under the prior :math:`p(x) \propto e^{-\Omega(x)}`. With
    quasi-Newton steps the method of choice for expensive :math:`L` and penalties of groups.

    Parameters
    ----------
    value_and_gradient : callable
        Takes a (p,) array, returns the float :math:`L(x)` and its (p,) gradient. It may be infinite
        or NaN outside of its domain.
    start : (p,) array_like
        Where to begin; the mode at another rate is a warm start.
    penalty : Penalty
        Any one with a proximal map, at its rate in units of the summed loss.
    step : {"quasi_newton", "barzilai_borwein"}
        ``"quasi_newton"`` (QNST in the source) minimises
        :math:`\nabla L(x)^\top d + \tfrac{1}{2 t} d^\top B d + \Omega(x + d)` with a
        limited-memory matrix B, approximately, by steps of the other kind; t starts at 1 and
        shrinks until the objective decreases. ``"barzilai_borwein"`` (BBST) takes
        :math:`x^+ = \mathrm{prox}_{\alpha \Omega}(x - \alpha \nabla L(x))` with
        :math:`\alpha = y^\top s / y^\top y` and a non-monotone search over the last 10 values.
    tol : float
        Stop when `Penalty.residual` is at most this.
    max_evaluations : int
        Maximum number of calls of ``value_and_gradient``.
    memory : int, optional
        Pairs kept by the limited-memory matrix of quasi-Newton steps, 20 by default. The source has
        10; 20 save a sixth of the evaluations in `benchmarks/expensive_objectives.py`.
    inner_iterations : int, optional
        Maximum number of steps on the model of a quasi-Newton step for each t, 100 by default; they
        take O(m p) and a proximal map, and no evaluation.

    Returns
    -------
    SmoothSolution
        The mode, its objective with the penalty, its residual, and the evaluations it took.

    Raises
    ------
    ValueError
        If the kind of step is unknown or has no such option, the start does not fit, or value or
        gradient are not finite there.

    Warns
    -----
    ConvergenceWarning
        If the residual is above `tol` when evaluations are used up or the objective stalls.

    Notes
    -----
    Changes to the source for Barzilai-Borwein steps: the first step is
    :math:`+\min(1, 1/\|g\|_1)`; a step d has to decrease the objective by a ten-thousandth of
    :math:`\|d\|^2 / \alpha`, which the first-order change
    :math:`\nabla L^\top d + \Omega'(x; d)` is at least (the source multiplies :math:`\Omega'` by d
    once more); it stops on the distance of the gradient to the subdifferential, not on the length
    of a step. For quasi-Newton steps: the scale of the matrix is
    :math:`\sigma = y^\top y / y^\top s`; the model has :math:`\Omega(y)` unscaled and
    :math:`\|d\|_B^2 = d^\top B d`; the decrease is compared with
    :math:`\nabla L^\top d + \Omega'(x; d)`.

    References
    ----------
    Schmidt, M. (2010). Graphical model structure learning with l1-regularization. PhD thesis,
    University of British Columbia: sections 3.2.2 (algorithm 9) and 3.1.2 (algorithm 7).

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.penalties import Group
    >>> from bayesstruct.solvers import optimizers
    >>> center = np.array([3.0, 4.0, 0.5])
    >>> half_squares = lambda x: (0.5 * ((x - center) ** 2).sum(), x - center)
    >>> found = optimizers.soft_threshold(half_squares, np.zeros(3), Group(1.0, [0, 0, 1]))
    >>> found.coefficients.round(4)
    array([2.4, 3.2, 0. ])
    """
    solution = soft_threshold_steps(
        value_and_gradient,
        start,
        penalty,
        step=step,
        tol=tol,
        max_evaluations=max_evaluations,
        memory=memory,
        inner_iterations=inner_iterations,
    )
    solution.warn_unless_converged("soft_threshold", "Raise `max_evaluations` or `tol`.")
    return solution


def soft_threshold_steps(
    value_and_gradient: Callable,
    start: ArrayLike,
    penalty: Penalty,
    *,
    step: str = "quasi_newton",
    tol: float,
    max_evaluations: int,
    memory: int | None = None,
    inner_iterations: int | None = None,
) -> SmoothSolution:
    """Minimise without a warning, for solvers that judge the result themselves.

    Parameters
    ----------
    value_and_gradient, start, penalty, step, tol, max_evaluations, memory, inner_iterations
        As in `soft_threshold`.
    """
    if step not in _STEPS:
        raise ValueError(nearest("step", step, _STEPS))
    x = check_start(start, penalty)
    objective = Objective(value_and_gradient, penalty, max_evaluations)
    if step == "barzilai_borwein":
        if memory is not None or inner_iterations is not None:
            raise ValueError(
                "`memory` and `inner_iterations` are options of quasi-Newton steps; leave them out with "
                'step="barzilai_borwein"'
            )
        return solve(objective, _BarzilaiBorwein(penalty), x, tol=tol, recent=_RECENT)
    memory = _MEMORY if memory is None else memory
    inner_iterations = _INNER_ITERATIONS if inner_iterations is None else inner_iterations
    descent = _QuasiNewton(penalty, len(x), memory, inner_iterations)
    return solve(objective, descent, x, tol=tol, recent=1)
