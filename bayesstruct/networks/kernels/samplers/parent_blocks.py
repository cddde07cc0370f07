r"""Parents of several variables of a directed acyclic graph drawn together, given all other arcs.

Take the parents of the variables of a *block* B away. Let :math:`D_b` be variable b and its descendants in the
remaining graph. A parent set of b must avoid :math:`D_b`; if it meets :math:`D_c` of another one, there is a path
from c to b. The graph is acyclic if and only if these paths, as a graph of the block, are. That
graph has one ordered partition into layers: sets of the first avoid all :math:`D`, those of any other meet
:math:`D_c` of some c of the layer directly before, and avoid those of its own and of later layers (as in
Kuipers and Moffa 2017). With S the variables of all layers so far and T those of the last one,

.. math::

    F(S, T) = \sum_{\emptyset \ne U \subseteq B \setminus S} F(S \cup U, U)
    \prod_{b \in U} \sum_{\pi \text{ meets } D_T, \text{ avoids } D_{B \setminus S}} e^{s_b(\pi)},
    \qquad F(B, T) = 1,

gives all layers in turn, and tables give the inner sums. This is a Gibbs step. It turns paths and cycles of
arcs around at once, where changes of one arc or of two ends would have to pass graphs of small probability.
It takes :math:`k 3^{k-1}` inner sums for k variables.

Blocks must not be chosen by the graph: the way back has to be as probable.

References
----------
Goudie, R. J. B. and Mukherjee, S. (2016). A Gibbs sampler for learning DAGs. *JMLR* 17(30), 1-39 (sets of
variables whose parents are drawn together). -- Kuipers, J. and Moffa, G. (2017). Partition MCMC for inference on
acyclic digraphs. *JASA* 112, 282-299.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.networks.kernels.parent_sums import FREE, draw_parents, log_sum
from bayesstruct.networks.kernels.parent_tables import LIST

__all__ = ["MOST", "draw_block", "draw_blocks", "pick_block"]

#: Variables in a block at most: the numbers of sums are 108, 1,458 and 17,496 for 4, 6 and 8.
MOST = 8
_NEAREST = 5  # candidates of a variable that belong to it in blocks
_OPEN, _MUST, _CLOSED = 0, 1, 2  # positions of variables that may, have to, and must not be parents


@inner
def _near(t, i, j):
    """Whether a variable is among the first candidates of another."""
    return 1 <= t.layout[i, LIST + len(t.layout) - 1 + j] <= _NEAREST


@inner
def _is_in(block, k, j):
    for a in range(k):
        if block[a] == j:
            return True
    return False


@kernel
def pick_block(rng, t, block):
    """Write different variables, each but the first near one before it, if one can be found.

    Parameters
    ----------
    rng : numpy.random.Generator
    t : ParentTables
        Of at least as many variables.
    block : (k,) int64 array
    """
    d = len(t.layout)
    block[0] = int(rng.random() * d)
    for k in range(1, len(block)):
        j = block[0]
        for _ in range(8 * d):
            i, j = block[int(rng.random() * k)], int(rng.random() * d)
            if not _is_in(block, k, j) and (_near(t, i, j) or _near(t, j, i)):
                break
        while _is_in(block, k, j):
            j = int(rng.random() * d)
        block[k] = j


@inner
def _mark(adjacency, block, member, stack):
    """Set bit k of each variable that block variable k leads to, itself among them."""
    d = len(adjacency)
    for j in range(d):
        member[j] = 0
    for k in range(len(block)):
        bit = np.int64(1) << k
        member[block[k]] |= bit
        stack[0], height = block[k], 1
        while height > 0:
            height -= 1
            i = stack[height]
            for j in range(d):
                if adjacency[i, j] and not member[j] & bit:
                    member[j] |= bit
                    stack[height] = j
                    height += 1


@inner
def _weigh(t, block, member, placed, last, position, own):
    """Write the log sum over parent sets of each variable that is not placed yet, for the next layer."""
    k = len(block)
    closed = ((np.int64(1) << k) - 1) ^ placed
    for j in range(len(member)):
        position[j] = _CLOSED if member[j] & closed else _MUST if member[j] & last else _OPEN
    near = _nearest(last)
    for b in range(k):
        if closed >> b & 1:
            own[b] = log_sum(t, block[b], position, near, np.int64(_CLOSED))


@inner
def _nearest(last):
    """Return the least position that a parent set has to reach: that of the last layer, if there is one."""
    return np.int64(_MUST if last else FREE)


@inner
def _layer_weight(own, layer, k):
    total = 0.0
    for b in range(k):
        if layer >> b & 1:
            total += own[b]
    return total


@inner
def _complete(t, block, member, position, ways):
    """Write the log weights of all completions, (layers so far, last layer)."""
    k = len(block)
    every, own, logs = (np.int64(1) << k) - 1, np.empty(k), np.empty(1 << k)
    for placed in range(every, -1, -1):
        last, rest = np.int64(placed), every ^ placed
        while True:
            if rest == 0:
                ways[placed, last] = 0.0
            elif last > 0 or placed == 0:
                _weigh(t, block, member, placed, last, position, own)
                layer, n, top = rest, 0, -np.inf
                while layer > 0:
                    logs[n] = _layer_weight(own, layer, k) + ways[placed | layer, layer]
                    top = max(top, logs[n])
                    layer, n = (layer - 1) & rest, n + 1
                total = 0.0
                for a in range(n if top > -np.inf else 0):
                    total += math.exp(logs[a] - top)
                ways[placed, last] = top + math.log(total) if total > 0.0 else -np.inf
            if last == 0:
                break
            last = (last - 1) & placed


@inner
def _draw_layer(rng, own, ways, placed, last, k):
    """Draw the next layer."""
    rest = ((np.int64(1) << k) - 1) ^ placed
    left, chosen, layer = rng.random(), np.int64(0), rest
    while layer > 0:
        log = _layer_weight(own, layer, k) + ways[placed | layer, layer] - ways[placed, last]
        if log > -np.inf:
            chosen = layer
            left -= math.exp(log)
            if left < 0.0:
                break
        layer = (layer - 1) & rest
    return chosen


@kernel
def draw_block(rng, t, adjacency, block):
    """Draw the parents of all variables of a block given all other arcs.

    Parameters
    ----------
    rng : numpy.random.Generator
    t : ParentTables
    adjacency : (d, d) int8 array
        Acyclic, of finite scores; 1 at (parent, child). Changed in place.
    block : (k,) int64 array
        Different variables, at most ``MOST``.
    """
    d, k = len(adjacency), len(block)
    member, position, own = np.empty(d, np.int64), np.empty(d, np.int64), np.empty(k)
    for b in range(k):
        for j in range(d):
            adjacency[j, block[b]] = 0
    _mark(adjacency, block, member, position)
    ways = np.full((1 << k, 1 << k), -np.inf)
    _complete(t, block, member, position, ways)
    placed = last = np.int64(0)
    while placed != (np.int64(1) << k) - 1:
        _weigh(t, block, member, placed, last, position, own)
        layer = _draw_layer(rng, own, ways, placed, last, k)
        for b in range(k):
            if layer >> b & 1:
                near = _nearest(last)
                draw_parents(rng, t, block[b], position, near, np.int64(_CLOSED), adjacency)
        placed, last = placed | layer, layer


@kernel
def draw_blocks(rng, t, adjacency, size, count):
    """Draw the parents of some random blocks, one after the other.

    Parameters
    ----------
    rng : numpy.random.Generator
    t : ParentTables
    adjacency : (d, d) int8 array
        Changed in place.
    size, count : int
        Variables of a block, and blocks.
    """
    block = np.empty(size, np.int64)
    for _ in range(count):
        pick_block(rng, t, block)
        draw_block(rng, t, adjacency, block)
