"""Tables whose rows belong to groups: one table and the group of each row, or one table for each group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesstruct.data.arguments import is_missing, is_number
from bayesstruct.data.checks import max_columns, value_kinds
from bayesstruct.data.errors import TableError, column_list, count, listing, raise_problems, warn
from bayesstruct.data.intake import Intake, read_columns
from bayesstruct.data.labels import check_same_rows, without_mask
from bayesstruct.data.matrices import matrix_problems
from bayesstruct.data.names import group_label, label_text, reads_as_number
from bayesstruct.data.recoding import column_apart, repeated_rows
from bayesstruct.data.table import Table

__all__ = [
    "GroupedTable",
    "check_same_columns",
    "grouped_table",
    "groups_apart",
    "is_by_group",
    "pooled_deviations",
    "repeated_tables",
    "rows_of_groups",
    "table_of_group",
    "warn_of_variances",
]

#: Ratio of variances of two groups beyond which differences of precisions are differences of variances too.
_VARIANCES = 2.0
_SIGNIFICANT = 1e-4
#: More groups that are numbers than this are perhaps values of a quantity.
_MANY = 10
_REMEDY = "pass the rows that it was computed from, or, where there are none, grouped_gaussian_graphical(cov=matrices, n=numbers_of_rows)"


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


def grouped_table(
    data: Any, group: Any = None, *, standardize: bool | str = True, row_counts: Any = None
) -> GroupedTable:
    """Read and check a table with the group of each row.

    Parameters
    ----------
    data : DataFrame, array_like, or mapping of labels to them
        (n, p) table of numbers; or one table for each group, all with the same columns.
    group : str or (n,) array_like
        Name of the column of `data` with the groups, which is then no variable; or the group of each row. Not with a mapping.
    standardize : bool or "group"
        True: by the standard deviation within groups, pooled over them; "group": by that of each group.
    row_counts : str, (n,) array_like of int, or mapping of labels to them, optional
        How often each row was observed, or the name of the column that says so; a mapping of tables has a mapping of counts.

    Returns
    -------
    GroupedTable

    Raises
    ------
    TableError
        As `Table.continuous`, and if groups are missing, fewer than two, quantities, or nearly as many as rows, if a group has
        fewer than two rows, if columns differ between groups, or if one does not vary within a group.

    Warns
    -----
    TableWarning
        As `Table.continuous`; if a column varies far more in one group than in another and the scale is a common one; if there
        are many numbered groups; if a category has no rows.
    """
    if not (standardize in (True, False) or standardize == "group"):
        raise ValueError(f'`standardize` must be True, False or "group", it is {standardize!r}')
    if is_by_group(data):
        _refuse_matrices(data)
        data, group = _joined(repeated_tables(data, row_counts), group)
    elif group is None:
        raise TypeError(
            "`group` is needed: the name of the column with the groups, the group of each row, or a dict of one table "
            "for each group"
        )
    elif isinstance(group, str):
        [data] = repeated_rows(row_counts, data)
    else:
        data, group = repeated_rows(row_counts, data, _column(group))
    data, labels, index = groups_apart(data, group, "gaussian_graphical")
    table = Table.continuous(data, standardize=False, counted=row_counts is not None)
    location, spread = _moments(table, labels, index)
    if not standardize:
        return GroupedTable(table, labels, index, location * 0.0, location * 0.0 + 1.0)
    if standardize is True:
        free = _observed(table, index) - 1.0
        warn_of_variances(table.names, labels, free, spread)
        spread = np.broadcast_to(pooled_deviations(free, spread), spread.shape).copy()
    return GroupedTable(table, labels, index, location, spread)


def is_by_group(data: Any) -> bool:
    """Whether this is one table for each group, by its label."""
    return isinstance(data, Mapping) and not hasattr(data, "columns")


def rows_of_groups(data: Any, group: Any, labels: Sequence[str]) -> tuple[Any, np.ndarray]:
    """Return other rows without their groups, and the position of the group of each among known ones.

    Parameters
    ----------
    data, group
        As of `grouped_table`; any number of rows.
    labels : sequence of str
        The known groups.

    Raises
    ------
    TableError
        If a group is missing or unknown, or labels do not match the rows.
    """
    if is_by_group(data):
        data, group = _joined(data, group)
    elif group is None:
        raise ValueError(
            "the model has groups of rows: give those of the new rows, `group`, the name of a column or one label for each row, "
            "or a dict of one table for each group"
        )
    name = group if isinstance(group, str) else getattr(group, "name", None)
    if isinstance(group, str):
        data, group = column_apart("group", data, group, "the group")
    check_same_rows(data, group, "`group`")
    found, index = _read_groups(group, name, known=True)
    _check_length(data, index)
    if unknown := [label for label in found if label not in labels]:
        raise TableError(
            f"{_called(name)} has the group{'s' if len(unknown) > 1 else ''} {listing(unknown)}, and those of the model are {listing(labels)}"
        )
    places = np.array([labels.index(label) for label in found], int)
    return data, places[index]


def groups_apart(data: Any, group: Any, single: str) -> tuple[Any, tuple[str, ...], np.ndarray]:
    """Return a table without its groups, their labels, and the position of the group of each row.

    Parameters
    ----------
    data, group
        As of `grouped_table`, without a mapping.
    single : str
        Model for one group, for messages.

    Raises
    ------
    TableError
        If labels are no groups or do not match the rows, or if a group has a single row.
    """
    name = group if isinstance(group, str) else getattr(group, "name", None)
    if isinstance(group, str):
        data, group = column_apart("group", data, group, "the group")
    else:
        _refuse_variable(data, group, name)
    check_same_rows(data, group, "`group`")
    labels, index = _read_groups(group, name)
    _check_length(data, index)
    _check_groups(labels, index, _called(name), single)
    return data, labels, index


def _called(name) -> str:
    return "`group`" if name is None else f"`group` (column {label_text(name)!r})"


def _column(group):
    """Labels of rows with an index of their own, which categories do not have."""
    import pandas as pd

    return pd.Series(group) if isinstance(group, pd.Categorical) else group


def _check_length(data, index):
    """Raise unless there is one label for each row."""
    if hasattr(data, "__len__") and len(data) != len(index):
        raise TableError(
            f"`group` has {count(len(index), 'label')}, and the table {count(len(data), 'row')}: give one for each row"
        )


def repeated_tables(tables: Mapping, counts: Any) -> Mapping:
    """Return the tables of the groups in which each row stands as often as it was counted."""
    if counts is None:
        return tables
    if isinstance(counts, str):
        counts = dict.fromkeys(tables, counts)
    if not isinstance(counts, Mapping) or {*counts} != {*tables}:
        raise TypeError(
            "`row_counts` of one table for each group is a dict of counts for each of them, or the name of a column that all have"
        )
    return {label: repeated_rows(counts[label], own)[0] for label, own in tables.items()}


def _joined(tables, group):
    """Rows of one table for each group, one below the other, and their groups."""
    import pandas as pd

    if group is not None:
        raise TypeError("`group` is given twice: a dict of tables has the groups as its keys")
    if not tables:
        raise TableError("`data` is an empty dict: give one table for each group")
    intakes = {group_label(label): table_of_group(label, own) for label, own in tables.items()}
    check_same_columns({label: own.names for label, own in intakes.items()})
    names = next(iter(intakes.values())).names
    for label, own in intakes.items():
        raise_problems(value_kinds(own))
        if not len(own.values):
            raise TableError(f"group {label!r} has no rows: leave it out")
    frames = [pd.DataFrame(own.values, columns=own.names)[names] for own in intakes.values()]
    labels = [label for label, own in intakes.items() for _ in range(len(own.values))]
    return pd.concat(frames, ignore_index=True), pd.Categorical(labels, categories=[*intakes])


def table_of_group(label: object, own: Any) -> Intake:
    """Return the columns of one of several tables; problems name the group.

    Raises
    ------
    TableError
        If it is no table.
    """
    try:
        return read_columns(own, max_columns())
    except TableError as error:
        raise TableError(
            f"`data` is a dict, of one table for each group, and {group_label(label)!r}: {error}"
        ) from None


def _refuse_matrices(tables):
    """Raise for covariance matrices in the place of rows."""
    for label, own in tables.items():
        intake = table_of_group(label, own)
        if problems := matrix_problems(own, intake.names, intake.values, remedy=_REMEDY):
            raise TableError(f"group {group_label(label)!r}: {problems[0]}")


def check_same_columns(columns: Mapping[str, Sequence[str]]) -> None:
    """Raise if groups, by their label, have different columns."""
    first, names = next(iter(columns.items()))
    for label, own in columns.items():
        if different := sorted({*own} ^ {*names}):
            raise TableError(
                f"groups {first!r} and {label!r} have different columns, {column_list(different)} "
                f"{'are' if len(different) > 1 else 'is'} in one of them only: keep the columns that all groups have"
            )


def _refuse_variable(data, group, name):
    """Raise if the groups are still a column of the table."""
    columns = {label_text(c): c for c in data.columns} if hasattr(data, "columns") else {}
    if name is None or label_text(name) not in columns:
        return
    column = data[columns[label_text(name)]]
    if list(column) == list(group):  # and no mask that was made from it
        raise TableError(
            f"column {label_text(name)!r} is the group of the rows and one of the variables: give group={label_text(name)!r}, "
            "which takes it out of the variables"
        )


def _read_groups(group, name=None, *, known=False) -> tuple[tuple[str, ...], np.ndarray]:
    """Labels of the groups and the group of each row; categories keep their order, others are sorted.

    Categories without rows are remarked upon unless the groups are those of a model, `known`.
    """
    categories = getattr(getattr(group, "cat", group), "categories", None)
    values = np.asarray(without_mask(group), dtype=object)
    if values.ndim != 1:
        raise TableError(
            f"`group` must be the name of a column or one label for each row, it has {values.ndim} dimensions"
        )
    if (lost := np.flatnonzero([is_missing(v) for v in values])).size:
        raise TableError(
            f"{_called(name)} is missing in {count(len(lost), 'row')}, first in row {lost[0]} (counting from 0): leave these rows "
            "out, or give them a group of their own"
        )
    different = list(dict.fromkeys(values.tolist()))
    if categories is not None:
        seen = {*different}
        ordered = [c for c in list(categories) if c in seen]
        empty = [group_label(c) for c in list(categories) if c not in seen]
        if empty and not known:
            warn(f"{_called(name)} has no rows in {listing(empty)}: the model has the other groups")
    else:
        ordered = sorted(different, key=lambda v: (0, v, "") if is_number(v) else (1, 0, str(v)))
    labels = [group_label(v) for v in ordered]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise TableError(f"`group` has different values that are written {twice[0]!r}: rename one")
    place = {value: k for k, value in enumerate(ordered)}
    return tuple(labels), np.array([place[v] for v in values.tolist()], int)


def _check_groups(labels, index, what, single):
    """Raise for labels that are no groups, or groups that are too small; `what` names them."""
    if len(labels) < 2:
        raise TableError(
            f"{what} has the single value {labels[0]!r}: there is nothing to compare; use {single} for one group"
        )
    numbered = all(reads_as_number(label) for label in labels)
    whole = numbered and all(float(label.replace(",", ".")).is_integer() for label in labels)
    cut = "labels that many rows share, for instance pandas.cut(column, 3)"
    if len(labels) > len(index) / 2 or (numbered and not whole and len(labels) > _MANY):
        raise TableError(
            f"{what} has {len(labels)} different values in {count(len(index), 'row')}, which are no groups: give {cut}"
        )
    sizes = np.bincount(index)
    if small := [labels[g] for g in np.flatnonzero(sizes < 2)]:
        raise TableError(
            f"{what}: {'groups' if len(small) > 1 else 'group'} {listing(small)} {'have' if len(small) > 1 else 'has'} 1 row, at "
            f"least 2 are needed: leave these rows out or join groups{f'; of a quantity, give {cut}' if numbered else ''}"
        )
    written = [" ".join(label.split()).casefold() for label in labels]
    if alike := [own for own, text in zip(labels, written, strict=True) if written.count(text) > 1]:
        warn(
            f"{what} has labels that differ in blanks or capital letters only, {listing(alike)}, and are groups of their own: if "
            'two of them mean the same, write them alike, as data["group"].str.strip().str.lower() does'
        )
    if numbered and len(labels) > _MANY:
        warn(
            f"{what} makes {len(labels)} groups of {len(labels)} numbers; of a quantity, give {cut}"
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


def pooled_deviations(free: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return the standard deviations within groups, (p,), from those of each group.

    Parameters
    ----------
    free : (G, p) ndarray
        Number of values in each group, less one.
    spread : (G, p) ndarray
        Standard deviations.
    """
    return np.sqrt((free * spread**2).sum(axis=0) / free.sum(axis=0))


def warn_of_variances(
    names: Sequence[str], labels: Sequence[str], free: np.ndarray, spread: np.ndarray
) -> None:
    """Warn if a column varies far more in one group than in another.

    Parameters
    ----------
    names, labels : sequence of str
        Columns and groups.
    free, spread : (G, p) ndarray
        As of `pooled_deviations`.
    """
    from scipy import stats

    found = []
    for j, name in enumerate(names):
        low, high = spread[:, j].argmin(), spread[:, j].argmax()
        ratio = (spread[high, j] / spread[low, j]) ** 2
        rare = stats.f.sf(ratio, free[high, j], free[low, j]) * len(labels) ** 2 * len(names)
        if ratio > _VARIANCES and rare < _SIGNIFICANT:
            found.append((name, ratio, labels[int(high)], labels[int(low)]))
    if found:
        name, ratio, largest, smallest = max(found, key=lambda each: each[1])
        warn(
            f"{column_list([each[0] for each in found])}: variances differ between groups ({name!r}: {ratio:.3g} times as large in "
            f'{largest!r} as in {smallest!r}), and elements of precision matrices differ with them; standardize="group" compares '
            "columns in the units of each group"
        )
