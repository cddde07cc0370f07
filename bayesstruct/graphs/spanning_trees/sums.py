"""Distributions over spanning trees whose probability is a product over their lines."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import generator, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

__all__ = [
    "DisconnectedError",
    "SpanningTrees",
    "cut_nodes",
    "log_tree_sum",
    "log_weight_matrix",
    "rooted",
    "rooted_forest",
]

#: Powers of 2 by which lines that some tree needs may differ: their logarithms then have an error of about 1e-6.
_WIDEST = 10**10


class DisconnectedError(ValueError):
    """No tree joins all nodes."""


class _TooWideError(ValueError):
    """Weights differ by more than their logarithms can say."""


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
        i, j = np.argwhere(np.isnan(logs) | (logs == np.inf))[0]
        raise ValueError(
            f"the weight of nodes {i} and {j} is {logs[i, j]}, and weights are neither NaN nor infinite; -inf, the logarithm of 0, is allowed"
        )
    finite = np.isfinite(logs)
    size = np.abs(logs[finite]).max(initial=1.0)
    same = (finite == finite.T) & np.isclose(logs, logs.T, rtol=0, atol=1e-9 * size)
    if not same.all():
        i, j = np.argwhere(~same)[0]
        raise ValueError(
            f"weights of lines are not symmetric, those of nodes {i} and {j} are {logs[i, j]:g} and {logs[j, i]:g}: lines have no "
            "direction (see maximum_branching)"
        )
    return logs


@dataclass(frozen=True, eq=False)
class _Scaled:
    """Weights in the units of :mod:`bayesstruct.graphs.spanning_trees.elimination`, nodes in Prim's order.

    Attributes
    ----------
    order, exponents : (n,) ndarray of int
    units : (n, n) ndarray of int
    weights : (n, n) ndarray of float
        Lower triangles.
    """

    order: np.ndarray
    exponents: np.ndarray
    units: np.ndarray
    weights: np.ndarray

    @classmethod
    def read(cls, logs: np.ndarray) -> "_Scaled | None":
        """Scale weights of at most 1; None if there is no tree."""
        from bayesstruct.graphs.spanning_trees.elimination import prim_order, scale_weights

        n = len(logs)
        order, exponents = np.empty(n, np.int64), np.empty(n, np.int64)
        if not prim_order(logs, order, exponents):
            return None
        if exponents.min(initial=0) < -_WIDEST:
            raise _TooWideError(
                f"logarithms of weights of lines that a tree needs differ by more than {_WIDEST * np.log(2.0):.0e}, beyond which "
                "probabilities cannot be computed; they are logarithms: if weights were meant, take numpy.log of them"
            )
        units, weights = np.zeros((n, n), np.int64), np.zeros((n, n))
        scale_weights(logs, order, exponents, units, weights)
        return cls(order, exponents, units, weights)

    def eliminate(self, weights: np.ndarray) -> np.ndarray:
        """Eliminate all nodes but the first in `weights`; return the mass of each node."""
        masses = np.ones(len(weights))
        self._steps(weights, len(weights) - 1, 1, masses, np.empty((0, 0)))
        return masses

    def log_total(self, masses: np.ndarray) -> float:
        """Log sum over all trees from the masses of the nodes."""
        return float(np.log(masses[1:]).sum() + np.log(2.0) * self.exponents[1:].sum())

    def draw(self, rng: np.random.Generator, out: np.ndarray) -> None:
        """Draw trees, ends of lines as places in the order.

        The weights of all steps would be n matrices: about the square root of n of them are kept, and those between two of
        these are computed a second time.
        """
        from bayesstruct.graphs.spanning_trees.elimination import draw_over

        n, masses = len(self.order), np.ones(len(self.order))
        size = max(1, round(np.sqrt(n)))
        blocks = [(first, max(first - size + 1, 1)) for first in range(n - 1, 0, -size)]
        weights, kept = self.weights.copy(), []
        for first, last in blocks:
            kept.append(weights[: first + 1, : first + 1].copy())
            self._steps(weights, first, last, masses, np.empty((0, 0)))
        shares = np.empty((size, max((n - 1) * (n - 2) // 2, 1)))
        places = np.empty(out.shape[:2], np.int32)
        for first, last in reversed(blocks):
            weights = kept.pop()
            self._steps(weights, first, last, masses, shares)
            for v in range(last, first + 1):
                draw_over(
                    rng, weights, self.units, self.exponents, v, shares[v - last], out, places
                )

    def _steps(self, weights, first, last, masses, shares):
        from bayesstruct.graphs.spanning_trees.elimination import eliminate

        eliminate(weights, self.units, self.exponents, first, last, masses, shares)


def log_tree_sum(log_weights: np.ndarray) -> float:
    """Log sum of the weights of all spanning trees.

    Parameters
    ----------
    log_weights : (n, n) ndarray of float
        Symmetric; not checked. The diagonal is not used.

    Returns
    -------
    float
        -inf if there is no tree, NaN if weights differ too much to say.
    """
    most = _largest(log_weights)
    try:
        scaled = _Scaled.read(log_weights - most)
    except _TooWideError:
        return np.nan
    if scaled is None:
        return -np.inf
    return scaled.log_total(scaled.eliminate(scaled.weights)) + (len(log_weights) - 1) * most


def _largest(logs: np.ndarray) -> float:
    """Log weight of the heaviest line, 0 without lines. Divided by it, trees have the same probabilities, and no log weight is too large."""
    beside = np.where(np.eye(len(logs), dtype=bool), -np.inf, logs)
    most = float(beside.max(initial=-np.inf))
    return most if np.isfinite(most) else 0.0


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

    Raises
    ------
    ValueError
        If `log_weights` is no such matrix, the graph is not connected (a `DisconnectedError`), or log weights differ by more than some 1e10.

    Notes
    -----
    Sum and probabilities take :math:`O(n^3)` operations and some matrices of n x n numbers, a draw :math:`O(n^2)` operations and
    all draws together :math:`O(n^{2.5})` numbers, however much the weights differ: random walks (Wilson 1996) take exponentially long where groups of nodes are joined by light lines. See
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
        self.log_weights = log_weight_matrix(log_weights)
        self.n = len(self.log_weights)
        self._most = _largest(self.log_weights)
        scaled = _Scaled.read(self.log_weights - self._most)
        if scaled is None:
            raise DisconnectedError(
                f"no tree joins all nodes: the lines whose weight is not 0 do not connect {cut_nodes(self.log_weights)}; give one of "
                "the missing lines a weight above 0 (its logarithm above -inf)"
            )
        self._scaled = scaled

    @cached_property
    def _eliminated(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights after elimination of all nodes but the first, and the mass of each node."""
        weights = self._scaled.weights.copy()
        return weights, self._scaled.eliminate(weights)

    @cached_property
    def log_total(self) -> float:
        """Logarithm of the sum over all trees."""
        return self._log_total + (self.n - 1) * self._most

    @cached_property
    def _log_total(self) -> float:
        """The same in units of the heaviest line, in which it is no difference of large numbers."""
        return self._scaled.log_total(self._eliminated[1])

    @cached_property
    def probabilities(self) -> np.ndarray:
        """Probability that a tree has each line, (n, n), symmetric; sums to n - 1 over the lines."""
        from bayesstruct.graphs.spanning_trees.elimination import line_probabilities

        out, own = np.empty((self.n, self.n)), self._scaled
        ways, masses = self._eliminated
        logs = self.log_weights - self._most
        line_probabilities(logs, own.order, ways, own.units, own.exponents, masses, out)
        return out

    def log_mean(self, log_factors: np.ndarray) -> float:
        """Log of the mean over all trees of the product of factors of their lines.

        Parameters
        ----------
        log_factors : (n, n) ndarray of float
            Symmetric; not checked. The diagonal is not used.
        """
        return log_tree_sum(self.log_weights + log_factors) - self.log_total

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
        out = np.empty((whole_number("draws", draws, 0), self.n - 1, 2), np.int64)
        self._scaled.draw(generator(random_seed), out)
        out = self._scaled.order[out]
        out.sort(axis=2)
        return out

    def log_probability(self, lines: "ArrayLike") -> float:
        """Logarithm of the probability of a tree.

        Parameters
        ----------
        lines : (n - 1, 2) array_like of int
            Of a spanning tree; that it is one is not checked.
        """
        first, second = np.asarray(lines, int).reshape(-1, 2).T
        return float((self.log_weights[first, second] - self._most).sum() - self._log_total)


def cut_nodes(logs: np.ndarray, names: "Sequence[Any] | None" = None) -> str:
    """Name a node of the smallest part, and one that no line connects with it.

    Parameters
    ----------
    logs : (n, n) ndarray of float
        Log weights, which leave no tree.
    names : (n,) sequence, optional
        What the nodes are called; by default their numbers.
    """
    from scipy.sparse.csgraph import connected_components

    _, part = connected_components(np.isfinite(logs), directed=False)
    inside = part == np.bincount(part).argmin()
    ends = np.flatnonzero(inside)[0], np.flatnonzero(~inside)[0]
    first, second = ends if names is None else (names[k] for k in ends)
    return f"nodes {first} and {second}"


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
    parent = rooted_forest(lines, len(lines) + 1, root)
    if (parent < 0).sum() > 1:
        raise ValueError("the lines do not form a tree that joins all nodes")
    return parent


def rooted_forest(lines: "ArrayLike", n: int, root: int = 0) -> np.ndarray:
    """Direct the lines of a forest away from the root of each component.

    Parameters
    ----------
    lines : (lines, 2) array_like of int
    n : int
        Number of nodes.
    root : int
        Root of its component; those of others are their first nodes.

    Returns
    -------
    (n,) ndarray of int
        Parent of each node, -1 for roots. If lines form a cycle, some are left out.

    Examples
    --------
    >>> rooted_forest([(0, 1), (2, 3)], 5).tolist()
    [-1, 0, -1, 2, -1]
    """
    neighbours: list[list[int]] = [[] for _ in range(n)]
    for i, j in np.asarray(lines, int).reshape(-1, 2).tolist():
        neighbours[i].append(j)
        neighbours[j].append(i)
    parent = np.full(n, -2)
    for first in (root, *range(n)):
        if parent[first] != -2:
            continue
        parent[first], reached = -1, [first]
        for node in reached:
            for other in neighbours[node]:
                if parent[other] == -2:
                    parent[other] = node
                    reached.append(other)
    return parent
