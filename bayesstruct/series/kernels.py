r"""Draws of behaviours that several time series share, each series switching among its own.

Series i has the behaviours :math:`\{k : z_{ik} = 1\}`, Z an Indian buffet process over series. Its hidden states
form a Markov chain on them, and rows are normal given the state:

.. math::

    s_1 \sim \mathrm{Uniform}, \qquad P(s_{t+1} = l \mid s_t = k) = \pi^{(i)}_{kl}, \qquad
    \pi^{(i)}_k \sim \mathrm{Dirichlet}(\gamma + \kappa 1[k = l]), \qquad
    y_{tj} \mid s_t = k \sim N(\mu_{kj}, \sigma_{kj}^2),

with :math:`\mu_{kj} \sim N(0, \tau^2)` and inverse-gamma :math:`\sigma_{kj}^2`. NaN cells are summed out. A series without a
behaviour has density zero.

**Behaviours** (`scan_behaviours`). States are summed out by the forward algorithm. The rows of transition
probabilities are written as independent gamma weights over their sum, so that a behaviour which comes to a series
brings weights from their prior and one that goes takes its own along. For each series in turn: the behaviours
that others have too are proposed to come or go, in a random order; one behaviour is proposed to be replaced
by another, which inherits its transitions; and behaviours that it alone has are proposed to be born or to die.
Means and deviations of new ones come from a mixture of the prior and of fits to windows of the series; the ratio has
the density of the mixture, so that any mixture leaves the posterior as it is. Gamma weights of a small shape are
far below the smallest number of the machine, and their ratios are not: the moves have the logarithms of weights.

**The rest** (`draw_given_states`). States are drawn by forward filtering and backward sampling; given them the
transitions are Dirichlet, and means and variances normal and inverse-gamma in turn.

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

__all__ = ["draw_given_states", "fit_windows", "forward_gains", "scan_behaviours", "smooth_series"]

_LOG_2PI = math.log(2.0 * math.pi)
_WINDOWS = 32
#: Lengths of the windows in turn.
_LENGTHS = (8, 24)
#: Share of new behaviours that come from the prior.
_PRIOR_SHARE = 0.2
#: Transition probabilities below it are of no account for the likelihood, and may be zero in a point.
_LEAST = 1e-300
#: Replacements, and births or deaths, that are tried for each series.
_TRIES = 3


# --- likelihood ------------------------------------------------------------------------------


@numpy_inner
def _fill_logs(logs, k, mean, deviation, x):
    """Log densities of rows in a state, into column k."""
    for t in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            if not math.isnan(x[t, j]):
                u = (x[t, j] - mean[j]) / deviation[j]
                total -= 0.5 * (u * u + _LOG_2PI)
        logs[t, k] = total
    for j in range(x.shape[1]):
        front = math.log(deviation[j])
        for t in range(x.shape[0]):
            if not math.isnan(x[t, j]):
                logs[t, k] -= front


@numpy_inner
def _own(z, places):
    """List the behaviours of a series; return their number."""
    m = 0
    for k in range(z.shape[0]):
        if z[k]:
            places[m] = k
            m += 1
    return m


@numpy_inner
def _normalise(weights, places, p):
    """Put the transition probabilities among the behaviours of a series into `p`."""
    m = places.shape[0]
    for a in range(m):
        total = 0.0
        for b in range(m):
            p[a, b] = weights[places[a], places[b]]
            total += p[a, b]
        for b in range(m):
            p[a, b] /= total


@numpy_inner
def _normalise_logs(weights, places, p):
    """Put the transition probabilities into `p`, given the logarithms of weights."""
    m = places.shape[0]
    for a in range(m):
        top = -np.inf
        for b in range(m):
            top = max(top, weights[places[a], places[b]])
        total = 0.0
        for b in range(m):
            p[a, b] = math.exp(weights[places[a], places[b]] - top)
            total += p[a, b]
        for b in range(m):
            p[a, b] /= total


@numpy_inner
def _forward(p, columns, logs, filtered, gains):
    """Log density of a series by the forward algorithm.

    ``p`` are its transition probabilities, ``columns`` its behaviours in `logs`. Leaves the laws of each state given
    the rows so far in `filtered` and what each row adds in `gains`.
    """
    m, n = columns.shape[0], logs.shape[0]
    if m == 0:
        gains[:n] = -np.inf
        return -np.inf
    out = 0.0
    for t in range(n):
        top = -np.inf
        for b in range(m):
            top = max(top, logs[t, columns[b]])
        total = 0.0
        for b in range(m):
            before = 1.0 / m
            if t > 0:
                before = 0.0
                for a in range(m):
                    before += filtered[t - 1, a] * p[a, b]
            filtered[t, b] = before * math.exp(logs[t, columns[b]] - top)
            total += filtered[t, b]
        if not total > 0.0:
            gains[t:n] = -np.inf
            return -np.inf
        for b in range(m):
            filtered[t, b] /= total
        gains[t] = math.log(total) + top
        out += gains[t]
    return out


@numpy_kernel
def forward_gains(z, weights, mean, deviation, x, starts):
    """Log density of each row given the rows of its series before it.

    Parameters
    ----------
    z : (N, K) int8
        Behaviours of each series.
    weights : (N, K, K) float64
        Transition probabilities, or weights in proportion to them.
    mean, deviation : (K, d) float64
    x : (T, d) float64
        The rows of the series, one series after another; NaN where a cell is missing.
    starts : (N + 1,) int64
        Where each series begins; the last is T.

    Returns
    -------
    (T,) ndarray
        Minus infinity for series without a behaviour.
    """
    most = z.shape[1]
    logs, filtered = np.zeros((x.shape[0], most)), np.zeros((x.shape[0], most))
    p, places, gains = np.zeros((most, most)), np.zeros(most, np.int64), np.zeros(x.shape[0])
    for k in range(most):
        if z[:, k].any():
            _fill_logs(logs, k, mean[k], deviation[k], x)
    for i in range(z.shape[0]):
        m, a, b = _own(z[i], places), starts[i], starts[i + 1]
        _normalise(weights[i], places[:m], p)
        _forward(p, places[:m], logs[a:b], filtered, gains[a:b])
    return gains


@numpy_kernel
def smooth_series(z, weights, mean, deviation, x, starts, out):
    """Add the probability of each behaviour in each row, given all rows of its series, to `out`.

    Parameters
    ----------
    z, weights, mean, deviation, x, starts
        As in `forward_gains`.
    out : (T, K) float64, changed
    """
    most = z.shape[1]
    logs, filtered = np.zeros((x.shape[0], most)), np.zeros((x.shape[0], most))
    p, places, gains = np.zeros((most, most)), np.zeros(most, np.int64), np.zeros(x.shape[0])
    now, later = np.zeros(most), np.zeros(most)
    for k in range(most):
        if z[:, k].any():
            _fill_logs(logs, k, mean[k], deviation[k], x)
    for i in range(z.shape[0]):
        m, first, last = _own(z[i], places), starts[i], starts[i + 1]
        if m == 0:
            continue
        own = places[:m]
        _normalise(weights[i], own, p)
        _forward(p, own, logs[first:last], filtered, gains)
        later[:m] = filtered[last - first - 1, :m]
        for t in range(last - first - 1, -1, -1):
            if t < last - first - 1:
                now[:m] = 0.0
                for b in range(m):
                    total = 0.0
                    for a in range(m):
                        total += filtered[t, a] * p[a, b]
                    if total > 0.0:
                        for a in range(m):
                            now[a] += filtered[t, a] * p[a, b] * later[b] / total
                later[:m] = now[:m]
            for a in range(m):
                out[first + t, own[a]] += later[a]


# --- proposals of new behaviours -------------------------------------------------------------


@numpy_kernel
def fit_windows(x, starts):
    """Summarise windows of each series, to which new behaviours are fitted.

    Parameters
    ----------
    x : (T, d) float64
    starts : (N + 1,) int64

    Returns
    -------
    (N, 32, 3, d) ndarray
        Number of cells, their mean, and their sum of squares around it.
    """
    n, d = starts.shape[0] - 1, x.shape[1]
    out = np.zeros((n, _WINDOWS, 3, d))
    for i in range(n):
        for w in range(_WINDOWS):
            length = min(_LENGTHS[w % 2], starts[i + 1] - starts[i])
            begin = starts[i] + (starts[i + 1] - starts[i] - length) * w // (_WINDOWS - 1)
            for j in range(d):
                _summarise(x[begin : begin + length, j], out[i, w, :, j])
    return out


@numpy_inner
def _summarise(cells, out):
    """Put number, mean and sum of squares of the cells that are there into three places."""
    for v in cells:
        if not math.isnan(v):
            out[0] += 1.0
            gap = v - out[1]
            out[1] += gap / out[0]
            out[2] += gap * (v - out[1])


@numpy_inner
def _fitted(window, j, variance, law):
    """Mean and variance of the law of a mean that is fitted to a window."""
    tau = law[5]
    precision = 1.0 / (tau * tau) + window[0, j] / variance
    return window[0, j] * window[1, j] / variance / precision, 1.0 / precision


@numpy_inner
def _draw_new(rng, windows, law, mean, deviation):
    """Draw means and deviations of a new behaviour, in place."""
    shape, rate = law[6], law[7]
    prior = rng.random() < _PRIOR_SHARE
    window = windows[int(rng.random() * windows.shape[0])]
    for j in range(mean.shape[0]):
        a = shape if prior else shape + 0.5 * window[0, j]
        b = rate if prior else rate + 0.5 * window[2, j]
        variance = b / rng.standard_gamma(a)
        centre, spread = 0.0, law[5] ** 2
        if not prior:
            centre, spread = _fitted(window, j, variance, law)
        mean[j] = centre + math.sqrt(spread) * rng.standard_normal()
        deviation[j] = math.sqrt(variance)


@numpy_inner
def _log_new(windows, law, mean, deviation):
    """Log density of the mixture from which new behaviours come over that of the prior."""
    shape, rate, tau = law[6], law[7], law[5]
    out = 0.0
    best = -np.inf
    parts = np.empty(windows.shape[0])
    for w in range(windows.shape[0]):
        total = 0.0
        for j in range(mean.shape[0]):
            n, variance = windows[w, 0, j], deviation[j] ** 2
            a, b = shape + 0.5 * n, rate + 0.5 * windows[w, 2, j]
            centre, spread = _fitted(windows[w], j, variance, law)
            total += a * math.log(b) - math.lgamma(a) - shape * math.log(rate) + math.lgamma(shape)
            total -= 0.5 * n * math.log(variance) + 0.5 * windows[w, 2, j] / variance
            total -= 0.5 * math.log(spread) + 0.5 * (mean[j] - centre) ** 2 / spread
            total += math.log(tau) + 0.5 * (mean[j] / tau) ** 2
        parts[w] = total
        best = max(best, total)
    top = max(best, 0.0)
    for w in range(windows.shape[0]):
        out += math.exp(parts[w] - top)
    out *= (1.0 - _PRIOR_SHARE) / windows.shape[0]
    return top + math.log(out + _PRIOR_SHARE * math.exp(-top))


@numpy_inner
def _log_gamma(rng, shape):
    """Draw the logarithm of a gamma variable, which itself may be too small for the machine."""
    return math.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential() / shape


@numpy_inner
def _take_logs(rng, weights, places, law):
    """Turn the weights of each row into logarithms whose sum is a draw from its prior, in place.

    The sum of the gamma weights that make a Dirichlet law is independent of them, and so of the data. Weights that
    are too small for the likelihood are drawn anew given that they are: their density is a power there.
    """
    for a in places:
        total = 0.0
        for b in places:
            total += weights[a, b]
        shift = _log_gamma(rng, law[3] * places.shape[0] + law[4])
        for b in places:
            p = weights[a, b] / total
            log_p = math.log(max(p, _LEAST))
            if p <= _LEAST:
                log_p -= rng.standard_exponential() / (law[3] + (law[4] if a == b else 0.0))
            weights[a, b] = log_p + shift


@numpy_inner
def _give_probabilities(weights, places, p):
    """Turn the logarithms of weights back into transition probabilities, in place."""
    _normalise_logs(weights, places, p)
    for a in range(places.shape[0]):
        for b in range(places.shape[0]):
            weights[places[a], places[b]] = p[a, b]


@numpy_inner
def _draw_weights(rng, weights, places, k, law):
    """Draw the logarithms of the weights from and to behaviour k from their prior, in place."""
    for a in places:
        if a != k:
            weights[a, k] = _log_gamma(rng, law[3])
            weights[k, a] = _log_gamma(rng, law[3])
    weights[k, k] = _log_gamma(rng, law[3] + law[4])


# --- moves of one series ---------------------------------------------------------------------


@numpy_inner
def _accepts(rng, log_ratio):
    return log_ratio > -rng.standard_exponential()


@numpy_inner
def _density(weights, places, columns, logs, buffers):
    """Log density of a series given the logarithms of its weights.

    ``places`` are its behaviours in `weights`, ``columns`` those in `logs`.
    """
    filtered, p, gains = buffers
    _normalise_logs(weights, places, p)
    return _forward(p, columns, logs, filtered, gains)


@numpy_inner
def _log_odds(others, n, law):
    """Prior log odds that a series has a behaviour that so many others have."""
    return math.log((others - law[2]) / (n - 1.0 - others + law[1] + law[2]))


@numpy_inner
def _flip_shared(rng, i, z, weights, others, law, logs, like, places, order, buffers):
    """Propose behaviours that other series have to come or to go; return the log density."""
    count = 0
    for k in range(z.shape[1]):
        if others[k] > 0:
            places[count] = k
            count += 1
    shuffle(rng, order, count)
    # The list of candidates is needed while `places` is used for others.
    for a in range(count):
        order[a] = places[order[a]]
    for k in order[:count]:
        sign = -1.0 if z[i, k] else 1.0
        z[i, k] = 1 - z[i, k]
        m = _own(z[i], places)
        if sign > 0.0:
            _draw_weights(rng, weights, places[:m], k, law)
        then = _density(weights, places[:m], places[:m], logs, buffers)
        if _accepts(rng, then - like + sign * _log_odds(others[k], z.shape[0], law)):
            like = then
        else:
            z[i, k] = 1 - z[i, k]
    return like


@numpy_inner
def _pick(rng, z, others, has, shared):
    """Pick a behaviour at random of those that a series has or not and that others have or not.

    Returns it (-1 if there is none) and how many there are.
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
def _replace(rng, i, z, weights, theta, others, law, x, windows, logs, like, places, cols, buffers):
    """Propose to replace one behaviour by another that inherits its transitions; return the log density.

    ``logs`` and `x` are those of the series. A shared behaviour by a shared one, a shared one by a new one, or
    one that the series alone has by a shared one: the last two are each other's reverse.
    """
    n = z.shape[0]
    kind = int(3.0 * rng.random())
    k, count = _pick(rng, z[i], others, True, kind < 2)
    new, room = _pick(rng, z[i], others, False, kind != 1)
    if k < 0 or new < 0:
        return like
    ratio = 0.0
    if kind == 0:
        ratio = _log_odds(others[new], n, law) - _log_odds(others[k], n, law)
    elif kind == 1:
        _draw_new(rng, windows, law, theta[0, new], theta[1, new])
        _fill_logs(logs, new, theta[0, new], theta[1, new], x)
        _, alone = _pick(rng, z[i], others, True, False)
        _, absent = _pick(rng, z[i], others, False, True)
        ratio = math.log(law[0]) - _log_odds(others[k], n, law)
        ratio -= _log_new(windows, law, theta[0, new], theta[1, new])
        ratio += math.log(count) - math.log(alone + 1.0) - math.log(absent + 1.0)
    else:
        _, present = _pick(rng, z[i], others, True, True)
        ratio = _log_odds(others[new], n, law) - math.log(law[0])
        ratio += _log_new(windows, law, theta[0, k], theta[1, k])
        ratio += math.log(count) + math.log(room) - math.log(present + 1.0)
    m = _own(z[i], places)
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
    rng, i, z, weights, theta, others, law, x, windows, logs, like, places, buffers
):
    """Propose a behaviour that this series alone has to be born or to die; return the log density."""
    birth = rng.random() < 0.5
    k, number = _pick(rng, z[i], others, not birth, False)
    if k < 0:
        return like
    if birth:
        _, number = _pick(rng, z[i], others, True, False)
        number += 1
        _draw_new(rng, windows, law, theta[0, k], theta[1, k])
        _fill_logs(logs, k, theta[0, k], theta[1, k], x)
    z[i, k] = 1 - z[i, k]
    m = _own(z[i], places)
    if birth:
        _draw_weights(rng, weights, places[:m], k, law)
    then = _density(weights, places[:m], places[:m], logs, buffers)
    ratio = math.log(law[0]) - math.log(number) - _log_new(windows, law, theta[0, k], theta[1, k])
    if _accepts(rng, then - like + (ratio if birth else -ratio)):
        return then
    z[i, k] = 1 - z[i, k]
    return like


@numpy_kernel
def scan_behaviours(rng, z, weights, theta, law, x, starts, windows, order):
    """Draw which behaviours the series have, in place, the states summed out.

    Parameters
    ----------
    rng : numpy.random.Generator
    z : (N, K) int8, changed
        Each series has one behaviour at least. There must be a column without ones: the one in which a new
        behaviour is tried.
    weights : (N, K, K) float64, changed
        In proportion to the transition probabilities, and afterwards these; what does not belong to behaviours of a
        series is of no account.
    theta : (2, K, d) float64, changed
        Means and standard deviations.
    law : (8,) float64
        Mean number of behaviours that a series has alone, concentration, discount; gamma, kappa; tau, shape and
        rate of the inverse-gamma law of variances.
    x : (T, d) float64
    starts : (N + 1,) int64
    windows : (N, W, 3, d) float64
        Of :func:`fit_windows`.
    order : (N,) int64
        Series in the order in which they are visited.

    Returns
    -------
    bool
        False if all columns came to be used, after which there is no room to go on.
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
            _fill_logs(logs, k, theta[0, k], theta[1, k], x)
    for i in order:
        a, b = starts[i], starts[i + 1]
        for k in range(most):
            others[k] -= z[i, k]
        own, its_x, w, fits = logs[a:b], x[a:b], weights[i], windows[i]
        m = _own(z[i], places)
        _take_logs(rng, w, places[:m], law)
        like = _density(w, places[:m], places[:m], own, buffers)
        like = _flip_shared(rng, i, z, w, others, law, own, like, places, turn, buffers)
        for _ in range(_TRIES):
            like = _replace(
                rng, i, z, w, theta, others, law, its_x, fits, own, like, places, cols, buffers
            )
            like = _birth_or_death(
                rng, i, z, w, theta, others, law, its_x, fits, own, like, places, buffers
            )
            if _pick(rng, z[i], others, False, False)[1] == 0:
                return False
        m = _own(z[i], places)
        _give_probabilities(w, places[:m], buffers[1])
        for k in range(most):
            if z[i, k] and others[k] == 0:
                _fill_logs(logs, k, theta[0, k], theta[1, k], x)
            others[k] += z[i, k]
    return True


# --- the rest given states -------------------------------------------------------------------


@numpy_inner
def _pick_weighted(rng, values, m):
    total = 0.0
    for a in range(m):
        total += values[a]
    level = rng.random() * total
    for a in range(m - 1):
        level -= values[a]
        if level < 0.0:
            return a
    return m - 1


@numpy_inner
def _draw_path(rng, filtered, p, m, out, back):
    """Draw the states of a series from the last to the first."""
    n = out.shape[0]
    out[n - 1] = _pick_weighted(rng, filtered[n - 1], m)
    for t in range(n - 2, -1, -1):
        for a in range(m):
            back[a] = filtered[t, a] * p[a, out[t + 1]]
        out[t] = _pick_weighted(rng, back, m)


@numpy_inner
def _draw_emissions(rng, theta, k, law, x, states):
    """Draw means, then deviations of a behaviour given the rows in which it is active."""
    tau, shape, rate = law[5], law[6], law[7]
    for j in range(x.shape[1]):
        number, total = 0, 0.0
        for t in range(x.shape[0]):
            if states[t] == k and not math.isnan(x[t, j]):
                number += 1
                total += x[t, j]
        variance = theta[1, k, j] ** 2
        precision = 1.0 / (tau * tau) + number / variance
        mean = total / variance / precision + rng.standard_normal() / math.sqrt(precision)
        square = 0.0
        for t in range(x.shape[0]):
            if states[t] == k and not math.isnan(x[t, j]):
                square += (x[t, j] - mean) ** 2
        theta[0, k, j] = mean
        scale = rng.standard_gamma(shape + 0.5 * number)
        theta[1, k, j] = math.sqrt((rate + 0.5 * square) / scale)


@numpy_kernel
def draw_given_states(rng, z, weights, theta, law, x, starts, states):
    """Draw states, then transitions (into `weights`) and emissions given them, in place.

    Parameters
    ----------
    rng, z, weights, theta, law, x, starts
        As in `scan_behaviours`.
    states : (T,) int64, changed
        Column of the behaviour that is active in each row.
    """
    n, most = z.shape
    logs, filtered = np.zeros((x.shape[0], most)), np.zeros((x.shape[0], most))
    p, gains, back = np.zeros((most, most)), np.zeros(x.shape[0]), np.zeros(most)
    places, seen = np.zeros(most, np.int64), np.zeros((most, most))
    for k in range(most):
        if z[:, k].any():
            _fill_logs(logs, k, theta[0, k], theta[1, k], x)
    for i in range(n):
        first, last = starts[i], starts[i + 1]
        m = _own(z[i], places)
        _normalise(weights[i], places[:m], p)
        _forward(p, places[:m], logs[first:last], filtered, gains)
        path = states[first:last]
        _draw_path(rng, filtered, p, m, path, back)
        seen[:] = 0.0
        for t in range(path.shape[0] - 1):
            seen[path[t], path[t + 1]] += 1.0
        for a in range(m):
            for b in range(m):
                prior = law[3] + (law[4] if a == b else 0.0)
                weights[i, places[a], places[b]] = _log_gamma(rng, prior + seen[a, b])
        _give_probabilities(weights[i], places[:m], p)
        for t in range(path.shape[0]):
            path[t] = places[path[t]]
    for k in range(most):
        if z[:, k].any():
            _draw_emissions(rng, theta, k, law, x, states)
