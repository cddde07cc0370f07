"""Which values of a table are missing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.recorded import Recorded, constant

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pymc import Model
    from pytensor.tensor import TensorVariable

__all__ = ["Mask", "MissingMask", "observed_values", "show_missing"]


def show_missing(
    rows: "TensorVariable", missing: "ArrayLike", dtype: str = "float64"
) -> "TensorVariable":
    """Show missing values of an observed table as NaN, in results too.

    Something has to stand in their places for the steps, and PyMC imputes NaN by itself; in ``observed_data`` it would
    look like data.

    Parameters
    ----------
    rows : TensorVariable
        Observed variable of the model in context, of floats, whose density does not depend on missing values.
    missing : array_like of bool
        Its shape; true where a value is missing. If none is, nothing changes.
    dtype : str
        Of the table that steps take.
    """
    import pymc as pm
    import pytensor.tensor as pt

    if np.any(missing):
        model = pm.modelcontext(None)
        filled = model.rvs_to_values.pop(rows)
        value = pt.constant(np.where(missing, np.nan, filled.data), name=filled.name)
        value.tag.filled = filled.data.astype(dtype)
        model.values_to_rvs.pop(filled)
        model.rvs_to_values[rows], model.values_to_rvs[value] = value, rows
        rows.tag.observations = value
    return rows


def observed_values(model: "Model", rows: "TensorVariable") -> "TensorVariable":
    """Value of an observed table in which something stands for missing values, see `show_missing`."""
    import pytensor.tensor as pt

    value = model.rvs_to_values[rows]
    filled = getattr(value.tag, "filled", None)
    return value if filled is None else pt.constant(filled)


class Mask:
    """Which values of a table are missing; as a property of an Op, equal to itself only.

    Parameters
    ----------
    missing : (n, p) array_like of bool

    Attributes
    ----------
    missing : (n, p) array of bool
    rows, columns : (missing values,) arrays of int
        Their places, row by row.
    """

    def __init__(self, missing: "ArrayLike"):
        self.missing = np.asarray(missing).astype(bool)
        if self.missing.ndim != 2:
            raise ValueError(
                "`missing` must have one row for each row of the table and one column for each column, "
                f"true where a value is missing; it has {self.missing.ndim} dimensions"
            )
        self.rows, self.columns = np.nonzero(self.missing)


@dataclass(frozen=True)
class MissingMask(Recorded):
    """Which values of the observed table ``x`` are missing, as a result records it.

    Attributes
    ----------
    missing : (n, p) array of int, optional
        1 where a value is missing; absent if the table is complete.
    """

    missing: np.ndarray | None = constant("cell_missing", ("observation", "node"), optional=True)

    @classmethod
    def mask(cls, source, shape: tuple[int, ...]) -> np.ndarray:
        """Return a bool array of this shape that is true where a value is missing.

        Parameters
        ----------
        source : xarray.DataTree or xarray.Dataset
            A result, or its group ``constant_data``.
        shape : tuple of int
            Of the table.
        """
        recorded = cls.read(source).missing
        return np.zeros(shape, bool) if recorded is None else recorded.reshape(shape) != 0
