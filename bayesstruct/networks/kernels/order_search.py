r"""Search of the best directed acyclic graph over orders.

.. math:: \max_G \sum_i s_i(\pi_i) = \max_{\text{orders}} \sum_i \max_{\pi \subseteq \text{before } i} s_i(\pi)

Given an order the best parents are looked up: the best subset of each mask of candidates is tabulated
once. A variable is taken out of the order and put back at the best of all places, one after the other
until nothing improves. Then some variables are put elsewhere at random and the search goes on
from there, as long as it does not get worse; after many vain attempts it starts from a new random
order. Equally good places are drawn from, so that the search moves along plateaus (equivalent graphs have
many orders). There is no certificate.

References
----------
Teyssier, M. and Koller, D. (2005). Ordering-based search: a simple and effective algorithm for learning
Bayesian networks. *UAI*, 584-590. -- Kuipers, J., Suter, P. and Moffa, G. (2022). Efficient sampling and
structure learning of Bayesian networks. *Journal of Computational and Graphical Statistics* 31, 639-650.
-- Lee, C. and van Beek, P. (2017). Metaheuristics for score-and-search Bayesian network structure learning.
*Canadian AI*, 129-141 (perturbed local search by insertion).
"""

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.networks.kernels.acyclicity import build
from bayesstruct.networks.kernels.parent_tables import LIST, ROWS, SCORE, SIZE, required_parents
from bayesstruct.networks.kernels.samplers.order_mcmc import put_back, take_out

__all__ = ["best_graph", "best_tables", "random_order"]

_IMPOSSIBLE = -1e12  # in place of -inf: orders with fewer impossible variables are better
_EQUAL = 1e-9  # relative difference of scores that rounding may make
_PATIENCE = 8  # vain attempts for each variable before a new start
_BEFORE, _AFTER, _OWN, _WEIGHT = range(4)  # rows of scores


@kernel
def best_tables(t):
    """Tabulate the best score over the subsets of each mask.

    Parameters
    ----------
    t : ParentTables

    Returns
    -------
    start : (d + 1,) int64 array
        Of the block of each child.
    best : float64 array
        [mask, row] of each child.
    """
    d = len(t.layout)
    start = np.zeros(d + 1, np.int64)
    for i in range(d):
        start[i + 1] = start[i] + (t.layout[i, ROWS] << t.layout[i, SIZE])
    best = np.empty(start[d])
    for i in range(d):
        n, sets = t.layout[i, ROWS], np.int64(1) << t.layout[i, SIZE]
        for r in range(n):
            for m in range(sets):
                x = t.values[t.layout[i, SCORE] + r * sets + m]
                rest = m
                while rest:
                    x = max(x, best[start[i] + (m ^ (rest & -rest)) * n + r])
                    rest &= rest - 1
                best[start[i] + m * n + r] = x
    return start, best


@inner
def _mask(own, position, limit):
    allowed = np.int64(0)
    for b in range(own[SIZE]):
        if position[own[LIST + b]] < limit:
            allowed |= np.int64(1) << b
    return allowed


@inner
def _best_row(own, best, position, limit, first):
    """Best score of a child, of parents before ``limit``, and its row; ``first`` of the mask."""
    extra, row = LIST + own[SIZE] - 1, 0
    x = best[first]
    for e in range(1, own[ROWS]):
        if best[first + e] > x and position[own[extra + e]] < limit:
            x, row = best[first + e], e
    return x, row


@inner
def _log_max(own, start, best, position, limit):
    """Greatest score of parents before ``limit``."""
    first = start + _mask(own, position, limit) * own[ROWS]
    return max(_best_row(own, best, position, limit, first)[0], _IMPOSSIBLE)


@inner
def _log_max_both(own, start, best, position, limit, role):
    """Greatest score of parents before ``limit`` without a later variable, and with it."""
    mask = _mask(own, position, limit)
    first = start + mask * own[ROWS]
    after = max(_best_row(own, best, position, limit, first)[0], _IMPOSSIBLE)
    before = after
    if role < 0:
        before = max(before, best[first - role])
    elif role > 0:
        first = start + (mask | np.int64(1) << (role - 1)) * own[ROWS]
        before = max(before, _best_row(own, best, position, limit, first)[0])
    return after, before


@inner
def _relocate(rng, t, tables, order, position, scores, v):
    """Put a variable at the best of all places, any of those equally good; return the score."""
    d = len(order)
    before, after, own, weight = scores[_BEFORE], scores[_AFTER], scores[_OWN], scores[_WEIGHT]
    take_out(order, position, v)
    total, position[v] = 0.0, 2 * d
    for k in range(d - 1):
        i = order[k]
        after[k], before[k] = _log_max_both(
            t.layout[i], tables[0][i], tables[1], position, 2 * k + 1, t.layout[i, LIST + d - 1 + v]
        )
        total += before[k]
    top = -np.inf
    for k in range(d):
        own[k] = _log_max(t.layout[v], tables[0][v], tables[1], position, 2 * k)
        weight[k] = own[k] + total
        top = max(top, weight[k])
        if k < d - 1:
            total += after[k] - before[k]
    place, seen = 0, 0
    for k in range(d):
        if weight[k] >= top - _EQUAL * abs(top):
            seen += 1
            if rng.random() * seen < 1.0:
                place = k
    put_back(order, position, v, place)
    return top


@inner
def random_order(rng, required, order):
    """Write a random order in which required parents come before their children.

    Parameters
    ----------
    rng : numpy.random.Generator
    required : (d, d) bool array
        Acyclic; True at (parent, child).
    order : (d,) int64 array
        Written.
    """
    d = len(order)
    waiting = np.zeros(d, np.int64)
    for i in range(d):
        for j in range(d):
            waiting[i] += required[j, i]
    for k in range(d):
        chosen, seen = -1, 0
        for i in range(d):
            if waiting[i] == 0:
                seen += 1
                if rng.random() * seen < 1.0:
                    chosen = i
        order[k], waiting[chosen] = chosen, -1
        for i in range(d):
            waiting[i] -= required[chosen, i]


@inner
def _climb(rng, t, tables, order, position, scores, score):
    """Relocate variables one after the other until nothing improves; return the score."""
    d = len(order)
    queue, vain = order.copy(), 0
    for k in range(d):
        queue[k] = k
    while vain < d:
        for k in range(d):
            other = k + int(rng.random() * (d - k))
            queue[k], queue[other] = queue[other], queue[k]
            found = _relocate(rng, t, tables, order, position, scores, queue[k])
            vain = 0 if found > score + _EQUAL * abs(score) else vain + 1
            score = found
            if vain >= d:
                break
    return score


@inner
def _disturb(rng, order, position, moves):
    """Put some variables elsewhere."""
    d = len(order)
    for _ in range(moves):
        v = order[int(rng.random() * d)]
        take_out(order, position, v)
        put_back(order, position, v, int(rng.random() * d))


@kernel
def _search(rng, t, tables, required, climbs, order, given):
    """Write the best order found in a number of climbs, the first from the order if it is given; return its score."""
    d = len(order)
    here, there, position = order.copy(), order.copy(), order.copy()
    for k in range(d):
        position[k] = k
    scores = np.empty((4, d))
    best = now = -np.inf
    vain = _PATIENCE * d
    for turn in range(climbs):
        if vain >= _PATIENCE * d:
            now, vain = -np.inf, 0
            if not (given and turn == 0):
                random_order(rng, required, there)
            for k in range(d):
                position[there[k]] = k
        else:
            for k in range(d):
                there[k] = here[k]
                position[here[k]] = k
            _disturb(rng, there, position, 3 + int(rng.random() * 8.0))
        score = _climb(rng, t, tables, there, position, scores, -1e300)
        vain = 0 if score > now + _EQUAL * abs(score) else vain + 1
        if score >= now - _EQUAL * abs(score):
            now = score
            for k in range(d):
                here[k] = there[k]
        if score > best + _EQUAL * abs(score):
            best = score
            for k in range(d):
                order[k] = there[k]
    return best


@kernel
def _best_parents(t, tables, order, adjacency):
    """Write the best graph of an order."""
    d = len(order)
    position = np.empty(d, np.int64)
    for k in range(d):
        position[order[k]] = k
    adjacency[:] = 0
    for i in range(d):
        own = t.layout[i]
        allowed = _mask(own, position, position[i])
        x, row = _best_row(
            own, tables[1], position, position[i], tables[0][i] + allowed * own[ROWS]
        )
        if row > 0:
            adjacency[own[LIST + own[SIZE] - 1 + row], i] = 1
        mask = allowed
        while t.values[own[SCORE] + (row << own[SIZE]) + mask] < x:
            mask = (mask - 1) & allowed
        for b in range(own[SIZE]):
            if mask >> b & 1:
                adjacency[own[LIST + b], i] = 1


def best_graph(tables, rng, *, climbs=None, order=None):
    """Search for the graph of the greatest sum of scores.

    Parameters
    ----------
    tables : ParentTables
    rng : numpy.random.Generator
    climbs : int, optional
        Local searches in all, by default 16 for each variable.
    order : (d,) int array_like, optional
        Where the first search begins; a random order by default.

    Returns
    -------
    adjacency : (d, d) int8 array
        Acyclic; 1 at (parent, child).
    order : (d,) int64 array
        A topological order of it.
    score : float
        Sum of the scores of the tables; the best found, not proved to be the best.

    Raises
    ------
    ValueError
        If no graph of finite score was found.
    """
    d, given = tables.d, order is not None
    order = np.array(order if given else np.arange(d), np.int64)
    adjacency, required = np.zeros((d, d), np.int8), required_parents(tables)
    best, score = best_tables(tables), -np.inf
    if build(required.astype(np.int8), np.empty((d, d), np.uint8)):
        score = _search(rng, tables, best, required, climbs or 16 * d, order, given)
    if score < 0.5 * _IMPOSSIBLE:
        raise ValueError(
            "no acyclic graph was found whose parent sets are all possible: add the required parents "
            "to the candidates, or relax the constraints"
        )
    _best_parents(tables, best, order, adjacency)
    return adjacency, order, score
