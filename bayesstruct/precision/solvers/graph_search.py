"""Search for the most probable graph of normal columns under G-Wishart priors."""

from dataclasses import dataclass

import numpy as np

from scipy.special import betaln

from bayesstruct.precision.solvers.covariance_selection import (
    common_when_added,
    covariance_selection,
    laplace_log_constant,
)

__all__ = ["EdgePrior", "GraphScores", "climb_graph", "probable_graph"]

#: Columns up to which a second climb is made, from the graph of all edges.
_FEW = 10
#: Columns up to which a climb ends only when every flip was tried.
_MEDIUM = 20
#: With more columns, flips whose log odds at the mode of the matrix are further below zero are not tried.
_SLACK = 3.0


@dataclass(frozen=True)
class EdgePrior:
    """Prior of a graph whose edges are independent, given a common probability or not.

    Attributes
    ----------
    log_odds : (p, p) ndarray
        Infinite where an edge is required or forbidden.
    shapes : tuple of float, optional
        Of the beta distribution of the probability of all other edges, which is integrated out.
    """

    log_odds: np.ndarray
    shapes: tuple[float, float] | None = None

    @property
    def free(self) -> np.ndarray:
        """Pairs of the upper triangle that may have an edge or none, (p, p) bool."""
        return np.triu(np.isfinite(self.log_odds), 1)

    def log_probability(self, adjacency: np.ndarray) -> float:
        """Log prior probability up to a constant."""
        chosen, free = adjacency & self.free, self.free
        if self.shapes is None:
            return float(self.log_odds[chosen].sum())
        (alpha, beta), edges = self.shapes, chosen.sum()
        return float(betaln(alpha + edges, beta + free.sum() - edges))

    def odds_of_flips(self, adjacency: np.ndarray) -> np.ndarray:
        """Log odds of each edge given the number of others."""
        if self.shapes is None:
            return self.log_odds
        (alpha, beta), free = self.shapes, self.free
        others = (adjacency & free).sum() - (adjacency & (free | free.T))
        return np.log(alpha + others) - np.log(beta + free.sum() - 1 - others)


class GraphScores:
    r"""Log posterior probabilities of graphs, up to a constant, with the precision matrix integrated out.

    .. math:: \log p(G) + \log I_G(b + n, D + S) - \log I_G(b, D)

    The constants are exact on decomposable graphs; on others see
    :func:`bayesstruct.precision.solvers.covariance_selection.laplace_log_constant`.

    Parameters
    ----------
    scatter : (p, p) ndarray
        S.
    n : float
        Number of rows.
    degrees_of_freedom : float
        b, more than 2.
    scale : (p, p) ndarray
        D, diagonal.
    prior : EdgePrior
    """

    def __init__(self, scatter, n, degrees_of_freedom, scale, prior: EdgePrior):
        from bayesstruct.precision.kernels.g_wishart.constant_ratios import log_constant_ratio

        self.posterior = scale + scatter
        self.b, self.n, self.prior = float(degrees_of_freedom), float(n), prior
        self.half_logs = 0.5 * np.log(np.diag(scale))
        self.ratios = np.array([log_constant_ratio(self.b, float(d)) for d in range(len(scale))])

    def mode(self, adjacency: np.ndarray) -> np.ndarray:
        """Mode of the precision matrix given a graph."""
        target = self.posterior / (self.b + self.n - 2.0)
        return covariance_selection(target, adjacency, tol=1e-13).precision

    def score(self, adjacency: np.ndarray, mode: np.ndarray) -> float:
        """Log posterior probability of a graph up to a constant, given the mode of the matrix."""
        after = laplace_log_constant(adjacency, self.b + self.n, self.posterior, mode)
        before = self.ratios[common_when_added(adjacency)].sum()
        before -= (adjacency.sum(axis=1) * self.half_logs).sum()
        return self.prior.log_probability(adjacency) + after - float(before)

    def gains_of_flips(self, adjacency: np.ndarray, mode: np.ndarray) -> np.ndarray:
        """Log odds of flips at the mode of the matrix, all but one element of its Cholesky factor held fixed, (p, p).

        As in :mod:`bayesstruct.precision.kernels.g_wishart.graph_sweep`.
        """
        covariance = np.linalg.inv(mode)
        variance, own = np.diag(covariance), np.diag(self.posterior)
        # Of the diagonal only, where the determinant is zero.
        det = np.outer(variance, variance) - covariance**2 + np.eye(len(mode))
        root = np.sqrt(variance / det)
        without = (-covariance / det - mode) / root
        moved = without + self.posterior * root / own
        density = np.log(root) + 0.5 * np.log(2.0 * np.pi / own) + 0.5 * own * moved**2
        common = adjacency.astype(int) @ adjacency.astype(int)
        guess = self.ratios[np.minimum(common, len(mode) - 1)]
        guess = guess - self.half_logs - self.half_logs[:, None]
        odds = self.prior.odds_of_flips(adjacency) + density - guess
        return np.where(adjacency, -odds, odds)


def climb_graph(
    scores: GraphScores, start: np.ndarray, max_flips: int = 100_000
) -> tuple[np.ndarray, float, int]:
    """Flip one edge at a time, the most promising first, while that raises the posterior probability.

    Parameters
    ----------
    scores : GraphScores
    start : (p, p) bool ndarray
        Symmetric, with the edges that are required and none that is forbidden.
    max_flips : int

    Returns
    -------
    adjacency : (p, p) bool ndarray
    score : float
    flips : int
        `max_flips` if the climb was stopped by it.
    """
    adjacency = start.copy()
    mode = scores.mode(adjacency)
    best = scores.score(adjacency, mode)
    for flips in range(max_flips):
        for i, j in _promising(scores, adjacency, mode):
            other = adjacency.copy()
            other[i, j] = other[j, i] = not adjacency[i, j]
            matrix = scores.mode(other)
            score = scores.score(other, matrix)
            if score > best + 1e-8:
                adjacency, mode, best = other, matrix, score
                break
        else:
            return adjacency, best, flips
    return adjacency, best, max_flips


def probable_graph(scores: GraphScores, max_flips: int = 100_000) -> tuple[np.ndarray, bool]:
    """Climb from the graph of the required edges alone and, with few columns, from that of all edges; return the better end.

    Parameters
    ----------
    scores : GraphScores
    max_flips : int
        Bound for each climb.

    Returns
    -------
    adjacency : (p, p) bool ndarray
    finished : bool
        Whether both climbs ended by themselves.
    """
    odds = scores.prior.log_odds
    required, off = odds == np.inf, ~np.eye(len(odds), dtype=bool)
    starts = [required & off]
    if len(odds) <= _FEW:
        starts.append((odds > -np.inf) & off)
    ends = [climb_graph(scores, start, max_flips) for start in starts]
    best = max(ends, key=lambda end: end[1])
    return best[0], all(flips < max_flips for _, _, flips in ends)


def _promising(scores: GraphScores, adjacency: np.ndarray, mode: np.ndarray):
    """Pairs whose flip is tried, in order."""
    gains = scores.gains_of_flips(adjacency, mode)
    pairs = np.argwhere(scores.prior.free)
    values = gains[tuple(pairs.T)]
    order = np.argsort(-values, kind="stable")
    if len(adjacency) > _MEDIUM:
        order = order[values[order] > -_SLACK]
    return pairs[order]
