r"""Sums over all directed acyclic graphs of a few variables, layer by layer.

A graph has the weight :math:`\prod_i w_i(\mathrm{pa}_i)`. The weights come as ``log_weights``, float64
(d, 2**(d-1)): entry m of row i is the parent set whose bits are over the *other* variables in increasing
order (:mod:`bayesstruct.networks.kernels.subset_sums`). :math:`-\infty` stands for weight zero.

Each graph has one partition into layers: its roots, then the roots of the graph without them,
and so on; a variable has at least one parent in the layer just before its own. With S the union of
the layers so far, T the last one, W the next and

.. math::

    \beta_v(S, T) = \sum_{P \subseteq S, P \cap T \ne \emptyset} w_v(P), \qquad
    F(S \cup W, W) = \sum_{T \subseteq S} F(S, T) \prod_{v \in W} \beta_v(S, T),

the sum over graphs is :math:`\sum_T F(V, T)` (the layers are those of Kuipers and Moffa 2017). This takes
:math:`4^d` steps where inclusion and exclusion over sinks (Tian and He 2009) takes :math:`3^d`, but all
terms are positive: the :math:`\beta` are summed up, not subtracted, so that nothing cancels. The products
are of numbers in [0, 1], the shares :math:`\beta_v(S, T) / \alpha_v(S)`, where
:math:`\alpha_v(S) = \sum_{P \subseteq S} w_v(P)`, and F(S, T) relative to its largest
value for S. Terms that underflow have no noticeable probability: the graphs of a term are as many times less
probable, in all, as those that they become when variables take other parents within S, or the graph on
S is one with the best last layer; and these are acyclic, too.

Results are logarithms. A sum of logarithms of size L has a relative error of about
:math:`10^{-16} L` for each level of a recursion, below :math:`10^{-10}` in all for log weights that spread
over 10,000.

References
----------
Kuipers, J. and Moffa, G. (2017). Partition MCMC for inference on acyclic digraphs. *JASA* 112, 282-299.

Tian, J. and He, R. (2009). Computing posterior probabilities of structural features in Bayesian
networks. *UAI* 25.
"""

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.networks.kernels.subset_sums import (
    draw_index,
    draw_set,
    log_add,
    log_subset_sums,
    log_sum_exp,
    ranked_lists,
    squeezed,
    write_parents,
)

__all__ = [
    "meeting_sums",
    "partition_backward",
    "partition_draws",
    "partition_forward",
    "partition_tables",
    "partition_total",
]

# Shares below this one are zero.
_SMALLEST = 1e-290


@kernel
def meeting_sums(log_weights):
    """Log sum over the sets within a mask that contain one of its variables.

    Parameters
    ----------
    log_weights : (d, 2**(d-1)) float64 array

    Returns
    -------
    (d, d, 2**(d-1)) float64 array
        Child, variable, mask over the others of the child; minus infinity where the mask is without the
        variable.
    """
    d, size = log_weights.shape
    out = np.full((d, d, size), -np.inf)
    for i in range(d):
        for j in range(d):
            if i == j:
                continue
            bit = squeezed(1 << j, i)
            for m in range(size):
                if m & bit:
                    out[i, j, m] = log_weights[i, m]
            log_subset_sums(out[i, j])
    return out


@inner
def _ternary(d):
    """For each mask the sum of 3**i over its bits i; the pair T within S has the place S' + T'."""
    out = np.zeros(1 << d, np.int64)
    power = 1
    for i in range(d):
        for m in range(1 << i):
            out[(1 << i) + m] = out[m] + power
        power *= 3
    return out


@inner
def _submasks(mask, out):
    """Write the subsets of a mask in increasing order, and return the number of its bits."""
    out[0] = 0
    k = 0
    rest = mask
    while rest:
        bit = rest & -rest
        for m in range(1 << k):
            out[(1 << k) + m] = out[m] | bit
        k += 1
        rest ^= bit
    return k


@inner
def _bits(mask, out):
    """Write the positions of the bits of a mask, and return their number."""
    count = 0
    i = 0
    while mask >> i:
        if mask >> i & 1:
            out[count] = i
            count += 1
        i += 1
    return count


@inner
def _layer_factors(mask, subsets, size, nodes, meeting, out):
    """Log beta_v(S, T) for S = mask, its subsets T and some nodes v; into (nodes, subsets).

    Sets that meet T meet it first in one of its variables: T without its highest variable h, or in h
    alone, in which case they are within S without the others of T.
    """
    for a in range(len(nodes)):
        v = nodes[a]
        out[a, 0] = -np.inf
        step, h = 1, 0
        while step < size:
            while not mask >> h & 1:
                h += 1
            for m in range(step):
                rest = squeezed(mask & ~subsets[m], v)
                out[a, step + m] = log_add(out[a, m], meeting[v, h, rest])
            step *= 2
            h += 1


@inner
def _factors(mask, subsets, size, nodes, log_weights, meeting, logs, shares, sums):
    """Log beta_v(S, T), their shares beta / alpha in [0, 1], and log alpha_v(S), for some nodes v."""
    _layer_factors(mask, subsets, size, nodes, meeting, logs)
    for a in range(len(nodes)):
        empty = log_weights[nodes[a], 0]
        if mask == 0:  # before the first layer there is nothing to meet
            logs[a, 0] = empty
            sums[a] = empty
        else:
            sums[a] = log_add(empty, logs[a, size - 1])
        for t in range(size):
            shares[a, t] = np.exp(logs[a, t] - sums[a]) if logs[a, t] > -np.inf else 0.0


@kernel
def partition_forward(log_weights, meeting):
    """Return F(S, T) of the module for all T within S.

    Parameters
    ----------
    log_weights : (d, 2**(d-1)) float64 array
    meeting : (d, d, 2**(d-1)) float64 array
        `meeting_sums`.

    Returns
    -------
    (3**d,) float64 array
        Digit i of a place (base 3) is 0 for a variable outside S, 1 in S but not in T, 2 in T.
    """
    d = len(log_weights)
    full = (1 << d) - 1
    ternary = _ternary(d)
    out = np.full(3**d, -np.inf)
    inner, outer = np.empty(1 << d, np.int64), np.empty(1 << d, np.int64)
    nodes, sums = np.empty(d, np.int64), np.empty(d)
    logs, shares = np.empty((d, 1 << d)), np.empty((d, 1 << d))
    before, scale = np.empty(1 << d), np.empty(1 << d)
    product, total = np.empty(1 << d), np.empty(1 << d)
    for mask in range(full):
        size = 1 << _submasks(mask, inner)
        _submasks(full ^ mask, outer)
        count = _bits(full ^ mask, nodes)
        top = _states(out, ternary, mask, inner[:size], before)
        if top == -np.inf:
            continue
        _factors(mask, inner, size, nodes[:count], log_weights, meeting, logs, shares, sums)
        total[: 1 << count] = 0.0
        for t in range(size):
            product[0] = np.exp(before[t] - top)
            if product[0] > 0.0:
                _add_products(shares[:count, t], product, total)
        _products(sums[:count], scale)
        for w in range(1, 1 << count):
            if total[w] > 0.0:
                value = top + scale[w] + np.log(total[w])
                out[ternary[mask] + 2 * ternary[outer[w]]] = value
    return out


@inner
def _states(table, ternary, mask, subsets, out):
    """Copy the entries of all T within S = mask, and return the largest."""
    if mask == 0:
        out[0] = 0.0
        return 0.0
    top = -np.inf
    for t in range(len(subsets)):
        out[t] = table[ternary[mask] + ternary[subsets[t]]]
        top = max(top, out[t])
    return top


@inner
def _add_products(factors, product, total):
    """Add the product of the factors in each subset, times product[0], to the total of the subset."""
    for a in range(len(factors)):
        factor, half = factors[a], 1 << a
        for w in range(half):
            value = product[w] * factor
            product[half + w] = value
            total[half + w] += value


@kernel
def partition_total(forward, d):
    """Log sum of the weights of all graphs, from `partition_forward`."""
    full = (1 << d) - 1
    ternary = _ternary(d)
    terms = np.empty(full)
    for mask in range(1, full + 1):
        terms[mask - 1] = forward[ternary[full] + ternary[mask]]
    return log_sum_exp(terms)


@kernel
def partition_backward(log_weights, meeting, forward):
    r"""Posterior probability of each parent set under a modular prior.

    Parameters
    ----------
    log_weights : (d, 2**(d-1)) float64 array
    meeting : (d, d, 2**(d-1)) float64 array
        `meeting_sums`.
    forward : (3**d,) float64 array
        `partition_forward`.

    Returns
    -------
    (d, 2**(d-1)) float64 array
        Probabilities in the layout of the weights.

    Notes
    -----
    Let :math:`\kappa_v(S, T)` be the probability that v comes next after the layers (S, T), times
    :math:`\alpha_v(S) / \beta_v(S, T)`. It is at most 1: it is the probability of the graphs that
    become such ones when v gives up parents within S for others that meet T. The parents are P with
    probability :math:`\sum_{S \supseteq P, T \cap P \ne \emptyset} \kappa_v(S, T) w_v(P) /
    \alpha_v(S)`, a sum of positive numbers that cannot overflow.
    """
    d = len(log_weights)
    full = (1 << d) - 1
    ternary = _ternary(d)
    log_total = partition_total(forward, d)
    rest = np.full(3**d, -np.inf)  # the sum B(S, T) over all that may follow
    for mask in range(1, full + 1):
        rest[ternary[full] + ternary[mask]] = 0.0
    inner, outer = np.empty(1 << d, np.int64), np.empty(1 << d, np.int64)
    nodes, sums, parts = np.empty(d, np.int64), np.empty(d), np.empty(d)
    logs, shares = np.empty((d, 1 << d)), np.empty((d, 1 << d))
    before, scale = np.empty(1 << d), np.empty(1 << d)
    product, after = np.empty(1 << d), np.empty(1 << d)
    out = np.zeros(log_weights.shape)
    for mask in range(full - 1, -1, -1):
        size = 1 << _submasks(mask, inner)
        _submasks(full ^ mask, outer)
        count = _bits(full ^ mask, nodes)
        if _states(forward, ternary, mask, inner[:size], before) == -np.inf:
            continue
        _factors(mask, inner, size, nodes[:count], log_weights, meeting, logs, shares, sums)
        _products(sums[:count], scale)
        scale[0] = -np.inf  # the next layer is not empty
        for w in range(1, 1 << count):
            scale[w] += rest[ternary[mask] + 2 * ternary[outer[w]]]
        top = -np.inf
        for w in range(1 << count):
            top = max(top, scale[w])
        for w in range(1 << count):
            after[w] = np.exp(scale[w] - top) if scale[w] > -np.inf else 0.0
        for t in range(size):
            chance = np.exp(before[t] + top - log_total) if before[t] > -np.inf else 0.0
            if not chance > 0.0:
                shares[:count, t] = 0.0
                continue
            value = _node_parts(shares[:count, t], after, product, parts)
            if value > 0.0:
                rest[ternary[mask] + ternary[inner[t]]] = top + np.log(value)
            for a in range(count):
                share = shares[a, t]
                shares[a, t] = chance * parts[a] / share if share > _SMALLEST else 0.0
        for a in range(count):
            _add_families(mask, inner[:size], nodes[a], sums[a], shares[a], log_weights, out)
    return out


@inner
def _products(log_factors, out):
    """Write the sum of the log factors in each subset, the empty one first."""
    out[0] = 0.0
    for a in range(len(log_factors)):
        for w in range(1 << a):
            out[(1 << a) + w] = out[w] + log_factors[a]


@inner
def _node_parts(factors, after, product, parts):
    """Sum of `after` times products of factors over all subsets, and over those with each element."""
    count = len(factors)
    product[0] = 1.0
    for a in range(count):
        factor, half = factors[a], 1 << a
        for w in range(half):
            product[half + w] = product[w] * factor
    for w in range(1 << count):
        product[w] *= after[w]
    return _fold(product, count, parts)


@inner
def _fold(x, count, parts):
    """Sum over all subsets, and over those with each element; x is overwritten."""
    for a in range(count - 1, -1, -1):
        half = 1 << a
        part = 0.0
        for w in range(half):
            part += x[half + w]
            x[w] += x[half + w]
        parts[a] = part
    return x[0]


@inner
def _add_families(mask, subsets, v, log_sum, x, log_weights, out):
    """Add the terms of kappa_v(S, T) for all T within S = mask to the parents of v; x is overwritten."""
    size = len(subsets)
    if mask == 0:
        out[v, 0] += x[0]
        return
    met = np.zeros(size)
    _met(x[:size], met)
    for m in range(1, size):
        place = squeezed(subsets[m], v)
        if met[m] > 0.0:
            out[v, place] += met[m] * np.exp(log_weights[v, place] - log_sum)


@inner
def _met(x, out):
    """For each set P the sum of x over the sets T that meet it, into zeros; x is overwritten.

    One bit after the other turns from one of T into one of P; x keeps those T that do not meet P.
    """
    step = 1
    while step < len(x):
        for start in range(0, len(x), 2 * step):
            for m in range(start, start + step):
                without, present = x[m], x[m + step]
                both = out[m] + out[m + step]
                x[m] = without + present
                x[m + step] = without
                out[m] = both
                out[m + step] = both + present
        step *= 2


@kernel
def partition_draws(rng, log_weights, meeting, forward, starts, masks, weights, out):
    """Draw independent graphs from a modular posterior.

    Parameters
    ----------
    rng : numpy.random.Generator
    log_weights, meeting, forward
        As in `partition_backward`.
    starts, masks, weights
        As in `order_draws`.
    out : (draws, d, d) int8 array of zeros
        Adjacency matrices, parents as rows.
    """
    d = len(log_weights)
    full = (1 << d) - 1
    ternary = _ternary(d)
    inner, nodes = np.empty(1 << d, np.int64), np.empty(d, np.int64)
    factors = np.empty((d, 1 << d))
    values, scratch = np.empty(1 << d), np.empty(1 << d)
    for draw in range(len(out)):
        union = full
        for mask in range(full + 1):
            values[mask] = forward[ternary[full] + ternary[mask]]
        layer = np.int64(draw_index(rng, values, scratch))
        while union != layer:
            union ^= layer
            size = 1 << _submasks(union, inner)
            count = _bits(layer, nodes)
            _layer_factors(union, inner, size, nodes[:count], meeting, factors)
            for t in range(size):
                values[t] = forward[ternary[union] + ternary[inner[t]]]
                for a in range(count):
                    values[t] += factors[a, t]
            t = draw_index(rng, values[:size], scratch)
            layer = inner[t]
            for a in range(count):
                v = nodes[a]
                here = slice(starts[v], starts[v + 1])
                inside, before = squeezed(union, v), squeezed(layer, v)
                found = draw_set(rng, masks[here], weights[here], inside, before, factors[a, t])
                write_parents(out[draw], v, found)


def partition_tables(log_weights):
    """Tables that `partition_draws` takes after the generator: weights, sums and ranked sets."""
    meeting = meeting_sums(log_weights)
    forward = partition_forward(log_weights, meeting)
    return log_weights, meeting, forward, *ranked_lists(log_weights)
