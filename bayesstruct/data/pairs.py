"""Lists of pairs of columns, such as edges and arcs that are known."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bayesstruct.data.errors import TableError

__all__ = ["read_pairs"]


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
