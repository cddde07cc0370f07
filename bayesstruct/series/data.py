"""Several time series with the same variables, as one table."""

from dataclasses import dataclass, replace

import numpy as np

from bayesstruct.data.checks import value_problems
from bayesstruct.data.errors import TableError, column_list, raise_problems, warn
from bayesstruct.data.intake import read_columns
from bayesstruct.data.matrices import matrix_problems
from bayesstruct.data.names import nearest
from bayesstruct.data.recoding import tables_without_codes
from bayesstruct.data.remarks import missing_code_remarks, odd_codes, time_remarks
from bayesstruct.data.table import column_moments

__all__ = ["SeriesTable"]

_MOST_COLUMNS = 2_000


@dataclass(frozen=True)
class SeriesTable:
    """Rows of several series, one series after another, each in the order of time.

    Attributes
    ----------
    values : ndarray, shape (T, d)
        In the units of the data; NaN where a value is missing.
    names : tuple of str
        Variables.
    labels : tuple
        Names of the series.
    lengths : tuple of int
        Rows of each.
    location, scale : ndarray, shape (d,)
        Mean and standard deviation of each variable over all series.
    """

    values: np.ndarray
    names: tuple
    labels: tuple
    lengths: tuple
    location: np.ndarray
    scale: np.ndarray

    @property
    def standardized(self) -> np.ndarray:
        """Values with mean 0 and standard deviation 1 over all series."""
        return (self.values - self.location) / self.scale

    @property
    def coords(self) -> dict:
        """Series, variables, and the series and position of each row, as ``"a: 0"``."""
        rows = [
            f"{name}: {t}"
            for name, length in zip(self.labels, self.lengths, strict=True)
            for t in range(length)
        ]
        return {"observation": list(self.labels), "node": list(self.names), "time": rows}

    @classmethod
    def read(cls, data, series=None, missing_codes=None) -> "SeriesTable":
        """Check series of numbers.

        Parameters
        ----------
        data : DataFrame, dict or list
            A long table, rows in the order of time, with a column that names the series; or several tables
            with the same columns, a dict with their names or a list of them.
        series : str, optional
            That column; None for several tables.
        missing_codes : number, str, iterable of them or dict, optional
            Values that stand for a missing one, see :func:`bayesstruct.data.recoding.without_codes`.

        Raises
        ------
        TableError
            If something cannot be used; the message names the column or the series and the remedy.

        Warns
        -----
        TableWarning
            If values that often stand for missing ones are apart from the others; if a variable grows by the same step
            in every series, as a time does; if labels of rows that are times or numbers do not ascend; or if they grow by
            the same step except for a few gaps.
        """
        parts = _parts(data, series)
        labels = tuple(parts)
        _check_times(parts, separate=series is None)
        tables = tables_without_codes(missing_codes, *parts.values())
        intakes = {
            name: read_columns(part, _MOST_COLUMNS)
            for name, part in zip(labels, tables, strict=True)
        }
        first = intakes[labels[0]]
        for name, intake in intakes.items():
            _check_part(name, intake, labels[0], first)
            raise_problems(matrix_problems(parts[name], intake.names, intake.values))
        # Rows without any value are gaps in time and do not count as rows of a table.
        values = np.concatenate([intake.values for intake in intakes.values()])
        refused: dict = next((v.refused for v in intakes.values() if v.refused), {})
        seen = values[~np.isnan(values).all(axis=1)] if not refused else values
        if not len(seen):
            raise TableError("no series has an observed value: pass series of numbers")
        raise_problems(value_problems(replace(first, values=seen, refused=refused)))
        for remark in missing_code_remarks(first.names, [odd_codes(column) for column in seen.T]):
            warn(remark)
        for remark in time_remarks(first.names, [intake.values for intake in intakes.values()]):
            warn(remark)
        lengths = tuple(len(intake.values) for intake in intakes.values())
        return cls(values, tuple(first.names), labels, lengths, *column_moments(seen))


def _check_times(parts, *, separate):
    """Say that rows which are labelled by times or numbers are in another order, or that some are left out."""
    indexes = {
        name: index for name, part in parts.items() if (index := _index_of(part)) is not None
    }
    for name, index in indexes.items():
        if not index.is_monotonic_increasing:
            warn(
                f"series {name!r}: the labels of its rows are not in ascending order, and rows are read in the order in "
                "which they stand; if the labels are times, sort them (data.sort_index())"
            )
            return
        if separate and _is_number(index) and (gap := _gap(index, _others(indexes, name))):
            step, before, after = gap
            warn(
                f"series {name!r}: are rows left out between others? Labels of rows grow by {step:g}, but {before:g} is "
                f"followed by {after:g}, and rows are read as if they followed each other; where nothing was observed, add "
                "empty rows (data.reindex with all labels), and if the labels mean nothing, drop them "
                "(data.reset_index(drop=True))"
            )
            return


def _index_of(part):
    """Labels of rows that are times or numbers, otherwise None."""
    index = getattr(part, "index", None)
    if index is None or callable(index):
        return None
    return index if _is_time(index) or _is_number(index) else None


def _others(indexes, name) -> np.ndarray:
    """Labels of the rows of all other series that are numbers, sorted."""
    rows = [
        np.asarray(own, float) for key, own in indexes.items() if key != name and _is_number(own)
    ]
    return np.sort(np.concatenate([np.empty(0), *rows]))


def _gap(index, others) -> tuple[float, float, float] | None:
    """Return the usual step of ascending labels, and the ends of the first longer one.

    None if steps have no usual length, or rows of other series are in the gaps: then a long table was split.
    """
    labels = np.asarray(index, float)
    if len(labels) < 3 or not np.isfinite(labels).all():
        return None
    steps = np.diff(labels)
    usual = float(np.median(steps))
    longer = np.flatnonzero(steps > 1.5 * usual)
    equal = abs(steps - usual) <= 0.01 * usual  # labels such as 0.1 + 0.2 are rounded
    if usual <= 0 or not len(longer) or equal.mean() <= 0.5:
        return None
    starts, ends = labels[longer], labels[longer + 1]
    filled = np.searchsorted(others, ends, "left") > np.searchsorted(others, starts, "right")
    if filled.all():
        return None
    first = int(filled.argmin())
    return usual, float(starts[first]), float(ends[first])


def _is_time(index) -> bool:
    return index.dtype.kind in "mM" or str(index.dtype).startswith("period")


def _is_number(index) -> bool:
    return getattr(index.dtype, "kind", "O") in "iuf"


def _parts(data, series):
    """Tables of the series by their names."""
    if series is not None:
        return _grouped(data, series)
    if isinstance(data, dict):
        parts = dict(data)
        _check_names(parts)
    elif isinstance(data, list | tuple):
        parts = {f"series {i}": part for i, part in enumerate(data)}
    else:
        raise TableError(
            "one table without `series`: give the name of the column that identifies the series, as in "
            'series="subject", or pass a list of tables, one for each series'
        )
    if not parts:
        raise TableError("there is no series: pass one table for each series")
    return {name: _as_table(part) for name, part in parts.items()}


def _as_table(part):
    """Make a table of one variable from a list or a vector of numbers."""
    if isinstance(part, list | tuple):
        part = np.asarray(part)
    if isinstance(part, np.ndarray) and part.ndim == 1:
        part = part[:, None]
    if hasattr(part, "to_frame") and not hasattr(part, "columns"):
        part = part.to_frame()
    return part


def _grouped(data, series):
    """Split a long table by series, in the order in which these first occur."""
    if hasattr(data, "to_pandas") and not hasattr(data, "iloc"):
        data = data.to_pandas()
    if not hasattr(data, "iloc") or not hasattr(data, "columns"):
        raise TableError(
            f"`series` names a column of a DataFrame, and the data are {type(data).__name__}: pass a DataFrame"
        )
    if series not in data.columns:
        known = ", ".join(repr(str(v)) for v in data.columns)
        raise TableError(
            f"`series`: {nearest('column', str(series), map(str, data.columns))}"
            if known
            else "`series`: the table has no column"
        )
    key = data[series]
    if getattr(key, "ndim", 1) != 1:
        raise TableError(f"`series`: there is more than one column {series!r}: rename all but one")
    if key.isna().any():
        row = int(key.isna().to_numpy().argmax())
        raise TableError(
            f"column {series!r}: row {row} (counting from 0) has no name of a series: give one, or "
            "remove the row"
        )
    rest, names = data.drop(columns=series), list(key.unique())
    _check_names(names)
    return {str(name): rest[key == name] for name in names}


def _check_names(names):
    """Refuse names of series that have the same text, as the number 1 and the text "1"."""
    seen = {}
    for name in names:
        other = seen.setdefault(str(name), name)
        if other is not name:
            raise TableError(
                f"the series {other!r} ({type(other).__name__}) and {name!r} ({type(name).__name__}) have the same "
                "text as name: rename one, or give both the same type if they are one series"
            )


def _check_part(name, intake, first_name, first):
    """Refuse a series that is empty or whose columns differ from those of the first."""
    if not intake.names:
        raise TableError(f"series {name!r} has no column of numbers: add the variables")
    repeated = sorted({v for v in intake.names if intake.names.count(v) > 1})
    if repeated:
        raise TableError(
            f"the name of {column_list(repeated)} occurs more than once: rename all but one"
        )
    if not len(intake.values):
        raise TableError(f"series {name!r} has no row: leave it out")
    if intake.names != first.names:
        raise TableError(
            f"series {name!r} has the columns {', '.join(intake.names)}, and series {first_name!r} has "
            f"{', '.join(first.names)}: give all series the same columns in the same order"
        )
