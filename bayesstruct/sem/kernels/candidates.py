"""Tables of parent sets of linear structural equations: few sets, because each takes a fit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.kernels.parent_tables import ParentTables, parent_tables
from bayesstruct.networks.kernels.scores.gaussian import BGe
from bayesstruct.networks.solvers.candidate_parents import candidate_parents
from bayesstruct.networks.solvers.parent_search import good_network, near_best

if TYPE_CHECKING:
    from bayesstruct.networks.exact.problem import NetworkProblem

__all__ = ["sem_tables"]

_EVERY_SET = 9  # columns up to which every parent set is tabulated
_FIRST, _MOST = 5, 8  # candidates of a column, at first and at most
_ROUNDS, _CLIMBS = 3, 10
_STARTS = 3  # searches for good graphs of a Gaussian network
_SEED = 20170  # the tables are part of the target: all chains have to have the same


def sem_tables(
    problem: "NetworkProblem", size: int | None = None, graphs: Sequence[np.ndarray] = ()
) -> ParentTables:
    """Make tables of the parent sets that matter.

    Up to 9 columns they hold all sets. Beyond, each column has candidates: required parents, those in given graphs and in good graphs of
    a Gaussian network (parents whose effects nearly cancel are found together only), and those of a forward selection by
    its score, children of it among them. Its sets are the subsets of the candidates, and these with one further parent.
    Further parents in the best graph that a search finds become candidates, too.

    Parameters
    ----------
    problem : NetworkProblem
    size : int, optional
        Candidates of each column to begin with; 5 by default, or all others where there are few.
    graphs : sequence of (d, d) arrays
        Good graphs, 1 at (parent, child).

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
    candidates = _in_graphs(problem, [*graphs, *_gaussian_graphs(problem)], max(_MOST, size))
    _add(candidates, found, size)
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


def _gaussian_graphs(problem):
    """Good graphs under the score BGe of the same table, the best one first."""
    scores, rng = problem.score, np.random.default_rng(_SEED)
    normal = replace(problem, score=BGe(scores.table, interventions=scores.interventions))
    return near_best([good_network(normal, rng) for _ in range(_STARTS)])


def _in_graphs(problem, graphs, most):
    """Candidates that are required, and then those in graphs in turn, at most so many for a column."""
    prior = problem.prior
    out = [np.flatnonzero(own).tolist() for own in prior.required.T]
    for graph in graphs:
        arcs = (np.asarray(graph) != 0) & prior.allowed
        _add(out, [np.flatnonzero(own) for own in arcs.T], most)
    return out


def _add(candidates, others, most):
    """Add candidates to those of each column, up to a number."""
    for own, more in zip(candidates, others, strict=True):
        own.extend([int(j) for j in more if j >= 0 and j not in own][: max(most - len(own), 0)])
