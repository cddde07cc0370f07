r"""Draws of the weights and biases of pairwise Markov random fields whose edges may be absent.

A *block* of weights belongs to one edge and is zero as a whole, or drawn from a slab,

.. math::

    \gamma_b \sim \mathrm{Bernoulli}(\pi_b), \qquad
    w_b = 0 \text{ if } \gamma_b = 0, \qquad
    w_{bk} \mid \gamma_b = 1 \sim \mathrm{Normal, Laplace\ or\ Cauchy}(0, s_{bk}).

Indicator and weights of a block are proposed together, from an approximation of their distribution given
everything else (:mod:`bayesstruct.fields.kernels.slab`), and accepted by the Metropolis-Hastings ratio. Since
the likelihood has many rows the approximation is nearly exact, most proposals are accepted, and an update is close to a
Gibbs draw of the indicator with the weights summed out. Biases move along with the weights
(:mod:`bayesstruct.fields.kernels.block`); those of each variable are then drawn together in the same way, without
indicator. Nothing is adapted.

*Swaps* move the chain between edges that explain the same dependence: an active block, chosen at random, is
emptied and an inactive one of an edge that shares a variable with it, chosen at random, is filled.
Both approximations are made with both blocks empty, hence are the same for the reverse move.

**Probabilities of full blocks.** Each update records an estimate of the probability that its block is full
given everything else: the indicator after the update, minus the proposed indicator, plus the
probability with which a full block is proposed (`inclusion_estimate`). Its expectation is that of the
indicator whatever the approximation, and its variance nearly that of the conditional probability,
as for draws from the conditional distribution itself (Gelfand and Smith 1990).

Blocks are visited in order.

References
----------
Schmidt, M. (2010). Graphical model structure learning with l1-regularization. PhD thesis, University
of British Columbia, sections 1.4 and 1.5 (models and pseudo-likelihood). -- Gelfand, A. E. and Smith, A. F. M.
(1990). Sampling-based approaches to calculating marginal densities. *JASA* 85, 398-409. -- Marsman, M., van den
Bergh, D. and Haslbeck, J. M. B. (2025). Bayesian analysis of the ordinal Markov random field.
*Psychometrika* 90 (a sampler of the same posterior by adaptive random walks).
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
from bayesstruct.fields.kernels.slab import FLAT, approximate, log_proposal, log_slab_of, propose

__all__ = ["LEAST", "accept", "inclusion_estimate", "redraw", "sweep"]

LEAST = 1e-4  # smallest probability of either value of an indicator in proposals


@inner
def inclusion_estimate(full, proposed, share, chance, acceptance):
    r"""Estimate the probability that a block is full given everything else, from one proposal.

    Parameters
    ----------
    full, proposed : float
        Indicator of the block now, and as proposed.
    share, chance : float
        Probability of a full block in the approximation, and in the proposals: the same within bounds.
    acceptance : float
        Probability of acceptance.

    Notes
    -----
    The indicator after the move has mean :math:`g + \alpha (g' - g)` over acceptance and refusal;
    :math:`g' - q`, with :math:`q` the probability of proposing a full block, has mean zero whatever
    :math:`q` is: a control variate, which does not change the expectation. Where proposals are accepted, the
    difference of both is :math:`q`. Proposals of blocks that are proposed far more often than they are full
    (or empty) are mostly refused; the control variate is shrunk by the same factor.
    """
    shrink = 1.0
    if share < chance:
        shrink = share / chance
    elif share > chance:
        shrink = (1.0 - share) / (1.0 - chance)
    return full + acceptance * (proposed - full) - shrink * (proposed - chance)


@inner
def accept(rng, log_ratio):
    """Whether to accept, and the probability of acceptance."""
    chance = math.exp(min(log_ratio, 0.0))
    return rng.random() < chance, chance


@inner
def redraw(rng, layout, table, chain, prior, work, slab, log_odds):
    """Propose indicator and values of the current block.

    Returns whether the proposal, in ``value``, was accepted; the probability of acceptance, minus one if
    nothing was proposed; and an estimate of the probability of a full block.
    """
    d = work.dims[0]
    full = log_odds == np.inf
    for a in range(d):
        full = full or work.current[a] != 0.0
    evidence, empty = approximate(layout, table, chain, prior, work, slab, log_odds)
    share = 1.0 / (1.0 + math.exp(min(-log_odds - evidence, 700.0)))
    chance = 1.0 if log_odds == np.inf else min(max(share, LEAST), 1.0 - LEAST)
    # Prior odds of an indicator that is certain cancel.
    odds = 0.0 if log_odds == np.inf else log_odds
    enters = chance == 1.0 or rng.random() < chance
    if not (enters or full):
        return False, -1.0, inclusion_estimate(0.0, 0.0, share, chance, 1.0)
    log_ratio = 0.0
    if full:
        log_ratio -= odds + log_slab_of(work, slab, work.current)
        log_ratio += math.log(chance) + log_proposal(work, slab, work.current)
    else:
        log_ratio += math.log1p(-chance) - empty
    if enters:
        propose(rng, work, slab)
        log_ratio += odds + log_slab_of(work, slab, work.value)
        log_ratio -= math.log(chance) + log_proposal(work, slab, work.value)
        log_ratio += evaluate(layout, table, chain, prior, work, work.value, False)
    else:
        work.value[:d] = 0.0
        log_ratio += empty - math.log1p(-chance)
    if not full:
        log_ratio += empty  # the present point is the empty block: its log-likelihood is zero
    accepted, acceptance = accept(rng, log_ratio)
    now, then = 1.0 if full else 0.0, 1.0 if enters else 0.0
    estimate = inclusion_estimate(now, then, share, chance, acceptance)
    return accepted, acceptance, estimate


@inner
def _is_full(layout, chain, block):
    for m in range(layout.block_start[block], layout.block_start[block + 1]):
        if chain.weight[layout.block_weight[m]] != 0.0:
            return True
    return False


@inner
def _touches(layout, a, b):
    """Whether the edges of two blocks are different and share a variable."""
    e, f = layout.block_edge[a], layout.block_edge[b]
    i, j, k, l = layout.source[e], layout.target[e], layout.source[f], layout.target[f]
    return e != f and (i in (k, l) or j in (k, l))


@inner
def _is_free(prior, block):
    return abs(prior.log_odds[block]) != np.inf


@inner
def _pick_full(rng, layout, chain, prior, blocks):
    """Choose a full block that may be emptied at random, or -1."""
    chosen, count = -1, 0
    for block in blocks:
        if _is_free(prior, block) and _is_full(layout, chain, block):
            count += 1
            if rng.random() * count < 1.0:
                chosen = block
    return chosen


@inner
def _pick_rival(rng, layout, chain, prior, blocks, block):
    """Choose an empty block that touches another one at random, or -1; and count them."""
    chosen, count = -1, 0
    for rival in blocks:
        if (
            _touches(layout, block, rival)
            and _is_free(prior, rival)
            and not _is_full(layout, chain, rival)
        ):
            count += 1
            if rng.random() * count < 1.0:
                chosen = rival
    return chosen, count


@inner
def _swap(rng, layout, table, chain, prior, work, blocks):
    """Exchange a full block for an empty one; returns the probability of acceptance, or -1."""
    block = _pick_full(rng, layout, chain, prior, blocks)
    if block < 0:
        return -1.0
    rival, choices = _pick_rival(rng, layout, chain, prior, blocks, block)
    if rival < 0:
        return -1.0
    slab = prior.slab
    load_weights(layout, table, chain, prior, work, block)
    d = work.dims[0]
    kept = work.current[:d].copy()
    _, log_ratio = approximate(layout, table, chain, prior, work, slab, np.inf)
    log_ratio += log_proposal(work, slab, kept) - log_slab_of(work, slab, kept)
    log_ratio -= prior.log_odds[block]
    work.value[:d] = 0.0
    apply_weights(layout, table, chain, work, block, work.value)

    load_weights(layout, table, chain, prior, work, rival)
    approximate(layout, table, chain, prior, work, slab, np.inf)
    propose(rng, work, slab)
    log_ratio += evaluate(layout, table, chain, prior, work, work.value, False)
    log_ratio += log_slab_of(work, slab, work.value) - log_proposal(work, slab, work.value)
    log_ratio += prior.log_odds[rival]
    # In the reverse move the block is one of the empty ones that touch the rival.
    back = 1
    for other in blocks:
        back += (
            other != block
            and _touches(layout, rival, other)
            and _is_free(prior, other)
            and not _is_full(layout, chain, other)
        )
    log_ratio += math.log(choices) - math.log(back)
    accepted, chance = accept(rng, log_ratio)
    if accepted:
        apply_weights(layout, table, chain, work, rival, work.value)
    else:
        load_weights(layout, table, chain, prior, work, block)
        copy_vector(work.value, kept)
        apply_weights(layout, table, chain, work, block, work.value)
    return chance


@kernel
def sweep(rng, layout, table, chain, prior, work, blocks, variables, swaps, tally):
    """Draw blocks of weights and the biases of variables once, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    layout, table, prior : Layout, Table, Prior
    chain : Chain, changed
    work : Work, changed
        Its ``inclusion`` is written for each of the blocks.
    blocks : int64 array
        Blocks of weights, in the order in which they are visited.
    variables : int64 array
        Variables whose biases are drawn, if the prior says that biases are drawn.
    swaps : int
        Number of proposed exchanges of a full block for an empty one.
    tally : (2,) float64, changed
        Sum of the probabilities of acceptance, and number of proposals that were not to leave an
        empty block empty, are added.
    """
    layout, table, prior = layout_of(*layout), table_of(*table), prior_of(*prior)
    chain, work = chain_of(*chain), work_of(*work)
    _sweep(rng, layout, table, chain, prior, work, blocks, variables, swaps, tally)


@inner
def _sweep(rng, layout, table, chain, prior, work, blocks, variables, swaps, tally):
    for block in blocks:
        log_odds = prior.log_odds[block]
        if log_odds == -np.inf:
            work.inclusion[block] = 1.0 if _is_full(layout, chain, block) else 0.0
            continue
        load_weights(layout, table, chain, prior, work, block)
        accepted, chance, work.inclusion[block] = redraw(
            rng, layout, table, chain, prior, work, prior.slab, log_odds
        )
        if accepted:
            apply_weights(layout, table, chain, work, block, work.value)
        if chance >= 0.0:
            tally[0] += chance
            tally[1] += 1.0
    for _ in range(swaps):
        chance = _swap(rng, layout, table, chain, prior, work, blocks)
        if chance >= 0.0:
            tally[0] += chance
            tally[1] += 1.0
    if not prior.tied:
        return
    flat = np.int64(FLAT)  # a literal would compile all callees once more
    for i in variables:
        load_biases(layout, table, chain, work, i)
        accepted, chance, _ = redraw(rng, layout, table, chain, prior, work, flat, np.inf)
        if accepted:
            apply(layout, table, chain, work, work.value)
        tally[0] += chance
        tally[1] += 1.0
