"""Edges and arcs that no table can change: those that a model requires or rules out."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["with_fixed"]


def with_fixed(
    values: "ArrayLike", present: "ArrayLike", absent: "ArrayLike", least: float = 0.0
) -> np.ndarray:
    """Prior probabilities that are 1 and 0 exactly where a line is fixed, and nowhere else.

    Sums and averages are rounded: they make 0.99999999999999 of a required arc, and 0 or 1 of a free one
    whose probability is near these.

    Parameters
    ----------
    values : array_like of float
        Probabilities as they were computed.
    present, absent : array_like of bool
        Which lines are in all graphs and in none.
    least : float
        Distance from 0 and 1 that free lines keep, if it is more than the smallest possible one.

    Returns
    -------
    numpy.ndarray
    """
    low = max(least, float(np.finfo(float).tiny))
    high = min(1.0 - least, float(np.nextafter(1.0, 0.0)))
    return np.where(present, 1.0, np.where(absent, 0.0, np.clip(values, low, high)))
