"""Sums and maxima over the subsets of each subset of some variables, and draws of parent sets.

Subsets are masks: bit b is variable b. Parent sets of a variable i are masks over the *other* variables in
increasing order; `squeezed` and `widened` go between these masks and those over all variables.
Sums are logarithms. A sum of logarithms of size L has a relative error of about :math:`10^{-16} L`.
"""

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = [
    "bit_sums",
    "draw_index",
    "draw_set",
    "log_add",
    "log_subset_sums",
    "log_sum_exp",
    "log_superset_sums",
    "ranked_lists",
    "ranked_sets",
    "squeezed",
    "subset_maxima",
    "widened",
    "write_parents",
]

# Terms smaller than this next to the largest do not change a double.
_NEGLIGIBLE = -40.0


@kernel
def squeezed(mask, i):
    """Mask over the variables other than i, from one over all without i."""
    low = (1 << i) - 1
    return (mask & low) | ((mask >> 1) & ~low)


@inner
def widened(mask, i):
    """Mask over all variables, from one over the variables other than i."""
    low = (1 << i) - 1
    return (mask & low) | ((mask & ~low) << 1)


@inner
def log_add(a, b):
    """Logarithm of ``exp(a) + exp(b)``; a term that does not change a double is left out."""
    if a < b:
        a, b = b, a
    if b == -np.inf or b - a < _NEGLIGIBLE:
        return a
    return a + np.log1p(np.exp(b - a))


@kernel
def log_sum_exp(x):
    """Logarithm of the sum of exponentials."""
    top = -np.inf
    for value in x:
        top = max(top, value)
    if top == -np.inf:
        return top
    total = 0.0
    for value in x:
        total += np.exp(value - top)
    return top + np.log(total)


@kernel
def log_subset_sums(x):
    """Replace each of 2**k log weights by the log sum over the subsets of its mask, in place."""
    step = 1
    while step < len(x):
        for start in range(0, len(x), 2 * step):
            for m in range(start, start + step):
                x[m + step] = log_add(x[m + step], x[m])
        step *= 2


@inner
def log_superset_sums(x):
    """Replace each of 2**k log weights by the log sum over the supersets of its mask, in place."""
    step = 1
    while step < len(x):
        for start in range(0, len(x), 2 * step):
            for m in range(start, start + step):
                x[m] = log_add(x[m], x[m + step])
        step *= 2


@kernel
def subset_maxima(x):
    """Replace each of 2**k values by the largest over the subsets of its mask, in place."""
    step = 1
    while step < len(x):
        for start in range(0, len(x), 2 * step):
            for m in range(start, start + step):
                x[m + step] = max(x[m + step], x[m])
        step *= 2


@kernel
def bit_sums(x):
    """Sum of the values of the masks that have each bit; x is overwritten.

    Parameters
    ----------
    x : (2**k,) float64 array

    Returns
    -------
    (k,) float64 array
    """
    k = 0
    while 1 << k < len(x):
        k += 1
    out = np.zeros(k)
    for b in range(k - 1, -1, -1):
        half = 1 << b
        total = 0.0
        for m in range(half):
            total += x[half + m]
            x[m] += x[half + m]
        out[b] = total
    return out


def ranked_sets(log_weights):
    """Parent sets of positive weight, the heaviest first.

    Returns
    -------
    masks : (sets,) int64 array
    log_weights : (sets,) float64 array
    """
    finite = np.flatnonzero(log_weights > -np.inf)
    order = finite[np.argsort(-log_weights[finite], kind="stable")]
    return order, log_weights[order]


def ranked_lists(log_weights):
    """`ranked_sets` of all children, one after the other.

    Parameters
    ----------
    log_weights : (d, 2**(d-1)) float64 array

    Returns
    -------
    starts : (d + 1,) int64 array
    masks : int64 array
    log_weights : float64 array
    """
    lists = [ranked_sets(row) for row in log_weights]
    starts = np.cumsum([0, *(len(masks) for masks, _ in lists)])
    masks, weights = zip(*lists, strict=True)
    return starts, np.concatenate(masks), np.concatenate(weights)


@inner
def draw_set(rng, masks, weights, inside, meeting, log_total):
    """Draw a set within `inside` that meets `meeting` (any set if that is -1), by its weight.

    All masks leave out the child. The scan ends early as the heaviest sets come first.
    """
    left = rng.random()
    found = np.int64(0)
    for k in range(len(masks)):
        mask = masks[k]
        if mask & ~inside == 0 and (meeting == -1 or mask & meeting != 0):
            found = mask
            left -= np.exp(weights[k] - log_total)
            if left < 0.0:
                break
    return found


@inner
def draw_index(rng, log_values, scratch):
    """Draw a position by log weights that are not all minus infinity."""
    top = -np.inf
    for value in log_values:
        top = max(top, value)
    total = 0.0
    for k in range(len(log_values)):
        total += np.exp(log_values[k] - top)
        scratch[k] = total
    left = rng.random() * total
    at = 0
    while scratch[at] <= left and scratch[at] < total:
        at += 1
    return at


@inner
def write_parents(adjacency, child, squeezed_mask):
    """Add the arcs from a parent set, a mask over the variables other than the child, to a graph."""
    mask = widened(squeezed_mask, child)
    for j in range(len(adjacency)):
        if mask >> j & 1:
            adjacency[j, child] = 1
