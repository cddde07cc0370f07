r"""Trees of columns and hidden nodes: how many there are, draws of them, and their one form with a root.

A tree is minimal: every hidden node has three neighbours or more, so that p columns have at most p - 2 hidden nodes. Hidden nodes have no
names. By the sequences of Prüfer, trees of p columns and h hidden nodes are the ways to write p + h - 2 entries, each the name of a column or
that of one of h sets of two entries or more, and their number is

.. math:: N(p, h) = b_h(p + h - 2), \qquad b_h(m + 1) = (p + h) \, b_h(m) + m \, b_{h - 1}(m - 1), \quad b_0(m) = p^m ,

as entry m + 1 joins a column or a set, or begins a set with one of those before it. Of these trees :math:`2 b_h(p + h - 3)` have an edge between
two given columns, which are then one node with two names.

The form with a root: node 0, the first column, is the root; each other node has its neighbour on the way there, its parent, and the correlation with
it. Hidden nodes are numbered from p on, by the order in which they are met on a walk from the root that goes first to the branch whose first column
comes first, and have positive correlations with their parents.
"""

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = [
    "cut",
    "draw_parents",
    "is_rooted_form",
    "join",
    "log_tree_counts",
    "neighbours_of",
    "prior_edge_share",
    "rooted_form",
]


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
    from math import log

    return np.array([log(row[-1]) for row in _sequences(p, most)])


def prior_edge_share(p: int, most: int) -> np.ndarray:
    """Return the share of the trees with 0, ..., `most` hidden nodes in which two given columns are neighbours.

    Parameters
    ----------
    p, most : int
        As of `log_tree_counts`.
    """
    from fractions import Fraction

    if p == 2:
        return np.ones(1)
    return np.array([float(Fraction(2 * row[-2], row[-1])) for row in _sequences(p, most)])


def draw_parents(
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
        own = (p + h) * table[h][m]
        if rng.random() * table[h][m + 1] < own:
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
    from heapq import heapify, heappop, heappush

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


@inner
def join(near, degree, rho, a, b, value):
    """Add an edge."""
    near[a, degree[a]] = b
    near[b, degree[b]] = a
    degree[a] += 1
    degree[b] += 1
    rho[a, b] = rho[b, a] = value


@inner
def cut(near, degree, rho, a, b):
    """Remove an edge."""
    for one, other in ((a, b), (b, a)):
        k = 0
        while near[one, k] != other:
            k += 1
        degree[one] -= 1
        near[one, k] = near[one, degree[one]]
    rho[a, b] = rho[b, a] = 0.0


@kernel
def neighbours_of(parent, correlation):
    """Return neighbours, their numbers and correlations of a tree with a root.

    Parameters
    ----------
    parent : (nodes,) ndarray of int
        -1 for the root and for nodes that are not used.
    correlation : (nodes,) ndarray of float

    Returns
    -------
    near : (nodes, nodes) ndarray of int
    degree : (nodes,) ndarray of int
    rho : (nodes, nodes) ndarray of float
    """
    nodes = len(parent)
    near = np.zeros((nodes, nodes), np.int64)
    degree = np.zeros(nodes, np.int64)
    rho = np.zeros((nodes, nodes))
    for node in range(nodes):
        if parent[node] >= 0:
            join(near, degree, rho, node, parent[node], correlation[node])
    return near, degree, rho


@kernel
def rooted_form(near, degree, rho, p, parent, correlation):
    """Write the form with a root of a tree.

    Parameters
    ----------
    near, degree, rho : ndarray
        As from `neighbours_of`.
    p : int
        Number of columns.
    parent, correlation : (nodes,) ndarray
        Where it is written.
    """
    nodes = len(degree)
    above = np.full(nodes, -1)
    order = np.zeros(nodes, np.int64)
    first = np.arange(nodes)  # first column of a branch; more than p for a hidden node alone
    count, done = 1, 0
    while done < count:
        node = order[done]
        done += 1
        for k in range(degree[node]):
            child = near[node, k]
            if child != above[node]:
                above[child] = node
                order[count] = child
                count += 1
    for k in range(count - 1, 0, -1):
        node = order[k]
        first[above[node]] = min(first[above[node]], first[node])
    name = np.full(nodes, -1)
    sign = np.ones(nodes)
    parent[:] = -1
    correlation[:] = 0.0
    stack = np.zeros(nodes, np.int64)
    depth, used = 1, p
    while depth:
        depth -= 1
        node = stack[depth]
        name[node] = node if node < p else used
        used += node >= p
        if above[node] >= 0:
            value = rho[node, above[node]] * sign[above[node]]
            if node >= p and value < 0.0:
                sign[node] = -1.0
                value = -value
            parent[name[node]] = name[above[node]]
            correlation[name[node]] = value
        start = depth
        for k in range(degree[node]):
            child = near[node, k]
            if child == above[node]:
                continue
            place = depth  # the branch with the first column goes last on the stack, and comes next
            while place > start and first[stack[place - 1]] < first[child]:
                stack[place] = stack[place - 1]
                place -= 1
            stack[place] = child
            depth += 1


@kernel
def is_rooted_form(parent, p):
    """Whether parents are those of the form with a root of a minimal tree of p columns and hidden nodes.

    Parameters
    ----------
    parent : (nodes,) ndarray of int
    p : int
    """
    nodes = len(parent)
    degree = np.zeros(nodes, np.int64)
    for node in range(nodes):
        above = parent[node]
        if above >= nodes or above == node or above < -1:
            return False
        if above >= 0:
            degree[node] += 1
            degree[above] += 1
    if parent[0] != -1:
        return False
    for node in range(1, nodes):
        if (node < p and parent[node] < 0) or (node >= p and degree[node] in (1, 2)):
            return False
        if node >= p and degree[node] and parent[node] < 0:
            return False
        steps, at = 0, node
        while parent[at] >= 0:
            at = parent[at]
            steps += 1
            if steps > nodes:
                return False
        if at != 0 and degree[node]:
            return False
    near, degree, rho = neighbours_of(parent, np.ones(nodes))
    again, ones = np.empty(nodes, np.int64), np.empty(nodes)
    rooted_form(near, degree, rho, p, again, ones)
    for node in range(nodes):
        if again[node] != parent[node]:
            return False
    return True
