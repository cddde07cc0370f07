r"""What each branch of a tree of normal nodes says about the node that it hangs on.

All nodes have variance 1. What the columns x of a branch say about its root a is one number, their standardised prediction
:math:`F = E[a \mid x] / \sqrt q` with :math:`q = \mathrm{var} \, E[a \mid x]`: a linear function of the columns that has correlation :math:`\sqrt q` with a.
For a column F is the column and q is 1. A hidden node whose branches predict it by :math:`G_c`, with correlations
:math:`t_c = \rho_c \sqrt{q_c}`, has

.. math:: I = \sum_c \frac{t_c^2}{1 - t_c^2}, \qquad q = \frac{I}{1 + I}, \qquad
    F = \frac{1}{\sqrt{I (1 + I)}} \sum_c \frac{t_c}{1 - t_c^2} G_c .

If an edge with correlation :math:`\rho` joins two branches, the likelihood of n rows is that of the branches alone times that of a pair with correlation
:math:`r = \rho \sqrt{q_F q_G}`,

.. math:: \log L(r) = -\frac n2 \log(1 - r^2) - \frac{r^2 (S_{FF} + S_{GG}) - 2 r S_{FG}}{2 (1 - r^2)} .

S are sums over rows of products; a message holds the coefficients w of F and their product S w with those of the columns.
"""

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import numpy_inner

__all__ = [
    "Messages",
    "Tree",
    "combine",
    "count_hidden",
    "message_down",
    "message_up",
    "new_messages",
    "pair_log_likelihood",
    "walk",
]


class Tree(NamedTuple):
    """A tree without a root, and the rows that it explains.

    Attributes
    ----------
    near, degree, rho : ndarray
        Neighbours, their numbers and correlations, as from :func:`bayesstruct.trees.kernels.hidden_trees.neighbours_of`.
    scatter : (p, p) ndarray
        Sums of products of the columns in units of their scales.
    n : float
        Number of rows.
    """

    near: np.ndarray
    degree: np.ndarray
    rho: np.ndarray
    scatter: np.ndarray
    n: float


class Messages(NamedTuple):
    """Messages along the edges of a part of a tree, seen from a root.

    Attributes
    ----------
    order, above : (nodes,) ndarray of int
        Nodes from the root outwards, and the parent of each.
    up, up_s : (nodes, p) ndarray
        Coefficients of what the branch of a node says about it, and their products with the scatter matrix.
    up_q : (nodes,) ndarray
    down, down_s, down_q : ndarray
        Likewise what the rest of the tree says about the parent of a node.
    """

    order: np.ndarray
    above: np.ndarray
    up: np.ndarray
    up_s: np.ndarray
    up_q: np.ndarray
    down: np.ndarray
    down_s: np.ndarray
    down_q: np.ndarray


@numpy_inner
def new_messages(nodes, p):
    """Room for the messages of a tree."""
    return Messages(
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros((nodes, p)),
        np.zeros((nodes, p)),
        np.zeros(nodes),
        np.zeros((nodes, p)),
        np.zeros((nodes, p)),
        np.zeros(nodes),
    )


@numpy_inner
def walk(tree, root, messages):
    """Order the part of the tree around a root, depth first, and return its number of nodes."""
    order, above = messages.order, messages.above
    above[root] = -1
    stack = np.empty(len(order), np.int64)
    stack[0], depth, count = root, 1, 0
    while depth:
        depth -= 1
        node = stack[depth]
        order[count] = node
        count += 1
        for k in range(tree.degree[node]):
            child = tree.near[node, k]
            if child != above[node]:
                above[child] = node
                stack[depth] = child
                depth += 1
    return count


@numpy_inner
def combine(tree, messages, node, skip, w, sw):
    """Write what all branches of a node but one say about it; return q."""
    p = len(w)
    if node < p:
        w[:] = 0.0
        w[node] = 1.0
        sw[:] = tree.scatter[node]
        return 1.0
    w[:] = 0.0
    sw[:] = 0.0
    information = 0.0
    for k in range(tree.degree[node]):
        other = tree.near[node, k]
        if other == skip:
            continue
        rho = tree.rho[node, other]
        if other == messages.above[node]:
            t = rho * np.sqrt(messages.down_q[node])
            own, own_s = messages.down[node], messages.down_s[node]
        else:
            t = rho * np.sqrt(messages.up_q[other])
            own, own_s = messages.up[other], messages.up_s[other]
        rest = 1.0 - t * t
        information += t * t / rest
        for j in range(p):
            w[j] += t / rest * own[j]
            sw[j] += t / rest * own_s[j]
    if information <= 0.0:  # all correlations are zero but for rounding
        return 0.0
    unit = 1.0 / np.sqrt(information * (1.0 + information))
    for j in range(p):
        w[j] *= unit
        sw[j] *= unit
    return information / (1.0 + information)


@numpy_inner
def message_up(tree, messages, node):
    """Make the message of the branch of a node anew."""
    above = messages.above[node]
    messages.up_q[node] = combine(
        tree, messages, node, above, messages.up[node], messages.up_s[node]
    )


@numpy_inner
def message_down(tree, messages, node):
    """Make the message of the rest of the tree about the parent of a node anew."""
    above = messages.above[node]
    messages.down_q[node] = combine(
        tree, messages, above, node, messages.down[node], messages.down_s[node]
    )


@numpy_inner
def pair_log_likelihood(r, n, squares, product):
    """Log likelihood of a pair with correlation r over that of two independent ones; `squares` is S_FF + S_GG."""
    rest = 1.0 - r * r
    return -0.5 * n * np.log(rest) - 0.5 * (r * r * squares - 2.0 * r * product) / rest


@numpy_inner
def count_hidden(tree, p):
    """Count the hidden nodes of a tree of p columns."""
    found = 0
    for node in range(p, len(tree.degree)):
        found += tree.degree[node] > 0
    return found
