"""Common probabilities of edges and of differences in the prior of several groups, drawn with the matrices."""

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.prior import (
    REJECTION_SIZE,
    REJECTION_TRIES,
    SWEEPS,
    fill_free,
    is_positive_definite,
)
from bayesstruct.precision.kernels.row_groups.prior import (
    count_group_edges,
    draw_group_edges,
    draw_relations,
    fill_groups,
    log_relations,
)
from bayesstruct.precision.kernels.row_groups.sweep import (
    ABSENT,
    CONTRASTS,
    DIFFERENT,
    EQUAL,
    INDICATORS,
    groups_sweep,
)


@kernel
def draw_shares(rng, relation, edge, difference, shapes, shares):
    """Draw the common probabilities of an edge and of a difference from their beta conditionals given the relations.

    Parameters
    ----------
    rng : numpy.random.Generator
    relation : (p (p - 1) / 2,) int64
        Upper triangle row by row.
    edge, difference : (p, p) float64
        Nominal probabilities; those strictly between 0 and 1 are the common one if it is learned.
    shapes : tuple of float
        Of the beta distribution of edges and that of differences; zeros of one that is not learned.
    shares : (2,) float64, changed in place
        Those that are learned.
    """
    p, at = edge.shape[0], 0
    counts = np.zeros((2, 2))
    for i in range(p):
        for j in range(i + 1, p):
            own = relation[at]
            at += 1
            if 0.0 < edge[i, j] < 1.0:
                counts[0, 1 if own == ABSENT else 0] += 1.0
            if own != ABSENT and 0.0 < difference[i, j] < 1.0:
                counts[1, 0 if own == DIFFERENT else 1] += 1.0
    for k in range(2):
        alpha, beta = (shapes[0], shapes[1]) if k == 0 else (shapes[2], shapes[3])
        if alpha > 0.0:
            x = rng.standard_gamma(alpha + counts[k, 0])
            shares[k] = x / (x + rng.standard_gamma(beta + counts[k, 1]))


@kernel
def fill_relations(edge, difference, shapes, shares):
    """Logarithms of the prior probabilities of the relations of each pair, given the common probabilities that are learned."""
    own = fill_free(edge, shares[0]) if shapes[0] > 0.0 else edge
    other = fill_free(difference, shares[1]) if shapes[2] > 0.0 else difference
    return log_relations(own, other)


@kernel
def relations_of_edges(edges):
    """Relation of each pair from its edges in each group, (G, E)."""
    groups, size = edges.shape
    out = np.empty(size, np.int64)
    for k in range(size):
        count = 0
        for g in range(groups):
            count += edges[g, k]
        out[k] = ABSENT if count == 0 else (EQUAL if count == groups else DIFFERENT)
    return out


@inner
def _relations(rng, precision, log_prior, scales, design):
    if design == INDICATORS:
        edges = draw_group_edges(rng, precision, log_prior, scales[0], scales[1])
        return relations_of_edges(edges)
    return draw_relations(rng, precision, log_prior, scales)


@kernel
def sweep_group_shares(rng, shapes, edge, difference, scales, rates, design, sweeps):
    """Run sweeps over matrices and probabilities without data; return the last probabilities and the sums of those of relations.

    The first sweeps, which forget the start, do not count for the sums. Parameters are those of :func:`draw_shares` and
    :func:`bayesstruct.precision.kernels.row_groups.sweep.groups_sweep`.
    """
    groups, p = rates.shape[0], edge.shape[0]
    precision, covariance = np.zeros((groups, p, p)), np.zeros((groups, p, p))
    for g in range(groups):
        for i in range(p):
            precision[g, i, i] = covariance[g, i, i] = 1.0
    nothing, n, chances = np.zeros((groups, p, p)), np.zeros(groups), np.zeros((4, p, p))
    columns, work = np.empty((2, groups, p)), np.empty((11, max(groups, 4)))
    shares, none = np.empty(2), np.zeros((p, p))
    relation = np.zeros(p * (p - 1) // 2, np.int64)
    draw_shares(rng, relation, none, none, shapes, shares)
    for t in range(sweeps):
        if t == SWEEPS:
            chances[:] = 0.0
        log_prior = fill_relations(edge, difference, shapes, shares)
        state = (precision, covariance, chances)
        groups_sweep(rng, *state, nothing, n, log_prior, scales, rates, columns, work, design)
        if design == CONTRASTS:
            count_group_edges(precision, log_prior, scales, chances[3])
        relation = _relations(rng, precision, log_prior, scales, design)
        draw_shares(rng, relation, edge, difference, shapes, shares)
    return shares, chances


@kernel
def draw_group_share(rng, own, edge, difference, scales, rates, design, role):
    """Draw the common probability of an edge from its implied prior (role 0), or that of a difference given the edges (role 1).

    Parameters
    ----------
    own : tuple of float
        Shapes of this probability, and of that of differences if this is of edges.
    """
    groups, p = rates.shape[0], edge.shape[0]
    shapes = own if role == 0 else (0.0, 0.0, own[0], own[1])
    if groups * p <= REJECTION_SIZE:
        precision, factor = np.empty((groups, p, p)), np.empty((p, p))
        odds, work = np.zeros(groups), np.empty((6, max(groups, 4)))
        shares, none = np.empty(2), np.zeros((p, p))
        relation = np.zeros(p * (p - 1) // 2, np.int64)
        for _ in range(REJECTION_TRIES):
            draw_shares(rng, relation, none, none, shapes, shares)
            log_prior = fill_relations(edge, difference, shapes, shares)
            fill_groups(rng, precision, log_prior, scales, rates, design, odds, work)
            inside = True
            for g in range(groups):
                inside = inside and is_positive_definite(precision[g], factor)
            if inside:
                return shares[role]
    return sweep_group_shares(rng, shapes, edge, difference, scales, rates, design, SWEEPS)[0][role]
