"""Tables that are matrices of pairs of columns, such as correlations, or summaries: found, refused, and completed."""

from typing import Any

import numpy as np

from bayesstruct.data.errors import listing
from bayesstruct.data.names import label_text

__all__ = [
    "completed",
    "crosstab_remarks",
    "is_triangle",
    "matrix_problems",
    "row_labels",
    "transposed_remarks",
    "without_labels",
]

_REMEDY = (
    "pass the rows that it was computed from, or, where there are none, "
    "gaussian_graphical(cov=matrix, n=number_of_rows) or bayesian_network(cov=matrix, n=number_of_rows)"
)
#: From so many columns on, whole numbers are not symmetric by chance; measurements are not from 3 on.
_BY_DESIGN, _BY_DESIGN_NUMBERS = 6, 3
#: So few rows, with so many columns without names for each, may be the variables.
_FEW, _WIDE = 10, 10
#: Names of the rows of a table of summaries, in lower case, beside percentages; those that are in each.
_SUMMARIES = {
    "count",
    "mean",
    "std",
    "min",
    "max",
    "n",
    "sd",
    "median",
    "var",
    "variance",
    "skew",
    "kurtosis",
}
_SUMMARIES |= {"unique", "top", "freq", "null_count", "statistic"}
_DESCRIBED = {"count", "mean", "std", "min", "25%", "50%", "75%", "max"}
#: Columns that published tables of correlations have before these.
_BEFORE = {"m", "mean", "sd", "std", "n", "min", "max", "range", "alpha", "α"}
#: Largest table of counts of the values of two columns; a cell above this is no answer on a scale.
_CROSS, _COUNT = 20, 10


def matrix_problems(
    data: Any, names: list[str], values: np.ndarray, *, remedy: str = _REMEDY
) -> list[str]:
    """List what shows that a table has no observations as rows but is a matrix of pairs of its columns.

    Parameters
    ----------
    data : object
        The table as it was given, for the labels of its rows.
    names : list of str
        Columns.
    values : (n, p) array of float
    remedy : str
        What to do with a covariance matrix.
    """
    first = 0 if _label_column(data) is None else 1
    names, values, labels = names[first:], values[:, first:], row_labels(data)
    if summaries := _summary_problems(names, labels):
        return summaries
    kept = [j for j, name in enumerate(names) if name.lower().replace(".", "") not in _BEFORE]
    if len(kept) == len(values) < len(names):
        names, values = [names[j] for j in kept], values[:, kept]
        published = _mirrored(completed(_with_ones(values)))
        ones = np.allclose(np.diag(published), 1.0) and (abs(published) <= 1 + 1e-6).all()
        return _pair_problems(names, published, names, remedy) if ones else []
    return _pair_problems(names, values, labels, remedy)


def _summary_problems(names, labels) -> list[str]:
    """Refuse means, standard deviations and the like in the place of rows."""
    rows = {label.strip().lower() for label in labels or []}
    of_rows = (
        {"mean"} < rows
        and rows & {"std", "sd"}
        and all(row in _SUMMARIES or row.endswith("%") for row in rows)
    )
    if not of_rows and not {*names} >= _DESCRIBED:
        return []
    what = "rows" if of_rows else "columns"
    return [
        f"the {what} of the table are summaries ({listing([*(labels if of_rows else names)], 4)}), as of data.describe(), and "
        "rows have to be observations: pass the rows that they were computed from"
    ]


def _pair_problems(names, values, labels, remedy) -> list[str]:
    p = len(names)
    if values.shape != (p, p) or p < 2:
        return []
    same = labels is not None and sorted(labels) == sorted(names)
    named = same and not all(label.isdigit() for label in labels)
    if same and labels != names:
        values = values[[labels.index(name) for name in names]]
    values = completed(_with_ones(values))
    if named or np.allclose(np.diag(values), 1.0):
        values = _mirrored(values)
    if not np.allclose(values, values.T, rtol=1e-6, atol=1e-12, equal_nan=True):
        return []
    whole = bool(np.all(values == np.floor(values)))
    diagonal = np.diag(values)
    unit = not whole and np.allclose(diagonal, 1.0)
    if not (named or unit or p >= (_BY_DESIGN if whole else _BY_DESIGN_NUMBERS)):
        return []
    bound = np.sqrt(np.abs(np.outer(diagonal, diagonal)))
    if (diagonal > 0).all() and (np.abs(values) <= bound * (1 + 1e-6)).all():
        kind = "correlation" if np.allclose(diagonal, 1.0) else "covariance"
        return [
            f"the table is square and symmetric, a {kind} matrix of its columns and not rows of observations: {remedy}"
        ]
    return [
        "the table is square and symmetric, a matrix of pairs of its columns (distances, links) and not rows of "
        "observations: pass a table with one row for each observation; link_prediction and additive_clustering are "
        "for such matrices"
    ]


def crosstab_remarks(data: Any) -> list[str]:
    """List what shows that the cells of a table are counts of the values of two columns."""
    if (
        not hasattr(data, "iloc")
        or data.ndim != 2
        or max(data.shape) > _CROSS
        or not all(data.shape)
    ):
        return []
    owners = [label_text(own.name) for own in (data.index, data.columns) if own.name is not None]
    if len(owners) < 2 or not all(dtype.kind in "iu" for dtype in data.dtypes):
        return []
    same = [*data.index] == [*data.columns]
    if data.to_numpy().min() < 0 or (data.to_numpy().max() <= _COUNT and not same):
        return []
    return [
        f"the rows of the table are named {owners[0]!r} and its columns {owners[1]!r}, as in a table of counts (pandas.crosstab), "
        "and rows are read as observations: if the cells are counts, pass data.stack().reset_index(name='count') with "
        "row_counts='count'"
    ]


def transposed_remarks(data: Any) -> list[str]:
    """List what shows that the rows of a table are variables: only they have names, or there are few of them."""
    if _has_named_columns(data):
        return []
    if names := _row_names(data):
        return [
            f"the rows have names ({listing(names, 3)}) and the columns numbers: if the rows are the variables, "
            "the table is transposed, pass data.T"
        ]
    rows, columns = np.shape(data.values if hasattr(data, "iloc") else data)
    if rows <= _FEW and columns >= _WIDE * rows:
        return [
            f"the table has {rows} rows of {columns} columns without names, and rows are observations: if the rows are "
            "the variables, the table is transposed, pass data.T"
        ]
    return []


def _has_named_columns(data):
    if hasattr(data, "iloc"):
        return list(data.columns) != list(range(len(data.columns)))
    if hasattr(data, "dims") and hasattr(data, "coords"):
        return data.dims[1] in data.coords
    return hasattr(data, "collect_schema") or hasattr(data, "columns")


def _row_names(data) -> list[str]:
    """Names of the rows, if all are different texts."""
    labels: list = []
    if hasattr(data, "iloc"):
        labels = list(data.index)
    elif hasattr(data, "dims") and data.dims[0] in data.coords:
        labels = data.coords[data.dims[0]].values.tolist()
    texts = all(isinstance(label, str) for label in labels)
    return labels if texts and len(set(labels)) == len(labels) else []


def completed(values: np.ndarray) -> np.ndarray:
    """Return a square matrix of which one triangle is missing with the other one in its place."""
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        return values
    gaps = np.isnan(values)
    for triangle in (np.triu(np.ones_like(gaps), 1), np.tril(np.ones_like(gaps), -1)):
        if triangle.any() and np.array_equal(gaps, triangle):
            return np.where(gaps, values.T, values)
    return values


def _with_ones(values: np.ndarray) -> np.ndarray:
    """Return numbers that may be correlations without their diagonal with ones there."""
    size = len(values)
    if size < 3 or not np.isnan(np.diag(values)).all() or np.nanmax(abs(values), initial=0.0) > 1:
        return values
    return np.where(np.eye(size, dtype=bool), 1.0, values)


def _mirrored(values: np.ndarray) -> np.ndarray:
    """Return numbers that are 0 on one side of the diagonal with those of the other side there."""
    numbers = np.isfinite(values).all() and (values != np.floor(values)).any()
    if not numbers or not np.diag(values).all() or not is_triangle(values):
        return values
    return values + values.T - np.diag(np.diag(values))


def is_triangle(values: np.ndarray) -> bool:
    """Whether all that is not zero in a square matrix is on one side of its diagonal."""
    sides = (np.nan_to_num(half(values, k)).any() for half, k in ((np.triu, 1), (np.tril, -1)))
    return sum(sides) == 1


def row_labels(data: Any) -> list[str] | None:
    """Labels of the rows of a table, or of its first column if that has the names of the others."""
    if (first := _label_column(data)) is not None:
        return first
    if hasattr(data, "iloc"):
        return [label_text(label) for label in data.index]
    if hasattr(data, "dims") and hasattr(data, "coords") and data.dims[0] in data.coords:
        return [label_text(label) for label in data.coords[data.dims[0]].values]
    return None


def without_labels(data: Any) -> Any:
    """Return a table without its first column if that has the names of the others."""
    if _label_column(data) is None:
        return data
    if hasattr(data, "iloc"):
        return data.iloc[:, 1:]
    return data.select(list(getattr(data, "column_names", data.columns))[1:])


def _label_column(data):
    """Values of the first column of a frame, if they are the names of the other columns in any order."""
    if hasattr(data, "collect") or not hasattr(data, "columns"):
        return None
    columns = list(getattr(data, "column_names", data.columns))
    if len(columns) < 3 or len(data) != len(columns) - 1:
        return None
    first = data.iloc[:, 0] if hasattr(data, "iloc") else data[columns[0]]
    labels = [label_text(label) for label in np.asarray(first, object)]
    return labels if sorted(labels) == sorted(map(label_text, columns[1:])) else None
