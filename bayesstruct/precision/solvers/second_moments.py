"""Covariance matrices that solvers take as they are, or compute from a table."""

from typing import Any, NamedTuple

import numpy as np

from bayesstruct.data.arguments import whole_number
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.intake import read_columns
from bayesstruct.data.matrices import row_labels, without_labels
from bayesstruct.data.table import Table

__all__ = ["SecondMoments", "second_moments", "symmetric_matrix"]

_FAR = 1e145  # magnitude whose square, times the largest number of rows, is a floating-point number


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
        If the table cannot be used, has missing values, or a variance is not positive; if a square array, or a frame with
        the same names of rows and columns, is not symmetric.
    TypeError
        If `n` is given along with rows.
    """
    matrix = symmetric_matrix(data)
    if matrix is not None:
        names, values = matrix
        if wrong := [name for name, v in zip(names, np.diag(values), strict=True) if not v > 0]:
            raise TableError(f"the variance of {column_list(wrong)} is not positive: leave it out")
        return SecondMoments(values, names, None if n is None else whole_number("n", n, 1))
    _refuse_asymmetric(data)
    if n is not None:
        raise TypeError(
            "`n` goes with a covariance matrix (symmetric, as many rows as columns); a table of rows has its own"
        )
    table = Table.continuous(data, standardize=False, normal=False, prior=False)
    if table.missing.any():
        columns = [table.names[j] for j in np.flatnonzero(table.missing.any(axis=0))]
        raise TableError(
            f"{column_list(columns)}: values are missing, and second moments need complete rows; drop these rows "
            "(data.dropna()) or columns"
        )
    if far := [name for name, own in zip(table.names, table.values.T, strict=True) if _is_far(own)]:
        raise TableError(
            f"{column_list(far)}: squares of the values are beyond the range of floating-point numbers; give other units, such as "
            f"data[{far[0]!r}] / data[{far[0]!r}].abs().max()"
        )
    centred = table.values - table.values.mean(axis=0)
    return SecondMoments(centred.T @ centred / table.n, table.names, table.n)


def symmetric_matrix(data: Any) -> tuple[tuple[str, ...], np.ndarray] | None:
    """Names and values of a symmetric square matrix of finite numbers, or None of any other table.

    Raises
    ------
    TableError
        If its rows are in another order than its columns.
    """
    labels, square = row_labels(data), _square(data)
    if square is None or not np.isfinite(square[1]).all() or not _is_symmetric(square[1]).all():
        return None
    names, values = square
    if labels is not None and labels != list(names) and set(labels) == set(names):
        raise TableError(
            "the matrix has its rows in another order than its columns: give both the same (S.loc[S.columns])"
        )
    return names, 0.5 * (values + values.T)


def _is_far(column):
    """Whether sums of products of a column may overflow, or vanish."""
    largest = abs(column).max()
    return largest > _FAR or largest < 1.0 / _FAR


def _square(data):
    """Names and values of a table of numbers with as many rows as columns, or None."""
    try:
        intake = read_columns(without_labels(data), 10_000)
    except TableError:
        return None
    p = len(intake.names)
    if intake.values.shape != (p, p) or p == 0 or intake.refused:
        return None
    return tuple(intake.names), intake.values


def _is_symmetric(values):
    """Which elements are those of the transposed matrix but for rounding."""
    largest = np.nanmax(abs(values), initial=0.0)
    return np.isclose(values, values.T, rtol=1e-6, atol=1e-12 * largest, equal_nan=True)


def _refuse_asymmetric(data):
    """Refuse a square matrix that is not symmetric, unless it is a frame whose rows have no names of columns."""
    labels, square = row_labels(data), _square(data)
    if square is None:
        return
    names, values = square
    named = labels is not None and set(labels) == set(names) and not all(map(str.isdigit, names))
    bare = labels is None and not hasattr(data, "columns")
    same = _is_symmetric(values)
    if same.all() or not (named or bare):
        return
    i, j = np.argwhere(~same)[0]
    otherwise = "reset_index(drop=True)" if named else "pandas.DataFrame(S)"
    raise TableError(
        f"the matrix is square, as a covariance matrix is, and not symmetric: {values[i, j]:.4g} for {names[i]!r} and {names[j]!r}, but "
        f"{values[j, i]:.4g} for {names[j]!r} and {names[i]!r}; correct it (of one triangle: T + T.T - numpy.diag(numpy.diag(T))), or, "
        f"if its rows are observations, pass {otherwise}"
    )
