r"""Share of the posterior in parent sets that the tables of a sampler leave out.

Given the parents of all others, child i has the parents :math:`S` with a probability proportional to its weight
:math:`w_i(S)`, over the sets of variables that do not descend from it; given an order of the variables, over the sets of
those before it. Tables hold some of these sets, and those outside have the odds

.. math:: o_i = \sum_{S \notin T_i} w_i(S) \Big/ \sum_{S \in T_i} w_i(S).

They hold two or more variables that are no candidates (one, if tables have candidates alone). The sum is estimated
without bias: such variables are drawn, and the weights of all sets of candidates with them are summed.
"""

import math

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bayesstruct.networks.exact.problem import NetworkProblem
    from bayesstruct.networks.kernels.parent_tables import ParentTables

__all__ = ["left_out"]

_SHARE = 0.04  # of calls that estimate: an estimate takes about as long as a sweep


def left_out(
    problem: "NetworkProblem",
    tables: "ParentTables",
    rng: np.random.Generator,
    graph: np.ndarray,
    order: np.ndarray | None = None,
) -> float:
    """Estimate the odds of parent sets outside of tables, summed over the variables.

    Parameters
    ----------
    problem : NetworkProblem
    tables : ParentTables
    rng : numpy.random.Generator
    graph : (d, d) array
        Acyclic, 1 at (parent, child); of the tables.
    order : (d,) array of int, optional
        Variables, parents first: the distribution given this order replaces that given the other arcs.

    Returns
    -------
    float
        Unbiased, but zero in 24 of 25 calls and noisy in the last: for a mean over many draws. Always zero if
        nothing is left out.
    """
    if rng.random() >= _SHARE:
        return 0.0
    child = int(rng.integers(problem.d))
    free = ~_descendants(graph, child) if order is None else _before(order, child)
    free &= problem.prior.allowed[:, child]
    return problem.d / _SHARE * _odds(problem, tables, rng, child, free)


def _odds(problem, tables, rng, child, free):
    """Estimate the odds of the sets outside of the tables, all of which are among some free variables."""
    from bayesstruct.networks.kernels.parent_sums import FREE, log_sum

    candidates = tables.candidates(child)
    others = np.setdiff1d(np.flatnonzero(free), candidates)
    least = 2 if len(tables.extras(child)) else 1
    most = problem.prior.max_parents
    most = len(others) if most is None else min(most, len(others))
    if most < least:
        return 0.0
    drawn, log_chance = _draw_some(rng, others, least, most)
    required = np.flatnonzero(problem.prior.required[:, child])
    fixed = [*drawn, *np.setdiff1d(required, drawn)]
    usual = [j for j in candidates if free[j] and j not in fixed]
    weights = problem.subsets(child, usual, fixed=fixed)
    inside = log_sum(tables, child, np.where(free, 0, 1), FREE, 1)
    return float(np.exp(np.logaddexp.reduce(weights) - inside - log_chance))


def _draw_some(rng, others, least, most):
    """Draw some variables, few more often than many, and return the log probability of just these."""
    sizes = np.arange(least, most + 1)
    chance = 0.5 ** (sizes - least + 1.0)
    chance = 0.5 * chance / chance.sum() + 0.5 / len(sizes)
    size = int(rng.choice(sizes, p=chance))
    drawn = rng.choice(others, size, replace=False)
    return drawn, math.log(chance[size - least]) - math.log(math.comb(len(others), size))


def _descendants(graph, child):
    """Whether each variable is the child or descends from it, (d,) bool."""
    out, new = np.zeros(len(graph), bool), [child]
    out[child] = True
    while new:
        later = np.flatnonzero(graph[new].any(axis=0) & ~out)
        out[later] = True
        new = later.tolist()
    return out


def _before(order, child):
    """Whether each variable is before the child in an order, (d,) bool."""
    out = np.zeros(len(order), bool)
    out[order[: int(np.flatnonzero(order == child)[0])]] = True
    return out
