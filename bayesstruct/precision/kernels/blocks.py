"""Unknown blocks of columns: exact draws of the partition given a precision matrix, and draws of the prior.

An edge has one probability within a block and another one between blocks. Labels are those of a finite mixture of at most
``most`` blocks whose shares have a symmetric Dirichlet distribution; blocks are numbered in the order of their first columns.
"""

import math

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.node_inclusion import possible_gain
from bayesstruct.precision.kernels.odds import edge_log_odds
from bayesstruct.precision.kernels.prior import (
    REJECTION_SIZE,
    REJECTION_TRIES,
    SWEEPS,
    fill_spike_slab,
    is_positive_definite,
    sweep_prior,
)

_MORE_SWEEPS = 5 * SWEEPS  # edges and blocks change together, more slowly than edges alone


@kernel
def renumber(labels, most):
    """Give the blocks numbers in the order of their first columns, in place; return how many there are."""
    names, count = np.full(most, -1, np.int64), 0
    for i in range(len(labels)):
        if names[labels[i]] < 0:
            names[labels[i]] = count
            count += 1
        labels[i] = names[labels[i]]
    return count


@inner
def _log_odds(share):
    return math.log(share) - math.log1p(-share)


@inner
def _label_weights(precision, labels, i, shares, most, concentration, spike, slab, weights):
    """Log weight of each block for column i, given the matrix and the other columns."""
    inside, outside = _log_odds(shares[0]), _log_odds(shares[1])
    for b in range(most):
        weights[b] = concentration / most
    for j in range(len(labels)):
        if j != i:
            weights[labels[j]] += 1.0
    for b in range(most):
        weights[b] = math.log(weights[b])
    for j in range(len(labels)):
        if j != i:
            weights[labels[j]] += possible_gain(precision[i, j], inside, spike, slab)
            weights[labels[j]] -= possible_gain(precision[i, j], outside, spike, slab)


@kernel
def draw_labels(rng, precision, labels, shares, most, concentration, spike, slab):
    """Draw the block of each column, one after the other, the indicators of edges summed out; in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision : (p, p) float64
    labels : (p,) int64, changed in place
    shares : (2,) float64
        Probability of an edge within and between blocks.
    most : int
        Maximum number of blocks.
    concentration : float
        Of the Dirichlet distribution of the shares of blocks, all blocks together.
    spike, slab : float
    """
    weights = np.empty(most)
    for i in range(len(labels)):
        _label_weights(precision, labels, i, shares, most, concentration, spike, slab, weights)
        top, total = weights.max(), 0.0
        for b in range(most):
            weights[b] = math.exp(weights[b] - top)
            total += weights[b]
        left, b = total * rng.random(), 0
        while b < most - 1 and left >= weights[b]:
            left -= weights[b]
            b += 1
        labels[i] = b
    renumber(labels, most)


@inner
def _climb(precision, labels, shares, most, concentration, spike, slab):
    """Give each column its most probable block as a partition, until nothing changes; in place."""
    weights, counts = np.empty(most), np.empty(most)
    for _ in range(100):
        changed = False
        for i in range(len(labels)):
            _label_weights(precision, labels, i, shares, most, concentration, spike, slab, weights)
            counts[:] = 0.0
            for j in range(len(labels)):
                if j != i:
                    counts[labels[j]] += 1.0
            empty = (counts == 0.0).sum()
            for b in range(most):
                if counts[b] == 0.0:  # all empty blocks are one new block of the partition
                    weights[b] += math.log(empty)
            best = np.argmax(weights)
            if weights[best] > weights[labels[i]] + 1e-12:
                labels[i], changed = best, True
        if not changed:
            break
    renumber(labels, most)


@inner
def _score(precision, labels, shares, most, concentration, spike, slab):
    """Log probability of a partition given the matrix, up to a constant."""
    sizes, total, used = np.zeros(most), math.lgamma(most + 1.0), 0
    for i in range(len(labels)):
        sizes[labels[i]] += 1.0
        for j in range(i):
            odds = _log_odds(shares[0] if labels[i] == labels[j] else shares[1])
            total += possible_gain(precision[i, j], odds, spike, slab)
    each = concentration / most
    for b in range(most):
        if sizes[b] > 0.0:
            used += 1
            total += math.lgamma(sizes[b] + each) - math.lgamma(each)
    return total - math.lgamma(most - used + 1.0)


@kernel
def best_labels(rng, precision, labels, shares, most, concentration, spike, slab, starts):
    """Improve a partition by moves of single columns, from itself and from random ones; in place.

    Parameters are those of `draw_labels`; ``starts`` is the number of random partitions.
    """
    prior = (shares, most, concentration, spike, slab)
    _climb(precision, labels, *prior)
    best, other = _score(precision, labels, *prior), np.empty_like(labels)
    for _ in range(starts):
        for i in range(len(labels)):
            other[i] = rng.integers(0, most)
        _climb(precision, other, *prior)
        score = _score(precision, other, *prior)
        if score > best + 1e-9:
            best = score
            copy_vector(labels, other)


@kernel
def best_shares(precision, labels, shares, alpha, beta, spike, slab):
    """Maximise the expected log density of the probabilities of edges, given those of the edges at the present ones; in place."""
    present, total = np.zeros(2), np.zeros(2)
    for i in range(len(labels)):
        for j in range(i):
            kind = 0 if labels[i] == labels[j] else 1
            odds = edge_log_odds(precision[i, j], _log_odds(shares[kind]), spike, slab)
            present[kind] += 1.0 / (1.0 + math.exp(-odds))
            total[kind] += 1.0
    for kind in range(2):
        above = max(alpha[kind] - 1.0 + present[kind], 0.0)
        whole = alpha[kind] + beta[kind] - 2.0 + total[kind]
        shares[kind] = min(max(above / max(whole, 1e-12), 1e-6), 1.0 - 1e-6)


@kernel
def draw_shares(rng, precision, labels, shares, alpha, beta, spike, slab):
    """Draw the indicators of edges, then the probabilities of edges within and between blocks, in place."""
    present, absent = np.zeros(2), np.zeros(2)
    for i in range(len(labels)):
        for j in range(i):
            kind = 0 if labels[i] == labels[j] else 1
            odds = edge_log_odds(precision[i, j], _log_odds(shares[kind]), spike, slab)
            if rng.random() * (1.0 + math.exp(-odds)) < 1.0:
                present[kind] += 1.0
            else:
                absent[kind] += 1.0
    for kind in range(2):
        x = rng.standard_gamma(alpha[kind] + present[kind])
        x = x / (x + rng.standard_gamma(beta[kind] + absent[kind]))
        shares[kind] = min(max(x, 1e-300), 1.0 - 1e-16)


@kernel
def edge_matrix(labels, shares):
    """Probability of each edge (p, p)."""
    p = len(labels)
    out = np.empty((p, p))
    for i in range(p):
        for j in range(p):
            out[i, j] = shares[0] if labels[i] == labels[j] else shares[1]
    return out


@kernel
def _urn(rng, labels, most, concentration):
    """Draw labels from their prior without the cone, in place."""
    counts = np.zeros(most)
    for i in range(len(labels)):
        left, b = (concentration + i) * rng.random(), 0
        while b < most - 1 and left >= counts[b] + concentration / most:
            left -= counts[b] + concentration / most
            b += 1
        labels[i] = b
        counts[b] += 1.0
    renumber(labels, most)


@kernel
def _nominal_shares(rng, shares, alpha, beta):
    for kind in range(2):
        x = rng.standard_gamma(alpha[kind])
        shares[kind] = min(max(x / (x + rng.standard_gamma(beta[kind])), 1e-300), 1.0 - 1e-16)


@kernel
def draw_prior_blocks(rng, p, shares, fixed, alpha, beta, most, concentration, spike, slab, rate):
    """Draw labels, and shares unless they are fixed, from the joint prior with a positive definite matrix."""
    precision, edges, factor = np.empty((p, p)), np.zeros((p, p), np.int8), np.zeros((p, p))
    labels = np.zeros(p, np.int64)
    if p <= REJECTION_SIZE:
        for _ in range(REJECTION_TRIES):
            if not fixed:
                _nominal_shares(rng, shares, alpha, beta)
            _urn(rng, labels, most, concentration)
            fill_spike_slab(rng, precision, edges, edge_matrix(labels, shares), spike, slab)
            for i in range(p):
                precision[i, i] = rng.standard_exponential() / rate
            if is_positive_definite(precision, factor):
                return labels
    sweep_blocks(rng, labels, shares, fixed, alpha, beta, most, concentration, spike, slab, rate, 1)
    return labels


@kernel
def sweep_blocks(
    rng, labels, shares, fixed, alpha, beta, most, concentration, spike, slab, rate, sweeps
):
    """Run the joint prior without data; labels and shares are changed in place. Return prior probabilities of edges (p, p)."""
    p = len(labels)
    precision, covariance, edges = np.eye(p), np.eye(p), np.zeros((p, p), np.int8)
    inclusion = np.zeros((p, p))
    _urn(rng, labels, most, concentration)
    if not fixed:
        _nominal_shares(rng, shares, alpha, beta)
    for t in range(_MORE_SWEEPS + sweeps):
        if t == _MORE_SWEEPS:
            inclusion[:] = 0.0
        odds = np.empty((p, p))
        for i in range(p):
            for j in range(p):
                odds[i, j] = _log_odds(shares[0] if labels[i] == labels[j] else shares[1])
        sweep_prior(rng, precision, covariance, edges, inclusion, odds, spike, slab, rate, 1)
        draw_labels(rng, precision, labels, shares, most, concentration, spike, slab)
        if not fixed:
            draw_shares(rng, precision, labels, shares, alpha, beta, spike, slab)
    return (inclusion + inclusion.T) / (2.0 * sweeps)
