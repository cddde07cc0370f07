"""Conditional maximisation of the posterior of the precision matrices of several groups.

The elements of a pair in all groups are set to a maximum of their conditional density, relations summed out: a fixed point of the
expectation and maximisation over the relation, the best of those reached from the three relations and from where the elements are
(indicators in each group: :mod:`bayesstruct.precision.kernels.row_groups.edges_mode`). The density of the matrices never falls.
"""

import math

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.gibbs import close_column, open_column, shift_column
from bayesstruct.precision.kernels.odds import edge_log_odds
from bayesstruct.precision.kernels.row_groups.edges_mode import best_with_indicators
from bayesstruct.precision.kernels.row_groups.sweep import (
    INDICATORS,
    normalise,
    pattern_probabilities,
)

ROUNDS = 100


@inner
def _relations(u, log_prior, scales, out):
    """Write the probabilities of the relations given the elements to ``out``; return their log density."""
    groups, centre, spread = u.shape[0], 0.0, 0.0
    for g in range(groups):
        centre += u[g] / groups
    for g in range(groups):
        spread += (u[g] - centre) ** 2
    spike, slab, small, large = scales
    absent = -0.5 * (centre / spike) ** 2 - math.log(spike)
    present = -0.5 * (centre / slab) ** 2 - math.log(slab)
    equal = -0.5 * spread / small**2 - (groups - 1) * math.log(small)
    different = -0.5 * spread / large**2 - (groups - 1) * math.log(large)
    out[0] = log_prior[0] + absent + equal
    out[1] = log_prior[1] + present + equal
    out[2] = log_prior[2] + present + different
    top = max(out[0], out[1], out[2])
    total = 0.0
    for k in range(3):
        total += math.exp(out[k] - top)
    normalise(out)
    return top + math.log(total)


@inner
def _best_elements(b, h, chances, scales, out):
    """Maximise the expected log density given the probabilities of the relations."""
    spike, slab, small, large = scales
    groups = b.shape[0]
    shared = chances[0] / spike**2 + (chances[1] + chances[2]) / slab**2
    t, s = (chances[0] + chances[1]) / small**2 + chances[2] / large**2, shared / groups**2
    sums = inverse = kept = 0.0
    for g in range(groups):
        d = h[g] + t
        sums += b[g] / d
        inverse += 1.0 / d
        kept += h[g] / d
    pull = (s - t / groups) * sums / (kept / groups + s * inverse)
    for g in range(groups):
        out[g] = (b[g] - pull) / (h[g] + t)


@inner
def _climb(b, h, log_prior, scales, chances, u):
    """Improve the elements to a fixed point; return their conditional log density."""
    value = -math.inf
    for _ in range(ROUNDS):
        before = value
        value = _relations(u, log_prior, scales, chances)
        for g in range(b.shape[0]):
            value += b[g] * u[g] - 0.5 * h[g] * u[g] * u[g]
        if value - before <= 1e-14 * (1.0 + abs(value)):
            break
        _best_elements(b, h, chances, scales, u)
    return value


@inner
def _best_with_contrasts(b, h, log_prior, scales, new, best, work):
    """Set ``best``, which holds the elements, to their maximum given everything else, of those that are found."""
    highest, chances = -math.inf, work[0, :3]
    copy_vector(new, best)
    for start in range(-1, 3):
        if start >= 0:
            chances[:] = 0.0
            chances[start] = 1.0
            _best_elements(b, h, chances, scales, new)
        value = _climb(b, h, log_prior, scales, chances, new)
        # The elements stay unless another maximum is better beyond rounding.
        if start < 0 or value > highest + 1e-10 * (1.0 + abs(highest)):
            highest = value
            copy_vector(best, new)


@kernel
def groups_mode_sweep(
    precision, covariance, scatter, n, log_prior, scales, rates, columns, work, design
):
    """Maximise over every column of the matrices of all groups once; return the largest change of an element.

    Parameters are those of :func:`bayesstruct.precision.kernels.row_groups.sweep.groups_sweep`; ``work`` is (13, G), with G >= 3.
    """
    groups, p = precision.shape[0], precision.shape[1]
    column, product = columns[0], columns[1]
    b, h, new, best = work[0, :groups], work[1, :groups], work[2, :groups], work[3, :groups]
    pivot, slope, more = work[4, :groups], work[5, :groups], work[6:]
    change = 0.0
    for j in range(p):
        for g in range(groups):
            pivot[g] = open_column(covariance[g], j, column[g], product[g])
            slope[g] = scatter[g, j, j] + 2.0 * rates[g]
        for i in range(p):
            if i == j:
                continue
            for g in range(groups):
                w = column[g, i]
                h[g] = slope[g] * (covariance[g, i, i] - w * w / pivot[g])
                pull = slope[g] * product[g, i] + scatter[g, j, i]
                b[g] = h[g] * precision[g, j, i] - pull
                best[g] = precision[g, j, i]
            if design == INDICATORS:
                best_with_indicators(b, h, log_prior[j, i], scales, new, best, more)
            else:
                _best_with_contrasts(b, h, log_prior[j, i], scales, new, best, more)
            for g in range(groups):
                delta, ratio = best[g] - precision[g, j, i], column[g, i] / pivot[g]
                shift_column(covariance[g], column[g], product[g], i, delta, ratio)
                precision[g, j, i] = precision[g, i, j] = best[g]
                change = max(change, abs(delta))
        for g in range(groups):
            old = precision[g, j, j]
            close_column(
                precision[g], covariance[g], j, n[g] / slope[g], column[g], product[g], pivot[g]
            )
            change = max(change, abs(precision[g, j, j] - old))
    return change


@kernel
def relation_chances(precision, log_prior, scales, design):
    """Probabilities of the relations of each pair given the matrices, (p (p - 1) / 2, 3), upper triangle row by row."""
    groups, p = precision.shape[0], precision.shape[1]
    out, odds, work = np.empty((p * (p - 1) // 2, 3)), np.empty(groups), np.empty((3, groups))
    at = 0
    for i in range(p):
        for j in range(i + 1, p):
            if design == INDICATORS:
                for g in range(groups):
                    odds[g] = edge_log_odds(precision[g, i, j], 0.0, scales[0], scales[1])
                pattern_probabilities(odds, log_prior[i, j], out[at], work)
            else:
                _relations(precision[:, i, j], log_prior[i, j], scales, out[at])
            at += 1
    return out
