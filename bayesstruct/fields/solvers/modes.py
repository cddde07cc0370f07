r"""Posterior modes of pairwise Markov random fields under (group-)Laplace priors.

.. math::

    \min_{b, w} \; -\sum_m \log p(x^m \mid b, w) + \lambda \sum_{i<j} \|w_{ij}\|

with the likelihood, or with the pseudo-likelihood in its place.
"""

import copy
import math

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.solution import Solution
from bayesstruct.data.arguments import number, whole_number
from bayesstruct.data.given_graphs import graph_pairs
from bayesstruct.data.states import StateTable
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.solvers.likelihoods import likelihood_for, null_bias
from bayesstruct.sparse.penalties.group import Group
from bayesstruct.sparse.penalties.l1 import L1
from bayesstruct.sparse.penalties.norms import Euclidean, Maximum, Nuclear
from bayesstruct.sparse.solvers.scaled_subgradient import scaled_subgradient_steps
from bayesstruct.sparse.solvers.soft_threshold import soft_threshold_steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    import networkx

    from numpy.typing import ArrayLike

    from bayesstruct.data.intake import TableLike

__all__ = [
    "NORMS",
    "PairwiseMRFSolution",
    "pairwise_mrf",
    "pairwise_mrf_path",
    "pairwise_mrf_rate_max",
]

NORMS = (1, 2, math.inf, "nuclear")
_BLOCK = 10  # edges that join the working set at once, or as many as are in it


@dataclass(frozen=True, eq=False)
class PairwiseMRFSolution(Solution):
    """The mode of a pairwise Markov random field.

    ``gap`` is no bound on the objective but the residual of the optimality conditions, in units of
    the gradient: the largest difference, over biases and edges, between the gradient of the
    likelihood and the nearest subgradient of the penalty.

    Attributes
    ----------
    bias, weight : numpy.ndarray
        Of the potentials; exact zeros off the graph.
    potentials : Potentials
    names : tuple of str
        Columns.
    rate : float
    evaluations : int
        Values and gradients of the likelihood.
    """

    bias: np.ndarray
    weight: np.ndarray
    potentials: Potentials
    names: tuple[str, ...]
    rate: float
    evaluations: int

    @property
    def active(self) -> np.ndarray:
        """Whether each pair has a nonzero potential, (edges,)."""
        return np.logical_or.reduceat(self.weight != 0, self.potentials.weight_start[:-1])

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Pairs of columns with a nonzero potential."""
        ends = zip(*(end[self.active] for end in self.potentials.ends), strict=True)
        return [(self.names[i], self.names[j]) for i, j in ends]

    def table(self, first: str, second: str) -> np.ndarray:
        """Log-potentials of a pair, states of the first column as rows."""
        a, b = (self.names.index(name) for name in (first, second))
        i, j = min(a, b), max(a, b)
        at = np.flatnonzero((self.potentials.ends[0] == i) & (self.potentials.ends[1] == j))
        k = self.potentials.states
        if not len(at):  # not an edge of the given graph
            return np.zeros((k[a], k[b]))
        edge, start = int(at[0]), self.potentials.pair_start
        own = self.potentials.pair(self.weight)[start[edge] : start[edge + 1]].reshape(k[i], k[j])
        return own if a < b else own.T

    def graph(self) -> "networkx.Graph":
        """Graph on all columns; ``weight`` of an edge is the norm of its potential."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(self.names)
        start = self.potentials.weight_start
        for e in np.flatnonzero(self.active):
            i, j = (end[e] for end in self.potentials.ends)
            own = self.weight[start[e] : start[e + 1]]
            weight = float(own[0]) if len(own) == 1 else float(np.linalg.norm(own))
            graph.add_edge(self.names[i], self.names[j], weight=weight)
        return graph


def pairwise_mrf(
    data: "TableLike",
    *,
    potentials: "str | Potentials" = "full",
    norm: float | str = 2,
    rate: float = 1.0,
    likelihood: str = "pseudo",
    graph: "networkx.Graph | Iterable[tuple[str, str]] | None" = None,
    reference: int = 0,
    bias_ridge: float = 0.0,
    states: dict | list | None = None,
    tol: float = 1e-6,
    max_evaluations: int = 2000,
    start: "PairwiseMRFSolution | None" = None,
) -> PairwiseMRFSolution:
    r"""Mode of a pairwise Markov random field under a (group-)Laplace prior.

    .. math::

        \min_{b, w} \; -\sum_m \log p(x^m \mid b, w) + \lambda \sum_{i<j} \|w_{ij}\|
            + r \sum_i \|b_i\|_2^2

    Biases are not penalised unless `bias_ridge` says so.

    Parameters
    ----------
    data : DataFrame, array_like or StateTable
        (n, p) table of states without missing values, see
        :meth:`bayesstruct.data.StateTable.read`.
    potentials : str or Potentials
        ``"full"``, ``"ising"``, ``"generalized_ising"``, ``"ordinal"``, ``"blume_capel"`` or
        ``"spin"``; see :class:`bayesstruct.fields.kernels.potentials.Potentials`.
    norm : {2, numpy.inf, "nuclear", 1}
        Norm of the weights of a pair. If a pair has one weight, all norms are its absolute value.
    rate : float
        :math:`\lambda`, the rate of the prior; infinity gives the model without edges.
    likelihood : {"pseudo", "exact"}
        ``"exact"`` sums over all joint states: one by one, up to some 20 columns, or, where that is
        cheaper, variable by variable along the edges of a sparse `graph`. ``"pseudo"`` is the
        symmetric pseudo-likelihood :math:`\prod_i p(x_i \mid x_{-i})` (Besag 1975).
    graph : networkx.Graph or iterable of pairs of column names, optional
        The edges that may be present; all pairs by default. Not for `potentials` given as an object, which
        has its own edges.
    reference : int
        State from which Blume-Capel biases measure distance.
    bias_ridge : float
        :math:`r`; a normal prior of variance :math:`1 / (2 r)`.
    states : dict or list of lists, optional
        All states of columns, in order, as in :func:`bayesstruct.models.pairwise_mrf`; one that never occurs needs
        a `bias_ridge`. Not for a StateTable, which has its states.
    tol : float
        Stop when the residual of the optimality conditions is at most this times the number of
        rows.
    max_evaluations : int
        Largest number of values and gradients of the likelihood.
    start : PairwiseMRFSolution, optional
        The mode at another rate for the same potentials; ignored at an infinite rate.

    Returns
    -------
    PairwiseMRFSolution
        With ``edges``, ``objective`` (summed loss and penalty), ``gap`` (the residual).

    Raises
    ------
    TableError
        If the table or the graph cannot be used; the message names the column and the remedy.
    ValueError
        If an option is unknown or out of range, the start has other potentials, or there are too many
        joint states and too many edges for a sum along the graph.

    Warns
    -----
    ConvergenceWarning
        If the residual is above the tolerance after `max_evaluations`.

    Notes
    -----
    One weight for each pair, or norm 1: projected scaled sub-gradients; other norms:
    quasi-Newton soft-threshold steps. At the mode the expected number of rows in each state
    of each variable is the observed one. With full potentials and a norm of groups, the rows and
    columns of each table sum to zero; under norm 1 the tables are not unique, the distribution is.

    References
    ----------
    Schmidt, M. (2010). Graphical model structure learning with l1-regularization. PhD thesis,
    University of British Columbia, chapters 1 and 5 (equations 5.1-5.3).

    Besag, J. (1975). Statistical analysis of non-lattice data. *The Statistician* 24, 179-195.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.solvers import pairwise_mrf
    >>> rng = np.random.default_rng(0)
    >>> a, c = rng.integers(0, 3, (2, 200))
    >>> b = np.where(rng.random(200) < 0.7, a, rng.integers(0, 3, 200))
    >>> pairwise_mrf(np.column_stack([a, b, c]), rate=20.0).edges
    [('x0', 'x1')]
    """
    problem = _Problem.of(data, potentials, norm, likelihood, reference, bias_ridge, graph, states)
    solution = problem.solve(_checked_rate(rate), start, tol, max_evaluations)
    solution.warn_unless_converged("pairwise_mrf", "Raise `max_evaluations` or `tol`.")
    return solution


def solve_field(
    codes: np.ndarray,
    potentials: Potentials,
    *,
    norm: float | str,
    rate: float,
    likelihood: str,
    bias_ridge: float,
    tol: float,
    max_evaluations: int = 5000,
    counts: "ArrayLike | None" = None,
    start: "PairwiseMRFSolution | None" = None,
) -> PairwiseMRFSolution:
    """Mode for a table of coded states; see `pairwise_mrf`.

    Parameters
    ----------
    codes : (n, p) array of int
    potentials : Potentials
    norm, rate, likelihood, bias_ridge, tol, max_evaluations
        As in `pairwise_mrf`.
    counts : (n,) array_like, optional
        Multiplicity or weight of each row.
    start : PairwiseMRFSolution, optional
        Mode of a similar problem, as starting point.
    """
    names = tuple(f"x{i}" for i in range(potentials.p))
    fit = likelihood_for(likelihood, potentials, codes, counts)
    problem = _Problem(fit, norm, names, bias_ridge)
    return problem.solve(float(rate), start, tol, max_evaluations)


def pairwise_mrf_path(
    data: "TableLike",
    rates: "Iterable[float] | None" = None,
    *,
    n_rates: int = 10,
    ratio: float = 0.1,
    **options,
) -> "list[PairwiseMRFSolution]":
    """Modes over decreasing rates, each started at the one before.

    Parameters
    ----------
    data
        As in `pairwise_mrf`.
    rates : array_like, optional
        Decreasing; by default `n_rates` from the smallest rate without edges down to `ratio`
        times this rate, in equal steps of the logarithm.
    n_rates : int
    ratio : float
    **options
        As in `pairwise_mrf`, without ``rate`` and ``start``.

    Returns
    -------
    list of PairwiseMRFSolution

    Raises
    ------
    ValueError
        As from `pairwise_mrf`.
    """
    limits: dict = {key: options.pop(key) for key in ("tol", "max_evaluations") if key in options}
    limits = {"tol": 1e-6, "max_evaluations": 2000} | limits
    problem = _Problem.of(data, **(_DEFAULTS | options))
    if rates is None:
        rates = problem.rate_max * np.geomspace(1.0, ratio, n_rates)
    path, last = [], None
    for rate in rates:
        last = problem.solve(_checked_rate(rate), last, **limits)
        last.warn_unless_converged("pairwise_mrf_path", "Raise `max_evaluations` or `tol`.")
        path.append(last)
    return path


def pairwise_mrf_rate_max(data: "TableLike", **options) -> float:
    """Smallest rate at which the mode has no edge.

    Parameters
    ----------
    data, **options
        As in `pairwise_mrf`: ``potentials``, ``norm``, ``likelihood``, ``graph``, ``reference``,
        ``bias_ridge``, ``states``.

    Returns
    -------
    float
        The largest dual norm, over the pairs, of the gradient at the model without edges.
    """
    return _Problem.of(data, **(_DEFAULTS | options)).rate_max


_DEFAULTS = {
    "potentials": "full",
    "norm": 2,
    "likelihood": "pseudo",
    "graph": None,
    "reference": 0,
    "bias_ridge": 0.0,
    "states": None,
}


def _state_table(data, states):
    if not isinstance(data, StateTable):
        return StateTable.read(data, states=states)
    if states is not None:
        raise ValueError(
            "a StateTable has its states: leave `states` out, or pass the table itself"
        )
    return data


def _checked_rate(rate) -> float:
    if isinstance(rate, str | bool) or not float(rate) >= 0:
        raise ValueError(f"`rate` must be a number and not negative, it is {rate!r}")
    return float(rate)


class _Problem:
    """A likelihood and the penalty of its weights."""

    def __init__(self, likelihood, norm, names, bias_ridge):
        if norm not in NORMS:
            raise ValueError(f"`norm` must be one of {NORMS}, it is {norm!r}")
        if not 0 <= bias_ridge < math.inf:
            raise ValueError(f"`bias_ridge` must not be negative, it is {bias_ridge}")
        self.likelihood, self.names, self.bias_ridge = likelihood, names, float(bias_ridge)
        self.potentials = likelihood.potentials
        single = self.potentials.weight_size == len(self.potentials.ends[0])
        self.norm = 1 if single else norm
        self.null = null_bias(likelihood, self.bias_ridge)

    @classmethod
    def of(cls, data, potentials, norm, likelihood, reference, bias_ridge, graph=None, states=None):
        """Check the arguments of `pairwise_mrf`."""
        table = _state_table(data, states)
        if bias_ridge == 0:
            table.refuse_unseen(
                "their biases have no mode without `bias_ridge`; give one, or leave them out"
            )
        if table.missing.any():
            gaps = [n for n, gap in zip(table.names, table.missing.any(0), strict=True) if gap]
            raise ValueError(
                f"values are missing in {', '.join(gaps)}: drop these rows or columns, or sample a "
                "model (bayesstruct.models.pairwise_mrf), which imputes them"
            )
        if not isinstance(potentials, Potentials):
            edges = None if graph is None else graph_pairs(table.names, graph)
            potentials = Potentials(potentials, table.states, reference, edges)
        elif graph is not None:
            raise ValueError(
                "`graph` applies to potentials given by name; a Potentials object has its own edges: leave `graph` out"
            )
        if potentials.states != table.states:
            raise ValueError(
                f"the potentials are for states {potentials.states}, the table has {table.states}"
            )
        return cls(
            likelihood_for(likelihood, potentials, table.codes), norm, table.names, bias_ridge
        )

    def penalty(self, rate):
        """Penalty of biases and weights together."""
        biases = self.potentials.bias_size
        if self.norm == 1:
            weights = np.concatenate([np.zeros(biases), np.ones(self.potentials.weight_size)])
            return L1(rate, weights=weights)
        groups = np.concatenate([np.full(biases, -1), self.potentials.edge_of_weight])
        shapes = {"shapes": self.potentials.shapes} if self.norm == "nuclear" else {}
        return Group(rate, groups, norm=self.norm, **shapes)

    def __call__(self, theta):
        """Value and gradient of the smooth part."""
        value, gradient = self.likelihood(theta)
        if self.bias_ridge > 0:
            bias = theta[: self.potentials.bias_size]
            value += self.bias_ridge * (bias @ bias)
            gradient[: len(bias)] += 2.0 * self.bias_ridge * bias
        return value, gradient

    @property
    def empty(self) -> np.ndarray:
        """The mode without edges."""
        return np.concatenate([self.null, np.zeros(self.potentials.weight_size)])

    @property
    def rate_max(self) -> float:
        """Smallest rate without edges."""
        return float(self.penalty(1.0).rate_max(self(self.empty)[1]))

    def dual_norms(self, gradient) -> np.ndarray:
        """Dual norm of the gradient in the weights of each edge."""
        if self.norm == 1:
            return np.maximum.reduceat(np.abs(gradient), self.potentials.weight_start[:-1])
        norms: dict = {
            2: Euclidean,
            math.inf: Maximum,
            "nuclear": lambda: Nuclear(self.potentials.shapes),
        }
        return norms[self.norm]().dual_norms(gradient, self.potentials.weight_start)

    def solve(self, rate, start, tol, max_evaluations) -> PairwiseMRFSolution:
        """Mode at a rate, by modes over growing sets of edges."""
        theta = self._first(start, rate)
        tol = number("tol", tol, above=0)
        max_evaluations = whole_number("max_evaluations", max_evaluations, 1)
        limit, penalty = tol * self.likelihood.n, self.penalty(rate if rate < math.inf else 1.0)
        biases, evaluations, rounds = self.potentials.bias_size, 0, 0
        working = np.zeros(len(self.potentials.ends[0]), bool)
        while True:
            value, gradient = self(theta)
            evaluations, rounds = evaluations + 1, rounds + 1
            residual = self._residual(theta, gradient, penalty, rate)
            done = residual <= limit
            if done or math.isinf(rate) or evaluations >= max_evaluations:
                break
            excess = self.dual_norms(gradient[biases:]) - rate
            active = self.active(theta)
            working |= active
            worst = np.argsort(-np.where(working, -np.inf, excess))
            worst = worst[: max(_BLOCK, int(working.sum()))]
            working[worst[excess[worst] > 0]] = True
            theta, spent = self._descend(
                theta, np.flatnonzero(working), rate, limit, max_evaluations - evaluations
            )
            evaluations += spent
        objective = value + (penalty.value(theta) if rate < math.inf else 0.0)
        return self._solution(theta, objective, residual, rounds, done, rate, evaluations)

    def _first(self, start, rate) -> np.ndarray:
        """Where to begin; without edges if there can be none."""
        if start is None or math.isinf(rate):
            return self.empty
        if start.potentials != self.potentials:
            raise ValueError("`start` is a mode of other states or potentials; leave it out")
        return np.concatenate([start.bias, start.weight])

    def _residual(self, theta, gradient, penalty, rate) -> float:
        if math.isinf(rate):
            return float(np.abs(gradient[: self.potentials.bias_size]).max())
        return float(penalty.residual(theta, gradient))

    def active(self, theta) -> np.ndarray:
        """Which edges have a weight that is not zero."""
        on = theta[self.potentials.bias_size :] != 0
        return np.logical_or.reduceat(on, self.potentials.weight_start[:-1])

    def _descend(self, theta, edges, rate, limit, evaluations):
        """Mode over these edges, the others being absent, and how many evaluations it took."""
        part, at = self._part(edges)
        solver = scaled_subgradient_steps if self.norm == 1 else soft_threshold_steps
        # No warning here: `solve` judges the residual over all edges.
        found = solver(
            part,
            theta[at],
            part.penalty(rate),
            tol=0.5 * limit,
            max_evaluations=max(evaluations, 2),
        )
        theta = self.empty
        theta[at] = found.coefficients
        return theta, found.evaluations

    def _part(self, edges):
        """Problem of the variables that these edges join, and the positions of its parameters."""
        potentials = self.potentials
        nodes = np.unique(np.concatenate([end[edges] for end in potentials.ends]))
        if not hasattr(self.likelihood, "restricted") or len(nodes) < 2:
            nodes, edges = np.arange(potentials.p), np.arange(len(potentials.ends[0]))
            return self, np.arange(potentials.bias_size + potentials.weight_size)
        part = copy.copy(self)
        part.likelihood = self.likelihood.restricted(nodes, edges)
        part.potentials = part.likelihood.potentials
        biases = _ranges(potentials.bias_start, nodes)
        weights = potentials.bias_size + _ranges(potentials.weight_start, edges)
        return part, np.concatenate([biases, weights])

    def _solution(self, theta, objective, gap, iterations, converged, rate, evaluations):
        biases = self.potentials.bias_size
        return PairwiseMRFSolution(
            objective=objective,
            gap=gap,
            iterations=iterations,
            converged=converged,
            bias=theta[:biases].copy(),
            weight=theta[biases:].copy(),
            potentials=self.potentials,
            names=self.names,
            rate=rate,
            evaluations=evaluations,
        )


def _ranges(start, which):
    """Positions of all members of some consecutive blocks."""
    return np.concatenate([np.arange(start[i], start[i + 1]) for i in which])
