r"""How many trees of columns and hidden nodes there are, and draws of them.

A tree is minimal: every hidden node has three neighbours or more, so that p columns have at most p - 2 hidden nodes. Hidden nodes have no
names. By the sequences of Prüfer, trees of p columns and h hidden nodes are the ways to write p + h - 2 entries, each the name of a column or
that of one of h sets of two entries or more, and their number is

.. math:: N(p, h) = b_h(p + h - 2), \qquad b_h(m + 1) = (p + h) \, b_h(m) + m \, b_{h - 1}(m - 1), \quad b_0(m) = p^m ,

as entry m + 1 joins a column or a set, or begins a set with one of those before it. Of these trees :math:`2 b_h(p + h - 3)` have an edge between
two given columns, which are then one node with two names.
"""

from fractions import Fraction
from heapq import heapify, heappop, heappush
from math import log

import numpy as np

__all__ = ["draw_edges", "log_tree_counts", "log_tree_probabilities", "prior_edge_share"]


def _sequences(p: int, most: int) -> list[list[int]]:
    """Numbers b_h(m), exactly: one list for each h from 0 to `most`, of m from 0 to p + h - 2."""
    rows: list[list[int]] = []
    for h in range(most + 1):
        row = [p**m for m in range(p - 1)] if not h else [0]
        while len(row) < p + h - 1:
            m = len(row) - 1
            pairs = m * rows[h - 1][m - 1] if m else 0
            row.append((p + h) * row[m] + pairs)
        rows.append(row)
    return rows


def log_tree_counts(p: int, most: int) -> np.ndarray:
    """Return the logarithms of the numbers of trees with 0, ..., `most` hidden nodes.

    Parameters
    ----------
    p : int
        Number of columns, 2 or more.
    most : int
        At most p - 2.

    Examples
    --------
    >>> np.exp(log_tree_counts(4, 2)).round(9).tolist()
    [16.0, 13.0, 3.0]
    """
    return np.array([log(row[-1]) for row in _sequences(p, most)])


def log_tree_probabilities(p: int, most: int, weight: float) -> np.ndarray:
    """Return the log probabilities of each single tree with 0, ..., `most` hidden nodes if each of these counts as `weight`.

    Parameters
    ----------
    p, most : int
        As of `log_tree_counts`.
    weight : float

    Examples
    --------
    >>> np.exp(-log_tree_probabilities(4, 2, 1.0)).round(9).tolist()
    [32.0, 32.0, 32.0]
    """
    logs = np.arange(most + 1) * np.log(weight)
    return logs - np.logaddexp.reduce(log_tree_counts(p, most) + logs)


def prior_edge_share(p: int, most: int) -> np.ndarray:
    """Return the share of the trees with 0, ..., `most` hidden nodes in which two given columns are neighbours.

    Parameters
    ----------
    p, most : int
        As of `log_tree_counts`.
    """
    if p == 2:
        return np.ones(1)
    return np.array([float(Fraction(2 * row[-2], row[-1])) for row in _sequences(p, most)])


def draw_edges(
    rng: np.random.Generator, p: int, hidden: int, draws: int
) -> list[list[tuple[int, int]]]:
    """Draw trees with this number of hidden nodes, all equally probable.

    Parameters
    ----------
    rng : numpy.random.Generator
    p, hidden, draws : int

    Returns
    -------
    list of lists of pairs of int
        Edges of each tree; hidden nodes are numbered from p on, in any order.
    """
    table = _sequences(p, hidden)
    return [_from_sequence(_sequence(rng, table, p, hidden), p + hidden) for _ in range(draws)]


def _sequence(rng, table, p, hidden):
    """Draw a sequence of Prüfer in which each hidden node comes twice or more."""
    names, h, left = {}, hidden, list(range(p + hidden - 2))
    joins = []
    while left:
        last, m = left.pop(), len(left)
        # Both numbers may be larger than any float; their ratio is none.
        if rng.random() < (p + h) * table[h][m] / table[h][m + 1]:
            joins.append((last, h))
            continue
        other = left.pop(int(rng.integers(m)))
        h -= 1
        names[last] = names[other] = p + h
    for place, known in joins:
        names[place] = int(rng.integers(p + known))
    return [names[k] for k in range(p + hidden - 2)]


def _from_sequence(sequence, nodes):
    """Return the edges of the tree of a sequence of Prüfer."""
    degree = np.bincount(np.array(sequence, int), minlength=nodes) + 1
    leaves = [i for i in range(nodes) if degree[i] == 1]
    heapify(leaves)
    edges = []
    for node in sequence:
        edges.append((heappop(leaves), node))
        degree[node] -= 1
        if degree[node] == 1:
            heappush(leaves, node)
    edges.append((heappop(leaves), heappop(leaves)))
    return edges
