"""Which values of a table are missing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.recorded import Recorded, constant

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Mask", "MissingMask"]


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
