"""Stochastic coordinate descent: one random column at a time."""

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.sparse.penalties.l1 import L1
from bayesstruct.sparse.solvers.designs import Design, as_design
from bayesstruct.sparse.solvers.losses import loss_for
from bayesstruct.sparse.solvers.sparse import SparseSolution
from bayesstruct.sparse.solvers.stochastic_gaps import Judge
from bayesstruct.sparse.solvers.stochastic_streams import kernel_kind, l1_penalty

__all__ = ["stochastic_coordinate_descent"]

_CURVATURE = {"gaussian": 1.0, "logistic": 0.25}  # largest, of the loss of one row
_CHECK = 5  # passes over the columns between two computations of the gap
_PASSES = 1000


def stochastic_coordinate_descent(
    X: ArrayLike | Design,
    y: ArrayLike,
    *,
    family: str = "gaussian",
    penalty: L1 | None = None,
    rate: float | None = None,
    intercept: bool = True,
    curvature: str = "columns",
    tol: float | None = 1e-3,
    max_steps: int | None = None,
    start: SparseSolution | None = None,
    random_seed: int | np.random.Generator | None = None,
) -> SparseSolution:
    r"""Mode of a regression under Laplace priors, one random coordinate at a time.

    .. math:: P(w, b) = \sum_i \ell(y_i, x_i' w + b) + \sum_j \lambda_j |w_j|

    The mode under independent Laplace priors of rates :math:`\lambda_j`. No step size has to be
    chosen and the objective never rises. Use it for a rough answer on a table that is large but in
    memory, where the working sets of `sparse_mode` would hold most columns.

    Parameters
    ----------
    X : (n, p) array_like, DataFrame, scipy.sparse matrix, or Design
        Predictors; a `Design` brings its own intercept.
    y : (n,) array_like
        Responses, see `bayesstruct.sparse.solvers.losses.loss_for`.
    family : {"gaussian", "logistic"}
        Loss of a response; Gaussian responses have unit variance.
    penalty : L1, optional
        Minus the log prior; ``L1(rate)`` unless given.
    rate : float, optional
        Rate of the penalty, in place of its own.
    intercept : bool
        Add an unpenalised constant, one more coordinate.
    curvature : {"columns", "unit"}
        Bound on the curvature of the loss in a coordinate: from the squares of its column, or the
        source's, for predictors between -1 and 1, whose steps are shorter.
    tol : float, optional
        Stop when the duality gap, computed after every fifth pass, is at most this times the loss without
        penalised coefficients. None: take `max_steps` steps, without a warning.
    max_steps : int, optional
        Maximum number of steps, 1,000 for each coordinate by default.
    start : SparseSolution, optional
        Warm start.
    random_seed : int or numpy.random.Generator, optional
        For the order of the coordinates.

    Returns
    -------
    SparseSolution
        The estimate with a certified gap; the iterations are steps.

    Raises
    ------
    ValueError
        If the table, the responses or the penalty cannot be used.

    Warns
    -----
    ConvergenceWarning
        If the gap is above `tol` after `max_steps` steps.

    Notes
    -----
    In the source the loss is averaged, so that its rate is the rate here over n. Theorem 1, in the units used here:
    after T steps from :math:`w_0` the expected error is at most
    :math:`d\,[\tfrac12 \sum_j B_j (w^*_j - w_{0j})^2 + P(w_0)] / (T + 1)`, with d coordinates and
    their curvatures bounded by :math:`B_j`. The source has :math:`B_j = n \beta`; its algorithm for
    other columns, :math:`B_j = \beta \sum_i x_{ij}^2`, follows by rescaling them.

    Corrected: the first branch of algorithm 2, which has to subtract the threshold too; the printed
    run times, a factor of 2 looser than the theorem, are not used.

    References
    ----------
    Shalev-Shwartz, S., Tewari, A. (2011). Stochastic methods for l1-regularized loss minimization.
    Journal of Machine Learning Research 12, 1865-1892: algorithms 1 and 2, theorem 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.solvers import optimizers
    >>> found = optimizers.stochastic_coordinate_descent(
    ...     np.eye(3), [3.0, 0.2, -2.0], rate=1.0, intercept=False, random_seed=1
    ... )
    >>> found.coefficients
    array([ 2.,  0., -1.])
    """
    kernel_kind(family)
    penalty = l1_penalty(penalty, rate)
    design, loss = as_design(X, intercept=intercept), loss_for(family, y)
    judge = Judge(design, loss, penalty)
    bound = _bounds(design, family, curvature)
    w = judge.certifier.null.copy()
    if start is not None:
        w[: judge.p], w[judge.p :] = start.coefficients, start.intercept
    rng = np.random.default_rng(random_seed)
    left = _PASSES * design.p if max_steps is None else max_steps
    chunk, taken = _CHECK * design.p, 0
    z = design.dot(w)
    while left > 0:
        order = rng.integers(design.p, size=min(chunk, left))
        _descend(design, loss, family, w, z, bound, judge.problem, order)
        taken, left = taken + len(order), left - len(order)
        z = design.dot(w)  # without the rounding of many small changes
        if tol is not None and judge.gap(w) <= tol * judge.certifier.null_objective:
            break
    solution = judge.solution(w, taken, "stochastic coordinate descent", tol)
    if tol is not None:
        solution.warn_unless_converged(
            "stochastic_coordinate_descent", "Raise `max_steps` or `tol`, or use `sparse_mode`."
        )
    return solution


def _descend(design, loss, family, w, z, bound, problem, order):
    from bayesstruct.sparse.kernels import stochastic as kernels

    rest = (loss.y, kernel_kind(family), w, z, bound, problem.up, problem.down, order)
    if design.sparse:
        X = design.X
        kernels.descend_sparse_columns(X.data, X.indices, X.indptr, *rest)
    else:
        kernels.descend_columns(design.X, *rest)


def _bounds(design, family, curvature):
    """Bounds on the curvature of the summed loss in each coordinate."""
    if curvature not in {"columns", "unit"}:
        raise ValueError(f'`curvature` must be "columns" or "unit", not {curvature!r}')
    X, beta = design.X, _CURVATURE[family]
    values = X.data if design.sparse else X
    if curvature == "unit":
        if np.abs(values).max(initial=0.0) > 1:
            raise ValueError('curvature="unit" needs predictors between -1 and 1')
        return np.full(design.p, beta * design.n)
    squares = np.asarray(X.multiply(X).sum(axis=0)).ravel() if design.sparse else (X**2).sum(axis=0)
    return beta * (np.append(squares, design.n) if design.intercept else squares)
