r"""Moves of whole aspects: births, deaths, splits and unions, between sets of aspects that a scan does not connect.

Two options with the same aspects are chosen equally often. One aspect that only one of them has makes their
choices all but certain, whatever its weight, so entry by entry a chain does not get from equal options to
options of which each has its own aspects. A split does: an aspect of several options becomes two, with weights near its own, each
of a part of the options. Options that were equal are compared by two nearly equal weights afterwards,
and all other choices change little.

**The target.** With fixed parameters an Indian buffet process of left-ordered matrices is a Poisson process of
columns: those with pattern h and weight w have the intensity

.. math:: \lambda(h, w) = \alpha \, g(m_h) \, \frac{2}{\tau} \phi(w / \tau)

(:mod:`bayesstruct.features.kernels.indian_buffet`). A move from K columns to K + 1 and its reverse are chosen
equally often.

- **Birth** of a column with density b, and death of one of K + 1: the ratio is
  :math:`\frac{L'}{L} \frac{\lambda(h, w)}{b(h, w) (K + 1)}`. Half of the patterns are that of all options, which
  affects no choice; other patterns have their probabilities in the process. Weights are half-normal with three scales.
- **Split** of a column of m options, into s and the others with probability :math:`q_{ms}` of these two patterns in this
  order, with weights :math:`w e^{u}` and :math:`w e^{-u}`, u with the density f; union of two columns without
  an option in common: :math:`\frac{L'}{L} \frac{\lambda_1 \lambda_2}{\lambda} \frac{4 w}{(K + 1) \, q_{ms} f(u)}`.
- **Division** of a column into two with the same pattern and the weights :math:`v w, (1 - v) w`, v uniform; and their union,
  whose weight is the sum: :math:`\frac{\lambda_1 \lambda_2}{\lambda} \frac{2 w}{K + 1}`, as choices stay. A factor of 2
  in both ratios is there because a column is split or divided, one or the other, with probability 1/2.

References
----------
Green, P. J. (1995). Reversible jump Markov chain Monte Carlo computation and Bayesian model determination.
*Biometrika* 82, 711-732. -- Geyer, C. J. and Moller, J. (1994). Simulation procedures and likelihood inference
for spatial point processes. *Scandinavian Journal of Statistics* 21, 359-373.
"""

import math

from typing import NamedTuple

import numpy as np

from scipy.special import gammaln

from bayesstruct.core.arrays import copy_matrix, copy_vector
from bayesstruct.core.jit import numpy_inner, numpy_kernel
from bayesstruct.features.kernels.aspect_features import Choices, log_choices
from bayesstruct.features.kernels.indian_buffet import column_weights

__all__ = ["Moves", "aspect_moves", "move_aspects"]

_SPREAD = 0.5  # mean of |u|, the log ratio of weights to that of the aspect which is split, a Laplace variable
_SMALLER = 0.1  # ratio of the scales of weights that are proposed
_LOG_HALF_NORMAL = 0.5 * math.log(2.0 / math.pi)


class Moves(NamedTuple):
    """Prior of the columns of n options and proposals, by the number of options that have a column.

    Attributes
    ----------
    intensity : (n + 1,) float64
        Log intensity of the columns of one pattern.
    births, log_birth : (n + 1,) float64
        Cumulative probabilities of the numbers of options of a column at its birth, and the log probability of one
        pattern.
    splits, log_split : (n + 1, n + 1) float64
        Likewise of the first part of a column that is split, and of one pair of patterns.
    """

    intensity: np.ndarray
    births: np.ndarray
    log_birth: np.ndarray
    splits: np.ndarray
    log_split: np.ndarray


def aspect_moves(n: int, alpha: float, concentration: float = 1.0, discount: float = 0.0) -> Moves:
    """Collect the prior of the columns and the proposals for n options.

    Parameters
    ----------
    n : int
    alpha, concentration, discount : float
        Of the process.
    """
    sizes = np.arange(n + 1)
    weights = np.full(n + 1, -np.inf)
    weights[1:] = column_weights(sizes[1:], n, concentration, discount)
    births = np.exp(_log_choose(n, sizes) + weights)
    births *= 0.5 / births.sum()
    births[n] += 0.5
    splits = np.zeros((n + 1, n + 1))
    log_split = np.full((n + 1, n + 1), -np.inf)
    for m in range(2, n + 1):
        s = sizes[1:m]
        log = _log_choose(m, s) + weights[s] + weights[m - s]
        splits[m, s] = np.exp(log - log.max())
        splits[m] /= splits[m].sum()
        log_split[m, s] = np.log(splits[m, s]) - _log_choose(m, s)
    with np.errstate(divide="ignore"):
        log_birth = np.log(births) - _log_choose(n, sizes)
    intensity = math.log(alpha) + weights
    return Moves(intensity, births.cumsum(), log_birth, splits.cumsum(axis=1), log_split)


def _log_choose(n, k):
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


@numpy_inner
def _log_half_normal(w, scale):
    return _LOG_HALF_NORMAL - math.log(scale) - 0.5 * (w / scale) ** 2


@numpy_inner
def _log_proposed(w, scale):
    """Log density of the weight of a new aspect."""
    total = 0.0
    for _ in range(3):
        total += math.exp(_log_half_normal(w, scale)) / 3.0
        scale *= _SMALLER
    return math.log(total)


@numpy_inner
def _log_intensity(moves, size, w, scale):
    return moves.intensity[size] + _log_half_normal(w, scale)


@numpy_inner
def _size_of(rng, cumulative):
    """Draw a number of options; rounding of the sums never gives one that has no probability."""
    u, size = rng.random() * cumulative[-1], 0
    while cumulative[size] <= u:
        size += 1
    return size


@numpy_inner
def _choose(rng, column, size, chosen):
    """Choose so many of the options of a column, all sets being equally probable; return how many it has."""
    left, number = size, 0
    for i in range(column.shape[0]):
        number += column[i]
    rest = number
    for i in range(column.shape[0]):
        chosen[i] = 0
        if column[i]:
            if rng.random() * rest < left:
                chosen[i] = 1
                left -= 1
            rest -= 1
    return number


@numpy_inner
def _count(column):
    total = 0
    for i in range(column.shape[0]):
        total += column[i]
    return total


@numpy_inner
def _add(gain, choices, column, w):
    """Add an aspect of weight w to the sums of the pairs, or take it away (negative)."""
    for m in range(choices.first.shape[0]):
        has, its = column[choices.first[m]], column[choices.second[m]]
        if has != its:
            gain[m, 0 if has else 1] += w


@numpy_inner
def _accept(rng, log_ratio, trial, choices, lapse, scale):
    """Accept or refuse sums of pairs, given the log ratio of all but the likelihoods."""
    proposed = Choices(choices.first, choices.second, choices.wins, choices.trials, trial)
    log_ratio += log_choices(proposed, lapse, scale) - log_choices(choices, lapse, scale)
    if not rng.standard_exponential() > -log_ratio:
        return False
    copy_matrix(choices.gain, trial)
    return True


@numpy_inner
def _remove(z, w, a, used):
    """Put the last column that is used in the place of column a."""
    copy_vector(z[:, a], z[:, used - 1])
    w[a, 0] = w[used - 1, 0]
    z[:, used - 1] = 0
    w[used - 1, 0] = 0.0
    return used - 1


@numpy_inner
def _set(z, w, a, column, weight):
    copy_vector(z[:, a], column)
    w[a, 0] = weight


@numpy_inner
def _born_or_dead(rng, z, w, used, choices, moves, lapse, scale, trial, one):
    """Try the birth or the death of an aspect; return how many there are."""
    copy_matrix(trial, choices.gain)
    if rng.random() < 0.5:
        one[:] = 1
        size = _size_of(rng, moves.births)
        everyone = one.copy()
        _choose(rng, everyone, size, one)
        weight = scale * _SMALLER ** int(3.0 * rng.random()) * abs(rng.standard_normal())
        _add(trial, choices, one, weight)
        ratio = _log_intensity(moves, size, weight, scale) - moves.log_birth[size]
        ratio -= _log_proposed(weight, scale) + math.log(used + 1.0)
        if not _accept(rng, ratio, trial, choices, lapse, scale):
            return used
        if used == z.shape[1]:
            return -1
        _set(z, w, used, one, weight)
        return used + 1
    if used == 0:
        return used
    a = int(rng.random() * used)
    size, weight = _count(z[:, a]), w[a, 0]
    _add(trial, choices, z[:, a], -weight)
    ratio = moves.log_birth[size] + _log_proposed(weight, scale) + math.log(used)
    ratio -= _log_intensity(moves, size, weight, scale)
    if not _accept(rng, ratio, trial, choices, lapse, scale):
        return used
    return _remove(z, w, a, used)


@numpy_inner
def _log_split(moves, m, s, w, u, scale):
    """Log ratio of splitting an aspect of m options and weight w, without likelihoods and numbers of aspects."""
    ratio = _log_intensity(moves, s, w * math.exp(u), scale)
    ratio += _log_intensity(moves, m - s, w * math.exp(-u), scale)
    ratio -= _log_intensity(moves, m, w, scale)
    ratio += math.log(4.0 * w) - moves.log_split[m, s]
    return ratio + abs(u) / _SPREAD + math.log(2.0 * _SPREAD)


@numpy_inner
def _log_division(moves, m, w, v, scale):
    """Log ratio of dividing the weight of an aspect of m options, without numbers of aspects."""
    ratio = _log_intensity(moves, m, v * w, scale) + _log_intensity(moves, m, (1.0 - v) * w, scale)
    return ratio - _log_intensity(moves, m, w, scale) + math.log(2.0 * w)


@numpy_inner
def _split(rng, z, w, used, choices, moves, lapse, scale, trial, one):
    """Try to make two aspects of one; return how many there are."""
    if used == 0:
        return used
    a = int(rng.random() * used)
    weight, size = w[a, 0], _count(z[:, a])
    two = z[:, a].copy()
    if rng.random() < 0.5:
        v = rng.random()
        copy_vector(one, two)
        first, second = v * weight, (1.0 - v) * weight
        if not (first > 0.0 and second > 0.0):
            return used
        ratio = _log_division(moves, size, weight, v, scale)
    else:
        if size < 2:
            return used
        s = _size_of(rng, moves.splits[size])
        _choose(rng, z[:, a], s, one)
        for i in range(two.shape[0]):
            two[i] -= one[i]
        u = _SPREAD * rng.standard_exponential() * (1.0 if rng.random() < 0.5 else -1.0)
        first, second = weight * math.exp(u), weight * math.exp(-u)
        ratio = _log_split(moves, size, s, weight, u, scale)
    _add(trial, choices, z[:, a], -weight)
    _add(trial, choices, one, first)
    _add(trial, choices, two, second)
    if not _accept(rng, ratio - math.log(used + 1.0), trial, choices, lapse, scale):
        return used
    if used == z.shape[1]:
        return -1
    _set(z, w, a, one, first)
    _set(z, w, used, two, second)
    return used + 1


@numpy_inner
def _unite(rng, z, w, used, choices, moves, lapse, scale, trial, one):
    """Try to make one aspect of two; return how many there are."""
    if used < 2:
        return used
    a = int(rng.random() * used)
    b = int(rng.random() * (used - 1))
    b += b >= a
    common, apart = 0, 0
    for i in range(z.shape[0]):
        one[i] = z[i, a] | z[i, b]
        common += z[i, a] & z[i, b]
        apart += z[i, a] != z[i, b]
    if common > 0 and apart > 0:
        return used
    first, second, size = w[a, 0], w[b, 0], _count(one)
    if apart == 0:
        weight = first + second
        ratio = -_log_division(moves, size, weight, first / weight, scale)
    else:
        weight = math.sqrt(first * second)
        u = 0.5 * math.log(first / second)
        ratio = -_log_split(moves, size, _count(z[:, a]), weight, u, scale)
    _add(trial, choices, z[:, a], -first)
    _add(trial, choices, z[:, b], -second)
    _add(trial, choices, one, weight)
    if not _accept(rng, ratio + math.log(used), trial, choices, lapse, scale):
        return used
    _set(z, w, a, one, weight)
    return _remove(z, w, b, used)


@numpy_kernel
def move_aspects(
    rng: np.random.Generator,
    z: np.ndarray,
    w: np.ndarray,
    used: int,
    choices: Choices,
    moves: Moves,
    tries: int,
    lapse: float,
    scale: float,
) -> int:
    """Try births or deaths, and splits or unions, of aspects so many times each, in place.

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
    moves : Moves
    tries : int
    lapse, scale : float
        See :func:`bayesstruct.features.kernels.aspect_features.scan_aspects`.

    Returns
    -------
    int
        Number of aspects that are used afterwards; -1 if K of them were not enough.
    """
    trial, one = np.empty_like(choices.gain), np.zeros(z.shape[0], np.int8)
    for _ in range(tries):
        used = _born_or_dead(rng, z, w, used, choices, moves, lapse, scale, trial, one)
        if used < 0:
            return -1
        copy_matrix(trial, choices.gain)
        if rng.random() < 0.5:
            used = _split(rng, z, w, used, choices, moves, lapse, scale, trial, one)
        else:
            used = _unite(rng, z, w, used, choices, moves, lapse, scale, trial, one)
        if used < 0:
            return -1
    return used
