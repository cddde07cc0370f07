"""Names of columns as text, texts that are numbers, and messages for unknown names."""

import difflib

from collections.abc import Iterable

__all__ = ["label_text", "nearest", "reads_as_number"]

_SHOWN = 40  # names in a message


def label_text(label: object) -> str:
    """Return the label of a column as text, as tables name the column.

    Examples
    --------
    >>> label_text(0), label_text(("a", 1))
    ('0', 'a_1')
    """
    return "_".join(map(str, label)) if isinstance(label, tuple) else str(label)


def group_label(label: object) -> str:
    """Return the label of a group of rows as text, whole numbers without a point: columns that had gaps hold 1.0 for 1.

    Examples
    --------
    >>> group_label(1.0), group_label(1), group_label(1.5), group_label("1.0")
    ('1', '1', '1.5', '1.0')
    """
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return label_text(label)


def nearest(kind: str, name: object, known: Iterable[str]) -> str:
    """Return a message for an unknown name: the nearest known one, and all of them, or the first ones of very many.

    Examples
    --------
    >>> nearest("prior", "laplase", ["laplace", "spike_slab"])
    "unknown prior 'laplase'; did you mean 'laplace'? There are: laplace, spike_slab"
    """
    known = list(known)
    near = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    more = len(known) - _SHOWN
    shown = known if more <= 0 else [*known[:_SHOWN], f"and {more:,} more"]
    text = f"unknown {kind} {name!r}; {hint}There are: {', '.join(shown)}"
    return text if near else text.replace("; There", "; there")


def reads_as_number(text: str) -> bool:
    """Whether a text can be read as a number, with a decimal point or comma."""
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
