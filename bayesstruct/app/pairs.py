"""Tables of pairs of objects, from a square file or from one line for each pair."""

import shlex

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.errors import TableError, count, listing

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["is_list", "label_column", "square"]

#: What a line of a list is, and what the third column has.
_LISTS = {
    "links": "source,target[,0 or 1]",
    "similarities": "one,other,similarity",
    "wins": "winner,loser[,count]",
}


def square(
    frame: "pd.DataFrame", kind: str, *, directed: bool = False, part: bool = False
) -> "pd.DataFrame":
    """Return a square table of pairs with the names of the objects as rows and columns.

    Parameters
    ----------
    frame : DataFrame
        A square table, in which the names of the rows may be the index, the first column, or those of the columns; or a list: two
        columns of names, and a third one of values if pairs have some.
    kind : {"links", "similarities", "wins", "covariances"}
        A list of links has 1 for each pair in it and 0 for others (or the values of its third column, empty where it is not known); of
        similarities it has nothing for other pairs; of wins it has the number of lines, or the sums of the third column.
    directed : bool
        Whether a line of a list of links says nothing of the opposite direction.
    part : bool
        Whether there may be more rows than columns, since columns were left out: these rows are left out too.

    Raises
    ------
    TableError
        If it is neither.
    """
    names = [str(name) for name in frame.columns]
    if kind != "covariances" and is_list(frame):
        return _from_list(frame, kind, directed)
    labels, values = _labelled(frame, names)
    if part and labels is not None:
        kept = [place for place, label in enumerate(labels) if label in values.columns]
        labels, values = [labels[place] for place in kept], values.iloc[kept]
    if len(values) != values.shape[1]:
        also = f", or one line for each pair ({_LISTS[kind]})" if kind in _LISTS else ""
        raise TableError(
            f"The table has {count(len(values), 'row')} and {count(values.shape[1], 'column')}: a square one with the names of "
            f"the objects in the first line (and column) is needed{also}"
        )
    names = list(values.columns)
    if labels is not None and sorted(labels) != sorted(names):
        odd = sorted({*labels} ^ {*names})
        raise TableError(
            f"The rows and columns of the table have different names ({listing(odd)}): give both the same names"
        )
    order = range(len(names)) if labels is None else [labels.index(name) for name in names]
    matrix = values.iloc[list(order)].set_axis(names, axis=0)
    return matrix.apply(_as_numbers)


def label_column(frame: "pd.DataFrame") -> str | None:
    """Return the name of the first column of a square table if it holds the names of the rows."""
    names = [*map(str, frame.columns[1:])]
    first = [*map(str, frame.iloc[:, 0])] if names else []
    return frame.columns[0] if names and sorted(first) == sorted(names) else None


def is_list(frame: "pd.DataFrame") -> bool:
    """Whether a table lists pairs: two columns of names, and at most a third one."""
    if frame.shape[1] not in (2, 3):
        return False
    if len(frame) == frame.shape[1] == 2 and frame.iloc[:, 1].dtype.kind in "iufb":
        return False
    names = {str(name) for name in frame.columns}
    first = {str(value) for value in frame.iloc[:, 0].dropna()}
    labels = {str(value) for value in frame.index}
    is_square = len(frame) == frame.shape[1] and labels == names
    beside = len(frame) == frame.shape[1] - 1 and first == {*map(str, frame.columns[1:])}
    return not (is_square or beside)


def _labelled(frame, names):
    """Return the names of the rows, if they are there, and the rest of the table."""
    first = frame.iloc[:, 0]
    if [*map(str, frame.index)] != [*map(str, range(len(frame)))]:
        return [*map(str, frame.index)], frame.set_axis(names, axis=1)
    rest = frame.iloc[:, 1:].set_axis(names[1:], axis=1)
    if len(frame) == len(names) - 1 and sorted(map(str, first)) == sorted(names[1:]):
        return [*map(str, first)], rest
    if first.dtype.kind not in "iufb":
        return [*map(str, first)], rest
    return None, frame.set_axis(names, axis=1)


def _as_numbers(column):
    import pandas as pd

    if column.dtype.kind not in "iufb":
        example = column.dropna().iloc[0] if column.notna().any() else ""
        raise TableError(
            f"Column {column.name!r} holds text (for example {str(example)!r:.40}): write numbers, and leave entries empty that are not known"
        )
    return pd.Series(column.to_numpy(float), index=column.index)


def _from_list(frame, kind, directed):
    """Return the square table that a list of pairs means."""
    import pandas as pd

    ends = frame.iloc[:, :2]
    if ends.isna().any(axis=None):
        row = int(ends.isna().any(axis=1).to_numpy().argmax())
        raise TableError(
            f"Row {row} (counting from 0) has no two names: write both objects of the pair"
        )
    value = _values(frame, kind)
    one, other = (_texts(ends.iloc[:, side]) for side in (0, 1))
    names = sorted({*one, *other})
    if loops := [a for a, b in zip(one, other, strict=True) if a == b]:
        raise TableError(
            f"{listing(sorted({*loops}))} is paired with itself: leave these lines out"
        )
    at = {name: place for place, name in enumerate(names)}
    matrix = np.full((len(names), len(names)), np.nan if kind == "similarities" else 0.0)
    seen: dict[tuple[int, int], float] = {}
    for a, b, weight in zip(one, other, value, strict=True):
        i, j = at[a], at[b]
        if kind == "wins":
            matrix[i, j] += weight
            continue
        pair = (i, j) if directed else (min(i, j), max(i, j))
        if pair in seen and not np.array_equal(seen[pair], weight, equal_nan=True):
            raise TableError(
                f"The pair {a!r}, {b!r} is in two lines with different values: keep one"
            )
        seen[pair] = matrix[i, j] = weight
        if not directed:
            matrix[j, i] = weight
    return pd.DataFrame(matrix, index=names, columns=names)


def _texts(column) -> list[str]:
    """Names as text, whole numbers without a point."""
    return [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in column]


def _values(frame, kind) -> np.ndarray:
    """Return the value of each pair of a list."""
    if frame.shape[1] == 2:
        if kind == "similarities":
            raise TableError(
                "The list has two columns: add the similarity of each pair as the third one"
            )
        return np.ones(len(frame))
    name = frame.columns[2]
    values = _as_numbers(frame[name].rename(str(name))).to_numpy()
    if kind == "links" and not (np.isnan(values) | (values == 0) | (values == 1)).all():
        raise TableError(
            f"Column {name!r} holds other values than 0 and 1, and a link is there or not: leave it out with --drop {shlex.quote(str(name))}"
        )
    if kind == "wins" and not ((values >= 0) & (values == np.floor(values))).all():
        raise TableError(
            f"Column {name!r} must hold counts 0, 1, 2, ...: how often the first was chosen over the second"
        )
    return values
