"""Distributions over spanning trees whose probability is a product over their lines."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import generator, whole_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["SpanningTrees", "log_weight_matrix", "rooted"]


def log_weight_matrix(log_weights: "ArrayLike") -> np.ndarray:
    """Check a symmetric matrix of logarithms of weights; return a copy.

    Parameters
    ----------
    log_weights : (n, n) array_like of float
        -inf where there is no line. The diagonal is not used; it is returned as -inf.

    Raises
    ------
    ValueError
        If it is no such matrix.
    """
    logs = np.array(log_weights, float)
    if logs.ndim != 2 or logs.shape[0] != logs.shape[1] or not len(logs):
        raise ValueError(
            f"weights of lines are a square matrix, not an array of shape {logs.shape}"
        )
    np.fill_diagonal(logs, -np.inf)
    if np.isnan(logs).any() or (logs == np.inf).any():
        raise ValueError("a weight is NaN or infinite; -inf, the logarithm of 0, is allowed")
    finite = np.isfinite(logs)
    size = np.abs(logs[finite]).max(initial=1.0)
    if (finite != finite.T).any() or not np.allclose(
        logs[finite], logs.T[finite], rtol=0, atol=1e-9 * size
    ):
        raise ValueError(
            "weights of lines are not symmetric: lines have no direction (see maximum_branching)"
        )
    return logs


class SpanningTrees:
    r"""All spanning trees of a graph, each with a probability in proportion to the product of the weights of its lines.

    .. math:: P(T) = \frac1Z \prod_{ij \in T} w_{ij}

    Parameters
    ----------
    log_weights : (n, n) array_like of float
        Symmetric, the :math:`\log w_{ij}`; -inf where there is no line. The diagonal is not used.

    Attributes
    ----------
    n : int
        Number of nodes.
    log_weights : (n, n) ndarray of float
    log_total : float
        :math:`\log Z`.

    Raises
    ------
    ValueError
        If `log_weights` is no such matrix, or the graph is not connected.

    Notes
    -----
    Setting up takes :math:`O(n^3)` operations and :math:`n^3 / 6` numbers, a draw :math:`O(n^2)` operations, however
    much the weights differ: random walks (Wilson 1996) take exponentially long where groups of nodes are joined by light lines. See
    :mod:`bayesstruct.graphs.spanning_trees.elimination`.

    References
    ----------
    Wilson, D. B. (1996). Generating random spanning trees more quickly than the cover time. *STOC* 28, 296-303.

    Examples
    --------
    >>> import numpy as np
    >>> trees = SpanningTrees(np.zeros((4, 4)))
    >>> round(np.exp(trees.log_total))  # Cayley: n ** (n - 2)
    16
    >>> trees.probabilities[0, 1].round(12)
    np.float64(0.5)
    """

    def __init__(self, log_weights: "ArrayLike"):
        from bayesstruct.graphs.spanning_trees.elimination import eliminate, share_count

        self.log_weights = log_weight_matrix(log_weights)
        self.n = len(self.log_weights)
        self._joined = np.full((self.n, self.n), -np.inf)
        self._shares = np.empty(share_count(self.n))
        self.log_total = float(eliminate(self.log_weights.copy(), self._joined, self._shares))
        if self.log_total == -np.inf:
            raise ValueError(
                "no tree joins all nodes: the lines whose weight is not 0 do not connect them"
            )

    @cached_property
    def probabilities(self) -> np.ndarray:
        """Probability that a tree has each line, (n, n), symmetric; sums to n - 1 over the lines."""
        from bayesstruct.graphs.spanning_trees.elimination import line_probabilities

        out = np.empty((self.n, self.n))
        line_probabilities(self._joined, self._shares, out)
        return out

    def draw(self, draws: int, random_seed: Any = None) -> np.ndarray:
        """Draw independent trees.

        Parameters
        ----------
        draws : int
        random_seed : int or numpy.random.Generator, optional

        Returns
        -------
        (draws, n - 1, 2) ndarray of int
            The lines of each tree, ends in increasing order.
        """
        from bayesstruct.graphs.spanning_trees.elimination import draw_lines

        out = np.empty((whole_number("draws", draws, 0), self.n - 1, 2), np.int64)
        draw_lines(generator(random_seed), self._joined, self._shares, out)
        return out

    def log_probability(self, lines: "ArrayLike") -> float:
        """Logarithm of the probability of a tree.

        Parameters
        ----------
        lines : (n - 1, 2) array_like of int
            Of a spanning tree; that it is one is not checked.
        """
        first, second = np.asarray(lines, int).reshape(-1, 2).T
        return float(self.log_weights[first, second].sum() - self.log_total)


def rooted(lines: "ArrayLike", root: int) -> np.ndarray:
    """Direct the lines of a tree away from a root.

    Parameters
    ----------
    lines : (n - 1, 2) array_like of int
        Of a spanning tree.
    root : int

    Returns
    -------
    (n,) ndarray of int
        Parent of each node, -1 for the root.

    Raises
    ------
    ValueError
        If the lines do not form a spanning tree.

    Examples
    --------
    >>> rooted([(0, 1), (1, 2)], 2).tolist()
    [1, 2, -1]
    """
    lines = np.asarray(lines, int).reshape(-1, 2)
    n = len(lines) + 1
    neighbours: list[list[int]] = [[] for _ in range(n)]
    for i, j in lines.tolist():
        neighbours[i].append(j)
        neighbours[j].append(i)
    parent, reached = np.full(n, -2), [root]
    parent[root] = -1
    for node in reached:
        for other in neighbours[node]:
            if parent[other] == -2:
                parent[other] = node
                reached.append(other)
    if len(reached) < n:
        raise ValueError("the lines do not form a tree that joins all nodes")
    return parent
