"""Variances of the noise that are known up to a common factor."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesstruct.data.arguments import numbers
from bayesstruct.data.errors import TableError, column_list

__all__ = ["known_variances"]


def known_variances(variances: Any, names: Sequence[str]) -> np.ndarray:
    """Check known variances of the noise, and put them in the order of the columns.

    Parameters
    ----------
    variances : mapping, Series, (p,) array_like or None
        By name, or in the order of the columns; None stands for equal ones.
    names : sequence of str
        The p columns.

    Returns
    -------
    (p,) ndarray
        Positive; ones for None.

    Raises
    ------
    TableError
        If a name is unknown or left out, the number is wrong, or a variance is not positive and finite.
    """
    names = list(names)
    if variances is None:
        return np.ones(len(names))
    given = _by_name(variances)
    if given is not None:
        if unknown := [name for name in given if name not in names]:
            raise TableError(f"`variances` has the unknown {column_list(unknown)}")
        if lost := [name for name in names if name not in given]:
            raise TableError(
                f"`variances` leaves out {column_list(lost)}: give one for every column"
            )
        variances = [given[name] for name in names]
    values = numbers("variances", variances, flags=False)
    if values.shape != (len(names),):
        raise TableError(
            f"`variances` has shape {values.shape}, and the table has {len(names)} columns: give one number for each"
        )
    if wrong := [name for name, v in zip(names, values, strict=True) if not (v > 0 and v < np.inf)]:
        raise TableError(
            f"`variances` must be positive and finite; those of {column_list(wrong)} are not"
        )
    return values


def _by_name(variances):
    """Return a dictionary of variances with names, or None without names."""
    if isinstance(variances, Mapping):
        return {str(name): value for name, value in variances.items()}
    if hasattr(variances, "index") and hasattr(variances, "to_dict"):
        labels = list(variances.index)
        if labels != list(range(len(labels))):
            return {str(name): value for name, value in variances.to_dict().items()}
    return None
