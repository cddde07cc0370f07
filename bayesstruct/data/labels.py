"""Labels of rows and columns of arguments that go with a table, and masks of arrays."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bayesstruct.data.errors import TableError, column_list, warn
from bayesstruct.data.matrices import is_triangle
from bayesstruct.data.names import label_text

__all__ = [
    "aligned",
    "as_frame",
    "by_label",
    "check_same_rows",
    "is_labelled_array",
    "read_pairs",
    "refuse_zero_weights",
    "row_index",
    "warn_about_triangle",
    "without_mask",
]


def without_mask(values: Any) -> Any:
    """Return a masked array as an array with NaN (None among objects) under the mask; anything else as it is.

    ``numpy.asarray`` would return what stands under the mask.
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if values.dtype.kind in "biuf":
        return np.ma.filled(values.astype(np.float64), np.nan)
    return np.ma.filled(values.astype(object), None)


def as_frame(values: Any) -> Any:
    """Return an xarray matrix as a DataFrame, as an array if its columns have no names; anything else as it is."""
    if not (is_labelled_array(values) and len(values.dims) == 2):
        return values
    return values.to_pandas() if values.dims[1] in values.coords else values.to_numpy()


def is_labelled_array(values: Any) -> bool:
    """Whether something is a DataArray of xarray, whose axes may have labels."""
    return hasattr(values, "dims") and hasattr(values, "coords") and hasattr(values, "to_pandas")


def row_index(values: Any) -> Any:
    """Return the index of the rows of a frame or DataArray, None if rows have no labels."""
    if is_labelled_array(values):
        return values.indexes.get(values.dims[0]) if values.dims else None
    index = getattr(values, "index", None)
    return index if hasattr(index, "equals") else None


def check_same_rows(data: Any, other: Any, what: str = "the covariates") -> None:
    """Raise if two labelled frames have different row labels, since rows are matched by position.

    Parameters
    ----------
    data : DataFrame or other
        The table.
    other : DataFrame, Series or other
        What goes with its rows.
    what : str
        What `other` is, for the message.

    Raises
    ------
    TableError
        If both have an index and the indexes differ.
    """
    labels: Any = getattr(data, "index", None)
    others: Any = getattr(other, "index", None)
    if not (hasattr(labels, "equals") and hasattr(others, "equals")):
        return
    if len(labels) == len(others) and not labels.equals(others):
        raise TableError(
            f"The rows of {what} are labelled differently from those of the table, or are in another order, and rows "
            "are matched by position: align them with .reindex(data.index), or drop both labels with "
            ".reset_index(drop=True)"
        )


def aligned(option: str, matrix: Any, names: Sequence[str]) -> Any:
    """Return a labelled matrix of pairs of columns in the order of the columns; anything else without its mask.

    Parameters
    ----------
    option : str
        Name of the option, for the message.
    matrix : DataFrame of pandas or polars, DataArray or other
        Labels are compared as text, as :func:`bayesstruct.data.names.label_text` makes it of them. A frame of polars
        has the labels of its rows in its first column, or the order of the table.
    names : sequence of str
        Columns of the table.

    Raises
    ------
    TableError
        If a matrix with labels has no row or column for a column of the table, or two, or if rows without labels
        stand beside columns in another order.
    """
    rows, columns, values = _parts(matrix)
    if rows is None and columns is None:
        return without_mask(matrix)
    if rows is None or columns is None:
        own = rows or columns
        if own != list(names) and {*own} & {*names}:
            side, bare = ("columns", "rows") if rows is None else ("rows", "columns")
            raise TableError(
                f"`{option}` has names of {side} that are not those of the table in the same order, and none of "
                f"{bare}: give both their names, or the order of the table"
            )
        return values
    if lost := sorted(set(names) - (set(rows) & set(columns))):
        raise TableError(f"`{option}` has no row and column for {column_list(lost)}")
    if twice := sorted(name for name in names if rows.count(name) + columns.count(name) > 2):
        raise TableError(f"`{option}` has more than one row or column for {column_list(twice)}")
    places = [[axis.index(name) for name in names] for axis in (rows, columns)]
    return values[np.ix_(*places)]


def by_label(option: str, values: Any, names: Sequence[str]) -> Any:
    """Return a Series whose labels are columns as an array in the order of the columns; anything else as it is.

    Parameters
    ----------
    option : str
        Name of the option, for the message.
    values : Series or other
        One value for each column. Labels are compared as text.
    names : sequence of str
        Columns of the table.

    Raises
    ------
    TableError
        If some labels are columns and others are not, or a column has none or two.
    """
    index: Any = getattr(values, "index", None)
    if not hasattr(index, "equals") or np.ndim(values) != 1:
        return values
    labels = [label_text(label) for label in index]
    if not {*labels} & {*names}:
        return values
    if lost := [name for name in names if name not in labels]:
        raise TableError(f"`{option}` has no value for {column_list(lost)}")
    if other := [label for label in labels if label not in names]:
        raise TableError(
            f"`{option}` has values for {column_list(other)}, which the table does not have"
        )
    if twice := [name for name in names if labels.count(name) > 1]:
        raise TableError(f"`{option}` has more than one value for {column_list(twice)}")
    return np.asarray(values)[[labels.index(name) for name in names]]


def warn_about_triangle(option: str, matrix: np.ndarray, otherwise: str) -> None:
    """Warn of a matrix of probabilities that are zero on one side of the diagonal.

    Parameters
    ----------
    option : str
        Name of the option, for the message.
    matrix : (p, p) array of float
    otherwise : str
        What to do if that is meant.

    Warns
    -----
    TableWarning
    """
    if is_triangle(matrix):
        warn(
            f"`{option}` is zero on one side of its diagonal, so that arcs in one direction are ruled out; if it is one "
            f"triangle of a symmetric matrix, give matrix + matrix.T; if it is meant, {otherwise}"
        )


def refuse_zero_weights(graph: Any, what: str = "the graph") -> None:
    """Raise for edges of a networkx graph whose weight is 0: they are edges of the graph.

    Raises
    ------
    TableError
    """
    ends = [(a, b) for a, b, weight in graph.edges(data="weight") if weight == 0]
    if ends:
        raise TableError(
            f"{what} has edges of weight 0, such as {ends[0]!r}, and an edge is one whatever its weight: remove them "
            "(graph.remove_edges_from), or choose those above a threshold"
        )


def _parts(matrix):
    """Labels of the rows and columns of a matrix, None where it has none, and its values."""
    if hasattr(matrix, "loc") and hasattr(matrix, "columns"):
        rows, columns = ([label_text(v) for v in axis] for axis in (matrix.index, matrix.columns))
        return rows, columns, matrix.to_numpy()
    if hasattr(matrix, "dims") and hasattr(matrix, "coords") and len(matrix.dims) == 2:
        axes = (
            matrix.coords[d].values.tolist() if d in matrix.coords else None for d in matrix.dims
        )
        rows, columns = (None if own is None else [*map(label_text, own)] for own in axes)
        return rows, columns, matrix.values
    if hasattr(matrix, "columns") and hasattr(matrix, "to_numpy"):  # polars and its like
        columns = [label_text(name) for name in getattr(matrix, "column_names", matrix.columns)]
        first = matrix[matrix.columns[0]].to_list()
        if columns and all(isinstance(label, str) for label in first):
            rest = matrix.select(matrix.columns[1:])
            return first, columns[1:], rest.to_numpy()
        return None, columns, matrix.to_numpy()
    return None, None, matrix


def read_pairs(names: Sequence[str], pairs: Any, label: str, what: str, order: str = "") -> list:
    """Return a list of pairs of columns, which are not looked at yet; an empty one for None.

    Parameters
    ----------
    names : sequence of str
        Columns of the table.
    pairs : iterable or None
    label : str
        Name of the option, for messages.
    what : str
        What a pair is: ``"edge"`` or ``"arc"``.
    order : str
        Which end comes first, in brackets, for messages.

    Raises
    ------
    ValueError, TableError
        If `pairs` is something else: one pair, a dict, a DataFrame, text, a number.
    """
    if pairs is None:
        return []
    wanted = f"`{label}` is a list of pairs of columns{order}"
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise ValueError(f"{wanted}, not {pairs!r:.60}")
    if hasattr(pairs, "itertuples"):
        ends = "parent, child" if what == "arc" else "first, second"
        raise TableError(
            f"{wanted}, not a DataFrame: pass list(frame[[{ends}]].itertuples(index=False, name=None)), with the names of the two "
            "columns of the frame"
        )
    if isinstance(pairs, Mapping):
        raise TableError(f"{wanted}, not a dict: pass list({what}s.items())")
    pairs = list(pairs)
    if len(pairs) == 2 and all(isinstance(end, str) and end in names for end in pairs):
        raise TableError(f"{wanted}: for one {what} pass {label}=[({pairs[0]!r}, {pairs[1]!r})]")
    return pairs
