"""Which nodes may have edges: exact draws given a precision matrix, and draws of the prior.

An edge is possible between two nodes that are both included. The indicators of edges are summed out.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.precision.kernels.gibbs import (
    close_column,
    marginal_log_odds,
    open_column,
    shift_column,
)
from bayesstruct.precision.kernels.odds import edge_log_odds
from bayesstruct.precision.kernels.prior import (
    REJECTION_SIZE,
    REJECTION_TRIES,
    SWEEPS,
    fill_spike_slab,
    is_positive_definite,
    sweep_prior,
)

_MORE_SWEEPS = (
    5 * SWEEPS
)  # edges and the nodes that carry them change together, more slowly than edges alone


@inner
def _softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@inner
def possible_gain(value, odds, spike, slab):
    """Log ratio of the densities of an element whose edge is possible and of one whose edge is not."""
    if odds == -math.inf:
        return 0.0
    ratio = edge_log_odds(value, 0.0, spike, slab)
    return ratio if odds == math.inf else _softplus(odds + ratio) - _softplus(odds)


@inner
def node_odds(precision, included, i, node_log_odds, log_odds, spike, slab):
    """Log odds that node i is included, given the matrix and the other nodes."""
    odds = node_log_odds[i]
    for j in range(precision.shape[0]):
        if j != i and included[j]:
            odds += possible_gain(precision[i, j], log_odds[i, j], spike, slab)
    return odds


@kernel
def draw_included(rng, precision, included, node_log_odds, log_odds, spike, slab):
    """Draw whether each node is included, one after the other, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision : (p, p) float64
    included : (p,) int64, changed in place
    node_log_odds : (p,) float64
        Prior log odds of each node.
    log_odds : (p, p) float64
        Prior log odds of each edge between included nodes; ``-inf`` forbids and ``inf`` requires it.
    spike, slab : float
        Standard deviations of elements without and with an edge.
    """
    for i in range(precision.shape[0]):
        odds = node_odds(precision, included, i, node_log_odds, log_odds, spike, slab)
        included[i] = rng.random() * (1.0 + math.exp(-odds)) < 1.0


@inner
def _switch_row(rng, precision, covariance, scatter, i, included, log_odds, spike, slab, a, work):
    """Draw the elements of a node anew as if it were switched, one after the other; return the log ratio of the two states.

    That is the product over the elements of the ratio of their evidence with and without a possible edge, given the others as they are
    in between: annealed importance sampling along a path that switches one element after the other.
    """
    column, product, order = work[0], work[1], work[2]
    t0, t1, total = 1.0 / (spike * spike), 1.0 / (slab * slab), 0.0
    pivot, count = open_column(covariance, i, column, product), 0
    for k in range(precision.shape[0]):  # a random order: that of the way back is as probable
        if k != i and included[k] and log_odds[i, k] > -math.inf:
            at = rng.integers(0, count + 1)
            order[count] = order[at]
            order[at] = k
            count += 1
    for m in range(count):
        k = int(order[m])
        ratio = column[k] / pivot
        h = a * (covariance[k, k] - ratio * column[k])
        old = precision[i, k]
        b = h * old - a * product[k] - scatter[i, k]
        odds = log_odds[i, k] + marginal_log_odds(b, h, t0, t1)
        gain = _softplus(odds) - _softplus(log_odds[i, k])
        total += -gain if included[i] else gain
        edge = not included[i] and rng.random() * (1.0 + math.exp(-odds)) < 1.0
        whole = h + (t1 if edge else t0)
        new = b / whole + rng.standard_normal() / math.sqrt(whole)
        shift_column(covariance, column, product, k, new - old, ratio)
        precision[i, k] = new
        precision[k, i] = new
    return total


@kernel
def switch_nodes(
    rng,
    precision,
    covariance,
    scatter,
    n,
    included,
    node_log_odds,
    log_odds,
    spike,
    slab,
    rate,
    work,
):
    """Switch nodes on or off together with their elements, one node after the other, in place.

    Given the matrix, a node with one strong element is all but certain to be included, and one without may have to find that
    element by chance. Here the elements are proposed anew with the node, and accepted with the annealed ratio of both states
    (Karagiannis and Andrieu 2013), which leaves the posterior invariant.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision, covariance : (p, p) float64, changed in place
        Matrix and its inverse.
    scatter : (p, p) float64
        Sum of outer products of the rows about their mean.
    n : float
        Number of rows.
    included : (p,) int64, changed in place
    node_log_odds, log_odds, spike, slab
        As of `draw_included`.
    rate : float
        Rate of the exponential prior of the diagonal.
    work : (4, p) float64
        Work space.
    """
    p, kept = precision.shape[0], work[3]
    for i in range(p):
        for k in range(p):
            kept[k] = precision[i, k]
        a = scatter[i, i] + 2.0 * rate
        odds = -node_log_odds[i] if included[i] else node_log_odds[i]
        row = i, included, log_odds, spike, slab, a, work
        odds += _switch_row(rng, precision, covariance, scatter, *row)
        if math.log(rng.random()) < odds:
            included[i] = 1 - included[i]
            pivot, v = covariance[i, i], rng.standard_gamma(0.5 * n + 1.0) * 2.0 / a
            close_column(precision, covariance, i, v, work[0], work[1], pivot)
        else:
            for k in range(p):
                precision[i, k] = kept[k]
                precision[k, i] = kept[k]


@kernel
def climb_included(precision, included, node_log_odds, log_odds, spike, slab):
    """Include each node where that is the more probable, until nothing changes; in place."""
    for _ in range(100):
        changed = False
        for i in range(precision.shape[0]):
            odds = node_odds(precision, included, i, node_log_odds, log_odds, spike, slab)
            if (odds > 0.0) != (included[i] == 1):
                included[i] = odds > 0.0
                changed = True
        if not changed:
            break


@kernel
def possible(log_odds, included):
    """Log odds of edges, ``-inf`` where a node is not included."""
    out = np.full(log_odds.shape, -np.inf)
    for i in range(len(included)):
        for j in range(len(included)):
            if included[i] and included[j]:
                out[i, j] = log_odds[i, j]
    return out


@kernel
def draw_prior_included(rng, node_probability, probability, log_odds, spike, slab, rate):
    """Draw the included nodes from the joint prior with a positive definite matrix (p,)."""
    p = len(node_probability)
    precision, edges, factor = np.empty((p, p)), np.zeros((p, p), np.int8), np.zeros((p, p))
    included = np.ones(p, np.int64)
    if p <= REJECTION_SIZE:
        for _ in range(REJECTION_TRIES):
            for i in range(p):
                included[i] = rng.random() < node_probability[i]
            nominal = np.zeros((p, p))
            for i in range(p):
                for j in range(p):
                    nominal[i, j] = probability[i, j] * included[i] * included[j]
            fill_spike_slab(rng, precision, edges, nominal, spike, slab)
            for i in range(p):
                precision[i, i] = rng.standard_exponential() / rate
            if is_positive_definite(precision, factor):
                return included
    node_log_odds = np.log(node_probability) - np.log1p(-node_probability)
    return sweep_node_prior(rng, node_log_odds, log_odds, spike, slab, rate, 1)[0]


@kernel
def sweep_node_prior(rng, node_log_odds, log_odds, spike, slab, rate, sweeps):
    """Last included nodes of a run without data, and prior probabilities of edges and of nodes, the latter on the diagonal."""
    p = len(node_log_odds)
    precision, covariance, edges = np.eye(p), np.eye(p), np.zeros((p, p), np.int8)
    included, inclusion, nodes = np.ones(p, np.int64), np.zeros((p, p)), np.zeros(p)
    for i in range(p):
        included[i] = rng.random() * (1.0 + math.exp(-node_log_odds[i])) < 1.0
    for t in range(_MORE_SWEEPS + sweeps):
        if t == _MORE_SWEEPS:
            inclusion[:] = 0.0
        odds = possible(log_odds, included)
        sweep_prior(rng, precision, covariance, edges, inclusion, odds, spike, slab, rate, 1)
        draw_included(rng, precision, included, node_log_odds, log_odds, spike, slab)
        if t >= _MORE_SWEEPS:
            for i in range(p):
                nodes[i] += included[i]
    shares = (inclusion + inclusion.T) / (2.0 * sweeps)
    for i in range(p):
        shares[i, i] = nodes[i] / sweeps
    return included, shares
