"""Where a branch may be joined to a tree of columns and hidden nodes: how well each place explains the table, and proposals of one.

A place is a node, or the middle of an edge, where a new hidden node splits the correlation. Given what the branch and the rest say
(:mod:`bayesstruct.trees.kernels.hidden_messages`) the likelihood of a place is that of a pair.
"""

from math import erf, log, pi, sqrt
from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import numpy_inner
from bayesstruct.trees.kernels.hidden_messages import combine, pair_log_likelihood

__all__ = [
    "Place",
    "Prior",
    "Target",
    "correlation_log_density",
    "excess",
    "log_prior",
    "proposed_place",
    "split_correlation",
    "write_places",
]

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
def log_prior(rho, prior):
    """Log density of a correlation before the table is seen."""
    return prior.log_constant + (prior.shape - 1.0) * np.log(1.0 - rho * rho)


@numpy_inner
def correlation_log_density(rho, at, prior):
    """Log density of the correlation along a new edge, and of the rows given it."""
    r = at.limit * rho
    if not abs(rho) < _EDGE or abs(r) >= _EDGE:
        return -np.inf
    return log_prior(rho, prior) + pair_log_likelihood(r, at.n, at.squares, at.product)


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
    return own + log_prior(rho * 0.999, prior) + np.log(2.0 * width)


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
def split_correlation(rho, tau):
    """Correlations of the two parts of an edge."""
    size = max(abs(rho), 1e-300)
    return size**tau, np.sign(rho) * size ** (1.0 - tau)


@numpy_inner
def _edge_target(tree, messages, node, tau, branch, sums):
    """Take a new node on the edge above a node as the place of a branch."""
    aa, ab, bb, ag, bg = sums
    first, second = split_correlation(tree.rho[node, messages.above[node]], tau)
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
    first, second = split_correlation(rho, tau)
    if not max(abs(first), abs(second)) < _EDGE:
        return -np.inf
    jacobian = np.log(max(-np.log(abs(rho)), 1e-300))
    own = log_prior(first, prior) + log_prior(second, prior) - log_prior(rho, prior)
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
def write_places(tree, messages, count, hidden, branch, prior, w, sw, weights):
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
def excess(tree, messages, place, chance, hidden, branch, prior, w, sw):
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
    return value + correlation_log_density(rho, at, prior) - proposed - _log_proposed(rho, at)


@numpy_inner
def proposed_place(rng, tree, messages, count, number, weights, branch, prior, w, sw):
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
