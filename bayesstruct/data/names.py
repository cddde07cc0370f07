"""Names of columns as text, texts that are numbers, and messages for unknown names."""

import difflib

from collections.abc import Iterable, Sequence
from typing import Any

from bayesstruct.data.errors import TableError, column_list

__all__ = ["aligned", "label_text", "nearest", "reads_as_number"]


def label_text(label: object) -> str:
    """Return the label of a column as text, as tables name the column.

    Examples
    --------
    >>> label_text(0), label_text(("a", 1))
    ('0', 'a_1')
    """
    return "_".join(map(str, label)) if isinstance(label, tuple) else str(label)


def aligned(option: str, matrix: Any, names: Sequence[str]) -> Any:
    """Return a labelled matrix of pairs of columns in the order of the columns; anything else as it is.

    Parameters
    ----------
    option : str
        Name of the option, for the message.
    matrix : DataFrame or other
        The labels of a frame are compared as text, as :func:`label_text` makes it of them.
    names : sequence of str
        Columns of the table.

    Raises
    ------
    TableError
        If a frame has no row or column for a column of the table, or two.
    """
    if not (hasattr(matrix, "loc") and hasattr(matrix, "columns")):
        return matrix
    rows, columns = (list(map(label_text, axis)) for axis in (matrix.index, matrix.columns))
    if lost := sorted(set(names) - (set(rows) & set(columns))):
        raise TableError(f"`{option}` has no row and column for {column_list(lost)}")
    if twice := sorted(name for name in names if rows.count(name) + columns.count(name) > 2):
        raise TableError(f"`{option}` has more than one row or column for {column_list(twice)}")
    places = [[axis.index(name) for name in names] for axis in (rows, columns)]
    return matrix.iloc[places[0], places[1]].to_numpy()


def nearest(kind: str, name: object, known: Iterable[str]) -> str:
    """Return a message for an unknown name: the nearest known one, and all of them.

    Examples
    --------
    >>> nearest("prior", "laplase", ["laplace", "spike_slab"])
    "unknown prior 'laplase'; did you mean 'laplace'? There are: laplace, spike_slab"
    """
    known = list(known)
    near = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    text = f"unknown {kind} {name!r}; {hint}There are: {', '.join(known)}"
    return text if near else text.replace("; There", "; there")


def reads_as_number(text: str) -> bool:
    """Whether a text can be read as a number, with a decimal point or comma."""
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
