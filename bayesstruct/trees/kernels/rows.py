"""New rows of a table, averaged over all trees: their densities and their empty values, as series and tables."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.tables.predictions import (
    incomplete_rows,
    number_table,
    refuse_many_completions,
)
from bayesstruct.data.coding import coding_of, row_labels
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.names import nearest
from bayesstruct.data.states import StateTable
from bayesstruct.data.table import Table
from bayesstruct.graphs.spanning_trees.sums import SpanningTrees
from bayesstruct.trees.kernels.averages import complete_row, empty_number, empty_states
from bayesstruct.trees.kernels.predictive import NumberPairs, StatePairs

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TreeRows"]


@dataclass(frozen=True, eq=False)
class TreeRows:
    """Distribution of new rows given a table, all trees and parameters summed out.

    Attributes
    ----------
    table : Table or StateTable
        The table that is known; new rows are read as it was.
    pairs : NumberPairs or StatePairs
        Distributions of one and two columns of a new row.
    """

    table: Table | StateTable
    pairs: NumberPairs | StatePairs

    @classmethod
    def after(cls, table: Table | StateTable, size: float) -> "TreeRows":
        """Return the distribution after the rows of a table.

        Parameters
        ----------
        table : Table or StateTable
            Without missing values.
        size : float
            Rows that the prior is worth.
        """
        if isinstance(table, StateTable):
            return cls(table, StatePairs(table.codes, table.states, size))
        return cls(table, NumberPairs(table.standardized, size))

    def log_density(self, trees: SpanningTrees, data: Any) -> "pd.Series":
        """Log density of the filled values of rows; see `TreePosterior.log_density`."""
        import pandas as pd

        rows, labels = self._read(data, None)
        out = np.empty(len(rows))
        for at, row in enumerate(rows):
            empty = np.flatnonzero(np.isnan(row))
            if not len(empty):
                out[at] = complete_row(trees, self.pairs, self._row(row))
            elif isinstance(self.pairs, StatePairs):
                out[at], _ = empty_states(trees, self.pairs, self._row(row), empty)
            else:
                out[at] = self._number(trees, row, empty, labels[at]).log_total
        if isinstance(self.table, Table):
            # Densities in the units of the table.
            out -= np.where(np.isnan(rows), 0.0, np.log(self.table.scale)).sum(axis=1)
        return pd.Series(out, labels, name="log_density")

    def predict(
        self, trees: SpanningTrees, data: Any, column: str | None, prob: float
    ) -> "pd.DataFrame":
        """Distributions of the empty values of rows; see `TreePosterior.predict`."""
        rows, labels = self._read(data, column)
        found = []
        for at, empty in incomplete_rows(np.isnan(rows)):
            if isinstance(self.pairs, StatePairs):
                found += self._state_lines(trees, rows[at], empty, labels[at])
            else:
                found.append(self._number_line(trees, rows[at], empty, labels[at], prob))
        return number_table(found) if isinstance(self.table, Table) else _probability_table(found)

    def _read(self, data, column):
        """Standardised numbers, or states, NaN where empty; and the labels of the rows."""
        names = self.table.names
        if column is not None and column not in names:
            raise TableError(nearest("column", column, names))
        optional = [] if column is None else [column]
        table = coding_of(self.table).read(data, optional=optional)
        states = isinstance(table, StateTable)
        rows = np.where(table.missing, np.nan, table.codes if states else table.standardized)
        if column is not None:
            rows[:, names.index(column)] = np.nan
        labels = row_labels(data, len(rows))
        if states:
            refuse_many_completions(np.isnan(rows), table.levels, labels)
        return rows, labels

    def _row(self, row):
        """Return a row as its distribution takes it."""
        return np.nan_to_num(row).astype(np.int64) if isinstance(self.pairs, StatePairs) else row

    def _number(self, trees, row, empty, label):
        if len(empty) > 1:
            names = [self.table.names[j] for j in empty]
            raise TableError(
                f"row {label!r} has {len(empty)} empty values ({column_list(names)}): averaged over all trees one number can be integrated "
                "out, not several. Fill in the others or leave the row out; bs.predict(idata, rows), with draws idata of "
                "bayesstruct.models.tree(data), has any number of empty values"
            )
        try:
            return empty_number(trees, self.pairs, row, int(empty[0]))
        except ArithmeticError as error:
            name = self.table.names[int(empty[0])]
            raise TableError(
                f"row {label!r}: the density of its empty value in column {name!r} cannot be integrated, its {error}. Other values of the row are "
                "far outside of the table or contradict each other: correct them, or leave the row out"
            ) from error

    def _number_line(self, trees, row, empty, label, prob):
        own = self._number(trees, row, empty, label)
        j = int(empty[0])
        location, scale = self.table.location[j], self.table.scale[j]
        ends = (own.quantile(share) for share in (0.5 - prob / 2, 0.5 + prob / 2))
        numbers = (location + scale * x for x in (own.mean, *ends))
        mean, low, high = numbers
        return label, self.table.names[j], mean, scale * own.sd, low, high

    def _state_lines(self, trees, row, empty, label):
        _, marginals = empty_states(trees, self.pairs, self._row(row), empty)
        return [
            (label, self.table.names[j], state, p)
            for j, own in zip(empty, marginals, strict=True)
            for state, p in zip(self.table.levels[j], own, strict=True)
        ]


def _probability_table(found):
    """Table of rows, columns, states and probabilities."""
    import pandas as pd

    names = ["row", "column", "state", "probability"]
    return pd.DataFrame(found, columns=names).astype({"probability": float})
