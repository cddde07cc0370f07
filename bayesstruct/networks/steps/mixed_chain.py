"""Graph and parameters of a network of columns of several kinds, moved given a complete table."""

import math

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bayesstruct.networks.kernels.scores.mixed import MixedScore

__all__ = ["MixedChain"]

_NEAR = 0.25  # share of refreshed columns that are moved near their last parameters too


class MixedChain:
    """Graph and parameters of a network of columns of several kinds, moved by Markov chain Monte Carlo.

    Parameters
    ----------
    score : MixedScore
    graph : (d, d) int8 array
        Changed in place.
    theta : list of arrays, optional
        Free parameters of each column; drawn from the proposals if not given.
    rng : numpy.random.Generator
    """

    def __init__(self, score: "MixedScore", graph: np.ndarray, rng, theta=None):
        self.score, self.graph, self.rng = score, graph, rng
        self.fits = [score.fit(i, np.flatnonzero(own)) for i, own in enumerate(graph.T)]
        drawn = theta is None
        self.theta = [fit.draw(rng) for fit in self.fits] if drawn else theta
        self.weight = [f.log_weight(t) for f, t in zip(self.fits, self.theta, strict=True)]

    def move(self, change) -> float:
        """Propose a change of the graph; return the share of its columns whose new parameters were accepted, NaN without any.

        Parameters
        ----------
        change : callable
            Of a generator and a graph, which it changes in place; reversible under the approximate posterior, or what it returns is the log
            of the ratio by which it is to be corrected (:mod:`bayesstruct.networks.steps.mixed_moves`).
        """
        new = self.graph.copy()
        correction = change(self.rng, new) or 0.0
        columns = np.flatnonzero((new != self.graph).any(axis=0))
        if not len(columns):
            return np.nan
        fits = [self.score.fit(int(i), np.flatnonzero(new[:, i])) for i in columns]
        theta = [fit.draw(self.rng) for fit in fits]
        weight = [fit.log_weight(t) for fit, t in zip(fits, theta, strict=True)]
        if not self._accepts(correction + sum(weight) - sum(self.weight[i] for i in columns)):
            return 0.0
        self.graph[:] = new
        for a, i in enumerate(columns.tolist()):
            self.fits[i], self.theta[i], self.weight[i] = fits[a], theta[a], weight[a]
        return 1.0

    def refresh(self) -> None:
        """Move the parameters given the graph: from the proposals, and near the last ones."""
        for i, fit in enumerate(self.fits):
            theta = fit.draw(self.rng)
            weight = fit.log_weight(theta)
            if self._accepts(weight - self.weight[i]):
                self.theta[i], self.weight[i] = theta, weight
            if not fit.exact and self.rng.random() < _NEAR:
                self._move_near(i, fit)

    def _move_near(self, i, fit):
        theta = fit.move(self.rng, self.theta[i])
        if self._accepts(fit.log_target(theta) - fit.log_target(self.theta[i])):
            self.theta[i], self.weight[i] = theta, fit.log_weight(theta)

    def _accepts(self, log_ratio) -> bool:
        return log_ratio >= 0.0 or self.rng.random() < math.exp(log_ratio)

    def vector(self) -> np.ndarray:
        """Return the vector of all parameters."""
        out = np.zeros(self.score.layout.size)
        for fit, theta in zip(self.fits, self.theta, strict=True):
            fit.natural(theta, out)
        return out
