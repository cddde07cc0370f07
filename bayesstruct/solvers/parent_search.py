"""Which parents a sampler of directed graphs has to consider: candidates that grow until none is missing."""

import numpy as np

from bayesstruct.solvers.candidate_parents import candidate_parents

__all__ = ["ALL_PARENTS", "search_tables"]

ALL_PARENTS = 11  # variables up to which every parent set is tabulated
_FIRST, _MOST = 7, 12  # candidates of a variable, at first and at most
_CELLS = 2**25  # parent sets in all, beyond which no candidate is added (800 MiB)
_ROUNDS, _CLIMBS, _SWEEPS = 6, 20, 60
_IN_USE = 0.02  # share of the graphs of a short chain
_SEED = 20170  # the tables are part of the target: all chains have to have the same


def search_tables(problem, *, size=None):
    """Tables of the parent sets that matter.

    Up to 11 variables they hold all sets, and a sampler on them is exact. Beyond, each
    variable has candidates, chosen by forward selection; its sets are the subsets of them, and these
    with one further parent (Kuipers, Suter and Moffa 2022). A search and a short chain on these tables show
    which further parents are in use; they become candidates, until none is missing or there is no
    room for more.

    Parameters
    ----------
    problem : NetworkProblem
        Names, local scores and prior (:mod:`bayesstruct.exact.dags`).
    size : int, optional
        Candidates of each variable to begin with; 7 by default, or all others where there are few.

    Returns
    -------
    ParentTables

    References
    ----------
    Kuipers, J., Suter, P. and Moffa, G. (2022). Efficient sampling and structure learning of Bayesian
    networks. *Journal of Computational and Graphical Statistics* 31, 639-650.
    """
    from bayesstruct.kernels.parent_tables import parent_tables

    d, prior = problem.d, problem.prior
    if size is None:
        size = d - 1 if d <= ALL_PARENTS else _FIRST
    size = min(max(size, int(prior.required.sum(axis=0).max(initial=0))), d - 1)
    if size == d - 1:
        everyone = [np.flatnonzero(prior.allowed[:, i]) for i in range(d)]
        return parent_tables(problem, None, everyone, plus_one=False)
    found = candidate_parents(problem.score, size, allowed=prior.allowed, required=prior.required)
    candidates = [[int(j) for j in own if j >= 0] for own in found]
    tables = parent_tables(problem, None, candidates)
    for _ in range(_ROUNDS):
        if not _grow(candidates, _arcs_in_use(tables)):
            break
        tables = parent_tables(problem, None, candidates, known=tables)
    return tables


def _arcs_in_use(tables):
    """Which arcs the best graph, or some graphs of a short chain from it, have; (d, d) bool."""
    from bayesstruct.kernels.order_search import best_graph
    from bayesstruct.kernels.partition_mcmc import default_moves, sweep

    rng = np.random.default_rng(_SEED)
    graph, _, _ = best_graph(tables, rng, climbs=_CLIMBS)
    best, share, moves = graph != 0, np.zeros(graph.shape), default_moves(tables.d)
    for _ in range(_SWEEPS):
        sweep(rng, tables, graph, moves)
        share += graph / _SWEEPS
    return best | (share > _IN_USE)


def _grow(candidates, used):
    """Add parents in use to the candidates where there is room; whether any was added."""
    d, added = len(candidates), False
    for child, own in enumerate(candidates):
        for parent in np.flatnonzero(used[:, child]):
            cells = sum(d << len(c) for c in candidates)
            if parent not in own and len(own) < _MOST and cells < _CELLS:
                own.append(int(parent))
                added = True
    return added
