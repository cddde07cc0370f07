"""New rows of a table, averaged over all trees or forests: their densities and their empty values, as series and tables."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.tables.predictions import (
    incomplete_rows,
    mixed_table,
    refuse_many_completions,
)
from bayesstruct.data.arguments import probability
from bayesstruct.data.coding import coding_of, row_labels
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.names import nearest
from bayesstruct.data.states import StateTable
from bayesstruct.data.table import Table
from bayesstruct.networks.data.mixed_coding import MixedCoding
from bayesstruct.networks.data.mixed_tables import MixedTable
from bayesstruct.trees.kernels.averages import RowAverage, empty_values
from bayesstruct.trees.kernels.mixed import MixedTotals
from bayesstruct.trees.kernels.predictive import MixedPairs, NumberPairs, StatePairs

if TYPE_CHECKING:
    import pandas as pd

    from bayesstruct.data.intake import TableLike
    from bayesstruct.trees.kernels.averages import Graphs

__all__ = ["AveragesRows", "TreeRows"]

_MODEL = "bayesstruct.models.tree"


class AveragesRows(ABC):
    """A posterior over trees or forests that knows densities and predictions of new rows.

    Attributes
    ----------
    rows : callable
        Makes the distribution of new rows, a `TreeRows`, when it is first asked for.
    """

    rows: Callable[[], "TreeRows"]

    @property
    @abstractmethod
    def graphs(self) -> "Graphs":
        """The posterior of graphs of column numbers."""

    @cached_property
    def _rows(self) -> "TreeRows":
        return self.rows()

    def log_density(self, rows: "TableLike") -> "pd.Series":
        r"""Log predictive density of new rows, averaged over all trees or forests and all parameters, exactly.

        .. math:: p(x \mid D) = \sum_T p(T \mid D) \, p(x \mid D, T)
            = \prod_i p(x_i \mid D) \, \frac{Z(w \circ r)}{Z(w)}, \qquad
            r_{ij} = \frac{p(x_i, x_j \mid D)}{p(x_i \mid D) \, p(x_j \mid D)}

        with the sum Z over all trees of the products of weights of edges; of forests, Z is integrated over the share of edges, too. Each row is new for
        itself: what one row says about graphs and parameters is not used for the next.

        Parameters
        ----------
        rows : DataFrame or array_like
            (n, p) rows in the units, or with the states, of the table, which may lack values. Columns that have names are found by
            name, others by position.

        Returns
        -------
        pandas.Series
            One value for each row, with its label. For numbers the density is with respect to the *units of the table*, so that it can be compared with
            that of any model of the same columns; `log_evidence` is of standardised numbers. In a row that lacks values it is that of the others.

        Raises
        ------
        TableError
            If a column is absent or unknown, a state does not occur in the table, a row lacks more than one number, or its states can be
            completed in more than 65,536 ways.

        Notes
        -----
        A complete row takes one sum over trees, :math:`O(p^3)` operations; for forests some hundred, one for each share of a rule of integration. Empty
        states are summed out, with as much again for each way to complete the row. One empty number is integrated out numerically, to about nine digits,
        with some sixty such sums, and more in rows whose values are far outside of the table and contradict each other; if too many are needed, the row is
        refused.

        References
        ----------
        Meilă, M. and Jaakkola, T. (2006). Tractable Bayesian learning of tree belief networks. *Statistics and Computing* 16,
        77-92.

        Examples
        --------
        .. code-block:: python

            posterior = bs.exact.tree_posterior(train)
            posterior.log_density(test).mean()  # the held-out log score
        """
        return self._rows.log_density(self.graphs, rows)

    def predict(
        self, rows: "TableLike", column: str | None = None, *, ci_prob: float = 0.89
    ) -> "pd.DataFrame":
        r"""Predict the empty values of rows from the filled ones, averaged over all trees or forests and all parameters, exactly.

        Parameters
        ----------
        rows : DataFrame or array_like
            (n, p) rows in the units, or with the states, of the table; missing where a value is to be predicted. A row may have one empty number, and
            states that can be completed in up to 65,536 ways.
        column : str, optional
            Predict this column in all rows. Its own values are not used; it may be absent.
        ci_prob : float, default 0.89
            Probability of the intervals of numbers, which are equal-tailed.

        Returns
        -------
        pandas.DataFrame
            Numbers: one line for each empty value, with ``row`` (its label, or position), ``column``, and in the units of the
            table ``mean``, ``sd``, ``low`` and ``high`` of its predictive distribution. States: one line for each state of each empty value, with
            ``state`` and ``probability``. A table of both has all these columns, empty where they do not apply. As :func:`bayesstruct.predict` has them
            from draws, but for the intervals of probabilities: what was averaged exactly has none.

        Raises
        ------
        TableError
            If a column is absent or unknown, a state does not occur in the table, or a row has too many empty values; says what to do.

        Notes
        -----
        The filled values of a row count for the graph and the parameters, as in the exact predictive distribution:
        :math:`p(x_k \mid x_o, D) \propto p(x_k, x_o \mid D)`. In `bayesstruct.predict` all draws count equally.

        Examples
        --------
        .. code-block:: python

            posterior = bs.exact.tree_posterior(train)
            posterior.predict(test, column="akt")
        """
        return self._rows.predict(self.graphs, rows, column, probability("ci_prob", ci_prob))


@dataclass(frozen=True, eq=False)
class TreeRows:
    """Distribution of new rows given a table, all trees or forests and parameters summed out.

    Attributes
    ----------
    table : Table, StateTable or MixedTable
        The table that is known; new rows are read as it was.
    pairs : NumberPairs, StatePairs or MixedPairs
        Distributions of one and two columns of a new row.
    model : str
        The model whose draws do what is refused here.
    """

    table: Table | StateTable | MixedTable
    pairs: NumberPairs | StatePairs | MixedPairs
    model: str = _MODEL

    @classmethod
    def after(
        cls, table: Table | StateTable | MixedTable, size: float, *, model: str = _MODEL
    ) -> "TreeRows":
        """Return the distribution after the rows of a table.

        Parameters
        ----------
        table : Table, StateTable or MixedTable
            Without missing values.
        size : float
            Rows that the prior is worth.
        model : str
            As of the class.
        """
        if isinstance(table, StateTable):
            return cls(table, StatePairs(table.codes, table.states, size), model)
        if isinstance(table, MixedTable):
            totals = MixedTotals(table.standardized, table.states, size)
            return cls(table, MixedPairs(totals), model)
        return cls(table, NumberPairs(table.standardized, size), model)

    def log_density(self, graphs: "Graphs", data: Any) -> "pd.Series":
        """Log density of the filled values of rows; see `AveragesRows.log_density`."""
        import pandas as pd

        rows, labels = self._read(data, None)
        out = np.empty(len(rows))
        for at, row in enumerate(rows):
            empty = np.flatnonzero(np.isnan(row))
            out[at] = self._average(graphs, row, empty, labels[at]).log_density
        # Densities in the units of the table.
        out -= np.where(np.isnan(rows) | ~self._numbers, 0.0, np.log(self._units[1])).sum(axis=1)
        return pd.Series(out, labels, name="log_density")

    def predict(
        self, graphs: "Graphs", data: Any, column: str | None, prob: float
    ) -> "pd.DataFrame":
        """Distributions of the empty values of rows; see `AveragesRows.predict`."""
        rows, labels = self._read(data, column)
        found = []
        for at, empty in incomplete_rows(np.isnan(rows)):
            own, label = self._average(graphs, rows[at], empty, labels[at]), labels[at]
            marginals = iter(own.marginals)
            for j in empty.tolist():
                place = label, self.table.names[j]
                if self._numbers[j]:
                    found.append((*place, "", np.nan, *self._number_values(own.number, j, prob)))
                    continue
                nothing = (np.nan,) * 4
                states = zip(self._levels[j], next(marginals), strict=True)
                found += [(*place, state, p, *nothing) for state, p in states]
        table = mixed_table(found)
        if isinstance(self.table, MixedTable):
            return table
        used = ["mean", "sd", "low", "high"] if self._numbers.any() else ["state", "probability"]
        return table[["row", "column", *used]]

    @cached_property
    def _numbers(self) -> np.ndarray:
        """Which columns hold numbers."""
        if isinstance(self.table, Table):
            return np.ones(len(self.table.names), bool)
        return np.array(self.table.states) == 0

    @property
    def _levels(self) -> Sequence[Sequence]:
        """States of each column, none of numbers."""
        own = self.table
        return [()] * len(own.names) if isinstance(own, Table) else own.levels

    @cached_property
    def _units(self) -> tuple[np.ndarray, np.ndarray]:
        """Location and scale of the columns, 0 and 1 for states."""
        if isinstance(self.table, StateTable):
            return np.zeros(len(self.table.names)), np.ones(len(self.table.names))
        return self.table.location, self.table.scale

    def _read(self, data, column):
        """Standardised numbers, and states, NaN where empty; and the labels of the rows."""
        names = self.table.names
        if column is not None and column not in names:
            raise TableError(nearest("column", column, names))
        optional = [] if column is None else [column]
        own = self.table
        coding = MixedCoding.of(own) if isinstance(own, MixedTable) else coding_of(own)
        table = coding.read(data, optional=optional)
        states = isinstance(table, StateTable)
        rows = np.where(table.missing, np.nan, table.codes if states else table.standardized)
        if column is not None:
            rows[:, names.index(column)] = np.nan
        labels = row_labels(data, len(rows))
        refuse_many_completions(np.isnan(rows), self._levels, labels)
        return rows, labels

    def _average(self, graphs, row, empty, label) -> RowAverage:
        """Average a row over all graphs; a TableError if that cannot be done."""
        numbers = empty[self._numbers[empty]]
        if len(numbers) > 1:
            names = [self.table.names[j] for j in numbers]
            raise TableError(
                f"row {label!r} has {len(numbers)} empty numbers ({column_list(names)}): averaged over all graphs one number can be integrated "
                "out, not several. Fill in the others or leave the row out; bs.predict(idata, rows), with draws idata of "
                f"{self.model}(data), has any number of empty values"
            )
        number = int(numbers[0]) if len(numbers) else None
        states = empty[~self._numbers[empty]]
        try:
            return empty_values(graphs, self.pairs, np.nan_to_num(row), states, number)
        except ArithmeticError as error:
            name = self.table.names[numbers[0]]
            raise TableError(
                f"row {label!r}: the density of its empty value in column {name!r} cannot be integrated, its {error}. Other values of the row are "
                "far outside of the table or contradict each other: correct them, or leave the row out"
            ) from error

    def _number_values(self, own, j, prob):
        """Mean, standard deviation and ends of the interval in the units of the table."""
        location, scale = (units[j] for units in self._units)
        ends = (own.quantile(share) for share in (0.5 - prob / 2, 0.5 + prob / 2))
        mean, low, high = (location + scale * x for x in (own.mean, *ends))
        return mean, scale * own.sd, low, high
