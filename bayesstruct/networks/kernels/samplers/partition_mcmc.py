r"""Partition Markov chain Monte Carlo: directed acyclic graphs drawn from a modular posterior.

.. math:: p(G \mid \text{data}) \propto \prod_i e^{s_i(\pi_i)}

A graph has one *ordered partition* of its variables: the first part has no parents, and a variable of
any other part has parents in earlier parts only, at least one of them in the part directly before. The
probability of a partition is a product over variables of sums of parent sets, so the chain moves over
partitions, and graphs are drawn given them: an order alone would count a graph once for each of
its topological orders.

* *Relocation*: a variable is taken out and put back into any part, or as a new part between any two,
  by the probabilities of all places given the rest (a Gibbs step). A variable elsewhere has at most four
  scores: with the one that moves later, earlier, in the part directly before, or as all of that part.
* *Swap* of two variables of different, or adjacent, parts.
* *Split* of a part, or *join* of two adjacent ones.

Then a graph is drawn, arcs of it are reversed with new parents of their ends, and single arcs are changed, many
because a change is cheap (:mod:`bayesstruct.networks.kernels.samplers.structure_mcmc`), and the parents of a few variables are
drawn together (:mod:`bayesstruct.networks.kernels.samplers.parent_blocks`). Changes of the partition
rarely go from one equivalent graph to another; the reversals of covered arcs do.
A sweep starts from a graph and leaves one: the partition is a function of it. Only variables whose
score changes are rescored.

References
----------
Kuipers, J. and Moffa, G. (2017). Partition MCMC for inference on acyclic digraphs. *JASA* 112, 282-299,
sections 3 and 4. -- Grzegorczyk, M. and Husmeier, D. (2008). Improving the structure MCMC sampler for
Bayesian networks by introducing a new edge reversal move. *Machine Learning* 71, 265-305. -- Kuipers, J.,
Suter, P. and Moffa, G. (2022). Efficient sampling and structure learning of Bayesian networks. *Journal of
Computational and Graphical Statistics* 31, 639-650 (relocation by Gibbs, for orders).
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.networks.kernels.parent_sums import (
    FREE,
    draw_parents,
    log_difference,
    log_sum,
    masks,
)
from bayesstruct.networks.kernels.parent_tables import LIST, RATIO, ROWS, SCORE, SIZE, TOP, ZETA
from bayesstruct.networks.kernels.samplers.parent_blocks import draw_blocks
from bayesstruct.networks.kernels.samplers.structure_mcmc import (
    change_arcs,
    flip_covered,
    reverse_arc,
)

__all__ = ["Chain", "Moves", "default_moves", "layers", "start", "sweep"]

_BLOCK = 4  # variables whose parents are drawn together
_PART, _POSITION, _KEPT = 0, 1, 2  # rows of Chain.places
_NODE, _FRESH = 0, 1  # rows of Chain.scores, and where the variable that moves is:
_LATER, _EARLIER, _BEFORE, _ALONE = 2, 3, 4, 5
_OWN, _WEIGHT = 0, 1  # rows of Chain.sums; the others are those of Chain.scores


class Moves(NamedTuple):
    """Numbers of moves in a sweep."""

    relocations: int
    swaps: int
    splits: int  # or joins
    reversals: int  # of arcs of the graph, with new parents of both ends
    changes: int = 0  # of single arcs
    flips: int = 0  # of covered arcs
    blocks: int = 0  # of variables whose parents are drawn together


class Chain(NamedTuple):
    """An ordered partition, and arrays for a change of it."""

    places: np.ndarray
    """(3, d) int64: part of each variable, from 0; position, 2 part + 1, so that even numbers are
    between parts; parts to go back to."""
    scores: np.ndarray
    """(6, d) float64: score of each variable; of a proposal; scores by where the one that moves is."""
    sums: np.ndarray
    """(6, 2 d + 2) float64: sums of the last over parts; score of the one that moves by part; log
    weights of its places, odd in a part, even between two."""


def default_moves(d) -> Moves:
    """Return the numbers of moves of a sweep over ``d`` variables."""
    return Moves(
        d // 8 + 1, d // 16 + 1, d // 16 + 1, d, 25 * d, 20 * d, d // 8 if d > _BLOCK else 0
    )


@kernel
def layers(adjacency, part):
    """Write the part of each variable, the length of the longest path to it; return their number.

    Parameters
    ----------
    adjacency : (d, d) int8 array
        Acyclic; 1 at (parent, child).
    part : (d,) int64 array
        Written.

    Returns
    -------
    int
    """
    d = len(part)
    count = 1
    for i in range(d):
        part[i] = 0
    for _ in range(d):
        changed = False
        for j in range(d):
            for i in range(d):
                if adjacency[i, j] and part[i] >= part[j]:
                    part[j] = part[i] + 1
                    count = max(count, part[j] + 1)
                    changed = True
        if not changed:
            break
    return count


@inner
def start(t, adjacency):
    """Return the chain at the partition of a graph, and its number of parts."""
    d = len(t.layout)
    chain = Chain(np.empty((3, d), np.int64), np.empty((6, d)), np.empty((6, 2 * d + 2)))
    count = layers(adjacency, chain.places[_PART])
    _place(chain)
    for i in range(d):
        chain.scores[_NODE, i] = _node(t, i, chain)
    return chain, count


@inner
def _place(chain):
    for i in range(chain.places.shape[1]):
        chain.places[_POSITION, i] = 2 * chain.places[_PART, i] + 1


@inner
def _node(t, i, chain):
    """Score of a variable in its part."""
    c = chain.places[_PART, i]
    return log_sum(t, i, chain.places[_POSITION], 2 * c - 1 if c > 0 else FREE, 2 * c + 1)


@inner
def _copy(source, target):
    for i in range(len(source)):
        target[i] = source[i]


@inner
def _accept(rng, t, chain, first, last, log_ratio):
    """Rescore the variables of some parts, and keep the change with the right probability."""
    part, node, fresh = chain.places[_PART], chain.scores[_NODE], chain.scores[_FRESH]
    _place(chain)
    _copy(node, fresh)
    for i in range(len(part)):
        if first <= part[i] <= last and log_ratio > -np.inf:
            fresh[i] = _node(t, i, chain)
            log_ratio += fresh[i] - node[i]
    if log_ratio < 0.0 and rng.random() >= math.exp(log_ratio):
        _copy(chain.places[_KEPT], part)
        _place(chain)
        return False
    _copy(fresh, node)
    return True


@inner
def _one_of(rng, part, c):
    """Draw a variable of a part."""
    chosen, seen = -1, 0
    for i in range(len(part)):
        if part[i] == c:
            seen += 1
            if rng.random() * seen < 1.0:
                chosen = i
    return chosen


@inner
def _swap(rng, part, count):
    """Exchange two variables of different parts, half of the time of adjacent ones.

    Like the other proposals it returns the first and last part to rescore, and the log ratio of the
    proposals there and back, ``-inf`` if there is nothing to change.
    """
    d = len(part)
    if count == 1:
        return 0, 0, -np.inf
    if rng.random() < 0.5:
        c = int(rng.random() * (count - 1))
        v, w = _one_of(rng, part, c), _one_of(rng, part, c + 1)
    else:
        v, w = int(rng.random() * d), int(rng.random() * d)
        if part[v] == part[w]:
            return 0, 0, -np.inf
    part[v], part[w] = part[w], part[v]
    # v and w, and all whose allowed or nearest variables have changed.
    return min(part[v], part[w]), max(part[v], part[w]) + 1, 0.0


@inner
def _log_ways(first, second):
    r"""Log of the splits that are as probable as one: ``(k - 1) binomial(k, first)`` for k variables.

    A split takes a part, then the size of its first piece, then its members, all uniformly; a
    join takes one of the adjacent pairs, as many as there were parts before the split.
    """
    k = first + second
    return (
        math.log(k - 1.0)
        + math.lgamma(k + 1.0)
        - math.lgamma(first + 1.0)
        - math.lgamma(second + 1.0)
    )


@inner
def _split(rng, part, count):
    """Split a part in two."""
    c, size = int(rng.random() * count), 0
    for i in range(len(part)):
        size += part[i] == c
    if size == 1:
        return 0, 0, -np.inf
    first = 1 + int(rng.random() * (size - 1))
    need, left = first, size
    for i in range(len(part)):
        if part[i] > c:
            part[i] += 1
        elif part[i] == c:
            if (
                rng.random() * left < need
            ):  # selection sampling: all subsets have the same probability
                need -= 1
            else:
                part[i] = c + 1
            left -= 1
    return c + 1, c + 2, _log_ways(first, size - first)


@inner
def _join(rng, part, count):
    """Join two adjacent parts."""
    if count == 1:
        return 0, 0, -np.inf
    c, first, second = int(rng.random() * (count - 1)), 0, 0
    for i in range(len(part)):
        first += part[i] == c
        second += part[i] == c + 1
        if part[i] > c:
            part[i] -= 1
    return c, c + 1, -_log_ways(first, second)


@inner
def _take_out(part, v, count):
    """Leave a variable out of its part, and its part if it was alone; return the number of parts."""
    c, alone = part[v], True
    for i in range(len(part)):
        alone = alone and (i == v or part[i] != c)
    if alone:
        for i in range(len(part)):
            if part[i] > c:
                part[i] -= 1
    return count - 1 if alone else count


@inner
def _row_sums(own, values, position, near, limit, allowed, early):
    """Add ratios up: over rows before ``near`` for two masks, and over those from there on."""
    n, extra = own[ROWS], LIST + own[SIZE] - 1
    a, b = own[RATIO] + allowed * n, own[RATIO] + early * n
    every, before, last = values[a], values[b], 0.0
    for e in range(1, n):
        p = position[own[extra + e]]
        if p < near:
            every += values[a + e]
            before += values[b + e]
        elif p < limit:
            last += values[a + e]
    return every, before, last


@inner
def _shrink(own, values, mask, larger):
    """Return the unit of the ratios of a mask in units of a larger one."""
    low = values[own[TOP] + mask]
    return math.exp(low - values[own[TOP] + larger]) if low > -np.inf else 0.0


@inner
def _first_forms(t, v, i, form):
    """Scores of a variable of the first part: no parents, or ``v`` alone."""
    own, values = t.layout[i], t.values
    role = own[LIST + len(t.layout) - 1 + v]
    at = np.int64(1) << (role - 1) if role > 0 else -role << own[SIZE]
    form[_LATER, i] = form[_EARLIER, i] = form[_BEFORE, i] = values[own[SCORE]]
    form[_ALONE, i] = values[own[SCORE] + at] if role != 0 else -np.inf


@inner
def _score_forms(t, v, i, chain):
    """Fill the four scores of variable ``i`` by where ``v`` is; sums that they share are made once."""
    own, values, form = t.layout[i], t.values, chain.scores
    c, position = chain.places[_PART, i], chain.places[_POSITION]
    if c == 0:
        _first_forms(t, v, i, form)
        return
    near, limit = 2 * c - 1, 2 * c + 1
    position[v] = 2 * len(position) + 2
    allowed, early = masks(own, position, near, limit)
    every, before, last = _row_sums(own, values, position, near, limit, allowed, early)
    top, role = values[own[TOP] + allowed], own[LIST + len(position) - 1 + v]
    some = 0.0 if allowed == early else 1.0  # whether a candidate is near
    unit = _shrink(own, values, early, allowed)
    form[_LATER, i] = log_difference(top, last, some * every, some * before * unit)
    form[_EARLIER, i] = form[_BEFORE, i] = form[_LATER, i]
    form[_ALONE, i] = -np.inf
    if role < 0:
        n = own[ROWS]
        form[_ALONE, i] = values[own[ZETA] + allowed * n - role]
        more = values[own[RATIO] + allowed * n - role]
        form[_BEFORE, i] = log_difference(top, last + more, some * every, some * before * unit)
        before += values[own[RATIO] + early * n - role]
        form[_EARLIER, i] = log_difference(top, last, some * (every + more), some * before * unit)
    elif role > 0:
        bit = np.int64(1) << (role - 1)
        with_v = allowed | bit
        top = values[own[TOP] + with_v]
        every_v, before_v, last_v = _row_sums(
            own, values, position, near, limit, with_v, early | bit
        )
        before_v *= some * _shrink(own, values, early | bit, with_v)
        form[_EARLIER, i] = log_difference(top, last_v, some * every_v, before_v)
        before *= _shrink(own, values, early, with_v)
        form[_BEFORE, i] = log_difference(top, last_v, every_v, before)
        without = (every + last) * _shrink(own, values, allowed, with_v)
        form[_ALONE, i] = log_difference(top, 0.0, every_v + last_v, without)
    for f in range(_LATER, _ALONE + 1):
        if math.isnan(form[f, i]):
            form[f, i] = _score_form(t, v, i, position, c, f)


@inner
def _score_form(t, v, i, position, c, f):
    """Score of variable ``i`` in part ``c`` if ``v`` is at one of the four places."""
    near, limit = 2 * c - 1, 2 * c + 1
    if f == _LATER:
        position[v] = 2 * len(position) + 2
    elif f == _EARLIER:
        position[v] = 0
    elif f == _BEFORE:
        position[v] = near
    else:
        position[v] = near = 2 * c
    return log_sum(t, i, position, near, limit)


@inner
def _weigh_places(t, v, chain, m):
    """Write the log probabilities of all places of a variable among ``m`` parts without it."""
    sums, own, weight = chain.sums, chain.sums[_OWN], chain.sums[_WEIGHT]
    for f in range(_LATER, _ALONE + 1):
        for c in range(m + 2):
            sums[f, c] = 0.0
    for i in range(chain.places.shape[1]):
        if i != v:
            _score_forms(t, v, i, chain)
            for f in range(_LATER, _ALONE + 1):
                sums[f, chain.places[_PART, i]] += chain.scores[f, i]
    for c in range(m + 1):
        near = 2 * c - 1 if c > 0 else FREE
        own[c] = log_sum(t, v, chain.places[_POSITION], near, 2 * c)
    for c in range(m - 1, -1, -1):
        sums[_EARLIER, c] += sums[_EARLIER, c + 1]  # now of this part and all later ones
    before = 0.0
    for c in range(m + 1):
        # Parts from m on are empty: their sums are zero.
        weight[2 * c] = own[c] + before + sums[_ALONE, c] + sums[_EARLIER, c + 1]
        if c < m:
            before += sums[_LATER, c]
            weight[2 * c + 1] = own[c] + before + sums[_BEFORE, c + 1]
            weight[2 * c + 1] += sums[_EARLIER, min(c + 2, m)]


@inner
def draw_index(rng, logs, n):
    """Draw an index below ``n`` with probabilities proportional to the exponentials of ``logs``."""
    top, total = -np.inf, 0.0
    for k in range(n):
        top = max(top, logs[k])
    for k in range(n):
        total += math.exp(logs[k] - top)
    left = rng.random() * total
    chosen = 0
    for k in range(n):
        if logs[k] > -np.inf:
            chosen = k
            left -= math.exp(logs[k] - top)
            if left < 0.0:
                break
    return chosen


@inner
def relocate(rng, t, chain, v, count):
    """Draw the place of a variable given all others; return the number of parts."""
    part, scores = chain.places[_PART], chain.scores
    m = _take_out(part, v, count)
    _place(chain)
    _weigh_places(t, v, chain, m)
    k = draw_index(rng, chain.sums[_WEIGHT], 2 * m + 1)
    p, new = k // 2, k % 2 == 0
    for i in range(len(part)):
        c = part[i]
        if new:
            form = _LATER if c < p else _ALONE if c == p else _EARLIER
            part[i] += c >= p
        else:
            form = _LATER if c <= p else _BEFORE if c == p + 1 else _EARLIER
        scores[_NODE, i] = scores[form, i]
    part[v], scores[_NODE, v] = p, chain.sums[_OWN, p]
    _place(chain)
    return m + 1 if new else m


@inner
def draw_graph(rng, t, chain, adjacency):
    """Draw a graph given the partition."""
    for i in range(len(adjacency)):
        c = chain.places[_PART, i]
        near = 2 * c - 1 if c > 0 else FREE
        draw_parents(rng, t, i, chain.places[_POSITION], near, 2 * c + 1, adjacency)


@kernel
def sweep(rng, t, adjacency, moves):
    """Move a graph by moves of its partition, then by changes of its arcs.

    The distribution that is left invariant has the probability of a graph proportional to the exponential
    of the sum of :func:`bayesstruct.networks.kernels.parent_tables.family_scores`.

    Parameters
    ----------
    rng : numpy.random.Generator
    t : ParentTables
    adjacency : (d, d) int8 array
        Acyclic, of finite scores; 1 at (parent, child). Changed in place.
    moves : Moves

    Returns
    -------
    int
        Reversals that were accepted, of those with new parents.
    """
    chain, count = start(t, adjacency)
    for _ in range(moves.relocations):
        count = relocate(rng, t, chain, int(rng.random() * len(adjacency)), count)
    part = chain.places[_PART]
    for m in range(moves.swaps + moves.splits):
        _copy(part, chain.places[_KEPT])
        change = 0 if m < moves.swaps else 1 if rng.random() < 0.5 else -1
        if change == 0:
            first, last, log_ratio = _swap(rng, part, count)
        elif change == 1:
            first, last, log_ratio = _split(rng, part, count)
        else:
            first, last, log_ratio = _join(rng, part, count)
        if _accept(rng, t, chain, first, last, log_ratio):
            count += change
    draw_graph(rng, t, chain, adjacency)
    accepted = 0
    for _ in range(moves.reversals):
        accepted += reverse_arc(rng, t, adjacency)
    if moves.changes > 0:
        change_arcs(rng, t, adjacency, moves.changes)
    if moves.flips > 0:
        flip_covered(rng, t, adjacency, moves.flips)
    if moves.blocks > 0:
        draw_blocks(rng, t, adjacency, _BLOCK, moves.blocks)
    return accepted
