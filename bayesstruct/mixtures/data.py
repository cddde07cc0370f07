"""Tables of predictors and a response."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from bayesstruct.data.arguments import numbers
from bayesstruct.data.checks import duplicates, max_columns, shape_problems, value_problems
from bayesstruct.data.errors import TableError, column_list, raise_problems, warn
from bayesstruct.data.intake import Intake, read_columns
from bayesstruct.data.labels import check_same_rows
from bayesstruct.data.matrices import crosstab_remarks, matrix_problems
from bayesstruct.data.names import label_text, nearest
from bayesstruct.data.remarks import (
    binary_remarks,
    counter_remarks,
    missing_code_remarks,
    odd_codes,
)

__all__ = ["FAMILIES", "RegressionTable", "check_response"]

#: Distributions of the response.
FAMILIES = ("gaussian", "logistic", "poisson")


@dataclass(frozen=True, eq=False, repr=False)
class RegressionTable:
    """Predictors and a response without missing values.

    Attributes
    ----------
    names : list of str
        Predictors.
    x : (n, d) ndarray of float
    label : str
        Name of the response.
    y : (n,) ndarray of float
    """

    names: list[str]
    x: np.ndarray
    label: str
    y: np.ndarray

    @classmethod
    def read(cls, data, response, family: str) -> "RegressionTable":
        """Check a table and its response.

        Parameters
        ----------
        data : DataFrame or (n, d) array_like
        response : str, int, tuple or (n,) array_like
            Name of a column, as it stands in the table, or values.
        family : {"gaussian", "logistic", "poisson"}

        Raises
        ------
        TableError
            If the table cannot be used; the message names the column and the remedy.

        Warns
        -----
        TableWarning
            If values that often stand for missing ones are apart from the others, a column counts the rows, or a
            response of normal regressions is binary.
        """
        intake = read_columns(data, max_columns())
        raise_problems(matrix_problems(data, intake.names, intake.values))
        response = _name_of(response, intake.names)
        if not isinstance(response, str):
            check_same_rows(data, response, "the response")
            intake, response = _with_response(intake, response)
        elif response not in intake.names:
            raise TableError(nearest("response", response, intake.names))
        _check_values(intake)
        for remark in crosstab_remarks(data):
            warn(remark)
        place = intake.names.index(response)
        for remark in _remarks(intake, place, family):
            warn(remark)
        names = [n for n in intake.names if n != response]
        x, y = np.delete(intake.values, place, axis=1), intake.values[:, place].copy()
        check_response(y, response, family)
        return cls(names, x, response, y)


def _name_of(response, names):
    """Return a whole number, or a tuple of the names, as the text that names a column; anything else as it is."""
    whole = isinstance(response, Integral) and not isinstance(response, bool)
    several = isinstance(response, tuple) and label_text(response) in names
    return label_text(response) if whole or several else response


def _with_response(intake, response):
    """Add values of the response to the columns of a table."""
    name = getattr(response, "name", None)
    name = name if isinstance(name, str) and name else "response"
    if name in intake.names:
        raise TableError(
            f"{name!r} is both a column of the table and the response: give its name, or drop the column"
        )
    y = numbers("`response`", response)
    if y.shape != (len(intake.values),):
        raise TableError(
            f"`response` must be a column of the table or {len(intake.values)} numbers, one for each row, "
            f"not an array of shape {y.shape}"
        )
    values = np.column_stack([intake.values, y])
    return Intake([*intake.names, name], values, intake.refused), name


def _remarks(intake, place, family):
    """List columns that may be something else than predictors and a response of this family."""
    names, values = intake.names, intake.values
    found = missing_code_remarks(names, [odd_codes(v) for v in values.T])
    found += counter_remarks(names, values)
    if family == "gaussian":
        remedy = "family='logistic', with 0 and 1"
        found += binary_remarks([names[place]], values[:, [place]], remedy)
    return found


def _check_values(intake):
    """Refuse columns that cannot be used, and missing values."""
    raise_problems(shape_problems(intake))
    raise_problems([*value_problems(intake), *duplicates(intake.names, intake.values)])
    gaps = [n for n, v in zip(intake.names, intake.values.T, strict=True) if np.isnan(v).any()]
    if gaps:
        raise TableError(
            f"{column_list(gaps)}: missing values; leave these rows out (data.dropna()) or fill them (values that "
            "`missing_codes` names are missing in predictors and response alike)"
        )


def check_response(y: np.ndarray, label: str, family: str) -> None:
    """Refuse responses that the family of distributions does not have."""
    if family == "logistic" and not np.isin(y, (0, 1)).all():
        raise TableError(
            f"{label!r}: the response of a logistic regression must be 0 and 1; compare it with a value first, as "
            f"in data[{label!r}] > 2"
        )
    if family == "poisson" and not ((y >= 0) & (y == np.round(y))).all():
        raise TableError(
            f"{label!r}: the response of a Poisson regression must be a count, 0, 1, 2, ...; use "
            "family='gaussian' for other numbers"
        )
