"""Complete tables of numbers, of states or of both, for trees."""

import warnings

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesstruct.data.arguments import choice
from bayesstruct.data.errors import TableError, column_list, warn
from bayesstruct.data.states import MAX_LEVELS, StateTable
from bayesstruct.data.table import Table
from bayesstruct.networks.data.mixed_coding import MixedCoding
from bayesstruct.networks.data.mixed_tables import MixedTable

__all__ = ["COLUMNS", "TreeColumns", "read_tree_columns"]

COLUMNS = ("mixed", "numbers", "states")
_BLOCK = 64  # columns that are copied at a time, side by side in memory
_DISCRETE = 'columns="states", for which all columns hold states'


@dataclass(frozen=True, eq=False)
class TreeColumns:
    """A complete table, and how it was read.

    Attributes
    ----------
    values : (n, p) ndarray
        Numbers in their units, states as 0, 1, ...
    states : (p,) ndarray of int
        Numbers of states, 0 for columns of numbers.
    coding : MixedCoding
        Reads other rows in the same way.
    """

    values: np.ndarray
    states: np.ndarray
    coding: MixedCoding

    @cached_property
    def state_counts(self) -> dict[int, np.ndarray]:
        """How often each state of a column of states occurs, by the position of the column."""
        counted, chosen = {}, np.flatnonzero(self.states)
        for at in range(0, len(chosen), _BLOCK):
            some = chosen[at : at + _BLOCK]
            for j, codes in zip(
                some.tolist(), self.values[:, some].T.astype(np.int64, "C"), strict=True
            ):
                counted[j] = np.bincount(codes, minlength=self.states[j])
        return counted

    @property
    def names(self) -> tuple[str, ...]:
        """The p columns."""
        return self.coding.names


def read_tree_columns(
    data: Any,
    columns: str,
    *,
    kinds: Mapping | None = None,
    states: Any = None,
    imputes: str = "bayesstruct.models.tree",
) -> TreeColumns:
    """Check a table without missing values.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p).
    columns : {"mixed", "numbers", "states"}
    kinds : dict, optional
        Families of some columns, as in :meth:`bayesstruct.networks.data.mixed_tables.MixedTable.read`; of ``"mixed"`` only. Those of numbers are
        ``"normal"``, those of states are all the same.
    states : list or dict of lists, optional
        Declared states, of ``"states"`` only.
    imputes : str
        The model that imputes missing values, for the message of the error.

    Raises
    ------
    TableError
        If the table cannot be used, a value is missing, or a declared state never occurs.
    ValueError
        If an option is unknown or does not fit.
    """
    choice("columns", columns, COLUMNS)
    if kinds is not None and columns != "mixed":
        raise ValueError(f"`kinds` belongs to columns='mixed', not to {columns!r}; leave it out")
    if states is not None and columns != "states":
        raise ValueError(f"`states` belongs to columns='states', not to {columns!r}; leave it out")
    read = _read(data, columns, kinds, states)
    _check(read, imputes)
    return read


def _read(data, columns, kinds, states) -> TreeColumns:
    """Read a table."""
    if columns == "mixed":
        return _mixed(data, kinds)
    if columns == "states":
        table = StateTable.read(data, states=states)
        family = ("multinomial",) * table.p
        coding = MixedCoding(table.names, family, table.levels, np.zeros(table.p), np.ones(table.p))
        values = np.where(table.missing, np.nan, table.codes)
        return TreeColumns(values, np.array(table.states, np.int64), coding)
    numbers = Table.continuous(data, discrete=_DISCRETE, prior=False)
    p = numbers.p
    coding = MixedCoding(numbers.names, ("normal",) * p, ((),) * p, numbers.location, numbers.scale)
    return TreeColumns(numbers.values, np.zeros(p, np.int64), coding)


def _mixed(data, kinds) -> TreeColumns:
    """Read a table of numbers and states."""
    if isinstance(kinds, Mapping) and (
        odd := [name for name, kind in kinds.items() if kind in ("student", "laplace")]
    ):
        raise ValueError(
            f"`kinds`: numbers in a tree are normal, and {column_list(odd)} should not be; leave this out"
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*few whole numbers")
        table = MixedTable.read(data, kinds=kinds, prior=False)
    given = set(map(str, kinds or ()))
    few = [
        name
        for name, column, r in zip(table.names, table.values.T, table.states, strict=True)
        if not r and name not in given and _few_whole(column)
    ]
    if few and table.n > MAX_LEVELS:
        warn(
            f"{column_list(few)}: few whole numbers, which are taken as normal; if they are states, make them categories "
            '(pandas.Categorical), or say columns="states" if all columns hold states; columns="numbers" says that numbers are meant'
        )
    return TreeColumns(table.values, np.array(table.states, np.int64), MixedCoding.of(table))


def _few_whole(column: np.ndarray) -> bool:
    """Whether a column holds few different numbers, all of them whole."""
    seen = np.unique(column[~np.isnan(column)])
    return len(seen) <= MAX_LEVELS and bool((seen % 1 == 0).all())


def _check(read: TreeColumns, imputes: str) -> None:
    """Refuse missing values and states that never occur."""
    names = read.names
    if lost := [names[j] for j in np.flatnonzero(np.isnan(read.values).any(axis=0))]:
        raise TableError(
            f"{column_list(lost)}: values are missing, and complete rows are needed here; drop these rows "
            f"(data.dropna()) or columns, or use {imputes}, which imputes them"
        )
    for j, seen in read.state_counts.items():
        if not seen.all():
            label = read.coding.levels[j][int(np.argmin(seen))]
            raise TableError(
                f"column {names[j]!r}: the state {label!r} never occurs, so that its probability would be 0; leave it out "
                "(in pandas data[column].cat.remove_unused_categories())"
            )
