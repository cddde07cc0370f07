"""Conditional independences that directed acyclic graphs imply, in a set from which all others follow."""

from typing import NamedTuple

import numpy as np

from bayesstruct.graphs.ancestry import descendants

__all__ = ["BasisSets", "basis_sets"]


class BasisSets(NamedTuple):
    """Conditional independences of some graphs: the later column of a pair, given parents, of the earlier one.

    Attributes
    ----------
    later, earlier : ndarray of int, shape (m,)
        Two columns without an arc between them, of which the later one does not come before the earlier one in a topological order.
    given : ndarray of bool, shape (m, p)
        Parents of both columns. All triples are distinct.
    implied : list of ndarray of int
        For each graph the positions of its independences, one for each pair of columns without an arc.
    """

    later: np.ndarray
    earlier: np.ndarray
    given: np.ndarray
    implied: list[np.ndarray]


def basis_sets(graphs: np.ndarray) -> BasisSets:
    """List the conditional independences of Shipley's basis set of each graph, and each independence once.

    Parameters
    ----------
    graphs : ndarray of bool, shape (k, p, p)
        Directed acyclic graphs, rows parents.

    Returns
    -------
    BasisSets

    Notes
    -----
    Two columns without an arc are independent given the parents of both. All conditional independences that a graph
    implies follow from these, and tests of them are independent of each other where the graph is right [1]_.

    References
    ----------
    .. [1] Shipley, B. (2000). A new inferential test for path models based on directed acyclic graphs. Structural Equation
       Modeling 7, 206-218.
    """
    p = graphs.shape[-1]
    # An ancestor has fewer ancestors than its descendants
    rank = np.argsort(np.argsort(descendants(graphs).sum(axis=1), axis=1, kind="stable"), axis=1)
    known: dict[bytes, int] = {}
    rows: list[np.ndarray] = []
    implied = []
    for graph, place in zip(graphs, rank, strict=True):
        a, b = np.nonzero(np.triu(~(graph | graph.T), 1))
        first = place[a] < place[b]
        later, earlier = np.where(first, b, a), np.where(first, a, b)
        given = graph[:, later].T | graph[:, earlier].T
        packed = np.column_stack([later, earlier, given]).astype(np.int32)
        own = []
        for row in packed:
            key = row.tobytes()
            if key not in known:
                known[key] = len(rows)
                rows.append(row)
            own.append(known[key])
        implied.append(np.array(own, int))
    listed = np.array(rows, int).reshape(-1, p + 2)
    return BasisSets(listed[:, 0], listed[:, 1], listed[:, 2:].astype(bool), implied)
