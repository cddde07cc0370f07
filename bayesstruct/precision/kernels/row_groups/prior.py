"""Draws of the precision matrices of several groups from their prior, and of relations of pairs given the matrices."""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.odds import edge_log_odds
from bayesstruct.precision.kernels.prior import (
    REJECTION_SIZE,
    REJECTION_TRIES,
    SWEEPS,
    is_positive_definite,
)
from bayesstruct.precision.kernels.row_groups.sweep import (
    ABSENT,
    CONTRASTS,
    DIFFERENT,
    INDICATORS,
    draw_pattern,
    draw_relation,
    groups_sweep,
    normalise,
    pattern_probabilities,
)

#: Partial correlation up to which a pair that differs between groups has no edge in one of them.
NEGLIGIBLE = 0.1


@kernel
def log_relations(edge, difference):
    """Logarithms of the prior probabilities of absent, equal and different, (p, p, 3).

    Parameters
    ----------
    edge, difference : (p, p) float64
        Probability of an edge, and that it differs between groups if it is there.
    """
    p = edge.shape[0]
    out = np.empty((p, p, 3))
    for i in range(p):
        for j in range(p):
            out[i, j, 0] = 1.0 - edge[i, j]
            out[i, j, 1] = edge[i, j] * (1.0 - difference[i, j])
            out[i, j, 2] = edge[i, j] * difference[i, j]
            for k in range(3):
                out[i, j, k] = math.log(out[i, j, k]) if out[i, j, k] > 0.0 else -np.inf
    return out


@inner
def fill_groups(rng, precision, log_prior, scales, rates, design, odds, work):
    """Fill the matrices with independent elements."""
    groups, p = precision.shape[0], precision.shape[1]
    spike, slab, small, large = scales
    chances, edges = work[5, :3], work[4]
    for i in range(p):
        for j in range(i):
            for k in range(3):
                chances[k] = math.exp(log_prior[i, j, k])
            relation = draw_relation(rng, chances)
            if design == INDICATORS:
                pattern_probabilities(odds, log_prior[i, j], chances, work)
                draw_pattern(rng, relation, odds, work, edges)
                for g in range(groups):
                    scale = slab if edges[g] == 1.0 else spike
                    precision[g, i, j] = scale * rng.standard_normal()
            else:
                shared = spike if relation == ABSENT else slab
                contrast = large if relation == DIFFERENT else small
                _fill_contrasts(rng, precision[:, i, j], shared, contrast)
            for g in range(groups):
                precision[g, j, i] = precision[g, i, j]
    for g in range(groups):
        for i in range(p):
            precision[g, i, i] = rng.standard_exponential() / rates[g]


@inner
def _fill_contrasts(rng, elements, shared, contrast):
    """Fill the elements of a pair in all groups, given the two standard deviations."""
    # Normal deviations from their mean are orthonormal contrasts with independent normal coefficients.
    groups, centre, middle = elements.shape[0], 0.0, shared * rng.standard_normal()
    for g in range(groups):
        elements[g] = contrast * rng.standard_normal()
        centre += elements[g] / groups
    for g in range(groups):
        elements[g] += middle - centre


@kernel
def draw_groups(rng, log_prior, scales, rates, design):
    """Draw the matrices of all groups from their prior, (G, p, p): by rejection, or by sweeps without data."""
    groups, p = rates.shape[0], log_prior.shape[0]
    precision, factor = np.empty((groups, p, p)), np.empty((p, p))
    odds, work = np.zeros(groups), np.empty((6, max(groups, 4)))
    if groups * p <= REJECTION_SIZE:
        for _ in range(REJECTION_TRIES):
            fill_groups(rng, precision, log_prior, scales, rates, design, odds, work)
            inside = True
            for g in range(groups):
                inside = inside and is_positive_definite(precision[g], factor)
            if inside:
                return precision
    return sweep_groups_prior(rng, log_prior, scales, rates, design, SWEEPS)[0]


@kernel
def sweep_groups_prior(rng, log_prior, scales, rates, design, sweeps):
    """Run sweeps without data from unit matrices; return the matrices and the sums of the probabilities of relations.

    The first sweeps, which forget the start, do not count for the sums.
    """
    groups, p = rates.shape[0], log_prior.shape[0]
    precision, covariance = np.zeros((groups, p, p)), np.zeros((groups, p, p))
    for g in range(groups):
        for i in range(p):
            precision[g, i, i] = covariance[g, i, i] = 1.0
    nothing, n, chances = np.zeros((groups, p, p)), np.zeros(groups), np.zeros((4, p, p))
    columns, work = np.empty((2, groups, p)), np.empty((11, max(groups, 4)))
    for t in range(sweeps):
        if t == SWEEPS:
            chances[:] = 0.0
        state = (precision, covariance, chances)
        groups_sweep(rng, *state, nothing, n, log_prior, scales, rates, columns, work, design)
        if design == CONTRASTS:
            count_group_edges(precision, log_prior, scales, chances[3])
    return precision, chances


@inner
def count_group_edges(precision, log_prior, scales, out):
    """Add the share of groups that have an edge to ``out`` (p, p), under contrasts: equal, or different and not negligible."""
    groups, p = precision.shape[0], precision.shape[1]
    chances = np.empty(3)
    for i in range(p):
        for j in range(i):
            _given_contrasts(precision[:, i, j], log_prior[i, j], scales, chances)
            share = 0.0
            for g in range(groups):
                scale = precision[g, i, i] * precision[g, j, j]
                share += precision[g, i, j] ** 2 > NEGLIGIBLE * NEGLIGIBLE * scale
            share = chances[1] + chances[2] * share / groups
            out[i, j] += share
            out[j, i] += share


@inner
def _given_contrasts(elements, log_prior, scales, out):
    """Write the probabilities of the relations of a pair given its elements to ``out`` (3,)."""
    groups, centre, spread = elements.shape[0], 0.0, 0.0
    for g in range(groups):
        centre += elements[g] / groups
    for g in range(groups):
        spread += (elements[g] - centre) ** 2
    spike, slab, small, large = scales
    shared = edge_log_odds(centre, 0.0, spike, slab)
    contrast = 0.5 * spread * (1.0 / small**2 - 1.0 / large**2)
    contrast += (groups - 1) * (math.log(small) - math.log(large))
    out[0] = log_prior[0]
    out[1] = log_prior[1] + shared
    out[2] = log_prior[2] + shared + contrast
    normalise(out)


@kernel
def draw_relations(rng, precision, log_prior, scales):
    """Draw the relation of each pair given the matrices, upper triangle row by row.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision : (G, p, p) float64
    log_prior, scales
        As of :func:`groups_sweep`, with contrasts.
    """
    p = precision.shape[1]
    out, chances = np.empty(p * (p - 1) // 2, np.int64), np.empty(3)
    at = 0
    for i in range(p):
        for j in range(i + 1, p):
            _given_contrasts(precision[:, i, j], log_prior[i, j], scales, chances)
            out[at] = draw_relation(rng, chances)
            at += 1
    return out


@kernel
def draw_group_edges(rng, precision, log_prior, spike, slab):
    """Draw the edge of each group and pair given the matrices, with indicators in each group, (G, p (p - 1) / 2)."""
    groups, p = precision.shape[0], precision.shape[1]
    out, chances = np.empty((groups, p * (p - 1) // 2), np.int64), np.empty(3)
    odds, edges, work = np.empty(groups), np.empty(groups), np.empty((3, groups))
    at = 0
    for i in range(p):
        for j in range(i + 1, p):
            for g in range(groups):
                odds[g] = edge_log_odds(precision[g, i, j], 0.0, spike, slab)
            pattern_probabilities(odds, log_prior[i, j], chances, work)
            draw_pattern(rng, draw_relation(rng, chances), odds, work, edges)
            for g in range(groups):
                out[g, at] = int(edges[g])
            at += 1
    return out
