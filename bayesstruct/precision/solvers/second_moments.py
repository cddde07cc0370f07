"""Covariance matrices that solvers take as they are, or compute from a table."""

from typing import Any, NamedTuple

import numpy as np

from bayesstruct.data.arguments import whole_number
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.intake import read_columns
from bayesstruct.data.matrices import row_labels, without_labels
from bayesstruct.data.table import Table

__all__ = ["SecondMoments", "second_moments"]


class SecondMoments(NamedTuple):
    """A covariance matrix.

    Attributes
    ----------
    covariance : (p, p) numpy.ndarray
    names : tuple of str
        The columns, ``x0``, ``x1``, ... if they had no names.
    n : int or None
        Number of rows, if known.
    """

    covariance: np.ndarray
    names: tuple[str, ...]
    n: int | None


def second_moments(data: Any, n: int | None = None) -> SecondMoments:
    """Take a symmetric square matrix as a covariance matrix, and compute that of any other table.

    Parameters
    ----------
    data : DataFrame or array_like
        (p, p) covariances, or (n, p) rows.
    n : int, optional
        Number of rows behind a covariance matrix.

    Returns
    -------
    SecondMoments
        Of a table the columns are centred, and the divisor is the number of rows.

    Raises
    ------
    TableError
        If the table cannot be used, has missing values, or a variance is not positive.
    TypeError
        If `n` is given along with rows.
    """
    matrix = _symmetric(data)
    if matrix is not None:
        names, values = matrix
        if wrong := [name for name, v in zip(names, np.diag(values), strict=True) if not v > 0]:
            raise TableError(f"the variance of {column_list(wrong)} is not positive: leave it out")
        return SecondMoments(values, names, None if n is None else whole_number("n", n, 1))
    if n is not None:
        raise TypeError(
            "`n` goes with a covariance matrix (symmetric, as many rows as columns); a table of rows has its own"
        )
    table = Table.continuous(data, standardize=False, normal=False)
    if table.missing.any():
        columns = [table.names[j] for j in np.flatnonzero(table.missing.any(axis=0))]
        raise TableError(
            f"{column_list(columns)}: values are missing, and second moments need complete rows; drop these rows "
            "(data.dropna()) or columns"
        )
    centred = table.values - table.values.mean(axis=0)
    return SecondMoments(centred.T @ centred / table.n, table.names, table.n)


def _symmetric(data):
    """Names and values of a symmetric square matrix of finite numbers, or None."""
    labels = row_labels(data)
    try:
        intake = read_columns(without_labels(data), 10_000)
    except TableError:
        return None
    values, names = intake.values, tuple(intake.names)
    p = len(names)
    if values.shape != (p, p) or p == 0 or intake.refused or not np.isfinite(values).all():
        return None
    if not np.allclose(values, values.T, rtol=1e-6, atol=1e-12 * abs(values).max()):
        return None
    if labels is not None and labels != list(names) and set(labels) == set(names):
        raise TableError(
            "the matrix has its rows in another order than its columns: give both the same (S.loc[S.columns])"
        )
    return names, 0.5 * (values + values.T)
