r"""Trees of columns and hidden nodes as lists of neighbours, and their one form with a root.

The form with a root: node 0, the first column, is the root; each other node has its neighbour on the way there, its parent, and the correlation with
it. Hidden nodes are numbered from p on, by the order in which they are met on a walk from the root that goes first to the branch whose first column
comes first, and have positive correlations with their parents.
"""

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = ["cut", "is_rooted_form", "join", "neighbours_of", "rooted_form", "rooted_parents"]


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


def rooted_parents(edges, p: int, nodes: int, correlations=None):
    """Parents in the form with a root of a tree of edges, and the correlations with them if those along the edges are given.

    Parameters
    ----------
    edges : sequence of pairs of int
        Of columns, 0, ..., p - 1, and hidden nodes.
    p, nodes : int
        Number of columns, and of all nodes of the form.
    correlations : sequence of float, optional
    """
    near, degree = np.zeros((nodes, nodes), np.int64), np.zeros(nodes, np.int64)
    rho = np.zeros((nodes, nodes))
    values = np.ones(len(edges)) if correlations is None else correlations
    for (a, b), value in zip(edges, values, strict=True):
        near[a, degree[a]], near[b, degree[b]] = b, a
        degree[[a, b]] += 1
        rho[a, b] = rho[b, a] = value
    parent, correlation = np.empty(nodes, np.int64), np.empty(nodes)
    rooted_form(near, degree, rho, p, parent, correlation)
    return parent if correlations is None else (parent, correlation)


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
    right = parent[0] == -1
    for node in range(1, nodes):
        if parent[node] < 0:
            right &= node >= p and degree[node] == 0
            continue
        right &= node < p or degree[node] > 2
        steps, at = 0, node
        while parent[at] >= 0 and steps <= nodes:
            at = parent[at]
            steps += 1
        right &= at == 0
    if not right:
        return False
    near, degree, rho = neighbours_of(parent, np.ones(nodes))
    again, ones = np.empty(nodes, np.int64), np.empty(nodes)
    rooted_form(near, degree, rho, p, again, ones)
    for node in range(nodes):
        if again[node] != parent[node]:
            return False
    return True
