r"""Moves over directed acyclic graphs: single arcs, reversals with new parents, and greedy search.

.. math:: p(G \mid \text{data}) \propto \prod_i e^{s_i(\pi_i)}

* A change adds, deletes or reverses one arc (Madigan and York 1995). An ordered pair of variables and
  the kind of change are drawn by fixed probabilities, so that the proposal is symmetric: no neighbours need
  counting. Most pairs are a variable and one of its candidates.
* :func:`reverse_arc` reverses an arc and draws new parents for both ends (Grzegorczyk and Husmeier 2008).
* :func:`flip_covered` goes from a graph to equivalent ones, one arc at a time (Chickering 1995).
* :func:`hill_climb` takes the best change of one arc, remembering recent ones (tabu search).

References
----------
Chickering, D. M. (1995). A transformational characterization of equivalent Bayesian network structures. *UAI*,
87-98. -- Madigan, D. and York, J. (1995). Bayesian graphical models for discrete data. *International Statistical
Review* 63, 215-232. -- Giudici, P. and Castelo, R. (2003). Improving Markov chain Monte Carlo model search
for data mining. *Machine Learning* 50, 127-158. -- Grzegorczyk, M. and Husmeier, D. (2008). Improving the
structure MCMC sampler for Bayesian networks by introducing a new edge reversal move. *Machine Learning* 71,
265-305, section 3. -- Glover, F. (1989). Tabu search, part I. *ORSA Journal on Computing* 1, 190-206.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.networks.kernels import acyclicity
from bayesstruct.networks.kernels.parent_sums import FREE, draw_parents, log_sum
from bayesstruct.networks.kernels.parent_tables import (
    LIST,
    SCORE,
    SIZE,
    family_score,
    family_scores,
    may_be_parent,
)

__all__ = [
    "Moves",
    "change_arcs",
    "change_probability",
    "default_moves",
    "flip_covered",
    "hill_climb",
    "reverse_arc",
    "sweep",
]

_ADD, _DELETE, _REVERSE, _NONE = 0, 1, 2, 3
_can_add, _can_reverse = acyclicity.can_add, acyclicity.can_reverse
_add, _delete, _reverse, _build = (
    acyclicity.add,
    acyclicity.delete,
    acyclicity.reverse,
    acyclicity.build,
)
_MASK, _ROW = 0, 1  # rows of the places of parent sets in the tables
_EQUAL = 1e-9  # relative difference of scores that rounding may make
_OPEN, _CLOSED = 0, 2  # positions of variables that may, and may not, be parents


@inner
def _close_descendants(adjacency, i, position, stack):
    """Close the positions of a variable and its descendants, open all others."""
    for j in range(len(position)):
        position[j] = _OPEN
    position[i] = _CLOSED
    stack[0], height = i, 1
    while height > 0:
        height -= 1
        parent = stack[height]
        for j in range(len(position)):
            if adjacency[parent, j] and position[j] == _OPEN:
                position[j] = _CLOSED
                stack[height] = j
                height += 1


@inner
def _pick_arc(rng, adjacency, children):
    """Draw an arc; return it and the number of arcs. `children` is overwritten."""
    d, arcs = len(adjacency), 0
    for i in range(d):
        children[i] = 0
        for j in range(d):
            children[i] += adjacency[i, j]
        arcs += children[i]
    k = int(rng.random() * arcs)
    for i in range(d if arcs > 0 else 0):
        if k < children[i]:
            for j in range(d):
                if adjacency[i, j]:
                    if k == 0:
                        return i, j, arcs
                    k -= 1
        k -= children[i]
    return -1, -1, 0


@inner
def _count(adjacency):
    arcs = 0
    for i in range(len(adjacency)):
        for j in range(len(adjacency)):
            arcs += adjacency[i, j]
    return arcs


@inner
def _log_correction(arcs_now, arcs_then, gained, lost):
    """Log of the ratio of Metropolis and Hastings (Grzegorczyk and Husmeier 2008, eq. 17)."""
    return math.log(arcs_now / arcs_then) + gained - lost


@inner
def reverse_arc(rng, t, adjacency):
    r"""Propose the reversal of an arc together with new parents of both its ends.

    The arc ``i -> j`` is drawn among all; both ends lose their parents; ``i`` gets a parent set with ``j``
    in it, then ``j`` any, each drawn by its score from the sets that close no cycle. The scores
    cancel in the ratio; the sums over these sets remain, for the way there and back.

    Parameters
    ----------
    rng : numpy.random.Generator
    t : ParentTables
    adjacency : (d, d) int8 array
        Changed in place.

    Returns
    -------
    bool
        Whether the proposal was accepted.
    """
    d = len(adjacency)
    position, stack = np.empty(d, np.int64), np.empty(d, np.int64)
    i, j, arcs = _pick_arc(rng, adjacency, stack)
    if arcs == 0 or not may_be_parent(t, i, j):
        return False
    # Not constants: Numba would compile functions that take them once more for each.
    free, must, closed = np.int64(FREE), np.int64(1), np.int64(_CLOSED)
    old, fresh = np.empty((2, d), np.int8), arcs
    for k in range(d):
        old[0, k], old[1, k] = adjacency[k, i], adjacency[k, j]
        fresh -= old[0, k] + old[1, k]
        adjacency[k, i] = 0
    _close_descendants(adjacency, i, position, stack)
    lost = log_sum(t, i, position, free, must)  # parents of i with those of j in place
    for k in range(d):
        adjacency[k, j] = 0
    _close_descendants(adjacency, j, position, stack)
    position[i] = must
    lost += log_sum(t, j, position, must, closed)
    _close_descendants(adjacency, i, position, stack)
    position[j] = must
    gained = log_sum(t, i, position, must, closed)
    accepted = False
    if gained > -np.inf:
        draw_parents(rng, t, i, position, must, closed, adjacency)
        _close_descendants(adjacency, j, position, stack)
        rest = log_sum(t, j, position, free, must)
        if rest > -np.inf:
            draw_parents(rng, t, j, position, free, must, adjacency)
            for k in range(d):
                fresh += adjacency[k, i] + adjacency[k, j]
            log_ratio = _log_correction(arcs, fresh, gained + rest, lost)
            accepted = log_ratio >= 0.0 or rng.random() < math.exp(log_ratio)
    if not accepted:
        for k in range(d):
            adjacency[k, i], adjacency[k, j] = old[0, k], old[1, k]
    return accepted


@inner
def _families(t, adjacency, places):
    """Write where the parent set of each variable is tabulated: mask of candidates and row."""
    d = len(adjacency)
    for j in range(d):
        places[_MASK, j] = places[_ROW, j] = 0
        for i in range(d):
            if adjacency[i, j]:
                places[_MASK, j], places[_ROW, j] = _toggled(t, places, i, j)


@inner
def _toggled(t, places, i, j):
    """Place of the parent set of ``j`` with ``i`` added or taken out; row -1 if not tabulated."""
    role = t.layout[j, LIST + len(t.layout) - 1 + i]
    mask, row = places[_MASK, j], places[_ROW, j]
    if role > 0:
        mask ^= np.int64(1) << (role - 1)
    elif role < 0 and row == 0:
        row = -role
    elif role < 0 and row == -role:
        row = np.int64(0)
    else:
        row = np.int64(-1)
    return mask, row


@inner
def _look_up(t, j, mask, row):
    """Score of a place."""
    if row < 0:
        return -np.inf
    own = t.layout[j]
    return t.values[own[SCORE] + (row << own[SIZE]) + mask]


@inner
def _parent_bits(adjacency, bits):
    """Write the parents of each variable as bits of words of 64."""
    bits[:] = 0
    for i in range(len(adjacency)):
        for j in range(len(adjacency)):
            if adjacency[i, j]:
                bits[j, i >> 6] |= np.int64(1) << (i & 63)


@inner
def _is_covered(bits, i, j):
    """Whether the parents of ``j`` are ``i`` and the parents of ``i``."""
    for w in range(bits.shape[1]):
        own = np.int64(1) << (i & 63) if w == i >> 6 else np.int64(0)
        if bits[j, w] != bits[i, w] | own:
            return False
    return True


@inner
def _list_arcs(adjacency, arcs):
    """Write the arcs, one a row; return their number."""
    n = 0
    for i in range(len(adjacency)):
        for j in range(len(adjacency)):
            if adjacency[i, j]:
                arcs[n, 0], arcs[n, 1] = i, j
                n += 1
    return n


@kernel
def flip_covered(rng, t, adjacency, attempts):
    r"""Reverse covered arcs, those whose ends have the same other parents.

    Such a reversal closes no cycle and leads to a graph that implies the same conditional independences, and
    sequences of them lead to all of these (Chickering 1995). An arc is drawn uniformly; the number of arcs
    does not change, and the reversed arc is covered: the proposal is symmetric. Under a score that is
    the same for equivalent graphs all are accepted.

    Parameters
    ----------
    rng : numpy.random.Generator
    t : ParentTables
    adjacency : (d, d) int8 array
        Acyclic, of finite scores. Changed in place.
    attempts : int

    Returns
    -------
    int
        Arcs that were reversed.
    """
    d = len(adjacency)
    arcs, bits = np.empty((_count(adjacency), 2), np.int64), np.empty((d, (d + 63) // 64), np.int64)
    places = np.empty((2, d), np.int64)
    _families(t, adjacency, places)
    _parent_bits(adjacency, bits)
    n, flips = _list_arcs(adjacency, arcs), 0
    for _ in range(attempts if n > 0 else 0):
        k = int(rng.random() * n)
        i, j = arcs[k]
        if _is_covered(bits, i, j) and _flip(rng, t, places, i, j):
            adjacency[i, j], adjacency[j, i] = 0, 1
            arcs[k, 0], arcs[k, 1] = j, i
            bits[j, i >> 6] ^= np.int64(1) << (i & 63)
            bits[i, j >> 6] ^= np.int64(1) << (j & 63)
            flips += 1
    return flips


@inner
def _flip(rng, t, places, i, j):
    """Propose the places of parent sets after a reversal; whether it was accepted."""
    of_j, of_i = _toggled(t, places, i, j), _toggled(t, places, j, i)
    gain = _gain(t, places, j, of_j) + _gain(t, places, i, of_i)
    accepted = gain >= 0.0 or rng.random() < math.exp(gain)
    if accepted:
        places[_MASK, j], places[_ROW, j] = of_j
        places[_MASK, i], places[_ROW, i] = of_i
    return accepted


@inner
def _gain(t, places, j, place):
    """Change of the score of ``j`` if its parent set is that of another place."""
    return _look_up(t, j, place[0], place[1]) - _look_up(t, j, places[_MASK, j], places[_ROW, j])


class Moves(NamedTuple):
    """Numbers of moves in a sweep."""

    changes: int  # of one arc
    reversals: int  # with new parents of both ends
    flips: int = 0  # of covered arcs


def default_moves(d) -> Moves:
    """Return the numbers of moves of a sweep over ``d`` variables."""
    return Moves(d * d, d, 20 * d)


@inner
def _kind(adjacency, ancestors, i, j, reverse):
    """Return the kind of a change of the pair i, j: a reversal, an addition, a deletion, or not legal."""
    if adjacency[i, j]:
        if not reverse:
            return _DELETE
        return _REVERSE if _can_reverse(ancestors, i, j) else _NONE
    if reverse or adjacency[j, i]:
        return _NONE
    return _ADD if _can_add(ancestors, i, j) else _NONE


@inner
def _apply(adjacency, ancestors, i, j, kind):
    if kind == _ADD:
        _add(adjacency, ancestors, i, j)
    elif kind == _DELETE:
        _delete(adjacency, ancestors, i, j)
    else:
        _reverse(adjacency, ancestors, i, j)


@inner
def _draw_pair(rng, t, likely):
    """Draw an ordered pair, as probable as its reverse: any, or a variable and a candidate of it."""
    d = len(t.layout)
    i, j = int(rng.random() * d), int(rng.random() * d)
    if not likely:
        return i, j
    size = t.layout[j, SIZE]
    i = t.layout[j, LIST + int(rng.random() * size)] if size > 0 else j
    return (i, j) if rng.random() < 0.5 else (j, i)


@inner
def _change_arc(rng, t, adjacency, ancestors, places, likely):
    """Propose to add, delete or reverse an arc."""
    i, j = _draw_pair(rng, t, likely)
    reverse = rng.random() < 0.5
    if i == j or (reverse and not adjacency[i, j]):
        return
    of_j, of_i = _toggled(t, places, i, j), (places[_MASK, i], places[_ROW, i])
    if reverse:
        of_i = _toggled(t, places, j, i)
    gain = _gain(t, places, j, of_j) + _gain(t, places, i, of_i)
    if gain < 0.0 and rng.random() >= math.exp(gain):
        return
    kind = _kind(adjacency, ancestors, i, j, reverse)
    if kind != _NONE:
        _apply(adjacency, ancestors, i, j, kind)
        places[_MASK, j], places[_ROW, j] = of_j
        places[_MASK, i], places[_ROW, i] = of_i


@inner
def change_arcs(rng, t, adjacency, changes):
    """Propose changes of one arc, four in five of them between a variable and one of its candidates.

    Parameters
    ----------
    rng : numpy.random.Generator
    t : ParentTables
    adjacency : (d, d) int8 array
        Acyclic, of finite scores. Changed in place.
    changes : int
    """
    d = len(adjacency)
    ancestors, places = np.empty((d, d), np.uint8), np.empty((2, d), np.int64)
    _build(adjacency, ancestors)
    _families(t, adjacency, places)
    for m in range(changes):
        _change_arc(rng, t, adjacency, ancestors, places, m % 5 > 0)


@kernel
def change_probability(t, adjacency):
    r"""Largest probability of a change, given the rest of the graph.

    A change gives one variable other parents, or reverses an arc and keeps the other parents of both its ends.

    Parameters
    ----------
    t : ParentTables
    adjacency : (d, d) int8 array
        Acyclic, of finite scores.

    Returns
    -------
    float
        From 0 to 1.
    """
    d, most = len(adjacency), 0.0
    ancestors, places = np.empty((d, d), np.uint8), np.empty((2, d), np.int64)
    position, stack = np.empty(d, np.int64), np.empty(d, np.int64)
    free, limit = np.int64(FREE), np.int64(1)
    _build(adjacency, ancestors)
    _families(t, adjacency, places)
    for j in range(d):
        _close_descendants(adjacency, j, position, stack)
        own = _look_up(t, j, places[_MASK, j], places[_ROW, j])
        most = max(most, -math.expm1(own - log_sum(t, j, position, free, limit)))
        for i in range(d):
            if _kind(adjacency, ancestors, i, j, True) == _REVERSE:
                of_j, of_i = _toggled(t, places, i, j), _toggled(t, places, j, i)
                gain = _gain(t, places, j, of_j) + _gain(t, places, i, of_i)
                most = max(most, 1.0 / (1.0 + math.exp(-gain)))
    return most


@kernel
def sweep(rng, t, adjacency, moves):
    """Change single arcs of a graph, reverse arcs with new parents of their ends, then covered arcs.

    Leaves the distribution invariant that :func:`bayesstruct.networks.kernels.samplers.partition_mcmc.sweep` does, and mixes more
    slowly.

    Parameters
    ----------
    rng : numpy.random.Generator
    t : ParentTables
    adjacency : (d, d) int8 array
        Acyclic, of finite scores; 1 at (parent, child). Changed in place.
    moves : Moves
    """
    change_arcs(rng, t, adjacency, moves.changes)
    for _ in range(moves.reversals):
        reverse_arc(rng, t, adjacency)
    flip_covered(rng, t, adjacency, moves.flips)


@inner
def _set_gains(t, adjacency, node, gains, j):
    """Write the gain by a toggle of each arc into a variable."""
    for i in range(len(adjacency)):
        if i != j:
            adjacency[i, j] ^= 1
            gains[i, j] = family_score(t, j, adjacency) - node[j]
            adjacency[i, j] ^= 1


@inner
def _best_change(adjacency, ancestors, gains, until, step, needed):
    """Find the best legal change that is not tabu, or gains more than ``needed``."""
    d = len(adjacency)
    best, where = -np.inf, (0, 0, _NONE)
    for i in range(d):
        for j in range(d):
            for reverse in range(2):
                gain = gains[i, j] + (gains[j, i] if reverse else 0.0)
                if gain > best and (until[i, j] <= step or gain > needed):
                    kind = _kind(adjacency, ancestors, i, j, reverse == 1) if i != j else _NONE
                    if kind != _NONE:
                        best, where = gain, (i, j, kind)
    return best, where


@kernel
def hill_climb(t, adjacency, tenure, patience):
    """Improve a graph by the best addition, deletion or reversal of an arc, one after the other.

    A pair that was changed is left alone for some steps, unless a new best graph results; so
    the search goes on from a local optimum, by the change that loses least.

    Parameters
    ----------
    t : ParentTables
    adjacency : (d, d) int8 array
        Start, acyclic and of finite scores; the best graph found is written.
    tenure : int
        Steps for which a pair is left alone.
    patience : int
        Steps without a new best graph after which the search ends; 0 is plain greedy search.

    Returns
    -------
    float
        Sum of the scores of the best graph.
    """
    d = len(adjacency)
    here, ancestors = adjacency.copy(), np.empty((d, d), np.uint8)
    _build(here, ancestors)
    node, gains, until = family_scores(t, here), np.zeros((d, d)), np.zeros((d, d), np.int64)
    for j in range(d):
        _set_gains(t, here, node, gains, j)
    best = now = node.sum()
    step = vain = 0
    while vain <= patience:
        step += 1
        gain, (i, j, kind) = _best_change(
            here, ancestors, gains, until, step, best - now + _EQUAL * abs(best)
        )
        if gain == -np.inf:
            break
        _apply(here, ancestors, i, j, kind)
        until[i, j] = until[j, i] = step + 1 + tenure
        node[j] = family_score(t, j, here)
        _set_gains(t, here, node, gains, j)
        if kind == _REVERSE:
            node[i] = family_score(t, i, here)
            _set_gains(t, here, node, gains, i)
        now, vain = node.sum(), vain + 1
        if now > best + _EQUAL * abs(best):
            best, vain = now, 0
            for k in range(d):
                for m in range(d):
                    adjacency[k, m] = here[k, m]
    return best
