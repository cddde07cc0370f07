r"""Parents of a variable in a Gaussian network among the variables before it in an order.

They are grown among all variables before the child, one at a time while the score rises, and shrunk again. The
factor of their matrix follows each change, so that the score of one parent more or less takes few operations.
"""

import math

from typing import NamedTuple

import numpy as np

from numba.core import types
from numba.experimental import structref

from bayesstruct.core.jit import numpy_inner

__all__ = [
    "GaussianFamilies",
    "arc_terms",
    "consider_all",
    "copy_search",
    "factorize",
    "family_value",
    "gain_parent",
    "improve",
    "is_better",
    "lose_parent",
    "new_search",
    "with_parent",
]

_EQUAL = 1e-9  # difference of scores, and relative one, that rounding may make


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
    """(d, d) float64: the change of the log prior by an arc; ``inf`` if it is required, ``-inf`` if forbidden."""
    limits: np.ndarray
    """(g, 3) float64: c, the least residual there can be, and the share at which one counts as zero."""


class _Search(NamedTuple):
    """Families, an order with the parents of each variable, and the factors of one child.

    Of the child that is looked at, k parents are factored, and m variables may become parents.
    """

    matrices: np.ndarray  # to `limits`: as in `GaussianFamilies`
    group: np.ndarray
    sizes: np.ndarray
    arcs: np.ndarray
    limits: np.ndarray
    order: np.ndarray  # (d,) int64
    position: np.ndarray  # (d,) int64, of each variable in it
    parents: np.ndarray  # (d, width) int64, all of them before their child
    used: np.ndarray  # (d,) int64, how many are in use
    scores: np.ndarray  # (d,) of the families, with the terms of their arcs
    factor: np.ndarray  # (width, width) lower Cholesky factor of the parents' matrix
    child: np.ndarray  # (width,) its solution for the child
    inverse: np.ndarray  # (width, width) inverse of the factor
    rest: np.ndarray  # (d,) int64, the m variables
    columns: np.ndarray  # (d, width) the factor's solution for each of them
    left: np.ndarray  # (d,) their diagonals less the parts that the parents explain
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
def new_search(f, width):
    """Make a search over the order 0, 1, ..., in which no variable has parents; at most `width` of them."""
    d = len(f.group)
    return _search_of(
        f.matrices,
        f.group,
        f.sizes,
        f.arcs,
        f.limits,
        np.arange(d),
        np.arange(d),
        np.empty((d, width), np.int64),
        np.zeros(d, np.int64),
        np.empty(d),
        np.empty((width, width)),
        np.empty(width),
        np.empty((width, width)),
        np.empty(d, np.int64),
        np.empty((d, width)),
        np.empty(d),
        np.empty(d),
    )


@numpy_inner
def copy_search(source, target):
    """Copy order and parents."""
    for i in range(len(source.order)):
        target.order[i], target.position[i] = source.order[i], source.position[i]
        target.used[i], target.scores[i] = source.used[i], source.scores[i]
        for a in range(source.used[i]):
            target.parents[i, a] = source.parents[i, a]


@numpy_inner
def is_better(x, than):
    """Whether a score is greater by more than rounding; nothing is better than -inf.

    Sets score -inf if required parents do, and then whatever is added to them.
    """
    return x > than + _EQUAL * (1.0 + abs(than))


# --- scores of a family: its size, the child's residual, and the log determinant, inf if singular -------


@numpy_inner
def family_value(s, i, family):
    """Score without the terms of arcs."""
    g = s.group[i]
    size, residual, log_det = family
    residual = max(residual, s.limits[g, 1])
    if log_det == np.inf or residual <= s.limits[g, 2] * s.matrices[g, i, i]:
        return -np.inf
    return s.sizes[g, 0, size] - s.sizes[g, 1, size] * math.log(residual) - s.limits[g, 0] * log_det


@numpy_inner
def _arc(s, j, i):
    """Return the change of the log prior by an arc: none if it is required, because it is always there."""
    x = s.arcs[j, i]
    return 0.0 if x == np.inf else x


@numpy_inner
def arc_terms(s, i):
    """Sum of the terms of the arcs from the parents of a variable."""
    total = 0.0
    for a in range(s.used[i]):
        total += _arc(s, s.parents[i, a], i)
    return total


@numpy_inner
def _column(s, i, j, k, out):
    """Solve for a variable given the factor of the first k parents; return its residual."""
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
def factorize(s, i):
    """Factor the matrix of the parents, and return the family."""
    g, k, log_det = s.group[i], s.used[i], 0.0
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
    s.rest[c], s.left[c] = j, _column(s, i, j, s.used[i], column)
    for a in range(s.used[i]):
        cross -= column[a] * s.child[a]
    s.cross[c] = cross


@numpy_inner
def consider_all(s, i):
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
    for a in range(s.used[i]):
        if s.parents[i, a] == j:
            return a
    return -1


@numpy_inner
def with_parent(s, i, c, family):
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
    g, k, j, last = s.group[i], s.used[i], s.rest[c], m - 1
    root = math.sqrt(max(s.left[c], s.limits[g, 1]))
    s.parents[i, k], s.used[i] = j, k + 1
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
    return s.sizes[s.group[i], 0, s.used[i] + 1] == -np.inf


@numpy_inner
def _most_wanted(s, i, family, m):
    """Find which of m considered variables raises the score most; -1 if none does."""
    arcs, best, chosen = arc_terms(s, i), s.scores[i], -1
    for c in range(m):
        fresh = arcs + s.arcs[s.rest[c], i] + family_value(s, i, with_parent(s, i, c, family))
        if is_better(fresh, best):
            best, chosen = fresh, c
    return chosen


@numpy_inner
def _grow(s, i):
    """Add parents from before a variable while its score, which is written, rises."""
    family, m = factorize(s, i), consider_all(s, i)
    s.scores[i] = arc_terms(s, i) + family_value(s, i, family)
    while m > 0 and not _is_full(s, i):
        c = _most_wanted(s, i, family, m)
        if c < 0:
            return
        family = with_parent(s, i, c, family)
        _take(s, i, c, m)
        s.scores[i] = arc_terms(s, i) + family_value(s, i, family)
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
    arcs, chosen = arc_terms(s, i), -1
    _invert(s, s.used[i])
    for a in range(s.used[i]):
        j = s.parents[i, a]
        if s.arcs[j, i] < np.inf:
            fresh = arcs - s.arcs[j, i] + family_value(s, i, _without(s, a, family))
            if is_better(fresh, score):
                score, chosen = fresh, a
    return chosen


@numpy_inner
def _remove(s, i, at):
    s.used[i] -= 1
    for a in range(at, s.used[i]):
        s.parents[i, a] = s.parents[i, a + 1]


@numpy_inner
def _shrink(s, i):
    """Leave out parents of a variable while its score, which is written, rises; whether any was."""
    k = s.used[i]
    while True:
        family = factorize(s, i)
        s.scores[i] = arc_terms(s, i) + family_value(s, i, family)
        at = _least_needed(s, i, family, s.scores[i])
        if at < 0:
            return s.used[i] < k
        _remove(s, i, at)


# --- parents along an order ------------------------------------------------------------------


@numpy_inner
def improve(s, i):
    """Grow and shrink the parents of a variable until its score, which is written, rises no more."""
    last = -np.inf
    _grow(s, i)
    while _shrink(s, i) and s.scores[i] > last:
        last = s.scores[i]
        _grow(s, i)


@numpy_inner
def lose_parent(s, i, j):
    """Look for other parents of ``i`` after ``j`` has come to stand behind it."""
    at = _place(s, i, j)
    if at >= 0:
        _remove(s, i, at)
        improve(s, i)


@numpy_inner
def gain_parent(s, i, j):
    """Look for better parents of ``i`` after ``j`` has come to stand before it."""
    if s.arcs[j, i] == -np.inf:
        return
    if _exchange(s, i, j) if _is_full(s, i) else _add(s, i, j):
        improve(s, i)


@numpy_inner
def _add(s, i, j):
    """Make ``j`` a parent of ``i`` if that is better; whether it is."""
    k, family, c = s.used[i], factorize(s, i), np.int64(0)
    _consider(s, i, j, c)
    fresh = arc_terms(s, i) + s.arcs[j, i] + family_value(s, i, with_parent(s, i, c, family))
    if not is_better(fresh, s.scores[i]):
        return False
    s.parents[i, k], s.used[i] = j, k + 1
    return True


@numpy_inner
def _exchange(s, i, j):
    """Put ``j`` into the place of a parent of ``i``, which has as many as it may; whether it is better."""
    k = s.used[i]
    s.parents[i, k], s.used[i] = j, k + 1
    family, at = factorize(s, i), -1
    if family[2] < np.inf:
        at = _least_needed(s, i, family, s.scores[i])
    _remove(s, i, at if at >= 0 else k)
    return 0 <= at < k
