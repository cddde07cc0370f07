r"""The best directed acyclic graph: the mode of the posterior under a modular prior.

.. math::

    \max_G \; \sum_i \log \rho_i(\mathrm{pa}_i) + \log p(D_i \mid D_{\mathrm{pa}_i})

*Dynamic programming* over sets of variables (Silander and Myllymäki 2006) for up to 25 of them. The best
parents are not stored: once the order is known, d of them are looked up again.

*Integer programming* beyond, with a binary variable for each parent set that no subset of it beats
(Jaakkola et al. 2010; Cussens 2011). For each set C of variables one of them has no parent within C,

.. math::

    \sum_{i \in C} \; \sum_{P \cap C = \emptyset} z_{iP} \ge 1,

and such cuts are added where a solution violates them, at first of the relaxation to real numbers.
"""

import time

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.solution import Solution
from bayesstruct.networks.exact.problem import network_problem

if TYPE_CHECKING:
    import networkx
    import pandas as pd

    from numpy.typing import ArrayLike

    from bayesstruct.networks.kernels.scores.base import Score

__all__ = ["MAX_DYNAMIC", "DAGSolution", "optimal_dag"]

#: Maximum number of variables for dynamic programming.
MAX_DYNAMIC = 25
_CANDIDATES = 10
_MAX_CANDIDATES = 20
# HiGHS accepts constraints that are violated by 1e-7, and integers that are off by 1e-6.
_VIOLATION = 1e-5
_CLOSE = 1e-9
# Cuts of the relaxation end when so many rounds of them close less than this share of the gap.
_ROUNDS, _PROGRESS = 10, 0.1


@dataclass(frozen=True, eq=False)
class DAGSolution(Solution):
    """A `Solution` whose estimate is a directed acyclic graph.

    Attributes
    ----------
    objective : float
        Log likelihood plus log prior weight of the graph: its log posterior up to a constant. The
        sum of its local terms.
    gap : float
        Bound on how much better any graph that was searched could be; 0 from dynamic programming.
    iterations : int
        Sets of variables (dynamic programming), or programs solved.
    converged : bool
        Whether the graph is shown to be the best.
    names : tuple of str
        The d variables.
    adjacency : (d, d) numpy.ndarray
        Int8; rows are parents.
    """

    names: tuple[str, ...]
    adjacency: np.ndarray

    @property
    def optimal(self) -> bool:
        """Whether the graph is shown to be the best of those searched."""
        return self.converged

    @property
    def graph(self) -> "networkx.DiGraph":
        """The graph as a ``networkx.DiGraph`` over the names."""
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(self.names)
        pairs = np.argwhere(self.adjacency).tolist()
        graph.add_edges_from((self.names[j], self.names[i]) for j, i in pairs)
        return graph


def optimal_dag(
    data: "pd.DataFrame | ArrayLike | Score",
    *,
    score: str = "bge",
    prior: str = "uniform",
    method: str | None = None,
    candidates: "int | ArrayLike | None" = None,
    time_limit: float | None = None,
    **options,
) -> DAGSolution:
    r"""Find the directed acyclic graph of largest posterior probability.

    Parameters
    ----------
    data : DataFrame, array_like or score
        (n, d) table, or an object with local scores; as for :func:`bayesstruct.exact.dag_posterior`.
    score : str
        ``"bge"``, ``"bdeu"``, or another of
        :func:`bayesstruct.networks.kernels.scores.named.network_score`.
    prior : {"uniform", "edge", "fair"}
        A modular prior.
    method : {"dynamic", "milp"}, optional
        Dynamic programming, or integer programming by HiGHS; by default the first up to 25
        variables and the second beyond.
    candidates : int or (d, k) array of int, optional
        For ``"milp"``: how many candidate parents each variable has, chosen by
        :func:`bayesstruct.solvers.candidate_parents`, or which, rows padded with
        -1. At most 20. By default all others up to 12 variables, 10 beyond. The graph is then the
        best of those whose parents are candidates.
    time_limit : float, optional
        Seconds for ``"milp"``; none by default.
    **options
        `names`, `edge_probability`, `max_parents`, `required`, `forbidden`, `tiers`,
        `interventions`, `states`, `equivalent_sample_size` and options of the score, as for :func:`bayesstruct.exact.dag_posterior`.

    Returns
    -------
    DAGSolution
        Of several graphs that are equally good, as equivalent ones are under a score like BGe and a
        uniform prior, one.

    Raises
    ------
    TableError
        If the table cannot be used, or there are too many columns for ``method="dynamic"``.
    ValueError
        If an option is unknown or out of range, or no graph has positive probability.

    Warns
    -----
    ConvergenceWarning
        If the time limit ends the search.

    Notes
    -----
    Dynamic programming takes :math:`O(d^2 2^d)` steps and :math:`4 (d + 2) 2^d` bytes: 92 MB for 20
    variables, 840 MB for 23, 3.6 GB for 25, and for a moment the scores of one variable besides; 25
    variables with BGe took 59 CPU seconds and 4.0 GiB in all (`benchmarks/exact_dag.py --large`). Integer
    programs are quick for sparse graphs with much evidence; on dense ones they may take very long, and
    `time_limit` then ends them with a graph and its gap.

    References
    ----------
    Silander, T. and Myllymäki, P. (2006). A simple approach for finding the globally optimal Bayesian
    network structure. *UAI* 22.

    Jaakkola, T., Sontag, D., Globerson, A. and Meila, M. (2010). Learning Bayesian network structure using
    LP relaxations. *AISTATS* 13, 358-365; eq. 5 (cluster constraints).

    Bartlett, M. and Cussens, J. (2013). Advances in Bayesian network learning using integer programming.
    *UAI* 29.

    Cussens, J. (2011). Bayesian network learning with cutting planes. *UAI* 27.
    """
    problem = network_problem(data, score=score, prior=prior, **options)
    if problem.order:
        raise ValueError(
            "the prior 'order' counts the orders of a graph, which is no sum over parent sets; find "
            "the mode under 'uniform', 'edge' or 'fair'"
        )
    method = method or ("dynamic" if problem.d <= MAX_DYNAMIC else "milp")
    if method not in ("dynamic", "milp"):
        raise ValueError(f"method {method!r} is unknown; choose 'dynamic' or 'milp'")
    if method == "milp":
        solution = _Program(problem, _candidates(problem, candidates)).solve(time_limit)
        solution.warn_unless_converged("optimal_dag", "Raise time_limit, or lower candidates.")
        return solution
    if candidates is not None or time_limit is not None:
        raise ValueError("`candidates` and `time_limit` are options of method='milp'")
    return _dynamic(problem)


def _dynamic(problem):
    from bayesstruct.data.table import TableError
    from bayesstruct.networks.kernels.order_sums import optimal_values
    from bayesstruct.networks.kernels.subset_sums import subset_maxima

    d = problem.d
    if d > MAX_DYNAMIC:
        raise TableError(
            f"{d} columns are too many for dynamic programming, at most {MAX_DYNAMIC} are served; use "
            "fewer columns or method='milp'"
        )
    best = problem.log_weights()
    for row in best:
        subset_maxima(row)
    values = optimal_values(best)
    if values[-1] == -np.inf:
        raise ValueError("no graph has positive probability: some variable has scores of -infinity")
    adjacency = np.zeros((d, d), np.int8)
    for child, before in _sinks(best, values):
        adjacency[_best_parents(problem, child, before), child] = 1
    return _solution(problem, adjacency, gap=0.0, iterations=1 << d, converged=True)


def _sinks(best, values):
    """Variables, last first, with those before them, in the order of the best graph."""
    from bayesstruct.networks.kernels.subset_sums import squeezed

    mask = len(values) - 1
    while mask:
        members = [i for i in range(len(best)) if mask >> i & 1]
        gains = [
            values[mask ^ 1 << i] + best[i, squeezed(mask ^ 1 << i, i)] - values[mask]
            for i in members
        ]
        child = members[int(np.argmax(gains))]
        mask ^= 1 << child
        yield child, [i for i in members if i != child]


def _best_parents(problem, child, candidates):
    """Return the best set among some candidates; of several the smallest."""
    values = problem.subsets(child, candidates)
    ties = np.flatnonzero(values == values.max())
    mask = int(ties[np.bitwise_count(ties).argmin()])
    return [j for b, j in enumerate(candidates) if mask >> b & 1]


def _solution(problem, adjacency, **report):
    terms = [_term(problem, i, np.flatnonzero(adjacency[:, i])) for i in range(problem.d)]
    return DAGSolution(
        objective=float(sum(terms)), names=problem.names, adjacency=adjacency, **report
    )


def _term(problem, child, parents):
    return problem.score.local(child, tuple(parents.tolist())) + problem.prior.local(child, parents)


def _candidates(problem, candidates):
    """Candidate parents of each variable, as a list of lists."""
    d = problem.d
    if candidates is None:
        candidates = d - 1 if d <= 12 else _CANDIDATES
    if np.ndim(candidates) == 0:
        size = int(candidates)
        if size < d - 1:
            from bayesstruct.networks.solvers.candidate_parents import candidate_parents

            allowed, required = problem.prior.allowed, problem.prior.required
            candidates = candidate_parents(problem.score, size, allowed=allowed, required=required)
        else:
            candidates = [np.delete(np.arange(d), i) for i in range(d)]
    rows = [[int(j) for j in row if j >= 0] for row in candidates]
    if len(rows) != d or any(j == i or j >= d for i, row in enumerate(rows) for j in row):
        raise ValueError(f"`candidates` must have a row for each of {d} variables, without itself")
    if (most := max(map(len, rows))) > _MAX_CANDIDATES:
        raise ValueError(
            f"{most} candidate parents have too many subsets, at most {_MAX_CANDIDATES} are served"
        )
    return rows


def _unbeaten(values):
    """Masks of the sets that are better than each of their subsets, the best first."""
    from bayesstruct.networks.kernels.subset_sums import subset_maxima

    best = values.copy()
    subset_maxima(best)
    masks = np.arange(len(values))
    kept = values > -np.inf
    for b in range(len(values).bit_length() - 1):
        inside = masks >> b & 1 == 1
        kept[inside] &= values[inside] > best[masks[inside] ^ (1 << b)]
    kept = masks[kept]
    return kept[np.argsort(-values[kept], kind="stable")]


def _total(graph):
    return graph[0].sum()


def _stalled(bounds, best):
    """Whether the last rounds of cuts closed so little of the gap that further ones do not pay."""
    return len(bounds) > _ROUNDS and (
        bounds[-1] - bounds[-1 - _ROUNDS] < _PROGRESS * (_total(best) - bounds[-1])
    )


class _Program:
    """The integer program: families (child, parents), their costs, and cuts.

    The cost of a family is the score of the best one of its child less its own.
    """

    def __init__(self, problem, candidates):
        self.problem, d = problem, problem.d
        child, parents, cost = [], [], []
        for i, row in enumerate(candidates):
            values = problem.subsets(i, row)
            kept = _unbeaten(values)
            if not len(kept):
                raise ValueError(
                    f"no candidate parents of {problem.names[i]!r} have positive probability"
                )
            sets = np.zeros((len(kept), d), bool)
            sets[:, row] = kept[:, None] >> np.arange(len(row)) & 1
            child.append(np.full(len(kept), i))
            parents.append(sets)
            cost.append(values[kept[0]] - values[kept])
        self.child, self.cost = np.concatenate(child), np.concatenate(cost)
        self.parents = np.concatenate(parents)
        possible = np.array([self.parents[self.child == i].any(axis=0) for i in range(d)])
        self.clusters = [
            tuple(pair) for pair in np.argwhere(np.triu(possible & possible.T)).tolist()
        ]

    def solve(self, time_limit):
        """Solve relaxations with more and more cuts, then integer programs until there is no cycle."""
        end = np.inf if time_limit is None else time.monotonic() + time_limit
        best, bound, iterations = self._improved(self._rounded(0.0 * self.cost)), 0.0, 0
        clusters, bounds = True, []
        while clusters and time.monotonic() < end:
            iterations += 1
            x, value, reduced = self._relaxation()
            bound = max(bound, value)
            best = min(best, self._rounded(x), key=_total)
            if _total(best) - bound < _CLOSE:
                return self._report(best, bound, iterations)
            bounds.append(bound)
            clusters = self._cycles(x) or ([] if _stalled(bounds, best) else self._cluster(x))
            self.clusters += clusters
        best = self._improved(best)
        if bounds:  # a family at zero whose reduced cost exceeds the gap is in no better graph
            self._keep(reduced <= _total(best) - value + _CLOSE)
        done = False
        while not done and time.monotonic() < end:
            iterations += 1
            result = self._integers(end - time.monotonic())
            if result.status == 2:  # no graph is better than the one that was found
                bound = _total(best)
                break
            bound = max(bound, min(result.mip_dual_bound or 0.0, _total(best)))
            if result.x is None:
                break
            best = min(best, self._rounded(result.x), key=_total)
            clusters = self._cycles(result.x)
            self.clusters += clusters
            done = not clusters or _total(best) - bound < _CLOSE
        return self._report(best, bound, iterations)

    def _report(self, best, bound, iterations):
        adjacency = np.ascontiguousarray(best[1].T.astype(np.int8))
        gap = max(float(_total(best) - bound), 0.0)
        # The tolerances of HiGHS allow an error of this size.
        converged = gap <= 1e-6 * max(1.0, float(_total(best)))
        return _solution(
            self.problem, adjacency, gap=gap, iterations=iterations, converged=converged
        )

    def _keep(self, kept):
        self.child, self.cost, self.parents = self.child[kept], self.cost[kept], self.parents[kept]

    def _constraints(self):
        """Families of each child, and those that satisfy the cut of each cluster; sparse matrices."""
        from scipy.sparse import csr_array

        cuts = np.zeros((len(self.clusters), len(self.child)), bool)
        for row, cluster in zip(cuts, self.clusters, strict=True):
            row[:] = np.isin(self.child, cluster) & ~self.parents[:, list(cluster)].any(axis=1)
        one = self.child == np.arange(self.problem.d)[:, None]
        return csr_array(one, dtype=float), csr_array(cuts, dtype=float)

    def _relaxation(self):
        """Solution of the linear program, its value, and the reduced costs."""
        from scipy.optimize import linprog

        one, cuts = self._constraints()
        result = linprog(
            self.cost,
            A_ub=-cuts if self.clusters else None,
            b_ub=-np.ones(len(self.clusters)) if self.clusters else None,
            A_eq=one,
            b_eq=np.ones(self.problem.d),
            method="highs",
        )
        if result.status != 0:
            raise RuntimeError(f"HiGHS failed: {result.message}")
        return result.x, result.fun, result.lower.marginals

    def _integers(self, seconds):
        from scipy.optimize import LinearConstraint, milp

        one, cuts = self._constraints()
        options = {"mip_rel_gap": 0.0}
        if np.isfinite(seconds):
            options["time_limit"] = max(seconds, 0.01)
        constraints = [LinearConstraint(one, 1.0, 1.0)]
        if self.clusters:
            constraints.append(LinearConstraint(cuts, 1.0, np.inf))
        return milp(
            self.cost, integrality=1, bounds=(0.0, 1.0), constraints=constraints, options=options
        )

    def _cycles(self, x):
        """Clusters that are the shortest cycles of a solution, lengths being 1 - arc."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        d = self.problem.d
        arcs = np.zeros((d, d))  # parents as rows
        np.add.at(arcs.T, self.child, self.parents * x[:, None])
        # A zero is no arc to `dijkstra`, nor is a value below 1e-8 in a dense matrix.
        lengths = np.where(arcs > _VIOLATION, np.maximum(1.0 - arcs, 1e-12), 0.0)
        distance, previous = dijkstra(csr_array(lengths), return_predecessors=True)
        found = set()
        for j, i in np.argwhere(lengths > 0):
            if distance[i, j] + lengths[j, i] < 1.0 - _VIOLATION:
                cluster, at = {int(j)}, j
                while at != i:
                    at = previous[i, at]
                    cluster.add(int(at))
                found.add(tuple(sorted(cluster)))
        return sorted(found)

    def _cluster(self, x):
        """Most violated cluster of a fractional solution, by an integer program of its own.

        With u for the members and J for the families whose child is one, and has a parent that is one,
        the cut is violated where the sum of x over these families exceeds the number of members less
        one (Bartlett and Cussens 2013).
        """
        from scipy.optimize import LinearConstraint, milp
        from scipy.sparse import csr_array, eye_array, hstack, vstack

        d = self.problem.d
        used = np.flatnonzero((x > _VIOLATION) & self.parents.any(axis=1))
        if not ((x[used] < 1.0 - _VIOLATION).any()):
            return []
        members = csr_array(self.child[used][:, None] == np.arange(d), dtype=float)
        parents = csr_array(self.parents[used], dtype=float)
        one = eye_array(len(used))
        rows = vstack([hstack([-members, one]), hstack([-parents, one])])
        size = np.concatenate([np.ones(d), np.zeros(len(used))])
        result = milp(
            np.concatenate([np.ones(d), -x[used]]),
            integrality=np.concatenate([np.ones(d), np.zeros(len(used))]),
            bounds=(0.0, 1.0),
            constraints=[
                LinearConstraint(rows.tocsc(), -np.inf, 0.0),
                LinearConstraint(size[None], 2.0, np.inf),
            ],
        )
        if result.x is None or result.fun > 1.0 - 1e-3:
            return []
        return [tuple(np.flatnonzero(result.x[:d] > 0.5).tolist())]

    def _rounded(self, x):
        """Graph near a solution.

        Next comes the variable whose parents, by the solution, are before it already, as far as
        possible; it gets its best parents of those before it.
        """
        d = self.problem.d
        before = np.zeros(d, bool)
        order = []
        for _ in range(d):
            possible = ~(self.parents & ~before).any(axis=1)
            share = np.bincount(self.child, x * possible, d)
            ready = (np.bincount(self.child, possible, d) > 0) & ~before
            if not ready.any():
                raise ValueError("no graph satisfies the constraints with these candidates")
            order.append(int(np.where(ready, share, -np.inf).argmax()))
            before[order[-1]] = True
        return self._ordered(order)

    def _ordered(self, order):
        """Costs of the best families that agree with an order, their parents (d, d), and the order."""
        place = np.argsort(order)
        late = (self.parents & (place > place[self.child][:, None])).any(axis=1)
        cost = np.where(late, np.inf, self.cost)
        best = np.lexsort((cost, self.child))
        best = best[np.searchsorted(self.child[best], np.arange(self.problem.d))]
        return cost[best], self.parents[best], list(order)

    def _improved(self, best):
        """Move one variable at a time to another place in the order, as long as that helps."""
        d, better = self.problem.d, True
        while better:
            better = False
            for i in range(d):
                rest = [j for j in best[2] if j != i]
                moved = [self._ordered([*rest[:k], i, *rest[k:]]) for k in range(d)]
                top = min(moved, key=_total)
                if _total(top) < _total(best) - _CLOSE:
                    best, better = top, True
        return best
