"""Total effects from direct ones."""

from collections.abc import Iterable

import numpy as np

__all__ = ["total_effects"]


def total_effects(direct: np.ndarray, order: Iterable[int]) -> np.ndarray:
    r"""Return :math:`(I - B)^{-1}`, the sums over directed paths, with exact zeros where there is none.

    Parameters
    ----------
    direct : (d, d) numpy.ndarray
        Coefficients B, rows as children.
    order : iterable of int
        All variables, parents before children.

    Returns
    -------
    (d, d) numpy.ndarray
        Change of the row's variable per unit by which the column's variable is set; 1 on the diagonal.

    Examples
    --------
    >>> total_effects(np.array([[0, 0, 0], [2, 0, 0], [0, 3, 0]]), [0, 1, 2])[2]
    array([6., 3., 1.])
    """
    total = np.eye(len(direct))
    for i in order:
        total[i] += direct[i] @ total
    return total
