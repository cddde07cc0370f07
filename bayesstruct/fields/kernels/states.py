"""Draws of rows of a pairwise Markov random field: exact, perfect, or by Gibbs sampling."""

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.fields.kernels.exact import joint

__all__ = ["draw_exact", "draw_gibbs", "draw_perfect"]


@inner
def _first_beyond(levels, u):
    """Position of the first of increasing levels that is greater than u, at most the last one."""
    low, high = 0, len(levels) - 1
    while low < high:
        middle = (low + high) // 2
        if levels[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def draw_exact(rng, states, unary, pair, out):
    """Draw independent rows from the table of all joint states.

    Parameters
    ----------
    rng : numpy.random.Generator
    states : (p,) int64 array
    unary, pair : float64 arrays
        Tables of log-potentials, flat, of all pairs.
    out : (n, p) int64 array
        Filled.
    """
    cumulative = joint(states, unary, pair)
    for k in range(1, len(cumulative)):
        cumulative[k] += cumulative[k - 1]
    for m in range(len(out)):
        at = _first_beyond(cumulative, rng.random() * cumulative[-1])
        for i in range(len(states) - 1, -1, -1):
            out[m, i] = at % states[i]
            at //= states[i]


@kernel
def draw_gibbs(rng, states, unary_start, unary, start, other, table_start, table, sweeps, out):
    """Sweep over the variables of each row; every row is an independent chain.

    Parameters
    ----------
    rng : numpy.random.Generator
    states : (p,) int64 array
    unary_start, unary : arrays
        Unary tables.
    start, other : int64 arrays
        Neighbours of each variable in compressed rows.
    table_start, table : arrays
        For each of them a table of (own state, other's state).
    sweeps : int
    out : (n, p) int64 array
        States at the start of the chains; replaced by those at their ends.
    """
    p = len(states)
    widest = 0
    for k in states:
        widest = max(widest, k)
    weights = np.empty(widest)
    for m in range(len(out)):
        x = out[m]
        for _ in range(sweeps):
            for i in range(p):
                k = states[i]
                top = -np.inf
                for s in range(k):
                    total = unary[unary_start[i] + s]
                    for e in range(start[i], start[i + 1]):
                        j = other[e]
                        total += table[table_start[e] + s * states[j] + x[j]]
                    weights[s] = total
                    top = max(top, total)
                x[i] = _choose(rng, weights, k, top)


@inner
def _choose(rng, logits, k, top):
    total = 0.0
    for s in range(k):
        logits[s] = np.exp(logits[s] - top)
        total += logits[s]
    u = rng.random() * total
    for s in range(k - 1):
        u -= logits[s]
        if u < 0.0:
            return s
    return k - 1


@inner
def _monotone_sweep(seed, threshold, start, other, coupling, low, high):
    """Move two ordered rows by the same random numbers, those of one sweep."""
    state = np.uint64(seed)
    for i in range(len(threshold)):
        # splitmix64: the numbers of a sweep can be generated again from its seed.
        state += np.uint64(0x9E3779B97F4A7C15)
        z = state
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        u = (np.float64(z >> np.uint64(11)) + 0.5) * 2.0**-53
        logit = np.log(u) - np.log1p(-u)
        below = above = threshold[i]
        for e in range(start[i], start[i + 1]):
            below += coupling[e] * low[other[e]]
            above += coupling[e] * high[other[e]]
        low[i] = 1 if logit < below else 0
        high[i] = 1 if logit < above else 0


@kernel
def draw_perfect(rng, threshold, start, other, coupling, most, out):
    """Draw rows of binary variables that attract each other exactly, by monotone coupling from the past.

    Propp, J. G. and Wilson, D. B. (1996). Exact sampling with coupled Markov chains and applications
    to statistical mechanics. *Random Structures & Algorithms* 9, 223-252.

    Parameters
    ----------
    rng : numpy.random.Generator
    threshold : (p,) float64 array
        Log odds of a 1 when all others are 0.
    start, other, coupling : arrays
        Neighbours and couplings, not negative, in compressed rows.
    most : int
        Sweeps after which a row is abandoned.
    out : (n, p) int64 array
        Filled.

    Returns
    -------
    int
        Number of rows drawn before the first that was abandoned.
    """
    p = len(threshold)
    low, high = np.empty(p, np.int64), np.empty(p, np.int64)
    seeds = np.empty(most, np.uint64)
    for m in range(len(out)):
        known, length, met = 0, 1, False
        while not met:
            if length > most:
                return m
            for t in range(known, length):
                seeds[t] = np.uint64(rng.integers(0, 2**62))
            known = length
            low[:], high[:] = 0, 1
            for t in range(length - 1, -1, -1):
                _monotone_sweep(seeds[t], threshold, start, other, coupling, low, high)
            met = True
            for i in range(p):
                met = met and low[i] == high[i]
            length *= 2
        out[m] = low
    return len(out)
