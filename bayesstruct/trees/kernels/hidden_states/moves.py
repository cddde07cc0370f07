r"""Moves among trees of columns and hidden nodes that have states, with the probabilities along their edges.

A branch is cut off, and joined to the rest again at a node or at a new hidden node in the middle of an edge. A hidden node that is left
with two neighbours becomes an edge. The number of probabilities changes, so that all tables around the place are drawn anew, those of
the tree as it was included, from proposals about their most probable values (:mod:`bayesstruct.trees.kernels.hidden_states.fits`); where a branch
goes, from approximations of the evidence of all places. Hidden states are summed out. Accepted or not by the ratio of Metropolis, Hastings
and Green, the posterior is exact.

The prior of the tables is that of any root (hyper-Dirichlet): each move is written for a tree with its root outside the branch, and no Jacobian is left.

Green, P. J. (1995). Reversible jump Markov chain Monte Carlo computation and Bayesian model determination. *Biometrika* 82, 711-732.
"""

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import kernel, numpy_inner
from bayesstruct.trees.kernels.hidden_messages import count_hidden
from bayesstruct.trees.kernels.hidden_states.fits import (
    draw_tables,
    edge_piece,
    fit_piece,
    piece_log_posterior,
    proposal_log_density,
    star_piece,
    tables_log_prior,
)
from bayesstruct.trees.kernels.hidden_states.messages import (
    about_node,
    collect,
    new_state_messages,
    refresh,
    state_tree,
)
from bayesstruct.trees.kernels.hidden_trees import cut, join, rooted_form

__all__ = ["StatePrior", "draw_tree_of_states"]

_ANYWHERE = 0.05  # probability of a place without a look at the table
_LEAST = 1e-100  # a probability that is smaller after rounding is set to this


class StatePrior(NamedTuple):
    """What is believed before the table is seen.

    Attributes
    ----------
    log_tree : (most + 1,) ndarray
        Log probability of each single tree with 0, 1, ..., most hidden nodes.
    weight : float
        Rows that the prior of the tables is worth.
    """

    log_tree: np.ndarray
    weight: float


class Places(NamedTuple):
    """Where a branch may go, with proposals of the tables there: nodes in order first, then the edges above them.

    Attributes
    ----------
    chance : (places,) ndarray
        Probability of each place as a proposal.
    given : (places,) ndarray
        Log density of the proposal of the table of an edge that is replaced, over its prior; 0 for nodes.
    mode, factor : ndarray
        As from :func:`bayesstruct.trees.kernels.hidden_states.fits.fit_piece`.
    """

    chance: np.ndarray
    given: np.ndarray
    mode: np.ndarray
    factor: np.ndarray


@numpy_inner
def _any_edge(rng, tree):
    """Draw an edge with a direction."""
    k, node = int(rng.random() * tree.degree.sum()), 0
    while k >= tree.degree[node]:
        k -= tree.degree[node]
        node += 1
    return node, tree.near[node, k]


@numpy_inner
def _piece_at(tree, messages, place, count, branch, prior, work):
    """Return the piece of a place, of which `branch` is the node and its message."""
    v, c = branch
    hidden = tree.states[-1]
    if place < count:
        node = messages.order[place]
        about_node(tree, messages, node, work)
        return edge_piece(tree.states[node], tree.states[v], prior.weight, work, c, tree.counts)
    node = messages.order[place - count + 1]
    above = messages.above[node]
    return star_piece(
        tree.states[above],
        tree.states[node],
        tree.states[v],
        hidden,
        prior.weight,
        messages.down[node],
        messages.up[node],
        c,
        tree.counts,
    )


@numpy_inner
def _replaced(tree, messages, node, prior):
    """Return the piece of the edge above a node as it is."""
    above = messages.above[node]
    return edge_piece(
        tree.states[above],
        tree.states[node],
        prior.weight,
        messages.down[node],
        messages.up[node],
        tree.counts,
    )


@numpy_inner
def _most_logits(tree):
    """Return the largest number of logits of a piece."""
    most, hidden = tree.share.shape[1], tree.states[-1]
    return max(most * (most - 1), most * (hidden - 1) + 2 * hidden * (most - 1))


@numpy_inner
def _look(tree, messages, count, branch, hidden, prior):
    """Fit all places of a branch, and say how probable each is as a proposal."""
    most = tree.share.shape[1]
    full = hidden + 1 >= len(prior.log_tree)
    number = count if full else 2 * count - 1
    size = _most_logits(tree)
    places = Places(
        np.empty(number),
        np.zeros(number),
        np.ones((number, 3, most, most)),
        np.empty((number, size, size)),
    )
    work = np.empty_like(messages.up[0])
    mode, factor, theta = np.ones((3, most, most)), np.empty((size, size)), np.ones((3, most, most))
    for k in range(number):
        piece = _piece_at(tree, messages, k, count, branch, prior, work)
        places.chance[k] = fit_piece(piece, places.mode[k], places.factor[k])
        if k < count:
            places.chance[k] += prior.log_tree[hidden]
            continue
        node = messages.order[k - count + 1]
        own = _replaced(tree, messages, node, prior)
        fit_piece(own, mode, factor)
        theta[0] = tree.given[messages.above[node], node]
        places.given[k] = proposal_log_density(theta, own, mode, factor)
        places.given[k] -= tables_log_prior(theta, own)
        places.chance[k] += prior.log_tree[hidden + 1] + places.given[k]
    top = places.chance.max()
    weights = np.exp(places.chance - top)
    places.chance[:] = (1.0 - _ANYWHERE) * weights / weights.sum() + _ANYWHERE / number
    return places


@numpy_inner
def _excess(tree, messages, places, k, theta, count, branch, hidden, prior):
    """Log density of a place and its tables less that of their proposal."""
    work = np.empty_like(messages.up[0])
    piece = _piece_at(tree, messages, k, count, branch, prior, work)
    value = piece_log_posterior(theta, piece)
    if value == -np.inf:
        return value
    value += prior.log_tree[hidden + (k >= count)] + places.given[k]
    proposed = proposal_log_density(theta, piece, places.mode[k], places.factor[k])
    return value - np.log(places.chance[k]) - proposed


@numpy_inner
def _put_on(tree, messages, k, count, v, theta):
    """Join a branch to a place."""
    p = tree.codes.shape[1]
    if k < count:
        node = messages.order[k]
        join(tree.near, tree.degree, tree.rho, node, v, 1.0)
        tree.given[node, v] = theta[0]
        return
    node = messages.order[k - count + 1]
    above = messages.above[node]
    new = p
    while tree.degree[new]:
        new += 1
    cut(tree.near, tree.degree, tree.rho, node, above)
    for other in (above, node, v):
        join(tree.near, tree.degree, tree.rho, new, other, 1.0)
    tree.given[above, new] = theta[0]
    tree.given[new, node] = theta[1]
    tree.given[new, v] = theta[2]


@numpy_inner
def _take_off(rng, tree, messages, u, root, prior, theta):
    """Turn a hidden node with two neighbours into an edge with a new table; return its lower end, or -1; `theta` gets the old tables."""
    p, given = tree.codes.shape[1], tree.given
    theta[2] = theta[0]
    if u < p or tree.degree[u] != 2:
        return -1
    a = messages.above[u]
    b = tree.near[u, 0] if tree.near[u, 1] == a else tree.near[u, 1]
    theta[0], theta[1] = given[a, u], given[u, b]
    cut(tree.near, tree.degree, tree.rho, u, a)
    cut(tree.near, tree.degree, tree.rho, u, b)
    join(tree.near, tree.degree, tree.rho, a, b, 1.0)
    given[a, b] = 1.0  # any value: neither message along this edge depends on it
    collect(tree, messages, root, True)
    most, size = given.shape[2], _most_logits(tree)
    mode, factor, drawn = np.ones((3, most, most)), np.empty((size, size)), np.ones((3, most, most))
    piece = _replaced(tree, messages, b, prior)
    fit_piece(piece, mode, factor)
    draw_tables(rng, piece, mode, factor, drawn)
    given[a, b] = drawn[0]
    return b


@numpy_inner
def _first_column(tree, messages, count):
    """Return the first column of the part of a tree that was walked last."""
    first = messages.order[0]
    for k in range(count):
        first = min(first, messages.order[k])
    return first


@numpy_inner
def _pick(rng, chance):
    left = rng.random()
    for k in range(len(chance) - 1):
        left -= chance[k]
        if left < 0.0:
            return k
    return len(chance) - 1


@numpy_inner
def _regraft(rng, tree, prior, messages):
    """Cut off a branch and join it again; return whether the tree has changed places."""
    p, most = tree.codes.shape[1], tree.share.shape[1]
    u, v = _any_edge(rng, tree)
    edges = p + count_hidden(tree, p) - 1
    near, degree, rho = tree.near.copy(), tree.degree.copy(), tree.rho.copy()
    given, share = tree.given.copy(), tree.share.copy()
    old, new = np.ones((3, most, most)), np.ones((3, most, most))
    old[0] = tree.given[u, v]
    cut(tree.near, tree.degree, tree.rho, u, v)
    collect(tree, messages, v, False)
    branch = (v, messages.up[v].copy())
    count = collect(tree, messages, u, False)
    root = _first_column(tree, messages, count)
    collect(tree, messages, root, False)
    child = _take_off(rng, tree, messages, u, root, prior, old)
    count = collect(tree, messages, root, True)
    hidden = _hidden_of_both(degree, tree, p, child)
    places = _look(tree, messages, count, branch, hidden, prior)
    k = 0
    while messages.order[k] != (u if child < 0 else child):
        k += 1
    before_place = k if child < 0 else count + k - 1
    before = _excess(tree, messages, places, before_place, old, count, branch, hidden, prior)
    k = _pick(rng, places.chance)
    piece = _piece_at(tree, messages, k, count, branch, prior, np.empty_like(messages.up[0]))
    draw_tables(rng, piece, places.mode[k], places.factor[k], new)
    after = _excess(tree, messages, places, k, new, count, branch, hidden, prior)
    ratio = after - before + np.log(edges) - np.log(p + hidden + (k >= count) - 1)
    if np.log(rng.random()) < ratio:
        _put_on(tree, messages, k, count, v, new)
        refresh(tree, messages, collect(tree, messages, root, False))
        return k != before_place
    tree.near[:], tree.degree[:], tree.rho[:] = near, degree, rho
    tree.given[:], tree.share[:] = given, share
    return False


@numpy_inner
def _hidden_of_both(degree, tree, p, child):
    """Count the hidden nodes of the rest and of the branch; `degree` is that of the tree before it was cut."""
    found = 0
    for node in range(p, len(degree)):
        found += degree[node] > 0
    return found - (child >= 0)


@numpy_inner
def _draw_line(rng, weights, out):
    """Draw probabilities from a Dirichlet distribution."""
    total = 0.0
    for t in range(len(weights)):
        out[t] = max(rng.standard_gamma(weights[t]), _LEAST)
        total += out[t]
    for t in range(len(weights)):
        out[t] /= total


@numpy_inner
def _draw_state(rng, weights, count):
    total = 0.0
    for s in range(count):
        total += weights[s]
    left = rng.random() * total
    for s in range(count - 1):
        left -= weights[s]
        if left < 0.0:
            return s
    return count - 1


@numpy_inner
def _draw_counts(rng, tree, messages, count):
    """Draw the states of all nodes in all rows, and count those of each node and its parent."""
    nodes, most = tree.share.shape
    counts, chance, state = np.zeros((nodes, most, most)), np.empty(most), np.empty(nodes, np.int64)
    for r in range(len(tree.counts)):
        for _ in range(int(tree.counts[r])):
            for k in range(count):
                node = messages.order[k]
                above = messages.above[node]
                for s in range(tree.states[node]):
                    own = (
                        tree.share[node, s]
                        if above < 0
                        else tree.given[above, node, state[above], s]
                    )
                    chance[s] = own * messages.up[node, r, s]
                state[node] = _draw_state(rng, chance, tree.states[node])
                counts[node, 0 if above < 0 else state[above], state[node]] += 1.0
    return counts


@numpy_inner
def _sweep(rng, tree, prior, messages):
    """Draw hidden states of all rows, and all tables given them."""
    count = collect(tree, messages, 0, False)
    counts = _draw_counts(rng, tree, messages, count)
    for k in range(count):
        node = messages.order[k]
        above, own = messages.above[node], tree.states[node]
        if above < 0:
            weights = counts[node, 0, :own] + prior.weight / own
            _draw_line(rng, weights, tree.share[node])
            continue
        for s in range(tree.states[above]):
            weights = counts[node, s, :own] + prior.weight / (own * tree.states[above])
            _draw_line(rng, weights, tree.given[above, node, s])
    refresh(tree, messages, count)


@numpy_inner
def _write(tree, p, parent, table):
    """Write a tree and its tables in the form with a root."""
    nodes = len(parent)
    above, name = np.empty(nodes, np.int64), np.empty(nodes)
    above[:] = -1
    order = np.zeros(nodes, np.int64)
    count, done = 1, 0
    while done < count:
        node = order[done]
        done += 1
        for k in range(tree.degree[node]):
            child = tree.near[node, k]
            if child != above[node]:
                above[child] = node
                order[count] = child
                count += 1
    for node in range(nodes):
        tree.rho[node, :] = node + 1.0  # says which node gets which name
    rooted_form(tree.near, tree.degree, tree.rho, p, parent, name)
    table[:] = 0.0
    table[0, 0] = tree.share[0]
    for node in range(1, nodes):
        if parent[node] >= 0:
            own = int(name[node]) - 1
            lines, columns = tree.states[above[own]], tree.states[own]
            table[node, :lines, :columns] = tree.given[above[own], own, :lines, :columns]


@kernel
def draw_tree_of_states(rng, parent, table, states, codes, counts, prior, moves):
    """Draw all tables given the tree, then move the tree; return the share of moves that changed it.

    Parameters
    ----------
    rng : numpy.random.Generator
    parent, table, states, codes : ndarray
        As of :func:`bayesstruct.trees.kernels.hidden_states.messages.row_log_likelihoods`; the first two are overwritten.
    counts : (rows,) ndarray of float
        How often each row was observed.
    prior : StatePrior
    moves : int
        Branches that are cut off and joined again.
    """
    tree = state_tree(parent, table, states, codes, counts)
    messages = new_state_messages(tree)
    _sweep(rng, tree, prior, messages)
    changed = 0
    for _ in range(moves):
        changed += _regraft(rng, tree, prior, messages)
    _write(tree, codes.shape[1], parent, table)
    return changed / max(moves, 1)
