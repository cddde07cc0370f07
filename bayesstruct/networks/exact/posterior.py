r"""The exact posterior over the directed acyclic graphs of a few variables.

For data D, local scores :math:`p(D_i \mid D_{\mathrm{pa}_i})` and prior weights :math:`\rho_i`,

.. math::

    p(G \mid D) \propto \ell(G) \prod_i \rho_i(\mathrm{pa}_i) \, p(D_i \mid D_{\mathrm{pa}_i}),

with :math:`\ell(G) = 1`, or the number of topological orders of G for the order-modular prior. The sums
over graphs are those of :mod:`bayesstruct.networks.kernels.layer_sums` and
:mod:`bayesstruct.networks.kernels.order_sums`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from scipy.special import logsumexp

from bayesstruct.data.table import TableError
from bayesstruct.networks.exact.problem import NetworkProblem, network_problem

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from bayesstruct.networks.kernels.dag_priors import ParentPrior
    from bayesstruct.networks.kernels.scores.base import Score

__all__ = [
    "MAX_MODULAR",
    "MAX_ORDER",
    "DAGPosterior",
    "FeatureProbabilities",
    "dag_posterior",
    "prior_arc_probabilities",
]

#: Maximum numbers of variables of a modular prior, 4**d steps, and of the order-modular one, d**2 2**d.
MAX_MODULAR = 16
MAX_ORDER = 22
_ENUMERATED = 5
_COUNTED = 14
_TOGETHER = 1 << 22  # counts of orders that are held at once


@dataclass(frozen=True, eq=False)
class FeatureProbabilities:
    """Posterior probabilities of a relation between two variables.

    Attributes
    ----------
    probabilities : pandas.DataFrame
        (d, d).
    standard_errors : pandas.DataFrame
        Monte Carlo standard errors; zero where the probabilities are exact. A relation that is in k
        of n draws has that of the share (k + 1) / (n + 2), so that it is not zero for a relation
        that was never or always seen.
    exact : bool
        Whether all graphs were enumerated.
    """

    probabilities: pd.DataFrame
    standard_errors: pd.DataFrame
    exact: bool


@dataclass(frozen=True, eq=False, repr=False)
class DAGPosterior:
    """Exact posterior over directed acyclic graphs; made by :func:`dag_posterior`.

    Attributes
    ----------
    problem : NetworkProblem
        Names, scores and prior weights.
    arc_probabilities : pandas.DataFrame
        (d, d) posterior probabilities of the arcs; rows are parents, columns children.
    log_total : float
        Log of the sum over graphs of likelihood times prior *weight* (not normalised).
    """

    problem: NetworkProblem
    arc_probabilities: pd.DataFrame
    log_total: float
    _tables: tuple = field(default=())

    def __repr__(self) -> str:
        prior = "order-modular" if self.problem.order else "modular"
        return (
            f"DAGPosterior({self.d} variables, {prior} prior, weights {self.problem.prior.kind!r})"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The d variables."""
        return self.problem.names

    @property
    def d(self) -> int:
        """Number of variables."""
        return self.problem.d

    @cached_property
    def log_evidence(self) -> float:
        r"""Log marginal likelihood :math:`\log \sum_G p(G) p(D \mid G)` under the normalised prior.

        It is :attr:`log_total` less the log of the sum of the prior weights over all graphs (and
        orders). That is a formula where weights depend on numbers of parents only; for constraints on
        arcs, or probabilities that differ, it is computed when first asked for, as the posterior was.
        """
        from bayesstruct.networks.kernels.prior_draws import log_prior_constant

        prior, order = self.problem.prior, self.problem.order
        if prior.exchangeable:
            return self.log_total - log_prior_constant(prior, order=order)
        sums = _order_sums if order else _partition_sums
        return self.log_total - sums(self.problem.log_prior_weights())[0]

    @cached_property
    def _ranked(self):
        from bayesstruct.networks.kernels.subset_sums import ranked_lists

        return ranked_lists(self._tables[0])

    def sample(
        self, draws: int = 1000, random_seed: int | np.random.Generator | None = None
    ) -> np.ndarray:
        """Draw independent graphs from the posterior.

        Parameters
        ----------
        draws : int
        random_seed : int or numpy.random.Generator, optional

        Returns
        -------
        numpy.ndarray
            (draws, d, d) int8 adjacency matrices; rows are parents.
        """
        from bayesstruct.networks.kernels.layer_sums import partition_draws
        from bayesstruct.networks.kernels.order_sums import order_draws

        rng = np.random.default_rng(random_seed)
        out = np.zeros((draws, self.d, self.d), np.int8)
        if self.problem.order:
            order_draws(rng, *self._tables[1:], *self._ranked, out)
        else:
            partition_draws(rng, *self._tables, *self._ranked, out)
        return out

    def path_probabilities(
        self, draws: int = 1000, random_seed: int | np.random.Generator | None = None
    ) -> FeatureProbabilities:
        """Posterior probabilities that a directed path leads from the row to the column.

        Exact for up to 5 variables, by enumeration (`draws` is then ignored); otherwise shares of
        independent draws, with their standard errors.

        Parameters
        ----------
        draws : int
        random_seed : int or numpy.random.Generator, optional
        """
        return self._feature(_paths, draws, random_seed)

    def blanket_probabilities(
        self, draws: int = 1000, random_seed: int | np.random.Generator | None = None
    ) -> FeatureProbabilities:
        """Posterior probabilities that two variables are in each other's Markov blankets.

        That is, one is a parent of the other or they have a child in common. Exact or from draws as for
        :meth:`path_probabilities`.

        Parameters
        ----------
        draws : int
        random_seed : int or numpy.random.Generator, optional
        """
        return self._feature(_blankets, draws, random_seed)

    def _feature(self, feature, draws, random_seed):
        exact = self.d <= _ENUMERATED
        if exact:
            from bayesstruct.networks.kernels.dags import all_dags

            graphs = all_dags(self.d)
            values = np.einsum("g,gij->ij", self._graph_probabilities(graphs), feature(graphs))
            errors = np.zeros_like(values)
        else:
            seen = feature(self.sample(draws, random_seed)).sum(axis=0)
            values, near = seen / draws, (seen + 1) / (draws + 2)
            errors = np.sqrt(near * (1 - near) / draws)
            np.fill_diagonal(errors, 0.0)
        values, errors = (_frame(x, self.names) for x in (values, errors))
        return FeatureProbabilities(values, errors, exact)

    def all_graphs(self) -> tuple[np.ndarray, np.ndarray]:
        """All graphs of up to five variables, and their posterior probabilities.

        Returns
        -------
        graphs : ndarray
            (graphs, d, d) int8 adjacency matrices, read-only; rows are parents.
        probabilities : ndarray
            (graphs,)

        Raises
        ------
        ValueError
            If there are more variables.
        """
        from bayesstruct.networks.kernels.dags import all_dags

        if self.d > _ENUMERATED:
            raise ValueError(
                f"all graphs are listed for up to {_ENUMERATED} variables, and there are {self.d}; draw some with `sample`"
            )
        graphs = all_dags(self.d)
        return graphs, self._graph_probabilities(graphs)

    def log_probabilities(self, graphs: "ArrayLike") -> np.ndarray:
        """Log posterior probabilities of some graphs.

        Parameters
        ----------
        graphs : (graphs, d, d) array_like
            Adjacency matrices, rows are parents.

        Returns
        -------
        ndarray
            (graphs,); minus infinity for a graph with a cycle.

        Raises
        ------
        ValueError
            If the matrices are not of d variables; under the prior ``"order"`` for more than 14 variables, since the
            orders of each graph are counted.

        Examples
        --------
        >>> posterior.log_probabilities(posterior.sample(3))  # doctest: +SKIP
        """
        from bayesstruct.networks.kernels.dags import is_acyclic

        graphs = np.asarray(graphs)
        if graphs.shape[1:] != (self.d, self.d):
            raise ValueError(
                f"`graphs` must have the shape (graphs, {self.d}, {self.d}), not {graphs.shape}"
            )
        if self.problem.order and self.d > _COUNTED:
            raise ValueError(
                f"under the prior 'order' probabilities of single graphs are known for up to {_COUNTED} variables, and there "
                f"are {self.d}"
            )
        acyclic = np.array([is_acyclic(graph) for graph in graphs], bool)
        out = np.full(len(graphs), -np.inf)
        out[acyclic] = self._log_weights(graphs[acyclic] != 0) - self.log_total
        return out

    def _graph_probabilities(self, graphs):
        """Posterior probabilities of all graphs on a few variables."""
        logs = self._log_weights(graphs)
        return np.exp(logs - logsumexp(logs))

    def _log_weights(self, graphs):
        """Log of likelihood times prior weight of graphs."""
        from bayesstruct.networks.kernels.dags import topological_orders

        weights, everyone = self._tables[0], np.arange(self.d)
        logs = np.zeros(len(graphs))
        for child in everyone:
            bits = np.delete(graphs[:, :, child], child, axis=1).astype(np.int64)
            logs += weights[child, (bits << everyone[:-1]).sum(axis=1)]
        if self.problem.order:
            size = max(1, _TOGETHER >> self.d)
            parts = [graphs[k : k + size] for k in range(0, len(graphs), size)]
            logs += np.log(np.concatenate([np.ones(0), *map(topological_orders, parts)]))
        return logs


def _frame(values, names):
    return pd.DataFrame(values, index=list(names), columns=list(names))


def _paths(graphs):
    """Whether a path leads from one variable to another, for each graph."""
    reach = graphs.astype(np.float32)
    for _ in range(int(np.ceil(np.log2(max(graphs.shape[1], 2))))):
        reach = (reach + reach @ reach > 0).astype(np.float32)
    return reach > 0


def _blankets(graphs):
    """Whether two variables are in each other's Markov blankets, for each graph."""
    arcs = graphs.astype(np.float32)
    other = np.swapaxes(arcs, 1, 2)
    near = (arcs + other + arcs @ other) > 0
    near[:, np.arange(graphs.shape[1]), np.arange(graphs.shape[1])] = False
    return near


def dag_posterior(
    data: "pd.DataFrame | ArrayLike | Score",
    *,
    score: str = "bge",
    prior: str = "uniform",
    names: Sequence[str] | None = None,
    **options,
) -> DAGPosterior:
    r"""Sum over all directed acyclic graphs of up to 16, or 22, variables.

    Parameters
    ----------
    data : DataFrame, array_like or score
        (n, d) table without missing values: numbers, which are standardised, or states for scores of
        discrete variables. Or an object with the methods of the scores in
        :mod:`bayesstruct.networks.kernels.scores`.
    score : str
        Local marginal likelihood: ``"bge"`` for numbers, ``"bdeu"`` for states, or another of
        :func:`bayesstruct.networks.kernels.scores.named.network_score`; ``"bic"`` is ``"gaussian"`` for numbers and
        ``"multinomial"`` for text, booleans and categories.
    prior : {"uniform", "edge", "fair", "order"}
        Modular priors, :math:`p(G) \propto \prod_i \rho_i(\mathrm{pa}_i)`, up to 16 variables: all
        graphs have the same weight; each arc has `edge_probability`; all numbers of parents have the same weight
        (:class:`bayesstruct.networks.kernels.dag_priors.ParentPrior`). ``"order"`` multiplies by the number of
        topological orders of the graph, which favours graphs with many of them, and serves 22
        variables.
    names : sequence of str, optional
        Names of the variables of a score; x0, x1, ... by default.
    **options
        weights : {"uniform", "edge", "fair"}
            The :math:`\rho` of the prior ``"order"``; ``"uniform"``, or ``"edge"`` if
            `edge_probability` is given.
        edge_probability : float, (d, d) array_like or DataFrame
            Prior probability of an arc before cycles are ruled out, rows as parents; 0 forbids
            and 1 requires it. By default min(1/2, 3 / (2 (d - 1))).
        max_parents : int
            Maximum number of parents of a variable; any number by default.
        required, forbidden : iterable of pairs of str
            Arcs as (parent, child).
        tiers : dict or iterable of iterables of str
            Groups of columns, the earliest first (or the number of its tier for each column): no
            arc points to an earlier one.
        interventions : (n, d) bool array_like or DataFrame
            Values that were set by the experimenter; such a row carries no information about the distribution of
            its column (Cooper and Yoo 1999). A DataFrame may leave out columns.
        states : list or dict of lists
            All states of columns of states, also those that never occur, as in
            :func:`bayesstruct.models.bayesian_network`; categories of pandas and an Enum of polars declare them too.
        equivalent_sample_size : float
            Rows that the prior is worth, of ``"bge"`` (there also `alpha_mu`) and ``"bdeu"``; 1 by
            default, as in :func:`bayesstruct.models.bayesian_network`.
        All others go to the score.

    Returns
    -------
    DAGPosterior

    Raises
    ------
    TableError
        If the table cannot be used, an option names no column, or there are too many columns.
    TypeError
        If there is no such option.
    ValueError
        If an option is out of range, or no graph has positive probability.

    Notes
    -----
    The order-modular sums take :math:`O(d^2 2^d)` steps and 8 d 2**d bytes (170 MB for 20 variables),
    modular ones :math:`O(4^d)` steps and about :math:`16 \cdot 3^d` bytes (80 MB for 14 variables); draws
    need about as much again. Times are in `benchmarks/exact_dag.py`. Probabilities are
    right to about :math:`10^{-10}` for log scores that spread over 10,000.

    References
    ----------
    Cooper, G. F. and Yoo, C. (1999). Causal discovery from a mixture of experimental and observational
    data. *UAI* 15, 116-125.

    Koivisto, M. (2006). Advances in exact Bayesian structure discovery in Bayesian networks. *UAI* 22.

    Koivisto, M. and Sood, K. (2004). Exact Bayesian structure discovery in Bayesian networks. *JMLR* 5,
    549-573.

    Tian, J. and He, R. (2009). Computing posterior probabilities of structural features in Bayesian
    networks. *UAI* 25.

    Examples
    --------
    .. code-block:: python

        posterior = bs.exact.dag_posterior(table, prior="order")
        posterior.arc_probabilities.loc["smoking", "cancer"]
    """
    problem = network_problem(data, score=score, prior=prior, names=names, **options)
    _check_size(problem)
    weights = problem.log_weights()
    sums = _order_sums if problem.order else _partition_sums
    log_total, tables = sums(weights)
    if log_total == -np.inf:
        raise ValueError("no graph has positive probability: some variable has scores of -infinity")
    arcs = _order_arcs if problem.order else _partition_arcs
    frame = _frame(arcs(weights, tables), problem.names)
    return DAGPosterior(problem, frame, log_total, (weights, *tables))


class IndependentDraws:
    """Independent graphs from the exact posterior.

    Parameters
    ----------
    problem : NetworkProblem
        Of at most `MAX_MODULAR` variables, `MAX_ORDER` under the order-modular prior.
    """

    def __init__(self, problem: NetworkProblem):
        from bayesstruct.networks.kernels.subset_sums import ranked_lists

        self.weights, self.order = problem.log_weights(), problem.order
        sums = _order_sums if problem.order else _partition_sums
        log_total, tables = sums(self.weights)
        if log_total == -np.inf:
            raise ValueError("no graph has positive probability under scores and constraints")
        self.tables, self.ranked, self.log_total = tables, ranked_lists(self.weights), log_total

    def __call__(self, rng: np.random.Generator) -> np.ndarray:
        """Draw one graph, (d, d) int8."""
        from bayesstruct.networks.kernels.layer_sums import partition_draws
        from bayesstruct.networks.kernels.order_sums import order_draws

        out = np.zeros((1, *[len(self.weights)] * 2), np.int8)
        if self.order:
            order_draws(rng, *self.tables, *self.ranked, out)
        else:
            partition_draws(rng, self.weights, *self.tables, *self.ranked, out)
        return out[0]

    def log_score(self, graph: np.ndarray) -> float:
        """Sum of the log scores and log prior weights of a graph."""
        d = len(graph)
        power = 1 << np.arange(d - 1)
        masks = [int(power @ np.delete(graph[:, i], i)) for i in range(d)]
        return float(self.weights[np.arange(d), masks].sum())


def prior_arc_probabilities(prior: "ParentPrior", *, order: bool = False) -> np.ndarray:
    """Probability of each arc under a prior, summed over all graphs; (d, d).

    Parameters
    ----------
    prior : ParentPrior
    order : bool
        Whether it is the order-modular one.
    """
    everyone = np.arange(prior.d)
    weights = np.array([prior.subsets(i, np.delete(everyone, i)) for i in range(prior.d)])
    sums, arcs = (_order_sums, _order_arcs) if order else (_partition_sums, _partition_arcs)
    return np.asarray(arcs(weights, sums(weights)[1]))


def _check_size(problem):
    most = MAX_ORDER if problem.order else MAX_MODULAR
    if problem.d <= most:
        return
    other = "" if problem.order or problem.d > MAX_ORDER else f', prior="order" (up to {MAX_ORDER})'
    raise TableError(
        f"{problem.d} columns are too many to sum over all graphs, at most {most} are served with this "
        f"prior: use fewer columns{other}, or draw from the posterior with "
        "bayesstruct.models.bayesian_network"
    )


def _order_sums(weights):
    """Log sum over orders and graphs; and alpha, f."""
    from bayesstruct.networks.kernels.order_sums import order_forward
    from bayesstruct.networks.kernels.subset_sums import log_subset_sums

    sums = weights.copy()
    for row in sums:
        log_subset_sums(row)
    forward = order_forward(sums)
    return float(forward[-1]), (sums, forward)


def _order_arcs(weights, tables):
    from bayesstruct.networks.kernels.order_sums import order_backward, order_families
    from bayesstruct.networks.kernels.subset_sums import bit_sums

    sums, forward = tables
    backward = order_backward(sums)
    logs = np.empty(weights.shape[1])
    arcs = []
    for child, row in enumerate(weights):
        order_families(child, row, forward, backward, logs)
        arcs.append(bit_sums(np.exp(logs)))
    return _square(arcs)


def _partition_sums(weights):
    """Log sum over graphs; and sums over parents that meet a layer, F."""
    from bayesstruct.networks.kernels.layer_sums import (
        meeting_sums,
        partition_forward,
        partition_total,
    )

    meeting = meeting_sums(weights)
    forward = partition_forward(weights, meeting)
    return float(partition_total(forward, len(weights))), (meeting, forward)


def _partition_arcs(weights, tables):
    from bayesstruct.networks.kernels.layer_sums import partition_backward
    from bayesstruct.networks.kernels.subset_sums import bit_sums

    families = partition_backward(weights, *tables)
    return _square([bit_sums(row) for row in families])


def _square(arcs):
    """Probabilities of the arcs into each child as a matrix with parents as rows, within [0, 1]."""
    out = np.array([np.insert(row, child, 0.0) for child, row in enumerate(arcs)]).T
    return np.minimum(out, 1.0)
