"""Tables of features and a target that is to be predicted."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import choice
from bayesstruct.data.checks import shape_problems
from bayesstruct.data.coding import StateCoding, row_labels
from bayesstruct.data.errors import (
    TableError,
    column_list,
    count,
    listing,
    raise_problems,
    warn,
)
from bayesstruct.data.intake import Intake
from bayesstruct.data.names import label_text, nearest
from bayesstruct.data.recoding import without_codes
from bayesstruct.data.states import StateTable, read_states, refuse_coded_states

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["ClassifierTable", "read_features"]

#: What is done with rows that have missing values.
_INCOMPLETE = ("drop", "error")


@dataclass(frozen=True, eq=False)
class ClassifierTable:
    """A checked table of states without missing ones, and the column that is the class.

    Attributes
    ----------
    states : StateTable
    target : int
        Position of the class among the columns.
    """

    states: StateTable
    target: int

    @classmethod
    def read(
        cls,
        data: "TableLike",
        target: Any,
        *,
        states: Any = None,
        missing_codes: Any = None,
        incomplete_rows: str = "drop",
        features: int = 1,
    ) -> "ClassifierTable":
        """Check a table.

        Parameters
        ----------
        data : DataFrame or array_like
        target : str or int
            Name of the column of the class, or its number in a table without names.
        states : list or dict of lists, optional
            Declared states, see :meth:`bayesstruct.data.StateTable.read`.
        missing_codes : number, str, iterable of them or dict, optional
            Values that stand for a missing one.
        incomplete_rows : {"drop", "error"}
            What is done with rows that have missing values.
        features : int
            How many there must be at least.

        Raises
        ------
        TableError
            With the column and the remedy: if there is no such column, if it has one class, if the table cannot be used as one of
            states, or if values are missing and rows are not dropped, or too few are left.

        Warns
        -----
        TableWarning
            If rows are dropped.
        """
        choice("incomplete_rows", incomplete_rows, _INCOMPLETE)
        refuse_coded_states(states, missing_codes)
        data = without_codes(data, missing_codes)
        name = _check_target(data, target)
        table = StateTable.read(data, states=states)
        if table.p <= features:
            raise TableError(
                f"the table has {count(table.p - 1, 'feature')} beside the target {name!r}, and this structure needs "
                f"{features} or more: add columns, or use structure='naive'"
            )
        if table.missing.any():
            if incomplete_rows == "error":
                raise TableError(_gaps(table, name))
            table = _complete(table, name)
        return cls(table, table.names.index(name))

    @property
    def codes(self) -> np.ndarray:
        """States from 0, (n, d)."""
        return self.states.codes

    @property
    def counts(self) -> np.ndarray:
        """Number of states of each column, (d,)."""
        return np.array(self.states.states)

    @property
    def names(self) -> tuple[str, ...]:
        """All columns."""
        return self.states.names

    @property
    def label(self) -> str:
        """Name of the target."""
        return self.names[self.target]

    @property
    def classes(self) -> tuple:
        """Labels of the classes."""
        return self.states.levels[self.target]

    @property
    def features(self) -> np.ndarray:
        """Positions of the features."""
        return np.delete(np.arange(len(self.names)), self.target)


def _check_target(data, target):
    """Return the name of the target, which must have two classes or more."""
    names, columns, rows = read_states(data)
    raise_problems(shape_problems(Intake(names, np.empty((rows, len(names))))))
    if target is None or not isinstance(target, Hashable):
        raise TypeError(
            f"`target` is the name of the column of the class, not {'None' if target is None else type(target).__name__}: put the classes into the table as a column, and "
            f"give its name; there are {listing(names)}"
        )
    name = label_text(target)
    if name not in names and isinstance(target, int | np.integer) and f"x{target}" in names:
        name = f"x{target}"  # of an array, whose columns have no names
    if name not in names:
        raise TableError(nearest("target", name, names))
    if not columns:
        return name  # names are refused later
    column = columns[names.index(name)]
    if not len(column.codes):
        problem = column.problems[0]
        raise TableError(
            f"the target {name!r} {problem.what}: a classifier predicts one of a few classes; {problem.remedy}"
        )
    seen = np.unique(column.codes[column.codes >= 0])
    if not len(seen):
        raise TableError(
            f"the target {name!r} has no class in any row: fill in the classes that are known"
        )
    if len(seen) < 2:
        raise TableError(
            f"the target {name!r} has one class ({column.levels[seen[0]]!r}) in all rows, so that there is nothing to predict: add rows of "
            "other classes, or choose another target"
        )
    return name


def _complete(table, target):
    """Return the rows without missing values, with all states, and say which rows are left out."""
    gaps, at = table.missing, table.names.index(target)
    kept, columns = ~gaps.any(axis=1), gaps.sum(axis=0)
    worst = int(columns.argmax())
    most = f"most often {table.names[worst]!r}, in {count(int(columns[worst]), 'row')}"
    codes = table.codes[kept]
    found = np.bincount(codes[:, at], minlength=table.states[at]) > 0
    if found.sum() < 2:
        raise TableError(
            f"{column_list([table.names[j] for j in np.flatnonzero(columns)])}: values are missing ({most}), and the "
            f"{count(int(kept.sum()), 'complete row')} {'have' if kept.sum() != 1 else 'has'} fewer than two classes of {target!r}: drop "
            "columns with many missing values, or make 'missing' a state of its own (data.fillna('missing'))"
        )
    lost = [label for label, there in zip(table.levels[at], found, strict=True) if not there]
    gone = f" Among them are all rows of the class {listing(lost)}." if lost else ""
    warn(
        f"rows with missing values are left out, {int((~kept).sum()):,} of {len(kept):,} ({most}).{gone} The others stand for all rows if "
        "values are missing completely at random. If that a value is missing says something about the class, or many rows are lost, "
        "make 'missing' a state of its own (data.fillna('missing'), also in rows that are to be predicted)"
    )
    codes.flags.writeable = False
    return replace(table, codes=codes)


def _gaps(table, target):
    incomplete = [table.names[j] for j in np.flatnonzero(table.missing.any(axis=0))]
    rows = int(table.missing.any(axis=1).sum())
    if incomplete == [target]:
        return (
            f"the target {target!r} is missing in {count(rows, 'row')}: drop these rows "
            f"(data.dropna(subset=[{target!r}])); bs.class_probabilities(idata, rows) predicts it afterwards"
        )
    return (
        f"{column_list(incomplete)}: values are missing in {count(rows, 'row')}, and classifiers are learned from complete rows: drop "
        "these rows (data.dropna()) or columns, or make 'missing' a state of its own (data.fillna('missing')). Features of rows that are to "
        "be predicted may be missing"
    )


def read_features(
    coding: StateCoding, target: str, rows: "TableLike", *, classes: bool = False
) -> tuple[np.ndarray, Any]:
    """Read rows whose class may be absent; return codes, -1 where missing, and labels of the rows.

    Parameters
    ----------
    coding : StateCoding
        Columns and their states.
    target : str
    rows : DataFrame or array_like
    classes : bool
        Whether the classes are used: otherwise those of a pandas table are not read, and may be new.
    """
    if not classes and hasattr(rows, "iloc") and hasattr(rows, "columns"):
        rows = rows[[name for name in rows.columns if label_text(name) != target]]
    if (
        not hasattr(rows, "columns")
        and np.ndim(rows) == 2
        and np.shape(rows)[1] == len(coding.names) - 1
    ):
        at = coding.names.index(target)  # an array of features
        own = StateCoding(
            tuple(name for name in coding.names if name != target),
            tuple(own for j, own in enumerate(coding.levels) if j != at),
        )
        codes = np.insert(own.read(rows).codes, at, -1, axis=1)
    else:
        codes = coding.read(rows, optional=[target]).codes
    return codes, row_labels(rows, len(codes))
