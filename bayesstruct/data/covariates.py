"""Checks of tables of covariates: complete, with one row for each row of the table."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesstruct.data.checks import dependent_columns, duplicates, max_columns
from bayesstruct.data.coding import NumberCoding
from bayesstruct.data.errors import TableError, column_list, warn
from bayesstruct.data.intake import read_columns
from bayesstruct.data.remarks import group_remarks, missing_code_remarks, odd_codes

__all__ = ["read_covariates", "standardized_covariates"]


def standardized_covariates(
    data: Any, rows: int, columns: Sequence[str] = ()
) -> tuple[NumberCoding, np.ndarray]:
    """Check covariates and standardise them.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, q); a vector is one covariate.
    rows : int
        Number of rows of the table, n.
    columns : sequence of str
        Columns of the table.

    Returns
    -------
    NumberCoding
        The q names, means and standard deviations (divisor n - 1).
    numpy.ndarray
        (n, q), each column with mean 0 and standard deviation 1.

    Raises
    ------
    TableError
        If the number of rows differs, a value is missing or not finite, a column is constant,
        equal to another, or has the name of a column of the table.

    Warns
    -----
    TableWarning
        If a covariate is a linear combination of others, or has few whole numbers, which may number groups.
    """
    _refuse_names(data)
    data = _as_table(data)
    intake = read_columns(data, max_columns())
    names, values = [str(name) for name in intake.names], intake.values
    _check_length(values, rows)
    _refuse_columns_of_table(data, columns)
    _refuse_text(names, intake.refused)
    _refuse_gaps(names, values)
    scale = values.std(axis=0, ddof=1)
    constant = [name for name, s in zip(names, scale, strict=True) if s == 0]
    if constant:
        raise TableError(
            f"Covariate {column_list(constant)} is constant; leave it out, the model has an intercept"
        )
    _check_dependence(names, values)
    codes = [odd_codes(column) for column in values.T]
    remarks = missing_code_remarks(names, codes, "impute these or leave out their rows")
    for remark in [*remarks, *group_remarks(names, values, codes)]:
        warn(f"covariates: {remark}")
    location = values.mean(axis=0)
    return NumberCoding(tuple(names), location, scale), (values - location) / scale


def read_covariates(coding: NumberCoding, data: Any, rows: int) -> np.ndarray:
    """Standardise covariates of other rows by the means and standard deviations of the first.

    Parameters
    ----------
    coding : NumberCoding
        Of the first covariates.
    data : DataFrame or array_like
        (n, q); a vector is one covariate.
    rows : int
        n.

    Returns
    -------
    numpy.ndarray
        (n, q).

    Raises
    ------
    TableError
        If a covariate is absent or unknown, the number of rows differs, or a value is missing or not finite.
    """
    table = coding.read(_as_table(data))
    _check_length(table.values, rows)
    _refuse_gaps(coding.names, table.values)
    return table.standardized


def _as_table(data):
    """Make a table of a vector."""
    if hasattr(data, "to_frame") and np.ndim(data) == 1:
        return data.to_frame()
    if not hasattr(data, "columns") and np.ndim(data) == 1:
        return np.asanyarray(data)[:, None]
    return data


def _check_length(values, rows):
    if len(values) != rows:
        raise TableError(f"The covariates have {len(values)} rows, the table has {rows}")


def _refuse_gaps(names, values):
    broken = [name for name, v in zip(names, values.T, strict=True) if not np.isfinite(v).all()]
    if broken:
        raise TableError(
            f"Covariate {column_list(broken)} has values that are missing or not finite; "
            "impute or encode them first, or leave the covariate out; values named in `missing_codes` are missing in "
            "covariates too: if that is not meant, give a dict of codes by column, and the columns names that differ"
        )


def _refuse_names(data):
    """Raise if names of columns are given instead of the columns."""
    names = [data] if isinstance(data, str) else data
    if isinstance(names, list | tuple) and names and all(isinstance(n, str) for n in names):
        raise TableError(
            f"The covariates are a table, not names of columns: pass covariates=data[{[*names]}] and "
            f"data.drop(columns={[*names]}) as the table"
        )


def _refuse_columns_of_table(data, columns):
    # Labels that are text were chosen by somebody; numbers and x0, x1, ... are given unasked.
    own = [name for name in getattr(data, "columns", ()) if isinstance(name, str)]
    both = [name for name in own if name in columns]
    if both:
        raise TableError(
            f"Covariate {column_list(both)} has the name of a column of the table: leave it out of "
            f"the table (data.drop(columns={both})) or of the covariates, or rename it"
        )


def _refuse_text(names, refused):
    for kind, found in refused.items():
        columns, example = column_list([names[j] for j, _ in found]), found[0][1]
        raise TableError(
            f"Covariate {columns} does not hold numbers ({kind}, for example {example!r}): encode it "
            "first, for example with pandas.get_dummies(..., drop_first=True), or leave it out"
        )


def _check_dependence(names, values):
    for problem in duplicates(names, values):
        raise TableError(f"Covariates: {problem}")
    involved = dependent_columns(names, values)
    if involved:
        warn(
            f"covariates, {column_list(involved)}: at least one is a linear combination of the "
            "others, up to rounding, so the table cannot tell their coefficients apart; leave one of them out"
        )
