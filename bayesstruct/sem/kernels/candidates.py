"""Tables of parent sets of linear structural equations: few sets, because each takes a fit."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.kernels.parent_tables import ParentTables, parent_tables
from bayesstruct.networks.solvers.candidate_parents import candidate_parents

if TYPE_CHECKING:
    from bayesstruct.networks.exact.problem import NetworkProblem

__all__ = ["sem_tables"]

_EVERY_SET = 9  # columns up to which every parent set is tabulated
_FIRST, _MOST = 5, 8  # candidates of a column, at first and at most
_ROUNDS, _CLIMBS = 3, 10
_SEED = 20170  # the tables are part of the target: all chains have to have the same


def sem_tables(problem: "NetworkProblem", size: int | None = None) -> ParentTables:
    """Make tables of the parent sets that matter.

    Up to 9 columns they hold all sets. Beyond, each column has candidates, required parents and those of a forward selection by
    its score, children of it among them; its sets are the subsets of the candidates, and these with one further parent.
    Further parents in the best graph that a search finds become candidates, too.

    Parameters
    ----------
    problem : NetworkProblem
    size : int, optional
        Candidates of each column to begin with; 5 by default, or all others where there are few.

    Returns
    -------
    ParentTables
    """
    from bayesstruct.networks.kernels.order_search import best_graph

    d, prior = problem.d, problem.prior
    if size is None:
        size = d - 1 if d <= _EVERY_SET else _FIRST
    size = min(max(size, int(prior.required.sum(axis=0).max(initial=0))), d - 1)
    if size == d - 1:
        everyone = [np.flatnonzero(prior.allowed[:, i]) for i in range(d)]
        return parent_tables(problem, None, everyone, plus_one=False)
    found = candidate_parents(problem.score, size, allowed=prior.allowed, required=prior.required)
    candidates = [[int(j) for j in own if j >= 0] for own in found]
    tables = parent_tables(problem, None, candidates)
    for _ in range(_ROUNDS):
        graph = best_graph(tables, np.random.default_rng(_SEED), climbs=_CLIMBS)[0]
        missing = [
            [int(j) for j in np.flatnonzero(graph[:, i]) if j not in own]
            for i, own in enumerate(candidates)
        ]
        added = [
            more if len(own) < max(_MOST, size) else []
            for own, more in zip(candidates, missing, strict=True)
        ]
        if not any(added):
            break
        candidates = [own + more for own, more in zip(candidates, added, strict=True)]
        tables = parent_tables(problem, None, candidates, known=tables)
    return tables
