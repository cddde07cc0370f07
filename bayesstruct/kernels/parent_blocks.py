r"""Parents of several variables of a directed acyclic graph drawn together, given all other arcs.

Take the parents of the variables :math:`b_1, \dots, b_4` of a *block* away. Let :math:`D_k` be :math:`b_k` and its
descendants in what is left. A parent set of :math:`b_k` must avoid :math:`D_k`, and it *meets* some of the other
:math:`D_l`: then there is a path from :math:`b_l` to :math:`b_k`. The graph is acyclic if and only if these
paths are, as a graph of the block alone, and given that graph the parent sets are independent. So its
probability is a product of sums over the parent sets that meet given :math:`D_l` and avoid the others, differences
of sums that tables give at once. One of all 543 is drawn, then the parents: a Gibbs step that
turns a path or a small cycle of arcs around at once, where changes of one arc, or of two ends of an arc,
would have to pass graphs of small probability.

Blocks are drawn by the candidates of the tables, not by the graph, so that the way back is as probable.

References
----------
Goudie, R. J. B. and Mukherjee, S. (2016). A Gibbs sampler for learning DAGs. *JMLR* 17(30), 1-39.
"""

import itertools
import math

import numba
import numpy as np

from bayesstruct.kernels.parent_tables import (
    FREE,
    LIST,
    ROWS,
    SCORE,
    SIZE,
    draw_parents,
    log_sum,
)

__all__ = ["BLOCK", "draw_block", "pick_block"]

_INNER = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
#: Variables in a block.
BLOCK = 4
_SETS = 1 << BLOCK
_CLOSE = 1e-9  # share of a sum below which a difference of sums counts as nothing
_NEAREST = 5  # candidates of a variable that belong to it in blocks
_OPEN, _MUST, _CLOSED = 0, 1, 2  # positions of parents that may, that have to, and that must not be there


def _acyclic(parents):
    """Whether the masks of parents of a few variables are those of an acyclic graph."""
    left = set(range(len(parents)))
    while left:
        roots = {i for i in left if not any(parents[i] >> j & 1 for j in left)}
        if not roots:
            return False
        left -= roots
    return True


def _graphs(d):
    """All acyclic graphs of ``d`` variables: masks of parents, (count, d) int64."""
    masks = [[m for m in range(1 << d) if not m >> i & 1] for i in range(d)]
    return np.array([g for g in itertools.product(*masks) if _acyclic(g)], np.int64)


_GRAPHS = _graphs(BLOCK)


@numba.njit(**_INNER)
def _near(t, i, j):
    """Whether a variable is among the first candidates of another."""
    role = t.layout[i, LIST + len(t.layout) - 1 + j]
    return 1 <= role <= _NEAREST


@numba.njit(cache=True, nogil=True)
def pick_block(rng, t, block):
    """Write different variables, each but the first near one that came before if there is such a one.

    Parameters
    ----------
    rng : numpy.random.Generator
    t : ParentTables
        Of at least as many variables.
    block : (BLOCK,) int64 array
    """
    d = len(t.layout)
    for k in range(len(block)):
        for trial in range(8 * d + 1):
            j = int(rng.random() * d)
            new = True
            for a in range(k):
                new = new and block[a] != j
            if not new:
                continue
            if k == 0 or trial >= 8 * d - 1:
                break
            i = block[int(rng.random() * k)]
            if _near(t, i, j) or _near(t, j, i):
                break
        while not new:
            j, new = (j + 1) % d, True
            for a in range(k):
                new = new and block[a] != j
        block[k] = j


@numba.njit(**_INNER)
def _mark(adjacency, block, member, stack):
    """Set bit k of the variables that block variable k leads to, itself among them."""
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


@numba.njit(**_INNER)
def _sum(t, child, member, meet, avoid, position):
    """Log of the sum over parent sets that meet one descendance, if not 0, and avoid others; masks."""
    for j in range(len(member)):
        position[j] = _CLOSED if member[j] & avoid else _MUST if member[j] & meet else _OPEN
    return log_sum(t, child, position, np.int64(_MUST if meet else FREE), np.int64(_CLOSED))


@numba.njit(**_INNER)
def _difference(high, low):
    """Logarithm of a difference of exponentials, nothing where it cancels."""
    if high == -np.inf:
        return -np.inf
    share = -math.expm1(min(low - high, 0.0))
    return high + math.log(share) if share > _CLOSE else -np.inf


@numba.njit(**_INNER)
def _weigh(t, block, k, member, position, weight):
    """Write the log sum over the parent sets of block variable k that meet exactly some of the others.

    A set that meets several is one that meets the first and avoids none of them, less those that avoid the
    second, and so on.
    """
    own, every = np.int64(1) << k, np.int64(_SETS - 1)
    meeting = np.empty(_SETS)  # of sets that meet the first of a mask and may meet the others
    for m in range(_SETS):
        weight[m] = -np.inf
        if m & own:
            continue
        first = m & -m
        meeting[m] = _sum(t, block[k], member, first, (every ^ m) | own, position)
    for m in range(_SETS):
        if m & own:
            continue
        first = m & -m
        rest = m ^ first
        if rest == 0:
            weight[m] = meeting[m]
        elif rest & (rest - 1) == 0:
            weight[m] = _difference(meeting[m], meeting[first])
        else:
            second = rest & -rest
            third = rest ^ second
            lost = _difference(meeting[first | second], meeting[first])
            lost = _log_add(lost, meeting[first | third])
            weight[m] = _difference(meeting[m], lost)


@numba.njit(**_INNER)
def _log_add(x, y):
    high, low = (x, y) if x > y else (y, x)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@numba.njit(**_INNER)
def _draw_graph(rng, weight):
    """Draw how the variables of the block depend on each other; -1 if nothing is possible."""
    n = len(_GRAPHS)
    logs, top = np.empty(n), -np.inf
    for g in range(n):
        logs[g] = 0.0
        for k in range(BLOCK):
            logs[g] += weight[k, _GRAPHS[g, k]]
        top = max(top, logs[g])
    if top == -np.inf:
        return -1
    total = 0.0
    for g in range(n):
        total += math.exp(logs[g] - top)
    left, chosen = rng.random() * total, -1
    for g in range(n):
        if logs[g] > -np.inf:
            chosen = g
            left -= math.exp(logs[g] - top)
            if left < 0.0:
                break
    return chosen


@numba.njit(**_INNER)
def _draw_meeting(rng, t, child, member, meet, avoid, total, adjacency):
    """Draw a parent set that meets several descendances and avoids others, by going through all sets."""
    own, v = t.layout[child], t.values
    sets, extra = np.int64(1) << own[SIZE], LIST + own[SIZE] - 1
    met, closed = np.zeros(sets, np.int64), np.zeros(sets, np.bool_)
    for m in range(1, sets):
        low, b = m & -m, 0
        while low >> b > 1:
            b += 1
        bits = member[own[LIST + b]]
        met[m] = met[m ^ low] | bits
        closed[m] = closed[m ^ low] or (bits & avoid) != 0
    left, row, mask = rng.random(), np.int64(-1), np.int64(0)
    for r in range(own[ROWS]):
        bits = np.int64(0) if r == 0 else member[own[extra + r]]
        if bits & avoid:
            continue
        base = own[SCORE] + r * sets
        for m in range(sets):
            if not closed[m] and (met[m] | bits) & meet == meet and v[base + m] > -np.inf:
                row, mask = np.int64(r), np.int64(m)
                left -= math.exp(v[base + m] - total)
                if left < 0.0:
                    break
        if left < 0.0:
            break
    for j in range(len(adjacency)):
        adjacency[j, child] = 0
    if row > 0:
        adjacency[own[extra + row], child] = 1
    for b in range(own[SIZE]):
        if mask >> b & 1:
            adjacency[own[LIST + b], child] = 1


@numba.njit(cache=True, nogil=True)
def draw_block(rng, t, adjacency, block):
    """Draw the parents of all variables of a block given all other arcs.

    Parameters
    ----------
    rng : numpy.random.Generator
    t : ParentTables
    adjacency : (d, d) int8 array
        Acyclic; 1 at (parent, child). Changed in place.
    block : (BLOCK,) int64 array
        Different variables.
    """
    d = len(adjacency)
    member, position = np.empty(d, np.int64), np.empty(d, np.int64)
    old = np.empty((BLOCK, d), np.int8)
    for k in range(BLOCK):
        for j in range(d):
            old[k, j] = adjacency[j, block[k]]
            adjacency[j, block[k]] = 0
    _mark(adjacency, block, member, position)
    weight = np.empty((BLOCK, _SETS))
    for k in range(BLOCK):
        _weigh(t, block, k, member, position, weight[k])
    g = _draw_graph(rng, weight)
    for k in range(BLOCK):
        if g < 0:
            for j in range(d):
                adjacency[j, block[k]] = old[k, j]
            continue
        meet, own = _GRAPHS[g, k], np.int64(1) << k
        avoid = (np.int64(_SETS - 1) ^ meet) | own
        if meet & (meet - 1):
            total = weight[k, meet]
            _draw_meeting(rng, t, block[k], member, meet, avoid, total, adjacency)
        else:
            _sum(t, block[k], member, meet, avoid, position)
            nearest = np.int64(_MUST if meet else FREE)
            draw_parents(rng, t, block[k], position, nearest, np.int64(_CLOSED), adjacency)
