"""Units of the columns in which priors of the elements of a precision matrix are meant."""

import logging

from dataclasses import replace
from typing import Any

import numpy as np

from bayesstruct.data.covariance import CovarianceTable
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.ranks import RankTable
from bayesstruct.data.table import Table

__all__ = [
    "check_standardize",
    "conditional_units",
    "strongest_element",
    "table_in_units",
    "too_strong_for_slab",
]

_log = logging.getLogger("pymc.bayesstruct")
_CONDITIONAL = "conditional"
# Slab scales; at six, pairs without an edge begin to get more than under a G-Wishart prior.
_WIDE = 4.0


def check_standardize(standardize: Any) -> bool:
    """Return whether columns are standardised; raise unless it is True, False, None or "conditional"."""
    if standardize is None or standardize in (True, False):
        return standardize is None or bool(standardize)
    if isinstance(standardize, str) and standardize == _CONDITIONAL:
        return True
    raise ValueError(f'`standardize` must be True, False or "conditional", it is {standardize!r}')


def table_in_units(
    table: Table | CovarianceTable | RankTable, standardize: Any, *, automatic: bool
) -> tuple[Any, Any]:
    """Put columns on the scale of their standard deviations given all others, if that is asked for or needed.

    Parameters
    ----------
    table : Table or CovarianceTable or RankTable
        Standardised as usual. Columns that count by their order have no units.
    standardize : bool or "conditional" or None
    automatic : bool
        Whether to do so, with a remark, if `standardize` is None and the elements are far beyond a slab of scale 1.

    Returns
    -------
    table
    units : float or (p,) ndarray
        Standard deviations of the columns on the scale of the result, 1 if it is the table that was given.
    """
    if isinstance(table, RankTable):
        return table, 1.0
    if standardize is None and automatic and (found := _strong(table)):
        (i, j), element = found
        standardize = _CONDITIONAL
        _log.info(
            f"{column_list([table.names[i], table.names[j]])} depend on each other so strongly that their element of the precision matrix of "
            f"standardised columns is near {element:.2g}. The priors, and `precision`, are therefore on the scale of standard "
            'deviations given all other columns: standardize="conditional".'
        )
    if standardize is not None and standardize == _CONDITIONAL:
        units = conditional_units(table)
        return in_units(table, units), units
    return table, 1.0


def too_strong_for_slab(
    rows: np.ndarray, n: int | None, slab_scale: float
) -> tuple[tuple[int, int], float] | None:
    """Pair of columns whose element of the precision matrix is far beyond the slab, and the element; None if there is none."""
    pair, element = strongest_element(rows, n)
    return (pair, element) if element > _WIDE * slab_scale else None


def _strong(table):
    rows, n = _rows(table)
    return too_strong_for_slab(rows, n, 1.0)


def strongest_element(rows: np.ndarray, n: int | None = None) -> tuple[tuple[int, int], float]:
    """Estimate the largest off-diagonal element of the precision matrix of standardised columns.

    Parameters
    ----------
    rows : (n, p) ndarray
        Rows less their means; NaN where missing. Or, with `n`, their (p, p) scatter matrix.
    n : int, optional
        Number of rows of a scatter matrix.

    Returns
    -------
    (i, j), element
        Zero if there are fewer complete rows than twice the columns, which say too little about that.
    """
    scatter, n = _scatter(rows, n)
    if n < 2 * len(scatter):
        return (0, 1), 0.0
    elements = np.abs(_precision(scatter, n))
    np.fill_diagonal(elements, 0.0)
    i, j = sorted(map(int, np.unravel_index(elements.argmax(), elements.shape)))
    return (i, j), float(elements[i, j])


def conditional_units(table: Table | CovarianceTable) -> np.ndarray:
    """Return the standard deviation of each column over that given all other columns, (p,).

    Estimated as the roots of the diagonal of the precision matrix that is expected under a Wishart(3, I) prior of
    standardised columns. That bounds them by the root of the number of rows, so that near copies of a column still have edges to others.

    Raises
    ------
    TableError
        If there are fewer complete rows than twice the columns.
    """
    scatter, n = _scatter(*_rows(table))
    if n < 2 * table.p:
        raise TableError(
            f'standardize="conditional" needs at least {2 * table.p} complete rows for {table.p} columns ({column_list(table.names)}), and '
            f'there are {n}: leave it out, or take prior="g_wishart"'
        )
    return np.sqrt(np.diag(_precision(scatter, n)))


def in_units(table: Table | CovarianceTable, units: np.ndarray) -> Table | CovarianceTable:
    """Return the table with each column on another scale: `units` times as large when standardised."""
    if isinstance(table, CovarianceTable):
        return replace(table, units=units)
    scale = table.scale / units
    scale.flags.writeable = False
    return replace(table, scale=scale)


def _rows(table):
    """Scatter matrix and number of rows, or standardised rows and None."""
    known = isinstance(table, CovarianceTable)
    return (table.scatter, table.n) if known else (table.standardized, None)


def _precision(scatter, n):
    return (n + 2.0) * np.linalg.inv(np.eye(len(scatter)) + scatter)


def _scatter(rows, n):
    if n is not None:
        return rows, n
    complete = rows[~np.isnan(rows).any(axis=1)]
    return complete.T @ complete, len(complete)
