r"""What each branch of a tree of nodes with states says about the node that it hangs on.

Of a branch below node a with root b, row by row, it is the probability of the columns of the branch for each state of b. Messages
upwards hold that; messages downwards hold the probability of all columns elsewhere together with each state of the node above. So the hidden nodes
are summed out at a cost in proportion to the number of nodes.

Felsenstein, J. (1981). Evolutionary trees from DNA sequences: a maximum likelihood approach. *Journal of Molecular Evolution* 17, 368-376.
"""

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import kernel, numpy_inner
from bayesstruct.trees.kernels.hidden_messages import walk
from bayesstruct.trees.kernels.hidden_trees import neighbours_of

__all__ = [
    "StateMessages",
    "StateTree",
    "about_node",
    "collect",
    "new_state_messages",
    "refresh",
    "row_log_likelihoods",
    "state_tree",
]


class StateTree(NamedTuple):
    """A tree without a root, probabilities along its edges in both directions, and the rows that it explains.

    Attributes
    ----------
    near, degree, rho : ndarray
        As from :func:`bayesstruct.trees.kernels.hidden_trees.neighbours_of`; the correlations are not used.
    given : (nodes, nodes, K, K) ndarray
        At (i, j, s, t) the probability that node j is in state t if its neighbour i is in s.
    share : (nodes, K) ndarray
        Probabilities of the states of each node.
    states : (nodes,) ndarray of int
        How many each node has, at most K.
    codes : (rows, p) ndarray of int
        Different rows; -1 is an unknown state.
    counts : (rows,) ndarray
        How often each of them was observed.
    """

    near: np.ndarray
    degree: np.ndarray
    rho: np.ndarray
    given: np.ndarray
    share: np.ndarray
    states: np.ndarray
    codes: np.ndarray
    counts: np.ndarray


class StateMessages(NamedTuple):
    """Messages along the edges of a part of a tree, seen from a root.

    Attributes
    ----------
    order, above : (nodes,) ndarray of int
        Nodes from the root outwards, and the parent of each.
    up : (nodes, rows, K) ndarray
        Probability of the columns of the branch of a node for each of its states.
    down : (nodes, rows, K) ndarray
        Probability of all other columns together with each state of its parent.
    """

    order: np.ndarray
    above: np.ndarray
    up: np.ndarray
    down: np.ndarray


@numpy_inner
def new_state_messages(tree):
    """Room for the messages of a tree."""
    nodes, most = tree.share.shape
    rows = len(tree.counts)
    return StateMessages(
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros((nodes, rows, most)),
        np.zeros((nodes, rows, most)),
    )


@numpy_inner
def state_tree(parent, table, states, codes, counts):
    """Make a tree of its form with a root; see `row_log_likelihoods` for the arguments."""
    nodes, most = len(parent), table.shape[1]
    near, degree, rho = neighbours_of(parent, np.ones(nodes))
    given, share = np.zeros((nodes, nodes, most, most)), np.zeros((nodes, most))
    for node in range(nodes):
        if parent[node] >= 0:
            given[parent[node], node] = table[node]
    share[0] = table[0, 0]
    return StateTree(near, degree, rho, given, share, states, codes, counts)


@numpy_inner
def refresh(tree, messages, count):
    """Make the probabilities of all nodes, and those towards the root, fit those away from it."""
    given, share, states = tree.given, tree.share, tree.states
    for k in range(1, count):
        node = messages.order[k]
        above = messages.above[node]
        for t in range(states[node]):
            total = 0.0
            for s in range(states[above]):
                total += share[above, s] * given[above, node, s, t]
            share[node, t] = total
            for s in range(states[above]):
                given[node, above, t, s] = share[above, s] * given[above, node, s, t] / total


@numpy_inner
def _own_columns(tree, node, out):
    """Write what a node itself says about its state, one line for each row."""
    p = tree.codes.shape[1]
    for r in range(len(tree.counts)):
        for s in range(tree.states[node]):
            known = node < p and tree.codes[r, node] >= 0
            out[r, s] = 1.0 if not known or tree.codes[r, node] == s else 0.0


@numpy_inner
def _multiply(tree, node, other, message, out):
    """Multiply by what a neighbour further out says about a node."""
    given = tree.given[node, other]
    for r in range(len(out)):
        for s in range(tree.states[node]):
            if out[r, s] == 0.0:
                continue
            total = 0.0
            for t in range(tree.states[other]):
                total += given[s, t] * message[r, t]
            out[r, s] *= total


@numpy_inner
def _multiply_above(tree, messages, node, out):
    """Multiply by the probability of all that is not below a node, together with its state."""
    above = messages.above[node]
    if above < 0:
        for r in range(len(out)):
            for s in range(tree.states[node]):
                out[r, s] *= tree.share[node, s]
        return
    given, down = tree.given[above, node], messages.down[node]
    for r in range(len(out)):
        for s in range(tree.states[node]):
            total = 0.0
            for t in range(tree.states[above]):
                total += down[r, t] * given[t, s]
            out[r, s] *= total


@numpy_inner
def _message_up(tree, messages, node):
    out = messages.up[node]
    _own_columns(tree, node, out)
    for k in range(tree.degree[node]):
        other = tree.near[node, k]
        if other != messages.above[node]:
            _multiply(tree, node, other, messages.up[other], out)


@numpy_inner
def _message_down(tree, messages, node):
    above, out = messages.above[node], messages.down[node]
    _own_columns(tree, above, out)
    _multiply_above(tree, messages, above, out)
    for k in range(tree.degree[above]):
        other = tree.near[above, k]
        if other != messages.above[above] and other != node:
            _multiply(tree, above, other, messages.up[other], out)


@numpy_inner
def collect(tree, messages, root, both):
    """Make all messages of the part of the tree around a root, upwards only or in both directions; return its number of nodes."""
    count = walk(tree, root, messages)
    for k in range(count - 1, -1, -1):
        _message_up(tree, messages, messages.order[k])
    if both:
        for k in range(1, count):
            _message_down(tree, messages, messages.order[k])
    return count


@numpy_inner
def about_node(tree, messages, node, out):
    """Write the probability of all columns together with each state of a node."""
    out[:] = messages.up[node]
    _multiply_above(tree, messages, node, out)


@kernel
def row_log_likelihoods(parent, table, states, codes):
    """Log probability of each row, hidden nodes being summed out.

    Parameters
    ----------
    parent : (nodes,) ndarray of int
        Tree in the form with a root.
    table : (nodes, K, K) ndarray
        At (j, s, t) the probability that node j is in state t if its parent is in s; of the root, line 0 holds its probabilities.
    states : (nodes,) ndarray of int
    codes : (rows, p) ndarray of int
        States of the columns, -1 for unknown ones.

    Returns
    -------
    (rows,) ndarray
    """
    tree = state_tree(parent, table, states, codes, np.ones(len(codes)))
    messages = new_state_messages(tree)
    collect(tree, messages, 0, False)
    out = np.empty(len(codes))
    for r in range(len(codes)):
        total = 0.0
        for s in range(states[0]):
            total += tree.share[0, s] * messages.up[0, r, s]
        out[r] = np.log(total)
    return out
