"""Numbers of the configurations of parents, by which tables of probabilities are ordered."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["strides"]


def strides(dag: "ArrayLike", states: Sequence[int]) -> np.ndarray:
    """Return the change of the configuration of each child by one state of each parent, (d, d).

    Parameters
    ----------
    dag : (d, d) array_like
        1 at (parent, child).
    states : sequence of int
        Numbers of states of the columns.

    Examples
    --------
    >>> strides([[0, 0, 1], [0, 0, 1], [0, 0, 0]], [2, 3, 2])[:, 2].tolist()
    [1, 2, 0]
    """
    present = np.asarray(dag) != 0
    factor = np.where(present, np.asarray(states)[:, None], 1)
    before = np.cumprod(factor, axis=0) // factor
    return np.where(present, before, 0).astype(np.int64)
