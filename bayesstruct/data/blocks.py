"""Read the block of each column of a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from bayesstruct.data.arguments import is_missing
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.labels import by_label
from bayesstruct.data.names import label_text, nearest

__all__ = ["blocks_of_columns"]


def blocks_of_columns(names: Sequence[str], blocks: Any) -> list[str]:
    """Return the name of each column's block.

    Parameters
    ----------
    names : sequence of str
        Columns, in the order of the table.
    blocks : mapping or sequence
        A dict from columns to blocks, a dict from blocks to lists of columns, or the block of each column in order; a Series
        is read by its labels if they are columns.

    Returns
    -------
    list of str

    Raises
    ------
    TableError
        For an unknown column, a column without a block or in two, a missing block, or a single one.

    Examples
    --------
    >>> blocks_of_columns(["a", "b", "c"], {"x": ["a", "c"], "y": ["b"]})
    ['x', 'y', 'x']
    """
    blocks = by_label("blocks", blocks, names)
    given = _by_column(blocks) if isinstance(blocks, Mapping) else _in_order(names, blocks)
    for column in given:
        if column not in names:
            raise TableError(f"blocks: {nearest('column', column, names)}")
    if missing := [name for name in names if name not in given]:
        raise TableError(
            f"blocks has no block for {column_list(missing)}; each column is in one block"
        )
    found = [given[name] for name in names]
    if len(set(found)) < 2:
        raise TableError(
            f"blocks has the single block {found[0]!r}; without blocks use gaussian_graphical"
        )
    return found


def _by_column(blocks) -> dict[str, str]:
    given: dict[str, str] = {}
    for key, value in blocks.items():
        listed = isinstance(value, Sequence | set) and not isinstance(value, str)
        columns, block = (value, key) if listed else ([key], value)
        for column in map(label_text, columns):
            if given.setdefault(column, _label(column, block)) != label_text(block):
                raise TableError(
                    f"blocks: column {column!r} is in two blocks, {given[column]!r} and {label_text(block)!r}: leave it in one"
                )
    return given


def _in_order(names, blocks) -> dict[str, str]:
    if isinstance(blocks, str) or not hasattr(blocks, "__len__"):
        raise TableError(
            "blocks is a dict from columns to blocks, or the block of each column in order, it is of the type "
            f"{type(blocks).__name__}"
        )
    if len(blocks) != len(names):
        raise TableError(
            f"blocks has {len(blocks)} entries, but the table has {len(names)} columns; give the block of each column"
        )
    return {name: _label(name, block) for name, block in zip(names, list(blocks), strict=True)}


def _label(column, block) -> str:
    if is_missing(block):
        raise TableError(
            f"blocks: the block of column {column!r} is missing; each column is in one block"
        )
    return label_text(block)
