"""Correlations along the edges of a tree with hidden normal nodes, by expectation-maximisation."""

from collections.abc import Sequence

import numpy as np

from bayesstruct.trees.kernels.climbing import climb

__all__ = ["GaussianTree", "outward"]

_LARGEST = 1.0 - 1e-6


class GaussianTree:
    """A tree of normal nodes with variance 1, of which the first m are observed.

    Parameters
    ----------
    lines : sequence of pairs of int
    correlations : sequence of float
        One for each edge.
    m : int

    Attributes
    ----------
    correlations : (edges,) ndarray
    log_likelihood : float
        Of the rows that `fit` had last, standardised.
    """

    def __init__(
        self, lines: Sequence[tuple[int, int]], correlations: Sequence[float] | np.ndarray, m: int
    ):
        self.lines = np.array(lines, int).reshape(-1, 2)
        self.correlations = _inside(np.array(correlations, float))
        self.m = m
        self.log_likelihood = -np.inf
        order = outward(self.lines)
        # Nodes are renumbered in this order, so that those before one are a slice.
        self._place = np.zeros(len(order) + 1, int)
        self._place[[child for *_, child in order]] = np.arange(1, len(order) + 1)
        self._walk = [(edge, int(self._place[parent])) for edge, parent, _ in order]

    def covariance(self) -> np.ndarray:
        """Correlations of all nodes: products along paths."""
        out, r = np.eye(len(self._place)), self.correlations.tolist()
        for k, (edge, parent) in enumerate(self._walk, 1):
            out[k, :k] = out[:k, k] = r[edge] * out[parent, :k]
        return out[np.ix_(self._place, self._place)]

    def moments(self, s: np.ndarray) -> np.ndarray:
        """Return the expected second moments of all nodes given those of the observed ones.

        Parameters
        ----------
        s : (m, m) ndarray
        """
        return self._moments(s, self.covariance())

    def _moments(self, s, full) -> np.ndarray:
        m = self.m
        slope = np.linalg.solve(full[:m, :m], full[:m, m:]).T
        out = np.empty_like(full)
        out[:m, :m] = s
        out[m:, :m] = slope @ s
        out[:m, m:] = out[m:, :m].T
        out[m:, m:] = full[m:, m:] - slope @ full[:m, m:] + slope @ s @ slope.T
        return out

    def fit(
        self, s: np.ndarray, n: int, *, tol: float = 1e-4, max_iter: int = 2000
    ) -> "GaussianTree":
        """Raise the likelihood until a step gains less than `tol`.

        Parameters
        ----------
        s : (m, m) ndarray
            Correlations of n rows.
        n : int
        tol : float
            In units of the log likelihood.
        max_iter : int
        """
        a, b = self.lines.T

        def evaluate(r):
            self.correlations = r
            full = self.covariance()
            moments = self._moments(s, full) if self.m <= len(self.lines) else s
            sd = np.sqrt(moments.diagonal())
            return self._likelihood(s, n, full), _inside(moments[a, b] / (sd[a] * sd[b]))

        def move(now, target, length):
            z = np.arctanh(now)
            return _inside(np.tanh(z + length * (np.arctanh(target) - z)))

        self.correlations, self.log_likelihood = climb(
            evaluate, move, self.correlations, tol=tol, max_iter=max_iter
        )
        return self

    def _likelihood(self, s, n, full) -> float:
        own = full[: self.m, : self.m]
        _, log_det = np.linalg.slogdet(own)
        trace = np.trace(np.linalg.solve(own, s))
        return float(-0.5 * n * (self.m * np.log(2.0 * np.pi) + log_det + trace))


def _inside(r) -> np.ndarray:
    """Correlations, kept from 1 and -1."""
    return np.clip(r, -_LARGEST, _LARGEST)


def outward(lines: np.ndarray) -> list[tuple[int, int, int]]:
    """Return the edges of a tree from node 0 outwards: number, nearer and farther end.

    Parameters
    ----------
    lines : (edges, 2) ndarray of int
    """
    near: list[list[tuple[int, int]]] = [[] for _ in range(len(lines) + 1)]
    for edge, (i, j) in enumerate(lines.tolist()):
        near[i].append((edge, j))
        near[j].append((edge, i))
    out, stack = [], [(0, -1)]
    while stack:
        node, parent = stack.pop()
        for edge, other in near[node]:
            if other != parent:
                out.append((edge, node, other))
                stack.append((other, node))
    return out
