"""Read other rows of numbers and states as the table of a model was read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesstruct.data.checks import max_columns, new_value_kinds
from bayesstruct.data.coding import column_places, other_codes, state_position
from bayesstruct.data.errors import TableError, raise_problems, warn
from bayesstruct.data.intake import Intake, read_columns
from bayesstruct.data.remarks import far_remarks
from bayesstruct.data.states import read_states
from bayesstruct.networks.data.mixed_tables import MixedTable
from bayesstruct.networks.kernels.mixed_layout import MixedLayout

__all__ = ["MixedCoding"]


@dataclass(frozen=True, eq=False)
class MixedCoding:
    """How a table of numbers and states was read.

    Attributes
    ----------
    names : tuple of str
        The p columns.
    families : tuple of str
        Of :data:`bayesstruct.networks.kernels.mixed_layout.FAMILIES`.
    levels : tuple of tuple
        For each column its states in the order of their codes, as text if they come from a result; none for numbers.
    location, scale : (p,) ndarray of float
        By which numbers were standardised; 0 and 1 for states.
    """

    names: tuple[str, ...]
    families: tuple[str, ...]
    levels: tuple[tuple, ...]
    location: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, table: MixedTable) -> "MixedCoding":
        """Return how a table was read."""
        return cls(table.names, table.families, table.levels, table.location, table.scale)

    @property
    def layout(self) -> MixedLayout:
        """Places of the parameters of each column."""
        return MixedLayout(self.families, [*map(len, self.levels)])

    def read(self, data: Any, *, optional: Sequence[str] = ()) -> MixedTable:
        """Read other rows in the same units and with the same codes.

        Parameters
        ----------
        data : DataFrame or array_like
            (n, p) rows, missing values allowed; one row is enough. Columns that have names are found by name, others
            by position.
        optional : sequence of str
            Columns that may be absent; they are then missing.

        Returns
        -------
        MixedTable
            With the families, levels, location and scale of the first table.

        Raises
        ------
        TableError
            If a column is absent, unknown or repeated, a value is no finite number, or a state does not occur in the
            first table.

        Warns
        -----
        TableWarning
            If numbers are far outside of the first table.
        """
        intake = read_columns(data, max_columns())
        place = column_places(self.names, intake.names, data, optional)
        number = [j for j, own in enumerate(self.levels) if not own and place[j] >= 0]
        raise_problems(new_value_kinds(_only(intake, place[number].tolist())))
        values = np.full((len(intake.values), len(self.names)), np.nan)
        values[:, number] = intake.values[:, place[number]]
        self._read_states(data, intake, place, values)
        if not len(values):
            raise TableError("The table is empty, it has 0 rows; give one row or more.")
        names = [self.names[j] for j in number]
        units = self.location[number], self.scale[number]
        for remark in far_remarks(names, values[:, number], *units):
            warn(remark)
        values.flags.writeable = False
        return MixedTable(values, self.names, self.families, self.levels, self.location, self.scale)

    def _read_states(self, data, intake, place, values):
        """Write the codes of columns of states."""
        _, columns, rows = read_states(data)
        problems = []
        for j, levels in enumerate(self.levels):
            if not levels or place[j] < 0:
                continue
            column = columns[place[j]]
            if len(column.codes) < rows and not np.isnan(intake.values[:, place[j]]).all():
                values[:, j] = _codes_of_numbers(intake.values[:, place[j]], levels)
                if not (np.isnan(values[:, j]) & ~np.isnan(intake.values[:, place[j]])).any():
                    continue
            codes, found = other_codes(self.names[j], column, levels, rows)
            values[:, j] = np.where(codes < 0, np.nan, codes)
            problems += found
        raise_problems(problems)


def _only(intake, places):
    """Intake of some columns."""
    refused = {
        kind: kept
        for kind, found in intake.refused.items()
        if (kept := [(places.index(j), example) for j, example in found if j in places])
    }
    return Intake([intake.names[j] for j in places], intake.values[:, places], refused)


def _codes_of_numbers(column, levels):
    """Codes of numbers that are not whole, NaN where missing or unknown."""
    known = {value: state_position(value, levels) for value in np.unique(column[~np.isnan(column)])}
    codes = np.array([known.get(value, -1) for value in column], float)
    return np.where(codes < 0, np.nan, codes)
