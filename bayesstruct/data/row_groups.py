"""Tables whose rows belong to groups: one table and the group of each row, or one table for each group."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesstruct.data.arguments import is_missing, is_number
from bayesstruct.data.checks import max_columns, value_kinds
from bayesstruct.data.errors import TableError, column_list, count, listing, raise_problems, warn
from bayesstruct.data.intake import read_columns
from bayesstruct.data.labels import check_same_rows, without_mask
from bayesstruct.data.names import label_text
from bayesstruct.data.recoding import column_apart
from bayesstruct.data.table import Table

__all__ = [
    "GroupedTable",
    "check_groups",
    "grouped_table",
    "groups_apart",
    "is_one_for_each",
    "read_groups",
    "refuse_different_columns",
]

#: Ratio of variances of two groups beyond which differences of precisions are differences of variances too.
_VARIANCES = 2.0
_SIGNIFICANT = 1e-4


@dataclass(frozen=True, eq=False, repr=False)
class GroupedTable:
    """A checked table whose rows belong to groups.

    Attributes
    ----------
    table : Table
        All rows, in their order and units.
    labels : tuple of str
        The G groups.
    group : (n,) ndarray of int
        Position of the group of each row.
    location, scale : (G, p) ndarray
        Means of the columns in each group, and the units in which they are standardised there.
    """

    table: Table
    labels: tuple[str, ...]
    group: np.ndarray
    location: np.ndarray
    scale: np.ndarray

    def __repr__(self) -> str:
        return f"GroupedTable({self.table!r}, groups {listing(self.labels)})"

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows of each group."""
        return np.bincount(self.group, minlength=len(self.labels))

    @property
    def coords(self) -> dict[str, Any]:
        """Coordinates of a model: those of the table, and ``group``."""
        return self.table.coords | {"group": list(self.labels)}

    def standardized(self, group: int) -> np.ndarray:
        """Rows of one group less their means, over their scale."""
        rows = self.table.values[self.group == group]
        return (rows - self.location[group]) / self.scale[group]


def grouped_table(data: Any, group: Any = None, *, standardize: bool | str = True) -> GroupedTable:
    """Read and check a table with the group of each row.

    Parameters
    ----------
    data : DataFrame, array_like, or mapping of labels to them
        (n, p) table of numbers; or one table for each group, all with the same columns.
    group : str or (n,) array_like
        Name of the column of `data` with the groups, which is then no variable; or the group of each row. Not with a mapping.
    standardize : bool or "group"
        True: by the standard deviation within groups, pooled over them; "group": by that of each group.

    Returns
    -------
    GroupedTable

    Raises
    ------
    TableError
        As `Table.continuous`, and if groups are missing, fewer than two or nearly as many as rows, if a group has fewer than
        two rows, if columns differ between groups, or if one does not vary within a group.

    Warns
    -----
    TableWarning
        As `Table.continuous`; if a column varies far more in one group than in another and the scale is a common one.
    """
    if not (standardize in (True, False) or standardize == "group"):
        raise ValueError(f'`standardize` must be True, False or "group", it is {standardize!r}')
    if is_one_for_each(data):
        data, group = _joined(data, group)
    elif group is None:
        raise TypeError(
            "`group` is needed: the name of the column with the groups, the group of each row, or a dict of one table "
            "for each group"
        )
    data, group, name = groups_apart(data, group)
    labels, index = read_groups(group)
    table = Table.continuous(data, standardize=False)
    check_groups(labels, index, name, table.n, "gaussian_graphical")
    location, spread = _moments(table, labels, index)
    if not standardize:
        return GroupedTable(table, labels, index, location * 0.0, location * 0.0 + 1.0)
    if standardize is True:
        _warn_of_variances(table, labels, index, spread)
        spread = np.broadcast_to(_pooled(table, index, spread), spread.shape).copy()
    return GroupedTable(table, labels, index, location, spread)


def is_one_for_each(data: Any) -> bool:
    """Whether data are a table for each group, by its label, and not one table."""
    return isinstance(data, Mapping) and not hasattr(data, "columns")


def groups_apart(data: Any, group: Any) -> tuple[Any, Any, Any]:
    """Return the table without the column of groups, the group of each row, and the name of the column, if it has one.

    Parameters
    ----------
    data : DataFrame or array_like
    group : str or (n,) array_like

    Raises
    ------
    TableError
        If the column is not in the table, or the groups are one of the variables or labelled differently from the rows.
    """
    name = group if isinstance(group, str) else getattr(group, "name", None)
    if isinstance(group, str):
        data, group = column_apart("group", data, group, "the group")
    else:
        _refuse_variable(data, name)
    check_same_rows(data, group, "`group`")
    return data, group, name


def _joined(tables, group):
    """Rows of one table for each group, one below the other, and their groups."""
    import pandas as pd

    if group is not None:
        raise TypeError("`group` is given twice: a dict of tables has the groups as its keys")
    if not tables:
        raise TableError("`data` is an empty dict: give one table for each group")
    intakes = {label_text(label): read_columns(own, max_columns()) for label, own in tables.items()}
    names = refuse_different_columns({label: own.names for label, own in intakes.items()})
    for own in intakes.values():
        raise_problems(value_kinds(own))
    frames = [pd.DataFrame(own.values, columns=own.names)[names] for own in intakes.values()]
    labels = [label for label, own in intakes.items() for _ in range(len(own.values))]
    return pd.concat(frames, ignore_index=True), pd.Categorical(labels, categories=[*intakes])


def refuse_different_columns(columns: dict[str, list[str]]) -> list[str]:
    """Return the columns of the first group; raise if another group has different ones."""
    first, names = next(iter(columns.items()))
    for label, own in columns.items():
        if different := sorted({*own} ^ {*names}):
            raise TableError(
                f"groups {first!r} and {label!r} have different columns, {column_list(different)} "
                f"{'are' if len(different) > 1 else 'is'} in one of them only: keep the columns that all groups have"
            )
    return list(names)


def _refuse_variable(data, name):
    """Raise if the groups are still a column of the table."""
    columns = [label_text(c) for c in data.columns] if hasattr(data, "columns") else []
    if name is not None and label_text(name) in columns:
        raise TableError(
            f"column {label_text(name)!r} is the group of the rows and one of the variables: give group={label_text(name)!r}, "
            "which takes it out of the variables"
        )


def read_groups(group: Any) -> tuple[tuple[str, ...], np.ndarray]:
    """Labels of the groups and the group of each row; categories keep their order, others are sorted."""
    categories = getattr(getattr(group, "cat", group), "categories", None)
    values = np.asarray(without_mask(group), dtype=object)
    if values.ndim != 1:
        raise TableError(f"`group` must be one label for each row, it has {values.ndim} dimensions")
    if (lost := np.flatnonzero([is_missing(v) for v in values])).size:
        raise TableError(
            f"`group` is missing in {count(len(lost), 'row')}, first in row {lost[0]} (counting from 0): leave these rows "
            "out, or give them a group of their own"
        )
    different = list(dict.fromkeys(values.tolist()))
    if categories is not None:
        seen = {*different}
        ordered = [c for c in list(categories) if c in seen]
    else:
        ordered = sorted(different, key=lambda v: (0, v, "") if is_number(v) else (1, 0, str(v)))
    labels = [label_text(v) for v in ordered]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise TableError(f"`group` has different values that are written {twice[0]!r}: rename one")
    place = {value: k for k, value in enumerate(ordered)}
    return tuple(labels), np.array([place[v] for v in values.tolist()], int)


def check_groups(labels: tuple[str, ...], index: np.ndarray, name: Any, rows: int, single: str):
    """Raise if there are too few or too many groups, or one of a single row.

    Parameters
    ----------
    labels, index
        As `read_groups` returns them.
    name : object
        Name of the column of groups; None without one.
    rows : int
        Number of rows of the table.
    single : str
        Model for one group, for the message.
    """
    if len(index) != rows:
        raise TableError(
            f"`group` has {count(len(index), 'label')}, and the table {count(rows, 'row')}: give one for each row"
        )
    what = "`group`" if name is None else f"`group` (column {label_text(name)!r})"
    if len(labels) < 2:
        raise TableError(
            f"{what} has the single value {labels[0]!r}: there is nothing to compare; use {single} for one group"
        )
    if len(labels) > len(index) / 2:
        raise TableError(
            f"{what} has {len(labels)} different values in {count(len(index), 'row')}, which are no groups: give labels that "
            "many rows share, for instance by pandas.cut"
        )
    sizes = np.bincount(index)
    if small := [labels[g] for g in np.flatnonzero(sizes < 2)]:
        raise TableError(
            f"group{'s' if len(small) > 1 else ''} {listing(small)} {'have' if len(small) > 1 else 'has'} 1 row, at least 2 "
            "are needed: leave these rows out or join groups"
        )


def _moments(table, labels, index) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of each column in each group; raises where there are none."""
    location, spread, problems = [], [], []
    for g, label in enumerate(labels):
        rows = table.values[index == g]
        seen = np.isfinite(rows).sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            filled = np.where(np.isfinite(rows), rows, 0.0)
            mean = filled.sum(axis=0) / seen
            deviation = np.where(np.isfinite(rows), rows - mean, 0.0)
            sd = np.sqrt((deviation**2).sum(axis=0) / (seen - 1))
        flat = (seen < 2) | ~(sd > 1e-10 * np.abs(mean))
        if flat.any():
            names = column_list([table.names[j] for j in np.flatnonzero(flat)])
            problems.append(
                f"{names} of group {label!r} {'have' if flat.sum() > 1 else 'has'} fewer than 2 different values there: leave "
                "the column or the group out"
            )
        location.append(mean)
        spread.append(sd)
    raise_problems(problems)
    return np.array(location), np.array(spread)


def _observed(table, index):
    groups = index.max() + 1
    return np.array([np.isfinite(table.values[index == g]).sum(axis=0) for g in range(groups)])


def _pooled(table, index, spread) -> np.ndarray:
    """Return the standard deviations within groups, (p,)."""
    weight = _observed(table, index) - 1.0
    return np.sqrt((weight * spread**2).sum(axis=0) / weight.sum(axis=0))


def _warn_of_variances(table, labels, index, spread):
    from scipy import stats

    free = _observed(table, index) - 1
    found = []
    for j, name in enumerate(table.names):
        low, high = spread[:, j].argmin(), spread[:, j].argmax()
        ratio = (spread[high, j] / spread[low, j]) ** 2
        rare = stats.f.sf(ratio, free[high, j], free[low, j]) * len(labels) ** 2 * table.p
        if ratio > _VARIANCES and rare < _SIGNIFICANT:
            found.append((name, ratio, labels[high], labels[low]))
    if found:
        name, ratio, high, low = max(found, key=lambda each: each[1])
        warn(
            f"{column_list([each[0] for each in found])}: variances differ between groups ({name!r}: {ratio:.1f} times as large in "
            f'{high!r} as in {low!r}), and elements of precision matrices differ with them; standardize="group" compares '
            "columns in the units of each group"
        )
