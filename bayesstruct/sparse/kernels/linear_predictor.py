r"""Moves of coefficients with exact zeros under any likelihood of a linear predictor.

The model is, given everything else,

.. math::

    p(y \mid w) = \prod_i p(y_i \mid \eta_i), \qquad \eta = o + X w, \qquad
    w_g \sim \text{slab with probability } \pi_g, \text{ else exactly zero,}

for groups g of coefficients with normal slabs of variances v (a Laplace slab is one whose variances are drawn before). The
integral over a group has no closed form, so that its indicator and its values are drawn together by Metropolis-Hastings steps
in which nothing is approximated: only the proposal is.

**One group.** Given all others, Newton steps *from zero* find the mode m of
:math:`f(w_g) = \log p(y \mid w) - \tfrac12 \sum w_j^2 / v_j` and its curvature H there, hence the Laplace approximation of the
integral and from it a probability :math:`\rho` of being in. The proposal is out with probability :math:`1 - \rho`, and in, with
values from a multivariate t distribution q about m with curvature H, otherwise. It does not depend on the present state of the
group, which is accepted or kept by the ratio of the weights

.. math::

    W(\text{out}) = \frac{(1 - \pi) e^{f(0)}}{1 - \rho}, \qquad
    W(w_g) = \frac{\pi \prod_j N(w_j; 0, v_j) \, p(y \mid w)}{\rho \, q(w_g)} .

All families here are log-concave in the predictor and slabs are normal, so that tails of q are heavier and W is bounded.

**Swap.** A group in the model, chosen at random, is taken out; which group takes its place, it or one that is out, is proposed
with probabilities from Laplace approximations of the most promising groups, and from one Newton step for each other. How well correlated
predictors mix depends on this. Values are proposed as above. The number of groups in the model
and the probabilities of choice are the same for the way back, so that the ratio of weights is again that of two groups.

**Joint refresh.** The values of several active coefficients, chosen at random, are proposed together, which correlated ones need.

References
----------
Gamerman, D. (1997). Sampling from the posterior distribution in generalized linear mixed models. *Statistics and Computing* 7,
57-68 (proposals by Newton steps). -- Green, P. J. (1995). Reversible jump Markov chain Monte Carlo computation and Bayesian
model determination. *Biometrika* 82, 711-732.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import fused_kernel, inner, kernel
from bayesstruct.core.special import LOG_2PI, log_normal_cdf

__all__ = [
    "NEGATIVE_BINOMIAL",
    "ORDERED_LOGISTIC",
    "ORDERED_PROBIT",
    "POISSON",
    "log_likelihood",
    "predictor_sweep",
    "slopes",
]

POISSON, NEGATIVE_BINOMIAL, ORDERED_LOGISTIC, ORDERED_PROBIT = range(4)
_FREEDOM = 8.0  # of the t distribution that values are proposed from
_FLOOR = 1e-3  # least probability of proposing a group in, or out
_REFINED = 8  # candidates of an exchange whose modes are found
_JOINT = 10  # coefficients that are refreshed together
_NEWTON, _HALVINGS = 40, 40
_SMALL = 1e-6  # increase of the log density that another Newton step would bring
_HIGHEST = 600.0  # log of a mean that may still be added up


class _Rows(NamedTuple):
    """A likelihood of each row, and work arrays."""

    family: int
    columns: np.ndarray  # (p, n), X'
    values: np.ndarray  # (3, n), what the likelihood of each row depends on beside its predictor
    slab: np.ndarray  # (p,), variances
    eta: np.ndarray  # (n,), the predictor
    base: np.ndarray  # (n,), the predictor without one group
    trial: np.ndarray  # (n,)
    slope: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    mode: np.ndarray  # (d,), of the group that was looked at last
    factor: np.ndarray  # (d, d), lower Cholesky factor of its curvature
    step: np.ndarray  # (d,)
    other: np.ndarray  # (d,)


@kernel
def _softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@kernel
def _sigmoid(x):
    e = math.exp(-abs(x))
    return (1.0 if x >= 0.0 else e) / (1.0 + e)


@kernel
def _log_normal_interval(low, high):
    """Log probability of an interval of the standard normal distribution."""
    if low > 0.0:
        low, high = -high, -low
    top, bottom = log_normal_cdf(high), log_normal_cdf(low)
    if not bottom < top:
        return -np.inf
    return top + math.log1p(-math.exp(bottom - top))


@kernel
def log_likelihood(family, eta, a, b, c):
    """Log likelihood of one row, up to what does not depend on its predictor.

    Parameters
    ----------
    family : int
    eta : float
    a, b, c : float
        Poisson: count. Negative binomial: count, and alpha. Ordered logistic and probit: cutpoints below and above, which may be
        infinite; the probit has a standard deviation too.
    """
    if family == POISSON:
        return a * eta - math.exp(min(eta, _HIGHEST))
    if family == NEGATIVE_BINOMIAL:
        return a * eta - (a + b) * _softplus(eta - math.log(b))
    if family == ORDERED_LOGISTIC:
        return -_softplus(eta - b) - _softplus(a - eta)
    return _log_normal_interval((a - eta) / c, (b - eta) / c)


@kernel
def slopes(family, eta, a, b, c):
    """Return the derivative of `log_likelihood` in the predictor, and minus the second one."""
    if family == POISSON:
        mean = math.exp(min(eta, _HIGHEST))
        return a - mean, mean
    if family == NEGATIVE_BINOMIAL:
        share = _sigmoid(eta - math.log(b))
        return a - (a + b) * share, (a + b) * share * (1.0 - share)
    if family == ORDERED_LOGISTIC:
        below, above = _sigmoid(a - eta), _sigmoid(eta - b)
        return below - above, below * (1.0 - below) + above * (1.0 - above)
    low, high = (a - eta) / c, (b - eta) / c
    total = _log_normal_interval(low, high)
    slope = curvature = 0.0
    for x, sign in ((low, 1.0), (high, -1.0)):
        if abs(x) < np.inf:
            density = math.exp(-0.5 * x * x - 0.5 * LOG_2PI - total)
            slope += sign * density / c
            curvature -= sign * x * density / (c * c)
    return slope, max(curvature + slope * slope, 0.0)


@fused_kernel
def _add_column(out, column, factor):
    for i in range(out.shape[0]):
        out[i] += factor * column[i]


@inner
def _total(s, eta):
    values, total = s.values, 0.0
    for i in range(eta.shape[0]):
        total += log_likelihood(s.family, eta[i], values[0, i], values[1, i], values[2, i])
    return total


@inner
def _derivatives(s, eta):
    values = s.values
    for i in range(eta.shape[0]):
        slope, weight = slopes(s.family, eta[i], values[0, i], values[1, i], values[2, i])
        s.slope[i] = slope
        s.weight[i] = weight


@inner
def _predict(s, members, x):
    """Write the predictor with values x of the members to `trial`; return the log density f of these values."""
    copy_vector(s.trial, s.base)
    prior = 0.0
    for a in range(members.shape[0]):
        _add_column(s.trial, s.columns[members[a]], x[a])
        prior += x[a] * x[a] / s.slab[members[a]]
    return _total(s, s.trial) - 0.5 * prior


@fused_kernel
def _weighted_product(x, y, weight):
    total = 0.0
    for i in range(weight.shape[0]):
        total += weight[i] * x[i] * y[i]
    return total


@inner
def _newton_step(s, members, at):
    """Factor the curvature at values, whose slopes are known, and write the Newton step.

    Returns the increase of the log density that a quadratic function would have, twice.
    """
    d, factor, step = members.shape[0], s.factor, s.step
    for a in range(d):
        row, ridge = s.columns[members[a]], 1.0 / s.slab[members[a]]
        total = -at[a] * ridge
        for i in range(row.shape[0]):
            total += row[i] * s.slope[i]
        for b in range(a + 1):
            entry = _weighted_product(row, s.columns[members[b]], s.weight)
            for l in range(b):
                entry -= factor[a, l] * factor[b, l]
            if a == b:  # the curvature is at least the ridge, but for rounding
                factor[a, a] = math.sqrt(max(entry + ridge, ridge))
            else:
                factor[a, b] = entry / factor[b, b]
        for l in range(a):
            total -= factor[a, l] * step[l]
        step[a] = total / factor[a, a]
    gain = 0.0
    for a in range(d):
        gain += step[a] * step[a]
    _solve_transposed(factor, step, d)
    return gain


@inner
def _solve_transposed(factor, x, d):
    """Replace x by inv(L') x."""
    for a in range(d - 1, -1, -1):
        for b in range(a + 1, d):
            x[a] -= factor[b, a] * x[b]
        x[a] /= factor[a, a]


@inner
def _log_spread(s, members):
    """Log of the volume of the approximation over that of the slab."""
    total = 0.0
    for a in range(members.shape[0]):
        total -= math.log(s.factor[a, a]) + 0.5 * math.log(s.slab[members[a]])
    return total


@inner
def _approximate(s, members):
    """Find mode and curvature of the members given the predictor without them, from zero.

    Returns the Laplace approximation of the log of their likelihood, integrated over the slab.
    """
    d, mode, other = members.shape[0], s.mode, s.other
    for a in range(d):
        mode[a] = 0.0
    value = _predict(s, members, mode)
    for _ in range(_NEWTON):
        _derivatives(s, s.trial)
        if _newton_step(s, members, mode) < _SMALL:
            break
        share, found = 1.0, value
        for _ in range(_HALVINGS):
            for a in range(d):
                other[a] = mode[a] + share * s.step[a]
            found = _predict(s, members, other)
            if found > value:
                break
            share *= 0.5
        if not found > value:
            break
        value = found
        copy_vector(mode, other[:d])
    return value + _log_spread(s, members)


@inner
def _propose(rng, s, members, out):
    """Draw values from the t distribution about the mode."""
    d = members.shape[0]
    scale = math.sqrt(0.5 * _FREEDOM / rng.standard_gamma(0.5 * _FREEDOM))
    for a in range(d):
        out[a] = scale * rng.standard_normal()
    _solve_transposed(s.factor, out, d)
    for a in range(d):
        out[a] += s.mode[a]


@inner
def _log_weight(s, members, x):
    """Log of slab times likelihood over proposal; leaves the predictor in `trial`."""
    d, distance = members.shape[0], 0.0
    for a in range(d):
        total = 0.0
        for b in range(a, d):
            total += s.factor[b, a] * (x[b] - s.mode[b])
        distance += total * total
    half = 0.5 * (_FREEDOM + d)
    proposal = math.lgamma(half) - math.lgamma(0.5 * _FREEDOM)
    proposal -= 0.5 * d * math.log(_FREEDOM * math.pi) + half * math.log1p(distance / _FREEDOM)
    spread = _log_spread(s, members)  # slab and proposal carry these factors
    return _predict(s, members, x) + spread - 0.5 * d * LOG_2PI - proposal


@inner
def _take_out(s, members, w):
    copy_vector(s.base, s.eta)
    for a in range(members.shape[0]):
        _add_column(s.base, s.columns[members[a]], -w[members[a]])


@inner
def _put(s, members, w, x):
    """Give the members these values."""
    copy_vector(s.eta, s.base)
    for a in range(members.shape[0]):
        w[members[a]] = x[a]
        _add_column(s.eta, s.columns[members[a]], x[a])


@inner
def _accepted(difference):
    """Probability of accepting at a difference of log weights; zero where it is not a number."""
    if difference >= 0.0:
        return 1.0
    return math.exp(difference) if difference < 0.0 else 0.0


@inner
def _redraw(rng, s, members, w, present, log_odds):
    """Draw a group once; returns whether it is in now, and the probability with which it would be."""
    d = members.shape[0]
    now, new, out = np.empty(d), np.empty(d), np.zeros(d)
    for a in range(d):
        now[a] = w[members[a]]
    _take_out(s, members, w)
    if log_odds == -np.inf:
        _put(s, members, w, out)
        return False, 0.0
    evidence = _approximate(s, members)
    _propose(rng, s, members, new)
    weight_new = _log_weight(s, members, new)
    weight_now = _log_weight(s, members, now) if present else 0.0
    if log_odds == np.inf:
        if rng.random() < _accepted(weight_new - weight_now):
            _put(s, members, w, new)
        return True, 1.0
    weight_out = _total(s, s.base)
    chance = _sigmoid(log_odds + evidence - weight_out)
    chance = min(max(chance, _FLOOR), 1.0 - _FLOOR)
    inside, outside = log_odds - math.log(chance), -math.log1p(-chance)
    weight_new += inside
    weight_out += outside
    weight_now = weight_now + inside if present else weight_out
    enters, leaves = _accepted(weight_new - weight_now), _accepted(weight_out - weight_now)
    probability = 1.0 - (1.0 - chance) * leaves if present else chance * enters
    if rng.random() < chance:
        if rng.random() < enters:
            _put(s, members, w, new)
            present = True
    elif present and rng.random() < leaves:
        _put(s, members, w, out)
        present = False
    return present, probability


@inner
def _pick(rng, scores):
    """Draw an index with probability proportional to ``exp(scores)``."""
    top, total, last = scores.max(), 0.0, 0
    for g in range(scores.shape[0]):
        total += math.exp(scores[g] - top)
    rest = rng.random() * total
    for g in range(scores.shape[0]):
        if scores[g] > -np.inf:
            last = g
            rest -= math.exp(scores[g] - top)
            if rest < 0.0:
                break
    return last


@inner
def _score(s, members):
    """Approximate log of the integrated likelihood, by one Newton step from zero where slopes are known."""
    for a in range(members.shape[0]):
        s.mode[a] = 0.0
    gain = _newton_step(s, members, s.mode)
    return 0.5 * gain + _log_spread(s, members)


@inner
def _refine(s, order, starts, scores, log_odds):
    """Replace the highest scores by those of the modes, and let no other be higher than the least of these.

    One Newton step from zero is far off where effects are large: exchanges would be proposed that are never accepted. The
    scores still depend on nothing but the predictor without the group and on the candidates.
    """
    found, level, least = np.full(scores.shape[0], -np.inf), _total(s, s.base), np.inf
    for _ in range(_REFINED):
        best = -1
        for h in range(scores.shape[0]):
            if found[h] == -np.inf and scores[h] > -np.inf:
                if best < 0 or scores[h] > scores[best]:
                    best = h
        if best < 0:
            break
        members = order[starts[best] : starts[best + 1]]
        found[best] = log_odds[best] + _approximate(s, members) - level
        least = min(least, found[best])
    for h in range(scores.shape[0]):
        scores[h] = found[h] if found[h] > -np.inf else min(scores[h], least)


@inner
def _swap(rng, s, order, starts, w, on, log_odds):
    """Exchange a group in the model, chosen at random, for one that is out."""
    groups = on.shape[0]
    free = np.nonzero(on & (log_odds < np.inf))[0]
    g = free[rng.integers(0, free.shape[0])]
    old = order[starts[g] : starts[g + 1]]
    now, scores = np.empty(old.shape[0]), np.full(groups, -np.inf)
    for a in range(old.shape[0]):
        now[a] = w[old[a]]
    _take_out(s, old, w)
    _derivatives(s, s.base)
    for h in range(groups):
        if (h == g or not on[h]) and log_odds[h] > -np.inf:
            scores[h] = log_odds[h] + _score(s, order[starts[h] : starts[h + 1]])
    _refine(s, order, starts, scores, log_odds)
    h = _pick(rng, scores)
    if h == g:
        return
    _approximate(s, old)
    weight_now = _log_weight(s, old, now) + log_odds[g] - scores[g]
    members = order[starts[h] : starts[h + 1]]
    new, out = np.empty(members.shape[0]), np.zeros(old.shape[0])
    _approximate(s, members)
    _propose(rng, s, members, new)
    weight_new = _log_weight(s, members, new) + log_odds[h] - scores[h]
    if rng.random() < _accepted(weight_new - weight_now):
        _put(s, old, w, out)
        _put(s, members, w, new)
        on[g], on[h] = False, True


@inner
def _refresh(rng, s, w, active):
    """Draw the values of several active coefficients, chosen at random, together."""
    size = min(_JOINT, active.shape[0])
    for a in range(size):
        b = rng.integers(a, active.shape[0])
        active[a], active[b] = active[b], active[a]
    members = active[:size]
    now, new = np.empty(size), np.empty(size)
    for a in range(size):
        now[a] = w[members[a]]
    _take_out(s, members, w)
    _approximate(s, members)
    _propose(rng, s, members, new)
    weight_now = _log_weight(s, members, now)
    if rng.random() < _accepted(_log_weight(s, members, new) - weight_now):
        _put(s, members, w, new)


@kernel
def predictor_sweep(
    rng, coefficients, inclusion, family, columns, eta, values, slab, log_odds, order, starts, swaps
):
    """Draw each group of coefficients once, exchange some, and refresh the values of several.

    Parameters
    ----------
    rng : numpy.random.Generator
    coefficients : (p,) float64, changed in place
        Exactly zero where a group is not in the model.
    inclusion : (groups,) float64, written
        Probability with which each group was to be in after its own draw. Its mean over a chain is the inclusion probability.
    family : int
        ``POISSON``, ``NEGATIVE_BINOMIAL``, ``ORDERED_LOGISTIC`` or ``ORDERED_PROBIT``.
    columns : (p, n) float64, C-contiguous
        Transpose of ``X``.
    eta : (n,) float64, changed in place
        The linear predictor.
    values : (3, n) float64
        Arguments a, b and c of :func:`log_likelihood`.
    slab : (p,) float64
        Variances of the slab.
    log_odds : (groups,) float64
        Prior log odds; ``-inf`` forbids and ``inf`` requires a group.
    order : (p,) int64
        Coefficients, group after group.
    starts : (groups + 1,) int64
        Place of the first coefficient of each group in `order`.
    swaps : int
        Maximum number of exchanges.
    """
    groups, n = log_odds.shape[0], eta.shape[0]
    on = log_odds == np.inf
    size = min(_JOINT, coefficients.shape[0])
    for g in range(groups):
        size = max(size, starts[g + 1] - starts[g])
        for a in range(starts[g], starts[g + 1]):
            on[g] |= coefficients[order[a]] != 0.0
    work = np.empty((4, n))
    s = _Rows(
        family,
        columns,
        values,
        slab,
        eta,
        work[0],
        work[1],
        work[2],
        work[3],
        np.empty(size),
        np.empty((size, size)),
        np.empty(size),
        np.empty(size),
    )
    for g in range(groups):
        members = order[starts[g] : starts[g + 1]]
        on[g], inclusion[g] = _redraw(rng, s, members, coefficients, on[g], log_odds[g])
    free = 0
    for g in range(groups):
        free += on[g] and log_odds[g] < np.inf
    for _ in range(min(swaps, free)):
        _swap(rng, s, order, starts, coefficients, on, log_odds)
    active = np.nonzero(coefficients)[0]
    if active.shape[0] > 1:
        _refresh(rng, s, coefficients, active)
