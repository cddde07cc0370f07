r"""Precision matrices of several tables with one sparsity pattern: the mode under a norm over the tables of each element.

Block coordinate ascent (:mod:`bayesstruct.precision.kernels.multi_task`), stopped by a duality gap. With
:math:`R_k = n_k (K_k^{-1} - S_k)`, a dual point is a matrix A of subgradients: :math:`A_{ij}` is the point of
:math:`\rho \, \partial \|k_{ij}\|` next to :math:`R_{ij}`, over all tables at once. Since it is a subgradient at the present
matrices, the gap is :math:`\sum_k n_k (\operatorname{tr} F_k - \log\det(I + F_k))` with
:math:`F_k = L_k' (S_k + A_k / n_k - K_k^{-1}) L_k` and :math:`K_k = L_k L_k'`: of second order in the error.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.core.solution import Solution
from bayesstruct.data.errors import listing
from bayesstruct.data.names import nearest
from bayesstruct.precision.solvers.graphical_lasso import as_covariance, as_symmetric

__all__ = [
    "NORMS",
    "MultiTaskSolution",
    "as_weights",
    "multi_task_gap",
    "multi_task_graphical_lasso",
    "solve_tasks",
]

NORMS = ("l2", "linf")


@dataclass(frozen=True, eq=False)
class MultiTaskSolution(Solution):
    """A `Solution` whose estimate is one precision matrix for each task.

    Attributes
    ----------
    precision : (tasks, p, p) numpy.ndarray
        The estimates; zeros off the common support are exact.
    covariance : (tasks, p, p) numpy.ndarray
        Their inverses.
    """

    precision: np.ndarray
    covariance: np.ndarray


def multi_task_graphical_lasso(
    S: np.ndarray | Sequence[ArrayLike],
    n: ArrayLike,
    rate: ArrayLike,
    *,
    norm: str = "l2",
    diagonal_rate: float = 0.0,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    init: ArrayLike | MultiTaskSolution | None = None,
) -> MultiTaskSolution:
    r"""Maximise the posterior density of one precision matrix for each of several tables, with a common graph.

    .. math::

        \max_{K_1, \ldots, K_m \succ 0} \; \sum_k \frac{n_k}{2} (\log\det K_k - \operatorname{tr} S_k K_k)
            - \lambda \sum_{i < j} \|(k_{ij}^{(1)}, \ldots, k_{ij}^{(m)})\|
            - d \sum_i \|(k_{ii}^{(1)}, \ldots, k_{ii}^{(m)})\|

    An edge is in the graphs of all tables or of none.

    Parameters
    ----------
    S : (tasks, p, p) array_like or sequence of (p, p) array_like
        Covariance or correlation matrix of each table, of the same columns in the same order; may be singular.
    n : int or (tasks,) array_like
        Number of rows of each table.
    rate : float or (p, p) array_like
        Non-negative rate :math:`\lambda` of the prior of the off-diagonal elements, of a summed log likelihood; a matrix must be
        symmetric, and its diagonal is not used.
    norm : {"l2", "linf"}
        Norm over the tables: Euclidean, or the largest absolute value.
    diagonal_rate : float, default 0
        Rate d of the prior of the diagonal elements; zero is a flat prior.
    tol : float
        Stop when the duality gap is at most this, in units of the log density.
    max_iter : int
        Maximum number of sweeps over all columns.
    init : (tasks, p, p) array_like or MultiTaskSolution, optional
        Positive definite matrices to start from.

    Returns
    -------
    MultiTaskSolution
        ``precision``, ``covariance``, ``objective`` (the maximum above), ``gap`` (a bound on how far the objective is from its
        maximum, from a dual feasible point), ``iterations`` (sweeps), ``converged``.

    Raises
    ------
    ValueError
        If an argument is malformed, or the problem is unbounded.

    Warns
    -----
    ConvergenceWarning
        If the gap is above `tol` after `max_iter` sweeps.

    See Also
    --------
    bayesstruct.ops.multi_task_graphical_lasso : the same as a differentiable PyTensor operation.

    Notes
    -----
    *The prior whose mode this is.* The elements of a pair of columns in all tables are a group with density
    :math:`\propto \exp(-\lambda \|\cdot\|)`, those of a column's diagonal one with rate d, conditioned on positive definite
    matrices. The source maximises twice this objective, with its :math:`\rho = \lambda` and, where it penalises the diagonal,
    :math:`\rho = 2 d`; its tables weigh by :math:`T_k = n_k`.

    *One table* is the graphical lasso with penalty ``rate / n``. *Tables that are equal*, m of them of n rows, have the
    graphical lasso with penalty ``rate / (n sqrt(m))`` ("l2") or ``rate / (n m)`` ("linf") each.

    *Algorithm.* Without a penalty of the diagonal, block coordinate ascent as in the source, which converges to the maximum.
    With one, the source's iteration ends at another point; here the multipliers of the diagonal are part of the curvature,
    and a step is shortened until the objective does not fall.

    References
    ----------
    Honorio, J. (2012). *Tractable learning of graphical model structures from data*. PhD thesis, Stony Brook University, chapter 4.

    Honorio, J., Samaras, D. (2010). Multi-task learning of Gaussian graphical models. *ICML*.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.solvers import multi_task_graphical_lasso
    >>> one = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> other = np.array([[1.0, -0.3], [-0.3, 1.0]])
    >>> multi_task_graphical_lasso([one, other], 100, 20.0).precision.round(3)
    array([[[ 1.119, -0.365],
            [-0.365,  1.119]],
    <BLANKLINE>
           [[ 1.042,  0.209],
            [ 0.209,  1.042]]])
    """
    given = [as_covariance(one) for one in S]
    if len(shapes := {one.shape for one in given}) > 1:
        raise ValueError(f"the matrices of S have different shapes, {listing(sorted(shapes))}.")
    S = np.stack(given)
    tasks, p, _ = S.shape
    weights = as_weights(n, tasks)
    rates = _rates(rate, diagonal_rate, p)
    if norm not in NORMS:
        raise ValueError(nearest("norm", norm, NORMS))
    _check_bounded(S, rates)
    start = None if init is None else _start(init, S.shape)
    try:
        solution = solve_tasks(S, weights, rates, norm, start, tol, max_iter)
    except np.linalg.LinAlgError:
        _refuse_indefinite(S)
        raise
    solution.warn_unless_converged("multi_task_graphical_lasso", "Raise max_iter or rate.")
    return solution


def solve_tasks(S, weights, rates, norm, start, tol, max_iter) -> MultiTaskSolution:
    """Solve for checked arguments; the diagonal of ``rates`` has twice the rate of the diagonal."""
    from bayesstruct.precision.kernels.multi_task import multi_task_sweep

    tasks, p, _ = S.shape
    linf = norm == "linf"
    diagonal = np.ascontiguousarray(rates.diagonal())
    K = np.zeros(S.shape) if start is None else start.copy()
    if start is None:
        for k in range(tasks):
            np.fill_diagonal(K[k], 1.0 / (S[k].diagonal() + diagonal / weights.sum()))
    work = np.empty((4, tasks, p)), np.empty((8, tasks))
    W = np.linalg.inv(K)
    gap, iterations = np.inf, 0
    if start is not None:
        gap = multi_task_gap(S, weights, K, W, rates, norm)
    while gap > tol and iterations < max_iter:
        multi_task_sweep(S, weights, K, W, rates, diagonal, linf, *work)
        W = np.linalg.inv(K)
        W = 0.5 * (W + W.transpose(0, 2, 1))
        gap = multi_task_gap(S, weights, K, W, rates, norm)
        iterations += 1
    value = objective(S, weights, K, rates, norm)
    return MultiTaskSolution(value, gap, iterations, bool(gap <= tol), K, W)


def objective(S, weights, K, rates, norm) -> float:
    """Log density up to a constant, as in `multi_task_graphical_lasso`."""
    order = 2 if norm == "l2" else np.inf
    fit = weights * (np.linalg.slogdet(K)[1] - np.einsum("kij,kij->k", S, K))
    return float(0.5 * (fit.sum() - (rates * np.linalg.norm(K, ord=order, axis=0)).sum()))


def multi_task_gap(S, weights, K, W, rates, norm) -> float:
    """Bound on the objective that is still to gain; infinite where the dual point is not positive definite."""
    residual = weights[:, None, None] * (W - S)
    nearest_subgradient = _nearest_l2 if norm == "l2" else _nearest_linf
    A = nearest_subgradient(residual, K, rates)
    L = np.linalg.cholesky(K)
    F = L.transpose(0, 2, 1) @ ((A - residual) / weights[:, None, None]) @ L
    return 0.5 * float(sum(w * _excess(f) for w, f in zip(weights, F, strict=True)))


def _excess(F) -> float:
    """``tr F - log det(I + F)``, or a bound above it where rounding would be all that is seen."""
    norm = np.linalg.norm(F)
    if norm < 1e-3:
        return 0.5 * norm**2 / (1.0 - norm)
    values = np.linalg.eigvalsh(0.5 * (F + F.T))
    return float((values - np.log1p(values)).sum()) if values[0] > -1.0 else np.inf


def _nearest_l2(R, K, rates):
    """Subgradients of the Euclidean norms at K, next to R where K is zero."""
    size, length = np.linalg.norm(K, axis=0), np.linalg.norm(R, axis=0)
    zero = size == 0
    inside = R * np.minimum(1.0, rates / np.where(length > 0, length, 1.0))
    return np.where(zero, inside, K * (rates / np.where(zero, 1.0, size)))


def _nearest_linf(R, K, rates):
    """Subgradients of the largest absolute values at K next to R."""
    size = np.abs(K).max(axis=0)
    tied = np.abs(K) >= size * (1.0 - 1e-12)
    signs = np.where(size > 0, np.sign(K), np.sign(R))
    inside = np.abs(R).sum(axis=0) <= rates
    weights = _simplex(np.where(tied, signs * R, -np.inf), rates)
    return np.where((size == 0) & inside, R, signs * weights)


def _simplex(v, total):
    """Project along the first axis on non-negative vectors with this sum."""
    ordered = -np.sort(-v, axis=0)
    counts = np.arange(1, len(v) + 1).reshape(-1, *[1] * (v.ndim - 1))
    levels = (np.cumsum(ordered, axis=0) - total) / counts
    with np.errstate(invalid="ignore"):
        last = (ordered > levels).sum(axis=0)
    level = np.take_along_axis(levels, np.maximum(last, 1)[None] - 1, axis=0)[0]
    return np.maximum(v - level, 0.0)


def as_weights(n: ArrayLike, tasks: int) -> np.ndarray:
    """Return the number of rows of each task."""
    weights = np.array(n, dtype=np.float64) if np.ndim(n) else np.full(tasks, n, dtype=np.float64)
    if weights.shape != (tasks,):
        raise ValueError(f"n has shape {weights.shape}, but there are {tasks} covariance matrices.")
    if not (np.isfinite(weights).all() and weights.min() > 0):
        raise ValueError("n must be positive numbers of rows.")
    return weights


def _rates(rate, diagonal_rate, p) -> np.ndarray:
    rate = np.asarray(rate, dtype=np.float64)
    matrix = np.full((p, p), float(rate)) if rate.ndim == 0 else as_symmetric("rate", rate).copy()
    if matrix.shape != (p, p):
        raise ValueError(f"rate has shape {matrix.shape}, but the matrices have shape {(p, p)}.")
    np.fill_diagonal(matrix, 2.0 * diagonal_rate)
    if not (np.isfinite(matrix).all() and matrix.min() >= 0):
        raise ValueError("rate and diagonal_rate must be non-negative and finite.")
    return matrix


def _start(init, shape) -> np.ndarray:
    precision = init.precision if isinstance(init, MultiTaskSolution) else init
    precision = np.stack([as_symmetric("init", one) for one in precision])
    if precision.shape != shape:
        raise ValueError(f"init has shape {precision.shape}, but S has shape {shape}.")
    if np.linalg.eigvalsh(precision).min() <= 0:
        raise ValueError("init must be positive definite.")
    return precision


def _refuse_indefinite(S):
    least = np.linalg.eigvalsh(S)[:, 0]
    if least.min() < 0:
        raise ValueError(
            f"matrix {least.argmin()} of S is no covariance matrix, it has the eigenvalue {least.min():.2g}: give that of complete rows."
        ) from None


def _check_bounded(S, rates):
    off = ~np.eye(len(rates), dtype=bool)
    smallest = (S.diagonal(axis1=1, axis2=2) + rates.diagonal()).min(axis=0)
    if smallest.min() <= 0:
        raise ValueError(
            f"Unbounded: a matrix of S has a zero on the diagonal at index {smallest.argmin()} (a constant "
            "variable) and the diagonal is not penalised. Drop the variable or set diagonal_rate."
        )
    if len(rates) > 1 and rates[off].min() == 0:
        least = np.linalg.eigvalsh(S).min()
        if least <= 1e-10 * S.max():
            raise ValueError(
                f"Unbounded: rate has a zero and a matrix of S is singular (smallest eigenvalue {least:.2g}). Raise rate."
            )
