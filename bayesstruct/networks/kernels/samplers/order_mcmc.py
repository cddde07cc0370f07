r"""Order Markov chain Monte Carlo: graphs under a prior that counts their topological orders.

.. math:: p(\text{order} \mid \text{data}) \propto \prod_i \sum_{\pi \subseteq \text{before } i} e^{s_i(\pi)}

A graph drawn given the order has, over orders, the distribution :math:`p(G) \propto \ell(G) \prod_i e^{s_i(\pi_i)}` with
:math:`\ell(G)` the number of its topological orders. For priors that do not count them see
:mod:`bayesstruct.networks.kernels.samplers.partition_mcmc`.

Moves are *relocations*, where a variable is taken out and put back by the probabilities of all places (a
Gibbs step: each other variable has two scores, with it before or after), *swaps* of any two
variables, and *transpositions* of neighbours.

References
----------
Friedman, N. and Koller, D. (2003). Being Bayesian about network structure. *Machine Learning* 50, 95-125. --
Kuipers, J., Suter, P. and Moffa, G. (2022). Efficient sampling and structure learning of Bayesian networks.
*Journal of Computational and Graphical Statistics* 31, 639-650, section 2 (relocation).
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.networks.kernels.parent_sums import FREE, draw_parents, log_sum
from bayesstruct.networks.kernels.samplers.partition_mcmc import draw_index

__all__ = ["Moves", "default_moves", "put_back", "sweep", "take_out"]

_NODE, _BEFORE, _AFTER, _OWN, _WEIGHT = range(5)  # rows of scores


class Moves(NamedTuple):
    """Numbers of moves in a sweep."""

    relocations: int
    swaps: int
    transpositions: int


def default_moves(d) -> Moves:
    """Return the numbers of moves of a sweep over ``d`` variables."""
    return Moves(d, d // 4 + 1, d // 2 + 1)


@inner
def _free():
    """Not a constant: Numba would compile functions that take it once more."""
    return np.int64(FREE)


@inner
def _swap(rng, t, order, position, scores, a, b):
    """Exchange the variables of two places, with the right probability."""
    node, fresh = scores[_NODE], scores[_WEIGHT]
    log_ratio = 0.0
    order[a], order[b] = order[b], order[a]
    position[order[a]], position[order[b]] = a, b
    for k in range(a, b + 1):
        i = order[k]
        fresh[i] = log_sum(t, i, position, _free(), k)
        log_ratio += fresh[i] - node[i]
        if log_ratio == -np.inf:
            break
    if log_ratio < 0.0 and rng.random() >= math.exp(log_ratio):
        order[a], order[b] = order[b], order[a]
        position[order[a]], position[order[b]] = a, b
        return
    for k in range(a, b + 1):
        node[order[k]] = fresh[order[k]]


@inner
def take_out(order, position, v):
    """Move a variable to the end of the order; spread the positions of the others, to 1, 3, ..."""
    d = len(order)
    for k in range(position[v], d - 1):
        order[k] = order[k + 1]
    order[d - 1] = v
    for k in range(d):
        position[order[k]] = 2 * k + 1


@inner
def put_back(order, position, v, place):
    """Move the last variable to its place; positions are places again."""
    d = len(order)
    for k in range(d - 1, place, -1):
        order[k] = order[k - 1]
    order[place] = v
    for k in range(d):
        position[order[k]] = k


@inner
def _relocate(rng, t, order, position, scores, v):
    """Draw the place of a variable given the order of the others."""
    d = len(order)
    node, before, after = scores[_NODE], scores[_BEFORE], scores[_AFTER]
    own, weight = scores[_OWN], scores[_WEIGHT]
    take_out(order, position, v)
    for k in range(d - 1):
        i = order[k]
        position[v] = 2 * d
        after[i] = log_sum(t, i, position, _free(), 2 * k + 1)
        position[v] = 0
        before[i] = log_sum(t, i, position, _free(), 2 * k + 1)
    total = 0.0
    for k in range(d):
        own[k] = log_sum(t, v, position, _free(), 2 * k)
        weight[k] = own[k] + total
        total += after[order[k]] if k < d - 1 else 0.0
    total = 0.0  # sums from both ends: differences of infinite sums would be undefined
    for k in range(d - 1, -1, -1):
        weight[k] += total
        total += before[order[k - 1]] if k > 0 else 0.0
    place = draw_index(rng, weight, d)
    for k in range(d - 1):
        node[order[k]] = after[order[k]] if k < place else before[order[k]]
    node[v] = own[place]
    put_back(order, position, v, place)


@kernel
def sweep(rng, t, order, adjacency, moves):
    """Move an order, then draw a graph given it.

    The distribution that is left invariant has the probability of an order proportional to the product of
    the sums of the module's formula.

    Parameters
    ----------
    rng : numpy.random.Generator
    t : ParentTables
    order : (d,) int64 array
        Variables, parents before children; of finite sums. Changed in place.
    adjacency : (d, d) int8 array
        Overwritten: 1 at (parent, child).
    moves : Moves
    """
    d = len(order)
    position, scores = np.empty(d, np.int64), np.empty((5, d))
    for k in range(d):
        position[order[k]] = k
    for k in range(d):
        scores[_NODE, order[k]] = log_sum(t, order[k], position, _free(), k)
    for _ in range(moves.relocations):
        _relocate(rng, t, order, position, scores, int(rng.random() * d))
    for m in range(moves.swaps + moves.transpositions):
        a = int(rng.random() * (d - 1))
        b = a + 1
        if m < moves.swaps:
            a, b = int(rng.random() * d), int(rng.random() * d)
        if a != b and d > 1:
            _swap(rng, t, order, position, scores, min(a, b), max(a, b))
    for k in range(d):
        draw_parents(rng, t, order[k], position, _free(), k, adjacency)
