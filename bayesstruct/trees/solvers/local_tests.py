"""Neighbourhoods of bounded size, column by column, and tests of pairs of columns that prune the search."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import choice, probability, sample_size, whole_number
from bayesstruct.data.errors import TableError
from bayesstruct.networks.data.tables import network_table
from bayesstruct.networks.kernels.independence import holm
from bayesstruct.networks.kernels.scores.named import network_score
from bayesstruct.trees.kernels.information import pairwise_information, pairwise_parameters
from bayesstruct.trees.solvers.columns import read_tree_columns

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from bayesstruct.data.intake import TableLike

__all__ = ["LocalNeighbourhoods", "local_neighbourhoods", "pairwise_tests"]

_MOST = 20  # candidates, all of whose subsets are scored


def pairwise_tests(
    data: "TableLike",
    *,
    columns: str = "mixed",
    kinds: "dict | None" = None,
    states: "dict | list | None" = None,
) -> "pd.DataFrame":
    """Test each pair of columns for dependence, without regard to the other columns.

    These pairs are no graph: the ends of a chain of strong dependences depend on each other more than neighbours with a weak one. The tests
    are a fast first look, and prune searches.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table without missing values.
    columns, kinds, states
        As in :func:`chow_liu`.

    Returns
    -------
    pandas.DataFrame
        One row for each pair, the smallest p-value first: ``first``, ``second``, ``information`` (mutual information in nats), ``p_value`` and ``adjusted``, which is
        adjusted for the number of pairs (Holm).

    Raises
    ------
    TableError, ValueError
        As from :func:`chow_liu`; here columns may determine each other.

    Notes
    -----
    Two numbers: the t test of their correlation. A number and states: the F test of equal means. Two columns of states: the
    likelihood ratio (G) test, whose chi-square distribution needs about five rows for each pair of states.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(200, 3))
    >>> x[:, 1] += x[:, 0]
    >>> pairwise_tests(x).loc[0, ["first", "second"]].tolist()
    ['x0', 'x1']
    """
    import pandas as pd

    table = read_tree_columns(data, columns, kinds=kinds, states=states)
    information = pairwise_information(table.values, table.states)
    first, second = np.triu_indices(len(table.names), 1)
    p_value = _p_values(information, table.states, len(table.values))[first, second]
    frame = pd.DataFrame(
        {
            "first": [table.names[i] for i in first],
            "second": [table.names[j] for j in second],
            "information": information[first, second],
            "p_value": p_value,
            "adjusted": holm(p_value),
        }
    )
    order = np.lexsort((-frame["information"], frame["p_value"]))
    return frame.iloc[order].reset_index(drop=True)


def _p_values(information, states, n) -> np.ndarray:
    """P-values of all pairs of columns."""
    from scipy.stats import chi2, f

    freedom = pairwise_parameters(states)
    both = (states[:, None] > 0) & (states > 0)
    explained = -np.expm1(-2.0 * information)
    left = np.maximum(n - 1 - freedom, 1)
    with np.errstate(divide="ignore"):
        ratio = explained / freedom / ((1.0 - explained) / left)
    return np.where(both, chi2.sf(2.0 * n * information, freedom), f.sf(ratio, freedom, left))


@dataclass(frozen=True, eq=False, repr=False)
class LocalNeighbourhoods:
    """The best neighbourhood of each column, found by itself.

    Attributes
    ----------
    names : tuple of str
        The p columns.
    neighbours : dict of str to list of str
        The best set of neighbours of each column.
    inclusion : pandas.DataFrame, shape (p, p)
        Row the column, column the neighbour: probability that it is one, given that the neighbourhood is a set of at most `max_degree` candidates, all
        equally probable before the data. The two of a pair differ.
    candidates : dict of str to list of str
        Columns that were considered, strongest first.
    """

    names: tuple[str, ...]
    neighbours: dict[str, list[str]]
    inclusion: "pd.DataFrame"
    candidates: dict[str, list[str]]

    def __repr__(self) -> str:
        found = sum(map(len, self.neighbours.values()))
        return f"LocalNeighbourhoods({len(self.names):,} variables, {found:,} neighbours)"

    def graph(self, combine: str = "and") -> "nx.Graph":
        """Join the neighbourhoods to a graph.

        Parameters
        ----------
        combine : {"and", "or"}
            An edge is where both columns have each other as neighbours, or one has.

        Returns
        -------
        networkx.Graph
            With the smaller, or larger, of the two inclusion probabilities as ``probability``.
        """
        import networkx as nx

        choice("combine", combine, ("and", "or"))
        graph: nx.Graph = nx.Graph()
        graph.add_nodes_from(self.names)
        pick = min if combine == "and" else max
        for i, a in enumerate(self.names):
            for b in self.names[i + 1 :]:
                found = b in self.neighbours[a], a in self.neighbours[b]
                if pick(found):
                    p = pick(self.inclusion.loc[a, b], self.inclusion.loc[b, a])
                    graph.add_edge(a, b, probability=float(p))
        return graph


def local_neighbourhoods(
    data: "TableLike",
    *,
    score: str = "bge",
    max_degree: int = 3,
    level: float | None = None,
    equivalent_sample_size: float = 1.0,
    states: "dict | list | None" = None,
) -> LocalNeighbourhoods:
    r"""Find the best set of at most a few neighbours of each column by trying all of them.

    A column is independent of all others given its neighbours. For each column all sets of at most `max_degree` others are scored by the marginal likelihood of
    the column given the set. The columns are looked at one by one: neighbourhoods may contradict each other, and their product is no model of the table.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table without missing values.
    score : {"bge", "bdeu"}
        Marginal likelihood of numbers, which are standardised, or of states, as in :func:`bayesstruct.exact.tree_posterior`.
    max_degree : int, default 3
        Maximum number K of neighbours.
    level : float, optional
        Prunes the search: only columns are candidates whose p-value in :func:`pairwise_tests` is at most this, and the 20 smallest of these. By default all columns are, which
        needs 21 columns or fewer. Neighbours that show only together with others are lost by pruning.
    equivalent_sample_size : float, default 1
        Rows that the prior is worth.
    states : list or dict of lists, optional
        All states of columns of states, as in :func:`bayesstruct.models.bayesian_network`.

    Returns
    -------
    LocalNeighbourhoods

    Raises
    ------
    TableError
        If the table cannot be used, has missing values, or has too many columns without `level`.
    ValueError
        If an option is unknown or out of range.

    Notes
    -----
    There are :math:`\sum_{k \le K} \binom{c}{k}` sets of c candidates. Inclusion probabilities are exact given the candidates.
    :func:`bayesstruct.models.gaussian_graphical` and :func:`bayesstruct.models.neighbourhoods` have posteriors of whole graphs.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(300, 4)).cumsum(axis=1)
    >>> sorted(local_neighbourhoods(x).graph().edges)
    [('x0', 'x1'), ('x1', 'x2'), ('x2', 'x3')]
    """
    import pandas as pd

    choice("score", score, ("bge", "bdeu"))
    most = whole_number("max_degree", max_degree, 0)
    size = sample_size(equivalent_sample_size)
    table = network_table(data, score, states=states).table
    names, p = table.names, table.p
    if level is None and p > _MOST + 1:
        raise TableError(
            f"{p} columns: all sets of neighbours are tried of {_MOST + 1} columns or fewer; say level=0.05 to keep the most dependent ones of each "
            "column, or leave columns out"
        )
    if score == "bge":
        local = network_score(table.standardized, "bge", alpha_mu=size)
        values, counts = table.standardized, np.zeros(p, np.int64)
    else:
        local = network_score(table.codes, "bdeu", states=table.states, equivalent_sample_size=size)
        values, counts = table.codes.astype(float), np.array(table.states)
        table.refuse_unseen("tests count the states that occur; leave out those that do not")
    strength = pairwise_information(values, counts)
    order = np.argsort(-strength, axis=1, kind="stable")
    if level is not None:
        fits = _p_values(strength, counts, table.n) <= probability("level", level)
    else:
        fits = np.ones((p, p), bool)
    inclusion, neighbours, candidates = np.zeros((p, p)), {}, {}
    for i in range(p):
        own = [j for j in order[i].tolist() if j != i and fits[i, j]][:_MOST]
        chosen, share = _best(local.subsets(i, own, max_parents=most), len(own))
        inclusion[i, own] = share
        neighbours[names[i]] = [names[own[b]] for b in chosen]
        candidates[names[i]] = [names[j] for j in own]
    frame = pd.DataFrame(inclusion, list(names), list(names))
    return LocalNeighbourhoods(tuple(names), neighbours, frame, candidates)


def _best(scores, k) -> tuple[list[int], np.ndarray]:
    """Members of the subset with the largest score, and the posterior probability of each candidate."""
    weight = np.exp(scores - scores.max())
    weight /= weight.sum()
    top, every = int(scores.argmax()), np.arange(len(scores))
    share = np.array([weight[every >> b & 1 == 1].sum() for b in range(k)])
    return [b for b in range(k) if top >> b & 1], share
