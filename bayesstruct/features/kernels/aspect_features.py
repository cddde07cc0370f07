r"""Draws of the aspects of options between which people chose.

An option that is compared with another is chosen by eliminating aspects: with positive weights w and the
aspects z of each option,

.. math::

    p_{ij} = (1 - \epsilon) \frac{f_{ij}}{f_{ij} + f_{ji}} + \frac{\epsilon}{2}, \qquad
    f_{ij} = \sum_k w_k z_{ik} (1 - z_{jk}),

one half if neither has an aspect that the other lacks. Aspects that both have do not matter. The two sums of
each pair are kept up to date.

**The scan.** The aspects that other options have too are visited in a random order, while those that an option
has alone stay. Of these only the sum of the weights matters; their number and weights are proposed anew
from the prior and accepted with the ratio of the likelihoods.

References
----------
Tversky, A. (1972). Elimination by aspects: a theory of choice. *Psychological Review* 79, 281-299. -- Gorur, D.,
Jaekel, F. and Rasmussen, C. E. (2006). A choice model with infinitely many latent features. *ICML* 23, 361-368.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import numpy_inner, numpy_kernel
from bayesstruct.features.kernels.feature_columns import own_last, shuffle

__all__ = [
    "Choices",
    "advantages",
    "draw_aspect_weights",
    "draw_length",
    "log_choices",
    "own_weights",
    "scan_aspects",
]

_TRIES = 2
_ZERO = 1e-10  # in scales of the prior: sums that are kept by additions are zero up to rounding
_WIDTH = 1.0  # of the first interval of the slice sampler, in scales of the prior


class Choices(NamedTuple):
    """Choices between pairs of options.

    Attributes
    ----------
    first, second : (m,) int64
        The two options of each pair.
    wins, trials : (m,) float64
        How often the first was chosen, of how many times; fractions to reduce the weight of the choices.
    gain : (m, 2) float64
        Weights of the aspects that the first has and the second lacks, and the other way round.
    """

    first: np.ndarray
    second: np.ndarray
    wins: np.ndarray
    trials: np.ndarray
    gain: np.ndarray


def advantages(z: np.ndarray, w: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Sum the weights of the aspects that one option of each pair has and the other lacks, (m, 2)."""
    one, two = z[first].astype(float), z[second].astype(float)
    return np.ascontiguousarray(np.column_stack([one * (1 - two) @ w, two * (1 - one) @ w]))


def own_weights(
    n: int,
    first: np.ndarray,
    second: np.ndarray,
    wins: np.ndarray,
    trials: np.ndarray,
    scale: float = 1.0,
) -> np.ndarray:
    """Weights of one aspect for each of n options, with which choices are those of Bradley and Terry.

    Fifty steps of Hunter (2004, *Annals of Statistics* 32, 384-406), with half a win and half a defeat added for
    each option, so that there is a maximum; their mean is that of half-normal weights of this scale.
    """
    won = np.bincount(first, wins, n) + np.bincount(second, trials - wins, n) + 0.5
    w = np.ones(n)
    for _ in range(50):
        share = trials / (w[first] + w[second])
        w = won / (np.bincount(first, share, n) + np.bincount(second, share, n) + 1.0 / (w + 1.0))
        w *= 0.8 / w.mean()
    return scale * w


@numpy_inner
def _log_pair(choices, m, one, two, lapse, least):
    """Log likelihood of the choices of pair m with these sums, without the binomial coefficient."""
    one, two = one if one > least else 0.0, two if two > least else 0.0
    total = one + two
    share, rest = (one / total, two / total) if total > 0.0 else (0.5, 0.5)
    wins, losses, value = choices.wins[m], choices.trials[m] - choices.wins[m], 0.0
    # Without lapses a probability may be zero: what did not happen then adds nothing, not 0 log 0.
    if wins > 0.0:
        value += wins * math.log((1.0 - lapse) * share + 0.5 * lapse)
    if losses > 0.0:
        value += losses * math.log((1.0 - lapse) * rest + 0.5 * lapse)
    return value


@numpy_kernel
def log_choices(choices: Choices, lapse: float, scale: float) -> float:
    """Log likelihood of all choices, without the binomial coefficients.

    Parameters
    ----------
    choices : Choices
    lapse, scale : float
        See :func:`scan_aspects`.

    Returns
    -------
    float
        Minus infinity where something was chosen that has probability zero.
    """
    total = 0.0
    for m in range(choices.first.shape[0]):
        one, two = choices.gain[m, 0], choices.gain[m, 1]
        total += _log_pair(choices, m, one, two, lapse, _ZERO * scale)
    return total


@numpy_inner
def _accept(rng, log_ratio):
    return rng.random() * (1.0 + math.exp(min(-log_ratio, 700.0))) < 1.0


@numpy_inner
def _flip_shared(rng, z, i, k, w, log_odds, choices, pairs, lapse, least, order):
    """Draw the entries of option i in the first k aspects, which others have too."""
    shuffle(rng, order, k)
    for a in order[:k]:
        sign = -1.0 if z[i, a] else 1.0
        ratio = sign * log_odds[a]
        for m in pairs:
            one, two = _moved(choices, m, i, z, a, sign * w[a])
            ratio += _log_pair(choices, m, one, two, lapse, least)
            one, two = choices.gain[m, 0], choices.gain[m, 1]
            ratio -= _log_pair(choices, m, one, two, lapse, least)
        if not _accept(rng, ratio):
            continue
        for m in pairs:
            one, two = _moved(choices, m, i, z, a, sign * w[a])
            choices.gain[m, 0], choices.gain[m, 1] = one, two
        z[i, a] = 1 - z[i, a]


@numpy_inner
def _moved(choices, m, i, z, a, change):
    """Return the sums of a pair after option i has gained an aspect of this weight, or lost it (negative)."""
    side = 0 if choices.first[m] == i else 1
    other = choices.second[m] if side == 0 else choices.first[m]
    one, two = choices.gain[m, 0], choices.gain[m, 1]
    # Aspects that both have count for neither.
    own, its = (0.0, -change) if z[other, a] else (change, 0.0)
    if side == 0:
        return one + own, two + its
    return one + its, two + own


@numpy_inner
def _log_own(i, change, choices, pairs, lapse, least):
    """Log likelihood of the choices of option i once its own weights have changed by so much."""
    total = 0.0
    for m in pairs:
        one, two = choices.gain[m, 0], choices.gain[m, 1]
        if choices.first[m] == i:
            one += change
        else:
            two += change
        total += _log_pair(choices, m, one, two, lapse, least)
    return total


@numpy_inner
def _propose_own(rng, i, own, count, scale, rate, choices, pairs, lapse):
    """Propose the weights of the aspects that option i alone has; return how many these are.

    -1 if there are too many.
    """
    proposed = np.empty(own.shape[0])
    for _ in range(_TRIES):
        number, total = rng.poisson(rate), 0.0
        old = own[:count].sum()
        if number > own.shape[0]:
            return -1
        for a in range(number):
            proposed[a] = scale * abs(rng.standard_normal())
            total += proposed[a]
        ratio = _log_own(i, total - old, choices, pairs, lapse, _ZERO * scale)
        ratio -= _log_own(i, 0.0, choices, pairs, lapse, _ZERO * scale)
        if rng.standard_exponential() > -ratio:
            for m in pairs:
                choices.gain[m, 0 if choices.first[m] == i else 1] += total - old
            copy_vector(own, proposed[:number])
            count = number
    return count


@numpy_kernel
def scan_aspects(
    rng: np.random.Generator,
    z: np.ndarray,
    w: np.ndarray,
    used: int,
    choices: Choices,
    start: np.ndarray,
    entries: np.ndarray,
    options: np.ndarray,
    lapse: float,
    scale: float,
    process: np.ndarray,
) -> int:
    """Draw the aspects of options in turn, in place; they are in no order afterwards.

    Parameters
    ----------
    rng : numpy.random.Generator
    z : (n, K) int8, changed
        Only the first `used` columns have ones, and each of these has.
    w : (K, 1) float64, changed
        Weights, zero for aspects that are not used.
    used : int
    choices : Choices
        Its ``gain`` is changed.
    start, entries : int64 arrays
        The pairs of option i are ``entries[start[i]:start[i + 1]]``.
    options : int64 array
        In the order in which they are visited.
    lapse, scale : float
        epsilon, and the scale of the half-normal weights.
    process : (3,) float64
        Mean number of aspects that an option has alone, concentration, discount.

    Returns
    -------
    int
        Number of aspects that are used afterwards; -1 if K of them were not enough.
    """
    n, most = z.shape
    rate, concentration, discount = process
    sums, log_odds = np.zeros(most, np.int64), np.zeros(most)
    order = np.zeros(most, np.int64)
    for i in range(n):
        for a in range(used):
            sums[a] += z[i, a]
    for i in options:
        for a in range(used):
            sums[a] -= z[i, a]
        shared = own_last(z, w, sums, used)
        for a in range(shared):
            log_odds[a] = math.log(
                (sums[a] - discount) / (n - 1 - sums[a] + concentration + discount)
            )
        pairs = entries[start[i] : start[i + 1]]
        weights = w[:, 0]
        _flip_shared(
            rng, z, i, shared, weights, log_odds, choices, pairs, lapse, _ZERO * scale, order
        )
        own = _propose_own(
            rng, i, weights[shared:], used - shared, scale, rate, choices, pairs, lapse
        )
        if own < 0:
            return -1
        for a in range(shared, most):
            z[i, a] = a < shared + own
            if a >= shared + own:
                weights[a] = 0.0
        used = shared + own
        for a in range(used):
            sums[a] += z[i, a]
    return used


@numpy_inner
def _log_weight(value, old, a, z, choices, lapse, scale):
    """Log of the conditional density of a weight, up to a constant."""
    if value < 0.0:
        return -np.inf
    total = -0.5 * (value / scale) ** 2
    for m in range(choices.first.shape[0]):
        one, two = choices.gain[m, 0], choices.gain[m, 1]
        has, its = z[choices.first[m], a], z[choices.second[m], a]
        if has == its:
            continue
        if has:
            one += value - old
        else:
            two += value - old
        total += _log_pair(choices, m, one, two, lapse, _ZERO * scale)
    return total


@numpy_kernel
def draw_aspect_weights(
    rng: np.random.Generator,
    z: np.ndarray,
    w: np.ndarray,
    used: int,
    choices: Choices,
    lapse: float,
    scale: float,
) -> None:
    """Draw the weights in turn by slice sampling (Neal 2003), in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    z : (n, K) int8
    w : (K, 1) float64, changed
    used : int
    choices : Choices
        Its ``gain`` is changed.
    lapse, scale : float
    """
    for a in range(used):
        old = w[a, 0]
        level = _log_weight(old, old, a, z, choices, lapse, scale) - rng.standard_exponential()
        low = old - _WIDTH * scale * rng.random()
        high = low + _WIDTH * scale
        while _log_weight(high, old, a, z, choices, lapse, scale) > level:
            high += _WIDTH * scale
        while low > 0.0 and _log_weight(low, old, a, z, choices, lapse, scale) > level:
            low -= _WIDTH * scale
        low = max(low, 0.0)
        value = old
        while True:
            value = low + (high - low) * rng.random()
            if _log_weight(value, old, a, z, choices, lapse, scale) > level:
                break
            if value == old:  # rounding has closed the interval
                break
            if value < old:
                low = value
            else:
                high = value
        w[a, 0] = value
        for m in range(choices.first.shape[0]):
            has, its = z[choices.first[m], a], z[choices.second[m], a]
            if has != its:
                choices.gain[m, 0 if has else 1] += value - old


def draw_length(rng: np.random.Generator, w: np.ndarray, scale: float) -> float:
    """Draw the length of the vector of weights, on which choices do not depend: the factor for all of them.

    The square of the length has, independently of the direction, a chi-squared distribution.

    Parameters
    ----------
    rng : numpy.random.Generator
    w : (k,) ndarray
        Weights of the aspects that are used; the factor is 1 if there are none.
    scale : float
    """
    length = np.linalg.norm(w / scale)
    return float(np.sqrt(rng.chisquare(len(w))) / length) if length > 0.0 else 1.0
