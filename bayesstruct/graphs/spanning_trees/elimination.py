r"""Sums over all spanning trees by elimination of one node after another, stable for weights of any range.

A tree has the weight :math:`\prod_{ij \in T} w_{ij}`. Let node v be joined to the others with weights
:math:`a_i = w_{iv}`, :math:`A = \sum_i a_i`. Elimination of v joins its neighbours instead,

.. math:: w'_{ij} = w_{ij} + a_i a_j / A, \qquad Z(w) = A \, Z(w'),

so that the sum over all trees is the product of the A. This is Gaussian elimination of the Laplacian matrix
(Kirchhoff's theorem) without a subtraction: each step adds and multiplies positive numbers.

Weights may span :math:`e^{10000}`, which numbers in the computer do not. Nodes are therefore in Prim's order, in which each one is joined to
the nodes before it by a line of the maximum spanning tree, of weight about :math:`2^{e_v}`, and weights are held as

.. math:: m_{ij} = w_{ij} / B_{ij}, \qquad B_{ij} = 2^{\min(e_{i+1}, \dots, e_j)}, \quad i < j,

in units of the lightest line on the way from i to j in the maximum spanning tree. No line across the cut that this line closes is heavier than about B, so that
:math:`m_{ij} < n^2` at all times, and the resistance :math:`R_{ij}` between i and j in units of 1/B lies between
:math:`n^{-2}` and n. Since :math:`P_{ij} = w_{ij} R_{ij} \le n m_{ij}`, an m that is too small for the computer belongs to a line
that is in no tree. With :math:`x_i = m_{iv} / \sum_k m_{kv} B_{kv} 2^{-e_v}` elimination reads

.. math:: m'_{ij} = m_{ij} + f_{ij} \, m_{iv} x_j, \qquad f_{ij} = \frac{B_{iv} B_{jv}}{2^{e_v} B_{ij}} \le 1 .

Resistances stay the same when other nodes are eliminated. So they are found in reverse: with :math:`p_i = a_i / A`,

.. math:: R_{jv} = \frac1A + \sum_i p_i R_{ij} - \frac12 \sum_{ik} p_i p_k R_{ik} .

The last term is at most the expected number of lines of v, in units of 1/A: little is lost in the difference.

Trees are drawn in reverse, too. In a tree of the remaining nodes each line is *old* with probability :math:`w_{ij} / w'_{ij}`, else
it stands for a way over v. The old lines form components; v is joined to one node of each, to i with probability
:math:`a_i / \sum_j a_j` over the component. For a forest with the sums :math:`m_1, \dots, m_k` of the components, the ways to join them
have the total weight :math:`\prod_c m_c` over v and :math:`\prod_c m_c / A` in the tree without v, as
:math:`\sum_c m_c = A`, so that draws are exact.

References
----------
Kirchhoff, G. (1847). Ueber die Auflösung der Gleichungen, auf welche man bei der Untersuchung der linearen
Vertheilung galvanischer Ströme geführt wird. *Annalen der Physik* 148, 497-508.

Grassmann, W. K., Taksar, M. I. and Heyman, D. P. (1985). Regenerative analysis and steady state distributions for
Markov chains. *Operations Research* 33, 1107-1116.

Prim, R. C. (1957). Shortest connection networks and some generalizations. *Bell System Technical Journal* 36, 1389-1401.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel, numpy_inner, numpy_kernel

__all__ = ["draw_over", "eliminate", "line_probabilities", "prim_order", "scale_weights"]

_LOG_2 = math.log(2.0)
#: Powers of 1/2. Beyond the last one factors are 0: what they would add is no more than 1e-150 of a tree.
_HALVES = np.append(0.5 ** np.arange(500), 0.0)
_LEAST = 1e-150  # scaled weights below it are 0, for the same reason


@kernel
def prim_order(logs, order, exponents):
    """Order nodes so that each one is joined to those before it by the heaviest line that leaves them.

    Parameters
    ----------
    logs : (n, n) float64
        Logarithms of the weights, symmetric. The diagonal is not used.
    order : (n,) int64, written
        Node 0 first.
    exponents : (n,) int64, written
        Logarithm to the base 2 of the weight of each of these lines, rounded down; the first is not used.

    Returns
    -------
    bool
        Whether lines connect all nodes.
    """
    n = len(logs)
    best, inside = logs[0].copy(), np.zeros(n, np.bool_)
    inside[0], order[0], exponents[0] = True, 0, 0
    for at in range(1, n):
        node = -1
        for i in range(n):
            if not inside[i] and best[i] > -np.inf and (node < 0 or best[i] > best[node]):
                node = i
        if node < 0:
            return False
        inside[node] = True
        order[at], exponents[at] = node, math.floor(best[node] / _LOG_2)
        for i in range(n):
            best[i] = max(best[i], logs[node, i])
    return True


@kernel
def scale_weights(logs, order, exponents, units, scaled):
    """Fill in the units B of all lines, as exponents of 2, and the weights in these units.

    Parameters
    ----------
    logs, order, exponents
        From `prim_order`.
    units : (n, n) int64, written
    scaled : (n, n) float64, written
        Lower triangles; rows and columns in the new order.
    """
    for j in range(len(order)):
        unit = exponents[j]
        for i in range(j - 1, -1, -1):
            unit = min(unit, exponents[i + 1])
            units[j, i] = unit
            value = math.exp(logs[order[j], order[i]] - unit * _LOG_2)
            scaled[j, i] = value if value > _LEAST else 0.0


@numpy_inner
def _factor(units, v, j, i, base):
    """Factor f of the line from i to j, i < j < v; `base` is the exponent of v less the unit of j and v."""
    return _HALVES[min(units[j, i] - units[v, i] + base, 500)]


@numpy_kernel
def eliminate(scaled, units, exponents, first, last, masses, shares):
    """Eliminate the nodes from `first` down to `last`.

    Parameters
    ----------
    scaled : (at least first + 1, ...) float64, lower triangle, overwritten
        Row v is left as the x of the step that eliminated v.
    units, exponents
        From `scale_weights`.
    first, last : int
    masses : (n,) float64, written
        Entry v: the sum A in units of 2 ** exponents[v].
    shares : (first - last + 1, first (first - 1) / 2) or (0, 0) float64, written
        Row v - last: the shares of ways over v in the lines from i to j, i < j < v, at j (j - 1) / 2 + i. Of
        length 0 if they are not needed.
    """
    for v in range(first, last - 1, -1):
        mass = 0.0
        for i in range(v):
            mass += scaled[v, i] * _HALVES[min(exponents[v] - units[v, i], 500)]
        masses[v] = mass
        for j in range(v):
            x, base, at = scaled[v, j] / mass, exponents[v] - units[v, j], j * (j - 1) // 2
            if x > 0.0:
                for i in range(j):
                    way = scaled[v, i] * x * _factor(units, v, j, i, base)
                    scaled[j, i] += way
                    if len(shares):
                        shares[v - last, at + i] = way / scaled[j, i] if way > 0.0 else 0.0
            elif len(shares):
                shares[v - last, at : at + j] = 0.0
        for i in range(v):
            scaled[v, i] /= mass


@numpy_kernel
def line_probabilities(logs, order, ways, units, exponents, masses, out):
    """Fill in the probability of each line, a symmetric matrix with zero diagonal.

    Parameters
    ----------
    logs : (n, n) float64
        Logarithms of the weights.
    order, units, exponents
        From `scale_weights`.
    ways, masses
        After `eliminate` of all nodes but the first: `ways` is its `scaled`.
    out : (n, n) float64, written
    """
    n = len(order)
    resistance = np.zeros((n, n))
    means = np.empty(n)
    for v in range(1, n):
        means[:v] = 0.0
        for j in range(v):
            x, base, own = ways[v, j], exponents[v] - units[v, j], 0.0
            for i in range(j):
                part = resistance[j, i] * _factor(units, v, j, i, base)
                own += ways[v, i] * part
                means[i] += x * part
            means[j] += own
        rest = 1.0 / masses[v]
        for j in range(v):
            rest -= 0.5 * ways[v, j] * means[j]
        for j in range(v):
            resistance[v, j] = means[j] + rest * _HALVES[min(exponents[v] - units[v, j], 500)]
    for j in range(n):
        out[order[j], order[j]] = 0.0
        for i in range(j):
            weight = math.exp(logs[order[j], order[i]] - units[j, i] * _LOG_2)
            p = min(max(weight * resistance[j, i], 0.0), 1.0)
            out[order[j], order[i]] = out[order[i], order[j]] = p


@inner
def _component(parent, i):
    """Smallest known member of the component of a node."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@inner
def _drop_ways(rng, tree, places, lines, shares):
    """Move the old lines to the front of `tree`; return how many they are."""
    at, all_old, limit = 0, 1.0, rng.random()
    while at < lines:
        all_old *= 1.0 - shares[places[at]]
        # One number decides up to the next way over v: that none is one has the product as its probability.
        if all_old > limit:
            at += 1
            continue
        all_old, limit = 1.0, rng.random()
        lines -= 1
        places[at] = places[lines]
        tree[at, 0], tree[at, 1] = tree[lines, 0], tree[lines, 1]
    return lines


@inner
def _components(tree, lines, member):
    """Fill in one node of the component of each node: the same one for all that the lines join."""
    for i in range(len(member)):
        member[i] = i
    for line in range(lines):
        i, j = tree[line, 0], tree[line, 1]
        member[_component(member, j)] = _component(member, i)
    for i in range(len(member)):
        member[i] = _component(member, i)


@inner
def _pick_in_components(rng, logs, member, top, weight, total, pick):
    """Pick one node of each component by the weights of its lines to v."""
    top[:], total[:], pick[:] = -np.inf, 0.0, -1
    for i in range(len(member)):
        top[member[i]] = max(top[member[i]], logs[i])
    for i in range(len(member)):
        weight[i] = math.exp(logs[i] - top[member[i]]) if logs[i] > -np.inf else 0.0
        total[member[i]] += weight[i]
    for c in range(len(member)):
        if member[c] == c:
            total[c] *= rng.random()
    for i in range(len(member)):
        c = member[i]
        if weight[i] > 0.0 and (total[c] >= 0.0 or pick[c] < 0):
            pick[c] = i
            total[c] -= weight[i]


@numpy_kernel
def draw_over(rng, ways, units, exponents, v, shares, trees, places):
    """Turn draws of trees of the nodes below v into draws with v.

    Parameters
    ----------
    rng : numpy.random.Generator
    ways, units, exponents
        After `eliminate`: `ways` is its `scaled`.
    v : int
    shares : (v (v - 1) / 2 or more,) float64
        Those of v, from `eliminate`.
    trees : (draws, n - 1, 2) int64, overwritten
        The first v lines of each tree, ends in increasing order, in the order of the nodes there.
    places : (draws, n - 1) int32, overwritten
        Where the shares of these lines are.
    """
    member, pick = np.empty(v, np.int64), np.empty(v, np.int64)
    top, weight, total, logs, sums = np.empty((5, v))
    running = 0.0
    for i in range(v):
        x = ways[v, i]
        logs[i] = math.log(x) + units[v, i] * _LOG_2 if x > 0.0 else -np.inf
        running += x * _HALVES[min(exponents[v] - units[v, i], 500)]
        sums[i] = running
    for at in range(len(trees)):
        tree = trees[at]
        kept = first = _drop_ways(rng, tree, places[at], v - 1, shares)
        if kept == v - 1:
            # The first sum above a number below the last one; where sums are equal there is no line.
            i = np.searchsorted(sums, running * rng.random(), side="right")
            tree[kept, 0], tree[kept, 1] = min(i, v - 1), v
        else:
            _components(tree, kept, member)
            _pick_in_components(rng, logs, member, top, weight, total, pick)
            for c in range(v):
                if member[c] == c:
                    tree[kept, 0], tree[kept, 1] = pick[c], v
                    kept += 1
        for line in range(first, v):
            places[at, line] = v * (v - 1) // 2 + tree[line, 0]
