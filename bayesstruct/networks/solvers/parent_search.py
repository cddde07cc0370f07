"""Parents that a sampler of directed acyclic graphs has to consider: candidates that grow until none is missing."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.solvers.candidate_parents import candidate_parents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayesstruct.networks.exact.problem import NetworkProblem
    from bayesstruct.networks.kernels.parent_tables import ParentTables

__all__ = ["ALL_PARENTS", "best_network", "chain_start", "log_weight", "search_tables"]

ALL_PARENTS = 11  # variables up to which graphs are drawn independently
_EVERY_SET = 14  # variables up to which every parent set is tabulated
_FIRST, _MOST = 7, 12  # candidates of a variable, at first and at most
_CELLS = 2**25  # parent sets in all, beyond which no candidate is added (800 MiB)
_ROUNDS, _CLIMBS, _SWEEPS = 6, 20, 60
_CHAIN_CLIMBS = 5  # that a chain begins with: one alone often ends far below the best graph
_IN_USE = 0.02  # share of the graphs of a short chain
_STARTS, _FROM_START = 5, 12  # searches over orders without candidates, and climbs of each
_NEAR = 40.0  # log posterior below that of the best graph, of others that count as good
_SEED = 20170  # the tables are part of the target: all chains have to have the same


def search_tables(
    problem: "NetworkProblem",
    *,
    size: int | None = None,
    graphs: "Sequence[np.ndarray] | None" = None,
) -> "ParentTables":
    """Tables of the parent sets that matter.

    Up to 14 variables they hold all sets, and a sampler on them is exact. Beyond, each
    variable has candidates; its sets are the subsets of them, and these with one further parent (Kuipers,
    Suter and Moffa 2022). The first candidates are the parents in good graphs that were found without any
    (:mod:`bayesstruct.networks.kernels.gaussian_order_search`, for scores of Gaussian networks), and those of a forward
    selection. A search and a short chain on these tables show which further parents are in
    use; they become candidates, until none is missing or the maximum number is reached. With few rows many large
    sets are left out that are individually improbable but not negligible in total: samplers report how much
    (:mod:`bayesstruct.networks.solvers.left_out`), and more candidates to begin with (`size`) make it less.

    Parameters
    ----------
    problem : NetworkProblem
        Names, local scores and prior (:mod:`bayesstruct.networks.exact.problem`).
    size : int, optional
        Candidates of each variable to begin with; 7 by default, or all others where there are few.
    graphs : sequence of (d, d) numpy.ndarray, optional
        Good graphs, rows as parents, whose parents are the first candidates in place of those that searches find. None is added
        later, which suits scores that take long.

    Returns
    -------
    ParentTables

    References
    ----------
    Kuipers, J., Suter, P. and Moffa, G. (2022). Efficient sampling and structure learning of Bayesian
    networks. *Journal of Computational and Graphical Statistics* 31, 639-650.
    """
    if graphs is not None:
        return _tables(problem, size, graphs, rounds=0)
    return _tables(problem, size, _good_graphs(problem))


def _tables(problem, size, graphs, rounds=_ROUNDS):
    """Tables whose first candidates are the parents in some graphs."""
    from bayesstruct.networks.kernels.parent_tables import parent_tables

    d, prior = problem.d, problem.prior
    if size is None:
        size = d - 1 if d <= _EVERY_SET else _FIRST
    size = min(max(size, int(prior.required.sum(axis=0).max(initial=0))), d - 1)
    if size == d - 1:
        everyone = [np.flatnonzero(prior.allowed[:, i]) for i in range(d)]
        return parent_tables(problem, None, everyone, plus_one=False)
    candidates = _first_candidates(problem, size, graphs)
    tables = parent_tables(problem, None, candidates)
    for _ in range(rounds):
        if not _grow(candidates, _arcs_in_use(tables)):
            break
        tables = parent_tables(problem, None, candidates, known=tables)
    return tables


def best_network(problem: "NetworkProblem", rng: np.random.Generator, *, climbs: int) -> np.ndarray:
    """Graph of the greatest log score and log prior weight that searches find.

    Parameters
    ----------
    problem : NetworkProblem
    rng : numpy.random.Generator
    climbs : int
        Local searches for each variable, on the tables of :func:`search_tables`.

    Returns
    -------
    (d, d) numpy.ndarray
        int8; acyclic, 1 at (parent, child). Not proved to be the best.
    """
    from bayesstruct.networks.kernels.order_search import best_graph

    graphs = _good_graphs(problem)
    graph, _, _ = best_graph(_tables(problem, None, graphs), rng, climbs=climbs * problem.d)
    return max([graph, *graphs[:1]], key=lambda g: log_weight(problem, g))


def chain_start(
    problem: "NetworkProblem", tables: "ParentTables", rng: np.random.Generator
) -> np.ndarray:
    """Graph of a short search from a random order: chains begin apart, where the posterior is.

    Parameters
    ----------
    problem : NetworkProblem
    tables : ParentTables
        The graph has to be one of theirs.
    rng : numpy.random.Generator

    Returns
    -------
    (d, d) numpy.ndarray
        int8; acyclic, 1 at (parent, child).
    """
    from bayesstruct.networks.kernels.order_search import best_graph
    from bayesstruct.networks.kernels.parent_tables import family_scores

    if hasattr(problem.score, "families"):
        _, graph = good_network(problem, rng, climbs=_CHAIN_CLIMBS)
        if np.isfinite(family_scores(tables, graph)).all():
            return graph
    return best_graph(tables, rng, climbs=_CHAIN_CLIMBS)[0]


def log_weight(problem: "NetworkProblem", graph: np.ndarray) -> float:
    """Log score plus log prior weight of a graph, (d, d), 1 at (parent, child)."""
    parents = [np.flatnonzero(own) for own in np.asarray(graph).T]
    return float(sum(problem.subsets(i, (), fixed=own)[0] for i, own in enumerate(parents)))


def _first_candidates(problem, size, graphs):
    """Parents in good graphs, the best one first, and then those of a forward selection, up to a maximum number."""
    score, prior = problem.score, problem.prior
    found = candidate_parents(score, size, allowed=prior.allowed, required=prior.required)
    candidates = [np.flatnonzero(own).tolist() for own in prior.required.T]
    for graph in graphs:
        _grow(candidates, graph != 0)
    for own, others in zip(candidates, found, strict=True):
        rest = [int(j) for j in others if j >= 0 and j not in own]
        own.extend(rest[: max(size - len(own), 0)])
    return candidates


def _good_graphs(problem):
    """Find graphs without candidates, where scores of any families are cheap; the best first."""
    if problem.d <= ALL_PARENTS or not hasattr(problem.score, "families"):
        return []
    rng = np.random.default_rng(_SEED)
    return near_best([good_network(problem, rng) for _ in range(_STARTS)])


def near_best(found: list[tuple[float, np.ndarray]]) -> list[np.ndarray]:
    """Graphs of pairs of a log weight and a graph, the best first, without those far below it."""
    found = sorted(found, key=lambda pair: -pair[0])
    return [graph for value, graph in found if value >= found[0][0] - _NEAR]


def good_network(
    problem: "NetworkProblem", rng: np.random.Generator, climbs: int = _FROM_START
) -> tuple[float, np.ndarray]:
    """Graph of a search from one random order, for scores of Gaussian networks, and its relative log weight.

    Returns
    -------
    float, (d, d) int8 numpy.ndarray
    """
    from bayesstruct.networks.kernels.gaussian_order_search import search_orders

    families = problem.score.families(problem.prior)
    graph, _, value = search_orders(rng, families, climbs=climbs)
    return value, graph


def _arcs_in_use(tables):
    """Which arcs the best graph, or some graphs of a short chain from it, have; (d, d) bool."""
    from bayesstruct.networks.kernels.order_search import best_graph
    from bayesstruct.networks.kernels.samplers.partition_mcmc import default_moves, sweep

    rng = np.random.default_rng(_SEED)
    graph, _, _ = best_graph(tables, rng, climbs=_CLIMBS)
    best, share, moves = graph != 0, np.zeros(graph.shape), default_moves(tables.d)
    for _ in range(_SWEEPS):
        sweep(rng, tables, graph, moves)
        share += graph / _SWEEPS
    return best | (share > _IN_USE)


def _grow(candidates, used):
    """Add parents in use to the candidates, up to the maximum number; whether any was added."""
    d, added = len(candidates), False
    for child, own in enumerate(candidates):
        for parent in np.flatnonzero(used[:, child]):
            cells = sum(d << len(c) for c in candidates)
            if parent not in own and len(own) < _MOST and cells < _CELLS:
                own.append(int(parent))
                added = True
    return added
