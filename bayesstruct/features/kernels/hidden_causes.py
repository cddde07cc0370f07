r"""Draws of hidden binary causes of binary variables, which combine by a noisy or.

.. math::

    P(x_{ti} = 0 \mid Z, Y) = (1 - \epsilon) (1 - \lambda)^{c_{ti}}, \qquad
    c_{ti} = \sum_k z_{ik} y_{tk},

where :math:`z_{ik}` is 1 if cause k can bring about variable i, and :math:`y_{tk}` if it is active in row t, which
has prior probability q. Rows are independent given Z, an Indian buffet process over variables.

**The scan.** The entries of a variable for the causes that others have too are visited in a random order,
while the causes that it alone has stay. These are then drawn anew together with their activities: s of
them multiply the probability of a zero by :math:`(1 - \lambda q)^s` once their activities are summed out,

.. math::

    p(s) \propto \mathrm{Poisson}(s; \alpha r_p) \prod_t P(x_{ti} \mid c_{ti}, s),

and given s the number of active ones in a row is drawn from its distribution on 0, ..., s.

References
----------
Wood, F., Griffiths, T. L. and Ghahramani, Z. (2006). A non-parametric Bayesian method for inferring hidden
causes. *UAI* 22, 536-543. -- Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an
introduction and review. *JMLR* 12, 1185-1224, section 6.7 and footnote 5.
"""

import math

import numpy as np

from bayesstruct.core.jit import numpy_inner, numpy_kernel
from bayesstruct.features.kernels.feature_columns import own_last, shuffle

__all__ = ["scan_activities", "scan_causes"]

_TAIL = 45.0  # terms of a sum that are smaller by this many logarithms are left out


@numpy_inner
def _log_probabilities(most, strength, leak):
    """Log probability of 0, of 1 and of a missing value for each number of active causes, (3, most + 1)."""
    table = np.zeros((3, most + 1))
    for c in range(most + 1):
        table[0, c] = math.log1p(-leak) + c * math.log1p(-strength)
        table[1, c] = math.log(-math.expm1(table[0, c]))
    return table


@numpy_inner
def _flip_entries(rng, z, y, k, x, counts, logs, log_odds, order):
    """Draw the entries of one variable for the first k causes, which others have too."""
    shuffle(rng, order, k)
    for a in order[:k]:
        sign = -1 if z[a] else 1
        gain = sign * log_odds[a]
        for t in range(x.shape[0]):
            if y[a, t]:
                gain += logs[x[t], counts[t] + sign] - logs[x[t], counts[t]]
        if rng.random() * (1.0 + math.exp(min(-gain, 700.0))) >= 1.0:
            continue
        z[a] = 1 - z[a]
        for t in range(x.shape[0]):
            counts[t] += sign * y[a, t]


@numpy_inner
def _draw_number(rng, rate, logs, x, counts, fade):
    """Draw how many causes this variable alone has, their activities summed out.

    ``fade`` is the log of 1 - strength q. The largest of log weights with Gumbel noise is a draw in
    proportion to the weights, none of which has a likelihood above one.
    """
    most = logs.shape[1]
    seen = np.zeros((3, most))
    for t in range(x.shape[0]):
        seen[x[t], counts[t]] += 1.0
    best, chosen, top, log_prior, s = -np.inf, 0, -np.inf, 0.0, 0
    while True:
        weight = log_prior
        for c in range(most):
            absent = logs[0, c] + s * fade
            if seen[0, c] > 0.0:
                weight += seen[0, c] * absent
            if seen[1, c] > 0.0:
                weight += seen[1, c] * math.log(-math.expm1(absent))
        top = max(top, weight)
        value = weight - math.log(rng.standard_exponential())
        if value > best:
            best, chosen = value, s
        s += 1
        log_prior += math.log(rate) - math.log(s)
        if s > rate and log_prior < top - _TAIL:
            return chosen


@numpy_inner
def _draw_own_activities(rng, y, x, counts, s, strength, leak, base):
    """Draw the activities of s causes that one variable alone has; `y` is (s, n), zero before."""
    weight = np.empty(s + 1)
    for t in range(x.shape[0]):
        log_prior, total = s * math.log1p(-base), 0.0
        for a in range(s + 1):
            absent = math.log1p(-leak) + (counts[t] + a) * math.log1p(-strength)
            if x[t] == 1:
                absent = math.log(-math.expm1(absent))
            weight[a] = math.exp(log_prior + (absent if x[t] < 2 else 0.0))
            total += weight[a]
            log_prior += math.log((s - a) / (a + 1.0)) + math.log(base) - math.log1p(-base)
        level, active = rng.random() * total, 0
        while active < s and level >= weight[active]:
            level -= weight[active]
            active += 1
        counts[t] += active
        for a in range(s):
            if rng.random() * (s - a) < active:
                y[a, t] = 1
                active -= 1


@numpy_inner
def _remove(z, y, counts, first, used):
    """Drop the causes from the given place on, and subtract their activities from the counts."""
    for a in range(first, used):
        for t in range(y.shape[1]):
            counts[t] -= y[a, t]
            y[a, t] = 0
        z[a] = 0


@numpy_kernel
def scan_causes(
    rng: np.random.Generator,
    z: np.ndarray,
    y: np.ndarray,
    used: int,
    x: np.ndarray,
    rows: np.ndarray,
    strength: float,
    leak: float,
    base: float,
    rate: float,
    concentration: float,
    discount: float,
) -> int:
    """Draw the causes of variables in turn, in place; the causes are in no order afterwards.

    Parameters
    ----------
    rng : numpy.random.Generator
    z : (p, K) int8, changed
        Which causes variables have. Only the first `used` columns have ones, and each of these has.
    y : (K, n) int8, changed
        Activities, zero for causes that are not used.
    used : int
    x : (p, n) int8
        The table, one variable in each row; 2 where a value is missing.
    rows : int64 array
        Variables in the order in which they are visited.
    strength, leak, base : float
        In (0, 1): lambda, epsilon and q.
    rate : float
        Mean number of causes that a variable has alone, a priori.
    concentration, discount : float

    Returns
    -------
    int
        Number of causes that are used afterwards; -1 if K of them were not enough.
    """
    p, most = z.shape
    logs = _log_probabilities(most, strength, leak)
    fade = math.log1p(-strength * base)
    sums, log_odds = np.zeros(most, np.int64), np.zeros(most)
    order, counts = np.zeros(most, np.int64), np.zeros(x.shape[1], np.int64)
    for j in range(p):
        for a in range(used):
            sums[a] += z[j, a]
    for i in rows:
        counts[:] = 0
        for a in range(used):
            sums[a] -= z[i, a]
            if z[i, a]:
                for t in range(x.shape[1]):
                    counts[t] += y[a, t]
        shared = own_last(z, y, sums, used)
        for a in range(shared):
            log_odds[a] = math.log(
                (sums[a] - discount) / (p - 1 - sums[a] + concentration + discount)
            )
        _flip_entries(rng, z[i], y, shared, x[i], counts, logs, log_odds, order)
        _remove(z[i], y, counts, shared, used)
        used = shared
        own = _draw_number(rng, rate, logs, x[i], counts, fade)
        if used + own > most:
            return -1
        _draw_own_activities(rng, y[used : used + own], x[i], counts, own, strength, leak, base)
        z[i, used : used + own] = 1
        used += own
        for a in range(used):
            sums[a] += z[i, a]
    return used


@numpy_kernel
def scan_activities(
    rng: np.random.Generator,
    z: np.ndarray,
    y: np.ndarray,
    used: int,
    x: np.ndarray,
    strength: float,
    leak: float,
    base: float,
) -> None:
    """Draw which causes are active in each row, in place.

    Causes are visited in a random order: their order after `scan_causes` depends on the state, and a scan in an order
    that depends on the state does not leave the posterior invariant.

    Parameters
    ----------
    rng : numpy.random.Generator
    z : (p, K) int8
    y : (K, n) int8, changed
    used : int
    x : (p, n) int8
    strength, leak, base : float
        As in `scan_causes`.
    """
    p, n = x.shape
    logs = _log_probabilities(z.shape[1], strength, leak)
    log_odds = math.log(base) - math.log1p(-base)
    counts, order = np.empty(p, np.int64), np.empty(z.shape[1], np.int64)
    shuffle(rng, order, used)
    for t in range(n):
        for i in range(p):
            counts[i] = 0
            for a in range(used):
                counts[i] += z[i, a] * y[a, t]
        for a in order[:used]:
            sign = -1 if y[a, t] else 1
            gain = sign * log_odds
            for i in range(p):
                if z[i, a]:
                    gain += logs[x[i, t], counts[i] + sign] - logs[x[i, t], counts[i]]
            if rng.random() * (1.0 + math.exp(min(-gain, 700.0))) >= 1.0:
                continue
            y[a, t] = 1 - y[a, t]
            for i in range(p):
                counts[i] += sign * z[i, a]
