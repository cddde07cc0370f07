"""One way to check the arguments of functions: a number, a whole number, an array of numbers."""

import numpy as np

__all__ = ["is_missing", "is_number", "number", "numbers", "whole_number"]


def number(name: str, value, *, above: float | None = None) -> float:
    """Return a finite number as a float.

    Parameters
    ----------
    name : str
        What the caller calls it, for the message.
    value : object
        What the user gave.
    above : float, optional
        A bound that it has to exceed.

    Raises
    ------
    TypeError
        If it is not one real number: text, None, a truth value, complex, an array.
    ValueError
        If it is NaN, infinite, or not above the bound.

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
    return value


def whole_number(name: str, value, least: int, most: int | None = None) -> int:
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
    inside = value >= least and (most is None or value <= most)
    if not inside or float(value) != int(value):
        span = f"from {least} up" if most is None else f"from {least} to {most}"
        raise ValueError(f"`{name}` must be a whole number {span}, it is {value}")
    return int(value)


def is_number(value) -> bool:
    """Return whether a value is one real number; truth values are not."""
    if isinstance(value, bool | np.bool_ | str | bytes) or value is None:
        return False
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return False
    return array.ndim == 0 and array.dtype.kind in "iuf"


def is_missing(value) -> bool:
    """Return whether a value is None, NaN, or pandas' missing value."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def numbers(name: str, values) -> np.ndarray:
    """Return real numbers as an array of floats; truth values count as 0 and 1, None as NaN.

    Raises
    ------
    ValueError
        If they are complex, text, dates or lists of unequal length; the message says so.
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be made an array of numbers ({error})") from None
    if array.dtype.kind == "O" and array.ndim:
        array = _unpacked(name, array)
    if array.dtype.kind not in "biuf":
        kinds = {"c": "complex", "U": "text", "S": "text", "M": "dates", "m": "durations"}
        kind = kinds.get(array.dtype.kind, type(values).__name__)
        remedy = "give real numbers" if kind == "complex" else "code them as numbers first"
        raise ValueError(f"{name} must be numbers, not {kind}; {remedy}")
    return array.astype(np.float64)


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
    """Say in a few words what a value is."""
    shape = getattr(value, "shape", None)
    if shape or isinstance(value, list | tuple):
        return f"{type(value).__name__} of shape {shape or (len(value),)}"
    return f"{value!r:.40}"
