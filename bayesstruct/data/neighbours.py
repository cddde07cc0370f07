"""Read which columns of a table are next to each other in space or time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesstruct.data.errors import TableError
from bayesstruct.data.given_graphs import graph_pairs

__all__ = ["neighbour_matrix"]


def neighbour_matrix(names: Sequence[str], neighbours: Any) -> np.ndarray:
    """Return the matrix that is one where two columns are neighbours.

    Parameters
    ----------
    names : sequence of str
        Columns, in the order of the table.
    neighbours : "chain", tuple of int, networkx.Graph or iterable of pairs of str
        A chain in the order of the columns; the lengths of the sides of a grid whose places are the columns, those of its last
        side next to each other; or a graph whose nodes are columns.

    Returns
    -------
    (p, p) ndarray
        Symmetric.

    Raises
    ------
    TableError
        For fewer than three columns, a grid of another size, an unknown column, or a graph that is directed or without edges.

    Examples
    --------
    >>> neighbour_matrix(["a", "b", "c"], "chain")
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    p = len(names)
    if p < 3:
        raise TableError(
            "neighbouring columns are compared in what they share with other columns, so that there must be three "
            f"of them at least; the table has {p}: use gaussian_graphical"
        )
    matrix = np.zeros((p, p))
    for pair in _pairs(names, neighbours):
        matrix[pair] = matrix[pair[::-1]] = 1.0
    return matrix


def _pairs(names, neighbours):
    if isinstance(neighbours, str):
        if neighbours != "chain":
            raise TableError(
                f'neighbours is "chain", the shape of a grid such as (3, 4), or a graph; it is {neighbours!r}'
            )
        return [(i, i + 1) for i in range(len(names) - 1)]
    if _is_shape(neighbours):
        return _grid_pairs(tuple(map(int, neighbours)), names)
    try:
        return graph_pairs(names, neighbours)
    except TableError as error:
        message = str(error).replace("graph", "neighbours", 1)
        message = message.replace("may depend on each other", "are next to each other")
        raise TableError(message.replace(", or its moral graph", "")) from None


def _is_shape(neighbours) -> bool:
    return (
        isinstance(neighbours, tuple)
        and len(neighbours) > 0
        and all(isinstance(side, int | np.integer) for side in neighbours)
    )


def _grid_pairs(shape, names):
    if min(shape) < 1 or np.prod(shape) != len(names):
        sides = " x ".join(map(str, shape))
        raise TableError(
            f"neighbours is a grid of {sides} places, but the table has {len(names)} columns; each column is one place"
        )
    places = np.arange(len(names)).reshape(shape)
    pairs = []
    for axis in range(len(shape)):
        ahead = np.moveaxis(places, axis, 0)
        pairs += zip(ahead[:-1].ravel().tolist(), ahead[1:].ravel().tolist(), strict=True)
    return pairs
