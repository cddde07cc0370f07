r"""Sums over the parent sets that an order or a partition of the variables allows, and draws from them.

Samplers over directed acyclic graphs ask, again and again, for

.. math::

    \log \sum_{\pi} e^{s_i(\pi)}, \qquad \pi \subseteq \text{allowed}, \quad
    \pi \cap \text{nearest} \ne \emptyset \text{ (if anything is nearest)},

:math:`s_i(\pi)` being the log score of variable ``i`` with parents :math:`\pi`, plus the log prior, as tabulated in
:mod:`bayesstruct.networks.kernels.parent_tables`. A sum takes one look-up for each allowed extra, two
if it must meet something: :math:`Z(\text{allowed}) - Z(\text{allowed} \setminus \text{nearest})`. Ratios of sums are
added up without exponentials. Where they underflow the logarithms serve; where the
difference cancels, its terms are added up one by one.

References
----------
Friedman, N. and Koller, D. (2003). Being Bayesian about network structure. *Machine Learning* 50, 95-125
(sums given an order). -- Kuipers, J. and Moffa, G. (2017). Partition MCMC for inference on acyclic
digraphs. *JASA* 112, 282-299 (sums given a partition).
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.networks.kernels.parent_tables import (
    LIST,
    RATIO,
    ROWS,
    SCORE,
    SIZE,
    TINY,
    TOP,
    ZETA,
    log_add,
)

__all__ = ["FREE", "draw_parents", "log_difference", "log_sum", "masks"]

#: A threshold ``nearest`` that asks for nothing.
FREE = -1
_CLOSE = 1e-6  # share of a sum that a difference of sums may cancel to
_NEGLIGIBLE = -45.0  # logarithm of a term that does not change a sum


@kernel
def masks(own, position, nearest, limit):
    """Masks of the candidates before ``limit`` and of those before ``nearest``."""
    allowed = early = np.int64(0)
    for b in range(own[SIZE]):
        p = position[own[LIST + b]]
        if p < limit:
            allowed |= np.int64(1) << b
            if p < nearest:
                early |= np.int64(1) << b
    return allowed, early


@kernel
def log_sum(t, child, position, nearest, limit):
    r"""Log of the sum over the parent sets that positions allow.

    Parameters
    ----------
    t : ParentTables
    child : int
    position : (d,) int64 array
        Of each variable; not negative.
    nearest : int
        If not ``FREE``, a set must have a member at a position of at least ``nearest``.
    limit : int
        All members are at positions below.

    Returns
    -------
    float
        :math:`\log \sum e^{s_i(\pi)}`, ``-inf`` if there is no set.
    """
    own, v = t.layout[child], t.values
    allowed, early = masks(own, position, nearest, limit)
    top = v[own[TOP] + allowed]
    if top == -np.inf:
        return -np.inf
    n, extra = own[ROWS], LIST + own[SIZE] - 1
    a, b = own[RATIO] + allowed * n, own[RATIO] + early * n
    every, before, near = v[a], v[b], 0.0
    far = limit if nearest == FREE else nearest
    for e in range(1, n):
        p = position[own[extra + e]]
        if p < far:
            every += v[a + e]
            before += v[b + e]
        elif p < limit:
            near += v[a + e]
    if nearest == FREE:
        before = 0.0
    elif allowed == early:
        every = before = 0.0
    elif before > 0.0:
        before *= math.exp(v[own[TOP] + early] - top)
    out = log_difference(top, near, every, before)
    if math.isnan(out):
        return _log_sum(own, v, position, nearest, limit, allowed, early)
    return out


@inner
def log_difference(top, near, every, before):
    """Return the log of ``exp(top) (near + every - before)``, NaN if that may be inaccurate."""
    total = near + (every - before)
    if near + every > TINY and total > _CLOSE * every:
        return top + math.log(total)
    return np.nan


@inner
def _log_sum(own, v, position, nearest, limit, allowed, early):
    """Return the same from logarithms, and term by term where these cancel."""
    n, extra = own[ROWS], LIST + own[SIZE] - 1
    a, b = own[ZETA] + allowed * n, own[ZETA] + early * n
    every, before, near = v[a], v[b], -np.inf
    far = limit if nearest == FREE else nearest
    for e in range(1, n):
        p = position[own[extra + e]]
        if p < far:
            every = log_add(every, v[a + e])
            before = log_add(before, v[b + e])
        elif p < limit:
            near = log_add(near, v[a + e])
    if nearest == FREE:
        return every
    if allowed == early:
        return near
    out = log_add(near, _log_subtract(every, before))
    if every == -np.inf or out > every + math.log(_CLOSE):
        return out
    out = near
    for r in range(n):
        if r == 0 or position[own[extra + r]] < nearest:
            out = log_add(out, _log_meeting(own, v, r, allowed, early))
    return out


@inner
def _log_subtract(x, y):
    """Logarithm of ``exp(x) - exp(y)``, ``x >= y`` up to rounding."""
    if y == -np.inf:
        return x
    return x + math.log(-math.expm1(y - x)) if y < x else -np.inf


@inner
def _log_meeting(own, v, row, allowed, early):
    """Sum over the sets of a row that have a candidate outside ``early``, term by term."""
    base = own[SCORE] + (row << own[SIZE])
    top, total, m = -np.inf, 0.0, allowed
    while m > 0:
        if m & ~early:
            x = v[base + m]
            if x > top:
                total = total * math.exp(top - x) + 1.0
                top = x
            elif x > -np.inf:
                total += math.exp(x - top)
        m = (m - 1) & allowed
    return top + math.log(total) if total > 0.0 else -np.inf


@inner
def _row_sum(own, v, row, free, allowed, early):
    """Sum over the possible sets of a row: all, or those with a candidate outside ``early``."""
    n = own[ROWS]
    every = v[own[ZETA] + allowed * n + row]
    if free:
        return every
    if allowed == early or every == -np.inf:
        return -np.inf
    out = _log_subtract(every, v[own[ZETA] + early * n + row])
    if out > every + math.log(_CLOSE):
        return out
    return _log_meeting(own, v, row, allowed, early)


@kernel
def draw_parents(rng, t, child, position, nearest, limit, adjacency):
    """Draw a parent set of a child from the sets that positions allow, by their scores.

    Parameters
    ----------
    rng : numpy.random.Generator
    t, child, position, nearest, limit
        As in :func:`log_sum`; there must be a possible set.
    adjacency : (d, d) int8 array
        Its column of the child is overwritten.
    """
    own, v = t.layout[child], t.values
    allowed, early = masks(own, position, nearest, limit)
    total = log_sum(t, child, position, nearest, limit)
    left, extra = rng.random(), LIST + own[SIZE] - 1
    row, weight, meet = np.int64(-1), -np.inf, np.int64(-1)
    for r in range(own[ROWS]):
        p = -1 if r == 0 else position[own[extra + r]]
        if p < limit:
            free = nearest == FREE or p >= nearest
            w = _row_sum(own, v, r, free, allowed, early)
            if w > -np.inf:
                # Rounding may leave something after the last possible row: then that is drawn.
                row, weight, meet = r, w, np.int64(-1) if free else ~early
                left -= math.exp(w - total)
                if left < 0.0:
                    break
    mask = _draw_mask(rng.random(), v, own[SCORE] + (row << own[SIZE]), weight, allowed, meet)
    for j in range(len(adjacency)):
        adjacency[j, child] = 0
    if row > 0:
        adjacency[own[extra + row], child] = 1
    for b in range(own[SIZE]):
        if mask >> b & 1:
            adjacency[own[LIST + b], child] = 1


@inner
def _draw_mask(left, v, base, total, allowed, meet):
    """Draw a subset of ``allowed`` that meets ``meet``; any if that is -1."""
    mask, m = np.int64(0), allowed
    while True:
        if meet == -1 or m & meet:
            log = v[base + m] - total
            if log > _NEGLIGIBLE:
                mask = m
                left -= math.exp(log)
                if left < 0.0:
                    break
        if m == 0:
            break
        m = (m - 1) & allowed
    return mask
