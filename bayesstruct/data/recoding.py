"""What a table says beyond its values: codes that mean a missing value, and rows that stand for several."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bayesstruct.data.arguments import is_missing, is_number
from bayesstruct.data.errors import TableError, column_list, count, listing, warn
from bayesstruct.data.labels import check_same_rows, without_mask
from bayesstruct.data.names import label_text, nearest, reads_as_number
from bayesstruct.data.remarks import codes_option

__all__ = [
    "column_apart",
    "other_rows_without_codes",
    "plain_codes",
    "repeated_rows",
    "tables_without_codes",
    "without_codes",
]

#: A code, several, or those of each column.
MissingCodes = Any
#: More rows than this are a mistake, or a table that does not fit into memory.
_MOST_ROWS = 10_000_000


def without_codes(data: Any, missing_codes: MissingCodes, found: Collection = ()) -> Any:
    """Return a table in which values that stand for a missing one are missing.

    Parameters
    ----------
    data : DataFrame, ndarray, DataArray or list of lists
        It is not changed.
    missing_codes : number, str, iterable of them or dict, optional
        Codes of all columns; a dict has those of each column. A number is also found in columns of
        text that reads as this number. A code that is a declared category is no state any more.
    found : collection of str
        Codes that are missing already, as words of a file are.

    Returns
    -------
    object
        A table of the same kind; `data` itself without codes.

    Raises
    ------
    TableError
        For a code that is neither number nor text, or an unknown column.

    Warns
    -----
    TableWarning
        If no value of the table is one of these codes.

    Examples
    --------
    >>> without_codes(np.array([[1.0, -999.0], [2.0, 3.0]]), -999).tolist()
    [[1.0, nan], [2.0, 3.0]]
    """
    [coded] = tables_without_codes(missing_codes, data, found=found)
    return coded


def tables_without_codes(
    missing_codes: MissingCodes, *tables: Any, found: Collection = (), vector: str = "x0"
) -> tuple:
    """Return tables of the same rows in which values that stand for a missing one are missing.

    Parameters
    ----------
    missing_codes : number, str, iterable of them or dict, optional
        As of `without_codes`; columns of a dict and values have to be in one of the tables only.
    *tables : DataFrame, ndarray, DataArray, list, vector or None
        A vector is one column.
    found : collection of str
        Codes that are missing already.
    vector : str, default "x0"
        Name of a vector without one.

    Returns
    -------
    tuple
        The tables, each of the same kind.

    Raises
    ------
    TableError
        As `without_codes`.

    Warns
    -----
    TableWarning
        As `without_codes`.

    Examples
    --------
    >>> tables_without_codes(9, np.array([[1, 9], [2, 3]]), [4, 9])[1]
    [4, nan]
    """
    if missing_codes is None:
        return tables
    find = _Codes(missing_codes)
    find.found.update(found)
    tables = tuple(map(_collected, tables))
    labels = [_labels(table, vector) for table in tables]
    find.refuse_unknown(labels)
    coded = tuple(_masked(own, find, names) for own, names in zip(tables, labels, strict=True))
    find.warn_about_unused()
    find.warn_about_measurements()
    return coded


def other_rows_without_codes(data: Any, missing_codes: MissingCodes, names: Sequence[str]) -> Any:
    """Return other rows of a table in which the codes of the first rows are missing values.

    Parameters
    ----------
    data : DataFrame, ndarray, DataArray, list or vector
        It need not have all columns, nor a code.
    missing_codes : number, str, iterable of them or dict, optional
        As of `without_codes`.
    names : sequence of str
        Columns of the first table, for rows without names.
    """
    if missing_codes is None:
        return data
    data = _collected(data)
    own = _labels(data)
    if not _is_labelled(data) and own is not None and len(own) == len(names):
        own = list(names)
    return _masked(data, _Codes(missing_codes), own)


def plain_codes(given: MissingCodes) -> dict[str, list] | list:
    """Return codes as a list, or a dict of columns and lists, of Python numbers and text.

    Raises
    ------
    TableError
        For a code that is neither number nor text.
    """
    if isinstance(given, Mapping):
        return {label_text(name): _listed(own) for name, own in given.items()}
    return _listed(given)


def _collected(data):
    return data.collect() if hasattr(data, "collect_schema") and hasattr(data, "collect") else data


def _masked(data, find, names):
    """Mask the codes of a table or vector of any kind; what is neither is refused by whoever reads it."""
    if _is_vector(data):
        return _vector_without(data, find, names)
    if hasattr(data, "iloc"):
        return _pandas_without(data, find, names)
    if hasattr(data, "dims") and hasattr(data, "coords"):
        return data.where(~find.mask(np.asarray(data.values), names))
    if hasattr(data, "columns"):
        return _frame_without(data, find, names)
    if isinstance(data, np.ndarray | list | tuple):
        return _array_without(data, find, names)
    return data


class _Codes:
    """Codes of each column, and which of them were found."""

    def __init__(self, given):
        codes = plain_codes(given)
        self.of = codes if isinstance(codes, dict) else None
        self.all = codes if isinstance(codes, list) else []
        self.found: set = set()
        self.apart: dict[str, list] = {}
        self.between: dict[str, list] = {}

    def refuse_unknown(self, labels):
        """Refuse names that are in no table; without labels, a table is refused by whoever reads it."""
        names = [name for own in labels for name in own or ()]
        if unknown := [name for name in self.of or () if names and name not in names]:
            raise TableError(f"`missing_codes`: {nearest('column', unknown[0], names)}")

    def column(self, name, values):
        """Which values of a column are codes; bool, (n,)."""
        codes = self.all if self.of is None else self.of.get(name, [])
        found = np.zeros(len(values), bool)
        for code in codes:
            same = _equal(values, code)
            if same.any():
                self.found.add(code)
            found |= same
        if self.of is None and found.any():
            self._place(name, values, found)
        return found

    def _place(self, name, values, found):
        """Note which codes of a column are between its other values, as measurements are."""
        kept = [number for v in values[~found] if np.isfinite(number := _finite(v))]
        for code in self.all:
            if not _equal(values[found], code).any():
                continue
            number = _number(code)
            inside = number is not None and kept and min(kept) < number < max(kept)
            (self.between if inside else self.apart).setdefault(name, []).append(code)

    def mask(self, array, names):
        """Which values of a matrix are codes."""
        if array.ndim != 2 or not array.size:
            return np.zeros(array.shape, bool)
        columns = zip(names, array.T, strict=True)
        return np.column_stack([self.column(name, column) for name, column in columns])

    def warn_about_unused(self):
        """Say which codes do not occur: one that is mistyped would otherwise stay in the table."""
        codes = self.all if self.of is None else [c for own in self.of.values() for c in own]
        if unused := [code for code in dict.fromkeys(codes) if code not in self.found]:
            warn(
                f"`missing_codes` holds {listing(unused)}, which no value of the table is: check its "
                "spelling, or leave it out"
            )

    def warn_about_measurements(self):
        """Say which codes of all columns are between the other values of a column."""
        if not self.between:
            return
        codes = list(dict.fromkeys(code for own in self.between.values() for code in own))
        remedy = f": {codes_option(self.apart)}" if self.apart else ""
        warn(
            f"{column_list([*self.between])}: {listing(codes)} of `missing_codes` is between the other values and is read as missing "
            f"too; if it is a measurement there, name the codes of each column{remedy}"
        )


def _finite(value) -> float:
    """Return a value as number, or NaN."""
    number = None if is_missing(value) else _number(value)
    return np.nan if number is None else number


def _is_vector(data) -> bool:
    """Whether something is one column: a Series, an array of one dimension, or a list of values."""
    if isinstance(data, list | tuple):
        return len(data) > 0 and not any(map(np.iterable, data))
    return len(getattr(data, "shape", ())) == 1


def _is_labelled(data) -> bool:
    """Whether the columns of a table have names of their own."""
    if hasattr(data, "dims") and hasattr(data, "coords"):
        return data.ndim == 2 and data.dims[1] in data.coords
    return hasattr(data, "columns")


def _labels(data, vector="x0"):
    """Names of the columns of a frame, matrix or vector; None if it is no table."""
    if isinstance(data, str):
        return None
    if _is_vector(data):
        name = getattr(data, "name", None)
        return [vector if name is None else label_text(name)]
    if hasattr(data, "columns"):
        return [label_text(name) for name in getattr(data, "column_names", data.columns)]
    if _is_labelled(data):
        return [label_text(label) for label in data.coords[data.dims[1]].values]
    shape = data.shape if hasattr(data, "shape") else (0, _width(data))
    return [f"x{j}" for j in range(shape[1])] if len(shape) == 2 else None


def _width(rows):
    lengths = {len(row) for row in rows if hasattr(row, "__len__")} if np.iterable(rows) else {0}
    return max(lengths, default=0)


def _listed(codes) -> list:
    """One code or several as a list."""
    if isinstance(codes, str) or not isinstance(codes, Iterable):
        codes = [codes]
    codes = [code.item() if isinstance(code, np.generic) else code for code in codes]
    if wrong := [c for c in codes if is_missing(c) or not (isinstance(c, str) or is_number(c))]:
        raise TableError(
            f"`missing_codes` must be numbers or text that stand for a missing value, such as -999 or "
            f"'unknown', not {wrong[0]!r:.60}"
        )
    return codes


def _equal(values, code) -> np.ndarray:
    """Which values are a code, whatever the type of the numbers."""
    number = _number(code)
    if values.dtype.kind == "f" and number is not None:
        return values == np.asarray(number).astype(values.dtype)
    if values.dtype.kind in "iu":
        return values == number if number is not None else np.zeros(len(values), bool)
    return np.array([_same(value, code, number) for value in values], bool)


def _same(value, code, number) -> bool:
    if is_missing(value) or isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, str) and isinstance(code, str):
        return value.strip() == code.strip()
    return number is not None and _number(value) == number


def _number(value) -> float | None:
    """Return a value as number, or None."""
    if isinstance(value, str):
        return float(value.replace(",", ".")) if reads_as_number(value) else None
    return float(value) if is_number(value) else None


def _pandas_without(data, find, names):
    import pandas as pd

    columns = []
    for name, (_, column) in zip(names, data.items(), strict=True):
        if hasattr(column, "cat"):
            labels = column.cat.categories
            codes = labels[find.column(name, np.asarray(labels, object))]
            columns.append(column.cat.remove_categories(codes))
        else:
            mask = find.column(name, _as_array(column))
            columns.append(column.mask(mask) if mask.any() else column)
    return pd.concat(columns, axis=1).set_axis(data.columns, axis=1) if columns else data


def _vector_without(data, find, names):
    """Mask one column."""
    if hasattr(data, "to_frame"):  # of pandas or polars
        masked = _masked(data.to_frame(), find, names)
        return (
            masked.iloc[:, 0].rename(data.name) if hasattr(masked, "iloc") else masked.to_series()
        )
    if hasattr(data, "dims") and hasattr(data, "coords"):
        return data.where(~find.column(names[0], np.asarray(data.values)))
    values = np.array(data, object) if isinstance(data, list | tuple) else data
    masked = _array_without(values[:, None], find, names)[:, 0]
    return masked if values is data else masked.tolist()


def _as_array(column):
    array = np.asarray(column)
    return array if array.dtype.kind in "fiu" else array.astype(object)


def _frame_without(data, find, names):
    """Mask a frame of polars or of another library that narwhals knows."""
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True)
    columns = []
    for name, column in zip(names, frame.iter_columns(), strict=True):
        mask = find.column(name, _as_array(column.to_numpy()))
        kept = nw.new_series("kept", (~mask).tolist(), nw.Boolean(), backend=frame.implementation)
        masked = column.to_frame().select(nw.when(kept).then(nw.col(column.name)))[column.name]
        columns.append(_enum_without(name, masked, find))
    return frame.with_columns(*columns).to_native()


def _enum_without(name, column, find):
    """Remove the states that are codes from the type of a column."""
    import narwhals as nw

    if not isinstance(column.dtype, nw.Enum):
        return column
    labels = np.array(column.dtype.categories, object)
    kept = labels[~find.column(name, labels)].tolist()
    return column.cast(nw.String()).cast(nw.Enum(kept))


def _array_without(data, find, names):
    """Mask an array, or a list of rows."""
    rows = data
    if isinstance(data, list | tuple):
        if (
            len({len(row) if hasattr(row, "__len__") else -1 for row in data}) > 1
            or _width(data) == 0
        ):
            return data  # refused by whoever reads it
        rows = np.empty((len(data), _width(data)), object)
        rows[:] = [list(row) for row in data]
    if rows.ndim != 2:
        return data
    mask = find.mask(np.asarray(rows), names)
    if not mask.any():
        return data
    if isinstance(rows, np.ma.MaskedArray):
        return np.ma.array(rows, mask=np.ma.getmaskarray(rows) | mask)
    kind = float if rows.dtype.kind in "fiu" else object
    out = np.array(rows, dtype=kind)
    out[mask] = np.nan
    return out.tolist() if rows is not data else out


def repeated_rows(row_counts: Any, data: Any, *others: Any) -> tuple:
    """Return tables in which each row stands as often as it was counted.

    Parameters
    ----------
    row_counts : (n,) array_like of int, or str, optional
        How often each row was observed; or the name of the column of `data` that says so.
    data : DataFrame, ndarray, DataArray or list of lists
        n rows.
    *others
        Tables with the same rows, such as covariates, or None.

    Returns
    -------
    tuple
        The tables, each of the same kind, with ``sum(row_counts)`` rows that are counted from 0; as
        they are if `row_counts` is None.

    Raises
    ------
    TableError
        If counts are not whole, negative or missing, or their number is not that of the rows.

    Examples
    --------
    >>> [table] = repeated_rows([2, 1], np.array([[0, 1], [1, 1]]))
    >>> table.tolist()
    [[0, 1], [0, 1], [1, 1]]
    """
    if row_counts is None:
        return data, *others
    if hasattr(data, "collect_schema") and hasattr(data, "collect"):
        data = data.collect()
    if isinstance(row_counts, str):
        data, row_counts = _counted_by(data, row_counts)
    check_same_rows(data, row_counts, "`row_counts`")
    for other in others:
        check_same_rows(data, other, "a table that goes with it (covariates, interventions)")
    times = _checked_counts(row_counts, len(data))
    places = np.repeat(np.arange(len(data)), times)
    return tuple(_rows_at(table, places, len(data)) for table in (data, *others))


def _rows_at(table, places, n):
    """Rows of any kind of table; one with another number of rows is refused by whoever reads it."""
    if table is None or not hasattr(table, "__len__") or len(table) != n:
        return table
    if hasattr(table, "iloc"):
        return table.iloc[places].reset_index(drop=True)
    if hasattr(table, "dims") and hasattr(table, "coords"):
        return table.isel({table.dims[0]: places})
    if isinstance(table, np.ndarray):
        return table[places]
    if isinstance(table, list | tuple):
        return [table[i] for i in places.tolist()]
    import narwhals as nw

    return nw.from_native(table, eager_only=True)[places.tolist()].to_native()


def _counted_by(data, name):
    """Return the other columns of a frame, and the column that counts its rows."""
    return column_apart("row_counts", data, name, "one count")


def column_apart(option: str, data: Any, name: str, instead: str) -> tuple:
    """Return the other columns of a frame, and a column of it that an option names.

    Parameters
    ----------
    option : str
        Name of the option, for messages.
    data : DataFrame
    name : str
    instead : str
        What could be given for each row of a table without names.

    Raises
    ------
    TableError
        If the table has no names, or not this one.
    """
    if not hasattr(data, "columns"):
        raise TableError(
            f"`{option}` names the column {name!r}, and the table has no names: give {instead} for each row"
        )
    labels = {label_text(label): label for label in data.columns}
    if name not in labels:
        raise TableError(f"`{option}`: {nearest('column', name, labels)}")
    if [label_text(label) for label in data.columns].count(name) > 1:
        raise TableError(
            f"`{option}`: the name of column {name!r} occurs more than once: rename all but one"
        )
    column = data[labels[name]]
    if hasattr(data, "iloc"):
        return data.drop(columns=labels[name]), column
    import narwhals as nw

    rest = nw.from_native(data, eager_only=True).drop(name).to_native()
    return rest, nw.from_native(column, series_only=True).to_numpy()


def _checked_counts(row_counts, n) -> np.ndarray:
    try:
        times = np.asarray(without_mask(row_counts), float)
    except (TypeError, ValueError):
        times = np.full(n, np.nan)
    if times.shape != (n,):
        raise TableError(
            f"`row_counts` has shape {times.shape}: give one count for each of the {count(n, 'row')}"
        )
    if wrong := np.flatnonzero(
        ~((times >= 0) & (times == np.floor(times)) & (times < _MOST_ROWS))
    ).tolist():
        raise TableError(
            f"`row_counts` of row {wrong[0]} (counting from 0) is {np.asarray(row_counts)[wrong[0]]!s}: counts "
            "are whole numbers from 0 up; shares have to be multiplied by the number of rows"
        )
    if times.sum() > _MOST_ROWS:
        raise TableError(
            f"`row_counts` have the sum {times.sum():,.0f}; at most {_MOST_ROWS:,} rows are supported"
        )
    return times.astype(int)
