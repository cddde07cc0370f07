r"""Draws of the binary features of objects of which pairs are observed.

.. math:: \eta_{ij} = c_{ij} + \sum_{kl} z_{ik} W_{kl} u_{jl}, \qquad y_{ij} \sim p(y \mid \eta_{ij}),

with u = z where source and target are of one set, or features of another set. The weights are not summed
out. The linear predictors are kept up to date: a flip of one entry costs as much as there are observed
pairs with this object.

**The scan.** The features that an object shares with others are visited in an order that does not depend
on its row, by Gibbs steps. Those that it has alone stay in the meantime; then all of them are proposed
anew, in number from their Poisson distribution and with weights from the prior, and the proposal is accepted with
the ratio of the likelihoods (Meeds et al. 2007 propose so). To delete the features of one object before the
others are visited, as the published scan does, would not leave the posterior invariant.

References
----------
Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review. *JMLR*
12, 1185-1224, sections 5.1, 6.3 to 6.5. -- Miller, K., Griffiths, T. and Jordan, M. (2009). Nonparametric
latent feature models for link prediction. *NIPS* 22. -- Meeds, E., Ghahramani, Z., Neal, R. and Roweis, S.
(2007). Modeling dyadic data with binary latent factors. *NIPS* 19.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import numpy_inner, numpy_kernel
from bayesstruct.features.kernels.feature_columns import shuffle
from bayesstruct.features.kernels.link_likelihoods import Likelihood, ObservedPairs, log_density

__all__ = [
    "Buffet",
    "Incidence",
    "Slab",
    "coefficients",
    "draw_slab",
    "incidence",
    "scan_objects",
]


class Incidence(NamedTuple):
    """Observed pairs of each object.

    Attributes
    ----------
    start : (n + 1,) int64
        Entries of object i are those from ``start[i]`` to ``start[i + 1]``.
    pair : int64 array
        Pair of each entry.
    partner : int64 array
        The other object of it; m more where that one is the source, with m objects.
    """

    start: np.ndarray
    pair: np.ndarray
    partner: np.ndarray


class Buffet(NamedTuple):
    """Prior of the features, see :mod:`bayesstruct.features.kernels.indian_buffet`.

    Attributes
    ----------
    rate : float
        Mean number of features that an object has alone.
    concentration, discount : float
    """

    rate: float
    concentration: float
    discount: float


class Slab(NamedTuple):
    """Prior of the weights.

    Attributes
    ----------
    scale : float
        Standard deviation, of the normal distribution before it is folded if they are positive.
    positive : bool
    kind : int
        Position in :data:`bayesstruct.features.kernels.link_codes.KINDS`.
    """

    scale: float
    positive: bool
    kind: int


def incidence(own: np.ndarray, other: np.ndarray, n: int, m: int, one_set: bool) -> Incidence:
    """Collect the pairs of each object.

    Parameters
    ----------
    own, other : (d,) int array
        The object that counts and its partner, for each pair.
    n, m : int
        Numbers of objects of the two.
    one_set : bool
        Whether both are of one set, so that a pair belongs to both of its objects.
    """
    pair = np.arange(len(own))
    objects, partners = np.asarray(own), np.asarray(other)
    if one_set:
        pair = np.concatenate([pair, pair])
        objects, partners = (
            np.concatenate([objects, other]),
            np.concatenate([partners, np.asarray(own) + m]),
        )
    order = np.argsort(objects, kind="stable")
    start = np.searchsorted(objects[order], np.arange(n + 1))
    return Incidence(
        start.astype(np.int64), pair[order].astype(np.int64), partners[order].astype(np.int64)
    )


def coefficients(other: np.ndarray, weights: np.ndarray, one_set: bool) -> np.ndarray:
    """Effect of each feature on the linear predictor of a pair, for each partner.

    Parameters
    ----------
    other : (m, L) int8
        Features of the partners.
    weights : (K, L) float64
    one_set : bool

    Returns
    -------
    (m, K) or (2 m, K) ndarray
        For partners that are targets; for those that are sources below.
    """
    u = np.asarray(other, float)
    as_target = u @ weights.T
    return np.concatenate([as_target, u @ weights]) if one_set else as_target


@numpy_inner
def draw_slab(rng: np.random.Generator, slab: Slab) -> float:
    """Draw a weight from its prior."""
    value = slab.scale * rng.standard_normal()
    return abs(value) if slab.positive else value


@numpy_inner
def _log_odds(m, n, buffet):
    """Prior log odds of a feature that m of the other n - 1 objects have."""
    return math.log((m - buffet.discount) / (n - 1 - m + buffet.concentration + buffet.discount))


@numpy_inner
def _sign(z, i, a):
    return -1.0 if z[i, a] else 1.0


@numpy_inner
def _flip(rng, i, a, b, z, log_ratio, effect, pairs, observed, likelihood, trial):
    """Flip one entry of a row (if a is b), or two, with their probability given all others.

    ``log_ratio`` is that of the prior after and before. Returns whether the row changed.
    """
    begin, end = pairs.start[i], pairs.start[i + 1]
    one, two = _sign(z, i, a), 0.0 if a == b else _sign(z, i, b)
    gain = log_ratio
    for e in range(begin, end):
        d, partner = pairs.pair[e], pairs.partner[e]
        change = one * effect[partner, a] + two * effect[partner, b]
        trial[e - begin] = observed.density[d]
        if change != 0.0:
            trial[e - begin] = log_density(likelihood, observed.y[d], observed.eta[d] + change)
            gain += trial[e - begin] - observed.density[d]
    # Written so that an impossible value (a gain of minus infinity) is never taken.
    if not rng.random() * (1.0 + math.exp(min(-gain, 700.0))) < 1.0:
        return False
    z[i, a] = 1 - z[i, a]
    if a != b:
        z[i, b] = 1 - z[i, b]
    for e in range(begin, end):
        d, partner = pairs.pair[e], pairs.partner[e]
        observed.eta[d] += one * effect[partner, a] + two * effect[partner, b]
        observed.density[d] = trial[e - begin]
    return True


@numpy_inner
def _redraw_row(rng, i, z, sums, places, order, effect, pairs, observed, likelihood, buffet, trial):
    """Draw the entries of a row in the features that other objects have: one by one, then exchanges.

    Features with nearly the same weights seldom give up an object unless the other takes it at once.
    """
    n, shared = z.shape[0], 0
    for a in range(z.shape[1]):
        if sums[a] > z[i, a]:
            places[shared] = a
            shared += 1
    shuffle(rng, order, shared)
    for c in order[:shared]:
        a = places[c]
        m = sums[a] - z[i, a]
        ratio = _sign(z, i, a) * _log_odds(m, n, buffet)
        if _flip(rng, i, a, a, z, ratio, effect, pairs, observed, likelihood, trial):
            sums[a] = m + z[i, a]
    for _ in range(shared):
        a, b = places[int(rng.random() * shared)], places[int(rng.random() * shared)]
        if z[i, a] == z[i, b]:
            continue
        first, second = sums[a] - z[i, a], sums[b] - z[i, b]
        ratio = _sign(z, i, a) * _log_odds(first, n, buffet)
        ratio += _sign(z, i, b) * _log_odds(second, n, buffet)
        if _flip(rng, i, a, b, z, ratio, effect, pairs, observed, likelihood, trial):
            sums[a], sums[b] = first + z[i, a], second + z[i, b]


@numpy_inner
def _propose(rng, new, shared, slab, one_set, fresh, outward, inward):
    """Draw weights between new features and shared ones; add them up over the new ones.

    ``fresh[0]`` has the weights of new features as those of the source, ``fresh[1]`` of the target.
    """
    for b in range(shared.shape[0]):
        outward[b] = 0.0
        inward[b] = 0.0
        if slab.kind == 2 or not shared[b]:
            continue
        for a in range(new):
            fresh[0, a, b] = draw_slab(rng, slab)
            outward[b] += fresh[0, a, b]
            if one_set:
                fresh[1, a, b] = draw_slab(rng, slab) if slab.kind == 0 else fresh[0, a, b]
                inward[b] += fresh[1, a, b]


@numpy_inner
def _try_own(
    rng, i, own, other, shared, effect, pairs, observed, likelihood, outward, inward, trial, moves
):
    """Accept or refuse the proposed weights of the features that only object i has."""
    begin, end = pairs.start[i], pairs.start[i + 1]
    m = other.shape[0]
    gain = 0.0
    for e in range(begin, end):
        d, partner = pairs.pair[e], pairs.partner[e]
        change = 0.0
        j, sums = (partner, outward) if partner < m else (partner - m, inward)
        for b in range(shared.shape[0]):
            if shared[b] and other[j, b]:
                change += sums[b]
        for a in range(own.shape[0]):
            if own[a]:
                change -= effect[partner, a]
        moves[e - begin] = change
        trial[e - begin] = log_density(likelihood, observed.y[d], observed.eta[d] + change)
        gain += trial[e - begin] - observed.density[d]
    if not math.log(rng.random()) < gain:
        return False
    for e in range(begin, end):
        d = pairs.pair[e]
        observed.eta[d] += moves[e - begin]
        observed.density[d] = trial[e - begin]
    return True


@numpy_inner
def _drop_own(i, z, sums, own, weights, effect, one_set):
    """Take the features away that only object i has."""
    for a in range(z.shape[1]):
        if own[a]:
            z[i, a] = 0
            sums[a] = 0.0
            own[a] = False
            weights[a, :] = 0.0
            effect[:, a] = 0.0
            if one_set:
                weights[:, a] = 0.0


@numpy_inner
def _set_weights(rng, a, fresh_out, fresh_in, own, shared, weights, slab, one_set):
    """Set the weights of a new feature: proposed ones with shared features, others from the prior."""
    if slab.kind == 2:
        weights[a, a] = draw_slab(rng, slab)
        return
    for b in range(shared.shape[0]):
        if shared[b]:
            weights[a, b] = fresh_out[b]
            if one_set:
                weights[b, a] = fresh_in[b]
        elif one_set and own[b]:
            weights[a, b] = draw_slab(rng, slab)
            if b != a:
                weights[b, a] = draw_slab(rng, slab) if slab.kind == 0 else weights[a, b]


@numpy_inner
def _add_own(rng, i, z, sums, own, new, shared, weights, slab, one_set, fresh):
    """Put new features into empty columns. Returns whether there were enough."""
    placed = 0
    for a in range(z.shape[1]):
        if placed == new:
            return True
        if sums[a] == 0.0:
            z[i, a] = 1
            sums[a] = 1.0
            own[a] = True
            out, back = fresh[0, placed], fresh[1, placed]
            _set_weights(rng, a, out, back, own, shared, weights, slab, one_set)
            placed += 1
    return placed == new


@numpy_inner
def _set_effects_of(own, other, weights, one_set, effect):
    """Set the effects of some features from their weights."""
    m = other.shape[0]
    for a in range(own.shape[0]):
        if not own[a]:
            continue
        for j in range(m):
            forward, backward = 0.0, 0.0
            for b in range(other.shape[1]):
                if other[j, b]:
                    forward += weights[a, b]
                    if one_set:
                        backward += weights[b, a]
            effect[j, a] = forward
            if one_set:
                effect[m + j, a] = backward


@numpy_inner
def _set_effects_with(i, z, weights, effect):
    """Set the effects that features have on pairs with object i, where there is one set."""
    n, most = z.shape
    for a in range(most):
        forward, backward = 0.0, 0.0
        for b in range(most):
            if z[i, b]:
                forward += weights[a, b]
                backward += weights[b, a]
        effect[i, a] = forward
        effect[n + i, a] = backward


@numpy_inner
def _column_sums(matrix):
    out = np.zeros(matrix.shape[1])
    for i in range(matrix.shape[0]):
        for a in range(matrix.shape[1]):
            out[a] += matrix[i, a]
    return out


@numpy_inner
def _find_own(i, z, sums, own):
    """Mark the features that only object i has, and count them."""
    number = 0
    for a in range(z.shape[1]):
        own[a] = z[i, a] == 1 and sums[a] == 1.0
        number += own[a]
    return number


@numpy_kernel
def scan_objects(
    rng: np.random.Generator,
    z: np.ndarray,
    other: np.ndarray,
    weights: np.ndarray,
    effect: np.ndarray,
    pairs: Incidence,
    observed: ObservedPairs,
    likelihood: Likelihood,
    buffet: Buffet,
    slab: Slab,
    one_set: bool,
    objects: np.ndarray,
    tries: int,
) -> int:
    """Draw the features of objects in turn, in place; the columns are in no order afterwards.

    Parameters
    ----------
    rng : numpy.random.Generator
    z : (n, K) int8, changed
        Features of the objects.
    other : (m, L) int8
        Features of their partners: `z` itself where there is one set.
    weights : (K, L) float64, changed
        Zero for features that no object has.
    effect : ndarray, changed
        See :func:`coefficients`.
    pairs : Incidence
    observed : ObservedPairs
        Its ``eta`` and ``density`` are changed.
    likelihood : Likelihood
    buffet : Buffet
    slab : Slab
    one_set : bool
    objects : int64 array
        In the order in which they are visited.
    tries : int
        How many times the features of one object alone are proposed anew.

    Returns
    -------
    int
        Number of columns that are used afterwards; -1 if K of them were not enough.
    """
    most, paired = z.shape[1], other.shape[1]
    sums, partners = _column_sums(z), _column_sums(other)
    widest = 0
    for i in range(len(pairs.start) - 1):
        widest = max(widest, pairs.start[i + 1] - pairs.start[i])
    trial, moves = np.zeros(widest), np.zeros(widest)
    places, order = np.zeros(most, np.int64), np.zeros(most, np.int64)
    own, shared = np.zeros(most, np.bool_), np.zeros(paired, np.bool_)
    fresh, outward, inward = np.zeros((2, most, paired)), np.zeros(paired), np.zeros(paired)
    for i in objects:
        _redraw_row(
            rng, i, z, sums, places, order, effect, pairs, observed, likelihood, buffet, trial
        )
        for _ in range(tries):
            new = rng.poisson(buffet.rate)
            if _find_own(i, z, sums, own) == 0 and new == 0:
                continue
            if new > most:
                return -1
            for b in range(paired):
                shared[b] = sums[b] > z[i, b] if one_set else partners[b] > 0.0
            _propose(rng, new, shared, slab, one_set, fresh, outward, inward)
            if _try_own(
                rng,
                i,
                own,
                other,
                shared,
                effect,
                pairs,
                observed,
                likelihood,
                outward,
                inward,
                trial,
                moves,
            ):
                _drop_own(i, z, sums, own, weights, effect, one_set)
                if not _add_own(rng, i, z, sums, own, new, shared, weights, slab, one_set, fresh):
                    return -1
                _set_effects_of(own, other, weights, one_set, effect)
        if one_set:
            _set_effects_with(i, z, weights, effect)
    used = 0
    for a in range(most):
        used += sums[a] > 0.0
    return used
