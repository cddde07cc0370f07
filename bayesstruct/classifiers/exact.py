"""Posterior over all tree-augmented structures in closed form, and class probabilities averaged over it."""

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesstruct.classifiers.data import ClassifierTable, read_features
from bayesstruct.classifiers.kernels.scores import SAMPLE_SIZE, ClassifierScore
from bayesstruct.data.arguments import sample_size
from bayesstruct.data.coding import StateCoding
from bayesstruct.data.errors import TableError
from bayesstruct.graphs.spanning_trees.sums import SpanningTrees, log_tree_sum

if TYPE_CHECKING:
    import pandas as pd

    from bayesstruct.data.intake import TableLike

__all__ = ["AveragedTAN", "averaged_tan"]


class AveragedTAN:
    """Posterior over the trees of a tree-augmented naive Bayes classifier, its tables integrated out.

    Made by `averaged_tan`.

    Attributes
    ----------
    table : ClassifierTable
    size : float
        Equivalent sample size of the prior of the tables.
    trees : SpanningTrees
        Posterior over the trees, whose nodes are the features in the order of the table.
    """

    def __init__(self, table: ClassifierTable, size: float):
        self.table, self.size = table, size
        score = ClassifierScore(table.codes, table.counts, table.target, "bdeu", size)
        gains = score.gains()
        self.trees = SpanningTrees((gains + gains.T) / 2.0)

    def __repr__(self) -> str:
        name = self.table.names[self.table.target]
        return f"AveragedTAN({name!r} from {len(self.table.features):,} features, {len(self.table.codes):,} rows)"

    @cached_property
    def edge_probabilities(self) -> "pd.DataFrame":
        """Probability that two features are joined in the tree, (features, features)."""
        import pandas as pd

        names = [self.table.names[j] for j in self.table.features]
        return pd.DataFrame(self.trees.probabilities, names, names)

    def probabilities(self, rows: "TableLike") -> "pd.DataFrame":
        r"""Probability of each class in other rows, averaged over all trees and all parameters.

        .. math:: P(c \mid x, D) \propto P(c \mid D) \prod_i P(x_i \mid c, D) \, Z(w(x, c)), \qquad
            w_{ij}(x, c) = w_{ij} \frac{P(x_i, x_j \mid c, D)}{P(x_i \mid c, D) P(x_j \mid c, D)}

        with the sum Z over all trees of products of weights.

        Parameters
        ----------
        rows : DataFrame or array_like
            Features as in the table, all of them known. The column of the target may be absent, and is not used.

        Returns
        -------
        pandas.DataFrame
            One line for each row, with its label, one column for each class.

        Raises
        ------
        TableError
            If a column is absent or unknown, a state does not occur in the table, or a feature is missing.
        """
        import pandas as pd

        table = self.table
        coding = StateCoding(table.names, table.states.levels)
        codes, labels = read_features(coding, table.label, rows)
        features = codes[:, table.features]
        if (features < 0).any():
            at = int(np.argmax((features < 0).any(axis=1)))
            lost = coding.names[table.features[int(np.argmax(features[at] < 0))]]
            raise TableError(
                f"row {labels[at]!r} lacks the feature {lost!r}: fill it in, or sample bs.models.network_classifier, of which "
                "bs.class_probabilities sums missing features out"
            )
        logs = np.array([self._log_joint(row) for row in features])
        p = np.exp(logs - logs.max(axis=1, keepdims=True))
        return pd.DataFrame(p / p.sum(axis=1, keepdims=True), labels, [*table.classes])

    def _log_joint(self, row):
        """Log predictive probability of a row with each class but for a constant, (classes,)."""
        pairs, single, prior = self._predictive
        m, out = len(row), np.empty(len(prior))
        index = np.arange(m)
        for c in range(len(out)):
            own = single[index, c, row]
            ratio = pairs[index[:, None], index, c, row[:, None], row]
            logs = self.trees.log_weights + ratio - own[:, None] - own
            out[c] = prior[c] + own.sum() + log_tree_sum(np.ascontiguousarray(logs))
        return out

    @cached_property
    def _predictive(self):
        """Log predictive probabilities given the class: of pairs, of single features, and of the classes."""
        table, size = self.table, self.size
        codes, y = table.codes[:, table.features], table.codes[:, table.target]
        states, classes = table.counts[table.features], int(table.counts[table.target])
        m, most = len(states), int(states.max())
        inside = np.arange(most) < states[:, None]
        seen = np.zeros((m, m, classes, most, most))
        for i in range(m):
            for j in range(m):
                np.add.at(seen[i, j], (y, codes[:, i], codes[:, j]), 1.0)
        rows = np.bincount(y, minlength=classes) + size / classes
        cells = classes * states[:, None] * states
        allowed = (inside[:, None, :, None] & inside[None, :, None, :])[:, :, None]
        with np.errstate(divide="ignore"):
            pairs = np.log(np.where(allowed, seen + (size / cells)[..., None, None, None], 0.0))
            alone = seen[:, 0].sum(axis=-1) + size / (classes * states)[:, None, None]
            single = np.log(np.where(inside[:, None], alone, 0.0))
        shift = np.log(rows)
        return (
            pairs - shift[:, None, None],
            single - shift[:, None],
            shift - np.log(rows.sum()),
        )


def averaged_tan(
    data: "TableLike",
    target: str,
    *,
    equivalent_sample_size: float = SAMPLE_SIZE,
    states: Any = None,
    missing_codes: Any = None,
    incomplete_rows: Literal["drop", "error"] = "drop",
) -> AveragedTAN:
    """Average tree-augmented naive Bayes classifiers over all trees and parameters, in closed form.

    All trees have the same prior probability; tables have the Dirichlet prior of BDeu. The posterior over trees is a product over their
    lines, so that sums over all of them are determinants.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, d) table of states.
    target : str
        Column of the class.
    equivalent_sample_size : float, default 10
        Rows that the prior is worth; why 10, see :func:`bayesstruct.models.network_classifier`.
    states : list or dict of lists, optional
        All states of each column, see :func:`bayesstruct.models.network_classifier`.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one.
    incomplete_rows : {"drop", "error"}
        Rows that lack a value, of a feature or of the target, are left out, with a warning that says how many, or refused. The others
        stand for all rows if values are missing completely at random. If that a value is missing says something about the class,
        make it a state of its own: ``data.fillna("missing")``, also in rows that are to be predicted. Features of these may be
        missing in any case.

    Returns
    -------
    AveragedTAN
        With ``edge_probabilities`` and ``probabilities(rows)``.

    Raises
    ------
    TableError
        If the table cannot be used: it names the column and the remedy.
    TypeError, ValueError
        If an option is out of range.

    See Also
    --------
    bayesstruct.models.network_classifier : the same posterior as a PyMC model, with parameters, intervals and missing features.

    References
    ----------
    Meilă, M. and Jaakkola, T. (2006). Tractable Bayesian learning of tree belief networks. *Statistics and Computing* 16,
    77-92.

    Cerquides, J. and López de Mántaras, R. (2005). TAN classifiers based on decomposable distributions. *Machine Learning* 59, 323-354.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame(
    ...     {"a": [0, 0, 1, 1] * 5, "b": [0, 1, 0, 1] * 5, "c": [0, 1, 1, 0, 1] * 4}
    ... )
    >>> table["y"] = table["a"] ^ table["b"]
    >>> averaged_tan(table, "y").probabilities(table[:2]).idxmax(axis=1).tolist()
    [0, 1]
    """
    size = sample_size(equivalent_sample_size)
    options = {
        "states": states,
        "missing_codes": missing_codes,
        "incomplete_rows": incomplete_rows,
    }
    return AveragedTAN(ClassifierTable.read(data, target, **options, features=2), size)
