"""Tables of which some columns count by the order of their values alone: ranks, codes and normal scores."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesstruct.data.checks import (
    duplicates,
    equal_states,
    max_columns,
    shape_problems,
    value_problems,
)
from bayesstruct.data.errors import column_list, listing, raise_problems, warn
from bayesstruct.data.intake import Intake, read_columns
from bayesstruct.data.matrices import matrix_problems, transposed_remarks
from bayesstruct.data.remarks import copied_rows
from bayesstruct.data.states import MAX_LEVELS, read_states
from bayesstruct.data.table import NamedColumns, column_moments

__all__ = ["AS_ORDERED", "FREE", "KNOWN", "RankTable"]

#: How a column of numbers is made one that counts by its order.
AS_ORDERED = (
    "an ordered category (in pandas data[column].astype(pandas.CategoricalDtype(ordered=True)))"
)

#: Codes of values that have no level: not observed, or known as a number.
FREE, KNOWN = -1, -2


@dataclass(frozen=True, eq=False, repr=False)
class RankTable(NamedColumns):
    """A checked table in which columns are normal, or count by the order of their values alone.

    Make one with :meth:`RankTable.read`. The arrays are read-only.

    Attributes
    ----------
    values : ndarray, shape (n, p)
        Float64, NaN where missing. Numbers in their units; booleans 0 and 1; categories by their position.
    names : tuple of str
        The p column names.
    by_order : ndarray of bool, shape (p,)
        Which columns count by their order alone.
    location, scale : ndarray, shape (p,)
        Means and standard deviations (``ddof=1``) of normal columns; 0 and 1 for the others.
    """

    values: np.ndarray
    names: tuple[str, ...]
    by_order: np.ndarray
    location: np.ndarray
    scale: np.ndarray

    @classmethod
    def read(cls, data: Any, *, numbers: bool, counted: bool = False) -> "RankTable":
        """Check a table of numbers, booleans and ordered categories.

        Parameters
        ----------
        data : DataFrame, ndarray, DataArray or list of lists
            As for :meth:`Table.continuous`. Columns of text or categories need an order: ordered categories, or two
            different values.
        numbers : bool
            Whether columns of numbers are normal, but for those with two different values.
        counted : bool, default False
            Whether rows stand there as often as they were counted, so that copies are not remarked upon.

        Returns
        -------
        RankTable

        Raises
        ------
        TableError
            With everything that is wrong in one message: the problems of sizes, names, constants and missing values that
            :meth:`Table.continuous` reports, and columns with more than two values that have no order.

        Warns
        -----
        TableWarning
            If a normal column has few whole numbers; if columns of few levels are equal, which can be chance; if the table
            seems to be transposed; if rows are copies of others.

        Examples
        --------
        >>> table = RankTable.read([[1.5, 0], [2.1, 1], [3.7, 0]], numbers=True)
        >>> table.by_order.tolist(), table.codes[:, 1].tolist()
        ([False, True], [0, 1, 0])
        """
        intake = read_columns(data, max_columns())
        raise_problems(shape_problems(intake))
        intake, categorical = _with_categories(data, intake)
        raise_problems(matrix_problems(data, intake.names, intake.values))
        raise_problems(value_problems(intake, "an ordered category"))
        values, p = intake.values, len(intake.names)
        sizes = np.array([len(np.unique(column[~np.isnan(column)])) for column in values.T])
        by_order = categorical | (sizes == 2) if numbers else np.ones(p, bool)
        few = sizes <= MAX_LEVELS
        _refuse_copies(intake.names, values, by_order, few)
        if by_order.any():  # others are read again, as a table of numbers, which remarks upon them
            remarks = [*transposed_remarks(data), *([] if counted else copied_rows(values))]
            for remark in [*remarks, *_whole_numbers(intake.names, values, few & ~by_order)]:
                warn(remark)
        location, scale = column_moments(values)
        location, scale = np.where(by_order, 0.0, location), np.where(by_order, 1.0, scale)
        for array in (values, by_order, location, scale):
            array.flags.writeable = False
        return cls(values, tuple(intake.names), by_order, location, scale)

    def __repr__(self) -> str:
        return (
            f"RankTable({self.n:,} observations, {self.p:,} variables, "
            f"{self.by_order.sum():,} of them by order)"
        )

    @property
    def n(self) -> int:
        """Number of observations (rows)."""
        return self.values.shape[0]

    @cached_property
    def missing(self) -> np.ndarray:
        """Which values are missing; bool, shape (n, p)."""
        return np.isnan(self.values)

    @cached_property
    def codes(self) -> np.ndarray:
        """Level of each value in its column, from 0; `FREE` where missing, `KNOWN` for values of normal columns."""
        return _codes(self.values, self.by_order)

    @cached_property
    def standardized(self) -> np.ndarray:
        """Standardised values of normal columns and normal scores of the others, shape (n, p), NaN where missing.

        The score of a value is the normal quantile of its mean rank among the observed values of its column.
        """
        return np.where(
            self.by_order, _scores(self.values), (self.values - self.location) / self.scale
        )


def _with_categories(data, intake):
    """Table with the positions of ordered categories and of pairs of states as numbers, and which columns these are."""
    categorical = np.zeros(len(intake.names), bool)
    if not len(intake.values):
        return intake, categorical
    names, columns, _ = read_states(data)
    values, problems = intake.values.copy(), []
    kinds = {j: kind for kind in ("text", "category") for j, _ in intake.refused.get(kind, ())}
    for j in sorted(kinds):
        column = columns[j]
        own = np.unique(column.codes[column.codes >= 0])
        if column.problems:
            problems += [f"column {names[j]!r} {one.what}: {one.remedy}" for one in column.problems]
            continue
        if len(own) > 2 and not column.declared:
            problems.append(_without_order(names[j], [column.levels[k] for k in own]))
            continue
        categorical[j] = True
        values[:, j] = np.where(column.codes < 0, np.nan, column.codes)
    raise_problems(problems)
    refused = {
        kind: left
        for kind, found in intake.refused.items()
        if (left := [(j, example) for j, example in found if not categorical[j]])
    }
    return Intake(intake.names, values, refused), categorical


def _without_order(name, levels):
    return (
        f"column {name!r} has {len(levels)} states without an order ({listing(levels)}): if they have one, declare it, in "
        f"pandas with pandas.Categorical(data[{name!r}], [...], ordered=True); if not, leave the column out, or use "
        "bs.models.pairwise_mrf for a table of states"
    )


def _refuse_copies(names, values, by_order, few):
    """Raise for columns that are copies, or of equal order with many levels; remark upon those that may be equal by chance."""
    ranks = np.where(by_order & ~np.isnan(values), _codes(values, by_order), values)
    kept, many = [names[j] for j in np.flatnonzero(few)], np.flatnonzero(~few)
    problems, chance = equal_states(kept, ranks[:, few]) if len(kept) > 1 else ([], [])
    problems += duplicates([names[j] for j in many], ranks[:, many])
    raise_problems(problems)
    for remark in chance:
        warn(remark)


def _whole_numbers(names, values, few):
    """Remark upon normal columns of few whole numbers."""
    found = [
        names[j]
        for j in np.flatnonzero(few)
        if (np.nan_to_num(values[:, j]) % 1 == 0).all() and len(values) > MAX_LEVELS
    ]
    if not found:
        return []
    return [
        f"{column_list(found)}: few whole numbers, which are taken as normal; for a column that counts by its order alone "
        f"make it {AS_ORDERED}"
    ]


def _codes(values, by_order) -> np.ndarray:
    codes = np.full(values.shape, KNOWN)
    for j in range(values.shape[1]):
        seen = ~np.isnan(values[:, j])
        codes[~seen, j] = FREE
        if by_order[j]:
            codes[seen, j] = np.unique(values[seen, j], return_inverse=True)[1].ravel()
    return codes


def _scores(values) -> np.ndarray:
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = rankdata(values, axis=0, nan_policy="omit")
    return ndtri(ranks / ((~np.isnan(values)).sum(axis=0) + 1.0))
