r"""Chow and Liu's tree, and forests of the greatest penalised likelihood.

The largest log likelihood of a forest F whose columns have the distributions of the table in pairs is

.. math:: \ell(F) = \sum_i \ell_i + n \sum_{ij \in F} I_{ij},

with the mutual information I of the fitted pairs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from scipy.special import xlogy

from bayesstruct.data.arguments import choice, is_number, number, refuse_given
from bayesstruct.data.edge_priors import fixed_edges
from bayesstruct.data.errors import TableError
from bayesstruct.trees.kernels.distances import correlations, log_deviations
from bayesstruct.trees.kernels.forests import maximum_decomposable_forest
from bayesstruct.trees.kernels.information import pairwise_information, pairwise_parameters
from bayesstruct.trees.solvers.columns import TreeColumns, read_tree_columns
from bayesstruct.trees.solvers.densities import log_density

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from bayesstruct.data.intake import TableLike

__all__ = ["ForestSolution", "chow_liu"]

_PENALTIES = ("bic", "aic", "power")


@dataclass(frozen=True, eq=False, repr=False)
class ForestSolution:
    """A tree or forest of columns with its fitted distribution.

    Attributes
    ----------
    names : tuple of str
        The p columns.
    edges : pandas.DataFrame
        One row for each edge, by decreasing gain: ``first`` and ``second`` column, ``information`` (mutual information in nats), ``gain`` (by which
        the edge raises the penalised log likelihood) and ``correlation`` (of two numbers; NaN otherwise).
    information : pandas.DataFrame, shape (p, p)
        Mutual information of all pairs of columns, in nats.
    log_likelihood : float
        Largest log likelihood of the table under this forest, in the units of the table.
    parameters : int
        Number of free parameters.
    """

    names: tuple[str, ...]
    edges: "pd.DataFrame"
    information: "pd.DataFrame"
    log_likelihood: float
    parameters: int
    _table: TreeColumns

    def __repr__(self) -> str:
        return (
            f"ForestSolution({len(self.names):,} variables, {len(self.edges):,} edges, "
            f"{len(self.components):,} components)"
        )

    @property
    def bic(self) -> float:
        """Log likelihood less half the logarithm of the number of rows for each parameter; larger is better."""
        return self.log_likelihood - 0.5 * self.parameters * float(np.log(len(self._table.values)))

    @cached_property
    def graph(self) -> "nx.Graph":
        """The forest as a ``networkx.Graph`` over the names, edges with their ``information``.

        Edges between numbers have their correlation as ``weight``, all others the correlation that two normal columns with as
        much information have.
        """
        import networkx as nx

        graph: nx.Graph = nx.Graph(forest=True)
        graph.add_nodes_from(self.names)
        for row in self.edges.itertuples():
            size = float(np.sqrt(-np.expm1(-2.0 * row.information)))
            weight = size if np.isnan(row.correlation) else float(row.correlation)
            graph.add_edge(row.first, row.second, weight=weight, information=row.information)
        return graph

    @property
    def components(self) -> list[list[str]]:
        """Names of the columns of each tree, the largest tree first."""
        import networkx as nx

        place = {name: j for j, name in enumerate(self.names)}
        parts = [
            sorted(part, key=place.__getitem__) for part in nx.connected_components(self.graph)
        ]
        return sorted(parts, key=lambda part: (-len(part), place[part[0]]))

    def log_density(self, data: "TableLike") -> np.ndarray:
        """Log density of rows under the fitted distribution.

        Parameters
        ----------
        data : DataFrame or array_like
            (m, p) complete rows; columns that have names are found by name, others by position.

        Returns
        -------
        (m,) ndarray
            Natural logarithms, in the units of the table; probabilities of states and densities of numbers. -inf where two
            states never occurred together that an edge joins.

        Raises
        ------
        TableError
            If a column is absent or unknown, a value is missing, or a state did not occur in the table.
        """
        rows = self._table.coding.read(data)
        if rows.missing.any():
            lost = rows.names[int(rows.missing.any(axis=0).argmax())]
            raise TableError(
                f"column {lost!r}: values are missing, and complete rows are needed here; drop these rows"
            )
        place = {name: j for j, name in enumerate(self.names)}
        lines = [
            (place[a], place[b])
            for a, b in zip(self.edges["first"], self.edges["second"], strict=True)
        ]
        return log_density(self._table.values, self._table.states, lines, rows.values)


def chow_liu(
    data: "TableLike",
    *,
    penalty: str | float | None = None,
    exponent: float | None = None,
    columns: str = "mixed",
    forbidden: Iterable[tuple[str, str]] = (),
    kinds: "dict | None" = None,
    states: "dict | list | None" = None,
) -> ForestSolution:
    r"""Find the tree that fits a table best, or the forest of the greatest penalised likelihood.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table without missing values, p at least 2.
    penalty : {"bic", "aic", "power"}, float or None, default None
        What the mutual information of an edge has to exceed, :math:`\varepsilon_{ij}` in nats; the result is the forest with the greatest
        :math:`\sum_{ij} (I_{ij} - \varepsilon_{ij})`.

        None
            Nothing: the tree of Chow and Liu [1]_, which joins all columns even if they are independent.
        ``"bic"``
            :math:`k_{ij} \log(n) / (2 n)` with :math:`k_{ij}` parameters of the edge: the forest with the largest BIC [2]_.
        ``"aic"``
            :math:`k_{ij} / n`: the forest with the least AIC.
        ``"power"``
            :math:`n^{-b}` with `exponent` b, the same for all edges (CLThres [3]_).
        float
            This number of nats for all edges.
    exponent : float, optional
        Of ``"power"`` only, strictly between 0 and 1, 0.5 by default: with any of them the true forest is found as n grows. Larger ones have more
        edges.
    columns : {"mixed", "numbers", "states"}
        ``"mixed"``: text, booleans, categories and columns of two values hold states, other columns numbers. Otherwise all columns are taken as one or the other.
    forbidden : iterable of pairs of str
        Edges that no forest has.
    kinds : dict, optional
        Of ``"mixed"`` only: ``"normal"`` or ``"multinomial"`` for columns by name that are read in another way than by default.
    states : list or dict of lists, optional
        Of ``"states"`` only: states in order, as in :func:`bayesstruct.models.bayesian_network`.

    Returns
    -------
    ForestSolution
        With ``edges``, ``graph``, ``components``, ``bic`` and ``log_density``.

    Raises
    ------
    TableError
        If the table cannot be used or has missing values, a column determines another one (their information is infinite), or an option names no column.
    ValueError
        If an option is unknown, out of range or does not apply.

    Notes
    -----
    Kruskal's algorithm finds the best forest exactly. It is the posterior mode of the forest if parameters are those that fit best and forests have prior
    probabilities :math:`\propto \exp(-n \sum_{ij} \varepsilon_{ij})`. The forest of a larger constant penalty is part of that of a smaller one,
    and that of ``"power"`` of the tree.

    Numbers are normal, with linear dependences and, in each state of a neighbouring column, another mean but the same variance. Such distributions exist only if
    no path leads from states over numbers to states [2]_; the result is the best forest of this kind.

    Two independent columns are joined under ``"bic"`` with a probability that vanishes as :math:`n^{-1/2}`, under ``"power"`` far faster. There is no measure of
    uncertainty: :func:`bayesstruct.exact.tree_posterior` has the posterior of trees.

    References
    ----------
    .. [1] C. Chow and C. Liu (1968). Approximating discrete probability distributions with dependence trees. *IEEE
       Transactions on Information Theory* 14, 462-467.
    .. [2] D. Edwards, G. C. G. de Abreu and R. Labouriau (2010). Selecting high-dimensional mixed graphical models using minimal
       AIC or BIC forests. *BMC Bioinformatics* 11, 18.
    .. [3] V. Y. F. Tan, A. Anandkumar and A. S. Willsky (2011). Learning high-dimensional Markov forest distributions: analysis of error
       rates. *JMLR* 12, 1617-1653.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, d = rng.normal(size=(2, 200))
    >>> b = a + rng.normal(size=200)
    >>> forest = chow_liu(np.column_stack([a, b, b + rng.normal(size=200), d]), penalty="bic")
    >>> sorted(forest.graph.edges)
    [('x0', 'x1'), ('x1', 'x2')]
    >>> forest.components
    [['x0', 'x1', 'x2'], ['x3']]
    """
    table = read_tree_columns(data, columns, kinds=kinds, states=states)
    n = len(table.values)
    information = pairwise_information(table.values, table.states)
    _refuse_determined(table.names, information)
    least = _penalties(penalty, exponent, n, table.states)
    gains = n * (information - least)
    gains[fixed_edges(table.names, (), forbidden).forbidden] = -np.inf
    lines = maximum_decomposable_forest(
        gains, table.states > 0, -np.inf if penalty is None else 0.0
    )
    extra = pairwise_parameters(table.states)[tuple(lines.T)].sum()
    joint = n * information[tuple(lines.T)].sum()
    return ForestSolution(
        names=table.names,
        edges=_edge_table(table, lines, information, gains),
        information=_frame(information, table.names),
        log_likelihood=float(_alone(table).sum() + joint),
        parameters=int(np.where(table.states > 0, table.states - 1, 2).sum() + extra),
        _table=table,
    )


def _penalties(penalty: Any, exponent: Any, n: int, states: np.ndarray) -> "np.ndarray | float":
    """Nats that the information of each pair has to exceed."""
    if not (penalty is None or is_number(penalty) or isinstance(penalty, str)):
        raise TypeError(f"`penalty` is a word, a number of nats or None, not {penalty!r:.60}")
    if isinstance(penalty, str):
        choice("penalty", penalty, _PENALTIES)
    if penalty != "power":
        refuse_given("penalty='power'", exponent=exponent)
    if penalty is None:
        return 0.0
    if is_number(penalty):
        return number("penalty", penalty, least=0)
    if penalty == "power":
        b = 0.5 if exponent is None else number("exponent", exponent, above=0)
        if b >= 1:
            raise ValueError(f"`exponent` must be below 1, it is {b:g}")
        return float(n**-b)
    each = pairwise_parameters(states) / n
    return each if penalty == "aic" else each * np.log(n) / 2.0


def _refuse_determined(names, information) -> None:
    """Raise a TableError if the likelihood of an edge has no bound."""
    if np.isfinite(information).all():
        return
    i, j = np.argwhere(~np.isfinite(information))[0].tolist()
    raise TableError(
        f"columns {names[i]!r} and {names[j]!r}: one determines the other, so that their mutual information is infinite; leave one "
        "of them out"
    )


def _alone(table: TreeColumns) -> np.ndarray:
    """Log likelihood of each column by itself."""
    out, n = np.empty(len(table.states)), len(table.values)
    for j, r in enumerate(table.states):
        if r:
            seen = table.state_counts[j]
            out[j] = xlogy(seen, seen / n).sum()
        else:
            column = table.values[:, [j]]
            out[j] = -0.5 * n * (np.log(2.0 * np.pi) + 1.0) - n * log_deviations(column)[0]
    return out


def _frame(matrix, names) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(matrix, list(names), list(names))


def _edge_table(table, lines, information, gains) -> "pd.DataFrame":
    """One row for each edge."""
    import pandas as pd

    rows = []
    for i, j in lines.tolist():
        both = not (table.states[i] or table.states[j])
        r = float(correlations(table.values[:, [i, j]])[0, 1]) if both else np.nan
        rows.append((table.names[i], table.names[j], information[i, j], gains[i, j], r))
    return pd.DataFrame(rows, columns=["first", "second", "information", "gain", "correlation"])
