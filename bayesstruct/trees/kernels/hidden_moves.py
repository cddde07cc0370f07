r"""Moves among trees of columns and hidden nodes, with their correlations and scales.

A branch is cut off, and joined to the rest again, at a node or in the middle of an edge, where a new hidden node
splits the correlation :math:`\rho` of the edge into :math:`\pm|\rho|^\tau` and :math:`\pm|\rho|^{1 - \tau}` (reversible jumps, with the
Jacobian :math:`-\log|\rho|`). A hidden node that is left with two neighbours becomes an edge. Where a branch goes is proposed by an approximation of
the likelihood of all places, for which messages along the tree suffice
(:mod:`bayesstruct.trees.kernels.hidden_messages`); so is the correlation of the new edge. Accepted or not by the ratio of Metropolis, Hastings and
Green, the posterior is exact.

A hidden node may change its sign together with its edges. A tree stands here for all its signs: its density is :math:`2^h` times that of one choice.

Green, P. J. (1995). Reversible jump Markov chain Monte Carlo computation and Bayesian model determination. *Biometrika* 82, 711-732.
"""

from math import erf, log, pi, sqrt
from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import kernel, numpy_inner
from bayesstruct.trees.kernels.hidden_messages import (
    Tree,
    combine,
    message_down,
    message_up,
    new_messages,
    pair_log_likelihood,
    walk,
)
from bayesstruct.trees.kernels.hidden_trees import cut, join

__all__ = ["Prior", "draw_tree", "log_density_of_tree"]

_COARSE, _FINE = 10, 40  # cells of the place on an edge, to choose the edge and on it
_ANYWHERE = 0.05  # probability of a place without a look at the table
_EDGE = 1.0 - 1e-10  # correlations beyond are 1 but for rounding


class Prior(NamedTuple):
    """What is believed before the table is seen.

    Attributes
    ----------
    log_tree : (most + 1,) ndarray
        Log probability of each single tree with 0, 1, ..., most hidden nodes.
    shape : float
        A correlation has a density in proportion to (1 - rho^2) ** (shape - 1).
    log_constant : float
        Of that density.
    log_scale : float
        Standard deviation of the logarithms of the scales.
    """

    log_tree: np.ndarray
    shape: float
    log_constant: float
    log_scale: float


class Place(NamedTuple):
    """Where a branch is joined to a tree.

    Attributes
    ----------
    node : int
    on_edge : bool
        In the middle of the edge from the node to its parent, not at the node.
    tau : float
        On an edge, how much of the logarithm of its correlation is on the side of the node.
    rho : float
        Correlation along the new edge.
    """

    node: int
    on_edge: bool
    tau: float
    rho: float


class Target(NamedTuple):
    """What a place in a tree and a branch say about each other.

    Attributes
    ----------
    limit : float
        Largest correlation of the two predictions.
    squares, product : float
        Sums over the rows.
    n : float
    """

    limit: float
    squares: float
    product: float
    n: float


@numpy_inner
def _log_prior(rho, prior):
    return prior.log_constant + (prior.shape - 1.0) * np.log(1.0 - rho * rho)


@numpy_inner
def _at(rho, at, prior):
    """Log density of the correlation along a new edge, and of the rows given it."""
    r = at.limit * rho
    if not abs(rho) < _EDGE or abs(r) >= _EDGE:
        return -np.inf
    return _log_prior(rho, prior) + pair_log_likelihood(r, at.n, at.squares, at.product)


@numpy_inner
def _mode(at):
    """Correlation r of the greatest likelihood within its limit, nearly."""
    a, s, n = at.squares, at.product, at.n
    top = min(at.limit, 1.0) * (1.0 - 1e-6)
    if n <= 0.0:
        return 0.0
    r = min(max(2.0 * s / max(a, 1e-300), -top), top)
    for _ in range(4):
        value = n * r * (1.0 - r * r) - r * a + s * (1.0 + r * r)
        slope = n * (1.0 - 3.0 * r * r) - a + 2.0 * s * r
        if slope >= -1e-12 * n:
            break
        r = min(max(r - value / slope, -top), top)
    return r


@numpy_inner
def _spread(r, n):
    """Return the standard deviation of the inverse hyperbolic tangent of r, for a proposal."""
    return 1.2 / np.sqrt(n * (1.0 + r * r) + 2.0)


@numpy_inner
def _log_proposed(rho, at):
    """Log density of the proposal of the correlation along a new edge."""
    mode = _mode(at)
    sd, top = _spread(mode, at.n), np.arctanh(at.limit * _EDGE)
    if top < sd:
        return -log(2.0)
    centre, r = np.arctanh(mode), at.limit * rho
    mass = 0.5 * (erf((top - centre) / (sd * sqrt(2.0))) + erf((top + centre) / (sd * sqrt(2.0))))
    z = (np.arctanh(r) - centre) / sd
    normal = np.exp(-0.5 * z * z) / (sd * sqrt(2.0 * pi) * mass) * at.limit / (1.0 - r * r)
    return np.log(0.9 * normal + 0.05)


@numpy_inner
def _propose(rng, at):
    """Draw the correlation along a new edge."""
    mode = _mode(at)
    sd, top = _spread(mode, at.n), np.arctanh(at.limit * _EDGE)
    if top < sd or rng.random() < 0.1:
        return 2.0 * rng.random() - 1.0
    while True:
        z = np.arctanh(mode) + sd * rng.standard_normal()
        if abs(z) < top:
            return np.tanh(z) / at.limit


@numpy_inner
def _worth(at, prior):
    """Log integral over the correlation along a new edge, nearly; for proposals."""
    r = _mode(at)
    width = min(np.arctanh(at.limit * (1.0 - 1e-6)), 2.0 * _spread(r, at.n))
    rho = r / at.limit
    width = min(width * (1.0 - r * r) / at.limit, 1.0)
    own = pair_log_likelihood(r, at.n, at.squares, at.product)
    return own + _log_prior(rho * 0.999, prior) + np.log(2.0 * width)


@numpy_inner
def _target(q, own, product, q_branch, s_branch, n):
    limit = min(max(np.sqrt(q * q_branch), 1e-150), 1.0)
    return Target(limit, own + s_branch, product, n)


@numpy_inner
def _node_target(tree, messages, node, branch, w, sw):
    """Take a node as the place of a branch (coefficients, their products, q, sum of squares)."""
    _, sg, q_branch, s_branch = branch
    q = combine(tree, messages, node, -1, w, sw)
    own = product = 0.0
    for j in range(len(w)):
        own += w[j] * sw[j]
        product += w[j] * sg[j]
    return _target(q, own, product, q_branch, s_branch, tree.n)


@numpy_inner
def _edge_sums(messages, node, branch):
    """Return sums of products of the predictions of the two ends of an edge and of the branch."""
    g, sg, _, _ = branch
    aa = ab = bb = ag = bg = 0.0
    a, sa = messages.up[node], messages.up_s[node]
    b, sb = messages.down[node], messages.down_s[node]
    for j in range(len(g)):
        aa += a[j] * sa[j]
        ab += a[j] * sb[j]
        bb += b[j] * sb[j]
        ag += a[j] * sg[j]
        bg += b[j] * sg[j]
    return aa, ab, bb, ag, bg


@numpy_inner
def _split(rho, tau):
    """Correlations of the two parts of an edge."""
    size = max(abs(rho), 1e-300)
    return size**tau, np.sign(rho) * size ** (1.0 - tau)


@numpy_inner
def _edge_target(tree, messages, node, tau, branch, sums):
    """Take a new node on the edge above a node as the place of a branch."""
    aa, ab, bb, ag, bg = sums
    first, second = _split(tree.rho[node, messages.above[node]], tau)
    t, u = first * np.sqrt(messages.up_q[node]), second * np.sqrt(messages.down_q[node])
    rest, rest_u = max(1.0 - t * t, 1e-12), max(1.0 - u * u, 1e-12)
    information = t * t / rest + u * u / rest_u
    unit = 1.0 / np.sqrt(max(information * (1.0 + information), 1e-300))
    k, m = t / rest * unit, u / rest_u * unit
    own = k * k * aa + 2.0 * k * m * ab + m * m * bb
    q = information / (1.0 + information)
    return _target(q, own, k * ag + m * bg, branch[2], branch[3], tree.n)


@numpy_inner
def _log_split(rho, tau, prior):
    """Log density of the parts of an edge over that of the edge, in the units of the edge and tau; of a hidden node with two signs."""
    first, second = _split(rho, tau)
    if not max(abs(first), abs(second)) < _EDGE:
        return -np.inf
    jacobian = np.log(max(-np.log(abs(rho)), 1e-300))
    own = _log_prior(first, prior) + _log_prior(second, prior) - _log_prior(rho, prior)
    return own + jacobian + log(2.0)


@numpy_inner
def _normalise(weights, count):
    """Turn log weights into probabilities, a part of which is the same everywhere."""
    top = -np.inf
    for k in range(count):
        top = max(top, weights[k])
    total = 0.0
    for k in range(count):
        weights[k] = np.exp(weights[k] - top)
        total += weights[k]
    for k in range(count):
        weights[k] = (1.0 - _ANYWHERE) * weights[k] / total + _ANYWHERE / count


@numpy_inner
def _pick(rng, weights, count):
    left = rng.random()
    for k in range(count - 1):
        left -= weights[k]
        if left < 0.0:
            return k
    return count - 1


@numpy_inner
def _cells(tree, messages, node, branch, prior, cells):
    """Write log weights of cells of the place on an edge."""
    sums, count = _edge_sums(messages, node, branch), len(cells)
    rho = tree.rho[node, messages.above[node]]
    for k in range(count):
        tau = (k + 0.5) / count
        at = _edge_target(tree, messages, node, tau, branch, sums)
        cells[k] = _worth(at, prior) + _log_split(rho, tau, prior) - np.log(count)
    return sums


@numpy_inner
def _log_sum(values):
    top = values.max()
    return top + np.log(np.exp(values - top).sum())


@numpy_inner
def _places(tree, messages, count, hidden, branch, prior, w, sw, weights):
    """Write the probabilities of all places: those of nodes in order, then those of the edges above them; return their number."""
    order, coarse = messages.order, np.empty(_COARSE)
    full = hidden + 1 >= len(prior.log_tree)
    for k in range(count):
        at = _node_target(tree, messages, order[k], branch, w, sw)
        weights[k] = _worth(at, prior) + prior.log_tree[hidden]
    number = count
    if not full:
        for k in range(1, count):
            _cells(tree, messages, order[k], branch, prior, coarse)
            weights[number] = _log_sum(coarse) + prior.log_tree[hidden + 1]
            number += 1
    _normalise(weights, number)
    return number


@numpy_inner
def _excess(tree, messages, place, chance, hidden, branch, prior, w, sw):
    """Log density of a place less that of its proposal; `chance` is the probability of its node or edge."""
    node, on_edge, tau, rho = place
    if not on_edge:
        at = _node_target(tree, messages, node, branch, w, sw)
        value, proposed = prior.log_tree[hidden], np.log(chance)
    else:
        fine = np.empty(_FINE)
        sums = _cells(tree, messages, node, branch, prior, fine)
        _normalise(fine, _FINE)
        at = _edge_target(tree, messages, node, tau, branch, sums)
        value = prior.log_tree[hidden + 1]
        value += _log_split(tree.rho[node, messages.above[node]], tau, prior)
        cell = min(int(tau * _FINE), _FINE - 1)
        proposed = np.log(chance) + np.log(fine[cell] * _FINE)
    return value + _at(rho, at, prior) - proposed - _log_proposed(rho, at)


@numpy_inner
def _proposed_place(rng, tree, messages, count, number, weights, branch, prior, w, sw):
    """Draw a place; return it and the probability of its node or edge."""
    k = _pick(rng, weights, number)
    if k < count:
        node = messages.order[k]
        at = _node_target(tree, messages, node, branch, w, sw)
        return Place(node, False, 0.0, _propose(rng, at)), weights[k]
    node, fine = messages.order[k - count + 1], np.empty(_FINE)
    sums = _cells(tree, messages, node, branch, prior, fine)
    _normalise(fine, _FINE)
    tau = (_pick(rng, fine, _FINE) + rng.random()) / _FINE
    at = _edge_target(tree, messages, node, tau, branch, sums)
    return Place(node, True, tau, _propose(rng, at)), weights[k]


@numpy_inner
def _take_off(tree, u, p):
    """Turn a hidden node with two neighbours into an edge; return its ends and the correlations of its parts."""
    if u < p or tree.degree[u] != 2:
        return -1, -1, 0.0, 0.0
    a, b = tree.near[u, 0], tree.near[u, 1]
    first, second = tree.rho[u, a], tree.rho[u, b]
    cut(tree.near, tree.degree, tree.rho, u, a)
    cut(tree.near, tree.degree, tree.rho, u, b)
    join(tree.near, tree.degree, tree.rho, a, b, first * second)
    return a, b, first, second


@numpy_inner
def _put_on(tree, place, messages, v, p):
    """Join a branch to a place."""
    near, degree, rho = tree.near, tree.degree, tree.rho
    if not place.on_edge:
        join(near, degree, rho, place.node, v, place.rho)
        return
    node, above = place.node, messages.above[place.node]
    first, second = _split(rho[node, above], place.tau)
    new = p
    while degree[new]:
        new += 1
    cut(near, degree, rho, node, above)
    join(near, degree, rho, node, new, first)
    join(near, degree, rho, above, new, second)
    join(near, degree, rho, new, v, place.rho)


@numpy_inner
def _count_hidden(tree, p):
    found = 0
    for node in range(p, len(tree.degree)):
        found += tree.degree[node] > 0
    return found


@numpy_inner
def _any_edge(rng, tree):
    """Draw an edge with a direction."""
    total = 0
    for node in range(len(tree.degree)):
        total += tree.degree[node]
    k, node = int(rng.random() * total), 0
    while k >= tree.degree[node]:
        k -= tree.degree[node]
        node += 1
    return node, tree.near[node, k]


@numpy_inner
def regraft(rng, tree, prior, messages, w, sw):
    """Cut off a branch and join it again; return whether the tree has changed places."""
    p, nodes = len(w), len(tree.degree)
    u, v = _any_edge(rng, tree)
    edges = p + _count_hidden(tree, p) - 1
    old_rho = tree.rho[u, v]
    cut(tree.near, tree.degree, tree.rho, u, v)
    count = walk(tree, v, messages)
    for k in range(count - 1, -1, -1):
        message_up(tree, messages, messages.order[k])
    g, sg = messages.up[v].copy(), messages.up_s[v].copy()
    s_branch = 0.0
    for j in range(p):
        s_branch += g[j] * sg[j]
    branch = (g, sg, messages.up_q[v], s_branch)
    a, b, first, second = _take_off(tree, u, p)
    hidden = _count_hidden(tree, p)
    root = u if a < 0 else a
    count = walk(tree, root, messages)
    for k in range(count - 1, -1, -1):
        message_up(tree, messages, messages.order[k])
    for k in range(1, count):
        message_down(tree, messages, messages.order[k])
    weights = np.empty(2 * nodes)
    number = _places(tree, messages, count, hidden, branch, prior, w, sw, weights)
    if a < 0:
        old = Place(u, False, 0.0, old_rho)
    else:
        child = b if messages.above[b] == a else a
        own = first if child == a else second
        tau = np.log(abs(own)) / np.log(abs(first * second))
        old = Place(child, True, tau, old_rho if own > 0.0 else -old_rho)
    k = 0
    while messages.order[k] != old.node:
        k += 1
    chance = weights[count + k - 1] if old.on_edge else weights[k]
    before = _excess(tree, messages, old, chance, hidden, branch, prior, w, sw)
    new, chance = _proposed_place(rng, tree, messages, count, number, weights, branch, prior, w, sw)
    after = _excess(tree, messages, new, chance, hidden, branch, prior, w, sw)
    ratio = after - before + np.log(edges) - np.log(p + hidden + new.on_edge - 1)
    accepted = np.log(rng.random()) < ratio
    _put_on(tree, new if accepted else old, messages, v, p)
    return accepted and (new.node != old.node or new.on_edge != old.on_edge)


@numpy_inner
def _slice_correlation(rng, now, at, prior):
    """Draw the correlation along an edge by slice sampling, between -1 and 1."""
    level = _at(now, at, prior) + np.log(rng.random())
    low, high = -1.0, 1.0
    while True:
        new = low + (high - low) * rng.random()
        if _at(new, at, prior) >= level:
            return new
        if new < now:
            low = new
        else:
            high = new


@numpy_inner
def _log_scale_density(x, now, n, a, b, prior):
    """Log density of a scale divided by exp(x), `now` being its logarithm."""
    z = (now - x) / prior.log_scale
    m = np.exp(x)
    return n * x - 0.5 * a * m * m + b * m - 0.5 * z * z


@numpy_inner
def _slice_scale(rng, now, n, a, b, prior):
    """Draw the change of the logarithm of a scale by slice sampling."""
    level = _log_scale_density(0.0, now, n, a, b, prior) + np.log(rng.random())
    width = 3.0 / np.sqrt(n + 1.0)
    low = -width * rng.random()
    high = low + width
    while _log_scale_density(low, now, n, a, b, prior) > level:
        low -= width
    while _log_scale_density(high, now, n, a, b, prior) > level:
        high += width
    while True:
        new = low + (high - low) * rng.random()
        if _log_scale_density(new, now, n, a, b, prior) >= level:
            return new
        if new < 0.0:
            low = new
        else:
            high = new


@numpy_inner
def _rescale(rng, tree, prior, messages, j, log_scale):
    """Draw the scale of a column given all others and the tree."""
    a, b = tree.scatter[j, j], 0.0
    for k in range(tree.degree[j]):
        other = tree.near[j, k]
        rho = tree.rho[j, other]
        if other == messages.above[j]:
            t, product = rho * np.sqrt(messages.down_q[j]), messages.down_s[j, j]
        else:
            t, product = rho * np.sqrt(messages.up_q[other]), messages.up_s[other, j]
        rest = 1.0 - t * t
        a += tree.scatter[j, j] * t * t / rest
        b += t * product / rest
    change = _slice_scale(rng, log_scale[j], tree.n, a, b, prior)
    log_scale[j] -= change
    m = np.exp(change)
    tree.scatter[j] *= m
    tree.scatter[:, j] *= m
    messages.up_s[:, j] *= m
    messages.down_s[:, j] *= m


@numpy_inner
def sweep(rng, tree, prior, messages, log_scale):
    """Draw each correlation and each scale in turn, given all others."""
    p = len(log_scale)
    root = int(rng.random() * p)
    count = walk(tree, root, messages)
    order, above = messages.order.copy(), messages.above
    for k in range(count - 1, 0, -1):
        message_up(tree, messages, order[k])
    path, depth = np.empty(count, np.int64), 0
    for k in range(count):
        node = order[k]
        while depth and path[depth - 1] != above[node]:
            depth -= 1
            message_up(tree, messages, path[depth])
        path[depth] = node
        depth += 1
        if k:
            _draw_correlation(rng, tree, prior, messages, node)
        if node < p:
            _rescale(rng, tree, prior, messages, node, log_scale)
            message_up(tree, messages, node)


@numpy_inner
def _draw_correlation(rng, tree, prior, messages, node):
    """Draw the correlation of a node with its parent."""
    message_down(tree, messages, node)
    up, up_s, down, down_s = (
        messages.up[node],
        messages.up_s[node],
        messages.down[node],
        messages.down_s[node],
    )
    squares = product = 0.0
    for j in range(len(up)):
        squares += up[j] * up_s[j] + down[j] * down_s[j]
        product += up[j] * down_s[j]
    limit = min(max(np.sqrt(messages.up_q[node] * messages.down_q[node]), 1e-150), 1.0)
    at = Target(limit, squares, product, tree.n)
    parent = messages.above[node]
    new = _slice_correlation(rng, tree.rho[node, parent], at, prior)
    tree.rho[node, parent] = tree.rho[parent, node] = new


@kernel
def draw_tree(rng, near, degree, rho, scale, scatter, n, prior, moves, sweeps):
    """Move a tree, its correlations and the scales of its columns; return the share of moves that changed the tree.

    Parameters
    ----------
    rng : numpy.random.Generator
    near, degree, rho : ndarray
        Tree as from :func:`bayesstruct.trees.kernels.hidden_trees.neighbours_of`; overwritten.
    scale : (p,) ndarray
        Overwritten.
    scatter : (p, p) ndarray
        Sums of products of the columns.
    n : float
        Number of rows.
    prior : Prior
    moves : int
        Branches that are cut off and joined again after each sweep.
    sweeps : int
        How often all correlations and scales are drawn.
    """
    p = len(scale)
    own = scatter / np.outer(scale, scale)
    tree = Tree(near, degree, rho, own, n)
    messages = new_messages(len(degree), p)
    w, sw, log_scale, changed = np.empty(p), np.empty(p), np.log(scale), 0
    for _ in range(sweeps):
        sweep(rng, tree, prior, messages, log_scale)
        for _ in range(moves):
            changed += regraft(rng, tree, prior, messages, w, sw)
    scale[:] = np.exp(log_scale)
    return changed / max(moves * sweeps, 1)


@kernel
def log_density_of_tree(near, degree, rho, scale, scatter, n, prior):
    """Log density of a tree with its signs, correlations and scales given the table, but for a constant of the table.

    Parameters
    ----------
    near, degree, rho, scale, scatter, n, prior
        As of `draw_tree`.
    """
    p = len(scale)
    tree = Tree(near, degree, rho, scatter / np.outer(scale, scale), n)
    messages = new_messages(len(degree), p)
    count = walk(tree, 0, messages)
    hidden = _count_hidden(tree, p)
    total = prior.log_tree[hidden] + hidden * log(2.0)
    for j in range(p):
        z = np.log(scale[j])
        total -= (n + 1.0) * z + 0.5 * (z / prior.log_scale) ** 2 + 0.5 * tree.scatter[j, j]
    for k in range(count - 1, 0, -1):
        node = messages.order[k]
        total += _branches(tree, messages, node)
        message_up(tree, messages, node)
        total += _log_prior(tree.rho[node, messages.above[node]], prior)
    return total + _branches(tree, messages, 0)


@numpy_inner
def _branches(tree, messages, node):
    """Log likelihood of the branches below a node together, over that of each alone."""
    p, total = tree.scatter.shape[0], 0.0
    information, w, sw = 0.0, np.zeros(p), np.zeros(p)
    first = True
    for k in range(tree.degree[node]):
        other = tree.near[node, k]
        if other == messages.above[node]:
            continue
        t = tree.rho[node, other] * np.sqrt(messages.up_q[other])
        own, own_s = messages.up[other], messages.up_s[other]
        if node < p:
            squares = tree.scatter[node, node] + own @ own_s
            total += pair_log_likelihood(t, tree.n, squares, own_s[node])
            continue
        if not first:
            unit = 1.0 / np.sqrt(information * (1.0 + information))
            r = t * np.sqrt(information / (1.0 + information))
            squares = unit * unit * (w @ sw) + own @ own_s
            total += pair_log_likelihood(r, tree.n, squares, unit * (w @ own_s))
        first = False
        rest = 1.0 - t * t
        information += t * t / rest
        w += t / rest * own
        sw += t / rest * own_s
    return total
