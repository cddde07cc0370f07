"""Conditional distributions of each column of a network with columns of several kinds, in complete tables."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.networks.kernels.mixed_layout import MixedLayout

if TYPE_CHECKING:
    import xarray as xr

    from numpy.random import Generator

__all__ = ["DrawnMixed", "drawn_mixed"]

_POINTS = 33  # of grids of which moments are taken


class DrawnMixed:
    """A network with columns of several kinds: one draw of its parameters.

    Parameters
    ----------
    layout : MixedLayout
    vector : (size,) ndarray of float
    location, scale : (d,) ndarray of float
        Of numbers; 0 and 1 of states.
    """

    def __init__(
        self, layout: MixedLayout, vector: np.ndarray, location: np.ndarray, scale: np.ndarray
    ):
        self.layout, self.vector = layout, vector
        self.location, self.scale = location, scale

    def standard(self, x: np.ndarray) -> np.ndarray:
        """Return the table of standardised numbers, and states."""
        return (x - self.location) / self.scale

    def number_moments(
        self, x: np.ndarray, free: np.ndarray, i: int
    ) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """Means and standard deviations of a standardised number given its parents, and given all others, (n,) each.

        Parameters
        ----------
        x : (n, d) ndarray of float
            Complete table, in its units or as states 0, 1, ...
        free : (n, d) ndarray of bool
            False where values were set from outside.
        i : int
            The column.
        """
        from bayesstruct.networks.kernels.mixed_cells import NumberGrid, ValueDensity

        density = ValueDensity(self.layout, self.vector, self.standard(x), i, free)
        own = density.eta[0], np.full(len(x), density.spread)
        if not density.children:
            return own, own
        grid = NumberGrid(density, _POINTS)
        return own, (grid.mean, grid.sd)

    def state_logs(self, x: np.ndarray, free: np.ndarray, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Log probabilities of the states of a column given its parents, and given all others, (states, n) each."""
        from bayesstruct.networks.kernels.mixed_cells import ValueDensity
        from bayesstruct.networks.kernels.mixed_rows import state_probabilities

        density = ValueDensity(self.layout, self.vector, self.standard(x), i, free)
        own = state_probabilities(self.layout, i, density.eta, self.vector)
        return own, density.state_logs()

    def given_others(
        self, x: np.ndarray, free: np.ndarray, rng: "Generator"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Log density of each value given the others of its row, and a draw from that distribution, (n, d) each.

        Parameters
        ----------
        x, free
            As of `number_moments`.
        rng : numpy.random.Generator
        """
        logs, drawn = np.empty(x.shape), np.empty(x.shape)
        for i in range(self.layout.d):
            own = self._number if self.layout.is_number(i) else self._state
            logs[:, i], drawn[:, i] = own(x, free, i, rng)
        return logs, drawn

    def _number(self, x, free, i, rng):
        from bayesstruct.networks.kernels.mixed_cells import NumberGrid, ValueDensity

        z = self.standard(x)
        grid = NumberGrid(ValueDensity(self.layout, self.vector, z, i, free))
        drawn = self.location[i] + self.scale[i] * grid.draw(rng.random(len(x)))
        return grid.log_density(z[:, i]) - np.log(self.scale[i]), drawn

    def _state(self, x, free, i, rng):
        logs = self.state_logs(x, free, i)[1]
        drawn = (logs + rng.gumbel(size=logs.shape)).argmax(axis=0)
        return logs[x[:, i].astype(int), np.arange(len(x))], drawn


def drawn_mixed(
    draws: "xr.Dataset", layout: MixedLayout, location: np.ndarray, scale: np.ndarray
) -> Callable[[int, int], DrawnMixed]:
    """Return the network of each draw, by the positions of its chain and of the draw.

    Parameters
    ----------
    draws : xarray.Dataset
        With ``parameter`` over chain and draw.
    layout : MixedLayout
    location, scale : (d,) ndarray of float
    """
    vectors = draws["parameter"].transpose(*SAMPLE_DIMS, "term").values

    def of_draw(c, d):
        return DrawnMixed(layout, vectors[c, d], location, scale)

    return of_draw
