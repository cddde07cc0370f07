"""Moves of the graph of a network of columns of several kinds, one kind at a time.

Each takes a generator and a graph, which it changes in place, and is reversible under the approximate posterior of graphs: the exponential
of local scores and log prior weights. Or it returns a *correction*, the log of the ratio of the approximate posterior to that under
which it is reversible, at the new graph less that at the old one.
"""

import math

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.kernels.samplers.arc_proposals import parents_of, propose_arc, put
from bayesstruct.networks.steps.graphs import IndependentGraphs, PartitionGraphs

if TYPE_CHECKING:
    from bayesstruct.networks.exact.problem import NetworkProblem

__all__ = ["GuidedMoves", "IndependentMoves", "PartitionMoves"]

_FOUR = 4  # variables of a block that is drawn at random; there must be more


class IndependentMoves(IndependentGraphs):
    """Graphs drawn independently of the last one."""

    def changes(self):
        """List changes of a graph, in place, that are reversible under the approximate posterior."""
        return [self._draw]

    def _draw(self, rng, graph):
        graph[:] = self.draws(rng)


class PartitionMoves(PartitionGraphs):
    """Moves of a partition or of arcs of a graph, one kind at a time."""

    def changes(self):
        """List changes of a graph, in place, that are reversible under the approximate posterior."""
        d, blocks = self.tables.d, self.blocks
        moves = [
            self._of_partition(1, 0, 0),
            self._of_partition(0, 1, 0),
            self._of_partition(0, 0, 1),
        ]
        moves = moves * (d // 8 + 1) + ([self._four] if d > _FOUR else [])
        moves += [self._of_arcs(0, 1, 0)] * (d // 4) + [self._of_arcs(1, 0, 0)] * (d // 2)
        return [*moves, self._of_arcs(0, 0, d), *([self._block] if blocks else [])]

    def _of_partition(self, *counts):
        from bayesstruct.networks.kernels.samplers.partition_mcmc import Moves, sweep

        moves = Moves(*counts, 0)
        return lambda rng, graph: sweep(rng, self.tables, graph, moves)

    def _of_arcs(self, *counts):
        from bayesstruct.networks.kernels.samplers.structure_mcmc import Moves, sweep

        moves = Moves(*counts)
        return lambda rng, graph: sweep(rng, self.tables, graph, moves)

    def _four(self, rng, graph):
        from bayesstruct.networks.kernels.samplers.parent_blocks import draw_blocks

        draw_blocks(rng, self.tables, graph, _FOUR, 1)

    def _block(self, rng, graph):
        from bayesstruct.networks.kernels.samplers.parent_blocks import draw_block

        draw_block(rng, self.tables, graph, self.blocks[rng.integers(len(self.blocks))])


class GuidedMoves:
    """Moves of the graph of a table for which no tables of parent sets are made: they are those of a similar table.

    Moves that are reversible under the scores of another table, the *guide*, are corrected by the evidences of those families alone that
    change. Changes of single arcs visit the graphs that the tables of the guide leave out.

    Parameters
    ----------
    problem : NetworkProblem
        Its score is a `MixedScore` of the table.
    guide : PartitionMoves
        Of a table with the same columns and rows, and the same prior.
    """

    def __init__(self, problem: "NetworkProblem", guide: PartitionMoves):
        self.problem, self.guide = problem, guide

    def changes(self):
        """List changes of a graph, in place, that return the log ratio by which they have to be corrected."""
        return [self._guided(own) for own in self.guide.changes()] + [self._arc] * self.problem.d

    def _guided(self, change):
        from bayesstruct.networks.kernels.parent_tables import family_scores

        def corrected(rng, graph):
            old, before = graph.copy(), family_scores(self.guide.tables, graph)
            if not np.isfinite(before).all():  # left out by the tables, so that no move leads here
                return 0.0
            change(rng, graph)
            after = family_scores(self.guide.tables, graph)
            return sum(
                self._log(i, parents_of(graph, i))
                - self._log(i, parents_of(old, i))
                - (after[i] - before[i])
                for i in np.flatnonzero((graph != old).any(axis=0)).tolist()
            )

        return corrected

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
        """Return where a chain begins: at a good graph of the guide, unless it was given one."""
        return self.guide.start(rng, graph)

    def left_out(self, rng, graph):
        """Odds of parent sets that are left out: none is."""
        return 0.0

    def log_score(self, graph):
        """Log score of a graph."""
        return float(sum(self._log(i, parents_of(graph, i)) for i in range(len(graph))))
