"""How the table of a model was read, as a result records it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.recorded import Recorded, constant
from bayesstruct.data.coding import NumberCoding, StateCoding
from bayesstruct.data.errors import TableError, column_list

if TYPE_CHECKING:
    from bayesstruct.data.states import StateTable

__all__ = ["ColumnUnits", "CovariateUnits", "StateLevels", "record_levels", "refuse_gaps"]


@dataclass(frozen=True)
class ColumnUnits(Recorded):
    """Linear map from the columns of the model to those of the table; models keep it as data.

    Attributes
    ----------
    location, scale : (p,) ndarray of float, optional
        A value of the model times the scale, plus the location, is one of the table.
    """

    location: np.ndarray | None = constant("location", "node", optional=True)
    scale: np.ndarray | None = constant("scale", "node", optional=True)

    def known(self) -> tuple[np.ndarray, np.ndarray]:
        """Return location and scale.

        Raises
        ------
        ValueError
            If the result does not record them.
        """
        if self.location is None or self.scale is None:
            raise ValueError(
                "the result does not record `location` and `scale`, the units of its table, in its group `constant_data`: "
                "pass the whole result of pm.sample()"
            )
        if np.ndim(self.scale) > 1:
            raise ValueError(
                "the columns of this result have other units in each group of rows: read one group, "
                "bs.one_group(idata, label)"
            )
        return self.location, self.scale

    def coding(self, names) -> NumberCoding:
        """Return how the table of a result with these columns was read."""
        return NumberCoding(tuple(names), *self.known())


@dataclass(frozen=True)
class CovariateUnits(Recorded):
    """Units of the covariates.

    Attributes
    ----------
    location, scale : (q,) ndarray of float
        By which each covariate was standardised.
    """

    location: np.ndarray = constant("covariate_center", "covariate")
    scale: np.ndarray = constant("covariate_unit", "covariate")

    @classmethod
    def names(cls, idata) -> list[str]:
        """Return the covariates of a result, none if it has none."""
        units = idata["constant_data"] if "constant_data" in idata.children else {}
        return units["covariate"].values.tolist() if "covariate_unit" in units else []

    @classmethod
    def coding(cls, constants) -> NumberCoding:
        """Return how the covariates of a result were read, from its group ``constant_data``."""
        units = cls.read(constants)
        return NumberCoding(
            tuple(constants["covariate"].values.tolist()), units.location, units.scale
        )


@dataclass(frozen=True)
class StateLevels(Recorded):
    """Column of each entry of the coordinate ``state``, whose labels are "column=state".

    Attributes
    ----------
    node : (states,) ndarray of int
        Position of the column.
    """

    node: np.ndarray = constant("state_node", "state")

    @classmethod
    def coding(cls, constants, names) -> StateCoding:
        """Return how the table of a result was read.

        Parameters
        ----------
        constants : xarray.Dataset
            Group ``constant_data`` of the result.
        names : sequence of str
            Its columns.
        """
        node = cls.read(constants).node
        return StateCoding.from_labels(names, constants["state"].values.tolist(), node)


def record_levels(table: "StateTable | StateCoding") -> None:
    """Record the states of each column."""
    import pymc as pm

    names = zip(table.names, table.levels, strict=True)
    labels = [f"{name}={state}" for name, own in names for state in own]
    pm.modelcontext(None).add_coord("state", labels)
    node = np.repeat(np.arange(len(table.names)), [len(own) for own in table.levels])
    StateLevels(node).record()


def refuse_gaps(table: Any) -> None:
    """Raise for new rows with missing states, whose density would be a sum over all completions.

    Parameters
    ----------
    table : StateTable or MixedTable
    """
    if table.missing.any():
        columns = [table.names[j] for j in np.flatnonzero(table.missing.any(axis=0))]
        raise TableError(
            f"{column_list(columns)}: values are missing in the new rows, and the density is that of complete "
            "rows; drop these rows, or use bs.predict(idata, table) for the distribution of the missing values"
        )
