"""Conditional maximisation over the elements of one pair in all groups, with an edge indicator in each group.

Given the probabilities of an edge in each group the expected log density is quadratic in each element. Climbing starts where the elements
are, and at patterns of edges: all patterns with k edges are equally probable a priori, so that the k groups with the largest odds make
the best of them.
"""

import math

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.gibbs import marginal_log_odds
from bayesstruct.precision.kernels.odds import edge_log_odds
from bayesstruct.precision.kernels.row_groups.sweep import normalise, pattern_logs

ROUNDS = 100


@inner
def _edge_chances(u, log_prior, scales, chances, odds, out, work):
    """Write the probability of an edge in each group given the elements to ``out``; return their log density."""
    spike, slab = scales[0], scales[1]
    groups, value = u.shape[0], 0.0
    for g in range(groups):
        odds[g] = edge_log_odds(u[g], 0.0, spike, slab)
        value += -0.5 * (u[g] / spike) ** 2 - math.log(spike)
    pattern_logs(odds, log_prior, chances, work)
    top = max(chances[0], chances[1], chances[2])
    value += top + math.log(
        math.exp(chances[0] - top) + math.exp(chances[1] - top) + math.exp(chances[2] - top)
    )
    normalise(chances)
    mixed = _mixed_chance(odds)
    for g in range(groups):
        some = 0.0  # that another group has no edge
        for k in range(groups):
            if k != g:
                some += (1.0 - some) / (1.0 + math.exp(odds[k]))
        own = some / (1.0 + math.exp(-odds[g])) / mixed if mixed > 0.0 else 0.0
        out[g] = chances[1] + chances[2] * own
    return value


@inner
def _mixed_chance(odds):
    """Probability that some groups have an edge and others none, edges being independent."""
    mixed, all_absent, all_present = 0.0, 1.0, 1.0
    for g in range(odds.shape[0]):
        one, none = 1.0 / (1.0 + math.exp(-odds[g])), 1.0 / (1.0 + math.exp(odds[g]))
        if g > 0:
            mixed = mixed + all_absent * one + all_present * none
        all_absent *= none
        all_present *= one
    return mixed


@inner
def _best_given_edges(b, h, edges, scales, u):
    spike, slab = 1.0 / (scales[0] * scales[0]), 1.0 / (scales[1] * scales[1])
    for g in range(b.shape[0]):
        u[g] = b[g] / (h[g] + edges[g] * slab + (1.0 - edges[g]) * spike)


@inner
def best_with_indicators(b, h, log_prior, scales, new, best, work):
    """Set ``best``, which holds the elements, to their maximum given everything else, of those that are found.

    Parameters
    ----------
    b, h : (G,) float64
        Of the likelihoods ``exp(b_g u_g - h_g u_g^2 / 2)``.
    log_prior : (3,) float64
    scales : tuple of float
    new, best : (G,) float64, changed in place
    work : (7, G) float64, with G >= 3, changed in place
    """
    groups = b.shape[0]
    chances, odds, edges, order = work[6, :3], work[3, :groups], work[4, :groups], work[5, :groups]
    spike, slab = 1.0 / (scales[0] * scales[0]), 1.0 / (scales[1] * scales[1])
    for g in range(groups):
        order[g] = marginal_log_odds(b[g], h[g], spike, slab)
    highest = -math.inf
    for start in range(-1, groups + 1):
        if start < 0:
            copy_vector(new, best)
        else:
            for g in range(groups):  # an edge where fewer than `start` groups have larger odds
                larger = 0
                for k in range(groups):
                    larger += order[k] > order[g] or (order[k] == order[g] and k < g)
                edges[g] = 1.0 if larger < start else 0.0
            _best_given_edges(b, h, edges, scales, new)
        value = -math.inf
        for _ in range(ROUNDS):
            before = value
            value = _edge_chances(new, log_prior, scales, chances, odds, edges, work[:3, :groups])
            for g in range(groups):
                value += b[g] * new[g] - 0.5 * h[g] * new[g] * new[g]
            if value - before <= 1e-14 * (1.0 + abs(value)):
                break
            _best_given_edges(b, h, edges, scales, new)
        # The elements stay unless another maximum is better beyond rounding.
        if start < 0 or value > highest + 1e-10 * (1.0 + abs(highest)):
            highest = value
            copy_vector(best, new)


@kernel
def likely_edges(precision, log_prior, spike, slab):
    """Most probable pattern of the edges of each pair given the matrices, (G, p (p - 1) / 2)."""
    groups, p = precision.shape[0], precision.shape[1]
    out, odds = np.zeros((groups, p * (p - 1) // 2), np.int64), np.empty(groups)
    patterns, at = math.log(2.0**groups - 2.0), 0
    for i in range(p):
        for j in range(i + 1, p):
            every, some, count = 0.0, 0.0, 0
            for g in range(groups):
                odds[g] = edge_log_odds(precision[g, i, j], 0.0, spike, slab)
                every += odds[g]
                if odds[g] > 0.0:
                    some += odds[g]
                    count += 1
            # The best pattern that is not the same in all groups leaves out one, or has one.
            alike = count in (0, groups)
            last = np.argmin(odds) if count == groups else np.argmax(odds)
            if count == groups:
                some -= odds[last]
            elif count == 0:
                some += odds[last]
            logs = log_prior[i, j]
            none, all_, mixed = logs[0], logs[1] + every, logs[2] - patterns + some
            for g in range(groups):
                if all_ >= none and all_ >= mixed:
                    out[g, at] = 1
                elif mixed > none:
                    own = odds[g] > 0.0
                    out[g, at] = own != (g == last and alike)
            at += 1
    return out
