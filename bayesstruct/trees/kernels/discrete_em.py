"""Probabilities of a tree with hidden nodes of states, by expectation-maximisation."""

import math

from collections.abc import Sequence

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.trees.kernels.climbing import climb
from bayesstruct.trees.kernels.gaussian_em import outward

__all__ = ["DiscreteTree", "expected_counts"]

_SMALL = (
    1e-100  # products of messages below it are scaled: those of hundreds of neighbours would vanish
)


class DiscreteTree:
    """A tree of nodes with k states, of which the first m are observed.

    Parameters
    ----------
    lines : sequence of pairs of int
    joints : (edges, k, k) array_like
        Joint probabilities of the two ends of each edge; their marginal probabilities may differ from edge to edge.
    m : int

    Attributes
    ----------
    root : (k,) ndarray
        Probabilities of node 0.
    conditionals : (nodes, k, k) ndarray
        Row the state of the neighbour towards node 0, column that of the node; of node 0 not used.
    parents : (nodes,) ndarray of int
        That neighbour; -1 for node 0.
    order : list of (int, int, int)
        Edges from node 0 outwards: number, nearer and farther end.
    log_likelihood : float
        Of the rows that `fit` had last.
    """

    def __init__(self, lines: Sequence[tuple[int, int]], joints: np.ndarray, m: int):
        self.m, self.k = m, joints.shape[1]
        ends = np.array(lines, int).reshape(-1, 2)
        nodes = len(ends) + 1
        self.order = outward(ends)
        self.parents = np.full(nodes, -1)
        self.conditionals = np.full((nodes, self.k, self.k), 1.0 / self.k)
        self.root = np.full(self.k, 1.0 / self.k)
        for edge, parent, child in self.order:
            own = joints[edge] if ends[edge, 0] == parent else joints[edge].T
            self.parents[child] = parent
            self.conditionals[child] = own / own.sum(axis=1, keepdims=True)
            if parent == 0:
                self.root = own.sum(axis=1) / own.sum()
        self.log_likelihood = -np.inf

    def draw(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw the states of hidden nodes given those of the others.

        Parameters
        ----------
        codes : (n, m) ndarray of int
        rng : numpy.random.Generator

        Returns
        -------
        (n, nodes) ndarray of int
        """
        up = self._inward(codes)
        out = np.empty((len(codes), len(self.parents)), np.int64)
        out[:, 0] = _draw(up[0] * self.root, rng)
        for _, parent, child in self.order:
            out[:, child] = _draw(up[child] * self.conditionals[child][out[:, parent]], rng)
        return out

    def fit(self, codes: np.ndarray, *, tol: float = 1e-4, max_iter: int = 2000) -> "DiscreteTree":
        """Raise the likelihood until a step gains less than `tol`.

        Parameters
        ----------
        codes : (n, m) ndarray of int
        tol : float
            In units of the log likelihood.
        max_iter : int
        """
        rows, weight = np.unique(codes, axis=0, return_counts=True)
        rows, weight = np.ascontiguousarray(rows, np.int64), weight.astype(np.float64)
        order = np.array([edge[1:] for edge in self.order], np.int64).reshape(-1, 2)

        def evaluate(now):
            root, conditionals = now
            counts, shares = np.zeros_like(conditionals), np.zeros_like(root)
            value = expected_counts(rows, weight, order, root, conditionals, counts, shares)
            seen = counts.sum(axis=2, keepdims=True)
            fitted = np.where(seen > 1e-12, counts / np.maximum(seen, 1e-12), conditionals)
            return value, (shares / shares.sum(), fitted)

        found, self.log_likelihood = climb(
            evaluate, _move, (self.root, self.conditionals), tol=tol, max_iter=max_iter
        )
        self.root, self.conditionals = found
        return self

    def _inward(self, rows) -> np.ndarray:
        """Likelihoods of what is at and beyond each node, (nodes, rows, k), up to a factor for each row."""
        nodes, k = len(self.parents), self.k
        up = np.ones((nodes, len(rows), k))
        up[: self.m] = rows.T[:, :, None] == np.arange(k)
        for _, parent, child in reversed(self.order):
            message = up[child] @ self.conditionals[child].T
            up[parent] *= message / np.maximum(message.sum(axis=1, keepdims=True), 1e-300)
            # Products over hundreds of neighbours would vanish.
            up[parent] /= np.maximum(up[parent].sum(axis=1, keepdims=True), 1e-300)
        return up


def _move(now, target, length):
    """Return probabilities beyond those of a plain step, in logarithms."""
    out = []
    for old, new in zip(now, target, strict=True):
        ratio = np.log(np.maximum(new, 1e-300)) - np.log(np.maximum(old, 1e-300))
        far = old * np.exp(np.clip(length * ratio, -50.0, 50.0))
        out.append(far / np.maximum(far.sum(axis=-1, keepdims=True), 1e-300))
    return tuple(out)


@inner
def _collect(order, conditionals, up, message, scale):
    """Send messages towards node 0; return the log of the product of their scales."""
    k, value = conditionals.shape[1], 0.0
    for e in range(order.shape[0] - 1, -1, -1):
        parent, child = order[e, 0], order[e, 1]
        size = 0.0
        for s in range(k):
            own = 0.0
            for t in range(k):
                own += conditionals[child, s, t] * up[child, t]
            message[child, s] = own
            size += own
        size = max(size, 1e-300)
        scale[child] = size
        value += math.log(size)
        top = 0.0
        for s in range(k):
            message[child, s] /= size
            up[parent, s] *= message[child, s]
            top = max(top, up[parent, s])
        if 0.0 < top < _SMALL:
            value += math.log(top)
            for s in range(k):
                up[parent, s] /= top
    return value


@kernel
def expected_counts(rows, weight, order, root, conditionals, counts, shares):
    """Add up how often each two states of the ends of each edge are expected, and return the log likelihood.

    Parameters
    ----------
    rows : (n, m) ndarray of int
        States of the first m nodes.
    weight : (n,) ndarray of float
    order : (edges, 2) ndarray of int
        Nearer and farther end of each edge, from node 0 outwards.
    root : (k,) ndarray
    conditionals : (nodes, k, k) ndarray
    counts : (nodes, k, k) ndarray
        Receives the sums, in the row of the farther end.
    shares : (k,) ndarray
        Receives those of node 0.
    """
    nodes, k = conditionals.shape[0], conditionals.shape[1]
    up, message, belief = np.empty((nodes, k)), np.empty((nodes, k)), np.empty((nodes, k))
    scale, total = np.empty(nodes), 0.0
    for r in range(rows.shape[0]):
        for node in range(nodes):
            for s in range(k):
                up[node, s] = 1.0 if node >= rows.shape[1] or rows[r, node] == s else 0.0
                belief[node, s] = 0.0
        value = _collect(order, conditionals, up, message, scale)
        size = 0.0
        for s in range(k):
            size += up[0, s] * root[s]
        size = max(size, 1e-300)
        total += weight[r] * (value + math.log(size))
        for s in range(k):
            belief[0, s] = up[0, s] * root[s] / size
            shares[s] += weight[r] * belief[0, s]
        for e in range(order.shape[0]):
            parent, child = order[e, 0], order[e, 1]
            for s in range(k):
                if message[child, s] > 0.0:
                    outside = belief[parent, s] / (message[child, s] * scale[child])
                    for t in range(k):
                        joint = outside * conditionals[child, s, t] * up[child, t]
                        belief[child, t] += joint
                        counts[child, s, t] += weight[r] * joint
    return total


def _draw(weights, rng) -> np.ndarray:
    """Draw a position of each row with probabilities in proportion to weights."""
    total = weights.cumsum(axis=1)
    u = rng.random((len(weights), 1)) * total[:, -1:]
    return np.minimum((u >= total).sum(axis=1), weights.shape[1] - 1)
