"""Draw which behaviours the series have, the states summed out by the forward algorithm.

For each series in turn: the behaviours that others have too are proposed to come or go, in a random order;
one behaviour is proposed to be replaced by another, which inherits its transitions; and behaviours that only this
series has are proposed to be born or to die. The ratio of a move is that of posterior densities times that of the
probabilities of proposing it and its reverse.

References
----------
Fox, E. B., Sudderth, E. B., Jordan, M. I. and Willsky, A. S. (2009). Sharing features among dynamical systems with
beta processes. *NIPS* 22, 549-557. -- Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an
introduction and review. *JMLR* 12, 1185-1224, section 6.8.
"""

import math

import numpy as np

from bayesstruct.core.jit import numpy_inner, numpy_kernel
from bayesstruct.features.kernels.feature_columns import shuffle
from bayesstruct.series.kernels.behaviours import (
    BehaviourPrior,
    draw_log_weights,
    draw_new_behaviour,
    log_new_behaviour,
    logs_to_probabilities,
    weights_to_logs,
)
from bayesstruct.series.kernels.forward import (
    fill_log_densities,
    filter_states,
    own_behaviours,
    probabilities_from_logs,
)

__all__ = ["scan_behaviours"]

#: Replacements, and births or deaths, that are tried for each series.
_TRIES = 3


@numpy_inner
def _accepts(rng, log_ratio):
    return log_ratio > -rng.standard_exponential()


@numpy_inner
def _density(weights, places, columns, logs, buffers):
    """Log density of a series given the logarithms of its weights.

    ``places`` are its behaviours in `weights`, ``columns`` those in `logs`.
    """
    filtered, p, gains = buffers
    probabilities_from_logs(weights, places, p)
    return filter_states(p, columns, logs, filtered, gains)


@numpy_inner
def _log_odds(others, n, prior):
    """Prior log odds that a series has a behaviour that so many others have."""
    return math.log(
        (others - prior.discount) / (n - 1.0 - others + prior.concentration + prior.discount)
    )


@numpy_inner
def _flip_shared(rng, i, z, weights, others, prior, logs, like, places, order, buffers):
    """Propose to add or to remove behaviours that other series have; return the log density."""
    count = 0
    for k in range(z.shape[1]):
        if others[k] > 0:
            places[count] = k
            count += 1
    shuffle(rng, order, count)
    # The list of candidates is needed while `places` is overwritten.
    for a in range(count):
        order[a] = places[order[a]]
    for k in order[:count]:
        sign = -1.0 if z[i, k] else 1.0
        z[i, k] = 1 - z[i, k]
        m = own_behaviours(z[i], places)
        if sign > 0.0:
            draw_log_weights(rng, weights, places[:m], k, prior)
        then = _density(weights, places[:m], places[:m], logs, buffers)
        if _accepts(rng, then - like + sign * _log_odds(others[k], z.shape[0], prior)):
            like = then
        else:
            z[i, k] = 1 - z[i, k]
    return like


@numpy_inner
def _pick(rng, z, others, has, shared):
    """Pick at random one of the behaviours that a series has or not and that others have or not.

    Returns the behaviour, -1 if there is none, and the number of such behaviours.
    """
    count, chosen = 0, -1
    for k in range(z.shape[0]):
        if (z[k] != 0) == has and (others[k] > 0) == shared:
            count += 1
            if rng.random() * count < 1.0:
                chosen = k
    return chosen, count


@numpy_inner
def _move_weights(weights, places, k, new):
    """Give the weights of behaviour k to another one."""
    for a in places:
        if a != k:
            weights[a, new] = weights[a, k]
            weights[new, a] = weights[k, a]
    weights[new, new] = weights[k, k]


@numpy_inner
def _replace(
    rng, i, z, weights, theta, others, prior, x, windows, logs, like, places, cols, buffers
):
    """Propose to replace one behaviour by another that inherits its transitions; return the log density.

    A shared behaviour is replaced by a shared one or by a new one, or one that only this series has by a shared
    one: the last two moves are each other's reverse. ``logs`` and `x` are those of the series.
    """
    n = z.shape[0]
    kind = int(3.0 * rng.random())
    k, count = _pick(rng, z[i], others, True, kind < 2)
    new, candidates = _pick(rng, z[i], others, False, kind != 1)
    if k < 0 or new < 0:
        return like
    ratio = 0.0
    if kind == 0:
        ratio = _log_odds(others[new], n, prior) - _log_odds(others[k], n, prior)
    elif kind == 1:
        draw_new_behaviour(rng, windows, prior, theta[0, new], theta[1, new])
        fill_log_densities(logs, new, theta[0, new], theta[1, new], x)
        _, alone = _pick(rng, z[i], others, True, False)
        _, absent = _pick(rng, z[i], others, False, True)
        ratio = math.log(prior.new_rate) - _log_odds(others[k], n, prior)
        ratio -= log_new_behaviour(windows, prior, theta[0, new], theta[1, new])
        ratio += math.log(count) - math.log(alone + 1.0) - math.log(absent + 1.0)
    else:
        _, present = _pick(rng, z[i], others, True, True)
        ratio = _log_odds(others[new], n, prior) - math.log(prior.new_rate)
        ratio += log_new_behaviour(windows, prior, theta[0, k], theta[1, k])
        ratio += math.log(count) + math.log(candidates) - math.log(present + 1.0)
    m = own_behaviours(z[i], places)
    for a in range(m):
        cols[a] = new if places[a] == k else places[a]
    then = _density(weights, places[:m], cols[:m], logs, buffers)
    if not _accepts(rng, then - like + ratio):
        return like
    _move_weights(weights, places[:m], k, new)
    z[i, k], z[i, new] = 0, 1
    return then


@numpy_inner
def _birth_or_death(
    rng, i, z, weights, theta, others, prior, x, windows, logs, like, places, buffers
):
    """Propose to add or to remove a behaviour that only this series has; return the log density."""
    birth = rng.random() < 0.5
    k, number = _pick(rng, z[i], others, not birth, False)
    if k < 0:
        return like
    if birth:
        _, number = _pick(rng, z[i], others, True, False)
        number += 1
        draw_new_behaviour(rng, windows, prior, theta[0, k], theta[1, k])
        fill_log_densities(logs, k, theta[0, k], theta[1, k], x)
    z[i, k] = 1 - z[i, k]
    m = own_behaviours(z[i], places)
    if birth:
        draw_log_weights(rng, weights, places[:m], k, prior)
    then = _density(weights, places[:m], places[:m], logs, buffers)
    ratio = (
        math.log(prior.new_rate)
        - math.log(number)
        - log_new_behaviour(windows, prior, theta[0, k], theta[1, k])
    )
    if _accepts(rng, then - like + (ratio if birth else -ratio)):
        return then
    z[i, k] = 1 - z[i, k]
    return like


@numpy_kernel
def scan_behaviours(
    rng: np.random.Generator,
    z: np.ndarray,
    weights: np.ndarray,
    theta: np.ndarray,
    prior: BehaviourPrior,
    x: np.ndarray,
    starts: np.ndarray,
    windows: np.ndarray,
    order: np.ndarray,
) -> bool:
    """Draw which behaviours the series have, in place, the states summed out.

    Parameters
    ----------
    rng : numpy.random.Generator
    z : (N, K) int8, changed
        Which behaviours the series have, each at least one. There must be a column without ones, in which a new
        behaviour is tried.
    weights : (N, K, K) float64, changed
        In proportion to the transition probabilities, and afterwards these; entries of behaviours that a series does
        not have are not used.
    theta : (2, K, d) float64, changed
        Means and standard deviations.
    prior : BehaviourPrior
    x : (T, d) float64
    starts : (N + 1,) int64
    windows : (N, W, 3, d) float64
        See :func:`bayesstruct.series.kernels.behaviours.fit_windows`.
    order : (N,) int64
        Series in the order in which they are visited.

    Returns
    -------
    bool
        False if all columns came to be used, so that no new behaviour could be tried.
    """
    n, most = z.shape
    longest = 0
    for i in range(n):
        longest = max(longest, starts[i + 1] - starts[i])
    logs = np.zeros((x.shape[0], most))
    buffers = np.zeros((longest, most)), np.zeros((most, most)), np.zeros(longest)
    places, cols, turn = (
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
    )
    others = np.zeros(most, np.int64)
    for i in range(n):
        for k in range(most):
            others[k] += z[i, k]
    for k in range(most):
        if others[k] > 0:
            fill_log_densities(logs, k, theta[0, k], theta[1, k], x)
    for i in order:
        a, b = starts[i], starts[i + 1]
        for k in range(most):
            others[k] -= z[i, k]
        own, its_x, w, fits = logs[a:b], x[a:b], weights[i], windows[i]
        m = own_behaviours(z[i], places)
        weights_to_logs(rng, w, places[:m], prior)
        like = _density(w, places[:m], places[:m], own, buffers)
        like = _flip_shared(rng, i, z, w, others, prior, own, like, places, turn, buffers)
        for _ in range(_TRIES):
            like = _replace(
                rng, i, z, w, theta, others, prior, its_x, fits, own, like, places, cols, buffers
            )
            like = _birth_or_death(
                rng, i, z, w, theta, others, prior, its_x, fits, own, like, places, buffers
            )
            if _pick(rng, z[i], others, False, False)[1] == 0:
                return False
        m = own_behaviours(z[i], places)
        logs_to_probabilities(w, places[:m], buffers[1])
        for k in range(most):
            if z[i, k] and others[k] == 0:
                fill_log_densities(logs, k, theta[0, k], theta[1, k], x)
            others[k] += z[i, k]
    return True
