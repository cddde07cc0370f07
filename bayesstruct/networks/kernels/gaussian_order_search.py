r"""Search over orders for the best Gaussian network, whatever the size of its parent sets.

Given an order, the parents of a variable are grown among all variables before it, one at a time while the
score rises, and shrunk again. A variable is put at the best of all places; on the way it passes one
neighbour after the other, and only the parents of the two are looked at again. Where that ends, two
parents at once are tried: parents whose effects nearly cancel, which no list by single effects has, are found
once the order is right. Of equally good places any is taken, so that the search moves along plateaus
(equivalent graphs have many orders). Then some variables are put elsewhere at random, and the search goes on from
there if that is no loss. In the end no parent set gets better by one or two parents more (of those before
the variable) or by one less; there is no certificate.

References
----------
Andrews, B., Ramsey, J., Sanchez-Romero, R., Camchong, J. and Kummerfeld, E. (2023). Fast scalable and accurate
discovery of DAGs using the best order score search and grow-shrink trees. *NeurIPS* 36. -- Wienöbst, M.,
Henckel, L. and Weichwald, S. (2025). Embracing discrete search: a reasonable approach to causal structure
learning. arXiv:2510.04970.
"""

import math

from typing import NamedTuple

import numpy as np

from numba.core import types
from numba.experimental import structref

from bayesstruct.core.jit import kernel, numpy_inner
from bayesstruct.networks.kernels.order_search import random_order

__all__ = ["GaussianFamilies", "search_orders"]

_EQUAL = 1e-9  # difference of scores, and relative one, that rounding may make
_MOST = 32  # parents of a variable, if no more are required


class GaussianFamilies(NamedTuple):
    r"""Local scores :math:`a_p - b_p \log v_\pi - c \log |R_{\pi\pi}|`, and the log prior of parent sets.

    The children fall into g groups, by the rows in which they were not set.
    """

    matrices: np.ndarray
    """(g, d, d) float64: R of each group (:mod:`bayesstruct.networks.kernels.scores.gaussian_subsets`)."""
    group: np.ndarray
    """(d,) int64: that of each child."""
    sizes: np.ndarray
    """(g, 2, d) float64: :math:`a_p` plus the log prior of the size p, ``-inf`` if sets are too large, and
    :math:`b_p`."""
    arcs: np.ndarray
    """(d, d) float64: what an arc adds to the log prior; ``inf`` if it is required, ``-inf`` if forbidden."""
    limits: np.ndarray
    """(g, 3) float64: c, the least residual there can be, and the share at which one counts as zero."""


class _Search(NamedTuple):
    """Families, an order with the parents of each variable, and what is known of one child.

    Of the child that is looked at, k parents are factored, and m variables may become parents.
    """

    matrices: np.ndarray  # to `limits`: as in `GaussianFamilies`
    group: np.ndarray
    sizes: np.ndarray
    arcs: np.ndarray
    limits: np.ndarray
    order: np.ndarray  # (d,) int64
    position: np.ndarray  # (d,) int64, of each variable in it
    parents: np.ndarray  # (d, room) int64, all of them before their child
    count: np.ndarray  # (d,) int64, how many are in use
    scores: np.ndarray  # (d,) of the families, with the terms of their arcs
    factor: np.ndarray  # (room, room) lower Cholesky factor of the parents' matrix
    child: np.ndarray  # (room,) its solution for the child
    inverse: np.ndarray  # (room, room) inverse of the factor
    rest: np.ndarray  # (d,) int64, the m variables
    columns: np.ndarray  # (d, room) the factor's solution for each of them
    left: np.ndarray  # (d,) what the parents leave of their diagonals
    cross: np.ndarray  # (d,) and of their elements with the child


# Compiled functions hand tuples of arrays on element by element, and each of them is compiled into its
# callers: with references they take a fraction of the time to compile.
@structref.register
class _SearchReference(types.StructRef):
    """Reference to `_Search`."""


def _search_of(*elements):
    """Make a structure of the elements of `_Search`."""


structref.define_constructor(_search_of, _SearchReference, _Search._fields)


@numpy_inner
def _search(f, room):
    d = len(f.group)
    return _search_of(
        f.matrices, f.group, f.sizes, f.arcs, f.limits,
        np.arange(d), np.arange(d), np.empty((d, room), np.int64), np.zeros(d, np.int64), np.empty(d),
        np.empty((room, room)), np.empty(room), np.empty((room, room)),
        np.empty(d, np.int64), np.empty((d, room)), np.empty(d), np.empty(d),
    )  # fmt: skip


@numpy_inner
def _copy(source, target):
    """Copy order and parents."""
    for i in range(len(source.order)):
        target.order[i], target.position[i] = source.order[i], source.position[i]
        target.count[i], target.scores[i] = source.count[i], source.scores[i]
        for a in range(source.count[i]):
            target.parents[i, a] = source.parents[i, a]


@numpy_inner
def _better(x, than):
    """Whether a score is greater by more than rounding; nothing is better than -inf.

    Sets score -inf if required parents do, and then whatever is added to them.
    """
    return x > than + _EQUAL * (1.0 + abs(than))


# --- scores of a family: its size, the child's residual, and the log determinant, inf if singular -------


@numpy_inner
def _value(s, i, family):
    """Score without the terms of arcs."""
    g = s.group[i]
    size, residual, log_det = family
    residual = max(residual, s.limits[g, 1])
    if log_det == np.inf or residual <= s.limits[g, 2] * s.matrices[g, i, i]:
        return -np.inf
    return s.sizes[g, 0, size] - s.sizes[g, 1, size] * math.log(residual) - s.limits[g, 0] * log_det


@numpy_inner
def _arc(s, j, i):
    """Give what an arc adds to the log prior: nothing if it is required, because it is always there."""
    x = s.arcs[j, i]
    return 0.0 if x == np.inf else x


@numpy_inner
def _arcs(s, i):
    total = 0.0
    for a in range(s.count[i]):
        total += _arc(s, s.parents[i, a], i)
    return total


@numpy_inner
def _column(s, i, j, k, out):
    """Solve for a variable given the factor of the first k parents; return what they leave of it."""
    matrix, own = s.matrices[s.group[i]], s.parents[i]
    left = matrix[j, j]
    for a in range(k):
        x = matrix[own[a], j]
        for b in range(a):
            x -= s.factor[a, b] * out[b]
        x /= s.factor[a, a]
        out[a] = x
        left -= x * x
    return max(left, s.limits[s.group[i], 1])


@numpy_inner
def _factorize(s, i):
    """Factor the matrix of the parents, and return the family."""
    g, k, log_det = s.group[i], s.count[i], 0.0
    for a in range(k):
        j = s.parents[i, a]
        left = _column(s, i, j, a, s.factor[a])
        if left <= s.limits[g, 2] * s.matrices[g, j, j]:
            return k, 0.0, np.inf
        s.factor[a, a] = math.sqrt(left)
        log_det += math.log(left)
    return k, _column(s, i, i, k, s.child), log_det


# --- more parents ----------------------------------------------------------------------------


@numpy_inner
def _consider(s, i, j, c):
    """Make a variable the c-th of those that may become parents."""
    column, cross = s.columns[c], s.matrices[s.group[i], i, j]
    s.rest[c], s.left[c] = j, _column(s, i, j, s.count[i], column)
    for a in range(s.count[i]):
        cross -= column[a] * s.child[a]
    s.cross[c] = cross


@numpy_inner
def _consider_all(s, i):
    """Consider all variables before a child that may become its parents; return how many."""
    m = np.int64(0)
    for j in s.order[: s.position[i]]:
        if s.arcs[j, i] > -np.inf and _place(s, i, j) < 0:
            _consider(s, i, j, m)
            m += 1
    return m


@numpy_inner
def _place(s, i, j):
    """Return where among the parents a variable is, -1 if it is none."""
    for a in range(s.count[i]):
        if s.parents[i, a] == j:
            return a
    return -1


@numpy_inner
def _with(s, i, c, family):
    """Family with the c-th of the considered variables."""
    g, j = s.group[i], s.rest[c]
    size, residual, log_det = family
    left, cross = max(s.left[c], s.limits[g, 1]), s.cross[c]
    if left <= s.limits[g, 2] * s.matrices[g, j, j]:
        return size + 1, 0.0, np.inf
    return size + 1, residual - cross * cross / left, log_det + math.log(left)


@numpy_inner
def _take(s, i, c, m):
    """Make the c-th of m considered variables a parent, and put the last one into its place."""
    g, k, j, last = s.group[i], s.count[i], s.rest[c], m - 1
    root = math.sqrt(max(s.left[c], s.limits[g, 1]))
    s.parents[i, k], s.count[i] = j, k + 1
    s.factor[k, k], s.child[k] = root, s.cross[c] / root
    for b in range(k):
        s.factor[k, b], s.columns[c, b] = s.columns[c, b], s.columns[last, b]
    s.rest[c], s.left[c], s.cross[c] = s.rest[last], s.left[last], s.cross[last]
    for e in range(last):
        x = s.matrices[g, j, s.rest[e]]
        for b in range(k):
            x -= s.factor[k, b] * s.columns[e, b]
        x /= root
        s.columns[e, k] = x
        s.left[e] -= x * x
        s.cross[e] -= x * s.child[k]


@numpy_inner
def _is_full(s, i):
    """Whether no set of one parent more is possible."""
    return s.sizes[s.group[i], 0, s.count[i] + 1] == -np.inf


@numpy_inner
def _most_wanted(s, i, family, m):
    """Find which of m considered variables raises the score most; -1 if none does."""
    arcs, best, chosen = _arcs(s, i), s.scores[i], -1
    for c in range(m):
        fresh = arcs + s.arcs[s.rest[c], i] + _value(s, i, _with(s, i, c, family))
        if _better(fresh, best):
            best, chosen = fresh, c
    return chosen


@numpy_inner
def _grow(s, i):
    """Add parents from before a variable while its score, which is written, rises."""
    family, m = _factorize(s, i), _consider_all(s, i)
    s.scores[i] = _arcs(s, i) + _value(s, i, family)
    while m > 0 and not _is_full(s, i):
        c = _most_wanted(s, i, family, m)
        if c < 0:
            return
        family = _with(s, i, c, family)
        _take(s, i, c, m)
        s.scores[i] = _arcs(s, i) + _value(s, i, family)
        m -= 1


# --- fewer parents ---------------------------------------------------------------------------


@numpy_inner
def _invert(s, k):
    """Invert the factor of k parents."""
    for a in range(k):
        for b in range(a, k):
            x = 1.0 if a == b else 0.0
            for c in range(a, b):
                x -= s.factor[b, c] * s.inverse[c, a]
            s.inverse[b, a] = x / s.factor[b, b]


@numpy_inner
def _without(s, a, family):
    """Family without the a-th parent."""
    size, residual, log_det = family
    weight, diagonal = 0.0, 0.0
    for b in range(a, size):
        weight += s.inverse[b, a] * s.child[b]
        diagonal += s.inverse[b, a] * s.inverse[b, a]
    return size - 1, residual + weight * weight / diagonal, log_det + math.log(diagonal)


@numpy_inner
def _least_needed(s, i, family, score):
    """Place of the parent without which a factored family scores best, above ``score``; -1 if none."""
    arcs, chosen = _arcs(s, i), -1
    _invert(s, s.count[i])
    for a in range(s.count[i]):
        j = s.parents[i, a]
        if s.arcs[j, i] < np.inf:
            fresh = arcs - s.arcs[j, i] + _value(s, i, _without(s, a, family))
            if _better(fresh, score):
                score, chosen = fresh, a
    return chosen


@numpy_inner
def _remove(s, i, at):
    s.count[i] -= 1
    for a in range(at, s.count[i]):
        s.parents[i, a] = s.parents[i, a + 1]


@numpy_inner
def _shrink(s, i):
    """Leave out parents of a variable while its score, which is written, rises; whether any was."""
    k = s.count[i]
    while True:
        family = _factorize(s, i)
        s.scores[i] = _arcs(s, i) + _value(s, i, family)
        at = _least_needed(s, i, family, s.scores[i])
        if at < 0:
            return s.count[i] < k
        _remove(s, i, at)


# --- parents along an order ------------------------------------------------------------------


@numpy_inner
def _improve(s, i):
    """Grow and shrink the parents of a variable until its score, which is written, rises no more."""
    last = -np.inf
    _grow(s, i)
    while _shrink(s, i) and s.scores[i] > last:
        last = s.scores[i]
        _grow(s, i)


@numpy_inner
def _lose(s, i, j):
    """Look for other parents of ``i`` after ``j`` has come to stand behind it."""
    at = _place(s, i, j)
    if at >= 0:
        _remove(s, i, at)
        _improve(s, i)


@numpy_inner
def _gain(s, i, j):
    """Look for better parents of ``i`` after ``j`` has come to stand before it."""
    if s.arcs[j, i] == -np.inf:
        return
    if _exchange(s, i, j) if _is_full(s, i) else _add(s, i, j):
        _improve(s, i)


@numpy_inner
def _add(s, i, j):
    """Make ``j`` a parent of ``i`` if that is better; whether it is."""
    k, family, c = s.count[i], _factorize(s, i), np.int64(0)
    _consider(s, i, j, c)
    fresh = _arcs(s, i) + s.arcs[j, i] + _value(s, i, _with(s, i, c, family))
    if not _better(fresh, s.scores[i]):
        return False
    s.parents[i, k], s.count[i] = j, k + 1
    return True


@numpy_inner
def _exchange(s, i, j):
    """Put ``j`` into the place of a parent of ``i``, which has as many as it may; whether it is better."""
    k = s.count[i]
    s.parents[i, k], s.count[i] = j, k + 1
    family, at = _factorize(s, i), -1
    if family[2] < np.inf:
        at = _least_needed(s, i, family, s.scores[i])
    _remove(s, i, at if at >= 0 else k)
    return 0 <= at < k


@numpy_inner
def _pass(s, v, step):
    """Let a variable and its neighbour change places; whether there is one, and it may."""
    at = s.position[v]
    to = at + step
    if not 0 <= to < len(s.order):
        return False
    u = s.order[to]
    first, last = (v, u) if step > 0 else (u, v)
    if s.arcs[first, last] == np.inf:
        return False
    s.order[at], s.order[to] = u, v
    s.position[u], s.position[v] = at, to
    _lose(s, last, first)
    _gain(s, first, last)
    return True


# --- two parents at once ---------------------------------------------------------------------


@numpy_inner
def _consider_second(s, i, c, e, last):
    """Consider, as the last, the e-th variable given that the c-th is a parent."""
    first, second = s.rest[c], s.rest[e]
    x = s.matrices[s.group[i], first, second]
    for a in range(s.count[i]):
        x -= s.columns[c, a] * s.columns[e, a]
    x /= max(s.left[c], s.limits[s.group[i], 1])
    s.rest[last] = second
    s.left[last] = s.left[e] - x * x * s.left[c]
    s.cross[last] = s.cross[e] - x * s.cross[c]


@numpy_inner
def _best_pair(s, i, family, m):
    """Find the two of m considered variables that raise the score most together; -1 if none do."""
    arcs, best, pair = _arcs(s, i), s.scores[i], (-1, -1)
    for c in range(m):
        one = _with(s, i, c, family)
        for e in range(c):
            _consider_second(s, i, c, e, m)
            fresh = arcs + s.arcs[s.rest[c], i] + s.arcs[s.rest[e], i]
            fresh += _value(s, i, _with(s, i, m, one))
            if _better(fresh, best):
                best, pair = fresh, (s.rest[c], s.rest[e])
    return pair


@numpy_inner
def _add_pairs(s):
    """Give variables two parents more where that is better; whether it was anywhere."""
    before = s.scores.sum()
    for i in range(len(s.order)):
        k, family = s.count[i], _factorize(s, i)
        m = _consider_all(s, i)
        if family[2] == np.inf or m < 2 or s.sizes[s.group[i], 0, k + 2] == -np.inf:
            continue
        first, second = _best_pair(s, i, family, m)
        if first >= 0:
            s.parents[i, k], s.parents[i, k + 1], s.count[i] = first, second, k + 2
            _improve(s, i)
    return _better(s.scores.sum(), before)


# --- search ----------------------------------------------------------------------------------


@numpy_inner
def _relocate(rng, s, v, begin, kept):
    """Put a variable at the best of all places, any of those equally good."""
    _copy(s, begin)
    _copy(s, kept)
    best, seen = s.scores.sum(), 1
    for step in (1, -1):
        _copy(begin, s)
        while _pass(s, v, step):
            total = s.scores.sum()
            if _better(total, best):
                best, seen = total, 1
                _copy(s, kept)
            elif not _better(best, total):
                seen += 1
                if rng.random() * seen < 1.0:
                    _copy(s, kept)
    _copy(kept, s)


@numpy_inner
def _climb(rng, s, begin, kept):
    """Relocate one variable after the other until nothing improves; return the score."""
    d = len(s.order)
    queue, vain, score = np.arange(d), np.int64(0), s.scores.sum()
    while vain < d:
        for k in range(d):
            other = k + int(rng.random() * (d - k))
            queue[k], queue[other] = queue[other], queue[k]
            _relocate(rng, s, queue[k], begin, kept)
            found = s.scores.sum()
            vain = 0 if _better(found, score) else vain + 1
            score = found
            if vain >= d:
                break
    return score


@numpy_inner
def _disturb(rng, s, moves):
    """Put some variables elsewhere."""
    d = len(s.order)
    for _ in range(moves):
        v, place = int(rng.random() * d), int(rng.random() * d)
        step = 1 if place > s.position[v] else -1
        while s.position[v] != place and _pass(s, v, step):
            pass


@numpy_inner
def _begin(rng, s, required):
    """Begin with a random order and the parents that grow there."""
    d = len(s.order)
    random_order(rng, required, s.order)
    for k in range(d):
        s.position[s.order[k]] = k
    for i in range(d):
        s.count[i] = 0
        for j in range(d):
            if required[j, i]:
                s.parents[i, s.count[i]] = j
                s.count[i] += 1
        _improve(s, i)


@kernel
def _search_orders(rng, f, required, room, climbs):
    """Return the best order of a number of climbs, the parents of each variable, and the score."""
    d = len(f.group)
    s, best, begin, kept = _search(f, room), _search(f, room), _search(f, room), _search(f, room)
    _begin(rng, s, required)
    score = -np.inf
    for climb in range(climbs):
        if climb > 0:
            _disturb(rng, s, 2 + int((1.0 + rng.random()) * d / 8.0))
        found = _climb(rng, s, begin, kept)
        while _add_pairs(s):
            found = _climb(rng, s, begin, kept)
        if climb == 0 or not _better(score, found):
            score = found
            _copy(s, best)
        else:
            _copy(best, s)
    return best.order, best.parents, best.count, score


def search_orders(rng, families, *, climbs):
    """Search from a random order, then from disturbed best ones.

    Parameters
    ----------
    rng : numpy.random.Generator
    families : GaussianFamilies
        Variables get at most 32 parents, unless more are required.
    climbs : int
        Local searches, at least 1.

    Returns
    -------
    graph : (d, d) int8 array
        The best one found; acyclic, 1 at (parent, child).
    order : (d,) int64 array
        A topological order of it.
    score : float
        Of it, without the terms of required arcs and those of the prior that all graphs share; -inf if
        required parents make all graphs impossible.

    Raises
    ------
    ValueError
        If there are no climbs.
    """
    if climbs < 1:
        raise ValueError(f"`climbs` must be at least 1, it is {climbs}")
    d, required = len(families.group), families.arcs == np.inf
    most = max(_MOST, int(required.sum(axis=0).max()))
    sizes, room = families.sizes.copy(), min(d, most + 1)
    sizes[:, 0, most + 1 :] = -np.inf
    families = families._replace(sizes=sizes)
    order, parents, count, score = _search_orders(rng, families, required, room, climbs)
    graph = np.zeros((d, d), np.int8)
    for child in range(d):
        graph[parents[child, : count[child]], child] = 1
    return graph, order, score
