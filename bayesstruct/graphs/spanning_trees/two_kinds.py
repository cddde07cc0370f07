r"""Sums over trees on nodes of two kinds, in which the inner nodes form a tree among themselves.

No path then leads from an inner node over outer ones to another inner node. So the outer nodes form a tree with one more node, which stands for
all inner ones: an outer node i may be joined to it by a line to any inner node z. With the weights :math:`\sum_z w_{zi}` of these lines
the sum over all such trees is a product,

.. math:: Z = Z(\text{inner nodes}) \; Z(\text{outer nodes and one for all inner ones}),

and given the two trees the inner ends of the lines are independent, z with a probability in proportion to :math:`w_{zi}`.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import generator
from bayesstruct.graphs.spanning_trees.maximum import maximum_spanning_forest
from bayesstruct.graphs.spanning_trees.sums import (
    DisconnectedError,
    SpanningTrees,
    cut_nodes,
    log_tree_sum,
    log_weight_matrix,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["TreesOfTwoKinds", "all_trees", "log_sums", "maximum_tree_of"]


class TreesOfTwoKinds:
    """All spanning trees whose inner nodes form a tree, each with a probability in proportion to the product of its weights.

    Parameters
    ----------
    log_weights : (n, n) array_like of float
        Symmetric, -inf where there is no line.
    outer : (n,) array_like of bool
        True for outer nodes, False for inner ones; there are some of both.

    Attributes
    ----------
    n : int
        Number of nodes.
    log_weights : (n, n) ndarray of float
    outer : (n,) ndarray of bool

    Raises
    ------
    ValueError
        If `log_weights` is no such matrix, or no tree is left (a `DisconnectedError`).

    Examples
    --------
    >>> import numpy as np
    >>> trees = TreesOfTwoKinds(np.zeros((4, 4)), [False, False, True, True])
    >>> round(np.exp(trees.log_total))  # of 16 trees
    8
    """

    def __init__(self, log_weights: "ArrayLike", outer: "ArrayLike"):
        self.log_weights = log_weight_matrix(log_weights)
        self.n, self.outer = len(self.log_weights), np.asarray(outer, bool)
        self._inner_nodes, self._outer_nodes = (
            np.flatnonzero(~self.outer),
            np.flatnonzero(self.outer),
        )
        inner, whole = _parts(self.log_weights, outer)
        self._inner = _some_trees(inner, self._inner_nodes.tolist())
        self._outer = _some_trees(whole, [self._inner_nodes[0], *self._outer_nodes])

    @property
    def log_total(self) -> float:
        """Logarithm of the sum over all trees."""
        return self._inner.log_total + self._outer.log_total

    def log_mean(self, log_factors: np.ndarray) -> float:
        """Log of the mean over all trees of the product of factors of their lines; see :meth:`SpanningTrees.log_mean`."""
        parts = _parts(self.log_weights + log_factors, self.outer)
        return sum(map(log_tree_sum, parts)) - self.log_total

    @cached_property
    def _ends(self) -> np.ndarray:
        """Probability of each inner node to be the end of a line to an outer one, (inner, outer)."""
        cross = self.log_weights[np.ix_(self._inner_nodes, self._outer_nodes)]
        sums = log_sums(cross, axis=0)
        return np.exp(cross - np.where(np.isfinite(sums), sums, 0.0))

    @cached_property
    def probabilities(self) -> np.ndarray:
        """Probability that a tree has each line, (n, n), symmetric; sums to n - 1 over the lines."""
        out, outer = np.zeros((self.n, self.n)), self._outer.probabilities
        out[np.ix_(self._inner_nodes, self._inner_nodes)] = self._inner.probabilities
        out[np.ix_(self._outer_nodes, self._outer_nodes)] = outer[1:, 1:]
        cross = self._ends * outer[0, 1:]
        out[np.ix_(self._inner_nodes, self._outer_nodes)] = cross
        out[np.ix_(self._outer_nodes, self._inner_nodes)] = cross.T
        return out

    def draw(self, draws: int, random_seed: Any = None) -> np.ndarray:
        """Draw independent trees; parameters and result are those of :meth:`SpanningTrees.draw`."""
        rng = generator(random_seed)
        inner = self._inner_nodes[self._inner.draw(draws, rng)]
        whole = self._outer.draw(draws, rng)
        lines = np.append(0, self._outer_nodes)[whole]
        # The first end of a line to node 0, which stands for all inner ones, is drawn.
        joined = whole[..., 0] == 0
        sums = np.cumsum(self._ends, axis=0)[:, whole[joined][:, 1] - 1]
        chosen = (rng.random(joined.sum()) * sums[-1] >= sums).sum(axis=0)
        lines[joined, 0] = self._inner_nodes[chosen]
        out = np.concatenate([inner, lines], axis=1)
        out.sort(axis=2)
        return out

    def log_probability(self, lines: "ArrayLike") -> float:
        """Logarithm of the probability of a tree; that `lines`, (n - 1, 2), form one is not checked."""
        first, second = np.asarray(lines, int).reshape(-1, 2).T
        return float(self.log_weights[first, second].sum() - self.log_total)


def _some_trees(logs: np.ndarray, nodes: list) -> SpanningTrees:
    """Return all trees of some of the nodes; an error names these as they are numbered among all."""
    try:
        return SpanningTrees(logs)
    except DisconnectedError:
        raise DisconnectedError(
            f"no tree joins all nodes and the inner ones among themselves: the lines whose weight is not 0 do not connect {cut_nodes(logs, nodes)}; "
            "give one of the missing lines a weight above 0 (its logarithm above -inf)"
        ) from None


def _parts(logs: np.ndarray, outer: "ArrayLike", join: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the inner nodes, and of the outer ones with node 0 for all inner ones, whose weights `join` gathers."""
    outer = np.asarray(outer, bool)
    whole = np.full((outer.sum() + 1,) * 2, -np.inf)
    whole[1:, 1:] = logs[np.ix_(outer, outer)]
    gathered = (join or log_sums)(logs[np.ix_(~outer, outer)], axis=0)
    whole[0, 1:] = whole[1:, 0] = gathered
    return logs[np.ix_(~outer, ~outer)], whole


def maximum_tree_of(log_weights: "ArrayLike", outer: "ArrayLike | None" = None) -> np.ndarray:
    """Lines, (n - 1, 2), of the tree of nodes of two kinds with the greatest sum of log weights.

    Parameters
    ----------
    log_weights : (n, n) array_like of float
        Symmetric; not all -inf between any part of the nodes and the rest.
    outer : (n,) array_like of bool, optional
        As of `TreesOfTwoKinds`. If all or none of the nodes are outer ones, there is one kind.
    """
    logs = log_weight_matrix(log_weights)
    if outer is None or np.all(outer) or not np.any(outer):
        return maximum_spanning_forest(logs)
    outer = np.asarray(outer, bool)
    inside, outside = np.flatnonzero(~outer), np.flatnonzero(outer)
    inner, whole = _parts(logs, outer, np.max)
    best = inside[logs[np.ix_(inside, outside)].argmax(axis=0)]
    lines = []
    for i, j in maximum_spanning_forest(whole).tolist():
        lines.append((best[j - 1] if i == 0 else outside[i - 1], outside[j - 1]))
    found = np.concatenate(
        [inside[maximum_spanning_forest(inner)], np.array(lines, int).reshape(-1, 2)]
    )
    found.sort(axis=1)
    return found[np.argsort(-logs[found[:, 0], found[:, 1]], kind="stable")]


def log_sums(logs: np.ndarray, axis: int) -> np.ndarray:
    """Logarithms of sums of exponentials along an axis; -inf where all are."""
    with np.errstate(divide="ignore"):
        return np.logaddexp.reduce(logs, axis=axis)


def all_trees(
    log_weights: "ArrayLike", outer: "ArrayLike | None" = None
) -> "SpanningTrees | TreesOfTwoKinds":
    """Return all spanning trees, or those of nodes of two kinds if `outer` marks some of the nodes, not all."""
    if outer is None or np.all(outer) or not np.any(outer):
        return SpanningTrees(log_weights)
    return TreesOfTwoKinds(log_weights, outer)
