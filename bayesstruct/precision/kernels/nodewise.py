r"""Scores of graphs by regressions of each column on its neighbours.

Node i with the q neighbours S has the score

.. math:: a_q - h_q \log r - \tfrac{1}{2} \log |M_{SS}|, \qquad r = M_{ii} - M_{iS} M_{SS}^{-1} M_{Si},

with ``M = I + scatter``. It is the log marginal density of the column given those in S when all columns are normal with
a Wishart(3, I) precision matrix. The *gain* of node i from node k is its score with k among the neighbours less the one
without, so that the log odds of an edge given all other edges are its prior log odds and the gains of its two ends. A
flip of one edge changes the gains of its two ends only.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import inner, kernel, numpy_inner, vector_inner

__all__ = [
    "Target",
    "Work",
    "climb",
    "graph_score",
    "make_target",
    "make_work",
    "pseudo_likelihood",
    "set_graph",
    "update_gains",
]

_DEGREES = 3.0  # of freedom of the Wishart distribution
_ROWS = 32  # neighbours up to which no memory is allocated


class Target(NamedTuple):
    """What the score of a graph depends on.

    Attributes
    ----------
    matrix : (p, p) ndarray
        M.
    diagonal : (p,) ndarray
        Of M.
    sizes, powers : (p,) ndarray
        Of a node with 0, 1, ... neighbours: the constant a, the density of the table included, and the power h.
    weight : float
        Power of the pseudo-likelihood, by which all scores are multiplied.
    """

    matrix: np.ndarray
    diagonal: np.ndarray
    sizes: np.ndarray
    powers: np.ndarray
    weight: float


class Work(NamedTuple):
    """Memory that the kernels write to."""

    neighbours: np.ndarray
    y: np.ndarray
    column: np.ndarray
    root: np.ndarray
    rows: np.ndarray


@kernel
def make_work(p):
    """Make the memory for p columns."""
    most = min(p, _ROWS)
    root, rows = np.empty((most, most)), np.empty((most + 2, p))
    return Work(np.empty(p, np.int64), np.empty(p), np.empty(p), root, rows)


@kernel
def make_target(correlation, n, weight=1.0):
    """Return what the scores depend on.

    Parameters
    ----------
    correlation : (p, p) float64
        Of the columns of the table.
    n : float
        Number of rows. One degree of freedom goes into the means, which are integrated out under a flat prior.
    weight : float
        Power of the pseudo-likelihood.

    Returns
    -------
    Target
    """
    p, left = correlation.shape[0], n - 1.0
    matrix, diagonal = left * correlation, np.empty(p)
    sizes, powers = np.empty(p), np.empty(p)
    for q in range(p):
        matrix[q, q] += 1.0
        diagonal[q] = matrix[q, q]
        powers[q] = 0.5 * (_DEGREES + left + q)
        constant = math.lgamma(powers[q]) - math.lgamma(0.5 * (_DEGREES + q))
        sizes[q] = constant - 0.5 * left * math.log(math.pi)
    return Target(matrix, diagonal, sizes, powers, weight)


@vector_inner
def _subtract(row, factor, other):
    for k in range(row.shape[0]):
        row[k] -= factor * other[k]


@vector_inner
def _finish(row, pivot, y, product, square):
    """Divide a row of the triangular solve by its pivot, and take its part from the products with all nodes."""
    inverse = 1.0 / pivot
    for k in range(row.shape[0]):
        value = row[k] * inverse
        row[k] = value
        product[k] -= y * value
        square[k] -= value * value


@numpy_inner
def _outside(gain, product, square, residual, power, base):
    """Gains from nodes that are no neighbours: ``base - power log(r - c^2 / v) - log(v) / 2``."""
    for k in range(gain.shape[0]):
        v = square[k]
        rest = residual - product[k] * product[k] / v
        gain[k] = base - power * math.log(rest) - 0.5 * math.log(v)


@inner
def _list_neighbours(i, graph, without, beside, out):
    """Write the neighbours of node i, one left out and one added, in order; return their number."""
    q = 0
    for k in range(graph.shape[0]):
        if (graph[i, k] and k != without) or k == beside:
            out[q] = k
            q += 1
    return q


@inner
def _factor(i, neighbours, q, matrix, root, y):
    """Write the Cholesky factor L of M_SS and ``y = L^-1 M_Si``; return r."""
    residual = matrix[i, i]
    for a in range(q):
        at = neighbours[a]
        for b in range(a + 1):
            total = matrix[at, neighbours[b]]
            for c in range(b):
                total -= root[a, c] * root[b, c]
            root[a, b] = math.sqrt(total) if a == b else total / root[b, b]
        total = matrix[i, at]
        for c in range(a):
            total -= root[a, c] * y[c]
        y[a] = total / root[a, a]
        residual -= y[a] * y[a]
    return residual


@inner
def node_score(i, graph, without, beside, target, work):
    """Score of node i with one neighbour left out and another added; -1 for none."""
    q = _list_neighbours(i, graph, without, beside, work.neighbours)
    root = work.root if q <= work.root.shape[0] else np.empty((q, q))
    residual = _factor(i, work.neighbours, q, target.matrix, root, work.y)
    total = target.sizes[q] - target.powers[q] * math.log(residual)
    for a in range(q):
        total -= math.log(root[a, a])
    return target.weight * total


@inner
def node_gains(i, graph, target, gain, work):
    """Write the gains of node i from all others to ``gain``, in O(p q^2)."""
    p, matrix, neighbours, y = graph.shape[0], target.matrix, work.neighbours, work.y
    sizes, powers = target.sizes, target.powers
    q = _list_neighbours(i, graph, -1, -1, neighbours)
    root = work.root if q <= work.root.shape[0] else np.empty((q, q))
    rows = work.rows if q + 2 <= work.rows.shape[0] else np.empty((q + 2, p))
    residual = _factor(i, neighbours, q, matrix, root, y)
    product, square = rows[q], rows[q + 1]
    for k in range(p):
        product[k], square[k] = matrix[i, k], target.diagonal[k]
    for a in range(q):
        copy_vector(rows[a], matrix[neighbours[a]])
        for b in range(a):
            _subtract(rows[a], root[a, b], rows[b])
        _finish(rows[a], root[a, a], y[a], product, square)
    square[i], product[i] = 1.0, 0.0
    for a in range(q):
        square[neighbours[a]], product[neighbours[a]] = 1.0, 0.0
    if q + 1 < p:
        base = sizes[q + 1] - sizes[q] + powers[q] * math.log(residual)
        _outside(gain, product, square, residual, powers[q + 1], base)
    _inside(q, neighbours, residual, target, root, y, work.column, gain)
    gain *= target.weight
    gain[i] = 0.0


@inner
def _inside(q, neighbours, residual, target, root, y, column, gain):
    """Write the gains from the neighbours.

    With ``P = M_SS^-1`` and ``beta = P M_Si``, leaving out neighbour a adds ``beta_a^2 / P_aa`` to r and multiplies the
    determinant by P_aa.
    """
    sizes, powers = target.sizes, target.powers
    for a in range(q):
        spread, coefficient = 0.0, 0.0
        for b in range(a, q):  # column a of L^-1
            total = 1.0 if b == a else 0.0
            for c in range(a, b):
                total -= root[b, c] * column[c]
            column[b] = total / root[b, b]
            spread += column[b] * column[b]
            coefficient += column[b] * y[b]
        left = residual + coefficient * coefficient / spread
        change = powers[q - 1] * math.log(left) - powers[q] * math.log(residual)
        gain[neighbours[a]] = sizes[q] - sizes[q - 1] + change + 0.5 * math.log(spread)


@kernel
def update_gains(nodes, graph, target, gains, work):
    """Compute the gains of some nodes, rows of the (p, p) array ``gains``, from the graph.

    Parameters
    ----------
    nodes : (m,) int64
    graph : (p, p) int8
        Adjacency matrix, symmetric.
    target : Target
    gains : (p, p) float64, changed in place
    work : Work
    """
    for i in nodes:
        node_gains(i, graph, target, gains[i], work)


@kernel
def set_graph(edges, graph):
    """Write the adjacency matrix of a graph whose pairs are given row by row."""
    p, at = graph.shape[0], 0
    for i in range(p):
        graph[i, i] = 0
        for k in range(i + 1, p):
            graph[i, k] = graph[k, i] = edges[at]
            at += 1


@kernel
def graph_score(graph, target, work):
    """Sum of the scores of all nodes: the log pseudo-likelihood of a graph."""
    total = 0.0
    for i in range(graph.shape[0]):
        total += node_score(i, graph, -1, -1, target, work)
    return total


@kernel
def pseudo_likelihood(correlation, edges, n):
    """Log pseudo-likelihood of the graph with these edges, as an array."""
    p = correlation.shape[0]
    graph = np.empty((p, p), np.int8)
    set_graph(edges, graph)
    score = np.empty(())
    score[()] = graph_score(graph, make_target(correlation, n), make_work(p))
    return score


@kernel
def climb(graph, gains, prior, target, work):
    """Flip the pair that raises the posterior probability most, until no flip of a single pair raises it.

    Parameters
    ----------
    graph : (p, p) int8, changed in place
    gains : (p, p) float64, changed in place
        Those of the graph (`update_gains`).
    prior : (p, p) float64
        Prior log odds of the edges, infinite for those that are certain.
    target : Target
    work : Work

    Returns
    -------
    int
        Number of flips.
    """
    p, flips = graph.shape[0], 0
    while True:
        best, first, second = 1e-9, -1, -1  # more than rounding, so that it ends
        for i in range(p):
            for k in range(i + 1, p):
                odds = prior[i, k] + gains[i, k] + gains[k, i]
                if graph[i, k]:
                    odds = -odds
                if odds > best:
                    best, first, second = odds, i, k
        if first < 0:
            return flips
        flip(first, second, graph, target, gains, work)
        flips += 1


@inner
def flip(i, j, graph, target, gains, work):
    """Flip an edge, and bring the gains of its ends up to date."""
    graph[i, j] = graph[j, i] = 1 - graph[i, j]
    node_gains(i, graph, target, gains[i], work)
    node_gains(j, graph, target, gains[j], work)
