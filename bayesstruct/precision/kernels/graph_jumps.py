r"""Draws of graphs from their posterior under regressions of each column on its neighbours.

Two moves, each of which leaves the posterior distribution invariant:

`jump` runs a Markov chain in continuous time for a fixed time. Each pair of nodes changes with a rate that is the
probability of its other state given all other edges: a random-scan Gibbs sampler at rate one for each pair, of which only the
changes are computed. Where the graph G' is G with one pair flipped, the rates satisfy detailed balance,

.. math:: \pi(G) \frac{\pi(G')}{\pi(G) + \pi(G')} = \pi(G') \frac{\pi(G)}{\pi(G) + \pi(G')},

so that the graph at a *fixed* time has the distribution :math:`\pi` if the first one has; graphs need no weights. (Those at
the times of changes would.) The mean over the time of the conditional probability of an edge has as its expectation the probability of the edge.

`swap` proposes to move an end of an edge to a node that is correlated with the old end, and accepts by Metropolis and Hastings. Where two
columns are nearly the same, single flips would have to pass graphs of low probability.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.nodewise import flip, node_gains, node_score

__all__ = ["Pairs", "jump", "make_pairs", "partner_sums", "swap"]

_CHANCE, _RATE, _SINCE, _AVERAGE = 0, 1, 2, 3
_EXACT_SUMS = 256  # changes between sums of rates without accumulated rounding


class Pairs(NamedTuple):
    """Numbers of each pair of nodes that the sampler keeps, and memory.

    Attributes
    ----------
    state : (p, p, 4) ndarray
        Above the diagonal: probability of the edge given all others, rate of change, time since which these hold,
        and integral of the probability until then.
    rate : (p,) ndarray
        Sums of the rates of each row.
    first, second : (pairs,) ndarray of int32
        Ends of the edges.
    score : (p,) ndarray
        Of each node.
    """

    state: np.ndarray
    rate: np.ndarray
    first: np.ndarray
    second: np.ndarray
    score: np.ndarray


@kernel
def make_pairs(p):
    """Make the memory for p columns."""
    ends = np.empty((2, p * (p - 1) // 2), np.int32)
    return Pairs(np.zeros((p, p, 4)), np.zeros(p), ends[0], ends[1], np.empty(p))


def partner_sums(correlation: np.ndarray) -> np.ndarray:
    """Cumulated weights, row by row, by which `swap` proposes a new end: fourth powers of correlations."""
    weight = np.abs(correlation) ** 4 + 1e-12  # so that no row is empty
    np.fill_diagonal(weight, 0.0)
    return np.cumsum(weight, axis=1)


@inner
def _update_pair(pair, odds, edge, now):
    """Close the interval in which a pair had its old odds, and open the next one."""
    pair[_AVERAGE] += pair[_CHANCE] * (now - pair[_SINCE])
    pair[_SINCE] = now
    pair[_CHANCE] = 1.0 / (1.0 + math.exp(-odds))
    pair[_RATE] = 1.0 / (1.0 + math.exp(odds if edge else -odds))


@inner
def _update_row(i, now, graph, gains, prior, pairs):
    """Give the pairs of node i the odds that they have in the present graph."""
    for k in range(graph.shape[0]):
        if k != i:
            a, b = min(i, k), max(i, k)
            pair = pairs.state[a, b]
            old = pair[_RATE]
            odds = prior[i, k] + gains[i, k] + gains[k, i]
            _update_pair(pair, odds, graph[i, k], now)
            pairs.rate[a] += pair[_RATE] - old


@inner
def _sum_rates(pairs):
    """Sum the rates of each row anew."""
    p = pairs.rate.shape[0]
    for i in range(p):
        total = 0.0
        for k in range(i + 1, p):
            total += pairs.state[i, k, _RATE]
        pairs.rate[i] = total


@inner
def _choose(rng, pairs, total):
    """Choose a pair with a probability proportional to its rate."""
    p = pairs.rate.shape[0]
    left, i, chosen = rng.random() * total, 0, -1
    while i < p - 2 and left >= pairs.rate[i]:
        left -= pairs.rate[i]
        i += 1
    left = rng.random() * pairs.rate[i]
    for k in range(i + 1, p):
        rate = pairs.state[i, k, _RATE]
        if rate > 0.0:
            chosen = k
            left -= rate
            if left < 0.0:
                break
    return i, chosen  # -1 if rounding has left a row without rates


@kernel
def jump(rng, graph, gains, prior, target, time, pairs, average, work):
    """Let the graph change for a fixed time.

    Parameters
    ----------
    rng : numpy.random.Generator
    graph : (p, p) int8, changed in place
    gains : (p, p) float64, changed in place
        Those of the graph (`bayesstruct.precision.kernels.nodewise.update_gains`).
    prior : (p, p) float64
        Prior log odds of the edges, infinite for those that are certain.
    target : Target
    time : float
        In units in which every pair is drawn anew once on average.
    pairs : Pairs
    average : (pairs,) float32
        The mean over the time of the conditional probability of each edge is written here.
    work : Work

    Returns
    -------
    int
        Number of changes.
    """
    p = graph.shape[0]
    for i in range(p):
        for k in range(i + 1, p):
            pair = pairs.state[i, k]
            _update_pair(pair, prior[i, k] + gains[i, k] + gains[k, i], graph[i, k], 0.0)
            pair[_AVERAGE] = 0.0
    now, flips = 0.0, 0
    while True:
        if flips % _EXACT_SUMS == 0:
            _sum_rates(pairs)
        total = pairs.rate.sum()
        if total <= 0.0:
            break
        now += rng.standard_exponential() / total
        if now >= time:
            break
        i, j = _choose(rng, pairs, total)
        if j >= 0:
            flip(i, j, graph, target, gains, work)
            flips += 1
            _update_row(i, now, graph, gains, prior, pairs)
            _update_row(j, now, graph, gains, prior, pairs)
    at = 0
    for i in range(p):
        for k in range(i + 1, p):
            pair = pairs.state[i, k]
            average[at] = (pair[_AVERAGE] + pair[_CHANCE] * (time - pair[_SINCE])) / time
            at += 1
    return flips


@inner
def _list_edges(graph, prior, pairs):
    """List the edges that are not certain; return their number."""
    count = 0
    for i in range(graph.shape[0]):
        for k in range(i + 1, graph.shape[0]):
            if graph[i, k] and prior[i, k] < math.inf:
                pairs.first[count], pairs.second[count] = i, k
                count += 1
    return count


@kernel
def swap(rng, graph, gains, prior, target, partners, times, pairs, work):
    """Propose to move one end of an edge, as often as there are edges and as many times; return the moves accepted.

    Parameters
    ----------
    partners : (p, p) float64
        As of `partner_sums`.
    times : float
        Proposals for each edge.

    Other parameters are those of `jump`.
    """
    p = graph.shape[0]
    count, accepted = _list_edges(graph, prior, pairs), 0
    changed = np.zeros(p, np.bool_)
    for i in range(p):
        pairs.score[i] = node_score(i, graph, -1, -1, target, work)
    score = pairs.score
    for _ in range(int(times * count)):
        at = int(rng.random() * count)
        i, j = pairs.first[at], pairs.second[at]
        if rng.random() < 0.5:
            i, j = j, i
        k = np.searchsorted(partners[j], rng.random() * partners[j, p - 1], side="right")
        if k >= p or k in (i, j) or graph[i, k] or prior[i, k] == -math.inf:
            continue
        one = node_score(i, graph, j, k, target, work)
        old = node_score(j, graph, i, -1, target, work)
        new = node_score(k, graph, -1, i, target, work)
        ratio = one + old + new - score[i] - score[j] - score[k] + prior[i, k] - prior[i, j]
        # The chance of proposing k from j, and of j from k, differ by the sums of the weights.
        ratio += math.log(partners[j, p - 1] / partners[k, p - 1])
        if math.log(rng.random()) < ratio:
            graph[i, j] = graph[j, i] = 0
            graph[i, k] = graph[k, i] = 1
            score[i], score[j], score[k] = one, old, new
            changed[i] = changed[j] = changed[k] = True
            pairs.first[at], pairs.second[at] = i, k
            accepted += 1
    for i in range(p):
        if changed[i]:
            node_gains(i, graph, target, gains[i], work)
    return accepted
