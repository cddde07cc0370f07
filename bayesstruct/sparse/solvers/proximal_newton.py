r"""Proximal Newton steps on working sets: the fast solver for separable absolute-value penalties.

.. math:: \min_w \; L(X w) + \sum_j up_j\, w_j^+ + down_j\, w_j^-

Each outer iteration passes over all columns once: it certifies the point by a duality gap, and picks
the columns nearest to violating their optimality condition. On those columns the loss is replaced
by its quadratic model, whose minimum is found exactly, by coordinate descent on the Gram matrix
finished by Newton steps on the present signs; a line search keeps the objective falling. A
quadratic loss needs one such step, and its Gram matrices are kept along a path.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayesstruct.sparse.penalties.base import Penalty
from bayesstruct.sparse.penalties.l1 import L1
from bayesstruct.sparse.solvers.designs import Design
from bayesstruct.sparse.solvers.losses import Loss
from bayesstruct.sparse.solvers.quadratic import ColumnModel, GramModel, minimise_quadratic

__all__ = [
    "NEAR",
    "Certifier",
    "GramCache",
    "Problem",
    "State",
    "coefficients_of",
    "l1_problem",
    "line_search",
    "nearest_to_entering",
    "proximal_newton",
]

_FIRST_SIZE = 128  # columns that may enter at once, or as many as are in
_FIRST_SIZE_QUADRATIC = (
    256  # a Gram matrix is made once: two passes fewer in benchmarks/sparse_modes.py
)
_FIRST_SHARE = 64  # of sparse columns one in so many: a pass over all of them costs more
NEAR = 0.95  # of its bound: gradients below it stay out of the working set
_MAX_NEWTON = 20
_PATIENCE = 5  # passes without a lower objective or gap: rounding is reached
# Residual at which a working set is left, relative to the one over all columns: the first is for
# quadratic losses, where one model is solved; Newton steps solve theirs to `_MODEL` of the residual.
_INNER_QUADRATIC, _INNER = 0.03, 0.1
_MODEL = 1e-2
_ARMIJO = 1e-4
_LEAST_CURVATURE = 1e-9  # relative to the largest: keeps the quadratic model bounded below


@dataclass(frozen=True, eq=False)
class Problem:
    """Loss, columns and rates.

    Attributes
    ----------
    design : Design
        Columns; the last one is the intercept if there is one.
    loss : Loss
        Loss of the linear predictor.
    up, down : (p,) numpy.ndarray
        Rates of positive and negative coefficients. Both zero: unpenalised. Both infinite: fixed
        at zero. Infinite ``down`` only: non-negative.
    """

    design: Design
    loss: Loss
    up: np.ndarray
    down: np.ndarray

    @property
    def free(self) -> np.ndarray:
        """Unpenalised coefficients."""
        return (self.up == 0) & (self.down == 0)

    def penalty(self, w: np.ndarray) -> float:
        """Sum of rates times absolute values."""
        plus, minus = w > 0, w < 0
        return float(self.up[plus] @ w[plus] - self.down[minus] @ w[minus])

    def restricted(self, index: np.ndarray) -> "Problem":
        """Return the penalty of some coefficients."""
        return Problem(self.design, self.loss, self.up[index], self.down[index])

    def dual_ratio(self, products: np.ndarray) -> float:
        """Largest ratio of products of columns with a dual point to their bounds; feasible up to 1."""
        return self._ratios(-products)[~self.free].max(initial=0.0)

    def residual(self, v: np.ndarray, u: np.ndarray) -> float:
        """Largest distance of minus the gradient to the penalty's subdifferential."""
        r = np.maximum(np.maximum(-u - self.up, u - self.down), 0.0)
        plus, minus = v > 0, v < 0
        r[plus] = np.abs(u[plus] + self.up[plus])
        r[minus] = np.abs(u[minus] - self.down[minus])
        return r.max(initial=0.0)

    def working_set(
        self, w: np.ndarray, gradient: np.ndarray, size: int, near: float = NEAR
    ) -> np.ndarray:
        """Columns in the model, the free ones, and those nearest to entering, in order."""
        ratio = self._ratios(gradient)
        ratio[(w != 0) | self.free] = np.inf
        return np.sort(nearest_to_entering(ratio, size, near))

    def minimise(self, model, w: np.ndarray, tol: float) -> np.ndarray:
        """Minimise a quadratic model plus the penalty, from ``w``."""
        return minimise_quadratic(model, w, self.up, self.down, tol, self.residual)

    def _ratios(self, gradient):
        """How near each zero coefficient is to moving: above 1 it would."""
        bound = np.where(gradient < 0, self.up, self.down)
        size = np.abs(gradient)
        full = np.where(size > 0, np.inf, 0.0)  # without a rate
        return np.divide(size, bound, out=full, where=bound > np.finfo(float).tiny)


def l1_problem(design: Design, loss: Loss, penalty: L1) -> Problem:
    """Return the problem of absolute values of coefficients, the intercept without a rate.

    Raises
    ------
    ValueError
        If the penalty is for another number of columns, or leaves a half line without a rate.
    """
    p = coefficients_of(design, penalty)
    up, down = penalty.rates(p)
    if np.any((up == 0) & np.isinf(down)):
        raise ValueError("a non-negative coefficient has no rate; give it a small positive weight")
    none = np.zeros(design.extra)
    return Problem(design, loss, np.append(up, none), np.append(down, none))


def coefficients_of(design: Design, penalty: Penalty) -> int:
    """Return how many coefficients a design has, which must be those of the penalty."""
    p = design.p - design.extra
    if penalty.size not in {None, p}:
        raise ValueError(f"the penalty is for {penalty.size} coefficients, the model has {p}")
    return p


def nearest_to_entering(ratio: np.ndarray, size: int, near: float = NEAR) -> np.ndarray:
    """Return all of infinite ratio, and at most ``size`` more of the largest ones above ``near``."""
    count = int(min(np.count_nonzero(np.isinf(ratio)) + size, np.count_nonzero(ratio > near)))
    index = np.argpartition(-ratio, max(count - 1, 0))[:count]
    return index[ratio[index] > near]


@dataclass(frozen=True, eq=False)
class State:
    """State of a solver after an iteration.

    Attributes
    ----------
    w : (p,) numpy.ndarray
        Coefficients, the intercept last.
    objective, gap : float
        Objective at ``w`` and a bound on its distance to the minimum.
    gradient : (p,) numpy.ndarray
        Gradient of the loss.
    iterations : int
        Passes over all columns so far.
    stalled : bool
        Whether rounding kept the gap from falling further.
    """

    w: np.ndarray
    objective: float
    gap: float
    gradient: np.ndarray
    iterations: int
    stalled: bool = False


class Certifier:
    """Duality gaps for one loss and set of unpenalised columns.

    The dual point is minus the derivative of the loss, made orthogonal to the unpenalised columns
    and shrunk until the penalty admits it. Where rounding leaves the domain of the dual function,
    a little of the dual point of the model without penalised columns, which is interior, is mixed
    in.

    Attributes
    ----------
    null : (p,) numpy.ndarray
        Mode of the unpenalised coefficients alone, zero elsewhere.
    null_objective : float
        Loss there, less its bound: tolerances are relative to it.
    null_gradient : (p,) numpy.ndarray
        Gradient of the loss there: its size gives the largest useful rate.
    """

    def __init__(self, problem: Any):
        design, loss = problem.design, problem.loss
        free = np.flatnonzero(problem.free)
        self.null = np.zeros(design.p)
        self.U = self.XtU = None
        if len(free):
            self.null[free], self.U = _unpenalised_mode(design.free_columns(free), loss)
            self.XtU = design.tdot(self.U)
        z = design.dot(self.null)
        derivative = loss.derivative(z)
        self.null_objective = max(loss.value(z) - loss.least, np.finfo(float).tiny)
        self.null_gradient = design.tdot(derivative)
        self._null_alpha = -derivative

    def gap(self, problem: Any, w, objective, derivative, gradient) -> float:
        """Objective minus the best dual value at hand; infinite if none was found."""
        alpha, products = -derivative, -gradient
        if self.U is not None:
            along = self.U.T @ alpha
            alpha = alpha - self.U @ along
            products = products - self.XtU @ along
        for share in (0.0, 1e-13, 1e-10, 1e-7, 1e-4):
            a = (1 - share) * alpha + share * self._null_alpha
            b = (1 - share) * products - share * self.null_gradient
            value = problem.loss.dual(a / max(problem.dual_ratio(b), 1.0))
            if np.isfinite(value):
                return max(objective - value, 0.0)
        return np.inf


def _unpenalised_mode(A, loss):
    """Mode of a few unpenalised coefficients by Newton's method, and a basis of their columns."""
    U = _basis(A)
    z = np.zeros(len(A))
    value = loss.value(z)
    for _ in range(100):
        derivative = loss.derivative(z)
        slope = U.T @ derivative
        if np.abs(slope).max(initial=0.0) <= 1e-13 * np.abs(derivative).sum():
            break
        H = loss.hessian(z, U)
        if np.linalg.eigvalsh(H)[0] < 1e-9:
            raise ValueError(
                "the unpenalised columns alone fit the responses perfectly, so their coefficients "
                "have no finite mode; give them a rate (a constant has none: intercept=False)"
            )
        step = -np.linalg.solve(H, slope)
        t, move = 1.0, U @ step
        while (new := loss.value(z + t * move)) > value + _ARMIJO * t * (slope @ step):
            t *= 0.5
            if t < 1e-9:
                break
        if t < 1e-9:
            break
        z, value = z + t * move, new
    return np.linalg.lstsq(A, z, rcond=None)[0], U


def _basis(A):
    """Orthonormal basis of the range of a few columns."""
    left, size, _ = np.linalg.svd(A, full_matrices=False)
    return left[:, size > size[0] * 1e-12 * max(A.shape)]


@dataclass(eq=False)
class GramCache:
    """Columns of earlier working sets, and their Gram matrix if the loss is quadratic.

    Attributes
    ----------
    problem : Problem
        Whose columns they are.
    """

    problem: Problem
    _place: dict = field(default_factory=dict)
    _blocks: list = field(default_factory=list)
    _gram: Any = None

    def take(self, index: np.ndarray) -> np.ndarray:
        """Gram matrix of the columns ``index``."""
        new = np.array([j for j in index if j not in self._place], dtype=int)
        if len(new):
            self._grow(new)
        at = np.array([self._place[j] for j in index])
        return self._gram[np.ix_(at, at)]

    def _grow(self, new):
        design, old = self.problem.design, len(self._place)
        fresh = design.columns(new)
        size = old + len(new)
        if self._gram is None or len(self._gram) < size:
            larger = np.empty((max(size, 2 * old), max(size, 2 * old)))
            if old:
                larger[:old, :old] = self._gram[:old, :old]
            self._gram = larger
        at = 0
        for block in self._blocks:
            cross = design.cross(block, fresh)
            self._gram[at : at + len(cross), old:size] = cross
            self._gram[old:size, at : at + len(cross)] = cross.T
            at += len(cross)
        self._gram[old:size, old:size] = design.gram(fresh, None)
        self._blocks.append(fresh)
        self._place.update({j: old + k for k, j in enumerate(new)})


def proximal_newton(
    problem: Problem,
    certifier: Certifier,
    *,
    start: np.ndarray,
    tol: float,
    max_iter: int,
    cache: GramCache | None = None,
    gradient: np.ndarray | None = None,
    near: float = NEAR,
) -> State:
    """Minimise a loss plus separable penalties of entries or of groups.

    Parameters
    ----------
    problem : Problem
        Loss and penalty to minimise.
    certifier : Certifier
        For its loss and its unpenalised columns.
    start : (p,) numpy.ndarray
        Point to start from.
    tol : float
        Stop when the duality gap is at most this times the loss without penalised columns.
    max_iter : int
        Maximum number of passes over all columns.
    cache : GramCache, optional
        Kept between calls with the same design.
    gradient : (p,) numpy.ndarray, optional
        Gradient of the loss at ``start``, if it is known: that saves the first pass.
    near : float
        Share of its bound above which a gradient lets its column into the first working set; the
        others are not forgotten, since all columns are checked afterwards.

    Returns
    -------
    State
        The last point; converged if its ``gap`` meets the tolerance.
    """
    cache = GramCache(problem) if cache is None else cache
    loss, design = problem.loss, problem.design
    w = start.copy()
    size = _FIRST_SIZE_QUADRATIC if loss.quadratic else _first_size(design)
    inner = _INNER_QUADRATIC if loss.quadratic else _INNER
    stuck = 0
    best: Any = None
    for iteration in range(1, max_iter + 1):
        z = design.dot(w)
        derivative = loss.derivative(z)
        if iteration == 1 and start is certifier.null:
            gradient = certifier.null_gradient
        elif iteration > 1 or gradient is None:
            gradient = design.tdot(derivative)
        objective = loss.value(z) + problem.penalty(w)
        gap = certifier.gap(problem, w, objective, derivative, gradient)
        if best is None or objective < best.objective or gap < best.gap:
            stuck = 0
        else:
            stuck += 1
        best = State(w.copy(), objective, gap, gradient, iteration)
        if gap <= tol * certifier.null_objective:
            break
        if stuck >= _PATIENCE:
            return replace(best, stalled=True)
        size = max(size, int(np.count_nonzero(w)))
        working = problem.working_set(w, gradient, size, near if iteration == 1 else NEAR)
        _minimise_on(problem, cache, working, w, z, inner * problem.residual(w, gradient))
    return best


def _first_size(design):
    return max(_FIRST_SIZE, design.p // _FIRST_SHARE) if design.sparse else _FIRST_SIZE


def _minimise_on(problem, cache, index, w, z, tol):
    """Proximal Newton steps on some columns, in place in ``w`` (``z`` is used up)."""
    if problem.loss.quadratic:
        derivative = problem.loss.derivative(z)
        gradient = problem.design.tdot_of(index, derivative)
        if problem.design.by_columns(len(index)):
            model = ColumnModel(problem.design.columns(index), derivative.copy())
        else:
            model, tol = GramModel(cache.take(index), gradient), 0.03 * tol
        w[index] = problem.restricted(index).minimise(model, w[index], tol)
    else:
        _newton_steps(problem, index, w, z, tol)


def _newton_steps(problem, index, w, z, tol):
    design, loss, part = problem.design, problem.loss, problem.restricted(index)
    block, v = design.columns(index), w[index]
    for _ in range(_MAX_NEWTON):
        derivative, weights = loss.derivative(z), loss.curvature(z)
        weights = np.maximum(weights, _LEAST_CURVATURE * weights.max())
        gradient = np.asarray(block.T @ derivative)
        residual = part.residual(v, gradient)
        if residual <= tol:
            break
        model = design.model(block, weights, derivative)
        new = part.minimise(model, v, _MODEL * residual)
        t, z = line_search(part, v, new, z, gradient, np.asarray(block @ (new - v)))
        if t == 0.0:
            break
        v = new if t == 1.0 else v + t * (new - v)
    w[index] = v


def line_search(
    part: Problem,
    v: np.ndarray,
    new: np.ndarray,
    z: np.ndarray,
    gradient: np.ndarray,
    move: np.ndarray,
) -> tuple[float, np.ndarray]:
    """Return the largest step in 1, 1/2, 1/4, ... that lowers the objective enough, or 0.

    Parameters
    ----------
    part : Problem
        Loss and penalty.
    v, new : (m,) numpy.ndarray
        Coefficients before and after a full step.
    z, move : numpy.ndarray
        Linear predictor before it, and its change.
    gradient : (m,) numpy.ndarray
        Of the loss before it.

    Returns
    -------
    float
        The step.
    numpy.ndarray
        Linear predictor after it.
    """
    before = part.loss.value(z) + part.penalty(v)
    slope = gradient @ (new - v) + part.penalty(new) - part.penalty(v)
    noise = 1e-15 * max(abs(before), float(len(z)))  # of rounding in the objective
    if slope > noise:
        return 0.0, z
    t = 1.0
    while t > 1e-10:
        after = part.loss.value(z + t * move) + part.penalty(v + t * (new - v))
        if after <= before + _ARMIJO * t * slope + noise:
            return t, z + t * move
        t *= 0.5
    return 0.0, z
