"""Parts of the step of networks of columns of several kinds that serve tables with missing values.

Each completed table has evidences of its own. For a few columns those of all parent sets are made anew each time, so that a proposal does not
depend on the last graph; beyond, single arcs are changed, with evidences of the parent sets that are proposed.
"""

import math

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.kernels.samplers.arc_proposals import parents_of, propose_arc, put
from bayesstruct.networks.solvers.parent_search import chain_start, search_tables

if TYPE_CHECKING:
    from bayesstruct.networks.exact.problem import NetworkProblem
    from bayesstruct.networks.recognition.mixed import RecognizedMixture

__all__ = ["ArcMoves", "Completed"]

_CANDIDATES = 5  # parents of each column in the search for a graph that a chain begins at


class ArcMoves:
    """Changes of single arcs, with evidences that are made when they are asked for.

    Parameters
    ----------
    problem : NetworkProblem
        Its score is a `MixedScore`.
    """

    def __init__(self, problem: "NetworkProblem"):
        self.problem = problem

    def changes(self):
        """List changes of a graph, in place, that are reversible under the approximate posterior."""
        d = self.problem.d
        return [self._arc] * (2 * d * (d - 1))

    def _arc(self, rng, graph):
        if (changed := propose_arc(rng, graph)) is None:
            return
        ratio = sum(
            self._log(i, own) - self._log(i, parents_of(graph, i)) for i, own in changed.items()
        )
        if ratio >= 0.0 or rng.random() < math.exp(ratio):
            put(graph, changed)

    def _log(self, i, parents):
        prior = self.problem.prior.local(i, parents)
        return prior + self.problem.score.fit(i, parents).score if prior > -math.inf else prior

    def start(self, rng, graph):
        """Return where a chain begins: at a graph of a short search, unless it was given one."""
        if graph.any():
            return graph
        return chain_start(self.problem, search_tables(self.problem, size=_CANDIDATES), rng)

    def left_out(self, rng, graph):
        """Odds of parent sets that are left out: none is."""
        return 0.0

    def log_score(self, graph):
        """Log score of a graph."""
        return float(sum(self._log(i, parents_of(graph, i)) for i in range(len(graph))))


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
        for j in np.flatnonzero(self.missing.any(axis=0)):
            own = self.missing[:, j]
            self.z[own, j] = rng.choice(self.z[~own, j], own.sum())
        self._write(point)

    def graphs(self, point):
        """Return the moves of the graph given the completed table."""
        self.z[self.missing] = (np.asarray(point[self.name]) - self.location) / self.scale
        return self.moves(replace(self.problem, score=self.network.score(self.z)))

    def end(self, rng, point, graph, vector):
        """Draw the missing values given graph and parameters, into the point."""
        from bayesstruct.networks.kernels.mixed_gaps import draw_gaps

        gaps, z = self.gaps, self.z[self.gaps]
        layout = self.network.layout
        draw_gaps(rng, layout, vector, graph, z, self.missing[gaps], self.free[gaps])
        self.z[gaps] = z
        self._write(point)

    def _write(self, point):
        point[self.name] = self.location + self.scale * self.z[self.missing]
