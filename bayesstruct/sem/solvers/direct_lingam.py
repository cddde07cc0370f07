"""DirectLiNGAM: the order, the graph and the weights of linear structural equations with non-Gaussian noise."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import choice, generator, number, refuse_given
from bayesstruct.data.checks import dependent_columns
from bayesstruct.data.errors import TableError, column_list, listing, warn
from bayesstruct.data.table import Table, near_one
from bayesstruct.sem.kernels.effects import total_effects
from bayesstruct.sem.solvers.causal_order import MEASURES, causal_order
from bayesstruct.sem.solvers.knowledge import knowledge_of, read_knowledge
from bayesstruct.sem.solvers.normality import looks_normal
from bayesstruct.sem.solvers.pruning import PRUNINGS, ordered_regressions

if TYPE_CHECKING:
    import networkx
    import pandas as pd

    from numpy.typing import ArrayLike

    from bayesstruct.networks.kernels.dag_priors import ParentPrior

__all__ = ["DirectLiNGAM", "bootstrapped_graphs", "direct_lingam", "normal_columns"]


@dataclass(frozen=True, eq=False, repr=False)
class DirectLiNGAM:
    """An order of the columns, and regressions along it.

    Attributes
    ----------
    names : tuple of str
        The d columns of the table.
    order : tuple of str
        The same, causes before effects.
    coefficients : pandas.DataFrame, shape (d, d)
        Row the child, column the parent, in units of the table; exactly zero without an arc.
    noise_scale : pandas.Series, length d
        Standard deviation of the noise of each column.
    normal_noise : pandas.Series of bool, length d
        Whether the residuals of the column cannot be told from normal ones (Anderson-Darling test
        at 1 %). The direction of an arc between two such columns is not identified.
    dependence : pandas.Series, length d
        By the order: dependence of the column on the residuals of those after it, in the units of
        the measure; small beside that of other columns for a clear order. 0 where what was known
        left no choice.
    evaluations : int
        How many pairs of columns were compared.
    """

    names: tuple[str, ...]
    order: tuple[str, ...]
    coefficients: "pd.DataFrame"
    noise_scale: "pd.Series"
    normal_noise: "pd.Series"
    dependence: "pd.Series"
    evaluations: int

    @property
    def adjacency(self) -> np.ndarray:
        """The arcs as a (d, d) int8 array; rows are parents."""
        return (self.coefficients.to_numpy().T != 0).astype(np.int8)

    @property
    def graph(self) -> "networkx.DiGraph":
        """The graph as a ``networkx.DiGraph`` over the names."""
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(self.names)
        pairs = np.argwhere(self.adjacency).tolist()
        graph.add_edges_from((self.names[j], self.names[i]) for j, i in pairs)
        return graph

    @property
    def total_effects(self) -> "pd.DataFrame":
        """Change of the row's column per unit by which the column's column is set, (d, d)."""
        import pandas as pd

        order = [self.names.index(name) for name in self.order]
        total = total_effects(self.coefficients.to_numpy(), order)
        return pd.DataFrame(total, self.names, self.names)

    def __repr__(self) -> str:
        first = "".join(f"{name}, " for name in self.order[:3])
        return f"DirectLiNGAM({len(self.order):,} variables, {self.adjacency.sum():,} arcs, order {first}...)"


def direct_lingam(
    data: "pd.DataFrame | ArrayLike",
    *,
    measure: str = "kernel_difference",
    prior_knowledge: "pd.DataFrame | ArrayLike | None" = None,
    required: Iterable[tuple] = (),
    forbidden: Iterable[tuple] = (),
    tiers: dict | Iterable[Iterable] | None = None,
    prune: str | None = "bic",
    gamma: float | None = None,
    random_seed: int | np.random.Generator | None = None,
) -> DirectLiNGAM:
    r"""Find the order, the graph and the weights of linear structural equations with non-Gaussian noise.

    .. math:: x_i = c_i + \sum_{j \text{ before } i} b_{ij} x_j + e_i

    with independent, non-Gaussian noise e and no hidden common causes. A column that is independent of the
    residuals of all others on it is a first cause; it is taken out, and the residuals take the place of
    the others (DirectLiNGAM [1]_). Regressions along the order are pruned by an adaptive lasso.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, d) table of numbers without missing values, n > d. The units of the columns do not matter.
    measure : {"kernel_difference", "kernel", "entropy", "likelihood_ratio"}
        How independence is measured.

        ``"kernel_difference"``
            Mutual information by kernels, which finds any dependence, of both directions of a pair, and
            their difference. About 1 ms for a pair, .5 s for 20 columns of 1,000 rows, a minute for 100 columns.
        ``"kernel"``
            The same information of one direction, which is the statistic of the source [1]_. It errs more
            often in graphs of many arcs, unless the noise is far from normal, and is slower with many columns (three times with 50).
        ``"entropy"``
            Differences of approximate entropies [2]_, the default of other programs: nearly as good
            for common distributions and far faster, for tables with many columns.
        ``"likelihood_ratio"``
            Ratios of likelihoods to first order [2]_: the fastest, for clearly heavy or light tails;
            it errs more often in large graphs and does not see skewness.
    prior_knowledge : (d, d) array_like or DataFrame, optional
        Row the effect, column the cause: 1 if there is a directed path, 0 if there is none, -1 if this is
        not known. A DataFrame is aligned by its labels.
    required, forbidden : iterable of pairs of str
        Arcs as (parent, child).
    tiers : dict or iterable of iterables of str, optional
        Groups of columns, the earliest first, or the number of its tier for each column. No arc points
        to an earlier tier.
    prune : {"bic", "cross_validation"} or None, default "bic"
        How the rate of the adaptive lasso is chosen, five folds in the second case. None keeps all arcs
        along the order.
    gamma : float, optional
        Power of the least-squares coefficients in the weights of the adaptive lasso, 1 by default.
    random_seed : int or numpy.random.Generator, optional
        Deals the rows to folds, 0 by default; of ``prune="cross_validation"`` only. Nothing else is random.

    Returns
    -------
    DirectLiNGAM

    Raises
    ------
    TableError
        If the table cannot be used, values are missing, there are not more rows than columns, a column is
        a linear combination of others, or what is known contradicts itself; a cycle is named.
    ValueError
        If an option is unknown, out of range or does not apply.

    Warns
    -----
    TableWarning
        If arcs join columns whose noise cannot be told from normal: then their direction is not identified.

    Notes
    -----
    Comparisons that cannot change the order any more are left out, as in [3]_; the order is that of all
    comparisons. Columns are standardised before each comparison, so that the order does not depend on units. The program of
    [1]_ compares them in the units of the table, and its kernel sum grows with their variances. It then prefers columns of small
    variance: an advantage where variances of the noise are similar, and an error where units are arbitrary.

    The estimate is one order without its uncertainty. A column that is known to be a first cause
    is taken without a comparison. Where it is known that there is no path there is no arc; if the table
    contradicts that, paths over other columns may remain, as in the source.

    References
    ----------
    .. [1] S. Shimizu, T. Inazumi, Y. Sogawa, A. Hyvärinen, Y. Kawahara, T. Washio, P. O. Hoyer and K. Bollen (2011).
       DirectLiNGAM: a direct method for learning a linear non-Gaussian structural equation model. *JMLR*
       12, 1225-1248.
    .. [2] A. Hyvärinen and S. M. Smith (2013). Pairwise likelihood ratios for estimation of non-Gaussian structural
       equation models. *JMLR* 14, 111-152.
    .. [3] A. Shahbazinia, S. Salehkaleybar and M. Hashemi (2023). ParaLiNGAM: parallel causal structure learning for
       linear non-Gaussian acyclic models. *Journal of Parallel and Distributed Computing* 176, 114-127.

    Examples
    --------
    >>> import bayesstruct as bs
    >>> table = bs.simulate.linear_sem(500, p=4, noise="uniform", random_seed=2)
    >>> found = bs.solvers.direct_lingam(table.data)
    >>> sorted(found.graph.edges) == sorted(table.graph.edges)
    True
    """
    import pandas as pd

    choice("measure", measure, MEASURES)
    if prune is not None:
        choice("prune", prune, PRUNINGS)
    else:
        refuse_given("pruning, and `prune` is None", gamma=gamma)
    if prune != "cross_validation":
        refuse_given("prune='cross_validation'", random_seed=random_seed)
    gamma = 1.0 if gamma is None else number("gamma", gamma, above=0)
    table = Table.continuous(data, normal=False, prior=False)
    _check(table)
    knowledge = read_knowledge(table.names, prior_knowledge, required, forbidden, tiers)
    found = causal_order(table.standardized, measure, knowledge)
    values, power = near_one(table.values)
    direct, scale = ordered_regressions(
        values,
        found.order,
        knowledge.allowed,
        knowledge.required,
        prune=prune,
        gamma=gamma,
        rng=generator(0 if random_seed is None else random_seed),
    )
    names = list(table.names)
    normal = looks_normal(values - values @ direct.T)
    direct, scale = np.ldexp(direct, power[:, None] - power), np.ldexp(scale, power)
    _warn_about_normal(names, direct, normal)
    order = [names[i] for i in found.order]
    return DirectLiNGAM(
        names=table.names,
        order=tuple(order),
        coefficients=pd.DataFrame(direct, names, names),
        noise_scale=pd.Series(scale, names),
        normal_noise=pd.Series(normal, names),
        dependence=pd.Series(found.dependence, order),
        evaluations=found.evaluations,
    )


def normal_columns(names: Sequence[str], values: np.ndarray, arcs: "ParentPrior") -> list[str]:
    """Return the columns whose residuals along the order of DirectLiNGAM cannot be told from normal ones.

    Parameters
    ----------
    names : sequence of str
        The d columns.
    values : (n, d) numpy.ndarray
        Without missing values.
    arcs : ParentPrior
        With what is known of arcs.

    Returns
    -------
    list of str
        Empty where there are not more rows than columns, or columns are linear combinations of others.
    """
    names = list(names)
    if len(values) <= len(names) or dependent_columns(names, values):
        return []
    values, _ = near_one(values)
    direct = _quick(values, knowledge_of(names, arcs))
    normal = looks_normal(values - values @ direct.T)
    return [name for name, own in zip(names, normal, strict=True) if own]


def bootstrapped_graphs(
    values: np.ndarray, arcs: "ParentPrior", rng: np.random.Generator, count: int
) -> list[np.ndarray] | None:
    """Return the graphs of DirectLiNGAM of a table and of tables of its rows drawn with replacement.

    Parameters
    ----------
    values : (n, d) numpy.ndarray
        Without missing values.
    arcs : ParentPrior
        With what is known of arcs.
    rng : numpy.random.Generator
    count : int
        Number of graphs, the first of which is that of the table.

    Returns
    -------
    list of (d, d) int8 numpy.ndarray
        Rows as parents. None where there are not twice as many rows as columns, or columns are linear combinations of
        others.
    """
    n, d = values.shape
    names = [str(k) for k in range(d)]
    if n < 2 * d or dependent_columns(names, values):
        return None
    knowledge = knowledge_of(names, arcs)
    values, _ = near_one(values)
    tables = [values, *(values[rng.integers(n, size=n)] for _ in range(count - 1))]
    return [(_quick(own, knowledge).T != 0).astype(np.int8) for own in tables]


def _quick(values, knowledge):
    """Coefficients along the order by entropies, (d, d), rows as children."""
    found = causal_order(values, "entropy", knowledge)
    return ordered_regressions(values, found.order, knowledge.allowed, knowledge.required)[0]


def _check(table):
    """Refuse tables whose residuals would vanish."""
    if table.missing.any():
        lost = [table.names[j] for j in np.flatnonzero(table.missing.any(axis=0))]
        raise TableError(
            f"{column_list(lost)}: values are missing, and direct_lingam needs complete rows; drop these rows "
            "(data.dropna()) or columns"
        )
    if table.n <= table.p:
        raise TableError(
            f"the table has {table.n} rows and {table.p} columns; direct_lingam needs more rows than columns: "
            "leave out columns"
        )
    if dependent := dependent_columns(list(table.names), table.values):
        raise TableError(
            f"{column_list(dependent)}: one is a linear combination of the others, so that residuals vanish; leave "
            "it out"
        )


def _warn_about_normal(names, direct, normal):
    """Say which arcs join columns whose noise may be normal."""
    pairs = np.argwhere((direct != 0) & normal[:, None] & normal)
    if len(pairs):
        arcs = [f"{names[j]} -> {names[i]}" for i, j in pairs]
        warn(
            f"the noise at both ends of {listing(arcs)} cannot be told from normal noise, under which the direction "
            "is not identified by the table: take these directions as arbitrary, or give tiers or "
            "prior_knowledge"
        )
