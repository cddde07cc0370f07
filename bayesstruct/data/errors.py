"""Errors and warnings about tables, and the wording of their messages."""

import warnings

from collections.abc import Sequence
from pathlib import Path

__all__ = ["TableError", "TableWarning"]

_PACKAGE = str(Path(__file__).parents[1])
_MODELS = str(Path(__file__).parents[2] / "models")  # where they are in a clone of the repository
_SHOWN = 10


class TableError(ValueError):
    """Raised for a table that cannot be used; the message names the columns and the remedy."""


class TableWarning(UserWarning):
    """Warns of a property of a table that may not be intended; the table is used as it is."""


def listing(items: Sequence, shown: int = _SHOWN) -> str:
    """Write ``'a', 'b' and 7 more``; no item is hidden when there are `shown` or fewer."""
    head = [repr(item) for item in items[:shown]]
    if len(items) > shown:
        return f"{', '.join(head)} and {len(items) - shown:,} more"
    return " and ".join([", ".join(head[:-1]), head[-1]]) if len(head) > 1 else head[0]


def count(number: int, noun: str) -> str:
    """Write ``1 row`` or ``2,000 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def column_list(names: Sequence[str]) -> str:
    """Write ``column 'a'`` or ``columns 'a' and 'b'``."""
    return f"column{'s' if len(names) > 1 else ''} {listing(names)}"


def raise_problems(problems: Sequence[str]) -> None:
    """Raise one `TableError` that holds every problem; do nothing without any."""
    if len(problems) == 1:
        raise TableError(problems[0][0].upper() + problems[0][1:])
    if problems:
        lines = "\n".join(f"- {problem}" for problem in problems)
        raise TableError(f"The table has {len(problems)} problems:\n{lines}")


def warn(message: str) -> None:
    """Issue a `TableWarning` that points at the first caller outside the package."""
    text = message[0].upper() + message[1:]
    warnings.warn(text, TableWarning, stacklevel=2, skip_file_prefixes=(_PACKAGE, _MODELS))
