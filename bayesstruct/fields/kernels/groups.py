r"""Draws of the weights and biases of Markov random fields of several groups of rows, which share edges.

The weights of a pair in ``G`` groups, :math:`u_1, \dots, u_G`, are a shared part and orthonormal contrasts,

.. math:: u_g = m + \sum_c Q_{gc} d_c, \qquad m \sim N(0, s^2), \quad d_c \sim N(0, t^2),

of which a relation says what there is: *absent*, all weights are zero; *equal*, there is no contrast; *different*, there are both. Biases are
free in each group.

Relation and weights of a pair are proposed together, as for a single field (:mod:`bayesstruct.fields.kernels.spike_slab`). In the coordinates
:math:`z = (m / s, d / t)` the prior of each relation is standard normal, in one dimension or in ``G``, and a move between relations needs no
Jacobian. The likelihood is a product over groups, whose change, gradient and Hessian
:mod:`bayesstruct.fields.kernels.block` has for each. Newton's method from zero gives the mode of each relation and Laplace's approximation of its
probability; the Metropolis-Hastings ratio makes up for what is approximate. Biases move along with the weights of their group,
and are then drawn as those of a single field.

References
----------
Marsman, M., Waldorp, L. J., Sekulovski, N. and Haslbeck, J. M. B. (2025). Bayes factor tests for group differences in ordinal and
binary graphical models. *Psychometrika* 90(5), 1809-1842, for shared part and contrasts.
"""

import math

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import inner, kernel
from bayesstruct.fields.kernels.arrays import chain_of, layout_of, prior_of, table_of, work_of
from bayesstruct.fields.kernels.block import (
    apply,
    apply_weights,
    evaluate,
    load_biases,
    load_weights,
)
from bayesstruct.fields.kernels.group_arrays import pool_of
from bayesstruct.fields.kernels.slab import (
    ABSENT,
    CLOSE,
    DEFENSE,
    FLAT,
    HALVINGS,
    STEPS,
    solve_lower,
    solve_upper,
)
from bayesstruct.fields.kernels.spike_slab import LEAST, accept, inclusion_estimate, redraw

__all__ = ["ABSENCE", "DIFFERENT", "EQUAL", "groups_sweep"]

#: Relations of a pair: connected in no group, equally in all, differently.
ABSENCE, EQUAL, DIFFERENT = 0, 1, 2
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


# --- coordinates -----------------------------------------------------------------------------


@inner
def _levels(pool, relation):
    """Return the number of coordinates of each weight: the shared part, and contrasts if there are any."""
    return relation if relation < DIFFERENT else pool.basis.shape[0]


@inner
def _spread(pool, z, levels):
    """Set the weights of all groups from the coordinates; those of equal groups are the same number."""
    groups, d = pool.weight.shape
    for k in range(d):
        for g in range(groups):
            total = 0.0
            for c in range(levels):
                total += pool.basis[g, c] * pool.scale[min(c, 1), k] * z[c * d + k]
            pool.weight[g, k] = total


@inner
def _read(works, pool, relation):
    """Set the present coordinates from the weights."""
    groups, d = pool.weight.shape
    for k in range(d):
        if relation == EQUAL:
            pool.now[k] = works[0].current[k] / pool.scale[0, k]
        for c in range(groups if relation == DIFFERENT else 0):
            total = 0.0
            for g in range(groups):
                total += pool.basis[g, c] * works[g].current[k]
            size = groups * pool.scale[0, k] if c == 0 else pool.scale[1, k]
            pool.now[c * d + k] = total / size


@inner
def _relation(works, pool, d):
    """Return the present relation of the block, or the next one that is possible: where zero or equal weights are not, they are like any others."""
    found = ABSENCE
    for a in range(d):
        if works[0].current[a] != 0.0:
            found = EQUAL
    for work in works:
        for a in range(d):
            if work.current[a] != works[0].current[a]:
                found = DIFFERENT
    while found < DIFFERENT and pool.log_odds[found] == -np.inf:
        found += 1
    return found


# --- likelihood ------------------------------------------------------------------------------


@inner
def _pull_back(works, pool, levels, gradient, hessian):
    """Gradient and negative Hessian in the coordinates, from those of each group."""
    groups, d = pool.weight.shape
    size = levels * d
    gradient[:size] = 0.0
    hessian[:size, :size] = 0.0
    for g in range(groups):
        for c in range(levels):
            for k in range(d):
                a = pool.basis[g, c] * pool.scale[min(c, 1), k]
                gradient[c * d + k] += a * works[g].gradient[k]
                for c2 in range(levels):
                    for k2 in range(d):
                        b = pool.basis[g, c2] * pool.scale[min(c2, 1), k2]
                        hessian[c * d + k, c2 * d + k2] += a * b * works[g].hessian[k, k2]


@inner
def _evaluate(layout, tables, chains, priors, works, pool, z, levels, moments):
    """Log-likelihood of all groups relative to the present point; moments are those of each group."""
    _spread(pool, z, levels)
    value = 0.0
    for g in range(pool.weight.shape[0]):
        value += evaluate(
            layout, tables[g], chains[g], priors[g], works[g], pool.weight[g], moments
        )
    return value


# --- approximation ---------------------------------------------------------------------------


@inner
def _square(x, size):
    total = 0.0
    for a in range(size):
        total += x[a] * x[a]
    return total


@inner
def _newton(pool, gradient, hessian, centre, factor, size, value):
    """Mode of the quadratic approximation around ``point``, and its log integral over the prior.

    Returns the integral, and the squared length of the step in standard deviations.
    """
    x, point = pool.vector, pool.point
    for a in range(size):
        for b in range(a + 1):
            total = hessian[a, b]
            if a == b:
                total += 1.0
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if a == b:
                factor[a, a] = math.sqrt(max(total, 1e-10 * (hessian[a, a] + 1.0)))
            else:
                factor[a, b] = total / factor[b, b]
    for a in range(size):
        x[a] = gradient[a] - point[a]
    solve_lower(factor, x, 0, size)
    length = _square(x, size)
    # The value at the mode is that at the point plus half of the squared length of the step.
    total = value - 0.5 * _square(point, size) + 0.5 * length
    for a in range(size):
        total -= math.log(factor[a, a])
    solve_upper(factor, x, size)
    for a in range(size):
        centre[a] = point[a] + x[a]
    return total, length


@inner
def _advance(layout, tables, chains, priors, works, pool, centre, levels, objective):
    """Move ``point`` to ``centre``, or less far where that would be worse; returns the value."""
    size = levels * pool.weight.shape[1]
    for a in range(size):
        pool.before[a] = pool.point[a]
        pool.point[a] = centre[a]
    value = 0.0
    for _ in range(HALVINGS):
        value = _evaluate(layout, tables, chains, priors, works, pool, pool.point, levels, True)
        if value - 0.5 * _square(pool.point, size) >= objective - 1.0:
            break
        for a in range(size):
            pool.point[a] = 0.5 * (pool.before[a] + pool.point[a])
    _pull_back(works, pool, levels, pool.gradient, pool.hessian)
    return value


@inner
def _approximate(layout, tables, chains, priors, works, pool, relation, value, best):
    """Approximate the distribution of the coordinates given a relation, from ``point``; returns whether it was refined.

    Gradient and Hessian there are known, and ``value`` is the log-likelihood. Relations that are clearly less probable than ``best``, the log
    of another probability, are not refined.
    """
    levels = _levels(pool, relation)
    size = levels * pool.weight.shape[1]
    centre, factor = pool.centre[relation - 1], pool.factor[relation - 1]
    evidence, refined = 0.0, False
    for step in range(STEPS):
        evidence, length = _newton(pool, pool.gradient, pool.hessian, centre, factor, size, value)
        unlikely = pool.log_odds[relation] + evidence - best < ABSENT
        if length < CLOSE or (step == 0 and unlikely):
            break
        objective = value - 0.5 * _square(pool.point, size)
        value = _advance(layout, tables, chains, priors, works, pool, centre, levels, objective)
        refined = True
    pool.evidence[relation] = evidence
    return refined


@inner
def _start_from_equal(layout, tables, chains, priors, works, pool):
    """Set ``point`` to the mode of equal weights, and gradient and Hessian there; returns the log-likelihood."""
    d, levels = pool.weight.shape[1], pool.basis.shape[0]
    pool.point[:] = 0.0
    copy_vector(pool.point[:d], pool.centre[0, :d])
    value = _evaluate(layout, tables, chains, priors, works, pool, pool.point, levels, True)
    _pull_back(works, pool, levels, pool.gradient, pool.hessian)
    return value


@inner
def _share_out(pool):
    """Set the probabilities of the relations, and those of the proposals, from their evidence."""
    top = -np.inf
    for r in range(3):
        if pool.log_odds[r] > -np.inf:
            top = max(top, pool.log_odds[r] + pool.evidence[r])
    total = bounded = 0.0
    for r in range(3):
        pool.share[r] = 0.0
        if pool.log_odds[r] > -np.inf:
            pool.share[r] = math.exp(pool.log_odds[r] + pool.evidence[r] - top)
        total += pool.share[r]
    for r in range(3):
        pool.share[r] /= total
        pool.chance[r] = max(pool.share[r], LEAST) if pool.log_odds[r] > -np.inf else 0.0
        bounded += pool.chance[r]
    for r in range(3):
        pool.chance[r] /= bounded


@inner
def _prepare(layout, tables, chains, priors, works, pool):
    """Approximate all relations that are possible; returns the log-likelihood of zero weights."""
    levels = pool.basis.shape[0]
    pool.point[:] = 0.0
    empty = _evaluate(layout, tables, chains, priors, works, pool, pool.point, levels, True)
    _pull_back(works, pool, levels, pool.gradient, pool.hessian)
    pool.evidence[ABSENCE] = value = empty
    best = pool.log_odds[ABSENCE] + empty
    for relation in range(EQUAL, DIFFERENT + 1):
        if pool.log_odds[relation] == -np.inf:
            continue
        refined = _approximate(layout, tables, chains, priors, works, pool, relation, value, best)
        best = max(best, pool.log_odds[relation] + pool.evidence[relation])
        # Where equal weights are possible those that differ are near them, or else near zero.
        if refined and relation == EQUAL:
            value = _start_from_equal(layout, tables, chains, priors, works, pool)
    _share_out(pool)
    return empty


# --- proposals -------------------------------------------------------------------------------


@inner
def _propose(rng, pool, relation, size):
    """Draw the coordinates of a relation into ``value``."""
    x = pool.value
    defend = rng.random() < DEFENSE
    for a in range(size):
        x[a] = rng.standard_normal()
    if not defend:
        solve_upper(pool.factor[relation - 1], x, size)
        for a in range(size):
            x[a] += pool.centre[relation - 1, a]


@inner
def _log_weight(pool, relation, x, size):
    """Log of the density of coordinates and relation under the prior, less that of the proposals."""
    target = pool.log_odds[relation] - math.log(pool.chance[relation])
    if relation == ABSENCE:
        return target
    factor, centre = pool.factor[relation - 1], pool.centre[relation - 1]
    prior = -0.5 * _square(x, size) - size * _HALF_LOG_2PI
    normal = math.log1p(-DEFENSE) - size * _HALF_LOG_2PI
    for a in range(size):
        along = 0.0
        for b in range(a, size):
            along += factor[b, a] * (x[b] - centre[b])
        normal += math.log(factor[a, a]) - 0.5 * along * along
    defense = math.log(DEFENSE) + prior
    top = max(normal, defense)
    proposal = top + math.log(math.exp(normal - top) + math.exp(defense - top))
    return target + prior - proposal


@inner
def _pick(rng, chance):
    """Choose one of three with these probabilities; of probability zero never."""
    u = rng.random()
    if u < chance[0]:
        return 0
    if chance[2] == 0.0 or u < chance[0] + chance[1]:
        return 1 if chance[1] > 0.0 else 0
    return 2


@inner
def _estimate(pool, block, now, then, acceptance):
    """Record estimates of the probabilities of an edge and of a difference of the block."""
    share, chance = pool.share, pool.chance
    pool.edge[block] = inclusion_estimate(
        1.0 if now > ABSENCE else 0.0,
        1.0 if then > ABSENCE else 0.0,
        share[1] + share[2],
        chance[1] + chance[2],
        acceptance,
    )
    pool.difference[block] = inclusion_estimate(
        1.0 if now == DIFFERENT else 0.0,
        1.0 if then == DIFFERENT else 0.0,
        share[2],
        chance[2],
        acceptance,
    )


@inner
def _redraw(rng, layout, tables, chains, priors, works, pool, block):
    """Draw relation and weights of the loaded block; returns the probability of acceptance, or -1."""
    d = pool.weight.shape[1]
    now = _relation(works, pool, d)
    _read(works, pool, now)
    empty = _prepare(layout, tables, chains, priors, works, pool)
    then = _pick(rng, pool.chance)
    if now == then == ABSENCE:
        _estimate(pool, block, now, then, 1.0)
        return -1.0
    size = _levels(pool, now) * d
    log_ratio = -_log_weight(pool, now, pool.now, size)  # its likelihood is the present one
    levels = _levels(pool, then)
    if then > ABSENCE:
        _propose(rng, pool, then, levels * d)
        log_ratio += _evaluate(
            layout, tables, chains, priors, works, pool, pool.value, levels, False
        )
    else:
        log_ratio += empty
    log_ratio += _log_weight(pool, then, pool.value, levels * d)
    accepted, acceptance = accept(rng, log_ratio)
    _estimate(pool, block, now, then, acceptance)
    if accepted:
        _spread(pool, pool.value, levels)
        for g in range(pool.weight.shape[0]):
            apply_weights(layout, tables[g], chains[g], works[g], block, pool.weight[g])
    return acceptance


@inner
def _load(layout, tables, chains, priors, works, pool, prior, block):
    """Load a block in all groups."""
    first = layout.block_start[block]
    for a in range(layout.block_start[block + 1] - first):
        weight = layout.block_weight[first + a]
        pool.scale[0, a] = prior.scale[0, weight]
        pool.scale[1, a] = prior.scale[1, weight]
    copy_vector(pool.log_odds, prior.log_odds[block])
    for g in range(pool.weight.shape[0]):
        load_weights(layout, tables[g], chains[g], priors[g], works[g], block)


# --- the structures of each group ------------------------------------------------------------


@inner
def _tables(layout, tables):
    """Make references to the table of each group."""
    found = []
    row = start = multiple = 0
    wide = layout.states.shape[0] + 1
    for g in range(tables.rows.shape[0]):
        rows, sets = tables.rows[g], tables.sets[g]
        found.append(
            table_of(
                tables.states[row : row + wide * rows].reshape((wide, rows)),
                tables.starts[start : start + sets + 1],
                tables.multiplicity[multiple : multiple + sets],
                tables.unary[g],
                tables.pair[g],
                tables.n[g],
            )
        )
        row += wide * rows
        start += sets + 1
        multiple += sets
    return found


@inner
def _chains(layout, tables, chains):
    """Make references to the chain of each group."""
    found = []
    at = 0
    states = layout.unary_start[layout.states.shape[0]]
    for g in range(tables.rows.shape[0]):
        size = 0 if layout.exact else tables.rows[g]
        found.append(
            chain_of(
                chains.weight[g],
                chains.bias[g],
                chains.logs[at : at + states * size].reshape((states, size)),
                chains.probability[at : at + states * size].reshape((states, size)),
                chains.lowest[g],
                chains.energy[g],
                chains.digits,
            )
        )
        at += states * size
    return found


@inner
def _priors(prior, slab):
    """Make references to the prior of each group; that of the weights is not used."""
    none = np.zeros(0)
    return [
        prior_of(slab, none, prior.scale[0], prior.tied, prior.mean[g], prior.precision[g])
        for g in range(prior.mean.shape[0])
    ]


@inner
def _works(works):
    """Make references to the work arrays of each group."""
    return [
        work_of(
            works.dims[g],
            works.feature[g],
            works.size[g],
            works.change[g],
            works.factor[g],
            works.first[g],
            works.second[g],
            works.base[g],
            works.cell[g],
            works.tilted[g],
            works.moved[g],
            works.shift[g],
            works.current[g],
            works.scale[g],
            works.gradient[g],
            works.hessian[g],
            works.factor_a[g],
            works.centre[g],
            works.point[g],
            works.before[g],
            works.spread[g],
            works.ridge[g],
            works.value[g],
            works.vector[g],
            works.inclusion[g],
        )
        for g in range(works.dims.shape[0])
    ]


@kernel
def groups_sweep(rng, layout, tables, chains, prior, works, pool, tally):
    """Draw all blocks of weights and all biases once, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    layout : Layout
    tables : GroupTables
    chains : GroupChains, changed
    prior : GroupPrior
    works : Work, changed
        Arrays with a first dimension over the groups.
    pool : Pool, changed
        Its ``edge`` and ``difference`` are written for each block.
    tally : (2,) float64, changed
        Sum of the probabilities of acceptance, and number of proposals, are added.
    """
    flat = np.int64(FLAT)  # a literal would compile all callees once more
    reference, own = layout_of(*layout), pool_of(*pool)
    each = _tables(layout, tables), _chains(layout, tables, chains), _priors(prior, flat)
    _draw(rng, reference, *each, _works(works), own, prior, tally)


@inner
def _draw(rng, layout, tables, chains, priors, works, pool, prior, tally):
    for block in range(prior.log_odds.shape[0]):
        if prior.log_odds[block, EQUAL] == -np.inf == prior.log_odds[block, DIFFERENT]:
            pool.edge[block] = pool.difference[block] = 0.0
            continue
        _load(layout, tables, chains, priors, works, pool, prior, block)
        chance = _redraw(rng, layout, tables, chains, priors, works, pool, block)
        if chance >= 0.0:
            tally[0] += chance
            tally[1] += 1.0
    if not prior.tied:
        return
    flat = np.int64(FLAT)
    for g in range(pool.weight.shape[0]):
        table, chain, own, work = tables[g], chains[g], priors[g], works[g]
        for i in range(layout.states.shape[0]):
            load_biases(layout, table, chain, work, i)
            accepted, chance, _ = redraw(rng, layout, table, chain, own, work, flat, np.inf)
            if accepted:
                apply(layout, table, chain, work, work.value)
            tally[0] += chance
            tally[1] += 1.0
