r"""Directed graphs from a precision matrix: remove a variable without children, read its coefficients, and go on.

With :math:`x = B x + \varepsilon`, :math:`\operatorname{Var} \varepsilon_i = \sigma_i^2`, the precision matrix is :math:`\Omega = (I - B)' D^{-1} (I - B)`.
Its diagonal is :math:`1 / \sigma_i^2 + \sum_l b_{li}^2 / \sigma_l^2`, over the children l of i, so that a variable without children has

.. math::

    \Omega_{ii} \sigma_i^2 = 1, \qquad b_{ij} = -\Omega_{ij} / \Omega_{ii},

and all others have a larger product. What is left after its removal is the model of the other variables.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import choice, number, positive_by_column
from bayesstruct.data.errors import TableError, column_list, warn
from bayesstruct.precision.solvers.clime import clime, clime_penalty, least_norm_columns
from bayesstruct.precision.solvers.second_moments import (
    SecondMoments,
    second_moments,
    symmetric_matrix,
)
from bayesstruct.sem.solvers.thresholds import kept_by_criterion
from bayesstruct.sem.solvers.weighted_graph import WeightedGraph

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

__all__ = ["SinkRemovalSolution", "sink_removal"]

_ESTIMATORS = ("clime", "graphical_lasso", "inverse")
_UPDATES = ("lp", "schur")
_ROWS = ("all", "support")


@dataclass(frozen=True, eq=False, repr=False)
class SinkRemovalSolution(WeightedGraph):
    """A directed acyclic graph with its regressions, found by `sink_removal`.

    Attributes
    ----------
    names : tuple of str
        The p variables.
    order : tuple of str
        The variables, parents before children.
    weights : (p, p) numpy.ndarray
        Coefficients in the units of the table, row the child, column the parent; exactly zero without an arc.
    noise_variances : (p,) numpy.ndarray
        Variances of the noise, given the order and before small coefficients were set to zero.
    precision : (p, p) numpy.ndarray
        The precision matrix that the removal began with.
    penalty : float or None
        Penalty of that estimate.
    threshold : float or "bic"
        Coefficients of at most this magnitude were set to zero, or those that the criterion left out.
    notes : tuple of str
        What the estimate is, and what it is not.
    """

    names: tuple[str, ...]
    order: tuple[str, ...]
    weights: np.ndarray
    noise_variances: np.ndarray
    precision: np.ndarray
    penalty: float | None
    threshold: float | str
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        arcs = np.count_nonzero(self.weights)
        return f"SinkRemovalSolution({len(self.names):,} variables, {arcs:,} arcs, order {', '.join(self.order[:3])}, ...)"

    @property
    def adjacency(self) -> np.ndarray:
        """The graph as a (p, p) matrix of 0 and 1; rows are parents."""
        return (self.weights != 0).T.astype(np.int8)


def sink_removal(
    data: "pd.DataFrame | ArrayLike | None" = None,
    *,
    precision: "pd.DataFrame | ArrayLike | None" = None,
    variances: Any = None,
    estimator: str | None = None,
    penalty: float | None = None,
    update: str | None = None,
    rows: str = "all",
    support: float = 0.0,
    threshold: float | str = 0.0,
    n: int | None = None,
) -> SinkRemovalSolution:
    r"""Learn a linear structural equation model from second moments by removing one sink after the other.

    The variable with the smallest :math:`\Omega_{ii} \sigma_i^2` has no children among those that are left. Its row of the precision matrix
    has the coefficients of its parents; it is removed, and the precision matrix of the others is computed anew.

    Parameters
    ----------
    data : (n, p) or (p, p) DataFrame or array_like
        Rows, whose columns are centred, or a covariance matrix, which is symmetric.
    precision : (p, p) DataFrame or array_like
        Instead of `data`, a positive definite precision matrix: a true one, or an estimate of your own.
    variances : mapping or (p,) array_like, optional
        Variances of the noise of each column up to a common factor, by name or in the order of the columns. By default they are
        equal.
    estimator : {"clime", "graphical_lasso", "inverse"}
        How the precision matrix is estimated from `data`; ``"clime"`` by default.
    penalty : float, optional
        Of ``"clime"`` and ``"graphical_lasso"``; by default :math:`\tfrac12 \sqrt{\log p / n}`.
    update : {"lp", "schur"}, optional
        How the precision matrix is updated. ``"lp"``, the default of ``"clime"`` and only for it, solves again for the columns of the
        neighbours of what was removed, within their supports, so that errors do not add up. ``"schur"`` takes Schur complements.
    rows : {"all", "support"}
        Constraints of ``"lp"``: of all variables that are left, for which the error bound is proved (the support alone counts where no vector meets
        them), or only of the support, as the algorithm is printed.
    support : float
        Elements of the precision matrix of at most this magnitude count as zero in ``"lp"``. A positive number
        saves time.
    threshold : float or "bic"
        Coefficients of at most this magnitude are set to zero at the end. Half the smallest coefficient that matters is a good
        choice; without a threshold nearly every pair may have an arc. ``"bic"`` keeps, of each column, as many of the largest ones as an
        extended Bayesian information criterion asks for.
    n : int, optional
        Number of rows behind a covariance matrix.

    Returns
    -------
    SinkRemovalSolution
        The graph is acyclic, whatever the table is like.

    Raises
    ------
    TableError
        If the table or the variances cannot be used.
    TypeError
        If not exactly one of `data` and `precision` is given, or `n` is missing for the default penalty.
    ValueError
        If an option is unknown or does not apply, or the precision matrix is not positive definite.

    Warns
    -----
    TableWarning
        If all columns have the same variance, as standardised ones and correlation matrices have, and `variances` is not given; if
        the default penalty of ``"clime"`` cannot be met and a larger one was taken.

    See Also
    --------
    bayesstruct.exact.sink_identifiability : does a model meet the conditions under which the graph is found?
    known_order : the best graph when the order is known.

    Notes
    -----
    *When the graph is the true one.* With the true precision matrix, if the variances of the noise are equal, or known up to a factor, and no coefficient is
    zero. Faithfulness is not needed. Distributions other than the normal one give the same, since only second moments count. If the
    variances are neither equal nor known, the first sink may be the wrong one, and nothing in the second moments tells. With fewer than :math:`c (d \log p + d^2 / p)` rows, for some
    constant c, every method errs with a probability of at least one half for some model whose Markov blankets have up to d variables [1]_.

    *Modes.* Given the order that was found, ``"inverse"`` has the coefficients and variances of greatest normal likelihood (ordinary least squares on all
    predecessors), which is the mode under a flat prior. The order itself is greedy and no mode, and so is everything with ``"clime"`` or
    ``"graphical_lasso"``: a point estimate, or the start of a sampler.

    *Units.* The order comes from the variances, which standardising destroys. One factor for all columns changes nothing; different ones must be
    applied to `variances`, squared, too.

    References
    ----------
    .. [1] Ghoshal, A. (2019). *Efficient Algorithms for Learning Combinatorial Structures from Limited Data*. PhD thesis, Purdue
       University; chapter 2, algorithms 1 and 2 (with the constraints of the proof of lemma 2.3.9 for ``rows="all"``).
    .. [2] Ghoshal, A., Honorio, J. (2018). Learning linear structural equation models in polynomial time and sample complexity. AISTATS 84,
       1466-1475.

    Examples
    --------
    >>> from bayesstruct.solvers import sink_removal
    >>> S = [[1.0, 0.8, 0.8], [0.8, 1.64, 1.64], [0.8, 1.64, 2.64]]  # x0 -> x1 -> x2, variances 1
    >>> sorted(sink_removal(S, estimator="inverse", threshold=0.1).graph.edges)
    [('x0', 'x1'), ('x1', 'x2')]
    """
    support = number("support", support, least=0.0)
    if isinstance(threshold, str):
        choice("threshold", threshold, ("bic",))
    else:
        threshold = number("threshold", threshold, least=0.0)
    choice("rows", rows, _ROWS)
    moments, start, penalty, estimator = _start(data, precision, estimator, penalty, n)
    update = _update(update, estimator, rows, support)
    if variances is None:
        scale = np.ones(len(moments.names))
        _warn_of_equal_variances(moments)
    else:
        scale = positive_by_column("variances", variances, moments.names)
    work = np.array(start)
    if update == "lp":
        steps = _by_programs(moments, work, scale, penalty, rows, support)
    else:
        steps = _by_complements(moments.names, work, scale, estimator)
    removed, weights, noise = steps
    order = removed[::-1]
    weights[~_kept(threshold, moments, weights)] = 0.0
    return SinkRemovalSolution(
        moments.names,
        tuple(moments.names[i] for i in order),
        weights,
        noise,
        start,
        penalty,
        threshold,
        _notes(estimator, update, variances is not None, threshold),
    )


def _kept(threshold, moments, weights):
    """Which coefficients are kept."""
    if threshold != "bic":
        return abs(weights) > threshold
    if moments.n is None:
        raise TypeError(
            "threshold='bic' needs the number of rows: give rows, or `n` with a covariance matrix"
        )
    return kept_by_criterion(moments.covariance, moments.n, weights)


def _start(data, precision, estimator, penalty, n):
    """Moments, precision matrix to begin with, its penalty, and the name of the estimator."""
    if (data is None) == (precision is None):
        raise TypeError("give either a table or covariance matrix, or `precision`")
    if precision is not None:
        if estimator is not None or penalty is not None or n is not None:
            raise ValueError("`estimator`, `penalty` and `n` do not apply to a given `precision`")
        given = symmetric_matrix(precision)
        if given is None:
            raise TableError("`precision` must be a symmetric square matrix of finite numbers")
        names, matrix = given
        covariance = _inverse(matrix, "`precision` is not positive definite")
        return SecondMoments(covariance, names, None), matrix, None, "given"
    moments = second_moments(data, n)
    estimator = choice("estimator", "clime" if estimator is None else estimator, _ESTIMATORS)
    if estimator == "inverse":
        if penalty is not None:
            raise ValueError("`penalty` does not apply to estimator='inverse'")
        return moments, _inverse(moments.covariance, _SINGULAR), None, estimator
    chosen, penalty = penalty, _penalty(moments, penalty)
    if estimator == "clime":
        if penalty >= 1.0:
            raise ValueError(
                f"the penalty is {penalty:.3g}, and from 1 on the estimate of 'clime' is zero: lower it, or "
                "there are too few rows"
            )
        given = {"n": moments.n} if chosen is None else {"penalty": penalty}
        solution = clime(moments.covariance, **given)
        return moments, solution.precision, solution.penalty, estimator
    from bayesstruct.precision.solvers.graphical_lasso import graphical_lasso

    return moments, graphical_lasso(moments.covariance, penalty).precision, penalty, estimator


def _penalty(moments, penalty):
    return clime_penalty(moments) if penalty is None else number("penalty", penalty, least=0.0)


_SINGULAR = (
    "the covariance matrix cannot be inverted (as many columns as rows or more, or some determine others): use estimator='clime' or "
    "'graphical_lasso'"
)


def _inverse(matrix, problem):
    """Inverse of a positive definite matrix."""
    scale = np.sqrt(np.diag(matrix))
    correlations = matrix / np.outer(scale, scale)
    if np.linalg.eigvalsh(correlations)[0] <= 1e-12 * len(matrix):
        raise ValueError(problem)
    inverse = np.linalg.inv(correlations) / np.outer(scale, scale)
    return 0.5 * (inverse + inverse.T)


def _update(update, estimator, rows, support):
    """Check how the precision matrix is updated."""
    if update is None:
        update = "lp" if estimator == "clime" else "schur"
    choice("update", update, _UPDATES)
    if update == "lp" and estimator != "clime":
        raise ValueError("update='lp' solves the programs of estimator='clime'; use update='schur'")
    if update == "schur" and (rows != "all" or support):
        raise ValueError("`rows` and `support` are options of update='lp'")
    return update


def _warn_of_equal_variances(moments):
    """Say that the order of standardised columns is lost."""
    diagonal = np.diag(moments.covariance)
    if len(diagonal) > 1 and np.ptp(diagonal) <= 1e-6 * diagonal.max():
        warn(
            "all columns have the same variance, as standardised columns and correlation matrices have: the order of the columns is in "
            "their variances, so pass the columns in their units, or the covariances, or give `variances` of the noise"
        )


def _next_sink(diagonal, alive, names):
    """Which variable is removed next."""
    left = np.flatnonzero(alive)
    if not (diagonal[left] > 0).all():
        wrong = [names[i] for i in left if not diagonal[i] > 0]
        raise ValueError(
            f"the estimated precision matrix has no positive diagonal element for {column_list(wrong)}: lower the penalty, or use "
            "estimator='graphical_lasso', whose estimate is positive definite"
        )
    return int(left[np.argmin(diagonal[left])])


def _by_complements(names, precision, scale, estimator):
    """Remove all variables, with Schur complements."""
    p = len(names)
    alive, weights, noise, removed = np.ones(p, bool), np.zeros((p, p)), np.zeros(p), []
    for _ in range(p):
        i = _next_sink(np.diag(precision) * scale, alive, names)
        alive[i] = False
        removed.append(i)
        noise[i] = 1.0 / precision[i, i]
        weights[i, alive] = -precision[i, alive] / precision[i, i]
        precision -= np.outer(precision[:, i], precision[i]) / precision[i, i]
    return removed, weights, noise


def _by_programs(moments, precision, scale, penalty, rows, support):
    """Remove all variables, and solve again for the columns of the neighbours of each."""
    p = len(moments.names)
    alive, weights, noise, removed = np.ones(p, bool), np.zeros((p, p)), np.zeros(p), []
    for _ in range(p):
        i = _next_sink(np.diag(precision) * scale, alive, moments.names)
        alive[i] = False
        removed.append(i)
        noise[i] = 1.0 / precision[i, i]
        weights[i, alive] = -precision[i, alive] / precision[i, i]
        near = abs(precision[i]) > support
        for j in np.flatnonzero(near & alive).tolist():
            inside = (abs(precision[j]) > support) | near
            inside[j] = True
            columns = np.flatnonzero(inside & alive)
            column = _column(moments.covariance, j, columns, alive, penalty, rows)
            if column is not None:
                precision[j, columns] = precision[columns, j] = column
        precision[i] = precision[:, i] = 0.0
    return removed, weights, noise


def _column(S, j, columns, alive, penalty, rows):
    """Column j of the precision matrix with elements in `columns` only; None if no vector meets the constraints."""
    level = np.array([penalty])
    for which in (np.flatnonzero(alive), columns) if rows == "all" else (columns,):
        target = int(np.searchsorted(which, j))
        found = least_norm_columns(S[np.ix_(which, columns)], target, level)
        if np.isfinite(found.gaps[0]):
            return found.weights[0]
    return None


def _notes(estimator, update, known, threshold):
    """Say what the estimate is."""
    noise = (
        "known up to a common factor"
        if known
        else "equal; that they are cannot be seen from the table"
    )
    notes = [f"The order takes the variances of the noise to be {noise}."]
    if estimator == "given":
        notes.append(
            "The order is found step by step; given the order, the coefficients are those of the precision matrix exactly."
        )
    elif estimator == "inverse":
        notes.append(
            "The order is found step by step and is no mode; given the order, the coefficients without a threshold have the greatest normal "
            "likelihood."
        )
    else:
        notes.append(
            f"A point estimate ({estimator}, {update} updates), not a mode: start a sampler from it."
        )
    if not threshold:
        notes.append("No threshold: small coefficients have arcs too.")
    return tuple(notes)
