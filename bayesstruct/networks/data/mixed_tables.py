"""Tables of numbers, and of states with and without an order, for networks of columns of several kinds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesstruct.data.checks import max_columns, mixed_remarks, shape_problems, value_problems
from bayesstruct.data.errors import TableError, column_list, listing, raise_problems, warn
from bayesstruct.data.intake import Intake, read_columns
from bayesstruct.data.matrices import matrix_problems, transposed_remarks
from bayesstruct.data.names import label_text, nearest
from bayesstruct.data.ranks import refuse_copies
from bayesstruct.data.remarks import copied_rows
from bayesstruct.data.states import MAX_LEVELS, read_states
from bayesstruct.data.table import NamedColumns, column_moments
from bayesstruct.networks.kernels.mixed_layout import FAMILIES, NUMBERS, TWO_STATES, MixedLayout

__all__ = ["MixedTable"]


@dataclass(frozen=True, eq=False, repr=False)
class MixedTable(NamedColumns):
    """A checked table whose columns are numbers or states, each with a family.

    Make one with :meth:`MixedTable.read`. The arrays are read-only.

    Attributes
    ----------
    values : ndarray, shape (n, p)
        Float64, NaN where missing. Numbers in their units; states as 0, 1, ...
    names : tuple of str
        The p column names.
    families : tuple of str
        Of :data:`bayesstruct.networks.kernels.mixed_layout.FAMILIES`.
    levels : tuple of tuple
        For each column the labels of its states in order; none for numbers.
    location, scale : ndarray, shape (p,)
        Means and standard deviations (``ddof=1``) of columns of numbers; 0 and 1 for the others.
    """

    values: np.ndarray
    names: tuple[str, ...]
    families: tuple[str, ...]
    levels: tuple[tuple, ...]
    location: np.ndarray
    scale: np.ndarray

    @classmethod
    def read(
        cls, data: Any, *, kinds: Any = None, counted: bool = False, prior: bool = True
    ) -> "MixedTable":
        """Check a table of numbers and states.

        Parameters
        ----------
        data : DataFrame, ndarray, DataArray or list of lists
            As for :meth:`bayesstruct.data.Table.continuous`; columns of text, booleans and categories, and those with two different
            values, hold states.
        kinds : dict, optional
            Families of some columns, by name. By default ``"normal"`` for numbers, ``"logistic"`` for two states,
            ``"ordinal"`` for ordered categories and ``"multinomial"`` for other states.
        counted : bool, default False
            Whether rows stand there as often as they were counted, so that copies are not remarked upon.
        prior : bool, default True
            As for :meth:`bayesstruct.data.Table.continuous`.

        Returns
        -------
        MixedTable

        Raises
        ------
        TableError
            With everything that is wrong with the table, or a family that does not fit its column.

        Warns
        -----
        TableWarning
            As :meth:`bayesstruct.data.Table.continuous` of numbers; if a column of numbers has few whole ones.

        Examples
        --------
        >>> table = MixedTable.read(
        ...     [[1.5, "a", 3.0], [2.1, "b", 2.5], [3.7, "c", 2.9], [0.3, "a", 2.0]]
        ... )
        >>> table.families
        ('normal', 'multinomial', 'normal')
        """
        intake = read_columns(data, max_columns())
        raise_problems(shape_problems(intake))
        given = _given_families(kinds, intake.names)
        intake, states, categorical = _with_states(data, intake, given)
        raise_problems(matrix_problems(data, intake.names, intake.values))
        raise_problems(value_problems(intake, "a category"))
        values, names = intake.values, intake.names
        own = {j: given.get(name) for j, name in enumerate(names)}
        families = tuple(own[j] or _default(states.get(j)) for j in range(len(names)))
        raise_problems(_unfit(names, families, states))
        by_state = np.array([j in states for j in range(len(names))])
        few = np.array([len(np.unique(c[~np.isnan(c)])) <= MAX_LEVELS for c in values.T])
        refuse_copies(names, values, by_state, few)
        for remark in [*transposed_remarks(data), *([] if counted else copied_rows(values))]:
            warn(remark)
        for remark in mixed_remarks(names, values, categorical, by_state, prior=prior):
            warn(remark)
        for remark in _whole_numbers(names, values, few & ~by_state, own):
            warn(remark)
        location, scale = column_moments(values)
        location, scale = np.where(by_state, 0.0, location), np.where(by_state, 1.0, scale)
        for array in (values, location, scale):
            array.flags.writeable = False
        levels = tuple(tuple(states[j].levels) if j in states else () for j in range(len(names)))
        return cls(values, tuple(names), families, levels, location, scale)

    def __repr__(self) -> str:
        number = sum(own in NUMBERS for own in self.families)
        return (
            f"MixedTable({self.n:,} observations, {self.p:,} variables, {number:,} of them numbers)"
        )

    @property
    def n(self) -> int:
        """Number of observations (rows)."""
        return self.values.shape[0]

    @property
    def states(self) -> tuple[int, ...]:
        """Number of states of each column, 0 for numbers."""
        return tuple(map(len, self.levels))

    @cached_property
    def layout(self) -> MixedLayout:
        """Features and parameters of a network of these columns."""
        return MixedLayout(self.families, self.states)

    @cached_property
    def missing(self) -> np.ndarray:
        """Which values are missing; bool, shape (n, p)."""
        return np.isnan(self.values)

    @cached_property
    def standardized(self) -> np.ndarray:
        """Standardised numbers, and states 0, 1, ..., shape (n, p)."""
        return (self.values - self.location) / self.scale


def _given_families(kinds, names) -> dict[str, str]:
    """Families that were asked for, by the name of the column."""
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping):
        raise TypeError(f'`kinds` is a dict like {{"{names[0]}": "student"}}, not {kinds!r:.60}')
    own = {label_text(name): kind for name, kind in kinds.items()}
    if unknown := [name for name in own if name not in names]:
        raise TableError(f"`kinds`: {nearest('column', unknown[0], names)}")
    for name, kind in own.items():
        if kind not in FAMILIES:
            raise ValueError(f"`kinds` of {name!r}: {nearest('family', kind, FAMILIES)}")
    return own


def _with_states(data, intake, given):
    """Table with states as numbers, columns of states by position, and which are text or categories."""
    names, columns, _ = read_states(data)
    refused = {j for kind in ("text", "category") for j, _ in intake.refused.get(kind, ())}
    values, states, problems = intake.values.copy(), {}, []
    for j, name in enumerate(names):
        family, column = given.get(name), columns[j]
        two = j not in refused and _has_two(values[:, j])
        if j not in refused and (family in NUMBERS or (family is None and not two)):
            continue
        if two and column.problems:
            column = _two_values(values[:, j])
        if column.problems:
            problems += _no_states(name, column.problems, None if j in refused else family)
            continue
        states[j] = column
        values[:, j] = np.where(column.codes < 0, np.nan, column.codes)
    raise_problems(problems)
    left = {
        kind: kept
        for kind, found in intake.refused.items()
        if (kept := [(j, example) for j, example in found if j not in states])
    }
    categorical = np.array([j in refused for j in range(len(names))])
    return Intake(intake.names, values, left), states, categorical


def _has_two(column) -> bool:
    """Whether a column has two different values, both finite."""
    own = column[~np.isnan(column)]
    if not len(own):
        return False
    low, high = own.min(), own.max()
    return low < high and bool(
        np.isfinite([low, high]).all() and ((own == low) | (own == high)).all()
    )


def _no_states(name, problems, family):
    """Say why a column cannot hold states; with the family that takes numbers for states, if one was given."""
    if family is None:
        return [f"column {name!r} {one.what}: {one.remedy}" for one in problems]
    return [
        f"column {name!r} {one.what}, and the family {family!r} is for states: leave {name!r} out of `kinds`, so that it counts as "
        "numbers, or cut it into classes (pandas.cut, pandas.qcut)"
        for one in problems
    ]


@dataclass(frozen=True)
class _TwoValues:
    """States of a column of two numbers that are not whole."""

    codes: np.ndarray
    levels: tuple
    ordered: bool = True
    declared: bool = False
    problems: tuple = ()


def _two_values(column) -> _TwoValues:
    low, high = np.unique(column[~np.isnan(column)])
    codes = np.where(np.isnan(column), -1, column == high).astype(int)
    return _TwoValues(codes, (float(low), float(high)))


def _default(column) -> str:
    """Family of a column of which nothing was said."""
    if column is None:
        return "normal"
    if len(column.levels) == 2:
        return "logistic"
    return "ordinal" if column.declared else "multinomial"


def _unfit(names, families, states) -> list[str]:
    """List families that do not fit their columns."""
    problems = []
    for j, (name, family) in enumerate(zip(names, families, strict=True)):
        levels = states[j].levels if j in states else ()
        if family in NUMBERS and levels:
            problems.append(
                f"column {name!r} holds states ({listing(levels)}), and the family {family!r} is for numbers: leave "
                "it out of `kinds`, or make the column numbers (pandas.to_numeric)"
            )
        elif family in TWO_STATES and len(levels) != 2:
            problems.append(
                f"column {name!r} has {len(levels)} states, and the family {family!r} is for two: take 'multinomial' or "
                "'ordinal', or merge states"
            )
        elif family == "ordinal" and not states[j].ordered:
            problems.append(
                f"column {name!r} has states without an order ({listing(levels)}), and the family 'ordinal' needs one: declare it, "
                f"in pandas with pandas.Categorical(data[{name!r}], [...], ordered=True), or take 'multinomial'"
            )
    return problems


def _whole_numbers(names, values, few, given) -> list[str]:
    """Remark upon columns of numbers with few whole ones."""
    found: Sequence[str] = [
        names[j]
        for j in np.flatnonzero(few)
        if given[j] is None and (np.nan_to_num(values[:, j]) % 1 == 0).all()
    ]
    if not found or len(values) <= MAX_LEVELS:
        return []
    return [
        f"{column_list(found)}: few whole numbers, which are taken as normal; for ordered states say "
        f"kinds={{{found[0]!r}: 'ordinal'}}, for states without an order 'multinomial', and 'normal' if numbers are meant"
    ]
