r"""Prior of behaviours and transitions, and proposals of new behaviours.

The rows of transition probabilities are Dirichlet,

.. math:: \pi^{(i)}_k \sim \mathrm{Dirichlet}(\gamma + \kappa 1[k = l]),

written as independent gamma weights over their sum, so that a behaviour that comes to a series brings
weights from their prior and one that goes takes its own along. Means are :math:`N(0, \tau^2)`, variances
inverse-gamma. Means and deviations of new behaviours are proposed from a mixture of the prior and of fits to windows of
the series; the acceptance ratio contains the density of the mixture, so that any mixture leaves the posterior
invariant.

Gamma weights of a small shape are far below the smallest floating-point number, and their ratios are
not: the moves use the logarithms of the weights.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import numpy_inner, numpy_kernel
from bayesstruct.series.kernels.forward import probabilities_from_logs

__all__ = [
    "BehaviourPrior",
    "draw_log_gamma",
    "draw_log_weights",
    "draw_new_behaviour",
    "fit_windows",
    "log_new_behaviour",
    "logs_to_probabilities",
    "weights_to_logs",
]

_WINDOWS = 32
#: Lengths of the windows in turn.
_LENGTHS = (8, 24)
#: Share of new behaviours that are drawn from the prior.
_PRIOR_SHARE = 0.2
#: Transition probabilities below it do not change the likelihood, and may be zero in a point.
_LEAST = 1e-300


class BehaviourPrior(NamedTuple):
    """Parameters of the priors.

    Attributes
    ----------
    new_rate : float
        Mean number of behaviours that only one series has.
    concentration, discount : float
        Of the Indian buffet process.
    transition_concentration, stickiness : float
        Gamma and kappa of the Dirichlet distributions.
    mean_scale : float
        Tau, standard deviation of the means.
    variance_shape, variance_rate : float
        Of the inverse-gamma distribution of the variances.
    """

    new_rate: float
    concentration: float
    discount: float
    transition_concentration: float
    stickiness: float
    mean_scale: float
    variance_shape: float
    variance_rate: float


@numpy_kernel
def fit_windows(x: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Summarise windows of each series, to which new behaviours are fitted.

    Parameters
    ----------
    x : (T, d) float64
    starts : (N + 1,) int64

    Returns
    -------
    (N, 32, 3, d) ndarray
        Number of values in a window, their mean, and their sum of squares around it.
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
def _summarise(values, out):
    """Put number, mean and sum of squares of the values that are not missing into three places."""
    for v in values:
        if not math.isnan(v):
            out[0] += 1.0
            gap = v - out[1]
            out[1] += gap / out[0]
            out[2] += gap * (v - out[1])


@numpy_inner
def _fitted(window, j, variance, prior):
    """Mean and variance of the conditional distribution of a mean given a window."""
    tau = prior.mean_scale
    precision = 1.0 / (tau * tau) + window[0, j] / variance
    return window[0, j] * window[1, j] / variance / precision, 1.0 / precision


@numpy_inner
def draw_new_behaviour(
    rng: np.random.Generator,
    windows: np.ndarray,
    prior: BehaviourPrior,
    mean: np.ndarray,
    deviation: np.ndarray,
) -> None:
    """Draw means and standard deviations of a new behaviour from the mixture, in place."""
    shape, rate = prior.variance_shape, prior.variance_rate
    from_prior = rng.random() < _PRIOR_SHARE
    window = windows[int(rng.random() * windows.shape[0])]
    for j in range(mean.shape[0]):
        a = shape if from_prior else shape + 0.5 * window[0, j]
        b = rate if from_prior else rate + 0.5 * window[2, j]
        variance = b / rng.standard_gamma(a)
        centre, spread = 0.0, prior.mean_scale**2
        if not from_prior:
            centre, spread = _fitted(window, j, variance, prior)
        mean[j] = centre + math.sqrt(spread) * rng.standard_normal()
        deviation[j] = math.sqrt(variance)


@numpy_inner
def log_new_behaviour(
    windows: np.ndarray, prior: BehaviourPrior, mean: np.ndarray, deviation: np.ndarray
) -> float:
    """Log ratio of the density of the mixture to that of the prior, for a new behaviour."""
    shape, rate, tau = prior.variance_shape, prior.variance_rate, prior.mean_scale
    out = 0.0
    best = -np.inf
    parts = np.empty(windows.shape[0])
    for w in range(windows.shape[0]):
        total = 0.0
        for j in range(mean.shape[0]):
            n, variance = windows[w, 0, j], deviation[j] ** 2
            a, b = shape + 0.5 * n, rate + 0.5 * windows[w, 2, j]
            centre, spread = _fitted(windows[w], j, variance, prior)
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
def draw_log_gamma(rng: np.random.Generator, shape: float) -> float:
    """Draw the logarithm of a gamma variable, which itself may underflow."""
    return math.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential() / shape


@numpy_inner
def weights_to_logs(
    rng: np.random.Generator, weights: np.ndarray, places: np.ndarray, prior: BehaviourPrior
) -> None:
    """Turn the weights of each row into logarithms whose sum is a draw from its prior, in place.

    The sum of the gamma weights of a row is independent of the row, and so of the data. Probabilities below the
    threshold that matters for the likelihood are drawn anew given that they are below it: their density is a power
    there.
    """
    for a in places:
        total = 0.0
        for b in places:
            total += weights[a, b]
        gamma, kappa = prior.transition_concentration, prior.stickiness
        shift = draw_log_gamma(rng, gamma * places.shape[0] + kappa)
        for b in places:
            p = weights[a, b] / total
            log_p = math.log(max(p, _LEAST))
            if p <= _LEAST:
                log_p -= rng.standard_exponential() / (gamma + (kappa if a == b else 0.0))
            weights[a, b] = log_p + shift


@numpy_inner
def logs_to_probabilities(weights: np.ndarray, places: np.ndarray, p: np.ndarray) -> None:
    """Turn the logarithms of weights back into transition probabilities, in place."""
    probabilities_from_logs(weights, places, p)
    for a in range(places.shape[0]):
        for b in range(places.shape[0]):
            weights[places[a], places[b]] = p[a, b]


@numpy_inner
def draw_log_weights(
    rng: np.random.Generator, weights: np.ndarray, places: np.ndarray, k: int, prior: BehaviourPrior
) -> None:
    """Draw the logarithms of the weights from and to behaviour k from their prior, in place."""
    for a in places:
        if a != k:
            weights[a, k] = draw_log_gamma(rng, prior.transition_concentration)
            weights[k, a] = draw_log_gamma(rng, prior.transition_concentration)
    weights[k, k] = draw_log_gamma(rng, prior.transition_concentration + prior.stickiness)
