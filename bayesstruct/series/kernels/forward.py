r"""Forward algorithm of series that switch among behaviours.

Rows are normal given the hidden state, which is one of the behaviours of the series:

.. math::

    s_1 \sim \mathrm{Uniform}, \qquad P(s_{t+1} = l \mid s_t = k) = \pi^{(i)}_{kl}, \qquad
    y_{tj} \mid s_t = k \sim N(\mu_{kj}, \sigma_{kj}^2).

Missing values (NaN) are summed out. A series without a behaviour has density zero.
"""

import math

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import numpy_inner, numpy_kernel

__all__ = [
    "fill_log_densities",
    "filter_states",
    "forward_gains",
    "own_behaviours",
    "probabilities_from_logs",
    "smooth_series",
    "transition_probabilities",
]

_LOG_2PI = math.log(2.0 * math.pi)


@numpy_inner
def fill_log_densities(
    logs: np.ndarray, k: int, mean: np.ndarray, deviation: np.ndarray, x: np.ndarray
) -> None:
    """Put the log densities of rows in a state into column k."""
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
def own_behaviours(z: np.ndarray, places: np.ndarray) -> int:
    """List the behaviours of a series in `places`; return their number."""
    m = 0
    for k in range(z.shape[0]):
        if z[k]:
            places[m] = k
            m += 1
    return m


@numpy_inner
def transition_probabilities(weights: np.ndarray, places: np.ndarray, p: np.ndarray) -> None:
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
def probabilities_from_logs(weights: np.ndarray, places: np.ndarray, p: np.ndarray) -> None:
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
def filter_states(
    p: np.ndarray, columns: np.ndarray, logs: np.ndarray, filtered: np.ndarray, gains: np.ndarray
) -> float:
    """Log density of a series by the forward algorithm.

    ``p`` are its transition probabilities, ``columns`` its behaviours in `logs`. Puts the probabilities of each state
    given the rows so far into `filtered`, and the term of each row into `gains`.
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
def forward_gains(
    z: np.ndarray,
    weights: np.ndarray,
    mean: np.ndarray,
    deviation: np.ndarray,
    x: np.ndarray,
    starts: np.ndarray,
) -> np.ndarray:
    """Log density of each row given the rows of its series before it.

    Parameters
    ----------
    z : (N, K) int8
        Behaviours of each series.
    weights : (N, K, K) float64
        Transition probabilities, or weights in proportion to them.
    mean, deviation : (K, d) float64
    x : (T, d) float64
        The rows of the series, one series after another; NaN where a value is missing.
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
            fill_log_densities(logs, k, mean[k], deviation[k], x)
    for i in range(z.shape[0]):
        m, a, b = own_behaviours(z[i], places), starts[i], starts[i + 1]
        transition_probabilities(weights[i], places[:m], p)
        filter_states(p, places[:m], logs[a:b], filtered, gains[a:b])
    return gains


@numpy_kernel
def smooth_series(
    z: np.ndarray,
    weights: np.ndarray,
    mean: np.ndarray,
    deviation: np.ndarray,
    x: np.ndarray,
    starts: np.ndarray,
    out: np.ndarray,
) -> None:
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
            fill_log_densities(logs, k, mean[k], deviation[k], x)
    for i in range(z.shape[0]):
        m, first, last = own_behaviours(z[i], places), starts[i], starts[i + 1]
        if m == 0:
            continue
        own = places[:m]
        transition_probabilities(weights[i], own, p)
        filter_states(p, own, logs[first:last], filtered, gains)
        copy_vector(later, filtered[last - first - 1, :m])
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
                copy_vector(later, now[:m])
            for a in range(m):
                out[first + t, own[a]] += later[a]
