r"""Greedy search over directed acyclic graphs: arcs are added, deleted and reversed while that helps.

Local scores are computed once and counted: they, not the moves, take the time of a search. Moves that close a cycle
are found in the matrices of :mod:`bayesstruct.networks.kernels.acyclicity`.
"""

import itertools
import math

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.exact.problem import NetworkProblem, network_problem
from bayesstruct.networks.solvers.candidate_parents import candidate_parents
from bayesstruct.networks.solvers.optimal_dag import DAGSolution

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

    from bayesstruct.networks.kernels.scores.base import Score

__all__ = ["DAGSearchSolution", "dag_search"]

_CLOSE = 1e-7  # smaller differences of scores may be rounding
_SHARE, _START_PARENTS = 0.5, 5  # share of arcs in a random start; maximum number of parents in it
_KEPT, _ADDED = 0.3, 0.25  # share of the arcs of the best graph, and new ones for each variable
_STARTS = ("best", "random")


@dataclass(frozen=True, eq=False)
class DAGSearchSolution(DAGSolution):
    """A `DAGSolution` from a search without certificate: its `gap` is infinite.

    Attributes
    ----------
    iterations : int
        Moves that were made.
    converged : bool
        Whether no move of the search improves the graph. It need not be the best, and `optimal` is
        False.
    evaluations : int
        Local scores that were computed.
    optima : tuple of (int, float)
        For each local optimum, in the order of visits: evaluations so far, and objective.
    """

    evaluations: int
    optima: tuple[tuple[int, float], ...] = ()

    @property
    def optimal(self) -> bool:
        """Whether the graph is shown to be the best: never."""
        return False


def dag_search(
    data: "pd.DataFrame | ArrayLike | Score",
    *,
    score: str = "bge",
    prior: str = "uniform",
    candidates: "int | ArrayLike | None" = None,
    restarts: int = 20,
    restart_from: str = "best",
    evaluations: int | None = None,
    random_seed: int | np.random.Generator | None = None,
    **options,
) -> DAGSearchSolution:
    r"""Search for the directed acyclic graph of largest posterior probability by hill climbing.

    The first climb starts at the graph of the required arcs. Of all additions, deletions and reversals that
    close no cycle the best is made until none improves; then the search starts again from another graph. With
    the Markov blankets of :func:`bayesstruct.solvers.blanket_candidates` as candidates this is the
    L1MB search of [1]_ (which restarts at random), with :func:`bayesstruct.solvers.mmpc_candidates` the max-min hill climbing of [2]_.

    Parameters
    ----------
    data : DataFrame, array_like or score
        (n, d) table, or an object with local scores; as for :func:`bayesstruct.exact.dag_posterior`.
    score : str
        ``"bge"``, ``"bdeu"``, or another of
        :func:`bayesstruct.networks.kernels.scores.named.network_score`.
    prior : {"uniform", "edge", "fair"}
        A modular prior.
    candidates : int or (d, k) array of int, optional
        How many candidate parents each variable has, chosen by
        :func:`bayesstruct.solvers.candidate_parents`, or which, rows padded with -1. All others by
        default. Required parents are candidates in any case.
    restarts : int, default 20
        Climbs after the first one.
    restart_from : {"best", "random"}
        A random choice of the arcs of the best graph so far and some others, or a random graph.
    evaluations : int, optional
        Maximum number of local scores to compute, at least d; any number by default. Those by which
        candidates are chosen do not count.
    random_seed : int or numpy.random.Generator, optional
        For the graphs of the restarts; the same seed gives the same search.
    **options
        `names`, `edge_probability`, `max_parents`, `required`, `forbidden`, `tiers`,
        `interventions`, `states` and options of the score, as for :func:`bayesstruct.exact.dag_posterior`.

    Returns
    -------
    DAGSearchSolution
        The best graph that was seen.

    Raises
    ------
    TableError
        If the table cannot be used, or an option names a column that does not exist.
    ValueError
        If an option is unknown or out of range, or the required arcs alone have no positive
        probability.

    Warns
    -----
    ConvergenceWarning
        If the evaluations end before the best graph is a local optimum.

    Notes
    -----
    From the best graph each arc is taken with probability .3; about d / 4 random ones join them. Many of the
    scores are known then, so that such a restart costs a part of a first climb. A random graph follows a random order of the variables; each arc
    from a candidate along it is there with probability 1/2 [1]_, and of more than five parents, or
    `max_parents`, five are kept. It serves with few candidates; without, it is far from good graphs.

    A step looks at all pairs but computes scores for the one or two variables only whose parents have
    changed.

    References
    ----------
    .. [1] Schmidt, M. (2010). *Graphical Model Structure Learning with L1-Regularization*. PhD thesis,
       University of British Columbia; sections 4.2 and 4.6, appendix A.
    .. [2] Tsamardinos, I., Brown, L. E. and Aliferis, C. F. (2006). The max-min hill-climbing Bayesian network
       structure learning algorithm. *Machine Learning* 65, 31-78.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(200, 3))
    >>> x[:, 2] += x[:, 0] - x[:, 1]
    >>> sorted(dag_search(x).graph.edges)
    [('x0', 'x2'), ('x1', 'x2')]
    """
    problem = modular_problem(data, score, prior, options)
    if not isinstance(restarts, int | np.integer) or restarts < 0:
        raise ValueError(f"`restarts` must be a whole number, at least 0, it is {restarts!r}")
    if evaluations is not None and evaluations < problem.d:
        raise ValueError(
            f"`evaluations` = {evaluations} do not score one graph of {problem.d} variables; give "
            f"at least {problem.d}"
        )
    if restart_from not in _STARTS:
        raise ValueError(f"`restart_from` is {restart_from!r}; choose among {_STARTS}")
    arcs = _candidate_arcs(problem, candidates)
    terms = LocalTerms(problem, math.inf if evaluations is None else evaluations)
    rng = np.random.default_rng(random_seed)

    def restart(best):
        """Draw the next graph to start from."""
        if restart_from == "random":
            return _random_graph(rng, problem.prior, arcs)
        return _part(rng, problem.prior.required, arcs, best != 0)

    solution = _search(problem, arcs, terms, restarts, restart)
    solution.warn_unless_converged("dag_search", "Raise evaluations, or give fewer candidates.")
    return solution


def modular_problem(
    data: "pd.DataFrame | ArrayLike | Score", score: str, prior: str, options: dict
) -> NetworkProblem:
    """Problem of a search over graphs; the order-modular prior is refused.

    Parameters
    ----------
    data, score, prior, options
        As of `dag_search`, the last as a dict.

    Returns
    -------
    NetworkProblem

    Raises
    ------
    ValueError
        For the prior ``"order"``, `max_parents` that is no whole number or negative, and as from
        `network_problem`.
    """
    most = options.get("max_parents")
    if most is not None and (not isinstance(most, int | np.integer) or most < 0):
        raise ValueError(f"`max_parents` must be a whole number, at least 0, it is {most!r}")
    problem = network_problem(data, score=score, prior=prior, **options)
    if problem.order:
        raise ValueError(
            "the prior 'order' counts the orders of a graph, which is no sum over parent sets; use "
            "'uniform', 'edge' or 'fair'"
        )
    return problem


class OutOfEvaluations(Exception):
    """No further local score may be computed."""


class LocalTerms:
    """Local scores plus log prior weights of parent sets, each computed once.

    Parent sets are integers, bit j for variable j.

    Parameters
    ----------
    problem : NetworkProblem
    most : float
        How many scores may be computed.

    Attributes
    ----------
    evaluations : int
        How many have been. Sets of prior weight zero cost none.
    """

    def __init__(self, problem, most=math.inf):
        self.evaluations, self._problem, self._most = 0, problem, most
        self._known = {}

    def __call__(self, child, parents):
        """Return one term.

        Raises
        ------
        OutOfEvaluations
            If it would be one too many.
        ValueError
            If the score is not a number, or plus infinity.
        """
        value = self._known.get((child, parents))
        if value is None:
            value = self._known[child, parents] = self._compute(child, parents)
        return value

    def _compute(self, child, parents):
        members = tuple(members_of(parents))
        weight = self._problem.prior.local(child, members)
        if weight == -np.inf:
            return weight
        if self.evaluations >= self._most:
            raise OutOfEvaluations
        self.evaluations += 1
        score = self._problem.score.local(child, members)
        if not score < np.inf:
            raise ValueError(
                f"the score of {self._problem.names[child]!r} is not a number, or infinite, for "
                "some parents"
            )
        return score + weight


def members_of(parents: int) -> list[int]:
    """Variables of a parent set that is an integer."""
    return [j for j in range(parents.bit_length()) if parents >> j & 1]


def set_of(members: Iterable[int]) -> int:
    """Parent set as an integer."""
    return sum(1 << int(j) for j in members)


def candidate_matrix(candidates: "ArrayLike", names: Sequence[str]) -> np.ndarray:
    """Matrix of arcs from lists of candidate parents.

    Parameters
    ----------
    candidates : (d, k) array_like of int
        Padded with -1.
    names : sequence of str
        The d variables.

    Returns
    -------
    (d, d) numpy.ndarray
        Bool; rows are parents.

    Raises
    ------
    ValueError
        If there is not one row of other variables for each variable.
    """
    d, rows = len(names), np.asarray(candidates)
    if rows.ndim != 2 or len(rows) != d or rows.dtype.kind not in "iu":
        raise ValueError(
            f"`candidates` has shape {rows.shape} and type {rows.dtype}; give a row of whole numbers for "
            f"each of {d} variables, padded with -1"
        )
    if rows.max(initial=-1) >= d:
        raise ValueError(f"`candidates` has {rows.max()}; the variables are 0 to {d - 1}")
    arcs = np.zeros((d, d), bool)
    for child, row in enumerate(rows):
        arcs[row[row >= 0], child] = True
        if arcs[child, child]:
            raise ValueError(f"`candidates` has {names[child]!r} as a parent of itself")
    return arcs


def _candidate_arcs(problem, candidates):
    """Arcs that a search may use, (d, d) bool."""
    allowed, required = problem.prior.allowed, problem.prior.required
    if candidates is None:
        return allowed
    if np.ndim(candidates) == 0:
        candidates = candidate_parents(
            problem.score, int(candidates), allowed=allowed, required=required
        )
    return (candidate_matrix(candidates, problem.names) | required) & allowed


def _search(problem, arcs, terms, restarts, restart):
    """Climb from the required arcs and from other graphs; report the best graph."""
    walk = best = _Walk(terms, arcs, problem.prior.required, problem.prior.required)
    moves, optima = 0, []
    try:
        for climbs in itertools.count(1):
            walk.climb()
            optima.append((terms.evaluations, walk.objective))
            best = max(best, walk, key=_rounded)
            if climbs > restarts:
                break
            moves += walk.moves
            start, walk = restart(best.adjacency), None
            walk = _Walk(terms, arcs, problem.prior.required, start)
    except OutOfEvaluations:
        best = max(best, walk or best, key=_rounded)
    return DAGSearchSolution(
        objective=best.objective,
        gap=np.inf,
        iterations=moves + (walk.moves if walk else 0),
        converged=best.done,
        names=problem.names,
        adjacency=best.adjacency,
        evaluations=terms.evaluations,
        optima=tuple(optima),
    )


def _rounded(walk):
    """Objective without rounding errors, so that the first of equal graphs is kept."""
    return round(walk.objective / _CLOSE)


def _random_graph(rng, prior, arcs):
    """Draw a graph of candidate arcs and all required ones; (d, d) bool."""
    place = np.argsort(_random_order(rng, prior.required))
    along = arcs & (place[:, None] < place) & (rng.random(arcs.shape) < _SHARE)
    graph = prior.required.copy()
    most = _START_PARENTS if prior.max_parents is None else prior.max_parents
    for child in range(len(arcs)):
        others = rng.permutation(np.flatnonzero(along[:, child] & ~graph[:, child]))
        free = min(_START_PARENTS, most) - int(graph[:, child].sum())
        graph[others[: max(free, 0)], child] = True
    return graph


def _part(rng, required, arcs, best):
    """Draw some arcs of a graph, all required ones, and a few candidates; (d, d) bool."""
    graph = required | (best & (rng.random(best.shape) < _KEPT))
    place = np.argsort(_random_order(rng, graph))
    along = arcs & (place[:, None] < place)
    share = _ADDED * len(arcs) / max(along.sum(), 1)
    return graph | (along & (rng.random(arcs.shape) < share))


def _random_order(rng, required):
    """Draw an order in which required parents come before their children."""
    left, order = np.arange(len(required)), []
    while left.size:
        free = left[~required[np.ix_(left, left)].any(axis=0)]
        order.append(int(rng.choice(free)))
        left = left[left != order[-1]]
    return np.array(order)


class _Walk:
    """A graph that is climbing, and the gain by each change of an arc.

    `change` has, at (j, i), the gain of adding j to the parents of i, or of taking it away; NaN where it
    is not known. The gain of a reversal is the sum of two of them.
    """

    def __init__(self, terms, arcs, required, start):
        from bayesstruct.networks.kernels.acyclicity import build, build_witnesses

        d = len(arcs)
        self.done, self.moves = False, 0
        self._terms, self._arcs, self._required = terms, arcs, required
        self.adjacency = start.astype(np.int8)
        self._parents = [set_of(np.flatnonzero(column)) for column in self.adjacency.T]
        self._current = np.array([self._possible(i) for i in range(d)])
        self._ancestors, self._witnesses = np.zeros((2, d, d), np.uint8)
        build(self.adjacency, self._ancestors)
        build_witnesses(self.adjacency, self._ancestors, self._witnesses)
        self._change = np.full((d, d), np.nan)

    @property
    def objective(self):
        return float(self._current.sum())

    def _possible(self, child):
        """Term of a child; where its parents have probability zero, the required ones alone stay."""
        value = self._terms(child, self._parents[child])
        if value == -np.inf:
            self.adjacency[:, child] = self._required[:, child]
            self._parents[child] = set_of(np.flatnonzero(self._required[:, child]))
            value = self._terms(child, self._parents[child])
        if value == -np.inf:
            raise ValueError(
                f"the required parents of variable {child} have probability zero, or it has none "
                "without further parents: no climb can start there"
            )
        return value

    def climb(self):
        """Make the best move until none improves."""
        while (move := self._best()) is not None:
            self._make(*move)
            self.moves += 1
        self.done = True

    def _best(self):
        """Find the best move (reversed or not, parent, child); None if none improves."""
        present = self.adjacency != 0
        add = self._arcs & ~present & (self._ancestors.T == 0)
        free = present & ~self._required
        turn = free & self._arcs.T & (self._witnesses == 0)
        for j, i in np.argwhere((add | free | turn.T) & np.isnan(self._change)).tolist():
            new = self._terms(i, self._parents[i] ^ 1 << j)
            self._change[j, i] = new - self._current[i]
        both = np.where(turn, self._change + self._change.T, -np.inf)
        gains = np.stack([np.where(add | free, self._change, -np.inf), both])
        move = np.unravel_index(gains.argmax(), gains.shape)
        return [int(k) for k in move] if gains[move] > _CLOSE else None

    def _make(self, turned, j, i):
        """Reverse, add or delete the arc j -> i."""
        from bayesstruct.networks.kernels import acyclicity

        graph = self.adjacency, self._ancestors
        if turned:
            acyclicity.reverse(*graph, j, i)
            self._toggle(i, j)
        elif self.adjacency[j, i]:
            acyclicity.delete(*graph, j, i)
        else:
            acyclicity.add(*graph, j, i)
            acyclicity.add_witnesses(*graph, self._witnesses, j, i)
        if not self.adjacency[j, i]:
            acyclicity.build_witnesses(*graph, self._witnesses)
        self._toggle(j, i)

    def _toggle(self, j, i):
        """Note that the parents of i have changed by j."""
        self._parents[i] ^= 1 << j
        self._current[i] = self._terms(i, self._parents[i])  # known: it is why the move was made
        self._change[:, i] = np.nan
