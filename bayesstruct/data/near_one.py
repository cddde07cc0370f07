"""Columns divided by powers of two, so that squares of large and small numbers are finite."""

import numpy as np

__all__ = ["near_one"]


def near_one(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide columns by powers of two, which rounds nothing.

    Parameters
    ----------
    values : (n, p) ndarray of float
        Finite numbers.

    Returns
    -------
    scaled : (n, p) ndarray
        Columns whose largest magnitudes are from 1/2 to 1; columns of zeros stay as they are.
    powers : (p,) ndarray of int
        ``values`` is ``scaled * 2.0**powers``.

    Examples
    --------
    >>> near_one(np.array([[6e200], [3e200]]))[0].T.round(3).tolist()
    [[0.98, 0.49]]
    """
    _, powers = np.frexp(np.abs(values).max(axis=0))
    return np.ldexp(values, -powers), powers
