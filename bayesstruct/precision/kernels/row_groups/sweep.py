r"""Gibbs sweep over the precision matrices of several groups of rows, all groups together.

The elements of a pair of columns in ``G`` groups, ``u = (u_1, ..., u_G)``, are a shared part and contrasts,

.. math:: u_g = m + \sum_c Q_{gc} d_c, \qquad m \sim N(0, \sigma^2), \quad d_c \sim N(0, \tau^2),

with orthonormal contrasts: the columns of the (G, G - 1) matrix ``Q`` are orthonormal and orthogonal to the vector of ones. The
precision matrix of ``u`` is then, whichever such ``Q`` is taken,

.. math:: \tau^{-2} I + c\, 1 1', \qquad c = (G \sigma)^{-2} - \tau^{-2} / G,

with determinant :math:`\tau^{-2 (G - 1)} / (G \sigma^2)`. A pair has one of three relations: absent (``sigma`` and ``tau`` are those of
spikes), equal (the shared part has the slab), different (the contrasts have theirs too).

Given everything but row and column ``j`` without their diagonal elements, each group has the likelihood
``exp(b_g u_g - h_g u_g^2 / 2)`` for one of its elements, as in :mod:`bayesstruct.precision.kernels.gibbs`, once the matrix is written with
its Schur complement ``v_g``. Their product has a diagonal precision matrix, so that by the formulas of Sherman and Morrison the elements are
summed out and drawn in O(G).

The other design has an indicator of each pair in each group, and elements that are independent given these. A pair is absent in all groups, present in
all (equal), or present in some (different), in which case all of these patterns are equally probable a priori.
"""

import math

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.gibbs import (
    close_column,
    marginal_log_odds,
    open_column,
    shift_column,
)

#: Designs: a shared part with contrasts, or an indicator in each group.
CONTRASTS, INDICATORS = 0, 1
_LARGE = 1e100
#: Relations of a pair: connected in no group, alike in all, differently.
ABSENT, EQUAL, DIFFERENT = 0, 1, 2


@inner
def group_log_marginal(b, h, shared, contrast):
    """Log density of the likelihoods ``exp(b_g u_g - h_g u_g^2 / 2)``, the elements of all groups integrated out.

    Parameters
    ----------
    b, h : (G,) float64
    shared, contrast : float
        Standard deviations of the shared part and of each contrast.

    Returns
    -------
    float
        Zero if ``b`` and ``h`` are.
    """
    groups = b.shape[0]
    unit = contrast * contrast
    t, s = 1.0 / unit, 1.0 / (groups * groups * shared * shared)
    logs = squares = sums = inverse = kept = 0.0
    factor = 1.0  # one logarithm of a product, which must not overflow
    for g in range(groups):
        d = h[g] + t
        own = 1.0 / d  # divisions take longer than all the rest
        factor *= d * unit
        if factor > _LARGE:
            logs += math.log(factor)
            factor = 1.0
        squares += b[g] * b[g] * own
        sums += b[g] * own
        inverse += own
        kept += h[g] * own
    # 1 + c 1'(1/d), without the cancellation
    ratio = kept / groups + s * inverse
    quadratic = squares - (s - t / groups) * sums * sums / ratio
    return 0.5 * (quadratic - logs - math.log(factor * ratio / (groups * s / t)))


@inner
def draw_elements(rng, b, h, shared, contrast, out):
    """Draw the elements of all groups with these likelihoods and prior scales to ``out`` (G,)."""
    groups = b.shape[0]
    t, s = 1.0 / (contrast * contrast), 1.0 / (groups * groups * shared * shared)
    sums = inverse = kept = noise = 0.0
    for g in range(groups):
        d = h[g] + t
        sums += b[g] / d
        inverse += 1.0 / d
        kept += h[g] / d
        out[g] = rng.standard_normal()
        noise += out[g] / math.sqrt(d)
    ratio = kept / groups + s * inverse
    pull = (s - t / groups) * sums / ratio
    # inverse root of I + c w w' with w = d^(-1/2)
    push = (1.0 / math.sqrt(ratio) - 1.0) * noise / inverse
    for g in range(groups):
        d = h[g] + t
        out[g] = (b[g] - pull + push + out[g] * math.sqrt(d)) / d


@inner
def relation_probabilities(b, h, log_prior, scales, out):
    """Write the conditional probabilities of absent, equal and different to ``out`` (3,)."""
    spike, slab, small, large = scales
    out[0] = log_prior[0] + group_log_marginal(b, h, spike, small)
    out[1] = log_prior[1] + group_log_marginal(b, h, slab, small)
    out[2] = log_prior[2] + group_log_marginal(b, h, slab, large)
    normalise(out)


@inner
def pattern_probabilities(odds, log_prior, out, work):
    """Probabilities of absent, equal and different from the log odds of the edge in each group, see `pattern_logs`."""
    pattern_logs(odds, log_prior, out, work)
    normalise(out)


@inner
def pattern_logs(odds, log_prior, out, work):
    """Log weights of absent, equal and different from the log odds of the edge in each group.

    Parameters
    ----------
    odds : (G,) float64
        Log odds of an edge against none, from the data or elements of each group alone.
    log_prior : (3,) float64
        Of the relations.
    out : (3,) float64, changed in place
    work : (3, G) float64, changed in place
        [0] probability of each edge by itself; [1] and [2] probability that of later groups one has an edge, and that one has none.
    """
    groups, total = odds.shape[0], 0.0
    mixed, all_absent, all_present = 0.0, 1.0, 1.0
    every = 0.0
    for g in range(groups):
        one, none = 1.0 / (1.0 + math.exp(-odds[g])), 1.0 / (1.0 + math.exp(odds[g]))
        work[0, g] = one
        # sums of positive terms: differences from 1 would cancel
        if g > 0:
            mixed += all_absent * one + all_present * none
        all_absent *= none
        all_present *= one
        total += max(odds[g], 0.0) + math.log1p(math.exp(-abs(odds[g])))
        every += odds[g]
    work[1, groups - 1] = work[2, groups - 1] = 0.0
    for g in range(groups - 2, -1, -1):
        one, none = work[0, g + 1], 1.0 / (1.0 + math.exp(odds[g + 1]))
        work[1, g] = one + none * work[1, g + 1]
        work[2, g] = none + one * work[2, g + 1]
    patterns = math.log(2.0**groups - 2.0)
    out[0] = log_prior[0]
    out[1] = log_prior[1] + every
    out[2] = log_prior[2] - patterns + total
    out[2] += math.log(mixed) if mixed > 0.0 else -math.inf


@inner
def normalise(logs):
    """Overwrite logarithms of three weights by probabilities."""
    top, total = max(logs[0], logs[1], logs[2]), 0.0
    for k in range(3):
        logs[k] = math.exp(logs[k] - top)
        total += logs[k]
    for k in range(3):
        logs[k] /= total


@inner
def draw_pattern(rng, relation, odds, work, edges):
    """Draw the edge of each group given the relation, to ``edges`` (G,)."""
    ones = zeros = True  # whether all groups so far have an edge, or none
    for g in range(odds.shape[0]):
        if relation != DIFFERENT:
            edges[g] = relation
            continue
        present, absent = work[0, g], 1.0 / (1.0 + math.exp(odds[g]))
        if ones:
            present *= work[2, g]
        if zeros:
            absent *= work[1, g]
        edges[g] = 1.0 if rng.random() * (present + absent) < present else 0.0
        ones, zeros = ones and edges[g] == 1.0, zeros and edges[g] == 0.0


@inner
def draw_with_indicators(rng, b, h, log_prior, scales, own, new, work):
    """Draw the elements of a pair in all groups to ``new``, and write the probabilities of its relations to ``own``."""
    t0, t1 = 1.0 / (scales[0] * scales[0]), 1.0 / (scales[1] * scales[1])
    odds, edges = work[3], work[4]
    for g in range(b.shape[0]):
        odds[g] = marginal_log_odds(b[g], h[g], t0, t1)
    pattern_probabilities(odds, log_prior, own, work)
    draw_pattern(rng, draw_relation(rng, own), odds, work, edges)
    own[3] = 0.0
    for g in range(b.shape[0]):
        own[3] += edges[g] / b.shape[0]
        total = h[g] + (t1 if edges[g] == 1.0 else t0)
        new[g] = b[g] / total + rng.standard_normal() / math.sqrt(total)


@inner
def draw_with_contrasts(rng, b, h, log_prior, scales, own, new):
    """Draw the elements of a pair in all groups to ``new``, and write the probabilities of its relations to ``own``."""
    spike, slab, small, large = scales
    relation_probabilities(b, h, log_prior, scales, own)
    relation = draw_relation(rng, own)
    own[3] = 0.0
    shared = spike if relation == ABSENT else slab
    draw_elements(rng, b, h, shared, large if relation == DIFFERENT else small, new)


@inner
def draw_relation(rng, chances):
    """Draw one of three relations."""
    uniform = rng.random()
    if uniform < chances[0]:
        return ABSENT
    return EQUAL if uniform < chances[0] + chances[1] else DIFFERENT


@kernel
def groups_sweep(
    rng, precision, covariance, chances, scatter, n, log_prior, scales, rates, columns, work, design
):
    """Update every column of the matrices of all groups once.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision, covariance : (G, p, p) float64, changed in place
        Matrices and their inverses.
    chances : (4, p, p) float64, changed in place
        The conditional probabilities of the relations of each pair, its elements integrated out, are added here; [0] absent,
        [1] equal, [2] different. [3] is for the share of the groups with an edge, which indicators tell.
    scatter : (G, p, p) float64
        Sums of outer products of the rows of each group about their mean.
    n : (G,) float64
        Numbers of rows.
    log_prior : (p, p, 3) float64
        Logarithms of the prior probabilities of the three relations of each pair.
    scales : tuple of float
        Standard deviations: of the shared part without and with an edge, of a contrast without and with a difference. With
        indicators of an element without and with an edge, and two that are not used.
    rates : (G,) float64
        Rates of the exponential priors of the diagonals.
    columns : (2, G, p) float64
    work : (11, G) float64, with G >= 4
        Work space.
    design : int
        `CONTRASTS` or `INDICATORS`.
    """
    groups, p = precision.shape[0], precision.shape[1]
    column, product = columns[0], columns[1]
    b, h, new = work[0, :groups], work[1, :groups], work[2, :groups]
    pivot, slope, own, more = work[3, :groups], work[4, :groups], work[5, :4], work[6:, :groups]
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
            if design == INDICATORS:
                draw_with_indicators(rng, b, h, log_prior[j, i], scales, own, new, more)
            else:
                draw_with_contrasts(rng, b, h, log_prior[j, i], scales, own, new)
            for k in range(4):
                chances[k, j, i] += own[k]
            for g in range(groups):
                delta, ratio = new[g] - precision[g, j, i], column[g, i] / pivot[g]
                shift_column(covariance[g], column[g], product[g], i, delta, ratio)
                precision[g, j, i] = new[g]
                precision[g, i, j] = new[g]
        for g in range(groups):
            v = rng.standard_gamma(0.5 * n[g] + 1.0) * 2.0 / slope[g]
            close_column(precision[g], covariance[g], j, v, column[g], product[g], pivot[g])
