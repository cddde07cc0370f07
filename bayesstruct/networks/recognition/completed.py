"""Tables of recognised networks whose missing values are filled in."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.kernels.configurations import strides
from bayesstruct.networks.recognition.parameters import Regressions

if TYPE_CHECKING:
    from bayesstruct.networks.recognition.network import Network

__all__ = ["CompletedNumbers", "CompletedStates", "completed_table"]


class CompletedNumbers:
    """A table of numbers, standardised, whose missing values are filled in.

    Parameters
    ----------
    network : Network
    """

    def __init__(self, network):
        from bayesstruct.networks.kernels.parameters import row_patterns

        self.missing, self.mask = network.missing.name, network.mask
        self.table = table = network.table
        self.free, self.prior, shape = table.free, table.prior, table.x.shape
        self.location, self.spread = (
            np.broadcast_to(v, shape) for v in (table.location, table.spread)
        )
        self.z = (table.x - self.location) / self.spread
        self.z[self.mask.missing] = 0.0
        self.gaps, self.patterns = np.unique(self.mask.rows), row_patterns(self.free)
        self.regressions = Regressions(network)

    def fill(self, values):
        """Put the missing values, in the units of the table, into the rows."""
        missing = self.mask.missing
        self.z[missing] = (values - self.location[missing]) / self.spread[missing]

    def fill_at_random(self, rng):
        """Fill each missing value with one of the observed values of its column."""
        _hot_deck(rng, self.z, self.mask.missing)

    def score(self):
        """Local scores of the completed table."""
        return self.table.score(self.z)

    def draw(self, rng, graph, point):
        """Draw parameters given the graph, and missing values given both, into the point."""
        from bayesstruct.networks.kernels.missing_values import draw_missing_numbers
        from bayesstruct.networks.kernels.parameters import rows_times_rows

        own, free = self.regressions, self.free
        own.draw(rng, graph, rows_times_rows(self.z, free, self.patterns), point)
        missing, gaps = self.mask.missing, self.gaps
        z = self.z[gaps]
        drawn = own.intercept, own.weight, own.variance
        draw_missing_numbers(rng, *drawn, free[gaps], z, missing[gaps])
        self.z[gaps] = z
        point[self.missing] = (self.location + self.spread * self.z)[missing]


class CompletedStates:
    """A table of states whose missing values are filled in.

    Parameters
    ----------
    network : Network
    """

    def __init__(self, network):
        self.missing, self.mask = network.missing.name, network.mask
        self.table = table = network.table
        self.name, self.cells, self.sample_size = table.name, table.cells, table.weight
        self.states = np.array(table.states, np.int64)
        self.x, self.free = table.x.copy(), np.ascontiguousarray(table.free)
        self.x[self.mask.missing] = 0

    def fill(self, values):
        """Put states of the missing values into the rows."""
        self.x[self.mask.missing] = values

    def fill_at_random(self, rng):
        """Fill each missing value with one of the observed states of its column."""
        _hot_deck(rng, self.x, self.mask.missing)

    def score(self):
        """Local scores of the completed table."""
        return self.table.score(self.x)

    def draw(self, rng, graph, point):
        """Draw probability tables given the graph, and missing values given both, into the point."""
        from bayesstruct.networks.kernels.missing_values import draw_missing_states

        tables = self.table.draw_tables(rng, graph, self.table.columns(self.x), point)
        step = strides(graph, self.states)
        where = self.mask.rows, self.mask.columns
        draw_missing_states(rng, *where, self.x, self.free, self.states, step, tables)
        point[self.missing] = self.x[where]


def _hot_deck(rng, table, missing):
    for j in np.flatnonzero(missing.any(axis=0)):
        seen = table[~missing[:, j], j]
        table[missing[:, j], j] = rng.choice(seen, missing[:, j].sum())


def completed_table(network: "Network") -> CompletedNumbers | CompletedStates:
    """Table of a recognised network with missing values, these filled in with any values."""
    return (CompletedNumbers if network.gaussian else CompletedStates)(network)
