r"""Sums over all spanning trees by elimination of one node after another, in logarithms.

A tree has the weight :math:`\prod_{ij \in T} w_{ij}`. Let node v be joined to the others with weights
:math:`a_i = w_{iv}`, :math:`A = \sum_i a_i`. Elimination of v joins its neighbours instead,

.. math:: w'_{ij} = w_{ij} + a_i a_j / A, \qquad Z(w) = A \, Z(w'),

so that the sum over all trees is the product of the A. This is Gaussian elimination of the Laplacian matrix
(Kirchhoff's theorem) without a subtraction: each step adds and multiplies positive numbers, here as logarithms, and the relative
error stays near the rounding error even where weights differ by hundreds of orders of magnitude.

Trees are drawn in reverse. In a tree of the remaining nodes each line is *old* with probability :math:`w_{ij} / w'_{ij}`, else
it stands for a way over v. The old lines form components; v is joined to one node of each, to i with probability
:math:`a_i / \sum_j a_j` over the component. For a forest with the sums :math:`m_1, \dots, m_k` of the components, the ways to join them
have the total weight :math:`\prod_c m_c` over v and :math:`\prod_c m_c / A` in the tree without v, as
:math:`\sum_c m_c = A`, so that draws are exact.

The share of ways over v, :math:`s_{ij} = a_i a_j / (A w'_{ij})`, also gives the probabilities of lines in
the larger tree from those in the smaller one,

.. math::

    P_{ij} = P'_{ij} (1 - s_{ij}), \qquad
    P_{iv} = \frac{a_i}{A} \Bigl(1 - \sum_{j < k} P'_{jk} s_{jk}\Bigr) + \sum_j P'_{ij} s_{ij}.

Shares of the step that eliminates v are at ``v (v - 1) (v - 2) / 6 + j (j - 1) / 2 + i`` for i < j < v.

References
----------
Kirchhoff, G. (1847). Ueber die Auflösung der Gleichungen, auf welche man bei der Untersuchung der linearen
Vertheilung galvanischer Ströme geführt wird. *Annalen der Physik* 148, 497-508.

Grassmann, W. K., Taksar, M. I. and Heyman, D. P. (1985). Regenerative analysis and steady state distributions for
Markov chains. *Operations Research* 33, 1107-1116.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = ["draw_lines", "eliminate", "line_probabilities", "share_count"]


def share_count(nodes: int) -> int:
    """Return how many shares the elimination of all nodes has."""
    return nodes * (nodes - 1) * (nodes - 2) // 6


@inner
def _log_sum(a, b):
    """Logarithm of a sum from the logarithms of its terms."""
    top, low = (a, b) if a > b else (b, a)
    return top if low == -np.inf else top + math.log1p(math.exp(low - top))


@kernel
def eliminate(logs, joined, shares):
    """Eliminate all nodes but the first; return the log sum of the weights of all trees.

    Parameters
    ----------
    logs : (n, n) float64
        Logarithms of the weights, symmetric; overwritten. The diagonal is not used.
    joined : (n, n) float64, written
        Row v, up to v: logarithms of the shares :math:`a_i / A` of the lines of v when it was eliminated.
    shares : (`share_count` (n),) or (0,) float64, written
        Shares of the ways over each node; of length 0 if they are not needed.

    Returns
    -------
    float
        -inf if there is no tree.
    """
    total = 0.0
    for v in range(len(logs) - 1, 0, -1):
        top = -np.inf
        for i in range(v):
            top = max(top, logs[v, i])
        if top == -np.inf:
            return -np.inf
        sums = 0.0
        for i in range(v):
            sums += math.exp(logs[v, i] - top)
        mass = top + math.log(sums)
        total += mass
        for i in range(v):
            joined[v, i] = logs[v, i] - mass
        at = v * (v - 1) * (v - 2) // 6
        for j in range(v):
            for i in range(j):
                way = joined[v, i] + logs[v, j]
                new = _log_sum(logs[j, i], way)
                if len(shares):
                    shares[at] = math.exp(way - new) if way > -np.inf else 0.0
                    at += 1
                logs[j, i] = logs[i, j] = new
    return total


@kernel
def line_probabilities(joined, shares, out):
    """Fill in the probability of each line, a symmetric matrix with zero diagonal.

    Parameters
    ----------
    joined, shares
        From `eliminate`.
    out : (n, n) float64, written
    """
    out[:] = 0.0
    for v in range(1, len(out)):
        at = v * (v - 1) * (v - 2) // 6
        over = 0.0
        for j in range(v):
            for i in range(j):
                part = out[i, j] * shares[at]
                at += 1
                over += part
                out[i, j] -= part
                out[v, i] += part
                out[v, j] += part
        for j in range(v):
            own = math.exp(joined[v, j])
            # v is joined to j at least as often as if it had one line: rounding must not go below.
            out[v, j] = min(max(out[v, j] + own * (1.0 - over), own), 1.0)
            out[j, v] = out[v, j]
            for i in range(j):
                out[j, i] = out[i, j]


@inner
def _component(parent, i):
    """Smallest known member of the component of a node."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@kernel
def draw_lines(rng, joined, shares, out):
    """Draw trees.

    Parameters
    ----------
    rng : numpy.random.Generator
    joined, shares
        From `eliminate`.
    out : (draws, n - 1, 2) int64, written
        The lines of each tree, ends in increasing order.
    """
    n = len(joined)
    member, best, pick = np.empty(n, np.int64), np.empty(n), np.empty(n, np.int64)
    for tree in out:
        lines = 0
        for v in range(1, n):
            for i in range(v):
                member[i], best[i], pick[i] = i, -np.inf, -1
            at, kept = v * (v - 1) * (v - 2) // 6, 0
            for line in range(lines):
                i, j = tree[line]
                if rng.random() >= shares[at + j * (j - 1) // 2 + i]:
                    tree[kept] = tree[line]
                    kept += 1
                    member[_component(member, j)] = _component(member, i)
            lines = kept
            for i in range(v):
                # The largest of Gumbel variables about the logarithms is a draw by the weights.
                noise = math.log(rng.standard_exponential() + 1e-300)
                c, value = _component(member, i), joined[v, i] - noise
                if value > best[c]:
                    best[c], pick[c] = value, i
            for i in range(v):
                if member[i] == i:
                    tree[lines, 0], tree[lines, 1] = pick[i], v
                    lines += 1
