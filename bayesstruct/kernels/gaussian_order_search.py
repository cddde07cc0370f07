r"""Search over orders for the best Gaussian network, whatever the size of its parent sets.

Given an order, the parents of a variable are grown among all variables before it, one at a time while the
score rises, and shrunk again. A variable is put at the best of all places; on the way it passes one
neighbour after the other, and only the parents of the two are looked at again. What is good enough
for neighbours need not be known for lists of candidates: parents whose effects nearly cancel, which no list by
single effects has, are found once the order is right. Then some variables are put elsewhere at random, and
the search goes on from there if that is no loss.

References
----------
Andrews, B., Ramsey, J., Sanchez-Romero, R., Camchong, J. and Kummerfeld, E. (2023). Fast scalable and accurate
discovery of DAGs using the best order score search and grow-shrink trees. *NeurIPS* 36. -- Wienöbst, M.,
Henckel, L. and Weichwald, S. (2025). Embracing discrete search: a reasonable approach to causal structure
learning. arXiv:2510.04970.
"""

import math

from typing import NamedTuple

import numba
import numpy as np

from bayesstruct.kernels.order_search import random_order

__all__ = ["GaussianFamilies", "search_orders"]

_INNER = {
    "cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True,
    "error_model": "numpy",
}  # fmt: skip
_EQUAL = 1e-9  # relative difference of scores that rounding may make
_MOST = 32  # parents of a variable


class GaussianFamilies(NamedTuple):
    r"""Local scores :math:`a_p - b_p \log v_\pi - c \log |R_{\pi\pi}|`, and the log prior of parent sets."""

    matrices: np.ndarray
    """(g, d, d) float64: R of each set of rows (:mod:`bayesstruct.kernels.bge`)."""
    group: np.ndarray
    """(d,) int64: which of them is that of a child."""
    sizes: np.ndarray
    """(g, 2, d) float64: :math:`a_p`, with the log prior of the size p, and :math:`b_p`."""
    arcs: np.ndarray
    """(d, d) float64: what an arc adds to the log prior; ``inf`` if it is required."""
    limits: np.ndarray
    """(3,) float64: c, the least residual there can be, and the share at which one counts as zero."""


class _Work(NamedTuple):
    factor: np.ndarray  # (k + 1, k + 1) lower Cholesky factor of the parents' matrix
    child: np.ndarray  # (k + 1,) the factor's solution for the child
    columns: np.ndarray  # (d, k + 1) that for each variable
    inverse: np.ndarray  # (k + 1, k + 1) inverse of the factor


@numba.njit(**_INNER)
def _work(d, most):
    return _Work(
        np.empty((most, most)), np.empty(most), np.empty((d, most)), np.empty((most, most))
    )


@numba.njit(**_INNER)
def _value(f, i, size, residual, log_det):
    """Score of a family without the terms of its arcs."""
    g, limits = f.group[i], f.limits
    residual = max(residual, limits[1])
    if residual <= limits[2] * f.matrices[g, i, i]:
        return -np.inf
    return f.sizes[g, 0, size] - f.sizes[g, 1, size] * math.log(residual) - limits[0] * log_det


@numba.njit(**_INNER)
def _arc(f, j, i):
    """Give what an arc adds to the log prior: nothing if it is required, because it is always there."""
    x = f.arcs[j, i]
    return 0.0 if x == np.inf else x


@numba.njit(**_INNER)
def _column(f, i, j, own, k, factor, out):
    """Solve for a variable, from entry 0; return what is left of its diagonal."""
    matrix = f.matrices[f.group[i]]
    left = matrix[j, j]
    for a in range(k):
        x = matrix[own[a], j]
        for b in range(a):
            x -= factor[a, b] * out[b]
        x /= factor[a, a]
        out[a] = x
        left -= x * x
    return max(left, f.limits[1])


@numba.njit(**_INNER)
def _factorize(f, i, own, k, w):
    """Factor the parents' matrix; return the child's residual and the log determinant, inf if singular."""
    matrix = f.matrices[f.group[i]]
    log_det = 0.0
    for a in range(k):
        left = _column(f, i, own[a], own, a, w.factor, w.factor[a])
        if left <= f.limits[2] * matrix[own[a], own[a]]:
            return 0.0, np.inf
        w.factor[a, a] = math.sqrt(left)
        log_det += math.log(left)
    return _column(f, i, i, own, k, w.factor, w.child), log_det


@numba.njit(**_INNER)
def _with(f, i, j, k, residual, log_det, left, column, w):
    """Score of a family, without arcs, with one more parent, whose column is solved for."""
    matrix = f.matrices[f.group[i]]
    if left <= f.limits[2] * matrix[j, j]:
        return -np.inf
    cross = matrix[i, j]
    for a in range(k):
        cross -= column[a] * w.child[a]
    return _value(f, i, k + 1, residual - cross * cross / left, log_det + math.log(left))


@numba.njit(**_INNER)
def _score(f, i, own, k, w):
    residual, log_det = _factorize(f, i, own, k, w)
    if log_det == np.inf:
        return -np.inf
    total = _value(f, i, k, residual, log_det)
    for a in range(k):
        total += _arc(f, own[a], i)
    return total


@numba.njit(**_INNER)
def _grow(f, i, own, k, score, position, w):
    """Add parents from before the child while the score rises; return their number and the score."""
    d = len(position)
    most = min(w.factor.shape[0], d) - 1
    residual, log_det = _factorize(f, i, own, k, w)
    prior = score - _value(f, i, k, residual, log_det)
    known = 0  # entries of the columns that are solved for
    left = np.empty(d)
    matrix = f.matrices[f.group[i]]
    while k < most:
        best, chosen = score, -1
        for j in range(d):
            if position[j] >= position[i] or f.arcs[j, i] == -np.inf:
                continue
            column = w.columns[j]
            if known == 0:
                left[j] = _column(f, i, j, own, k, w.factor, column)
            else:
                x = matrix[own[k - 1], j]
                for b in range(k - 1):
                    x -= w.factor[k - 1, b] * column[b]
                column[k - 1] = x / w.factor[k - 1, k - 1]
                left[j] -= column[k - 1] * column[k - 1]
            fresh = prior + f.arcs[j, i] + _with(f, i, j, k, residual, log_det, left[j], column, w)
            if fresh > best + _EQUAL * abs(best) and not _is_in(own, k, j):
                best, chosen = fresh, j
        known = k
        if chosen < 0:
            break
        own[k], score, prior, k = chosen, best, prior + f.arcs[chosen, i], k + 1
        known = k
        residual, log_det = _factorize(f, i, own, k, w)
    return k, score


@numba.njit(**_INNER)
def _is_in(own, k, j):
    for a in range(k):
        if own[a] == j:
            return True
    return False


@numba.njit(**_INNER)
def _shrink(f, i, own, k, score, w):
    """Leave out parents while the score rises; return their number and the score."""
    while k > 0:
        residual, log_det = _factorize(f, i, own, k, w)
        inverse = w.inverse
        for a in range(k):
            for b in range(a, k):
                x = 1.0 if a == b else 0.0
                for c in range(a, b):
                    x -= w.factor[b, c] * inverse[c, a]
                inverse[b, a] = x / w.factor[b, b]
        prior = score - _value(f, i, k, residual, log_det)
        best, chosen = score, -1
        for a in range(k):
            if f.arcs[own[a], i] == np.inf:
                continue
            weight, diagonal = 0.0, 0.0
            for b in range(a, k):
                weight += inverse[b, a] * w.child[b]
                diagonal += inverse[b, a] * inverse[b, a]
            rest = residual + weight * weight / diagonal
            fresh = prior - _arc(f, own[a], i)
            fresh += _value(f, i, k - 1, rest, log_det + math.log(diagonal))
            if fresh > best + _EQUAL * abs(best):
                best, chosen = fresh, a
        if chosen < 0:
            break
        k, score = k - 1, best
        for a in range(chosen, k):
            own[a] = own[a + 1]
    return k, score


@numba.njit(**_INNER)
def _improve(f, i, parents, count, scores, position, w):
    """Grow and shrink the parents of a variable; its score has to be up to date."""
    k, score = _grow(f, i, parents[i], count[i], scores[i], position, w)
    count[i], scores[i] = _shrink(f, i, parents[i], k, score, w)


@numba.njit(**_INNER)
def _lose(f, i, j, parents, count, scores, position, w):
    """Look for other parents of ``i`` after ``j`` has come to stand behind it."""
    own, k = parents[i], count[i]
    if not _is_in(own, k, j):
        return
    at = 0
    while own[at] != j:
        at += 1
    for a in range(at, k - 1):
        own[a] = own[a + 1]
    count[i] = k - 1
    scores[i] = _score(f, i, own, k - 1, w)
    _improve(f, i, parents, count, scores, position, w)


@numba.njit(**_INNER)
def _gain(f, i, j, parents, count, scores, position, w):
    """Look for better parents of ``i`` after ``j`` has come to stand before it."""
    own, k = parents[i], count[i]
    if f.arcs[j, i] == -np.inf or k >= min(w.factor.shape[0], len(position)) - 1:
        return
    residual, log_det = _factorize(f, i, own, k, w)
    old = _value(f, i, k, residual, log_det)
    left = _column(f, i, j, own, k, w.factor, w.columns[j])
    fresh = f.arcs[j, i] + _with(f, i, j, k, residual, log_det, left, w.columns[j], w)
    if fresh > old + _EQUAL * abs(scores[i]):
        own[k], count[i] = j, k + 1
        scores[i] += fresh - old
        _improve(f, i, parents, count, scores, position, w)


@numba.njit(**_INNER)
def _keep(order, parents, count, scores, kept):
    order_to, parents_to, count_to, scores_to = kept
    for i in range(len(order)):
        order_to[i], count_to[i], scores_to[i] = order[i], count[i], scores[i]
        for a in range(count[i]):
            parents_to[i, a] = parents[i, a]


@numba.njit(**_INNER)
def _restore(kept, order, position, parents, count, scores):
    _keep(kept[0], kept[1], kept[2], kept[3], (order, parents, count, scores))
    for k in range(len(order)):
        position[order[k]] = k


@numba.njit(**_INNER)
def _walk(f, v, step, state, best, kept, w):
    """Move a variable past its neighbours to one end; keep the best state on the way, and its score."""
    order, position, parents, count, scores = state
    at = position[v] + step
    while 0 <= at < len(order):
        u = order[at]
        first, last = (v, u) if step > 0 else (u, v)
        if f.arcs[first, last] == np.inf:
            break
        order[at - step], order[at] = u, v
        position[u], position[v] = at - step, at
        _lose(f, last, first, parents, count, scores, position, w)
        _gain(f, first, last, parents, count, scores, position, w)
        total = scores.sum()
        if total > best + _EQUAL * abs(best):
            best = total
            _keep(order, parents, count, scores, kept)
        at += step
    return best


@numba.njit(**_INNER)
def _climb(rng, f, state, kept, begin, w):
    """Put one variable after the other at its best place until nothing improves; return the score."""
    order, position, parents, count, scores = state
    d = len(order)
    queue, vain, best = np.arange(d), 0, scores.sum()
    while vain < d:
        for k in range(d):
            other = k + int(rng.random() * (d - k))
            queue[k], queue[other] = queue[other], queue[k]
            _keep(order, parents, count, scores, begin)
            _keep(order, parents, count, scores, kept)
            found = _walk(f, queue[k], 1, state, best, kept, w)
            _restore(begin, order, position, parents, count, scores)
            found = _walk(f, queue[k], -1, state, found, kept, w)
            _restore(kept, order, position, parents, count, scores)
            vain = 0 if found > best else vain + 1
            best = found
            if vain >= d:
                break
    return best


@numba.njit(**_INNER)
def _disturb(rng, f, state, moves, w):
    """Put some variables elsewhere, one place after the other."""
    order, position, parents, count, scores = state
    d = len(order)
    for _ in range(moves):
        v, place = int(rng.random() * d), int(rng.random() * d)
        step = 1 if place > position[v] else -1
        while position[v] != place:
            at = position[v]
            u = order[at + step]
            first, last = (v, u) if step > 0 else (u, v)
            if f.arcs[first, last] == np.inf:
                break
            order[at], order[at + step] = u, v
            position[u], position[v] = at, at + step
            _lose(f, last, first, parents, count, scores, position, w)
            _gain(f, first, last, parents, count, scores, position, w)


@numba.njit(**_INNER)
def _begin(rng, f, required, state, w):
    """Begin with a random order and the parents that grow there."""
    order, position, parents, count, scores = state
    random_order(rng, required, order)
    for k in range(len(order)):
        position[order[k]] = k
    for i in range(len(order)):
        count[i] = 0
        for j in range(len(order)):
            if required[j, i]:
                parents[i, count[i]] = j
                count[i] += 1
        scores[i] = _score(f, i, parents[i], count[i], w)
        _improve(f, i, parents, count, scores, position, w)


@numba.njit(cache=True, nogil=True)
def search_orders(rng, f, climbs, adjacency):
    """Search from a random order, then from disturbed best ones.

    Parameters
    ----------
    rng : numpy.random.Generator
    f : GaussianFamilies
    climbs : int
        Local searches, at least 1.
    adjacency : (d, d) int8 array
        Written: the best graph, 1 at (parent, child).

    Returns
    -------
    float
        Its score, without the terms of required arcs and those of the prior that all graphs share.
    """
    d = len(adjacency)
    most = min(d, _MOST + 1)
    required = f.arcs == np.inf
    w = _work(d, most)
    state = (
        np.empty(d, np.int64), np.empty(d, np.int64), np.empty((d, most), np.int64),
        np.zeros(d, np.int64), np.empty(d),
    )  # fmt: skip
    kept, begin, here = _copies(d, most), _copies(d, most), _copies(d, most)
    order, position, parents, count, scores = state
    _begin(rng, f, required, state, w)
    best = _climb(rng, f, state, kept, begin, w)
    _keep(order, parents, count, scores, here)
    for _ in range(climbs - 1):
        _disturb(rng, f, state, 2 + int((1.0 + rng.random()) * d / 8.0), w)
        score = _climb(rng, f, state, kept, begin, w)
        if score >= best - _EQUAL * abs(best):
            best = score
            _keep(order, parents, count, scores, here)
        else:
            _restore(here, order, position, parents, count, scores)
    adjacency[:] = 0
    for i in range(d):
        for a in range(here[2][i]):
            adjacency[here[1][i, a], i] = 1
    return best


@numba.njit(**_INNER)
def _copies(d, most):
    return (
        np.empty(d, np.int64), np.empty((d, most), np.int64), np.zeros(d, np.int64), np.empty(d),
    )  # fmt: skip
