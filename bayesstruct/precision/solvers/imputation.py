"""Completed tables of normal columns with missing values: multiple imputation."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["fill_gaps", "impute"]

_ROUNDS = 3  # of regressions that fill gaps
_PREDICTORS = 5
_FIRST, _APART, _SWEEPS = (
    6,
    3,
    5,
)  # rounds before the first table and between two; sweeps in a round
_MOST_ODDS = 30.0  # log odds of edges that are certain


def impute(
    rng: "Generator", standardized: np.ndarray, probability: np.ndarray, tables: int
) -> np.ndarray:
    """Draw the missing values of a table several times.

    Columns are normal and regressed on some of those before them, in the order of their numbers of missing values; all parameters of the
    regressions are integrated out. A round chooses the predictors of each column anew, one by one while its marginal density rises,
    from the table as it is completed at the moment, and then sweeps over the missing values
    (:mod:`bayesstruct.precision.kernels.rows.column_imputation`).

    Parameters
    ----------
    rng : numpy.random.Generator
    standardized : (n, p) ndarray
        NaN where missing.
    probability : (p, p) ndarray
        Prior probabilities of edges.
    tables : int
        Number of draws.

    Returns
    -------
    (tables, missing values) ndarray
        In row-major order.
    """
    from bayesstruct.precision.kernels.nodewise import make_target, make_work
    from bayesstruct.precision.kernels.rows.column_imputation import (
        choose_parents,
        draw_cells,
        list_gaps,
        scatter,
    )

    missing = np.isnan(standardized)
    n, p = missing.shape
    rows, gaps = np.ascontiguousarray(fill_gaps(standardized)), list_gaps(missing)
    odds, work = 0.5 * _log_odds(probability), make_work(p)
    order = np.argsort(missing.sum(axis=0), kind="stable")
    out = []
    for k in range(1, _FIRST + tables * _APART + 1):
        target = make_target(scatter(rows) / (n - 1), float(n))
        parents = choose_parents(order, odds, target, work)
        for _ in range(_SWEEPS):
            draw_cells(rng, rows, target.matrix, parents, target.powers, gaps)
        if k > _FIRST and (k - _FIRST) % _APART == 0:
            out.append(rows[missing])
    return np.array(out)


def _log_odds(probability):
    with np.errstate(divide="ignore"):
        odds = np.log(probability) - np.log1p(-probability)
    return np.clip(odds, -_MOST_ODDS, _MOST_ODDS)


def fill_gaps(standardized: np.ndarray) -> np.ndarray:
    """Fill missing values by regressions of each column on those with the largest correlations.

    Parameters
    ----------
    standardized : (n, p) ndarray
        NaN where missing.
    """
    missing = np.isnan(standardized)
    filled = np.where(missing, 0.0, standardized)
    p = filled.shape[1]
    for _ in range(_ROUNDS):
        correlation = np.corrcoef(filled.T)
        np.fill_diagonal(correlation, 0.0)
        for j in np.flatnonzero(missing.any(axis=0)):
            chosen = np.argsort(-np.abs(correlation[j]), kind="stable")[: min(_PREDICTORS, p - 1)]
            seen, x = ~missing[:, j], filled[:, chosen]
            gram = np.eye(len(chosen)) + x[seen].T @ x[seen]
            weights = np.linalg.solve(gram, x[seen].T @ filled[seen, j])
            filled[~seen, j] = x[~seen] @ weights
    return filled
