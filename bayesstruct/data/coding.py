"""Read the rows of another table as the table of a model was read: names, levels, location and scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.checks import max_columns, new_value_kinds
from bayesstruct.data.errors import TableError, column_list, listing, raise_problems, warn
from bayesstruct.data.intake import read_columns
from bayesstruct.data.matrices import matrix_problems
from bayesstruct.data.remarks import far_remarks
from bayesstruct.data.states import StateTable, read_states
from bayesstruct.data.table import Table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "NumberCoding",
    "StateCoding",
    "coding_of",
    "column_places",
    "other_codes",
    "row_labels",
    "state_position",
]


@dataclass(frozen=True, eq=False)
class NumberCoding:
    """How a table of numbers was read.

    Attributes
    ----------
    names : tuple of str
        The p columns.
    location, scale : (p,) ndarray of float
        By which its columns were standardised, in the units of the table.
    first : str
        The table in messages.
    """

    names: tuple[str, ...]
    location: np.ndarray
    scale: np.ndarray
    first: str = "the first table"

    def read(self, data: Any, *, optional: Sequence[str] = ()) -> Table:
        """Read other rows in the same units.

        Parameters
        ----------
        data : DataFrame or array_like
            (n, p) numbers, NaN where missing; one row is enough. Columns that have names are found by name,
            others by position.
        optional : sequence of str
            Columns that may be absent; they are then missing.

        Returns
        -------
        Table
            With the location and scale of the first table.

        Raises
        ------
        TableError
            If a column is absent, unknown or repeated, or a value is no finite number.

        Warns
        -----
        TableWarning
            If values are far outside of the first table, or the rows are a matrix of pairs of its columns.
        """
        intake = read_columns(data, max_columns())
        place = column_places(self.names, intake.names, data, optional)
        raise_problems(new_value_kinds(intake))
        values = np.full((len(intake.values), len(self.names)), np.nan)
        known = place >= 0
        values[:, known] = intake.values[:, place[known]]
        for remark in self._remarks(data, intake, values):
            warn(remark)
        return Table(_rows(values), self.names, self.location, self.scale)

    def _remarks(self, data, intake, values):
        """List what shows that other rows are in other units, or no rows."""
        found = [] if np.isnan(values).any() else matrix_problems(data, intake.names, intake.values)
        if self.location.any() or (self.scale != 1.0).any():  # otherwise they are not known
            found += far_remarks(self.names, values, self.location, self.scale, self.first)
        return found


@dataclass(frozen=True, eq=False)
class StateCoding:
    """How a table of states was read.

    Attributes
    ----------
    names : tuple of str
        The p columns.
    levels : tuple of tuple
        For each column its states in the order of their codes; as text if they come from a result.
    """

    names: tuple[str, ...]
    levels: tuple[tuple, ...]

    @classmethod
    def from_labels(
        cls, names: Sequence[str], labels: Sequence[str], node: "ArrayLike"
    ) -> "StateCoding":
        """Read the levels back from labels ``"column=state"`` and the position of the column of each."""
        owners = np.asarray(node).astype(int).tolist()
        levels = (
            tuple(
                str(s).removeprefix(f"{name}=")
                for s, k in zip(labels, owners, strict=True)
                if k == j
            )
            for j, name in enumerate(names)
        )
        return cls(tuple(names), tuple(levels))

    def read(self, data: Any, *, optional: Sequence[str] = ()) -> StateTable:
        """Read other rows with the same codes.

        Parameters
        ----------
        data : DataFrame or array_like
            (n, p) states as they stand in the table of the model, missing values allowed; one row is enough.
            Columns that have names are found by name, others by position.
        optional : sequence of str
            Columns that may be absent; they are then missing.

        Returns
        -------
        StateTable
            With the levels of the first table.

        Raises
        ------
        TableError
            If a column is absent, unknown or repeated, or has a state that the first table does not have.
        """
        names, columns, rows = read_states(data)
        place = column_places(self.names, names, data, optional)
        codes, problems = np.full((rows, len(self.names)), -1), []
        for j, at in enumerate(place):
            if at < 0:
                continue
            codes[:, j], found = other_codes(self.names[j], columns[at], self.levels[j], rows)
            problems += found
        raise_problems(problems)
        ordered = (True,) * len(self.names)
        return StateTable(_rows(codes), self.names, self.levels, ordered)


def other_codes(
    name: str, column: Any, levels: Sequence, rows: int
) -> tuple[np.ndarray, list[str]]:
    """Codes of a column of other rows, -1 where missing or unknown, and problems in words.

    Parameters
    ----------
    name : str
    column : StateColumn
        As :func:`bayesstruct.data.states.read_states` returns it.
    levels : sequence
        States of the first table, in the order of their codes.
    rows : int
    """
    codes = np.full(rows, -1)
    if len(column.codes) < rows:  # dates, fractions and the like
        problem = column.problems[0]
        return codes, [f"column {name!r} {problem.what}: {problem.remedy}"]
    seen = column.codes
    own = np.array([state_position(s, levels) for s in column.levels], int)
    used = sorted({*seen[seen >= 0].tolist()})
    lost = [column.levels[k] for k in used if own[k] < 0]
    codes[seen >= 0] = own[seen[seen >= 0]]
    return codes, [_unseen(name, lost, levels)] if lost else []


def coding_of(table: Table | StateTable) -> NumberCoding | StateCoding:
    """Return how a table was read."""
    if isinstance(table, StateTable):
        return StateCoding(table.names, table.levels)
    return NumberCoding(table.names, table.location, table.scale)


def state_position(state: Any, levels: Sequence) -> int:
    """Return the position of a state, given as it stands in the table, or -1.

    The number 1.0 is the state 1, and in a column of booleans it is True. True and False are states of
    columns of booleans and of 0 and 1 only.

    Examples
    --------
    >>> (
    ...     state_position(1.0, ("0", "1")),
    ...     state_position(0, (False, True)),
    ...     state_position("b", ("a",)),
    ... )
    (1, 0, -1)
    """
    texts = [str(level) for level in levels]
    if str(state) in texts:
        return texts.index(str(state))
    value = _number(state)
    if isinstance(state, bool | np.bool_) and {*map(_number, levels)} != {0.0, 1.0}:
        return -1
    for position, level in enumerate(levels):
        if _number(level) == value:
            return position
    if sorted(texts) == ["False", "True"] and value in (0, 1):
        return texts.index(str(value == 1))
    return -1


def row_labels(data: Any, rows: int) -> Any:
    """Labels of the rows of a table: its index, or their positions."""
    index = getattr(data, "index", None)
    return np.arange(rows) if index is None or callable(index) else index


def _number(state):
    """Return a state as a number, or NaN, which equals nothing."""
    try:
        return float(state)
    except (TypeError, ValueError):
        return np.nan


def _unseen(name, lost, levels):
    states = f"the state{'s' if len(lost) > 1 else ''} {listing(lost)}"
    return (
        f"column {name!r} has {states}, which the model does not know (its states: {listing(levels)}): leave "
        "these rows out, merge or rename states as in the table of the model, or sample the model of a table that "
        f"has {'them' if len(lost) > 1 else 'it'}"
    )


def _rows(values):
    if not len(values):
        raise TableError("The table is empty, it has 0 rows; give one row or more.")
    values.flags.writeable = False
    return values


def column_places(
    names: Sequence[str], given: Sequence[str], data: Any, optional: Sequence[str]
) -> np.ndarray:
    """Position of each column of a model among those of a table, -1 where an optional one is absent.

    Parameters
    ----------
    names, given : sequence of str
        Of the model, and of the table.
    data : DataFrame or array_like
        The table; columns without names are found by position.
    optional : sequence of str
        Columns that may be absent.

    Raises
    ------
    TableError
        If a column is absent, unknown or repeated.
    """
    named = hasattr(data, "columns") or (
        hasattr(data, "coords") and data.ndim == 2 and data.dims[1] in data.coords
    )
    if not named:
        if len(given) != len(names):
            raise TableError(
                f"The rows have {len(given)} columns without names, the model has {len(names)}: {listing(names)}."
            )
        return np.arange(len(names))
    if repeated := sorted({name for name in given if given.count(name) > 1}):
        raise TableError(f"The name of {column_list(repeated)} occurs more than once.")
    problems = []
    if absent := [name for name in names if name not in given and name not in optional]:
        problems.append(
            f"{column_list(absent)} of the model {_verb(absent)} absent: add {_it(absent)}"
        )
    if unknown := [name for name in given if name not in names]:
        problems.append(
            f"{column_list(unknown)} {_verb(unknown)} not in the model: leave {_it(unknown)} out, in pandas "
            f"with data.drop(columns={unknown[:10]})"
        )
    if absent and all(name == f"x{j}" for j, name in enumerate(names)):
        problems.append(
            "the table of the model had no names of columns: give an array with the columns in its order"
        )
    raise_problems(problems)
    return np.array([[*given].index(name) if name in given else -1 for name in names])


def _verb(names):
    return "are" if len(names) > 1 else "is"


def _it(names):
    return "them" if len(names) > 1 else "it"
