"""Parts of the step of networks of columns of several kinds that serve tables with missing values.

Each completed table has evidences of its own. For a few columns those of all parent sets are made anew each time, so that a proposal does not
depend on the last graph. Beyond, the evidences of one completed table, made once, *guide* the moves of the graph: the moves of complete tables, with
the evidences of those families alone that change. Changes of single arcs were not enough, since good graphs may differ in the
arcs among three or four columns at once.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.steps.mixed_chain import MixedChain
from bayesstruct.networks.steps.mixed_moves import GuidedMoves, PartitionMoves

if TYPE_CHECKING:
    from bayesstruct.networks.exact.problem import NetworkProblem
    from bayesstruct.networks.recognition.mixed import RecognizedMixture

__all__ = ["Completed", "guided_moves"]

_CANDIDATES = 6  # parents of each column to begin with, in the tables of a guide
_ROUNDS = 20  # draws of missing values until those of a guide
_SEED = 20170  # the guide is part of the sampler: all chains have the same


class Completed:
    """The table of a recognised network, standardised, whose missing values are filled in.

    Parameters
    ----------
    network : RecognizedMixture
    problem : NetworkProblem
        Of any completed table.
    moves : callable
        Returns for a problem the moves of its graph.
    """

    def __init__(self, network: "RecognizedMixture", problem: "NetworkProblem", moves):
        self.network, self.problem, self.moves = network, problem, moves
        self.missing = network.mask.missing
        self.name, self.z, self.free = network.missing_name, network.z.copy(), ~network.was_set
        self.gaps = np.flatnonzero(self.missing.any(axis=1))
        self.location, self.scale = (
            np.broadcast_to(v, self.z.shape)[self.missing]
            for v in (network.location, network.scale)
        )

    def begin(self, rng, point):
        """Fill each missing value with one of the observed values of its column."""
        self.fill_at_random(rng)
        self._write(point)

    def fill_at_random(self, rng):
        """Fill each missing value with one of the observed values of its column, in the rows."""
        for j in np.flatnonzero(self.missing.any(axis=0)):
            own = self.missing[:, j]
            self.z[own, j] = rng.choice(self.z[~own, j], own.sum())

    def completed_problem(self):
        """Return the problem of the completed table."""
        return replace(self.problem, score=self.network.score(self.z))

    def graphs(self, point):
        """Return the moves of the graph given the completed table."""
        self.z[self.missing] = (np.asarray(point[self.name]) - self.location) / self.scale
        return self.moves(self.completed_problem())

    def end(self, rng, point, graph, vector):
        """Draw the missing values given graph and parameters, into the point."""
        self.draw(rng, graph, vector)
        self._write(point)

    def draw(self, rng, graph, vector):
        """Draw the missing values given graph and parameters, in the rows."""
        from bayesstruct.networks.kernels.mixed_gaps import draw_gaps

        gaps, z = self.gaps, self.z[self.gaps]
        layout = self.network.layout
        draw_gaps(rng, layout, vector, graph, z, self.missing[gaps], self.free[gaps])
        self.z[gaps] = z

    def _write(self, point):
        point[self.name] = self.location + self.scale * self.z[self.missing]


def guided_moves(network: "RecognizedMixture", problem: "NetworkProblem") -> Callable:
    """Make moves of the graph, guided by one completed table: the end of a short run from a table that is filled at random.

    The guide decides how often moves are accepted, and not what is drawn; parameters of the run are therefore
    drawn anew in each round from their proposals.

    Parameters
    ----------
    network : RecognizedMixture
        With missing values.
    problem : NetworkProblem

    Returns
    -------
    callable
        Returns for the problem of a completed table the moves of its graph.
    """
    rng, table = np.random.default_rng(_SEED), Completed(network, problem, None)
    table.fill_at_random(rng)
    guide = PartitionMoves(table.completed_problem(), 1, _CANDIDATES)
    graph = np.array(guide.start(rng, np.zeros((problem.d, problem.d), np.int8)), np.int8)
    for _ in range(_ROUNDS):
        own = table.completed_problem()
        chain = MixedChain(own.score, graph, rng)
        for change in GuidedMoves(own, guide).changes():
            chain.move(change)
        table.draw(rng, chain.graph, chain.vector())
    return partial(GuidedMoves, guide=PartitionMoves(table.completed_problem(), 1, _CANDIDATES))
