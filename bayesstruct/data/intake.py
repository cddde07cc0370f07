"""Read tables of any supported kind into column names and one matrix of floats."""

import datetime
import decimal
import numbers
import os

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesstruct.data.errors import TableError
from bayesstruct.data.names import label_text, reads_as_number

#: DataFrame of pandas, polars or another library, or anything that NumPy makes a matrix of.
TableLike = Any

__all__ = ["Intake", "read_columns"]

_ACCEPTED = (
    "a pandas or polars DataFrame, a two-dimensional NumPy array or xarray DataArray, "
    "or a list of rows"
)


@dataclass(frozen=True)
class Intake:
    """A table before any check of its values.

    Attributes
    ----------
    names : list of str
        Column names, in order.
    values : ndarray, shape (n, p)
        Float64; NaN where missing, and everywhere in a column that does not hold numbers.
    refused : dict
        Kind of content (``"text"``, ``"category"``, ``"date"``, ``"complex"``, ``"object"``) to a
        list of ``(column position, example value)``.
    """

    names: list[str]
    values: np.ndarray
    refused: dict[str, list[tuple[int, object]]] = field(default_factory=dict)


class _Refused(Exception):
    """A column that does not hold real numbers."""

    def __init__(self, kind: str, example: object):
        self.kind, self.example = kind, example


def read_columns(data: Any, max_columns: int) -> Intake:
    """Read a table of any supported kind.

    Parameters
    ----------
    data : DataFrame, ndarray, DataArray or list of lists
        Rows are observations, columns are variables.
    max_columns : int
        Of wider tables only the names are read: `values` then has no row.

    Returns
    -------
    Intake

    Raises
    ------
    TableError
        If `data` is not a table of a supported kind.
    """
    if hasattr(data, "dims") and hasattr(data, "coords"):
        return _read_xarray(data, max_columns)
    if hasattr(data, "collect_schema") or hasattr(data, "columns"):
        return _read_frame(data, max_columns)
    if hasattr(data, "toarray"):
        raise TableError("A sparse matrix is not a table: pass data.toarray().")
    if hasattr(data, "to_frame"):
        raise TableError("A Series is one column; at least 2 are needed.")
    if isinstance(data, list | tuple):
        return _read_rows(data, max_columns)
    if isinstance(data, np.ma.MaskedArray):
        data = np.ma.filled(data.astype(float), np.nan)
    if isinstance(data, np.ndarray):
        if data.dtype.names:
            raise TableError("The array has fields with names: pass pandas.DataFrame(array).")
        return _read_array(data, None, max_columns)
    if isinstance(data, Mapping):
        raise TableError("A dict of columns is not a table: pass pandas.DataFrame(data).")
    if isinstance(data, str | os.PathLike):
        raise TableError(
            f"A table is expected, not the name of a file ({str(data)!r:.60}): read it first, for example with pandas.read_csv."
        )
    raise TableError(f"A table is expected ({_ACCEPTED}), not {type(data).__name__}.")


def _read_xarray(data, max_columns: int) -> Intake:
    if not hasattr(data, "dtype"):
        raise TableError("An xarray Dataset is not one table: pass one of its DataArrays.")
    names = None
    if data.ndim == 2 and data.dims[1] in data.coords:
        names = [label_text(label) for label in data.coords[data.dims[1]].values]
    return _read_array(data.values, names, max_columns)


def _read_rows(rows, max_columns: int) -> Intake:
    check_rows(rows)
    rows = [list(row) if np.iterable(row) else row for row in rows]
    if len({len(row) if isinstance(row, list) else -1 for row in rows}) > 1:
        raise TableError("The rows of the list have different lengths: give each the same number.")
    # As objects, so that one text does not turn every number into text.
    array = np.array(rows, dtype=object)
    if len(rows) == 0:
        array = array.reshape(0, 0)
    return _read_array(array, None, max_columns)


def check_rows(rows) -> None:
    """Refuse lists whose entries would fall apart into something else than the values of a row.

    Raises
    ------
    TableError
        For rows that are dictionaries, text, sets, or columns of a table.
    """
    kinds = {type(row) for row in rows}
    if any(issubclass(kind, Mapping) for kind in kinds):
        raise TableError(
            "The rows are dictionaries, of which only the keys would be read: pass pandas.DataFrame(rows)."
        )
    if any(issubclass(kind, str | bytes) for kind in kinds):
        raise TableError(
            "The rows are text, which would be read letter by letter: split each into its values, as in "
            "[row.split(',') for row in rows], and make these numbers."
        )
    if any(issubclass(kind, Set) for kind in kinds):
        raise TableError("The rows are sets, which have no order: pass lists of values.")
    if any(hasattr(kind, "to_frame") or hasattr(kind, "to_list") for kind in kinds):
        raise TableError(
            "The list holds Series, which are columns more often than rows: pass a DataFrame "
            "(pandas.concat(columns, axis=1), or pandas.DataFrame(rows))."
        )
    if kinds == {np.ndarray} and rows[0].ndim == 1 and len(rows[0]) > len(rows):
        raise TableError(
            f"The list holds {len(rows)} arrays of {len(rows[0])} values: pass numpy.column_stack(list) if they are "
            "columns, numpy.array(list) if they are rows."
        )


def _read_array(array: np.ndarray, names: list[str] | None, max_columns: int) -> Intake:
    if array.ndim != 2:
        raise TableError(
            f"The array has shape {array.shape}: a table has two dimensions (rows, columns)."
        )
    names = names or [f"x{j}" for j in range(array.shape[1])]
    if len(names) > max_columns:
        return Intake(names, np.empty((0, len(names))))
    if array.dtype.kind in "biuf":
        return Intake(names, np.array(array, dtype=np.float64))
    return _convert(names, array.shape[0], (array[:, j] for j in range(array.shape[1])), _numbers)


def _read_frame(data, max_columns: int) -> Intake:
    import narwhals as nw

    if hasattr(data, "collect"):
        data = data.collect()
    try:
        names = [label_text(name) for name in getattr(data, "column_names", data.columns)]
        if len(names) > max_columns or len(set(names)) < len(names):
            return Intake(names, np.empty((0, len(names))))  # refused by name alone
        if getattr(getattr(data, "columns", None), "nlevels", 1) > 1:
            data = data.set_axis(names, axis=1)
        frame = nw.from_native(data, eager_only=True)
    except TypeError as error:
        message = f"A table is expected ({_ACCEPTED}), not {type(data).__name__}."
        raise TableError(message) from error
    return _convert(names, len(frame), frame.iter_columns(), _series_numbers)


def _convert(names: list[str], n: int, columns: Iterable, convert) -> Intake:
    values = np.full((n, len(names)), np.nan)
    refused: dict[str, list[tuple[int, object]]] = {}
    for j, column in enumerate(columns):
        try:
            values[:, j] = convert(column)
        except _Refused as why:
            example = why.example.item() if isinstance(why.example, np.generic) else why.example
            refused.setdefault(why.kind, []).append((j, example))
    return Intake(names, values, refused)


def _series_numbers(series) -> np.ndarray:
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy()
    if dtype.is_temporal():
        raise _Refused("date", _first(series.drop_nulls().to_list()))
    if isinstance(dtype, nw.Categorical | nw.Enum):
        raise _Refused("category", _first(series.drop_nulls().to_list()))
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    return _numbers(np.asarray(series.to_numpy()))


def _numbers(column: np.ndarray) -> np.ndarray:
    """Return real numbers as floats; raise for anything else, with an example."""
    kind = column.dtype.kind
    if kind in "biuf":
        return column.astype(np.float64)
    if kind in "mM":
        raise _Refused("date", _first(column))
    if kind == "c":
        raise _Refused("complex", _first(column))
    try:
        found = np.array([_number(value) for value in column], dtype=np.float64)
        if truths := [value for value in column if isinstance(value, bool | np.bool)]:
            if len(truths) < np.isfinite(found).sum():  # True among 1.5 and 2.0 is no 1
                raise _Refused("object", truths[0])
        return found
    except _Refused as why:
        if why.kind == "text":  # "-" among "1.5" and "2.5" is what the owner has to look for
            why.example = next((v for v in column if _is_word(v)), why.example)
        raise


def _number(value) -> float:
    if isinstance(value, numbers.Real | decimal.Decimal | np.bool):
        return float(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return np.nan
    if isinstance(value, str | bytes):
        raise _Refused("text", value)
    if isinstance(value, numbers.Complex):
        raise _Refused("complex", value)
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta | np.datetime64):
        raise _Refused("date", value)
    raise _Refused("object", value)


def _is_word(value) -> bool:
    return isinstance(value, str) and not reads_as_number(value)


def _first(items):
    return next(iter(items), None)
