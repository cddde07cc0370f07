r"""Projected methods: a smooth function over a convex set that is known by its projection.

.. math:: \min_x \; L(x) \quad \text{subject to } x \in C

`spectral_projected_gradient` projects gradient steps; `projected_quasi_newton` minimises
limited-memory quadratics over the set, with fewer evaluations. `cone_mode` solves penalties of
groups through their constrained form.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.data.names import nearest
from bayesstruct.sparse.penalties.group import Group
from bayesstruct.sparse.penalties.l1 import L1
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

__all__ = ["NormCones", "cone_mode", "projected_quasi_newton", "spectral_projected_gradient"]

_RECENT = 10  # values that a non-monotone search may go back to
_INNER_TOL = 0.05  # of the present residual
_METHODS = ("projected_quasi_newton", "spectral_projected_gradient")


class _Projection(Descent):
    """Base of the two methods."""

    def __init__(self, project: Callable, residual: Callable | None = None):
        self.project, self._residual = project, residual

    def residual(self, point):
        if self._residual is not None:
            return self._residual(point.x, point.gradient)
        return float(np.abs(point.x - self.project(point.x - point.gradient)).max())

    def decrease(self, point, s):
        return float(point.gradient @ s)


class _Spectral(_Projection):
    """Gradient steps with the curvature of the last step, along the projection arc."""

    def __init__(self, project, residual=None, step=None):
        super().__init__(project, residual)
        self.step = SpectralStep(step)

    def aim(self, point):
        return self.step.next(point)

    def move(self, point, step):
        return self.project(point.x - step * point.gradient)

    def learn(self, old, new):
        self.step.learn(old, new)

    def forget(self):
        return self.step.forget()


class _QuasiNewton(_Projection):
    """Limited-memory quadratics minimised over the set by `_Spectral`; straight searches."""

    def __init__(self, project, size, memory, inner_iterations, residual=None):
        super().__init__(project, residual)
        self.memory, self.iterations = LimitedMemory(size, memory), inner_iterations

    def aim(self, point):
        if not self.memory.count:
            self.target = self.project(point.x - first_step(point) * point.gradient)
            return 1.0
        matrix = self.memory.matrix()
        length = 1.0 / matrix.scale

        def residual(x, gradient):
            return float(np.abs(x - self.project(x - length * gradient)).max()) / length

        inner = Objective(quadratic_model(point, matrix), None, 20 * self.iterations)
        best, _, _ = descend(
            inner,
            _Spectral(self.project, residual, length),
            inner.start(point.x),
            tol=_INNER_TOL * self.residual(point),
            recent=_RECENT,
            steps=self.iterations,
        )
        self.target = best.x
        return 1.0

    def move(self, point, step):
        # Not x + 1 (target - x): rounding would leave the set and lose exact zeros.
        return self.target if step == 1.0 else (1.0 - step) * point.x + step * self.target

    def learn(self, old, new):
        self.memory.add(new.x - old.x, new.gradient - old.gradient)

    def forget(self):
        any_pairs = self.memory.count > 0
        self.memory.clear()
        return any_pairs


def spectral_projected_gradient(
    value_and_gradient: Callable,
    start: ArrayLike,
    project: Callable,
    *,
    tol: float = 1e-5,
    max_evaluations: int = 1000,
) -> SmoothSolution:
    r"""Minimum over a convex set by spectral projected gradients.

    .. math:: \min_x \; L(x) \quad \text{subject to } x \in C

    Steps :math:`x^+ = P_C(x - \alpha \nabla L(x))` with :math:`\alpha = y^\top s / y^\top y` and a
    non-monotone search over the last 10 values. All points that are evaluated lie in the set. The
    mode of :math:`e^{-L(x)}` under the uniform prior on C.

    Parameters
    ----------
    value_and_gradient : callable
        Takes a (p,) array in the set, returns the float :math:`L(x)` and its (p,) gradient. It may
        be infinite or NaN outside of its domain.
    start : (p,) array_like
        Where to begin; it is projected first.
    project : callable
        Takes a (p,) array, returns the nearest point of the set.
    tol : float
        Stop when no coordinate of :math:`x - P_C(x - \nabla L(x))` exceeds this.
    max_evaluations : int
        Maximum number of calls of ``value_and_gradient``.

    Returns
    -------
    SmoothSolution
        The minimum; its ``gap`` is the residual of `tol`.

    Raises
    ------
    ValueError
        If the start does not fit, or value or gradient are not finite there.

    Warns
    -----
    ConvergenceWarning
        If the residual is above `tol` when evaluations are used up or the objective stalls.

    Notes
    -----
    Change to the source: the first step is :math:`+\min(1, 1/\|g\|_1)`.

    References
    ----------
    Schmidt, M. (2010). Graphical model structure learning with l1-regularization. PhD thesis,
    University of British Columbia, section 3.1.1, algorithm 6.
    Birgin, E. G., Martinez, J. M., Raydan, M. (2000). Nonmonotone spectral projected gradient
    methods on convex sets. SIAM Journal on Optimization 10, 1196-1211.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.solvers import optimizers
    >>> center = np.array([3.0, -0.5])
    >>> half_squares = lambda x: (0.5 * ((x - center) ** 2).sum(), x - center)
    >>> unit_box = lambda x: np.clip(x, 0.0, 1.0)
    >>> optimizers.spectral_projected_gradient(half_squares, np.zeros(2), unit_box).coefficients
    array([1., 0.])
    """
    solution = _over(project, _Spectral(project), value_and_gradient, start, tol, max_evaluations)
    solution.warn_unless_converged(
        "spectral_projected_gradient", "Raise `max_evaluations` or `tol`."
    )
    return solution


def projected_quasi_newton(
    value_and_gradient: Callable,
    start: ArrayLike,
    project: Callable,
    *,
    tol: float = 1e-5,
    max_evaluations: int = 1000,
    memory: int = 20,
    inner_iterations: int = 100,
) -> SmoothSolution:
    r"""Minimum over a convex set by projected quasi-Newton steps.

    .. math:: \min_x \; L(x) \quad \text{subject to } x \in C

    Each step goes towards the minimum over C of a quadratic with a limited-memory matrix, found
    approximately by `spectral_projected_gradient`. The mode of :math:`e^{-L(x)}` under the uniform prior on C.

    Parameters
    ----------
    value_and_gradient, start, project, tol, max_evaluations
        As in `spectral_projected_gradient`.
    memory : int
        Pairs kept by the limited-memory matrix. The source has 10; 20 save a sixth of the
        evaluations in `benchmarks/expensive_objectives.py`.
    inner_iterations : int
        Maximum number of steps on a quadratic; they take O(m p) and a projection, and no evaluation.

    Returns
    -------
    SmoothSolution
        As `spectral_projected_gradient`, which has the same errors and warnings.

    Notes
    -----
    Changes to the source: the scale of the matrix is :math:`\sigma = y^\top y / y^\top s`; the
    first step is projected too, as it would leave the set otherwise.

    References
    ----------
    Schmidt (2010), section 3.2.1, algorithm 8.
    """
    size = np.size(start)
    descent = _QuasiNewton(project, size, memory, inner_iterations)
    solution = _over(project, descent, value_and_gradient, start, tol, max_evaluations, recent=1)
    solution.warn_unless_converged("projected_quasi_newton", "Raise `max_evaluations` or `tol`.")
    return solution


def _over(project, descent, value_and_gradient, start, tol, max_evaluations, recent=_RECENT):
    start = check_start(start)
    inside = np.asarray(project(start.copy()), dtype=np.float64)
    if inside.shape != start.shape:
        raise ValueError(f"`project` maps {len(start)} coefficients to shape {inside.shape}")
    objective = Objective(value_and_gradient, None, max_evaluations)
    return solve(objective, descent, inside, tol=tol, recent=recent)


def cone_mode(
    value_and_gradient: Callable,
    start: ArrayLike,
    penalty: L1 | Group,
    *,
    method: str = "projected_quasi_newton",
    tol: float = 1e-5,
    max_evaluations: int = 1000,
    **options,
) -> SmoothSolution:
    r"""Mode under norms of groups, by a projected method on norm cones.

    .. math::
        \min_x L(x) + \sum_A \lambda_A \|x_A\|
        = \min_{x, g} L(x) + \sum_A \lambda_A g_A \quad \text{subject to } \|x_A\| \le g_A

    The mode of :math:`e^{-L(x)}` under the prior
    :math:`p(x) \propto e^{-\sum_A \lambda_A \|x_A\|}`.

    Parameters
    ----------
    value_and_gradient, start, tol, max_evaluations
        As in `bayesstruct.solvers.optimizers.soft_threshold`.
    penalty : L1 or Group
        With the Euclidean, maximum or nuclear norm. `soft_threshold` takes the other penalties.
    method : {"projected_quasi_newton", "spectral_projected_gradient"}
        Name of the function of this module that minimises over the cones.
    **options
        Of `projected_quasi_newton`: ``memory``, ``inner_iterations``.

    Returns
    -------
    SmoothSolution
        As `soft_threshold`, which has the same errors and warnings; the residual is that of the
        penalty.

    Raises
    ------
    TypeError
        If the penalty is no sum of norms of disjoint groups.

    References
    ----------
    Schmidt (2010), equation (3.2), section 3.1.1 and appendix B.2.
    """
    if method not in _METHODS:
        raise ValueError(nearest("method", method, _METHODS))
    quasi_newton = method == "projected_quasi_newton"
    x = check_start(start, penalty)
    cones = NormCones.of(penalty, len(x))
    rates = cones.rates

    smooth = Objective(value_and_gradient, None, max_evaluations)

    def joint(z):
        point = smooth(z[: len(x)])
        return point.value + rates @ z[len(x) :], np.concatenate([point.gradient, rates])

    def residual(z, gradient):
        return penalty.residual(z[: len(x)], gradient[: len(x)])

    z = np.concatenate([x, cones.norms(x)])
    if quasi_newton:
        settings = {"memory": 20, "inner_iterations": 100} | options
        descent: _Projection = _QuasiNewton(cones.project, len(z), residual=residual, **settings)
    else:
        descent = _Spectral(cones.project, residual, **options)
    objective = Objective(joint, None, max_evaluations)
    found = solve(objective, descent, z, tol=tol, recent=1 if quasi_newton else _RECENT)
    x, heights = found.coefficients[: len(x)], found.coefficients[len(x) :]
    solution = SmoothSolution(
        objective=found.objective - float(rates @ heights) + penalty.value(x),
        gap=found.gap,
        iterations=found.iterations,
        converged=found.converged,
        coefficients=x,
        evaluations=found.evaluations,
    )
    solution.warn_unless_converged("cone_mode", "Raise `max_evaluations` or `tol`.")
    return solution


class NormCones:
    """Cones of the norms of disjoint groups; heights follow the coefficients in one vector.

    Parameters
    ----------
    size : int
        Number of coefficients.
    rates : (k,) numpy.ndarray
        Of the heights.
    blocks : list of tuple
        For groups of one shape: positions of their heights, (r, d) coordinates, the name of the
        norm, and the shape of the matrices if it is the nuclear one.
    """

    def __init__(self, size, rates, blocks):
        self.size, self.rates, self.blocks = size, rates, blocks

    @classmethod
    def of(cls, penalty: Any, size: int):
        """Make the cones of a penalty, without the groups that it leaves free."""
        if isinstance(penalty, L1) and not penalty.nonnegative:
            up, _ = penalty.rates(size)
            groups = [np.array([i]) for i in np.flatnonzero(up > 0)]
            rates, norm, shapes = up[up > 0], 2, None
        elif isinstance(penalty, Group):
            used = penalty.weights * penalty.rate > 0
            groups = [g for g, on in zip(penalty.groups.arrays(), used, strict=True) if on]
            rates, norm = penalty.rate * penalty.weights[used], penalty.norm
            shapes = None if penalty.shapes is None else penalty.shapes[used]
        else:
            raise TypeError(
                "cone_mode is for L1 and Group penalties without bounds, not for "
                f"{type(penalty).__name__} as given; use soft_threshold"
            )
        keys = [len(g) for g in groups] if shapes is None else [tuple(s) for s in shapes.tolist()]
        blocks = []
        for key in dict.fromkeys(keys):
            at = np.array([i for i, k in enumerate(keys) if k == key])
            blocks.append((at, np.stack([groups[i] for i in at]), norm, key))
        return cls(size, rates, blocks)

    def norms(self, x):
        """Norm of each group."""
        out = np.empty(len(self.rates))
        for at, index, norm, shape in self.blocks:
            part = x[index]
            if norm == "nuclear":
                singular = np.linalg.svd(part.reshape(-1, *shape), compute_uv=False)
                out[at] = singular.sum(axis=1)
            else:
                out[at] = np.linalg.norm(part, norm, axis=1)
        return out

    def project(self, z):
        """Project each group, with its height, on the cone of its norm."""
        from bayesstruct.sparse.kernels import projections

        out = z.copy()
        for at, index, norm, shape in self.blocks:
            part, heights = z[index], z[self.size + at]
            heights = np.where(part.any(axis=1), heights, np.maximum(heights, 0.0))
            if norm == "nuclear":
                matrices = part.reshape(-1, *shape)
                projections.nuclear_cone(matrices, heights, matrices, heights)
            elif norm == 2:
                projections.l2_cone(part, heights, part, heights)
            else:
                projections.linf_cone(part, heights, part, heights, np.empty(part.shape[1]))
            out[index], out[self.size + at] = part, heights
        return out
