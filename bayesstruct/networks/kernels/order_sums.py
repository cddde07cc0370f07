r"""Sums and maxima over all directed acyclic graphs of a few variables, order by order.

A graph has the weight :math:`\prod_i w_i(\mathrm{pa}_i)`. The weights come as ``log_weights``, float64
(d, 2**(d-1)): entry m of row i is the parent set whose bits are over the *other* variables in increasing
order (:mod:`bayesstruct.networks.kernels.subset_sums`). :math:`-\infty` stands for weight zero.

With :math:`\alpha_i(U) = \sum_{P \subseteq U} w_i(P)`, the sum over pairs of an order and a graph that agrees with it
is f(V), where

.. math::

    f(S) = \sum_{i \in S} \alpha_i(S \setminus i) f(S \setminus i), \qquad
    r(S) = \sum_{i \notin S} \alpha_i(S) r(S \cup i),

and the parents of i are P with probability :math:`w_i(P) \sum_{U \supseteq P} f(U) r(U \cup i) / f(V)`.

Results are logarithms, with relative errors below :math:`10^{-10}` for log weights that spread over 10,000.

References
----------
Koivisto, M. (2006). Advances in exact Bayesian structure discovery in Bayesian networks. *UAI* 22.

Koivisto, M. and Sood, K. (2004). Exact Bayesian structure discovery in Bayesian networks. *JMLR* 5,
549-573.

Silander, T. and Myllymäki, P. (2006). A simple approach for finding the globally optimal Bayesian
network structure. *UAI* 22.
"""

import numpy as np

from bayesstruct.core.jit import kernel
from bayesstruct.networks.kernels.subset_sums import (
    draw_index,
    draw_set,
    log_sum_exp,
    log_superset_sums,
    squeezed,
    widened,
    write_parents,
)

__all__ = ["optimal_values", "order_backward", "order_draws", "order_families", "order_forward"]


@kernel
def optimal_values(best):
    """Largest log weight of a graph on each set of variables (Silander and Myllymäki 2006).

    Parameters
    ----------
    best : (d, 2**(d-1)) float64 array
        Log weight of the best parents among the others in the mask: `subset_maxima` of each row.

    Returns
    -------
    (2**d,) float64 array
        For the masks over all variables.
    """
    d = len(best)
    out = np.empty(1 << d)
    out[0] = 0.0
    for mask in range(1, 1 << d):
        top = -np.inf
        for i in range(d):
            if mask >> i & 1:
                rest = mask ^ (1 << i)
                top = max(top, out[rest] + best[i, squeezed(rest, i)])
        out[mask] = top
    return out


@kernel
def order_forward(sums):
    """Return f(S) of the module for each set S; (2**d,) from the sums alpha, (d, 2**(d-1))."""
    d = len(sums)
    out = np.empty(1 << d)
    terms = np.empty(d)
    out[0] = 0.0
    for mask in range(1, 1 << d):
        count = 0
        for i in range(d):
            if mask >> i & 1:
                rest = mask ^ (1 << i)
                terms[count] = out[rest] + sums[i, squeezed(rest, i)]
                count += 1
        out[mask] = log_sum_exp(terms[:count])
    return out


@kernel
def order_backward(sums):
    """Return r(S) of the module for each set S; (2**d,) from the sums alpha, (d, 2**(d-1))."""
    d = len(sums)
    out = np.empty(1 << d)
    terms = np.empty(d)
    out[-1] = 0.0
    for mask in range((1 << d) - 2, -1, -1):
        count = 0
        for i in range(d):
            if not mask >> i & 1:
                terms[count] = out[mask | 1 << i] + sums[i, squeezed(mask, i)]
                count += 1
        out[mask] = log_sum_exp(terms[:count])
    return out


@kernel
def order_families(child, log_weights, forward, backward, out):
    """Log posterior probability of each parent set of a child under an order-modular prior.

    Parameters
    ----------
    child : int
    log_weights : (2**(d-1),) float64 array
        Row `child` of the weights.
    forward, backward : (2**d,) float64 arrays
        `order_forward`, `order_backward`.
    out : (2**(d-1),) float64 array
        Where they are written.
    """
    total = forward[-1]
    for m in range(len(out)):
        mask = widened(m, child)
        out[m] = forward[mask] + backward[mask | 1 << child] - total
    log_superset_sums(out)
    for m in range(len(out)):
        out[m] += log_weights[m]


@kernel
def order_draws(rng, sums, forward, starts, masks, weights, out):
    """Draw independent graphs from an order-modular posterior.

    Parameters
    ----------
    rng : numpy.random.Generator
    sums : (d, 2**(d-1)) float64 array
        The sums alpha of the module.
    forward : (2**d,) float64 array
    starts : (d + 1,) int64 array
        Where the sets of each child start in the next two.
    masks, weights : int64 and float64 arrays
        `ranked_sets` of the children, one after the other.
    out : (draws, d, d) int8 array of zeros
        Adjacency matrices, parents as rows.
    """
    d = len(sums)
    terms, scratch, members = np.empty(d), np.empty(d), np.empty(d, np.int64)
    for draw in range(len(out)):
        mask = (1 << d) - 1
        while mask:
            count = 0
            for i in range(d):
                if mask >> i & 1:
                    rest = mask ^ (1 << i)
                    terms[count] = forward[rest] + sums[i, squeezed(rest, i)]
                    members[count] = i
                    count += 1
            i = members[draw_index(rng, terms[:count], scratch)]
            mask ^= 1 << i
            inside = squeezed(mask, i)
            here = slice(starts[i], starts[i + 1])
            found = draw_set(rng, masks[here], weights[here], inside, -1, sums[i, inside])
            write_parents(out[draw], i, found)
