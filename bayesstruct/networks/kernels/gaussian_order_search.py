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

import numpy as np

from bayesstruct.core.jit import kernel, numpy_inner
from bayesstruct.networks.kernels.gaussian_parents import (
    arc_terms,
    consider_all,
    copy_search,
    factorize,
    family_value,
    gain_parent,
    improve,
    is_better,
    lose_parent,
    new_search,
    with_parent,
)
from bayesstruct.networks.kernels.order_search import random_order

__all__ = ["search_orders"]

_MOST = 32  # parents of a variable, if no more are required


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
    lose_parent(s, last, first)
    gain_parent(s, first, last)
    return True


# --- two parents at once ---------------------------------------------------------------------


@numpy_inner
def _consider_second(s, i, c, e, last):
    """Consider, as the last, the e-th variable given that the c-th is a parent."""
    first, second = s.rest[c], s.rest[e]
    x = s.matrices[s.group[i], first, second]
    for a in range(s.used[i]):
        x -= s.columns[c, a] * s.columns[e, a]
    x /= max(s.left[c], s.limits[s.group[i], 1])
    s.rest[last] = second
    s.left[last] = s.left[e] - x * x * s.left[c]
    s.cross[last] = s.cross[e] - x * s.cross[c]


@numpy_inner
def _best_pair(s, i, family, m):
    """Find the two of m considered variables that raise the score most together; -1 if none do."""
    arcs, best, pair = arc_terms(s, i), s.scores[i], (-1, -1)
    for c in range(m):
        one = with_parent(s, i, c, family)
        for e in range(c):
            _consider_second(s, i, c, e, m)
            fresh = arcs + s.arcs[s.rest[c], i] + s.arcs[s.rest[e], i]
            fresh += family_value(s, i, with_parent(s, i, m, one))
            if is_better(fresh, best):
                best, pair = fresh, (s.rest[c], s.rest[e])
    return pair


@numpy_inner
def _add_pairs(s):
    """Give variables two parents more where that is better; whether it was anywhere."""
    before = s.scores.sum()
    for i in range(len(s.order)):
        k, family = s.used[i], factorize(s, i)
        m = consider_all(s, i)
        if family[2] == np.inf or m < 2 or s.sizes[s.group[i], 0, k + 2] == -np.inf:
            continue
        first, second = _best_pair(s, i, family, m)
        if first >= 0:
            s.parents[i, k], s.parents[i, k + 1], s.used[i] = first, second, k + 2
            improve(s, i)
    return is_better(s.scores.sum(), before)


# --- search ----------------------------------------------------------------------------------


@numpy_inner
def _relocate(rng, s, v, begin, kept):
    """Put a variable at the best of all places, any of those equally good."""
    copy_search(s, begin)
    copy_search(s, kept)
    best, seen = s.scores.sum(), 1
    for step in (1, -1):
        copy_search(begin, s)
        while _pass(s, v, step):
            total = s.scores.sum()
            if is_better(total, best):
                best, seen = total, 1
                copy_search(s, kept)
            elif not is_better(best, total):
                seen += 1
                if rng.random() * seen < 1.0:
                    copy_search(s, kept)
    copy_search(kept, s)


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
            vain = 0 if is_better(found, score) else vain + 1
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
        s.used[i] = 0
        for j in range(d):
            if required[j, i]:
                s.parents[i, s.used[i]] = j
                s.used[i] += 1
        improve(s, i)


@kernel
def _search_orders(rng, f, required, width, climbs):
    """Return the best order of a number of climbs, the parents of each variable, and the score."""
    d = len(f.group)
    s, best, begin, kept = (
        new_search(f, width),
        new_search(f, width),
        new_search(f, width),
        new_search(f, width),
    )
    _begin(rng, s, required)
    score = -np.inf
    for climb in range(climbs):
        if climb > 0:
            _disturb(rng, s, 2 + int((1.0 + rng.random()) * d / 8.0))
        found = _climb(rng, s, begin, kept)
        while _add_pairs(s):
            found = _climb(rng, s, begin, kept)
        if climb == 0 or not is_better(score, found):
            score = found
            copy_search(s, best)
        else:
            copy_search(best, s)
    return best.order, best.parents, best.used, score


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
    sizes, width = families.sizes.copy(), min(d, most + 1)
    sizes[:, 0, most + 1 :] = -np.inf
    families = families._replace(sizes=sizes)
    order, parents, count, score = _search_orders(rng, families, required, width, climbs)
    graph = np.zeros((d, d), np.int8)
    for child in range(d):
        graph[parents[child, : count[child]], child] = 1
    return graph, order, score
