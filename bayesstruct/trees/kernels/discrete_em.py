"""Probabilities of a tree with hidden nodes of states, by expectation-maximisation."""

from collections.abc import Sequence

import numpy as np

from bayesstruct.trees.kernels.gaussian_em import outward

__all__ = ["DiscreteTree"]


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
        up, *_ = self._inward(codes)
        out = np.empty((len(codes), len(self.parents)), np.int64)
        out[:, 0] = _draw(up[0] * self.root, rng)
        for _, parent, child in self.order:
            out[:, child] = _draw(up[child] * self.conditionals[child][out[:, parent]], rng)
        return out

    def fit(self, codes: np.ndarray, *, tol: float = 1e-4, max_iter: int = 2000) -> "DiscreteTree":
        """Raise the likelihood until an iteration gains less than `tol`.

        Parameters
        ----------
        codes : (n, m) ndarray of int
        tol : float
            In units of the log likelihood.
        max_iter : int
        """
        rows, weight = np.unique(codes, axis=0, return_counts=True)
        before = -np.inf
        for _ in range(max_iter):
            up, messages, total = self._inward(rows)
            self.log_likelihood = float(weight @ total)
            if self.log_likelihood - before < tol:
                break
            before = self.log_likelihood
            self._maximise(up, messages, weight)
        return self

    def _inward(self, rows):
        """Likelihoods of what is beyond each node, messages to parents, and log likelihoods of rows."""
        nodes, k = len(self.parents), self.k
        up = np.ones((nodes, len(rows), k))
        up[: self.m] = rows.T[:, :, None] == np.arange(k)
        messages = np.ones_like(up)
        total = np.zeros(len(rows))
        for _, parent, child in reversed(self.order):
            message = up[child] @ self.conditionals[child].T
            scale = np.maximum(message.sum(axis=1), 1e-300)
            messages[child] = message / scale[:, None]
            total += np.log(scale)
            up[parent] *= messages[child]
        total += np.log(np.maximum(up[0] @ self.root, 1e-300))
        return up, messages, total

    def _maximise(self, up, messages, weight) -> None:
        """Set all probabilities to expected shares."""
        belief = np.empty_like(up)
        own = up[0] * self.root
        belief[0] = own / np.maximum(own.sum(axis=1, keepdims=True), 1e-300)
        self.root = weight @ belief[0] / weight.sum()
        for _, parent, child in self.order:
            outside = belief[parent] / np.maximum(messages[child], 1e-300)
            # Both ends jointly: (rows, parent, child).
            joint = outside[:, :, None] * self.conditionals[child] * up[child][:, None, :]
            joint /= np.maximum(joint.sum(axis=(1, 2), keepdims=True), 1e-300)
            belief[child] = joint.sum(axis=1)
            counts = np.tensordot(weight, joint, 1)
            seen = counts.sum(axis=1, keepdims=True)
            self.conditionals[child] = np.where(
                seen > 1e-12, counts / np.maximum(seen, 1e-12), self.conditionals[child]
            )


def _draw(weights, rng) -> np.ndarray:
    """Draw a position of each row with probabilities in proportion to weights."""
    total = weights.cumsum(axis=1)
    u = rng.random((len(weights), 1)) * total[:, -1:]
    return np.minimum((u >= total).sum(axis=1), weights.shape[1] - 1)
