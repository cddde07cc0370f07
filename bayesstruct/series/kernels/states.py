"""Draw the states of series, and transitions and emissions given them.

States are drawn by forward filtering and backward sampling. Given them the rows of transition probabilities
are Dirichlet, and means and variances are normal and inverse-gamma in turn.
"""

import math

import numpy as np

from bayesstruct.core.jit import numpy_inner, numpy_kernel
from bayesstruct.series.kernels.behaviours import (
    BehaviourPrior,
    draw_log_gamma,
    logs_to_probabilities,
)
from bayesstruct.series.kernels.forward import (
    fill_log_densities,
    filter_states,
    own_behaviours,
    transition_probabilities,
)

__all__ = ["draw_given_states"]


@numpy_inner
def _pick_weighted(rng, values, m):
    """Draw one of the first m places in proportion to their values."""
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
def _draw_emissions(rng, theta, k, prior, x, states):
    """Draw means, then standard deviations of a behaviour given the rows in which it is active."""
    tau, shape, rate = prior.mean_scale, prior.variance_shape, prior.variance_rate
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
def draw_given_states(
    rng: np.random.Generator,
    z: np.ndarray,
    weights: np.ndarray,
    theta: np.ndarray,
    prior: BehaviourPrior,
    x: np.ndarray,
    starts: np.ndarray,
    states: np.ndarray,
) -> None:
    """Draw states, then transitions (into `weights`) and emissions given them, in place.

    Parameters
    ----------
    rng, z, weights, theta, prior, x, starts
        As in :func:`bayesstruct.series.kernels.scan.scan_behaviours`.
    states : (T,) int64, changed
        Column of the behaviour that is active in each row.
    """
    n, most = z.shape
    logs, filtered = np.zeros((x.shape[0], most)), np.zeros((x.shape[0], most))
    p, gains, back = np.zeros((most, most)), np.zeros(x.shape[0]), np.zeros(most)
    places, seen = np.zeros(most, np.int64), np.zeros((most, most))
    for k in range(most):
        if z[:, k].any():
            fill_log_densities(logs, k, theta[0, k], theta[1, k], x)
    for i in range(n):
        first, last = starts[i], starts[i + 1]
        m = own_behaviours(z[i], places)
        transition_probabilities(weights[i], places[:m], p)
        filter_states(p, places[:m], logs[first:last], filtered, gains)
        path = states[first:last]
        _draw_path(rng, filtered, p, m, path, back)
        seen[:] = 0.0
        for t in range(path.shape[0] - 1):
            seen[path[t], path[t + 1]] += 1.0
        for a in range(m):
            for b in range(m):
                concentration = prior.transition_concentration + (
                    prior.stickiness if a == b else 0.0
                )
                weights[i, places[a], places[b]] = draw_log_gamma(rng, concentration + seen[a, b])
        logs_to_probabilities(weights[i], places[:m], p)
        for t in range(path.shape[0]):
            path[t] = places[path[t]]
    for k in range(most):
        if z[:, k].any():
            _draw_emissions(rng, theta, k, prior, x, states)
