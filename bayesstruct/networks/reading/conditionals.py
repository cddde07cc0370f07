"""Conditional distributions of the states of each column of a discrete Bayesian network."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.groups import SAMPLE_DIMS

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["DrawnNetwork", "drawn_networks"]


class DrawnNetwork:
    """A discrete network: one graph with its tables of probabilities.

    Parameters
    ----------
    dag : (d, d) ndarray of bool
        True at (parent, child).
    table : (d, cells) ndarray of float
    states : (d,) ndarray of int
    """

    def __init__(self, dag: np.ndarray, table: np.ndarray, states: np.ndarray):
        from bayesstruct.networks.kernels.configurations import strides

        self.states, self.step = states, strides(dag, states.tolist())
        self.children = [np.flatnonzero(row) for row in dag]
        with np.errstate(divide="ignore"):
            self.logs = np.log(table)

    def given_parents(self, x: np.ndarray) -> list[np.ndarray]:
        """Log probabilities (states, n) of each column given its parents in a complete table (n, d)."""
        return [
            self.logs[i][(x @ self.step[:, i]) * k + np.arange(k)[:, None]]
            for i, k in enumerate(self.states)
        ]

    def given_others(self, x: np.ndarray, free: np.ndarray) -> list[np.ndarray]:
        """Log probabilities (states, n) of each column given all others.

        Parameters
        ----------
        x : (n, d) ndarray of int
            Complete table.
        free : (n, d) ndarray of bool
            Values that were not set from outside: those have no distribution.
        """
        from scipy.special import logsumexp

        found = [self._joint(x, free, j) for j in range(len(self.states))]
        return [own - logsumexp(own, axis=0) for own in found]

    def _own(self, x, i):
        return self.logs[i][(x @ self.step[:, i]) * self.states[i] + x[:, i]]

    def _joint(self, x, free, j):
        out, other = np.zeros((self.states[j], len(x))), x.copy()
        for s in range(self.states[j]):
            other[:, j] = s
            out[s] = self._own(other, j)
            for child in self.children[j]:
                out[s] += np.where(free[:, child], self._own(other, child), 0.0)
        return out


def drawn_networks(draws: "xr.Dataset", states: np.ndarray) -> Callable[[int, int], DrawnNetwork]:
    """Return the network of each draw, by the positions of its chain and of the draw.

    Parameters
    ----------
    draws : xarray.Dataset
        With ``dag`` and ``table`` over chain and draw.
    states : (d,) ndarray of int
    """
    dags = draws["dag"].transpose(*SAMPLE_DIMS, "node", "node_").values
    tables = draws["table"].transpose(*SAMPLE_DIMS, "node", "cell").values

    def of_draw(c, d):
        return DrawnNetwork(dags[c, d] != 0, tables[c, d], states)

    return of_draw
