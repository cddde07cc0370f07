r"""Moves over directed acyclic graphs: single arcs, reversals with new parents, and greedy search.

.. math:: p(G \mid \text{data}) \propto \prod_i e^{s_i(\pi_i)}

* A change adds, deletes or reverses one arc (Madigan and York 1995). An ordered pair of variables and
  the kind of change are drawn uniformly, so that the proposal is symmetric: no neighbours need counting.
* :func:`reverse_arc` reverses an arc and draws new parents for both ends (Grzegorczyk and Husmeier 2008).
* :func:`hill_climb` takes the best change of one arc, remembering recent ones (tabu search).

References
----------
Madigan, D. and York, J. (1995). Bayesian graphical models for discrete data. *International Statistical
Review* 63, 215-232. -- Giudici, P. and Castelo, R. (2003). Improving Markov chain Monte Carlo model search
for data mining. *Machine Learning* 50, 127-158. -- Grzegorczyk, M. and Husmeier, D. (2008). Improving the
structure MCMC sampler for Bayesian networks by introducing a new edge reversal move. *Machine Learning* 71,
265-305, section 3. -- Glover, F. (1989). Tabu search, part I. *ORSA Journal on Computing* 1, 190-206.
"""

import math

from typing import NamedTuple

import numba
import numpy as np

from bayesstruct.kernels import acyclicity
from bayesstruct.kernels.parent_tables import (
    FREE,
    draw_parents,
    family_score,
    family_scores,
    log_sum,
    may_be_parent,
)

__all__ = ["Moves", "default_moves", "hill_climb", "reverse_arc", "sweep"]

_INNER = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_ADD, _DELETE, _REVERSE, _NONE = 0, 1, 2, 3
_can_add, _can_reverse = acyclicity.can_add, acyclicity.can_reverse
_add, _delete, _reverse, _build = (
    acyclicity.add, acyclicity.delete, acyclicity.reverse, acyclicity.build
)  # fmt: skip
_EQUAL = 1e-9  # relative difference of scores that rounding may make
_OPEN, _CLOSED = 0, 2  # positions of variables that may, and may not, be parents


@numba.njit(**_INNER)
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


@numba.njit(**_INNER)
def _pick_arc(rng, adjacency):
    """Draw an arc; return it and the number of arcs."""
    d = len(adjacency)
    arcs = _count(adjacency)
    k = int(rng.random() * arcs)
    for i in range(d):
        for j in range(d):
            if adjacency[i, j]:
                if k == 0:
                    return i, j, arcs
                k -= 1
    return -1, -1, 0


@numba.njit(**_INNER)
def _count(adjacency):
    arcs = 0
    for i in range(len(adjacency)):
        for j in range(len(adjacency)):
            arcs += adjacency[i, j]
    return arcs


@numba.njit(**_INNER)
def _log_correction(arcs_now, arcs_then, gained, lost):
    """Log of the ratio of Metropolis and Hastings (Grzegorczyk and Husmeier 2008, eq. 17)."""
    return math.log(arcs_now / arcs_then) + gained - lost


@numba.njit(cache=True, nogil=True)
def reverse_arc(rng, t, adjacency):
    r"""Propose the reversal of an arc together with new parents of both its ends.

    The arc ``i -> j`` is drawn among all; both ends lose their parents; ``i`` gets a parent set with ``j``
    in it, then ``j`` any, each drawn by its score from the sets that close no cycle. The scores
    cancel in the ratio; what is left are the sums over these sets, for the way there and back.

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
    i, j, arcs = _pick_arc(rng, adjacency)
    if arcs == 0 or not may_be_parent(t, i, j):
        return False
    # Not constants: Numba would compile what they are passed to once more for each.
    free, must, closed = np.int64(FREE), np.int64(1), np.int64(_CLOSED)
    position, stack = np.empty(d, np.int64), np.empty(d, np.int64)
    old = np.empty((2, d), np.int8)
    for k in range(d):
        old[0, k], old[1, k] = adjacency[k, i], adjacency[k, j]
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
            log_ratio = _log_correction(arcs, _count(adjacency), gained + rest, lost)
            accepted = log_ratio >= 0.0 or rng.random() < math.exp(log_ratio)
    if not accepted:
        for k in range(d):
            adjacency[k, i], adjacency[k, j] = old[0, k], old[1, k]
    return accepted


class Moves(NamedTuple):
    """Numbers of moves in a sweep."""

    changes: int  # of one arc
    reversals: int  # with new parents of both ends


def default_moves(d) -> Moves:
    """Return the numbers of moves of a sweep over ``d`` variables."""
    return Moves(d * d, d)


@numba.njit(**_INNER)
def _kind(adjacency, ancestors, i, j, reverse):
    """Tell what a change of the pair i, j is: a reversal, an addition, a deletion, or not legal."""
    if adjacency[i, j]:
        if not reverse:
            return _DELETE
        return _REVERSE if _can_reverse(ancestors, i, j) else _NONE
    if reverse or adjacency[j, i]:
        return _NONE
    return _ADD if _can_add(ancestors, i, j) else _NONE


@numba.njit(**_INNER)
def _gains(t, adjacency, node, i, j, kind):
    """Change of the scores of j and of i, by a change of the arc i -> j."""
    adjacency[i, j] ^= 1
    gain_j, gain_i = family_score(t, j, adjacency) - node[j], 0.0
    if kind == _REVERSE and gain_j > -np.inf:
        adjacency[j, i] = 1
        gain_i = family_score(t, i, adjacency) - node[i]
        adjacency[j, i] = 0
    adjacency[i, j] ^= 1
    return gain_j, gain_i


@numba.njit(**_INNER)
def _apply(adjacency, ancestors, i, j, kind):
    if kind == _ADD:
        _add(adjacency, ancestors, i, j)
    elif kind == _DELETE:
        _delete(adjacency, ancestors, i, j)
    else:
        _reverse(adjacency, ancestors, i, j)


@numba.njit(**_INNER)
def _change_arc(rng, t, adjacency, ancestors, node):
    """Propose to add, delete or reverse an arc."""
    d = len(adjacency)
    i, j = int(rng.random() * d), int(rng.random() * d)
    if i == j:
        return
    kind = _kind(adjacency, ancestors, i, j, rng.random() < 0.5)
    if kind == _NONE:
        return
    gain_j, gain_i = _gains(t, adjacency, node, i, j, kind)
    gain = gain_j + gain_i
    if gain >= 0.0 or rng.random() < math.exp(gain):
        _apply(adjacency, ancestors, i, j, kind)
        node[j] += gain_j
        node[i] += gain_i


@numba.njit(cache=True, nogil=True)
def sweep(rng, t, adjacency, moves):
    """Change single arcs of a graph, then reverse arcs with new parents of their ends.

    Leaves the law as it is that :func:`bayesstruct.kernels.partition_mcmc.sweep` does, and mixes more
    slowly.

    Parameters
    ----------
    rng : numpy.random.Generator
    t : ParentTables
    adjacency : (d, d) int8 array
        Acyclic, of finite scores; 1 at (parent, child). Changed in place.
    moves : Moves
    """
    ancestors = np.empty(adjacency.shape, np.uint8)
    _build(adjacency, ancestors)
    node = family_scores(t, adjacency)
    for _ in range(moves.changes):
        _change_arc(rng, t, adjacency, ancestors, node)
    for _ in range(moves.reversals):
        reverse_arc(rng, t, adjacency)


@numba.njit(**_INNER)
def _set_gains(t, adjacency, node, gains, j):
    """Write what a toggle of each arc into a variable gains."""
    for i in range(len(adjacency)):
        if i != j:
            adjacency[i, j] ^= 1
            gains[i, j] = family_score(t, j, adjacency) - node[j]
            adjacency[i, j] ^= 1


@numba.njit(**_INNER)
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


@numba.njit(cache=True, nogil=True)
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
