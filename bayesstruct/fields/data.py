"""Tables of states whose rows belong to groups."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesstruct.data.errors import TableError, column_list, raise_problems, warn
from bayesstruct.data.names import group_label
from bayesstruct.data.recoding import repeated_rows, without_codes
from bayesstruct.data.row_groups import (
    check_same_columns,
    groups_apart,
    is_by_group,
    repeated_tables,
    table_of_group,
)
from bayesstruct.data.states import StateTable

__all__ = ["GroupedStates", "grouped_states"]

_SHOWN = 5  # groups in a warning


@dataclass(frozen=True, eq=False, repr=False)
class GroupedStates:
    """A checked table of states whose rows belong to groups.

    Attributes
    ----------
    table : StateTable
        All rows, in their order; states are those of all groups.
    labels : tuple of str
        The G groups.
    group : (n,) ndarray of int
        Position of the group of each row.
    """

    table: StateTable
    labels: tuple[str, ...]
    group: np.ndarray

    def __repr__(self) -> str:
        return f"GroupedStates({self.table!r}, groups {', '.join(map(repr, self.labels))})"

    def refuse_unseen(self, reason: str) -> None:
        """Raise if a state never occurs in a group, with the column, the state, the group and the reason."""
        for g, label in enumerate(self.labels):
            for name, levels, codes in self._columns(g):
                if lost := [s for k, s in enumerate(levels) if k not in codes]:
                    raise TableError(
                        f"column {name!r}: the state {lost[0]!r} never occurs in group {label!r}: {reason}"
                    )

    def _columns(self, group):
        """Name, states, and the codes that occur, of each column in a group."""
        rows = self.table.codes[self.group == group]
        for j, name in enumerate(self.table.names):
            yield name, self.table.levels[j], set(rows[:, j].tolist()) - {-1}


def grouped_states(
    data: Any,
    group: Any,
    *,
    states: Any = None,
    missing_codes: Any = None,
    row_counts: Any = None,
    single: str = "ising",
) -> GroupedStates:
    """Read and check a table of states with the group of each row.

    Parameters
    ----------
    data : DataFrame, array_like, or mapping of labels to them
        (n, p) table of states; or one table for each group, all with the same columns.
    group : str or (n,) array_like, optional
        Name of the column of `data` with the groups, which is then no variable; or the group of each row. None with a mapping.
    states, missing_codes, row_counts
        As of :func:`bayesstruct.models.ising`. Codes are not looked for among the groups.
    single : str
        Model for one group, for messages.

    Returns
    -------
    GroupedStates

    Raises
    ------
    TableError
        As `StateTable.read`, and if groups are missing, fewer than two or nearly as many as rows, if a group has
        fewer than two rows or a column without any value, or if columns differ between groups.

    Warns
    -----
    TableWarning
        As `StateTable.read`; if a column has one state only in a group.
    """
    if is_by_group(data):
        data, group = _joined(data, group, row_counts)
        row_counts = None
    elif isinstance(group, str) and isinstance(row_counts, str) and row_counts == group:
        raise TableError(
            f"`group` and `row_counts` name the same column, {group!r}: it has groups or numbers of rows"
        )
    if not isinstance(group, str):
        data, group = repeated_rows(row_counts, data, group)
    else:
        [data] = repeated_rows(row_counts, data)
    data, labels, index = groups_apart(data, group, single)
    table = StateTable.read(without_codes(data, missing_codes), states=states)
    grouped = GroupedStates(table, labels, index)
    _check_columns(grouped)
    return grouped


def _joined(tables, group, row_counts):
    """Rows of one table for each group, one below the other, and their groups."""
    import pandas as pd

    if group is not None:
        raise TypeError("`group` is given twice: a dict of tables has the groups as its keys")
    if not tables:
        raise TableError("`data` is an empty dict: give one table for each group")
    frames = {}
    for label, own in repeated_tables(tables, row_counts).items():
        names = table_of_group(label, own).names
        frames[group_label(label)] = pd.DataFrame(own).set_axis(names, axis=1)
    check_same_columns({label: list(frame.columns) for label, frame in frames.items()})
    names = list(next(iter(frames.values())).columns)
    labels = [label for label, own in frames.items() for _ in range(len(own))]
    parts = [frame[names] for frame in frames.values()]
    return pd.concat(parts, ignore_index=True), pd.Categorical(labels, categories=[*frames])


def _check_columns(grouped: GroupedStates) -> None:
    """Raise for a column without values in a group; warn of one with a single state there."""
    problems, single = [], []
    for g, label in enumerate(grouped.labels):
        found = [(name, len(codes)) for name, _, codes in grouped._columns(g)]
        if empty := [name for name, k in found if k == 0]:
            problems.append(
                f"{column_list(empty)} of group {label!r}: all values are missing there; leave the column or the group out"
            )
        if constant := [name for name, k in found if k == 1]:
            single.append((constant, label))
    raise_problems(problems)
    if single:
        first = [
            f"{column_list(constant)} of group {label!r}" for constant, label in single[:_SHOWN]
        ]
        more = f" and columns of {len(single) - _SHOWN} more groups" if len(single) > _SHOWN else ""
        warn(
            f"{', '.join(first)}{more}: always the same state there, so that such a group says nothing about these dependences, and "
            "what the result says of them comes from the other groups and the prior; leave columns or groups out unless that is meant"
        )
