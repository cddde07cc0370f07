"""Tables of which some columns count by the order of their values alone: ranks, codes and normal scores."""

import itertools

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesstruct.data.checks import (
    duplicates,
    equal_states,
    max_columns,
    mixed_remarks,
    shape_problems,
    value_problems,
)
from bayesstruct.data.errors import column_list, listing, raise_problems, warn
from bayesstruct.data.intake import Intake, read_columns
from bayesstruct.data.matrices import matrix_problems, transposed_remarks
from bayesstruct.data.remarks import copied_rows
from bayesstruct.data.states import MAX_LEVELS, read_states
from bayesstruct.data.table import NamedColumns, column_moments

__all__ = ["AS_ORDERED", "FREE", "KNOWN", "RankTable", "refuse_copies"]

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
    block : ndarray of int, shape (p,)
        Columns with one number from 0 belong to one column of the data, of states without an order: one for each state but the
        first one, 1 where a row has the state and 0 where it has another one. -1 for all other columns.
    variables : tuple of str
        Names of the columns of the data that the blocks belong to.
    """

    values: np.ndarray
    names: tuple[str, ...]
    by_order: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    block: np.ndarray
    variables: tuple[str, ...] = ()

    @classmethod
    def read(cls, data: Any, *, numbers: bool, counted: bool = False) -> "RankTable":
        """Check a table of numbers, booleans and ordered categories.

        Parameters
        ----------
        data : DataFrame, ndarray, DataArray or list of lists
            As for :meth:`Table.continuous`. Columns of text or categories need an order unless `numbers`: ordered
            categories, or two different values.
        numbers : bool
            Whether columns of numbers are normal, but for those with two different values, and text and categories may be without
            an order.
        counted : bool, default False
            Whether rows stand there as often as they were counted, so that copies are not remarked upon.

        Returns
        -------
        RankTable

        Raises
        ------
        TableError
            With everything that is wrong in one message: the problems of sizes, names, constants and missing values that
            :meth:`Table.continuous` reports, and columns with more than two values that have no order, unless `numbers`.

        Warns
        -----
        TableWarning
            As :meth:`Table.continuous` of missing values and their codes, numbers of rows, and normal columns that are skewed or combinations
            of others. If text is taken as states without an order; if a normal column has few whole numbers; if columns of few levels are equal, which can be chance; if the table
            seems to be transposed; if rows are copies of others.

        Examples
        --------
        >>> table = RankTable.read([[1.5, 0], [2.1, 1], [3.7, 0]], numbers=True)
        >>> table.by_order.tolist(), table.codes[:, 1].tolist()
        ([False, True], [0, 1, 0])
        """
        intake = read_columns(data, max_columns())
        raise_problems(shape_problems(intake))
        intake, categorical, unordered = _with_categories(data, intake, numbers)
        raise_problems(matrix_problems(data, intake.names, intake.values))
        raise_problems(value_problems(intake, "an ordered category"))
        values, p = intake.values, len(intake.names)
        sizes = np.array([len(np.unique(column[~np.isnan(column)])) for column in values.T])
        by_order = categorical | (sizes == 2) if numbers else np.ones(p, bool)
        few = sizes <= MAX_LEVELS
        refuse_copies(intake.names, values, by_order, few)
        if by_order.any():  # others are read again, as a table of numbers, which remarks upon them
            remarks = [*transposed_remarks(data), *([] if counted else copied_rows(values))]
            remarks += mixed_remarks(intake.names, values, categorical, by_order)
            for remark in [*remarks, *_whole_numbers(intake.names, values, few & ~by_order)]:
                warn(remark)
        names, values, owner = _indicators(intake.names, values, unordered)
        by_order = by_order[owner]
        block = _blocks(owner, unordered)
        location, scale = column_moments(values)
        location, scale = np.where(by_order, 0.0, location), np.where(by_order, 1.0, scale)
        for array in (values, by_order, location, scale, block):
            array.flags.writeable = False
        variables = tuple(intake.names[j] for j in unordered)
        return cls(values, tuple(names), by_order, location, scale, block, variables)

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

        The score of a value is the normal quantile of its mean rank among the observed values of its column; it is 1 for
        the state of a row without an order, and -1 for other states.
        """
        by_order = np.where(self.block >= 0, 2.0 * self.values - 1.0, _scores(self.values))
        return np.where(self.by_order, by_order, (self.values - self.location) / self.scale)

    def columns_of(self, name: str) -> list[str]:
        """Names of the columns that a column of the data has become."""
        if name not in self.variables:
            return [name]
        own = np.flatnonzero(self.block == self.variables.index(name))
        return [self.names[j] for j in own]

    def pairs_of(self, pairs) -> list[tuple[str, str]]:
        """Pairs of columns for pairs of columns of the data: every one of the first with every one of the second."""
        out: list = []
        for pair in pairs:
            known = not isinstance(pair, str) and len(pair) == 2
            ends = [self.columns_of(end) for end in pair] if known else []
            out += itertools.product(*ends) if known else [pair]
        return out

    @property
    def inside(self) -> list[tuple[str, str]]:
        """Pairs of columns that belong to one column of states."""
        pairs = itertools.combinations(range(self.p), 2)
        same = [(i, j) for i, j in pairs if self.block[i] == self.block[j] >= 0]
        return [(self.names[i], self.names[j]) for i, j in same]


def _with_categories(data, intake, any_order):
    """Table with the positions of states as numbers, which columns have states, and the states of those without an order."""
    categorical, unordered = np.zeros(len(intake.names), bool), {}
    if not len(intake.values):
        return intake, categorical, unordered
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
            levels = [column.levels[k] for k in own]
            if not any_order:
                problems.append(_without_order(names[j], levels))
                continue
            unordered[j] = dict(zip(own.tolist(), map(str, levels), strict=True))
            if kinds[j] == "text":
                warn(_read_as_states(names[j], levels))
        categorical[j] = True
        values[:, j] = np.where(column.codes < 0, np.nan, column.codes)
    raise_problems(problems)
    refused = {
        kind: left
        for kind, found in intake.refused.items()
        if (left := [(j, example) for j, example in found if not categorical[j]])
    }
    return Intake(intake.names, values, refused), categorical, unordered


def _read_as_states(name, levels):
    return (
        f"column {name!r}: text of {len(levels)} states ({listing(levels)}), which are taken as states without an order; if they have one, declare "
        f"it, in pandas with pandas.Categorical(data[{name!r}], [...], ordered=True), and if not, make them categories: "
        f"data[{name!r}].astype('category')"
    )


def _indicators(names, values, unordered):
    """Names and values with a column for each state but the first one in the place of each of `unordered`, and where they are from."""
    labels, columns, owner = [], [], []
    for j, name in enumerate(names):
        column, states = values[:, j], unordered.get(j)
        if states is None:
            labels, columns, owner = [*labels, name], [*columns, column], [*owner, j]
            continue
        for k in list(states)[1:]:
            labels.append(f"{name}: {states[k]}")
            columns.append(np.where(np.isnan(column), np.nan, column == k))
            owner.append(j)
    if repeated := {label for label in labels if labels.count(label) > 1}:
        raise_problems([f"several columns are called {sorted(repeated)[0]!r}: rename one"])
    return labels, np.column_stack(columns), np.array(owner)


def _blocks(owner, unordered) -> np.ndarray:
    numbers = {j: block for block, j in enumerate(unordered)}
    return np.array([numbers.get(j, -1) for j in owner])


def _without_order(name, levels):
    return (
        f"column {name!r} has {len(levels)} states without an order ({listing(levels)}): if they have one, declare it, in "
        f'pandas with pandas.Categorical(data[{name!r}], [...], ordered=True); if not, take marginals="mixed", which knows states '
        "without an order, leave the column out, or use bs.models.pairwise_mrf for a table of states"
    )


def refuse_copies(names, values, by_order, few):
    """Raise for columns that are copies, or of equal order with many levels; remark upon those that may be equal by chance.

    Parameters
    ----------
    names : sequence of str
    values : (n, p) array of float
    by_order : (p,) array of bool
        Columns of which only the order counts.
    few : (p,) array of bool
        Columns of few values.
    """
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
