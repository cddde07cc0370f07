"""A classifier with one structure and fitted parameters."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesstruct.classifiers.data import ClassifierTable, read_features
from bayesstruct.classifiers.kernels.scores import (
    SAMPLE_SIZE,
    SCORES,
    ClassifierScore,
    family_counts,
)
from bayesstruct.classifiers.solvers.structures import STRUCTURES, search
from bayesstruct.data.arguments import choice, number, sample_size
from bayesstruct.data.coding import StateCoding
from bayesstruct.data.errors import TableError
from bayesstruct.data.recoding import other_rows_without_codes, plain_codes

if TYPE_CHECKING:
    import networkx
    import pandas as pd

    from bayesstruct.data.intake import TableLike

__all__ = [
    "MAX_COMPLETIONS",
    "NetworkClassifier",
    "network_classifier",
    "refuse_many",
]

#: Ways of filling in a row that are summed over where features have two feature parents.
MAX_COMPLETIONS = 2**12


@dataclass(frozen=True, eq=False, repr=False)
class NetworkClassifier:
    """A discrete network in which the target is a parent of all features, with its parameters.

    Attributes
    ----------
    target : str
    names : tuple of str
        All columns, in the order of the table.
    levels : tuple of tuple
        States of each column.
    dag : (d, d) ndarray of int8
        1 at (parent, child).
    score : float
        Of the structure, in natural logarithms.
    kind : str
        Name of the score.
    tables : (d, cells) ndarray of float
        Probabilities: state s of a column in the configuration c of its parents is cell ``c * states + s``, the first
        parent in the order of the columns changing fastest in c; zero beyond.
    missing_codes : number, str, iterable of them or dict, optional
        Values of the table that stand for a missing one.
    """

    target: str
    names: tuple[str, ...]
    levels: tuple[tuple, ...]
    dag: np.ndarray
    score: float
    kind: str
    tables: np.ndarray
    missing_codes: Any = None

    def __repr__(self) -> str:
        arcs = int(self.dag.sum()) - len(self.names) + 1
        return (
            f"NetworkClassifier({self.target!r} from {len(self.names) - 1} features, {arcs} arcs between them, "
            f"{self.kind} {self.score:.2f})"
        )

    @property
    def parents(self) -> dict[str, list[str]]:
        """Parents of each feature beside the target."""
        names, target = np.array(self.names, object), self.names.index(self.target)
        return {
            name: [str(p) for p in names[self.dag[:, j] != 0] if p != self.target]
            for j, name in enumerate(self.names)
            if j != target
        }

    @property
    def graph(self) -> "networkx.DiGraph":
        """The structure."""
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from((self.names[i], self.names[j]) for i, j in np.argwhere(self.dag))
        return graph

    def probabilities(self, rows: "TableLike") -> "pd.DataFrame":
        """Probability of each class in other rows.

        Parameters
        ----------
        rows : DataFrame or array_like
            Features as in the first table, in any order if they have names; missing ones are summed out. The column of the target
            may be absent, and is not used.

        Returns
        -------
        pandas.DataFrame
            One line for each row, with its label, one column for each class.

        Raises
        ------
        TableError
            If a column is absent or unknown, or a state does not occur in the first table.
        """
        import pandas as pd

        from bayesstruct.classifiers.kernels.predictions import class_logs

        at = self.names.index(self.target)
        states = np.array([len(own) for own in self.levels])
        coding = StateCoding(self.names, self.levels)
        if self.missing_codes is not None:
            rows = other_rows_without_codes(rows, plain_codes(self.missing_codes), self.names)
        codes, labels = read_features(coding, self.target, rows)
        refuse_many(self.dag, codes, states, at, labels)
        logs = class_logs(codes, self.dag, self.tables, states, at)
        logs -= logs.max(axis=1, keepdims=True)
        p = np.exp(logs)
        return pd.DataFrame(p / p.sum(axis=1, keepdims=True), labels, [*self.levels[at]])


def network_classifier(
    data: "TableLike",
    target: str,
    *,
    structure: str = "tan",
    score: str = "fcll",
    smoothing: float = 0.5,
    equivalent_sample_size: float = SAMPLE_SIZE,
    states: Any = None,
    missing_codes: Any = None,
    incomplete_rows: Literal["drop", "error"] = "drop",
) -> NetworkClassifier:
    r"""Learn a Bayesian-network classifier: the structure with the best score, and smoothed frequencies.

    .. math:: P(c \mid x) \propto P(c) \prod_i P(x_i \mid c, x_{\mathrm{pa}_i}), \qquad
        P(x_i = k \mid c, j) = \frac{N_{ijck} + s}{N_{ijc} + r_i s}

    Parameters
    ----------
    data : DataFrame or array_like
        (n, d) table of states.
    target : str
        Column of the class.
    structure : {"tan", "naive", "ghc2"}
        ``"tan"``: a tree joins the features (tree-augmented naive Bayes, Friedman et al. 1997); the best one is found exactly, as a maximum
        spanning tree, or with ``"acll"`` as a maximum branching. ``"naive"``: features depend on the target alone.
        ``"ghc2"``: each feature has at most two feature parents; greedy hill climbing from ``"naive"``, a local optimum.
    score : {"fcll", "log_likelihood", "mdl", "bdeu", "acll"}
        ``"fcll"``: factorized conditional log-likelihood (Carvalho et al. 2011), which looks for structures that tell classes
        apart; ``"acll"``, from which it is derived. The others describe the joint distribution of features and class: log likelihood, the same less
        :math:`\tfrac12 \log N` for each parameter, and marginal likelihood with Dirichlet priors. ``"log_likelihood"`` grows with
        every arc.
    smoothing : float, default 0.5
        s, above 0: added to the count of each cell.
    equivalent_sample_size : float, default 10
        Rows that the prior of ``"bdeu"`` is worth; why 10, see :func:`bayesstruct.models.network_classifier`.
    states : list or dict of lists, optional
        All states of each column, see :func:`bayesstruct.models.bayesian_network`.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one.
    incomplete_rows : {"drop", "error"}
        Rows that lack a value, of a feature or of the target, are left out, with a warning that says how many, or refused. The others
        stand for all rows if values are missing completely at random. If that a value is missing says something about the class,
        make it a state of its own: ``data.fillna("missing")``, also in rows that are to be predicted. Features of these may be
        missing in any case.

    Returns
    -------
    NetworkClassifier
        With ``dag``, ``parents``, ``graph``, ``score``, ``tables`` and ``probabilities(rows)``.

    Raises
    ------
    TableError
        If the table cannot be used: it names the column and the remedy.
    TypeError, ValueError
        If an option is unknown or out of range.

    See Also
    --------
    bayesstruct.models.network_classifier : posterior over trees and parameters.

    References
    ----------
    Carvalho, A. M., Roos, T., Oliveira, A. L. and Myllymäki, P. (2011). Discriminative learning of Bayesian networks via
    factorized conditional log-likelihood. *JMLR* 12, 2181-2210.

    Friedman, N., Geiger, D. and Goldszmidt, M. (1997). Bayesian network classifiers. *Machine Learning* 29, 131-163.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": [0, 0, 1, 1] * 5, "b": [0, 1, 0, 1] * 5})
    >>> table["y"] = table["a"] ^ table["b"]
    >>> classifier = network_classifier(table, "y")
    >>> classifier.parents
    {'a': [], 'b': ['a']}
    >>> classifier.probabilities(table[:2]).idxmax(axis=1).tolist()
    [0, 1]
    """
    kind = choice("structure", structure, STRUCTURES)
    choice("score", score, SCORES)
    smoothing = number("smoothing", smoothing, above=0)
    size = sample_size(equivalent_sample_size)
    options = {
        "states": states,
        "missing_codes": missing_codes,
        "incomplete_rows": incomplete_rows,
    }
    table = ClassifierTable.read(data, target, **options, features=STRUCTURES[kind])
    local = ClassifierScore(table.codes, table.counts, table.target, score, size)
    dag = search(local, kind)
    return NetworkClassifier(
        target=table.label,
        names=table.names,
        levels=table.states.levels,
        dag=dag,
        score=local.total(dag),
        kind=score,
        tables=_tables(table, dag, smoothing),
        missing_codes=missing_codes,
    )


def _tables(table, dag, smoothing):
    """Smoothed frequencies of all columns, (d, cells)."""
    found = []
    for i in range(len(dag)):
        # All columns that are parents, the target among them, in the order of the table.
        parents = np.flatnonzero(dag[:, i]).tolist()
        counts = _counts(table, i, parents) + smoothing
        found.append((counts / counts.sum(axis=1, keepdims=True)).ravel())
    out = np.zeros((len(dag), max(map(len, found))))
    for own, values in zip(out, found, strict=True):
        own[: len(values)] = values
    return out


def _counts(table, child, parents):
    """Count the states of a column in each configuration of its parents, (q, states)."""
    codes = np.column_stack([table.codes, np.zeros(len(table.codes), np.int64)])
    states = np.append(table.counts, 1)  # a column with one state in place of the target
    return family_counts(codes, states, len(states) - 1, child, parents)[:, 0]


def refuse_many(dag, codes, states, target, labels) -> None:
    """Raise if the missing features of a row can be filled in in too many ways for a structure that is no tree.

    Raises
    ------
    TableError
        With the row and the remedy.
    """
    from bayesstruct.classifiers.kernels.predictions import completions, is_forest

    if is_forest(dag, target):
        return
    for row, label in zip(codes, labels, strict=True):
        if (ways := completions(row, states, target)) > MAX_COMPLETIONS:
            raise TableError(
                f"row {label!r} can be completed in {ways:.3g} ways, at most {MAX_COMPLETIONS:,} are summed over where features have "
                "two feature parents: fill in more of its features, or use structure='tan', where any number may be missing"
            )
