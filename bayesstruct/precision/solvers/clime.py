r"""CLIME: the sparsest precision matrix that inverts a covariance matrix up to a tolerance.

Each column is a linear program. A parametric simplex method (:mod:`bayesstruct.precision.kernels.clime`) follows its solution from
:math:`\lambda = 1`, where it is zero, to the penalty that is asked for, and so through the whole path. Solutions are
vertices, whose zeros are exact, and come with a dual point: the gap is computed from both, and a column without a
certificate is solved anew by HiGHS.
"""

import math

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesstruct.core.solution import Solution
from bayesstruct.data.arguments import number
from bayesstruct.data.errors import warn
from bayesstruct.precision.solvers.second_moments import SecondMoments, second_moments

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

__all__ = [
    "CLIMESolution",
    "clime",
    "clime_path",
    "clime_penalty",
    "least_norm_columns",
    "symmetrized",
]

_RATE = 0.5
# The penalty where the default cannot be met, over the smallest that can: at that one columns of the estimate have large
# norms (10 to 20 on 25 x 40 and 36 x 60 tables whose true ones have 1 to 1.6), a tenth above it 5, with less error.
_ABOVE = 1.1
_ROUNDING = 1e-9  # of sums that are zero, relative to the sum of magnitudes


@dataclass(frozen=True, eq=False)
class CLIMESolution(Solution):
    r"""A `Solution` whose estimate is a sparse approximate inverse of a covariance matrix.

    Attributes
    ----------
    precision : (p, p) numpy.ndarray
        Symmetric, with exact zeros; not always positive definite.
    columns : (p, p) numpy.ndarray
        The solutions of the p linear programs, one a column, before they were made symmetric.
    penalty : float
        :math:`\lambda`.
    violation : float
        How much :math:`|S \Omega - I|_\infty` exceeds the penalty: rounding errors, or less than zero.
    names : tuple of str
        Names of the columns of the table.
    """

    precision: np.ndarray
    columns: np.ndarray
    penalty: float
    violation: float
    names: tuple[str, ...]

    def __repr__(self) -> str:
        edges = np.count_nonzero(np.triu(self.precision, 1))
        return f"CLIMESolution({len(self.names):,} variables, {edges:,} edges, penalty {self.penalty:.3g}, gap {self.gap:.2g})"


class LeastNormColumn(NamedTuple):
    """Solutions of one linear program at several penalties, with their certificates.

    Attributes
    ----------
    weights : (q, k) numpy.ndarray
    gaps : (q,) numpy.ndarray
        Duality gaps; NaN from the first penalty on that no vector meets.
    violations : (q,) numpy.ndarray
        By how much the box is left.
    smallest : float
        0, or the smallest penalty that can be met.
    pivots : int
    """

    weights: np.ndarray
    gaps: np.ndarray
    violations: np.ndarray
    smallest: float
    pivots: int


def clime(
    S: "pd.DataFrame | ArrayLike",
    penalty: float | None = None,
    *,
    n: int | None = None,
    tol: float = 1e-7,
) -> CLIMESolution:
    r"""Estimate a sparse precision matrix by constrained L1 minimisation (CLIME).

    .. math::

        \min \sum_{ij} |\Omega_{ij}| \quad \text{subject to} \quad \max_{ij} |(S \Omega - I)_{ij}| \le \lambda

    Its columns are p separate linear programs. Of the two elements of a pair the one of smaller magnitude is kept, that above the
    diagonal if they are equally large.

    Parameters
    ----------
    S : (p, p) or (n, p) DataFrame or array_like
        Covariance matrix, which is symmetric; or a table of rows, whose columns are centred and whose covariances have the
        divisor n. There may be fewer rows than columns. As many rows as columns need a DataFrame: an array of this shape is
        taken for a covariance matrix.
    penalty : float, optional
        :math:`\lambda`, not negative; zero gives the inverse of an invertible matrix, and from 1 on the estimate is zero. By default
        :math:`\tfrac12 \sqrt{\log p / n}`, or a tenth more than the smallest penalty that can be met if that is larger (few rows).
    n : int, optional
        Number of rows behind a covariance matrix, for the default penalty.
    tol : float
        A column is certified if its duality gap, relative to its norm, and the violation of its box are at most this.

    Returns
    -------
    CLIMESolution
        ``objective`` and ``gap`` are sums over the columns; ``iterations`` counts changes of a basis.

    Raises
    ------
    TableError
        If the table cannot be used.
    ValueError
        If the penalty is negative, or so small that no matrix meets the constraints (fewer rows than columns); the message has the
        smallest one that can be met.

    Warns
    -----
    ConvergenceWarning
        If a column has no certificate.
    TableWarning
        If the default penalty cannot be met and a larger one was taken.

    See Also
    --------
    clime_path : the same for a sequence of penalties at the cost of the smallest.
    graphical_lasso : penalised likelihood, which is always positive definite.
    sink_removal : a directed graph from such an estimate.

    Notes
    -----
    *The prior whose mode this is.* Before the two elements of a pair are compared, the estimate is the mode of Laplace priors, of any scale, on
    the elements of :math:`\Omega` under a likelihood that is constant where the constraints hold and zero elsewhere. It is not the mode under a
    normal likelihood, which the graphical lasso is.

    *Error.* If :math:`\lambda \ge \|\Omega^*\|_1 \, |S - \Sigma^*|_\infty` for the true matrices (the first norm is the largest
    sum of magnitudes in a column), every element is within :math:`4 \|\Omega^*\|_1 \lambda` of the true one, and no column has a
    larger norm than the true one [1]_. The factor of the default penalty is a practical choice. A penalty that no matrix meets
    is not as large as the theorem asks for, since the true matrix meets those that are.

    *Units.* Multiplying S by a constant divides the estimate by it. Units of single columns matter: standardise columns of different units, unless
    their variances are meant to say something.

    *Uniqueness.* A linear program may have several solutions; this is one of them, a vertex.

    References
    ----------
    .. [1] Cai, T., Liu, W., Luo, X. (2011). A constrained l1 minimization approach to sparse precision matrix estimation.
       JASA 106, 594-607; theorem 6.
    .. [2] Pang, H., Liu, H., Vanderbei, R. (2014). The fastclime package for linear programming and large-scale precision matrix estimation
       in R. JMLR 15, 489-493 (parametric simplex methods).

    Examples
    --------
    >>> from bayesstruct.solvers import clime
    >>> clime([[1.0, 0.5, 0.1], [0.5, 1.0, 0.0], [0.1, 0.0, 1.0]], 0.2).precision.round(3)
    array([[ 0.933, -0.267,  0.   ],
           [-0.267,  0.933,  0.   ],
           [ 0.   ,  0.   ,  0.8  ]])
    """
    tol = number("tol", tol, above=0.0)
    moments = second_moments(S, n)
    if penalty is None:
        solution = _by_default(moments, tol)
    else:
        penalty = number("penalty", penalty, least=0.0)
        solution = _path(moments, np.array([penalty]), tol)[0]
    solution.warn_unless_converged(
        "clime", "Raise the penalty, or leave out columns that others determine."
    )
    return solution


def clime_path(
    S: "pd.DataFrame | ArrayLike",
    penalties: Iterable[float],
    *,
    n: int | None = None,
    tol: float = 1e-7,
) -> list[CLIMESolution]:
    """Estimate precision matrices by `clime` for several penalties, at the cost of the smallest of them.

    Parameters
    ----------
    S, n, tol
        As in `clime`.
    penalties : iterable of float
        In any order, not negative.

    Returns
    -------
    list of CLIMESolution
        One for each penalty, in the order given; `iterations` are those of the whole path.

    Raises
    ------
    TableError, ValueError
        As in `clime`.

    Warns
    -----
    ConvergenceWarning
        If a column has no certificate.

    Examples
    --------
    >>> from bayesstruct.solvers import clime_path
    >>> path = clime_path([[1.0, 0.5], [0.5, 1.0]], [0.5, 0.1])
    >>> [float(solution.precision[0, 0].round(3)) for solution in path]
    [0.5, 1.133]
    """
    moments = second_moments(S, n)
    if not isinstance(penalties, Iterable):
        raise TypeError(
            f"`penalties` must be several numbers, such as [0.5, 0.1], not {penalties!r}"
        )
    tol = number("tol", tol, above=0.0)
    levels = np.array([number("penalties", value, least=0.0) for value in penalties])
    solutions = _path(moments, levels, tol)
    for solution in solutions:
        solution.warn_unless_converged(
            "clime", "Raise the penalty, or leave out columns that others determine."
        )
    return solutions


def clime_penalty(moments: SecondMoments) -> float:
    """Return the default penalty, half the root of log p over n.

    Raises
    ------
    TypeError
        If the number of rows is not known.
    """
    if moments.n is None:
        raise TypeError(
            "the default penalty, 0.5 sqrt(log p / n), needs the number of rows: give `penalty`, or `n`"
        )
    return _RATE * math.sqrt(math.log(max(len(moments.names), 2)) / moments.n)


class _Columns(NamedTuple):
    """Solutions of all linear programs at several penalties: as `LeastNormColumn`, with one more dimension for the columns."""

    weights: np.ndarray
    gaps: np.ndarray
    violations: np.ndarray
    smallest: float
    pivots: int


def _by_default(moments, tol):
    """Solve at the default penalty, or a little above the smallest that can be met."""
    wanted = clime_penalty(moments)
    found = _columns(moments, np.array([wanted]), tol)
    smallest = found.smallest
    if not np.isnan(found.gaps).any() or smallest == 0:
        return _solutions(moments, np.array([wanted]), found, tol)[0]
    penalty = min(_ABOVE * smallest, 0.5 * (1 + smallest))  # at 1 the estimate is zero
    warn(
        f"at the default penalty of clime, {wanted:.4g}, no matrix meets the constraints, since there are too few rows or some columns "
        f"nearly determine others; {penalty:.4g} is taken, a little more than the smallest that can be met. Give `penalty` "
        "to choose another one"
    )
    return _path(moments, np.array([penalty]), tol)[0]


def _path(moments, penalties, tol):
    """Solve all columns at all penalties."""
    return _solutions(moments, penalties, _columns(moments, penalties, tol), tol)


def _columns(moments, penalties, tol):
    """Solve all linear programs at all penalties, whether or not they can be met."""
    S, p = moments.covariance, len(moments.names)
    order = np.argsort(-penalties, kind="stable")
    weights = np.zeros((len(penalties), p, p))
    gaps, violations = np.zeros((len(penalties), p)), np.zeros((len(penalties), p))
    smallest, pivots = 0.0, 0
    for j in range(p):
        column = least_norm_columns(S, j, penalties[order], tol)
        weights[order, :, j] = column.weights
        gaps[order, j], violations[order, j] = column.gaps, column.violations
        smallest, pivots = max(smallest, column.smallest), pivots + column.pivots
    return _Columns(weights, gaps, violations, smallest, pivots)


def _solutions(moments, penalties, found, tol):
    """Estimates from solved columns; raise if some penalty could not be met."""
    weights, gaps, violations, smallest, pivots = found
    if np.isnan(gaps).any():
        remedy = (
            "raise the penalty, standardise the columns, or leave out columns that others determine"
        )
        if smallest > 0:
            remedy = f"give a penalty above {smallest:.4g}, the smallest that can be met"
        raise ValueError(
            f"no matrix was found that meets the constraints at the penalty {penalties.min():.4g}, since the covariance matrix is singular, or "
            f"nearly so; {remedy}"
        )
    norms = abs(weights).sum(axis=1)
    certified = (gaps <= tol * norms) & (violations <= tol)
    return [
        CLIMESolution(
            float(norms[q].sum()),
            float(gaps[q].sum()),
            pivots,
            bool(certified[q].all()),
            symmetrized(weights[q]),
            weights[q],
            float(penalties[q]),
            float(violations[q].max()),
            moments.names,
        )
        for q in range(len(penalties))
    ]


def symmetrized(columns: np.ndarray) -> np.ndarray:
    """Keep of each pair of elements the one of smaller magnitude, the upper one if they are equally large.

    Parameters
    ----------
    columns : (p, p) ndarray

    Returns
    -------
    (p, p) ndarray
        Symmetric.
    """
    upper = np.triu(np.where(abs(columns) <= abs(columns.T), columns, columns.T), 1)
    return upper + upper.T + np.diag(np.diag(columns))


def least_norm_columns(
    X: np.ndarray, target: int, penalties: np.ndarray, tol: float = 1e-7
) -> LeastNormColumn:
    r"""Solve one linear program, :math:`\min \|w\|_1` within :math:`|e - X w|_\infty \le \lambda`, at several penalties.

    Parameters
    ----------
    X : (m, k) ndarray
        Some rows and columns of a covariance matrix.
    target : int
        Row in which e is 1.
    penalties : (q,) ndarray
        Not increasing, not negative.
    tol : float
        As in `clime`.

    Returns
    -------
    LeastNormColumn
    """
    from bayesstruct.precision.kernels.clime import DONE, INFEASIBLE, column_path

    X = np.ascontiguousarray(X, dtype=np.float64)
    m, k = X.shape
    weights, duals = np.zeros((len(penalties), k)), np.zeros((len(penalties), m))
    start = int(np.sum(penalties >= 1.0))  # the solution is zero
    status, reached, level, pivots = DONE, 0, 1.0, 0
    if start < len(penalties):
        status, reached, level, pivots = column_path(
            X, np.ascontiguousarray(X.T), target, penalties[start:], weights[start:], duals[start:]
        )
    gaps, violations = _certificates(X, target, penalties, weights, duals)
    found = LeastNormColumn(weights, gaps, violations, 0.0, pivots)
    if status == DONE and (found.gaps <= tol * abs(weights).sum(axis=1)).all():
        if (found.violations <= tol).all():
            return found
    if status == INFEASIBLE and _unreachable(
        X, target, penalties[start + reached], duals[start + reached]
    ):
        found.gaps[start + reached :] = np.nan
        found = found._replace(smallest=level)
    return _completed(X, target, penalties, found, start + reached, tol)


def _certificates(X, target, penalties, weights, duals):
    """Duality gaps, and by how much the box is left."""
    residual = -weights @ X.T
    residual[:, target] += 1.0
    cover = np.maximum(abs(duals @ X).max(axis=1), 1.0)
    lower = (duals[:, target] - penalties * abs(duals).sum(axis=1)) / cover
    return abs(weights).sum(axis=1) - lower, abs(residual).max(axis=1) - penalties


def _unreachable(X, target, penalty, ray):
    r"""Show that no vector meets the constraints: it would have a norm of at least :math:`(d_t - \lambda |d|_1) / |X'd|_\infty`."""
    excess = ray[target] - penalty * abs(ray).sum()
    rounding = abs(ray @ X) <= _ROUNDING * (abs(ray) @ abs(X))
    return bool(excess > _ROUNDING * abs(ray).sum() and rounding.all())


def _completed(X, target, penalties, found, reached, tol):
    """Solve what has no certificate by HiGHS."""
    weights, gaps, violations = found.weights, found.gaps.copy(), found.violations.copy()
    norms = abs(weights).sum(axis=1)
    wrong = (gaps > tol * norms) | (violations > tol) | (np.arange(len(penalties)) >= reached)
    wrong &= ~np.isnan(gaps)
    for q in np.flatnonzero(wrong).tolist():
        solved = _by_highs(X, target, penalties[q])
        if solved is None:
            gaps[q:] = np.nan
            return found._replace(gaps=gaps, violations=violations)
        one = np.array([penalties[q]])
        gap, violation = _certificates(X, target, one, solved[0][None], solved[1][None])
        if q >= reached or max(gap[0], violation[0]) < max(gaps[q], violations[q]):
            weights[q], gaps[q], violations[q] = solved[0], gap[0], violation[0]
    return found._replace(gaps=gaps, violations=violations)


def _by_highs(X, target, penalty):
    """Solve by HiGHS; None if no vector meets the constraints."""
    from scipy.optimize import linprog

    m, k = X.shape
    unit = abs(X).max() or 1.0
    X, e = X / unit, np.arange(m) == target
    done = linprog(
        np.ones(2 * k),
        A_ub=np.block([[X, -X], [-X, X]]),
        b_ub=np.concatenate([penalty + e, penalty - e]),
        bounds=(0, None),
        method="highs",
    )
    if done.x is None:
        return None
    marginals = done.ineqlin.marginals
    return (done.x[:k] - done.x[k:]) / unit, (marginals[:m] - marginals[m:]) / unit
