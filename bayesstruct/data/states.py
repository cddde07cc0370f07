"""A checked table of discrete variables: states as codes, with their labels."""

import math
import re
import unicodedata

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from bayesstruct.data.checks import equal_states, max_columns, shape_problems
from bayesstruct.data.errors import TableError, column_list, listing, raise_problems, warn
from bayesstruct.data.intake import Intake, read_columns
from bayesstruct.data.matrices import crosstab_remarks, matrix_problems, transposed_remarks
from bayesstruct.data.names import label_text, nearest, reads_as_number
from bayesstruct.data.recoding import plain_codes
from bayesstruct.data.remarks import codes_option, frequency_remarks
from bayesstruct.data.table import NamedColumns

__all__ = ["MAX_LEVELS", "StateTable", "read_states", "refuse_coded_states"]

#: A column with more different values is taken to be a number or an identifier.
MAX_LEVELS = 20
_CLASSES = (
    "make them numbers (pandas.to_numeric) and cut them into classes (pandas.cut, pandas.qcut), or, if "
    "each stands for a class, make them categories (pandas.Categorical)"
)

_EXACT = 2**53  # up to which all whole numbers are floats
_COUNTED = 1024  # range of whole numbers that are counted, which is faster than to sort them
_HUGE = f"holds whole numbers beyond {_EXACT}, which cannot be told apart as floats"
_AS_TEXT = "make text of them (data[column].astype(str) in pandas)"
#: Text, in lower case, and numbers that stand for a missing value more often than for a state.
_NO_VALUE = {"", "na", "n/a", "#n/a", "nan", "null", ".", "?"}
_CODES = {9, 88, 98, 99, 888, 998, 999, 8888, 9998, 9999}


@dataclass(frozen=True, eq=False, repr=False)
class StateTable(NamedColumns):
    """A checked table of discrete variables.

    Make one with :meth:`StateTable.read`. The array is read-only.

    Attributes
    ----------
    codes : ndarray, shape (n, p)
        Int64: the position of the state among the levels of its column, -1 where missing.
    names : tuple of str
        The p column names.
    levels : tuple of tuple
        For each column the labels of its states, in order.
    ordered : tuple of bool
        Whether the order of the levels was given with the data: numbers (also as text), booleans
        and ordered categories.
    declared : tuple of str
        Columns whose states somebody wrote down in order: by `states`, or as ordered categories.
    """

    codes: np.ndarray
    names: tuple[str, ...]
    levels: tuple[tuple, ...]
    ordered: tuple[bool, ...]
    declared: tuple[str, ...] = ()

    @classmethod
    def read(cls, data: Any, *, states: Any = None) -> "StateTable":
        """Check a table of discrete variables.

        Parameters
        ----------
        data : DataFrame, ndarray, DataArray or list of lists
            As for :meth:`Table.continuous`. Columns hold text, booleans, integers (also as floats,
            which a column with gaps is in pandas) or categories. The states of a column are its
            different values: categories in their own order, everything else sorted, and text that
            consists of numbers as numbers. Categories (of pandas, or an Enum of polars) that never
            occur are states too.
        states : list or dict of lists, optional
            All states of each column, in order, also those that never occur: one list for all
            columns, or a dict with one for each of some columns. A column in which one of them only was observed is
            not constant.

        Returns
        -------
        StateTable

        Raises
        ------
        TableError
            With everything that is wrong in one message: the problems of sizes, names, constants and
            missing values that :meth:`Table.continuous` reports; duplicates that cannot be chance; numbers that are not whole,
            also as text; text and numbers in one column; more than 20 different values; values that are not among the
            declared states; dates and other things that are not states; a symmetric matrix of pairs of columns.

        Warns
        -----
        TableWarning
            If columns are equal and may be so by chance: unrelated columns would be equal in one
            table of this size in a million, or more often. If categories never occur. If the table looks like one of frequencies, or transposed. If text or numbers that often stand
            for a missing value ("", "NA"; -9, 99 apart from the others) are states, or states differ only in
            blanks or capitals.

        Examples
        --------
        >>> table = StateTable.read([["no", 1], ["yes", 3], ["no", 3]])
        >>> table.codes.tolist()
        [[0, 0], [1, 1], [0, 1]]
        >>> table.levels
        (('no', 'yes'), (1, 3))
        """
        names, columns, rows = _columns(data)
        raise_problems(shape_problems(Intake(names, np.empty((rows, len(names))))))
        shape = [*transposed_remarks(data), *crosstab_remarks(data)]
        for remark in [*frequency_remarks(names, columns), *shape]:
            warn(remark)
        declared = _declared_by(states, names)
        read = [
            _states(column) if own is None else _stated(column, own)
            for column, own in zip(columns, declared, strict=True)
        ]
        raise_problems(_sentences(names, read))
        codes = np.column_stack([column.codes for column in read])
        raise_problems(_matrix(data, names, read))
        problems, remarks = _table_problems(names, codes)
        raise_problems(problems)
        codes.flags.writeable = False
        levels = tuple(column.levels for column in read)
        ordered = tuple(column.ordered for column in read)
        by_hand = [name for name, column in zip(names, read, strict=True) if column.declared]
        table = cls(codes, tuple(names), levels, ordered, tuple(by_hand))
        undeclared = [name for name, own in zip(names, declared, strict=True) if own is None]
        for remark in [
            *remarks,
            *_odd_labels(names, read, undeclared),
            *_never(table.unseen, undeclared),
        ]:
            warn(remark)
        return table

    def check_binary(self, remedy: str) -> "StateTable":
        """Return the table if its columns have two values each.

        Raises
        ------
        TableError
            With the names of the columns that have more, and the remedy.
        """
        if wide := [name for name, k in zip(self.names, self.states, strict=True) if k > 2]:
            raise TableError(f"{column_list(wide)}: more than two values; {remedy}")
        return self

    def refuse_unseen(self, reason: str) -> None:
        """Raise if a declared state never occurs.

        Raises
        ------
        TableError
            With the columns, these states, and the reason.
        """
        if self.unseen:
            raise TableError(f"{_shown_states(self.unseen)}: {reason}")

    def __repr__(self) -> str:
        share = f", {self.missing.mean():.1%} missing" if self.missing.any() else ""
        return f"StateTable({self.n:,} observations, {self.p:,} variables{share})"

    @property
    def n(self) -> int:
        """Number of observations (rows)."""
        return self.codes.shape[0]

    @property
    def states(self) -> tuple[int, ...]:
        """Number of states of each column."""
        return tuple(map(len, self.levels))

    @cached_property
    def unseen(self) -> dict[str, list]:
        """States that were declared and never occur, by column."""
        columns = zip(self.names, self.levels, self.codes.T, strict=True)
        found = {
            name: [own[k] for k in np.flatnonzero(~np.isin(np.arange(len(own)), codes))]
            for name, own, codes in columns
        }
        return {name: labels for name, labels in found.items() if labels}

    @cached_property
    def missing(self) -> np.ndarray:
        """Which values are missing; bool, shape (n, p)."""
        return self.codes < 0


def _odd_labels(names, columns, undeclared) -> list[str]:
    """List the columns with states that may stand for missing values, unless declared, or are spelled in two ways."""
    remarks, levels = [], [column.levels for column in columns]
    for find, words in ((_no_values, _NO_STATE), (_twins, _ONE_STATE)):
        found = {
            name: odd
            for name, own in zip(names, levels, strict=True)
            if (find is _twins or name in undeclared) and (odd := find(own))
        }
        if shown := [f"{name!r} ({listing(odd)})" for name, odd in found.items()]:
            remarks.append(words.format(shown=", ".join(shown), codes=codes_option(found)))
    return remarks


_NO_STATE = (
    "values that often stand for missing ones are read as states in {shown}; if they mean missing, "
    "leave them empty or name them: {codes}"
)
_ONE_STATE = (
    "states that differ only in blanks or capitals, or in the way a number or letter is written, are read as different "
    "states in {shown}; if they are the same, unify them first, in pandas with data[column].str.strip().str.lower(), "
    "numbers with pandas.to_numeric(data[column])"
)


def _no_values(levels) -> list:
    """Labels that mean a missing value, and numbers far from the others that often do."""
    if any(isinstance(level, str) and not reads_as_number(level) for level in levels):
        return [v for v in levels if isinstance(v, str) and v.strip().lower() in _NO_VALUE]
    if not all(
        isinstance(level, str | Integral) and not isinstance(level, bool) for level in levels
    ):
        return []
    values = [_as_float(level) if isinstance(level, str) else level for level in levels]
    usual = [v for v in values if v >= 0 and v not in _CODES] or values
    negative = [v for v in values if -1000 < v < 0]
    below = min(usual) - max(negative, default=math.inf) > 2 and sorted(
        -v for v in values
    ) != sorted(values)
    apart = [(below and v in negative) or (v > max(usual) + 1 and v in _CODES) for v in values]
    return [level for level, odd in zip(levels, apart, strict=True) if odd]


def _twins(levels) -> list:
    """Labels that differ from an earlier one only in spelling: blanks, capitals, or ways to write a number or letter."""
    plain = [_plain(level) for level in levels]
    return [level for k, level in enumerate(levels) if plain[k] in plain[:k]]


def _plain(level):
    """Text as a number if it is one, otherwise without blanks at its ends and capitals, in one form of Unicode."""
    if not isinstance(level, str):
        return level
    text = unicodedata.normalize("NFKC", level).strip().lower()
    if re.fullmatch(r"[+-]?\d{1,4000}", text):  # Python refuses to read more digits
        return int(text)  # a float has 16 digits only
    return _as_float(text) if reads_as_number(text) else text


def _matrix(data, names, columns) -> list[str]:
    """Refuse a symmetric matrix of whole numbers over pairs of the columns."""
    if not all(all(isinstance(level, int) for level in column.levels) for column in columns):
        return []
    shape = len(columns[0].codes), len(columns)
    if shape[0] > shape[1]:  # no square: of such a table only the labels are looked at
        return matrix_problems(data, names, np.broadcast_to(np.nan, shape))
    values = [np.array([*column.levels, np.nan], float)[column.codes] for column in columns]
    return matrix_problems(data, names, np.column_stack(values))


def _shown_states(unseen) -> str:
    return ", ".join(
        f"column {name!r} never has {listing(labels)}" for name, labels in unseen.items()
    )


def _never(unseen, names) -> list[str]:
    """Say which categories never occur: they may be left over from a larger table."""
    if not (left := {name: labels for name, labels in unseen.items() if name in names}):
        return []
    return [
        f"{_shown_states(left)}: declared categories are states with their prior probability, also those that never "
        "occur; drop them (data[column].cat.remove_unused_categories() in pandas) if they are left over, or "
        "say that they are meant by states="
    ]


def _declared_by(states, names) -> list[list | None]:
    """List the declared states of each column, None where not declared."""
    if states is None:
        return [None] * len(names)
    if isinstance(states, Mapping):
        own = {label_text(name): labels for name, labels in states.items()}
        if unknown := [name for name in own if name not in names]:
            raise TableError(f"`states`: {nearest('column', unknown[0], names)}")
    else:
        own = dict.fromkeys(names, states)
    return [_checked_states(name, own[name]) if name in own else None for name in names]


def refuse_coded_states(states: Any, missing_codes: Any) -> None:
    """Raise if a value is declared as a state of a column and as a code for its missing values.

    Parameters
    ----------
    states : list or dict of lists, optional
        As of `StateTable.read`.
    missing_codes : number, str, iterable of them or dict, optional
        As of `without_codes`.

    Raises
    ------
    TableError
        With the column and the value.
    """
    if states is None or missing_codes is None:
        return
    codes = plain_codes(missing_codes)
    own_codes = codes if isinstance(codes, dict) else {}
    every = [code for own in own_codes.values() for code in own] if own_codes else codes
    if isinstance(states, Mapping):
        pairs = {
            f" of {label_text(name)!r}": (
                labels,
                own_codes.get(label_text(name), []) if own_codes else every,
            )
            for name, labels in states.items()
        }
    else:
        pairs = {"": (states, every)}
    for whose, (labels, own) in pairs.items():
        listed = [] if isinstance(labels, str) or not isinstance(labels, Iterable) else [*labels]
        plain = {_plain(label) for label in listed if not isinstance(label, bool | np.bool_)}
        if both := [code for code in own if _plain(code) in plain]:
            raise TableError(
                f"`states`{whose} and `missing_codes` both have {both[0]!r}: leave it out of one of them, or, if it stands for a "
                "missing value in other columns only, name these: missing_codes={column: [...]}"
            )


def _checked_states(name, labels) -> list:
    if isinstance(labels, set | frozenset):
        raise TableError(
            f"`states` of {name!r} is a set, which has no order (not even the same one in two runs): give a list"
        )
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise TableError(
            f"`states` of {name!r} must be a list of its states in order, not {labels!r:.60}"
        )
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    if len(set(labels)) < max(2, len(labels)) or any(map(_is_missing, labels)):
        raise TableError(
            f"`states` of {name!r} must be two or more different values, without missing ones: {listing(labels)}"
        )
    return [int(v) if isinstance(v, float) and v.is_integer() else v for v in labels]


def _stated(series, labels) -> "_Column":
    """Codes of a column whose states are declared."""
    values = [None if _is_missing(value) else value for value in series.to_list()]
    known = {(label, isinstance(label, bool)) for label in labels}
    strange = [v for v in values if v is not None and (v, isinstance(v, bool)) not in known]
    if strange:
        return _refused(
            f"holds {strange[0]!r} ({type(strange[0]).__name__}), which is not among its declared states {listing(labels)}",
            "correct the value, add it to `states` (text and numbers differ), or name it in missing_codes",
        )
    seen = any(value is not None for value in values)
    return _coded(values, labels, True, _level_problems(labels if seen else []), declared=True)


class _Problem(NamedTuple):
    """A problem of a column, in words that follow its name, and the remedy."""

    what: str
    remedy: str


@dataclass(frozen=True)
class _Column:
    codes: np.ndarray
    levels: tuple
    ordered: bool
    problems: list[_Problem]
    declared: bool = False


def _sentences(names, columns) -> list[str]:
    """One sentence for each remedy: it names all columns that need it, and shows the first."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, column in zip(names, columns, strict=True):
        for what, remedy in column.problems:
            found.setdefault(remedy, []).append((name, what))
    sentences = []
    for remedy, cases in found.items():
        first, what = cases[0]
        if len(cases) == 1:
            sentences.append(f"column {first!r} {what}: {remedy}")
        else:
            listed = column_list([name for name, _ in cases])
            sentences.append(f"{listed} have the same problem, {first!r} {what}: {remedy}")
    return sentences


def read_states(data: Any) -> "tuple[list[str], list[_Column], int]":
    """Read names of columns, their states, and the number of rows, of any kind of table.

    Nothing is checked: each column lists its own problems. Of a table that is refused by its names there are
    no columns.
    """
    names, columns, rows = _columns(data)
    return names, [_states(column) for column in columns], rows


def _columns(data):
    """Names, columns as narwhals series, and number of rows of any kind of table."""
    import narwhals as nw
    import pandas as pd

    if not (hasattr(data, "collect_schema") or hasattr(data, "columns")):
        names = read_columns(data, max_columns()).names  # raises for anything that is not a table
        values = getattr(data, "values", data)
        if np.ma.isMaskedArray(values):
            mask, values = np.ma.getmaskarray(values), np.array(values.data, dtype=object)
            values[mask] = None
        rows = values if isinstance(values, np.ndarray) else [list(row) for row in values]
        data = pd.DataFrame(rows, columns=names if len(rows) or len(names) else None)
        data = data.infer_objects()
    else:
        names = read_columns(data, max_columns()).names
        if hasattr(data, "collect"):
            data = data.collect()
    if len(names) > max_columns() or len(set(names)) < len(names):
        return names, [], 2  # refused by name alone
    if getattr(getattr(data, "columns", None), "nlevels", 1) > 1:
        data = data.set_axis(names, axis=1)
    frame = nw.from_native(data, eager_only=True)
    return names, list(frame.iter_columns()), len(frame)


def _states(series) -> _Column:
    import narwhals as nw

    dtype = series.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return _categories(series)
    ends = (series.min() or 0, series.max() or 0) if dtype.is_integer() else (0, 0)
    if ends[0] < -_EXACT or ends[1] > _EXACT:
        return _refused(_HUGE, _AS_TEXT)
    if dtype.is_numeric() or dtype == nw.Boolean:
        values = series.cast(nw.Float64).to_numpy()
        return _numbers(values, boolean=dtype == nw.Boolean)
    if dtype.is_temporal():
        return _refused("holds dates or times, which are not states", "cut them into periods")
    return _objects(series.to_list())


def _categories(series):
    labels, ordered = _declared(series)
    values = series.to_list()
    seen = not all(map(_is_missing, values))
    return _coded(
        values, labels, ordered, _level_problems(labels if seen else []), declared=ordered
    )


def _declared(series):
    """Categories in their order, and whether that order was declared."""
    import narwhals as nw

    categories = getattr(getattr(series.to_native(), "cat", None), "categories", None)
    if categories is not None:  # pandas and its like
        return list(categories), bool(series.to_native().cat.ordered)
    if isinstance(series.dtype, nw.Enum):
        return list(series.dtype.categories), True
    return sorted(series.drop_nulls().unique().to_list()), False


def _numbers(values, *, boolean=False):
    finite = values[~np.isnan(values)]
    if np.isinf(finite).any():
        return _refused("holds an infinite value", "correct it, or set it to NaN")
    if (broken := finite[finite != np.round(finite)]).size:
        return _refused(
            f"holds numbers that are not whole (for example {broken[0]:g}), which are not states",
            "cut them into classes (pandas.cut, pandas.qcut), or use a model for continuous columns",
        )
    levels, codes = _levels_and_codes(values, finite)
    labels = [bool(v) for v in levels] if boolean else [int(v) for v in levels]
    problems = _level_problems(labels)
    return _Column(codes, tuple(labels), True, problems)


def _levels_and_codes(values, finite):
    """Sorted different values of a column, and the position of each value among them, -1 where it is NaN."""
    known, low = ~np.isnan(values), finite.min(initial=np.inf)
    if len(finite) and finite.max() - low < _COUNTED:
        places = (finite - low).astype(np.int64)
        seen = np.bincount(places) > 0
        levels, found = low + np.flatnonzero(seen), (np.cumsum(seen) - 1)[places]
    else:
        levels, found = np.unique(finite, return_inverse=True)
    codes = np.full(len(values), -1, np.int64)
    codes[known] = found
    return levels, codes


def _objects(values):
    values = [None if _is_missing(value) else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    text = [issubclass(kind, str) for kind in kinds]
    if kinds and all(text):
        labels, ordered = _sorted_text({value for value in values if value is not None})
        problems = _level_problems(labels)
        if ordered and (broken := [label for label in labels if not _as_float(label).is_integer()]):
            what = f"holds text of numbers that are not whole (for example {broken[0]!r})"
            problems = [_Problem(f"{what}, which are not states", _CLASSES)]
        return _coded(values, labels, ordered, problems)
    if any(issubclass(kind, bool | np.bool) for kind in kinds) and not kinds <= {
        bool,
        np.bool,
        type(None),
    }:
        return _mixed(kinds)
    whole = [abs(value) for value in values if isinstance(value, Integral)]
    if max(whole, default=0) > _EXACT:
        return _refused(_HUGE, _AS_TEXT)
    try:
        if any(text):
            raise TypeError
        numbers = [np.nan if value is None else float(value) for value in values]
    except (TypeError, ValueError):
        return _mixed(kinds)
    return _numbers(np.array(numbers), boolean=kinds <= {bool, np.bool})


def _mixed(kinds):
    return _refused(
        f"holds values of the kinds {listing(sorted(kind.__name__ for kind in kinds))}",
        "make all of them text, or numbers (pandas.to_numeric)",
    )


def _sorted_text(labels):
    """Sorted labels, and whether they are sorted as numbers."""
    labels = sorted(labels)
    if not all(map(reads_as_number, labels)):
        return labels, False
    numbers = {label: _as_float(label) for label in labels}
    if not np.isfinite(list(numbers.values())).all():
        return labels, False
    return sorted(labels, key=numbers.get), True


def _as_float(label: str) -> float:
    return float(label.replace(",", "."))


def _is_missing(value) -> bool:
    nan = isinstance(value, float) and np.isnan(value)
    return value is None or nan or type(value).__name__ in ("NAType", "NaTType")


def _coded(values, labels, ordered, problems, *, declared=False):
    at = {label: code for code, label in enumerate(labels)}
    codes = np.array([-1 if _is_missing(v) else at[v] for v in values], np.int64)
    return _Column(codes, tuple(labels), ordered, problems, declared)


def _refused(what, remedy):
    return _Column(np.empty(0, np.int64), (), False, [_Problem(what, remedy)])


def _level_problems(labels) -> list[_Problem]:
    if not labels:
        return [_Problem("is empty, all values are missing", "remove it")]
    if len(labels) == 1:
        return [
            _Problem(
                f"is constant (always {labels[0]!r})",
                "remove it, a constant column carries no information about dependence",
            )
        ]
    if len(labels) > MAX_LEVELS:
        return [
            _Problem(
                f"has {len(labels):,} different values, at most {MAX_LEVELS} states are supported",
                "merge states (pandas.cut, pandas.qcut), leave it out if it is an identifier, or use "
                "a model for continuous columns",
            )
        ]
    return []


def _table_problems(names, codes):
    values = np.where(codes < 0, np.nan, codes)
    problems, remarks = equal_states(names, values)
    empty = np.flatnonzero(np.isnan(values).all(axis=1)).tolist()
    if empty:
        problems.append(
            f"row{'s' if len(empty) > 1 else ''} {listing(empty)} (counting from 0): all values are "
            "missing; remove such rows, for example with data.dropna(how='all')"
        )
    return problems, remarks
