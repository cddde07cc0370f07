r"""The exact posterior over the trees that join all columns of a table.

If the prior of the parameters is the same for equivalent directed graphs, the marginal likelihood of a tree T is

.. math::

    p(D \mid T) = \prod_i p(D_i) \prod_{ij \in T} \frac{p(D_i, D_j)}{p(D_i) \, p(D_j)},

a product over its edges, and sums over all :math:`p^{p - 2}` trees are determinants (Kirchhoff).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import choice, number, sample_size, whole_number
from bayesstruct.data.edge_priors import edge_probability_matrix
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.graphs.spanning_trees.forests import SharedForests
from bayesstruct.graphs.spanning_trees.two_kinds import all_trees, maximum_tree_of
from bayesstruct.networks.data.tables import DISCRETE_OR_MIXED, network_table
from bayesstruct.trees.data import (
    FOREST_OR_TREE,
    MIXED,
    check_forest_score,
    mixed_tree_table,
    score_of_columns,
)
from bayesstruct.trees.kernels.rows import AveragesRows, TreeRows

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from numpy.typing import ArrayLike

    from bayesstruct.data.intake import TableLike
    from bayesstruct.graphs.spanning_trees.sums import SpanningTrees
    from bayesstruct.graphs.spanning_trees.two_kinds import TreesOfTwoKinds

__all__ = [
    "ForestPosterior",
    "TreePosterior",
    "beta_shapes",
    "forest_posterior",
    "tree_log_odds",
    "tree_posterior",
]


@dataclass(frozen=True, eq=False, repr=False)
class TreePosterior(AveragesRows):
    """Exact posterior over the trees that join all columns of a table; made by :func:`tree_posterior`.

    Attributes
    ----------
    names : tuple of str
        The p columns.
    trees : SpanningTrees or TreesOfTwoKinds
        The posterior of trees of column numbers, for a table of numbers and states of those in which no path leads from states over numbers to
        states. Its ``log_weights``, (p, p), are log Bayes factors of dependence of two columns plus log prior
        odds of the edge.
    log_prior_odds : (p, p) ndarray
        Log prior odds of the edges; -inf where an edge is forbidden.
    log_independent : float
        Log marginal likelihood of the table if all columns are independent.
    rows : callable
        Makes the distribution of new rows, a `TreeRows`, when it is first asked for.
    numbers : (p,) ndarray of bool or None
        Which columns hold numbers, if there are columns of both kinds.
    """

    names: tuple[str, ...]
    trees: "SpanningTrees | TreesOfTwoKinds"
    log_prior_odds: np.ndarray
    log_independent: float
    rows: Callable[[], TreeRows]
    numbers: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"TreePosterior({len(self.names):,} variables)"

    @cached_property
    def edge_probabilities(self) -> "pd.DataFrame":
        """Posterior probability of each edge, (p, p), symmetric; the diagonal is 0. The edges' sum is p - 1."""
        import pandas as pd

        return pd.DataFrame(self.trees.probabilities, list(self.names), list(self.names))

    @cached_property
    def log_prior_total(self) -> float:
        """Log of the sum of the prior weights over all trees."""
        return all_trees(self.log_prior_odds, self.numbers).log_total

    @property
    def log_normaliser(self) -> float:
        """Log of the sum over all trees of the products of the weights of their edges."""
        return self.trees.log_total

    @property
    def log_evidence(self) -> float:
        r"""Log marginal likelihood :math:`\log \sum_T p(T) p(D \mid T)`; numbers are standardised."""
        return self.log_independent + self.log_normaliser - self.log_prior_total

    @cached_property
    def best(self) -> "nx.Graph":
        """The most probable tree, its edges with their log weights as ``weight`` (Chow and Liu 1968)."""
        return self.graph(maximum_tree_of(self.trees.log_weights, self.numbers))

    def draw(self, draws: int = 1000, random_seed: Any = None) -> np.ndarray:
        """Draw independent trees from the posterior.

        Parameters
        ----------
        draws : int, default 1000
        random_seed : int or numpy.random.Generator, optional

        Returns
        -------
        (draws, p - 1, 2) ndarray of int
            The edges of each tree, as positions of the columns in increasing order; `graph` makes a graph of one.
        """
        return self.trees.draw(draws, random_seed)

    def graph(self, lines: "ArrayLike") -> "nx.Graph":
        """Return a tree as a graph.

        Parameters
        ----------
        lines : (p - 1, 2) array_like of int
            Positions of the columns that each edge joins, as in a draw.

        Returns
        -------
        networkx.Graph
            Nodes are columns; edges have their log weight as ``weight``.
        """
        import networkx as nx

        graph: nx.Graph = nx.Graph(forest=True)
        graph.add_nodes_from(self.names)
        for i, j in np.asarray(lines, int).reshape(-1, 2).tolist():
            weight = float(self.trees.log_weights[i, j])
            graph.add_edge(self.names[i], self.names[j], weight=weight)
        return graph

    def log_probability(self, lines: "ArrayLike") -> float:
        """Log posterior probability of a tree.

        Parameters
        ----------
        lines : (p - 1, 2) array_like of int
            Positions of the columns that each edge joins; that they form a tree is not checked.
        """
        return self.trees.log_probability(lines)

    @property
    def graphs(self) -> "SpanningTrees | TreesOfTwoKinds":
        """The posterior of trees of column numbers."""
        return self.trees


def tree_posterior(
    data: "TableLike",
    *,
    score: str = "bge",
    edge_probability: "float | pd.DataFrame | ArrayLike" = 0.5,
    forbidden: Iterable[tuple[str, str]] = (),
    equivalent_sample_size: float = 1.0,
    states: "dict | list | None" = None,
    kinds: "dict | None" = None,
) -> TreePosterior:
    r"""Exact posterior over all trees of up to two thousand columns.

    A tree joins all columns without a cycle: columns without a common edge are independent given those on the way between
    them. Parameters are integrated out and all trees are summed over, so that nothing is sampled and nothing has to converge.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table without missing values, p at least 2: numbers, which are standardised, or states, or both.
    score : {"bge", "bdeu", "mixed"}
        Marginal likelihood. ``"bge"``: numbers, jointly normal, with a normal-Wishart prior. ``"bdeu"``: states, with Dirichlet priors of
        their probabilities. As in :func:`bayesstruct.exact.dag_posterior`. ``"mixed"``: text, booleans, categories and columns of two values hold
        states, other columns numbers, see the notes.
    edge_probability : float, (p, p) array_like or DataFrame, default 0.5
        Prior probability :math:`q_{ij}` of an edge if edges were independent; the prior is this distribution given that the graph is a tree,
        :math:`p(T) \propto \prod_{ij \in T} q_{ij} / (1 - q_{ij})`. With one number for all edges, all trees have the same probability.
        0 forbids an edge; 1, which would require one, is refused.
    forbidden : iterable of pairs of str
        Edges that no tree has.
    equivalent_sample_size : float, default 1
        Rows that the prior is worth.
    states : list or dict of lists, optional
        All states of columns of states, also those that never occur, as in :func:`bayesstruct.models.bayesian_network`.
    kinds : dict, optional
        Of ``"mixed"`` only: ``"normal"`` or ``"multinomial"`` for columns by name that are read in another way than by default.

    Returns
    -------
    TreePosterior
        With ``edge_probabilities``, ``best``, ``draw(draws, random_seed=)``, ``log_evidence``, and for new rows of a table with one kind of columns
        ``log_density(rows)`` and ``predict(rows, column=)``.

    Raises
    ------
    TableError
        If the table cannot be used or has missing values, an option names no column, or forbidden edges leave no tree.
    ValueError
        If an option is out of range.

    Notes
    -----
    Each result is computed when it is first asked for: the most probable tree in :math:`O(p^2 \log p)` operations, edge probabilities and evidence in
    :math:`O(p^3)`. They are right to about p times the rounding error even if weights of edges differ by a factor of
    :math:`e^{10000}`, where the determinant or the inverse of the Laplacian matrix cannot be computed
    (:mod:`bayesstruct.graphs.spanning_trees.elimination`). Times are in `benchmarks/tree_posterior.py`.

    Under ``"mixed"`` numbers next to a column of states are normal with a mean of its own in each state and the same variance in all of them;
    pairs of numbers and pairs of states are those of ``"bge"`` and ``"bdeu"``. No path leads from states over numbers to states: no
    such distribution has these paths. So the states form a tree, and the sum over all trees is a product of two determinants
    (:mod:`bayesstruct.graphs.spanning_trees.two_kinds`). The prior is over these trees.

    A tree has p - 1 edges whatever the data say. If columns are independent, edges are uncertain, not absent; if dependences form cycles, edges
    of a cycle compete. :func:`bayesstruct.exact.gaussian_graphs` and :func:`bayesstruct.models.gaussian_graphical` have graphs of any number of edges.

    References
    ----------
    Meilă, M. and Jaakkola, T. (2006). Tractable Bayesian learning of tree belief networks. *Statistics and Computing* 16,
    77-92.

    Schwaller, L., Robin, S. and Stumpf, M. (2019). Closed-form Bayesian inference of graphical model structures by averaging over
    trees. *Journal de la Société Française de Statistique* 160, 1-23.

    Chow, C. and Liu, C. (1968). Approximating discrete probability distributions with dependence trees. *IEEE Transactions on
    Information Theory* 14, 462-467.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=100)
    >>> b = a + rng.normal(size=100)
    >>> c = b + rng.normal(size=100)
    >>> posterior = tree_posterior(np.column_stack([a, b, c]))
    >>> posterior
    TreePosterior(3 variables)
    >>> sorted(posterior.best.edges)
    [('x0', 'x1'), ('x1', 'x2')]
    >>> bool(posterior.edge_probabilities.loc["x0", "x1"] > 0.99)
    True
    """
    choice("score", score, ("bge", "bdeu", MIXED))
    score = score_of_columns(data, score, kinds, states)
    size = sample_size(equivalent_sample_size)
    read = {"imputes": "bayesstruct.models.tree", "discrete": DISCRETE_OR_MIXED}
    table, alone, gains = _table_score(data, score, size, kinds, states=states, **read)
    numbers = np.array(table.states) == 0 if score == MIXED else None
    odds = tree_log_odds(table.names, edge_probability, forbidden, numbers)
    # Both directions are the same number but for rounding.
    weights = odds + (gains + gains.T) / 2.0
    rows = partial(TreeRows.after, table, size)
    trees = all_trees(weights, numbers)
    return TreePosterior(table.names, trees, odds, float(alone.sum()), rows, numbers)


def _table_score(data, score, size, kinds=None, **read):
    """Return the checked table, the evidence of columns alone and log Bayes factors of pairs."""
    from bayesstruct.networks.kernels.scores.discrete import BDeu
    from bayesstruct.networks.kernels.scores.gaussian import BGe
    from bayesstruct.trees.kernels.mixed import MixedTotals

    if score == MIXED:
        mixed = mixed_tree_table(data, kinds=kinds)
        return mixed, *MixedTotals(mixed.standardized, mixed.states, size).weights
    table = network_table(data, score, **read).table
    local = (
        BGe(table.standardized, alpha_mu=size)
        if score == "bge"
        else BDeu(table.codes, states=table.states, equivalent_sample_size=size)
    )
    alone, pairs = local.single_parents()
    return table, alone, pairs - alone[:, None]


@dataclass(frozen=True, eq=False, repr=False)
class ForestPosterior(AveragesRows):
    """Exact posterior over the forests of the columns of a table; made by :func:`forest_posterior`.

    Attributes
    ----------
    names : tuple of str
        The p columns.
    forests : SharedForests
        The posterior of forests of column numbers, and of their share of edges.
    log_independent : float
        Log marginal likelihood of the table if all columns are independent.
    rows : callable
        Makes the distribution of new rows, a `TreeRows`, when it is first asked for.
    """

    names: tuple[str, ...]
    forests: SharedForests
    log_independent: float
    rows: Callable[[], TreeRows]

    def __repr__(self) -> str:
        return f"ForestPosterior({len(self.names):,} variables)"

    @cached_property
    def edge_probabilities(self) -> "pd.DataFrame":
        """Posterior probability of each edge, (p, p), symmetric; the diagonal is 0."""
        import pandas as pd

        return pd.DataFrame(self.forests.probabilities, list(self.names), list(self.names))

    @cached_property
    def components(self) -> "pd.Series":
        """Posterior probability of each number of components, 1 to p, to about six digits."""
        import pandas as pd

        index = pd.RangeIndex(1, len(self.names) + 1, name="components")
        return pd.Series(self.forests.components, index, name="probability")

    @property
    def log_evidence(self) -> float:
        """Log marginal likelihood of the table, with forests and their share of edges summed over; numbers are standardised."""
        return self.log_independent + self.forests.log_evidence

    @property
    def edge_share(self) -> tuple[float, float]:
        """Posterior mean and standard deviation of the share of edges."""
        share, p = self.forests.share
        mean = float(p @ share)
        return mean, float(np.sqrt(p @ (share - mean) ** 2))

    def draw(self, draws: int = 1000, random_seed: Any = None) -> list[np.ndarray]:
        """Draw independent forests from the posterior.

        Parameters
        ----------
        draws : int, default 1000
        random_seed : int or numpy.random.Generator, optional

        Returns
        -------
        list of (edges, 2) ndarray of int
            The edges of each forest, as positions of the columns in increasing order.
        """
        return self.forests.draw(whole_number("draws", draws, 0), random_seed)

    def log_probability(self, lines: "ArrayLike") -> float:
        """Log posterior probability of a forest.

        Parameters
        ----------
        lines : (edges, 2) array_like of int
            Positions of the columns that each edge joins; that they form a forest is not checked.
        """
        return self.forests.log_probability(lines)

    @property
    def graphs(self) -> SharedForests:
        """The posterior of forests of column numbers."""
        return self.forests


def forest_posterior(
    data: "TableLike",
    *,
    score: str = "bge",
    edge_share: tuple[float, float] = (1.0, 1.0),
    edge_probability: "float | pd.DataFrame | ArrayLike" = 0.5,
    forbidden: Iterable[tuple[str, str]] = (),
    equivalent_sample_size: float = 1.0,
    states: "dict | list | None" = None,
) -> ForestPosterior:
    r"""Exact posterior over all forests of up to some hundred columns: trees of some columns each.

    A forest has no cycle, and its columns may be in several components, which are independent of each other. Parameters are integrated out, and all forests
    and numbers of components are summed over, so that nothing is sampled and nothing has to converge.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table without missing values, p at least 2: numbers, which are standardised, or states.
    score : {"bge", "bdeu"}
        Marginal likelihood, as in :func:`bayesstruct.exact.tree_posterior`.
    edge_share : (float, float), default (1, 1)
        Shapes a and b of the beta prior of the share of edges: the number of edges over p - 1. With (1, 1) each number of components has the
        same prior probability, if all edges have the same prior odds. See the notes.
    edge_probability : float, (p, p) array_like or DataFrame, default 0.5
        As in :func:`bayesstruct.exact.tree_posterior`, prior odds of the edges relative to each other: one number for all makes no difference.
    forbidden : iterable of pairs of str
        Edges that no forest has.
    equivalent_sample_size : float, default 1
        Rows that the prior is worth.
    states : list or dict of lists, optional
        All states of columns of states, as in :func:`bayesstruct.models.bayesian_network`.

    Returns
    -------
    ForestPosterior
        With ``edge_probabilities``, ``components``, ``edge_share`` (mean and standard deviation), ``draw(draws, random_seed=)``, ``log_evidence``, and for new rows
        ``log_density(rows)`` and ``predict(rows, column=)``.

    Raises
    ------
    TableError
        If the table cannot be used or has missing values, an option names no column, or all edges are forbidden.
    ValueError
        If an option is out of range.

    Notes
    -----
    The prior of a forest with the components C given the share s is :math:`\propto \prod_{ij} w_{ij} \prod_C |C| \rho`, with the prior odds w of its edges and
    :math:`\rho \propto (1 - s) / s` (:class:`bayesstruct.SpanningForest`). With equal odds the number of edges is binomial, s being the probability
    of each of p - 1, and forests with the same number of components have probabilities in proportion to the product of the sizes of these:
    components of about the same size are preferred a little. With a = b = 1 a forest of two columns has an edge with probability 1/2.

    The sum over s is a trapezoidal rule (:mod:`bayesstruct.graphs.spanning_trees.forests`), each of whose hundreds of terms takes
    :math:`O(p^3)` operations.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=100)
    >>> table = np.column_stack([a, a + rng.normal(size=100), rng.normal(size=100)])
    >>> posterior = forest_posterior(table)
    >>> int(posterior.components.idxmax())
    2
    """
    check_forest_score(score)
    shapes, size = beta_shapes(edge_share), sample_size(equivalent_sample_size)
    read = {"imputes": "bayesstruct.models.forest", "discrete": FOREST_OR_TREE}
    table, alone, gains = _table_score(data, score, size, states=states, **read)
    odds = tree_log_odds(table.names, edge_probability, forbidden, forest=True)
    forests = SharedForests(odds, (gains + gains.T) / 2.0, shapes)
    rows = partial(TreeRows.after, table, size, model="bayesstruct.models.forest")
    return ForestPosterior(table.names, forests, float(alone.sum()), rows)


def beta_shapes(edge_share: Any) -> tuple[float, float]:
    """Check the two shapes of the beta prior of the share of edges."""
    if not isinstance(edge_share, list | tuple | np.ndarray) or len(edge_share) != 2:
        raise ValueError(
            f"`edge_share` is the two shapes of a beta distribution, such as (1, 1), not {edge_share!r}"
        )
    first, second = (number("edge_share", v, least=0.01, most=1e6) for v in edge_share)
    return float(first), float(second)


def tree_log_odds(names, probability, forbidden, numbers=None, *, forest=False) -> np.ndarray:
    """Log prior odds of the edges, -inf where there is none; a TableError if no tree is left, or for a forest no edge.

    `numbers` marks columns of numbers among others of states, which form a tree among themselves.
    """
    q = edge_probability_matrix(names, probability, (), forbidden, learned=False)
    if len(sure := np.argwhere(np.triu(q == 1.0, 1))):
        i, j = sure[0]
        raise TableError(
            f"edge_probability is 1 for {names[i]} -- {names[j]}, which would require this edge: give a number below 1"
        )
    with np.errstate(divide="ignore"):
        odds = np.log(q) - np.log1p(-q)
    np.fill_diagonal(odds, -np.inf)
    allowed = np.isfinite(odds)
    if forest:
        if not allowed.any():
            raise TableError("all edges are forbidden, which leaves nothing to learn: allow one")
        return odds
    _refuse_cut(names, allowed)
    if numbers is not None:
        _refuse_cut_states(names, allowed, np.flatnonzero(~numbers))
    return odds


def _refuse_cut(names, allowed, what="columns", why="") -> None:
    """Raise a TableError if the allowed edges do not connect all columns."""
    from scipy.sparse.csgraph import connected_components

    parts, member = connected_components(allowed, directed=False)
    if parts > 1:
        smallest = np.bincount(member).argmin()
        group = [names[i] for i in np.flatnonzero(member == smallest)]
        raise TableError(
            f"no tree is left: all edges between {column_list(group)} and the other {what} are forbidden{why}; allow one of them "
            "(`forbidden`, or values of 0 in `edge_probability`)"
        )


def _refuse_cut_states(names, allowed, states) -> None:
    """Raise a TableError if the allowed edges do not connect all columns of states among themselves."""
    why = ", and states are not joined over numbers"
    _refuse_cut(
        [names[i] for i in states], allowed[np.ix_(states, states)], "columns of states", why
    )
