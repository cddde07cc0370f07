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

import numpy as np

from bayesstruct.core.jit import kernel, numpy_inner
from bayesstruct.trees.kernels.hidden_messages import (
    Tree,
    count_hidden,
    message_down,
    message_up,
    new_messages,
    walk,
)
from bayesstruct.trees.kernels.hidden_places import (
    Place,
    Target,
    correlation_log_density,
    excess,
    proposed_place,
    split_correlation,
    write_places,
)
from bayesstruct.trees.kernels.hidden_trees import cut, join

__all__ = ["draw_tree"]


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
    first, second = split_correlation(rho[node, above], place.tau)
    new = p
    while degree[new]:
        new += 1
    cut(near, degree, rho, node, above)
    join(near, degree, rho, node, new, first)
    join(near, degree, rho, above, new, second)
    join(near, degree, rho, new, v, place.rho)


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
    edges = p + count_hidden(tree, p) - 1
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
    hidden = count_hidden(tree, p)
    root = u if a < 0 else a
    count = walk(tree, root, messages)
    for k in range(count - 1, -1, -1):
        message_up(tree, messages, messages.order[k])
    for k in range(1, count):
        message_down(tree, messages, messages.order[k])
    weights = np.empty(2 * nodes)
    number = write_places(tree, messages, count, hidden, branch, prior, w, sw, weights)
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
    before = excess(tree, messages, old, chance, hidden, branch, prior, w, sw)
    new, chance = proposed_place(rng, tree, messages, count, number, weights, branch, prior, w, sw)
    after = excess(tree, messages, new, chance, hidden, branch, prior, w, sw)
    ratio = after - before + np.log(edges) - np.log(p + hidden + new.on_edge - 1)
    accepted = np.log(rng.random()) < ratio
    _put_on(tree, new if accepted else old, messages, v, p)
    return accepted and (new.node != old.node or new.on_edge != old.on_edge)


@numpy_inner
def _slice_correlation(rng, now, at, prior):
    """Draw the correlation along an edge by slice sampling, between -1 and 1."""
    level = correlation_log_density(now, at, prior) + np.log(rng.random())
    low, high = -1.0, 1.0
    while True:
        new = low + (high - low) * rng.random()
        if correlation_log_density(new, at, prior) >= level:
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
