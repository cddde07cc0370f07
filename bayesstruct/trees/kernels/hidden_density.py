"""Log density of a tree of columns and hidden nodes with its parameters, the hidden nodes integrated out."""

from math import log

import numpy as np

from bayesstruct.core.jit import kernel, numpy_inner
from bayesstruct.trees.kernels.hidden_messages import (
    Tree,
    count_hidden,
    message_up,
    new_messages,
    pair_log_likelihood,
    walk,
)
from bayesstruct.trees.kernels.hidden_places import log_prior

__all__ = ["log_density_of_tree"]


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
    hidden = count_hidden(tree, p)
    total = prior.log_tree[hidden] + hidden * log(2.0)
    for j in range(p):
        z = np.log(scale[j])
        total -= (n + 1.0) * z + 0.5 * (z / prior.log_scale) ** 2 + 0.5 * tree.scatter[j, j]
    for k in range(count - 1, 0, -1):
        node = messages.order[k]
        total += _branches(tree, messages, node)
        message_up(tree, messages, node)
        total += log_prior(tree.rho[node, messages.above[node]], prior)
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
