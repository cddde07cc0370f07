"""Samplers of the graph of a Bayesian network, its parameters integrated out."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.solvers.blocks import local_modes, switching_blocks
from bayesstruct.networks.solvers.left_out import left_out
from bayesstruct.networks.solvers.parent_search import ALL_PARENTS, chain_start, search_tables

if TYPE_CHECKING:
    from bayesstruct.networks.exact.problem import NetworkProblem
    from bayesstruct.networks.kernels.parent_tables import ParentTables

__all__ = ["IndependentGraphs", "OrderGraphs", "PartitionGraphs", "modular_graphs", "sweep_orders"]

_BLOCK = 6  # variables whose parents are drawn together, at most: 8 take ten times as long
_SUMMED = 14  # variables up to which graphs of the order-modular prior are independent draws: seconds to set up
_CLIMBS = 5  # local searches that a chain begins with


def modular_graphs(problem: "NetworkProblem", sweeps: int, candidates: int | None):
    """Sampler under a modular prior: independent draws where there are few variables.

    Parameters
    ----------
    problem : NetworkProblem
    sweeps : int
        Of the Markov chain, for each draw.
    candidates : int or None
        Candidate parents of each variable to begin with.
    """
    if candidates is None and problem.d <= ALL_PARENTS:
        return IndependentGraphs(problem)
    return PartitionGraphs(problem, sweeps, candidates)


class IndependentGraphs:
    """Independent draws of a graph of a few variables.

    Parameters
    ----------
    problem : NetworkProblem
    """

    def __init__(self, problem: "NetworkProblem"):
        from bayesstruct.networks.exact.posterior import IndependentDraws

        self.problem, self.draws = problem, IndependentDraws(problem)

    def start(self, rng, graph):
        """Return the graph: the draws do not depend on it."""
        return graph

    def move(self, rng, graph):
        """Next graph, and the share of proposals that were accepted."""
        return self.draws(rng), 1.0

    def left_out(self, rng, graph):
        """Odds of parent sets that are left out: none is."""
        return 0.0

    def log_score(self, graph):
        """Log score of a graph."""
        return self.draws.log_score(graph)

    def change(self, graph):
        """Probability of all other graphs."""
        return max(0.0, float(-np.expm1(self.log_score(graph) - self.draws.log_total)))


class PartitionGraphs:
    """Partition Markov chain Monte Carlo over the graphs that tables of parent sets allow.

    In each sweep the parents of some blocks of variables are drawn together, those that have to change together
    between good graphs: without that chains stay for long with one of several modes.

    Parameters
    ----------
    problem : NetworkProblem
    sweeps : int
        For each draw.
    candidates : int or None
        Candidate parents of each variable to begin with.
    """

    def __init__(self, problem: "NetworkProblem", sweeps: int, candidates: int | None):
        from bayesstruct.networks.kernels.samplers.partition_mcmc import default_moves

        self.problem, self.sweeps = problem, sweeps
        self.tables = search_tables(problem, size=candidates)
        self.moves = default_moves(self.tables.d)
        self.blocks = switching_blocks(local_modes(problem, self.tables), _BLOCK)

    def start(self, rng, graph):
        """Return where a chain begins: at a graph of a short search, unless it was given one."""
        return graph if graph.any() else chain_start(self.problem, self.tables, rng)

    def move(self, rng, graph):
        """Next graph, and the share of the reversals that were accepted."""
        from bayesstruct.networks.kernels.samplers.partition_mcmc import sweep

        graph, accepted = graph.copy(), 0
        for _ in range(self.sweeps):
            accepted += sweep(rng, self.tables, graph, self.moves)
            self._redraw_blocks(rng, graph)
        return graph, accepted / max(self.sweeps * self.moves.reversals, 1)

    def _redraw_blocks(self, rng, graph):
        from bayesstruct.networks.kernels.samplers.parent_blocks import draw_block

        for _ in range(2 + self.tables.d // 40 if self.blocks else 0):
            block = self.blocks[rng.integers(len(self.blocks))]
            draw_block(rng, self.tables, graph, block)

    def left_out(self, rng, graph):
        """Estimate the odds of parent sets outside of the tables."""
        return left_out(self.problem, self.tables, rng, graph)

    def log_score(self, graph):
        """Log score of a graph."""
        from bayesstruct.networks.kernels.parent_tables import family_scores

        return float(family_scores(self.tables, graph).sum())

    def change(self, graph):
        """Largest probability of a change of one arc, or of the parents of one variable, given the rest of the graph."""
        from bayesstruct.networks.kernels.samplers.structure_mcmc import change_probability

        return change_probability(self.tables, graph)


def sweep_orders(
    rng: np.random.Generator,
    tables: "ParentTables",
    order: np.ndarray,
    graph: np.ndarray,
    sweeps: int = 1,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Move an order by Markov chain Monte Carlo, and draw a graph given it.

    Parameters
    ----------
    rng : numpy.random.Generator
    tables : ParentTables
    order : (d,) int64 array
        Parents first; of a graph with a finite score. Empty to begin: with an order of `graph`, or of the
        end of a short search if that has no arcs.
    graph : (d, d) int8 array
        The last graph.
    sweeps : int

    Returns
    -------
    order, graph : arrays
    log_score : float
        Sum of the local scores and log prior weights of the graph.
    """
    from bayesstruct.networks.kernels.dags import topological_order
    from bayesstruct.networks.kernels.order_search import best_graph
    from bayesstruct.networks.kernels.parent_tables import family_scores
    from bayesstruct.networks.kernels.samplers.order_mcmc import default_moves, sweep

    if not len(order):
        begin = graph if graph.any() else best_graph(tables, rng, climbs=_CLIMBS)[0]
        order = topological_order(begin)
    order, out = np.array(order, np.int64), np.zeros_like(graph)
    for _ in range(sweeps):
        sweep(rng, tables, order, out, default_moves(tables.d))
    return order, out, float(family_scores(tables, out).sum())


class OrderGraphs:
    """Draws of graphs under the order-modular prior.

    Parameters
    ----------
    problem : NetworkProblem
    sweeps : int
        Of the order, where there are many variables.
    candidates : int or None
        None draws independently where there are few variables.
    """

    def __init__(self, problem: "NetworkProblem", sweeps: int, candidates: int | None):
        from bayesstruct.networks.exact.posterior import IndependentDraws

        self.problem, self.sweeps = problem, sweeps
        self.draws = self.tables = None
        if candidates is None and problem.d <= _SUMMED:
            self.draws = IndependentDraws(problem)
        else:
            self.tables = search_tables(problem, size=candidates)

    def move(self, rng, order, graph):
        """Return the next order and graph, and its log score."""
        if self.tables is not None:
            return sweep_orders(rng, self.tables, order, graph, self.sweeps)
        graph = self.draws(rng)
        return order, graph, self.draws.log_score(graph)

    def left_out(self, rng, graph, order):
        """Estimate the odds of parent sets outside of the tables, if there are tables."""
        if self.tables is None:
            return 0.0
        return left_out(self.problem, self.tables, rng, graph, order)
