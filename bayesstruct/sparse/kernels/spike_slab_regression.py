r"""Gibbs sweeps over the coefficients of a regression whose prior has exact zeros.

The model is, given the noise and everything else that enters the mean,

.. math::

    y \sim N(X w, \sigma^2 \Omega^{-1}), \qquad
    \gamma_j \sim \mathrm{Bernoulli}(\pi_j), \qquad
    w_j \mid \gamma_j = 1 \sim N(0, v_j), \qquad w_j = 0 \text{ if } \gamma_j = 0 .

A Dirac spike cannot be left by moving ``w_j``: the coefficients are integrated out. Write
:math:`G = X' \Omega X`, :math:`b = X' \Omega y`, ``D`` for the diagonal matrix of the ridges
:math:`\delta_j = \sigma^2 / v_j` and :math:`A = G_{\gamma\gamma} + D_{\gamma\gamma}`. With

.. math::

    h_j = G_{jj} - G_{j\gamma} A^{-1} G_{\gamma j}, \qquad
    r_j = b_j - G_{j\gamma} A^{-1} b_\gamma

(the part of column ``j`` that the active columns do not explain, and its product with the part of
``y`` that they do not explain), the odds of ``j`` in against ``j`` out, all other indicators as they are, are

.. math::

    \frac{\pi_j}{1 - \pi_j} \sqrt{\frac{\delta_j}{\delta_j + h_j}}
        \exp \frac{r_j^2}{2 \sigma^2 (\delta_j + h_j)}

(George and McCulloch 1997, section 4, factor the same quantity afresh for each ``j``).

**Choice of the algorithm.** ``h`` and ``r`` of *all* p predictors are kept up to date; a change of
one indicator is a rank-one change of both and of the Cholesky factor of ``A``, O(p k + k^2) with k
active predictors. So the exact conditional of any indicator can be read off in O(1), and

- one pass over all indicators draws each from its conditional in O(p) plus O(p k) for each that
  changes. No proposal is left to be tuned or rejected, and no weights are needed, as they would be
  for tempered Gibbs (Zanella and Roberts 2019), whose idea of keeping all conditional odds this is.
- a *swap* takes an active predictor out and draws which predictor takes its place from the exact
  conditional over all candidates (itself included). That is a Gibbs draw too, of a categorical
  variable, and carries the chain between correlated predictors, which one-at-a-time changes do
  only through states that are much less probable. The predictor that leaves is chosen uniformly
  among the k active ones, and k is the same before and after, so that the choice cancels.

Coefficients are then drawn given the indicators, :math:`N(A^{-1} b, \sigma^2 A^{-1})`. Everything
is rebuilt from the indicators at each call, and after a number of changes within a call, which
bounds the drift of the rank-one updates and leaves no state beside ``w``.

A Laplace slab of scale ``s`` is the same with variances :math:`v_j`, drawn anew given ``w`` before
each sweep: exponential with mean :math:`2 s^2` where ``w_j`` is zero, reciprocal inverse-Gaussian
elsewhere (Park and Casella 2008, equation 5 and the conditional that follows it).

References
----------
George, E. I. and McCulloch, R. E. (1997). Approaches for Bayesian variable selection. *Statistica
Sinica* 7, 339-373. -- Smith, M. and Kohn, R. (1996). Nonparametric regression using Bayesian
variable selection. *Journal of Econometrics* 75, 317-343 (the pass over indicators). -- Zanella, G.
and Roberts, G. (2019). Scalable importance tempering and Bayesian variable selection. *JRSS B*
81(3), 489-517. -- Park, T. and Casella, G. (2008). The Bayesian Lasso. *JASA* 103, 681-686.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.arrays import copy_matrix, copy_vector
from bayesstruct.core.jit import fused_kernel, inner, kernel

_REBUILD = 100  # changes of an indicator after which h, r and the factor are computed afresh


class _Search(NamedTuple):
    """Arrays of a sweep: its input, and the quantities that follow the indicators."""

    rows: np.ndarray  # (m, p), rows of G that are known
    slot: np.ndarray  # (p,), where row j of G is in `rows`, or -1
    diagonal: np.ndarray  # (p,), of G
    score: np.ndarray  # (p,), b
    columns: np.ndarray  # (p, n), X', to compute further rows; empty if all are known
    weights: np.ndarray  # (n,), diagonal of Omega
    ridge: np.ndarray  # (p,)
    counts: np.ndarray  # (3,): active predictors, known rows, changes since the last rebuild
    members: np.ndarray  # (capacity,), active predictors in the order of the factor
    place: np.ndarray  # (p,), position among the members, or -1
    factor: np.ndarray  # (capacity, capacity), lower Cholesky factor L of A
    half: np.ndarray  # (capacity,), inv(L) b
    solve: np.ndarray  # (capacity,), work
    left: np.ndarray  # (p,), h
    pull: np.ndarray  # (p,), r
    push: np.ndarray  # (p,), work


@kernel
def slab_log_odds(h, r, ridge, variance):
    """Log of the factor by which the data change the odds of a predictor."""
    total = h + ridge
    return 0.5 * (math.log(ridge / total) + r * r / (total * variance))


@inner
def _chance(log_odds, h, r, ridge, variance):
    """Conditional probability of an indicator; infinite prior odds decide alone."""
    if log_odds == np.inf:
        return 1.0
    if log_odds == -np.inf:
        return 0.0
    return 1.0 / (1.0 + math.exp(-log_odds - slab_log_odds(h, r, ridge, variance)))


@inner
def _reserve(s):
    """Return arrays that can hold one more active predictor and one more row."""
    k, known = s.counts[0], s.counts[1]
    members, factor, half, solve, rows = s.members, s.factor, s.half, s.solve, s.rows
    p = s.slot.shape[0]
    if k == members.shape[0]:
        capacity = min(p, 2 * k + 1)
        members, half, solve = np.empty(capacity, np.int64), np.empty(capacity), np.empty(capacity)
        copy_vector(members, s.members[:k])
        copy_vector(half, s.half[:k])
        factor = np.empty((capacity, capacity))
        copy_matrix(factor, s.factor[:k, :k])
    if known == rows.shape[0] and known < p:
        rows = np.empty((min(p, 2 * known + 1), p))
        copy_matrix(rows, s.rows[:known])
    return _Search(
        rows,
        s.slot,
        s.diagonal,
        s.score,
        s.columns,
        s.weights,
        s.ridge,
        s.counts,
        members,
        s.place,
        factor,
        half,
        solve,
        s.left,
        s.pull,
        s.push,
    )


@inner
def _know(s, j):
    """Compute row j of G unless it is known."""
    if s.slot[j] < 0:
        at = s.counts[1]
        s.slot[j] = at
        s.counts[1] = at + 1
        np.dot(s.columns, s.weights * s.columns[j], s.rows[at])


@fused_kernel
def _subtract(out, factor, row):
    for l in range(out.shape[0]):
        out[l] -= factor * row[l]


@fused_kernel
def _move(left, pull, push, down, change):
    """Rank-one change of h and r."""
    for l in range(left.shape[0]):
        left[l] += down * push[l] * push[l]
        pull[l] += change * push[l]


@fused_kernel
def _solve_lower(factor, x, start, k):
    """Replace x by inv(L) x, whose first ``start`` elements are zero."""
    for i in range(start, k):
        total = x[i]
        for a in range(start, i):
            total -= factor[i, a] * x[a]
        x[i] = total / factor[i, i]


@fused_kernel
def _solve_upper(factor, x, k):
    """Replace x by inv(L') x."""
    for i in range(k - 1, -1, -1):
        x[i] /= factor[i, i]
        value = x[i]
        for a in range(i):
            x[a] -= value * factor[i, a]


@inner
def _enter(s, j):
    """Make predictor j active."""
    k, solve = s.counts[0], s.solve
    row = s.rows[s.slot[j]]
    pull = s.pull[j]
    for a in range(k):
        solve[a] = row[s.members[a]]
    _solve_lower(s.factor, solve, 0, k)
    pivot, target = row[j] + s.ridge[j], s.score[j]
    for a in range(k):
        s.factor[k, a] = solve[a]
        pivot -= solve[a] * solve[a]
        target -= solve[a] * s.half[a]
    # G is positive semidefinite: the pivot is at least the ridge, but for rounding.
    pivot = max(pivot, s.ridge[j], 1e-14 * row[j])
    root = math.sqrt(pivot)
    s.factor[k, k] = root
    s.half[k] = target / root
    _solve_upper(s.factor, solve, k)
    copy_vector(s.push, row)
    for a in range(k):
        _subtract(s.push, solve[a], s.rows[s.slot[s.members[a]]])
    _move(s.left, s.pull, s.push, -1.0 / pivot, -pull / pivot)
    s.members[k] = j
    s.place[j] = k
    s.counts[0] = k + 1
    s.counts[2] += 1


@inner
def _without(s, q):
    """Diagonal element of inv(A) and element of inv(A) b at position q; O((k - q)^2)."""
    k, x = s.counts[0], s.solve
    x[:k] = 0.0
    x[q] = 1.0
    _solve_lower(s.factor, x, q, k)
    spread = mean = 0.0
    for a in range(q, k):
        spread += x[a] * x[a]
        mean += x[a] * s.half[a]
    return spread, mean


@inner
def _open(s, q):
    """Write ``G_l. inv(A) e_q`` to ``push``, after `_without` of the same position.

    For l outside it is ``spread`` times the product of columns l and q that the others leave.
    """
    k = s.counts[0]
    _solve_upper(s.factor, s.solve, k)
    s.push[:] = 0.0
    for a in range(k):
        _subtract(s.push, -s.solve[a], s.rows[s.slot[s.members[a]]])


@fused_kernel
def _delete(factor, half, members, place, q, k):
    """Take row q out of the factor and rotate the rest back to a triangle."""
    place[members[q]] = -1
    for i in range(q, k - 1):
        members[i] = members[i + 1]
        place[members[i]] = i
        for a in range(i + 2):
            factor[i, a] = factor[i + 1, a]
    for i in range(q, k - 1):
        x, y = factor[i, i], factor[i, i + 1]
        root = math.hypot(x, y)
        c, d = x / root, y / root
        factor[i, i] = root
        for a in range(i + 1, k - 1):
            x, y = factor[a, i], factor[a, i + 1]
            factor[a, i] = c * x + d * y
            factor[a, i + 1] = c * y - d * x
        x, y = half[i], half[i + 1]
        half[i] = c * x + d * y
        half[i + 1] = c * y - d * x


@inner
def _leave(s, q, spread, mean):
    """Make the predictor at position q inactive, after `_without` and `_open` of that position."""
    j, k = s.members[q], s.counts[0]
    _move(s.left, s.pull, s.push, 1.0 / spread, mean / spread)
    s.left[j] = max(1.0 / spread - s.ridge[j], 0.0)
    s.pull[j] = mean / spread
    _delete(s.factor, s.half, s.members, s.place, q, k)
    s.counts[0] = k - 1
    s.counts[2] += 1


@inner
def _rebuild(s):
    """Compute h, r and the factor afresh from the list of active predictors."""
    k = s.counts[0]
    copy_vector(s.left, s.diagonal)
    copy_vector(s.pull, s.score)
    s.counts[0] = 0
    for a in range(k):
        _enter(s, s.members[a])
    s.counts[2] = 0


@inner
def _next_change(rng, s, inclusion, log_odds, variance, start):
    """Draw indicators in order, from ``start`` to the first that changes; returns which."""
    # Taken out of the tuple once: each access to it counts references.
    place, left, pull, ridge = s.place, s.left, s.pull, s.ridge
    for j in range(start, place.shape[0]):
        q = place[j]
        if q < 0:
            h, r = max(left[j], 0.0), pull[j]
        else:
            spread, mean = _without(s, q)
            h, r = max(1.0 / spread - ridge[j], 0.0), mean / spread
        chance = _chance(log_odds[j], h, r, ridge[j], variance)
        inclusion[j] += chance
        if (rng.random() < chance) == (q < 0):
            return j
    return place.shape[0]


@inner
def _pass(rng, s, inclusion, log_odds, variance):
    """Draw every indicator from its conditional, in order."""
    p = s.slot.shape[0]
    j = _next_change(rng, s, inclusion, log_odds, variance, 0)
    while j < p:
        q = s.place[j]
        if q < 0:
            s = _reserve(s)
            _know(s, j)
            _enter(s, j)
        else:
            spread, mean = _without(s, q)
            _open(s, q)
            _leave(s, q, spread, mean)
        if s.counts[2] > _REBUILD:
            _rebuild(s)
        j = _next_change(rng, s, inclusion, log_odds, variance, j + 1)
    return s


@inner
def _candidates(s, work, log_odds, variance, spread, mean):
    """Log odds of each predictor when that of `_open` is out; returns the greatest."""
    top = -np.inf
    place, left, pull, push, ridge = s.place, s.left, s.pull, s.push, s.ridge
    for l in range(work.shape[0]):
        work[l] = -np.inf
        if place[l] < 0 and log_odds[l] != -np.inf:
            h = max(left[l] + push[l] * push[l] / spread, 0.0)
            r = pull[l] + push[l] * mean / spread
            work[l] = log_odds[l] + slab_log_odds(h, r, ridge[l], variance)
            top = max(top, work[l])
    return top


@inner
def _pick(rng, work, top):
    """Draw an index with probability proportional to ``exp(work)``."""
    total = 0.0
    for l in range(work.shape[0]):
        gap = work[l] - top
        work[l] = math.exp(gap) if gap > -40.0 else 0.0
        total += work[l]
    rest = rng.random() * total
    last = 0
    for l in range(work.shape[0]):
        if work[l] > 0.0:
            last = l
            rest -= work[l]
            if rest < 0.0:
                break
    return last


@inner
def _swaps(rng, s, work, log_odds, variance, times):
    """Redraw the identity of active predictors, chosen at random among those not required."""
    k, free = s.counts[0], 0
    for a in range(k):
        free += log_odds[s.members[a]] != np.inf
    for _ in range(min(times, free)):
        q = rng.integers(0, k)
        while log_odds[s.members[q]] == np.inf:
            q = rng.integers(0, k)
        j = s.members[q]
        spread, mean = _without(s, q)
        _open(s, q)
        top = _candidates(s, work, log_odds, variance, spread, mean)
        own = max(1.0 / spread - s.ridge[j], 0.0)
        work[j] = log_odds[j] + slab_log_odds(own, mean / spread, s.ridge[j], variance)
        new = _pick(rng, work, max(top, work[j]))
        if new != j:
            _leave(s, q, spread, mean)
            s = _reserve(s)
            _know(s, new)
            _enter(s, new)
        if s.counts[2] > _REBUILD:
            _rebuild(s)
    return s


@inner
def _draw(rng, s, coefficients, variance):
    """Draw the coefficients given the indicators."""
    k, x, sd = s.counts[0], s.solve, math.sqrt(variance)
    for a in range(k):
        x[a] = s.half[a] + sd * rng.standard_normal()
    _solve_upper(s.factor, x, k)
    coefficients[:] = 0.0
    for a in range(k):
        coefficients[s.members[a]] = x[a]


@inner
def _sweep(rng, s, coefficients, inclusion, log_odds, variance, swaps):
    _rebuild(s)
    s = _pass(rng, s, inclusion, log_odds, variance)
    s = _swaps(rng, s, s.diagonal * 0.0, log_odds, variance, swaps)
    _draw(rng, s, coefficients, variance)


@inner
def _search(rows, slot, diagonal, score, columns, weights, ridge, active, known):
    """Arrays of a sweep that begins at these active predictors."""
    p, k = slot.shape[0], active.shape[0]
    capacity = min(p, 2 * k + 16)
    members, place = np.empty(capacity, np.int64), np.full(p, -1)
    copy_vector(members, active)
    counts = np.array([k, known, 0])
    return _Search(
        rows,
        slot,
        diagonal,
        score,
        columns,
        weights,
        ridge,
        counts,
        members,
        place,
        np.empty((capacity, capacity)),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(p),
        np.empty(p),
        np.empty(p),
    )


@kernel
def gaussian_sweep(
    rng, coefficients, inclusion, gram, diagonal, score, noise, slab, log_odds, swaps
):
    """Draw all indicators and coefficients of a regression with equal noise, once.

    Rows of the table enter through ``gram`` and ``score`` alone, so that the p regressions of a
    table on itself share one ``gram``: forbid the response by log odds of ``-inf``. A column that
    must not be selected, an intercept say, has log odds of ``inf``.

    Parameters
    ----------
    rng : numpy.random.Generator
    coefficients : (p,) float64, changed in place
        Exactly zero where a predictor is not active.
    inclusion : (p,) float64, changed in place
        The conditional probability of each indicator, its coefficient integrated out, is added here.
    gram : (p, p) float64, C-contiguous
        ``X' X``.
    diagonal : (p,) float64
        Its diagonal: gathering it would cost as much as the rest of a sweep.
    score : (p,) float64
        ``X' y`` with ``y`` less the other terms of the mean.
    noise : float
        Standard deviation of the noise, positive.
    slab : (p,) float64
        Variances of the slab, positive.
    log_odds : (p,) float64
        Prior log odds; ``-inf`` forbids and ``inf`` requires a predictor.
    swaps : int
        Maximum number of active predictors whose identity is drawn anew.
    """
    p = gram.shape[0]
    variance = noise * noise
    s = _search(
        gram,
        np.arange(p),
        diagonal,
        score,
        np.empty((p, 0)),
        np.empty(0),
        variance / slab,
        np.nonzero(coefficients)[0],
        p,
    )
    _sweep(rng, s, coefficients, inclusion, log_odds, variance, swaps)


@kernel
def weighted_sweep(
    rng, coefficients, inclusion, columns, squares, weights, target, slab, log_odds, swaps
):
    r"""Draw all indicators and coefficients of a regression with unequal noise, once.

    The likelihood is :math:`\exp(t' X w - \tfrac12 w' X' \Omega X w)`: normal responses with
    precisions :math:`\Omega` have :math:`t = \Omega y`, logistic ones the variables of
    :mod:`bayesstruct.sparse.kernels.polya_gamma`. Weights change between calls, so only those rows of
    :math:`X' \Omega X` are computed that belong to predictors which are, or become, active:
    O(n p) each, and O(n p) for its diagonal.

    Parameters
    ----------
    rng, coefficients, inclusion, slab, log_odds, swaps
        As in :func:`gaussian_sweep`.
    columns, squares : (p, n) float64, C-contiguous
        Transpose of ``X``, and its elements squared.
    weights : (n,) float64
        Diagonal of :math:`\Omega`, positive.
    target : (n,) float64
        ``t``, with the other terms of the mean taken out of it.
    """
    p, n = columns.shape
    active = np.nonzero(coefficients)[0]
    k = active.shape[0]
    slot, rows = np.full(p, -1), np.empty((min(p, k + 16), p))
    scaled = np.empty((k + 1, n))
    for a in range(k):
        slot[active[a]] = a
        for i in range(n):
            scaled[a, i] = weights[i] * columns[active[a], i]
    for i in range(n):
        scaled[k, i] = target[i]
    product = np.dot(scaled, columns.T)  # one pass over the table
    copy_matrix(rows, product[:k])
    s = _search(
        rows,
        slot,
        np.dot(squares, weights),
        product[k],
        columns,
        weights,
        1.0 / slab,
        active,
        k,
    )
    _sweep(rng, s, coefficients, inclusion, log_odds, 1.0, swaps)


@inner
def active_product(columns, coefficients, out):
    """Write ``X w`` to ``out``, (n,), at the cost of the active columns."""
    out[:] = 0.0
    for j in range(coefficients.shape[0]):
        if coefficients[j] != 0.0:
            _subtract(out, -coefficients[j], columns[j])


@kernel
def draw_slab_variances(rng, coefficients, scale, out):
    r"""Draw the variances that make normal slabs a Laplace slab, given the coefficients.

    .. math::

        p(v_j \mid w_j) \propto v_j^{-1/2} e^{-w_j^2 / (2 v_j) - v_j / (2 s_j^2)}
            \text{ if } w_j \ne 0, \qquad v_j \sim \mathrm{Exponential}(\text{mean } 2 s_j^2)
            \text{ otherwise.}

    The first is the reciprocal of an inverse-Gaussian variable, drawn by the transformation of
    Michael, Schucany and Haas (1976), written so that nothing cancels as :math:`w_j \to 0`.

    Parameters
    ----------
    rng : numpy.random.Generator
    coefficients : (p,) float64
    scale : (p,) float64
        Scales of the Laplace slab, ``exp(-|w| / s) / (2 s)``.
    out : (p,) float64, written
    """
    for j in range(coefficients.shape[0]):
        s = scale[j]
        if coefficients[j] == 0.0:
            value = 2.0 * s * s * rng.standard_exponential()
        else:
            m = s * abs(coefficients[j])
            z = s * rng.standard_normal()
            y = 0.5 * z * z
            root = m + y + math.sqrt(y * (y + 2.0 * m))
            value = root if rng.random() * (m + root) < root else m * m / root
        # A variance that underflows would make the ridge infinite.
        out[j] = max(value, 1e-24 * s * s)
