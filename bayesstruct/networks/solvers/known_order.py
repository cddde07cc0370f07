r"""Directed acyclic graphs whose order is known: each variable chooses among those before it.

.. math::

    \max_{G \subseteq \text{order}} \sum_i s_i(\mathrm{pa}_i)
    = \sum_i \max_{\pi \subseteq \text{before } i} s_i(\pi)

No cycle can arise, so that the problem falls apart into one selection of variables for each child.
"""

import itertools
import math

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.errors import TableError, column_list, listing
from bayesstruct.networks.data.tables import network_table
from bayesstruct.networks.solvers.candidate_parents import blanket_candidates, candidate_parents
from bayesstruct.networks.solvers.dag_search import (
    DAGSearchSolution,
    LocalTerms,
    candidate_matrix,
    members_of,
    modular_problem,
    set_of,
)
from bayesstruct.networks.solvers.optimal_dag import DAGSolution

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

    from bayesstruct.networks.kernels.scores.base import Score

__all__ = ["k2", "known_order", "order_positions"]

_ALL, _SOME, _MOST = 16, 14, 20  # candidates: up to which all are taken, else so many, at most
_SETS = 2**14  # parent sets of few members that are listed rather than restricted
_SPARSE = ("gaussian", "logistic")


def known_order(
    data: "pd.DataFrame | ArrayLike | Score",
    order: Sequence[str | int],
    *,
    method: str = "exact",
    score: str = "bge",
    prior: str = "uniform",
    candidates: "int | ArrayLike | None" = None,
    **options,
) -> DAGSolution:
    r"""Find the best directed acyclic graph whose arcs follow a given order.

    ``"exact"`` compares all sets of predecessors. ``"sparse"`` solves the regression of each variable on its
    predecessors for decreasing rates of a Laplace prior and keeps the support of lowest BIC, refitted without
    penalty (ordered L1MB): d sparse problems instead of exponentially many sets.

    Parameters
    ----------
    data : DataFrame, array_like or score
        (n, d) table, or, for ``"exact"``, an object with local scores; as for
        :func:`bayesstruct.exact.dag_posterior`.
    order : sequence of str or int
        All columns, parents before children: their names, or positions.
    method : {"exact", "sparse"}
    score : str
        For ``"exact"`` one of :func:`bayesstruct.networks.kernels.scores.named.network_score`, for ``"sparse"``
        ``"gaussian"`` or ``"logistic"``.
    prior : {"uniform", "edge", "fair"}
        A modular prior; ``"sparse"`` has the uniform one.
    candidates : int or (d, k) array of int, optional
        For ``"exact"``: how many candidate parents each variable has, or which, rows padded with -1;
        at most 20. By default all predecessors, up to 16 or as many as `max_parents` leaves with
        16,384 sets; beyond, the 14 that :func:`bayesstruct.solvers.candidate_parents` chooses. The graph
        is then the best of those whose parents are candidates.
    **options
        `names`, `edge_probability`, `max_parents`, `required`, `forbidden`, `tiers`,
        `interventions`, `states` and options of the score, as for :func:`bayesstruct.exact.dag_posterior`;
        for ``"sparse"`` neither `edge_probability` nor `required` nor `names`.

    Returns
    -------
    DAGSolution
        Of equally good parent sets the smallest are taken. `iterations` counts the parent sets that
        were compared, or the regressions. The gap is 0, infinite with ``"sparse"``, which has
        no certificate.

    Raises
    ------
    TableError
        If the table cannot be used, or `order` has not each of its columns once.
    ValueError
        If an option is unknown, out of range or belongs to the other method, a required arc points
        against the order, or no graph has positive probability.

    References
    ----------
    Schmidt, M. (2010). *Graphical Model Structure Learning with L1-Regularization*. PhD thesis, University
    of British Columbia; sections 4.1 and 4.6.2.

    Buntine, W. (1991). Theory refinement on Bayesian networks. *UAI* 7, 52-60.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(200, 3)) @ [[1, 1, 0], [0, 1, 1], [0, 0, 1]]
    >>> sorted(known_order(x, ["x0", "x1", "x2"]).graph.edges)
    [('x0', 'x1'), ('x0', 'x2'), ('x1', 'x2')]
    """
    if method not in ("exact", "sparse"):
        raise ValueError(f"method {method!r} is unknown; choose 'exact' or 'sparse'")
    if method == "sparse":
        if candidates is not None or prior != "uniform":
            raise ValueError(
                "`candidates` and priors other than 'uniform' are options of method='exact'"
            )
        return _sparse(data, order, score, options)
    problem = modular_problem(data, score, prior, options)
    before = _arcs_along(problem, order)
    adjacency, compared = np.zeros((problem.d, problem.d), np.int8), 0
    for child, pool in enumerate(_pools(problem, before, candidates)):
        parents, sets = _best_parents(problem, child, pool)
        adjacency[parents, child] = 1
        compared += sets
    return _solution(problem, adjacency, gap=0.0, iterations=compared, converged=True)


def k2(
    data: "pd.DataFrame | ArrayLike | Score",
    order: Sequence[str | int],
    *,
    max_parents: int | None = None,
    score: str = "bde",
    prior: str = "uniform",
    **options,
) -> DAGSearchSolution:
    r"""Learn a Bayesian network along a given order by adding one parent after the other (K2).

    Each variable receives, of its predecessors, the one that raises its local score most, then the
    next, until none does or it has `max_parents`.

    Parameters
    ----------
    data : DataFrame, array_like or score
        (n, d) table, or an object with local scores; as for :func:`bayesstruct.exact.dag_posterior`.
    order : sequence of str or int
        All columns, parents before children: their names, or positions.
    max_parents : int, optional
        Maximum number of parents of a variable; any number by default.
    score : str
        The default ``"bde"`` is the score of the source, a uniform prior of the conditional probabilities;
        others of :func:`bayesstruct.networks.kernels.scores.named.network_score` serve as well.
    prior : {"uniform", "edge", "fair"}
        A modular prior.
    **options
        As for :func:`known_order`. Required parents are the first.

    Returns
    -------
    DAGSearchSolution
        `iterations` counts the parents that were added.

    Raises
    ------
    TableError
        If the table cannot be used, or `order` has not each of its columns once.
    ValueError
        If an option is unknown or out of range, a required arc points against the order, or no
        graph that was seen has positive probability.

    Notes
    -----
    Parents of which none raises the score alone (an exclusive or) are not found; `known_order` finds them.

    References
    ----------
    Cooper, G. F. and Herskovits, E. (1992). A Bayesian method for the induction of probabilistic networks
    from data. *Machine Learning* 9, 309-347; section 4 and equation 8.

    Examples
    --------
    >>> table = [[1, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 1], [0, 0, 0]] * 2
    >>> k2(table, [0, 1, 2], max_parents=1).graph.number_of_edges()
    2
    """
    problem = modular_problem(data, score, prior, {"max_parents": max_parents, **options})
    before, terms = _arcs_along(problem, order), LocalTerms(problem)
    adjacency, added = np.zeros((problem.d, problem.d), np.int8), 0
    for child in range(problem.d):
        parents = np.flatnonzero(problem.prior.required[:, child]).tolist()
        added -= len(parents)
        parents = _greedy(terms, child, parents, np.flatnonzero(before[:, child]).tolist())
        added += len(parents)
        adjacency[parents, child] = 1
    solution = _solution(problem, adjacency, gap=np.inf, iterations=added, converged=True)
    return DAGSearchSolution(**vars(solution), evaluations=terms.evaluations)


def _greedy(terms, child, parents, pool):
    """Add the best parent as long as it improves."""
    parents, value = set_of(parents), terms(child, set_of(parents))
    while rest := [j for j in pool if not parents >> j & 1]:
        values = [terms(child, parents | 1 << j) for j in rest]
        best = int(np.argmax(values))
        if not values[best] > value:
            break
        parents, value = parents | 1 << rest[best], values[best]
    return members_of(parents)


def _sparse(data, order, score, options):
    """Ordered L1MB."""
    from bayesstruct.networks.kernels.scores.named import network_score

    if score not in _SPARSE:
        raise ValueError(
            f"method='sparse' compares regressions by their BIC: choose the score among {_SPARSE}, not "
            f"{score!r}"
        )
    if taken := sorted({"names", "required"} & set(options)):
        raise ValueError(f"{listing(taken)}: no options of method='sparse'; use method='exact'")
    tabled = {name: options.pop(name, None) for name in ("interventions", "states")}
    checked = network_table(data, score, **tabled)
    table, was_set = checked.table, checked.was_set
    values = table.standardized if score == "gaussian" else table.codes.astype(np.float64)
    local = network_score(values, score, interventions=was_set)
    problem = modular_problem(local, score, "uniform", {"names": table.names, **options})
    lists = blanket_candidates(
        values,
        score,
        size=problem.prior.max_parents,
        allowed=_arcs_along(problem, order),
        interventions=was_set,
    )
    adjacency = candidate_matrix(lists, problem.names).astype(np.int8)
    return _solution(problem, adjacency, gap=np.inf, iterations=problem.d, converged=False)


def _arcs_along(problem, order):
    """Arcs that are allowed and follow the order, (d, d) bool; required ones are checked."""
    place = np.argsort(order_positions(order, problem.names))
    along = place[:, None] < place
    if len(wrong := np.argwhere(problem.prior.required & ~along)):
        parent, child = (problem.names[k] for k in wrong[0])
        raise ValueError(
            f"the required arc {parent} -> {child} points against `order`; put {parent!r} before "
            f"{child!r}"
        )
    return problem.prior.allowed & along


def order_positions(order: Sequence[str | int], names: Sequence[str]) -> np.ndarray:
    """Return the positions of the columns of an order.

    Parameters
    ----------
    order : sequence of str or int
        All columns once: names or positions.
    names : sequence of str

    Returns
    -------
    (d,) ndarray of int

    Raises
    ------
    TableError
        If it is a set, or a column is unknown, left out or there twice.
    """
    if isinstance(order, Set):
        raise TableError(
            "`order` is a set, which has no order: give a list, parents before children"
        )
    given: list = list(order)
    if not all(str(item) in names for item in given) and all(map(_whole, given)):
        if out := [int(item) for item in given if not 0 <= item < len(names)]:
            raise TableError(
                f"`order` has the position {out[0]}; columns are 0 to {len(names) - 1}"
            )
        given = [names[item] for item in given]
    places = [str(item) for item in given]
    if unknown := [item for item in places if item not in names]:
        raise TableError(f"`order` has the unknown {column_list(unknown)}")
    if lost := [name for name in names if name not in places]:
        raise TableError(f"`order` leaves out {column_list(lost)}: give every column its place")
    if len(places) > len(names):
        twice = sorted({name for name in places if places.count(name) > 1})
        raise TableError(f"`order` has {column_list(twice)} more than once")
    return np.array([list(names).index(name) for name in places])


def _whole(item):
    return isinstance(item, int | np.integer) and not isinstance(item, bool)


def _pools(problem, before, candidates):
    """Candidate parents of each variable, all of them predecessors."""
    prior = problem.prior
    if candidates is None:
        wide = np.array([not _listed(k, prior) for k in before.sum(axis=0).tolist()])
        wide &= before.sum(axis=0) > _ALL
        before = before & (~wide | _chosen(problem, before & wide, prior.required & wide, _SOME))
    elif np.ndim(candidates) == 0:
        before = _chosen(problem, before, prior.required, int(candidates))
    else:
        before = before & (candidate_matrix(candidates, problem.names) | prior.required)
    pools = [np.flatnonzero(column).tolist() for column in before.T]
    for child, pool in enumerate(pools):
        if len(pool) > _MOST and not _listed(len(pool), prior):
            raise ValueError(
                f"{len(pool)} candidate parents of {problem.names[child]!r} have too many subsets; give "
                f"at most {_MOST} `candidates`, or few `max_parents`"
            )
    return pools


def _chosen(problem, allowed, required, size):
    """Arcs from candidates that forward selection finds."""
    lists = candidate_parents(problem.score, size, allowed=allowed, required=required)
    return candidate_matrix(lists, problem.names)


def _listed(size, prior):
    """Whether the sets of so many candidates are few because no large one may be."""
    most = prior.max_parents
    return most is not None and sum(math.comb(size, k) for k in range(most + 1)) <= _SETS


def _best_parents(problem, child, pool):
    """Return the best parents among some candidates, the smallest of equals; and the sets compared."""
    if len(pool) <= _ALL or not _listed(len(pool), problem.prior):
        values = problem.subsets(child, pool)
        ties = np.flatnonzero(values == values.max())
        best = int(ties[np.bitwise_count(ties).argmin()])
        return [j for b, j in enumerate(pool) if best >> b & 1], len(values)
    terms, sizes = LocalTerms(problem), range(problem.prior.max_parents + 1)
    sets = [chosen for k in sizes for chosen in itertools.combinations(pool, k)]
    best = max(sets, key=lambda chosen: terms(child, set_of(chosen)))  # the first of equals
    return list(best), len(sets)


def _solution(problem, adjacency, **report):
    """Report a graph with its objective."""
    terms = LocalTerms(problem)
    values = [terms(i, set_of(np.flatnonzero(column))) for i, column in enumerate(adjacency.T)]
    if impossible := [problem.names[i] for i in np.flatnonzero(np.array(values) == -np.inf)]:
        raise ValueError(
            f"no graph has positive probability: {column_list(impossible)} has scores of -infinity for "
            "all parents that the order, the candidates and the constraints leave"
        )
    return DAGSolution(
        objective=float(sum(values)), names=problem.names, adjacency=adjacency, **report
    )
