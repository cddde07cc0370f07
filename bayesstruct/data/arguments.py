"""Checks of the arguments of functions: numbers, whole numbers, probabilities, arrays, seeds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.labels import without_mask
from bayesstruct.data.names import label_text, nearest

_KINDS = {
    "b": "truth values",
    "c": "complex",
    "U": "text",
    "S": "text",
    "M": "dates",
    "m": "durations",
}

__all__ = [
    "choice",
    "generator",
    "is_missing",
    "is_number",
    "number",
    "numbers",
    "optional_number",
    "optional_probability",
    "positive_by_column",
    "probability",
    "refuse_given",
    "sample_size",
    "table_numbers",
    "truth",
    "whole_number",
]


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
) -> float:
    """Return a finite number as a float.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        Value that the user gave.
    above, least, most : float, optional
        Bounds: an exclusive lower one, an inclusive lower one, and an inclusive upper one.

    Raises
    ------
    TypeError
        If it is not one real number: text, None, a truth value, complex, an array.
    ValueError
        If it is NaN, infinite, or out of bounds.

    Examples
    --------
    >>> number("tol", 1, above=0)
    1.0
    """
    if not is_number(value):
        raise TypeError(f"`{name}` must be one number, not {_shown(value)}")
    value = float(value)
    if not np.isfinite(value):
        raise ValueError(f"`{name}` must be a finite number, it is {value}")
    if above is not None and not value > above:
        raise ValueError(f"`{name}` must be above {above:g}, it is {value:g}")
    if least is not None and not value >= least:
        raise ValueError(f"`{name}` must be at least {least:g}, it is {value:g}")
    if most is not None and not value <= most:
        raise ValueError(f"`{name}` must be at most {most:g}, it is {value:g}")
    return value


def optional_number(name: str, value, **bounds) -> float | None:
    """Return a number as `number` does, or None, where None asks for a prior or a default.

    Raises
    ------
    TypeError, ValueError
        As `number`.

    Examples
    --------
    >>> optional_number("alpha", None, above=0) is None
    True
    """
    return None if value is None else number(name, value, **bounds)


def optional_probability(name: str, value) -> float | None:
    """Return a number strictly between 0 and 1, or None, where None asks for a prior or a default.

    Raises
    ------
    ValueError
        If it is anything else.
    """
    return None if value is None else probability(name, value)


def choice(name: str, value, options) -> str:
    """Return one of some words.

    Raises
    ------
    ValueError
        If it is anything else; the message lists the words.

    Examples
    --------
    >>> choice("link", "probit", ("logistic", "probit"))
    'probit'
    """
    if not isinstance(value, str) or value not in options:
        known = ", ".join(map(repr, options))
        raise ValueError(f"`{name}` must be one of {known}, not {_shown(value)}")
    return value


def refuse_given(reason: str, **options: Any) -> None:
    """Refuse options that do not apply and would be ignored.

    Parameters
    ----------
    reason : str
        What they apply to, after "belongs to".
    **options
        By name; None for one that was not given.

    Raises
    ------
    ValueError
        If one was given; the message names the first of these.

    Examples
    --------
    >>> refuse_given("penalty='power'", exponent=None)
    """
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"`{name}` belongs to {reason}; leave it out")


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return a whole number, of any numeric type, as an int.

    Raises
    ------
    TypeError
        If it is not one real number.
    ValueError
        If it has a fraction or is out of range.

    Examples
    --------
    >>> whole_number("folds", 5.0, 2)
    5
    """
    if not is_number(value):
        raise TypeError(f"`{name}` must be a whole number, not {_shown(value)}")
    inside = least <= value < np.inf and (most is None or value <= most)
    if not inside or value != int(value):
        span = f"from {least} up" if most is None else f"from {least} to {most}"
        raise ValueError(f"`{name}` must be a whole number {span}, it is {value}")
    return int(value)


def sample_size(value: Any, name: str = "equivalent_sample_size") -> float:
    """Return how many rows a prior is worth, in a range in which rounding does not decide.

    Raises
    ------
    TypeError
        If it is not one real number.
    ValueError
        If it is not finite, or not between 1e-9 and 1e9.
    """
    rows = number(name, value, above=0)
    if not 1e-9 <= rows <= 1e9:
        raise ValueError(
            f"`{name}` must be between 1e-9 and 1e9, it is {rows:g}: it is the number of rows that the prior is worth, usually about 1"
        )
    return rows


def probability(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1.

    Raises
    ------
    ValueError
        If it is anything else.
    """
    if not (is_number(value) and 0 < value < 1):
        raise ValueError(f"`{name}` must be between 0 and 1, it is {_shown(value)}")
    return float(value)


def truth(name: str, value: Any) -> bool:
    """Return a truth value; the numbers 0 and 1 are accepted, text such as "no" is not.

    Raises
    ------
    TypeError
        If it is anything else.
    """
    if isinstance(value, bool | np.bool_) or (is_number(value) and value in (0, 1)):
        return bool(value)
    raise TypeError(f"`{name}` must be True or False, not {_shown(value)}")


def generator(random_seed: Any) -> np.random.Generator:
    """Return a generator of random numbers: from a seed, or the generator that was given.

    Raises
    ------
    TypeError
        If it is neither.
    """
    try:
        return np.random.default_rng(random_seed)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "`random_seed` must be a whole number from 0 up, a sequence of them or a Generator, "
            f"not {_shown(random_seed)}"
        ) from error


def is_number(value: object) -> bool:
    """Return whether a value is one real number; truth values are not."""
    if isinstance(value, bool | np.bool_ | str | bytes) or value is None:
        return False
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return False
    return array.ndim == 0 and array.dtype.kind in "iuf"


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, or pandas' missing value."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def numbers(name: str, values: Any, *, flags: bool = True) -> np.ndarray:
    """Return real numbers as an array of floats; missing ones in a list or table are NaN.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    values : array_like
        Values that the user gave.
    flags : bool
        Whether truth values are accepted, as 0 and 1.

    Raises
    ------
    ValueError
        If they are None, complex, text, dates or lists of unequal length; the message says so.
    """
    if values is None:
        raise ValueError(f"{name} must be numbers, not None; give an array of them")
    try:
        array = np.asarray(without_mask(values))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be made an array of numbers ({error})") from None
    if array.dtype.kind == "O" and array.ndim:
        array = _unpacked(name, array)
    if array.dtype.kind not in ("biuf" if flags else "iuf"):
        kind = _KINDS.get(array.dtype.kind, type(values).__name__)
        remedy = "give real numbers" if kind == "complex" else "code them as numbers first"
        raise ValueError(f"{name} must be numbers, not {kind}; {remedy}")
    return array.astype(np.float64, copy=False)


def positive_by_column(name: str, given: Any, names: Sequence[str]) -> np.ndarray:
    """Return one positive number for each column, given by name or in the order of the columns.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    given : mapping, Series or (p,) array_like
        A Series whose labels are 0, 1, ... counts by order.
    names : sequence of str
        The p columns.

    Returns
    -------
    (p,) ndarray

    Raises
    ------
    TableError
        If a name is unknown or left out, the shape is wrong, or a number is not positive and finite.

    Examples
    --------
    >>> positive_by_column("variances", {"b": 2, "a": 1}, ["a", "b"]).tolist()
    [1.0, 2.0]
    """
    names = list(names)
    if hasattr(given, "items") and not _counts_by_order(given):
        own = {label_text(label): value for label, value in given.items()}
        if unknown := [label for label in own if label not in names]:
            raise TableError(f"`{name}`: {nearest('column', unknown[0], names)}")
        if lost := [label for label in names if label not in own]:
            raise TableError(
                f"`{name}` leaves out {column_list(lost)}: give one number for every column"
            )
        given = [own[label] for label in names]
    values = numbers(f"`{name}`", given, flags=False)
    if values.shape != (len(names),):
        raise TableError(
            f"`{name}` has shape {values.shape}, and there are {len(names)} columns: give one number for each"
        )
    good = (values > 0) & np.isfinite(values)
    if not good.all():
        wrong = [names[j] for j in np.flatnonzero(~good)]
        raise TableError(
            f"`{name}` must be positive and finite; that of {column_list(wrong)} is not"
        )
    return values


def _counts_by_order(series):
    """Whether a mapping is a Series with the labels 0, 1, ..., which it has unless it was given others."""
    return hasattr(series, "index") and list(series.index) == list(range(len(series)))


def table_numbers(frame: Any) -> np.ndarray:
    """Return the values of a pandas or polars table as floats, missing values as NaN.

    Raises
    ------
    ValueError
        If a column does not hold numbers; the message names it.
    """
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    values = []
    for name, column in zip(table.columns, table.iter_columns(), strict=True):
        if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
            raise ValueError(
                f"column {name!r} is {column.dtype}, not numbers; code it as numbers first"
            )
        values.append(np.asarray(column.cast(nw.Float64).to_numpy(), dtype=float))
    return np.column_stack(values) if values else np.empty((len(table), 0))


def _unpacked(name, array):
    """Numbers of an array of objects, missing ones as NaN."""
    return np.array([_float(name, value) for value in array.flat]).reshape(array.shape)


def _float(name, value):
    if is_missing(value):
        return np.nan
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be numbers, it holds {_shown(value)}; code it as a number first"
        ) from None


def _shown(value):
    """Describe a value in a few words."""
    shape = getattr(value, "shape", None)
    if shape or isinstance(value, list | tuple):
        return f"{type(value).__name__} of shape {shape or (len(value),)}"
    return f"{value!r:.40}"
