"""Constants that models of Bayesian networks record for their readers."""

from dataclasses import dataclass

import numpy as np

from bayesstruct.core.recorded import Recorded, constant

__all__ = ["SCORES", "NetworkScore", "NetworkStates", "SetMask"]

#: Local scores of networks; results record their positions.
SCORES = ("bge", "bdeu", "bde", "gaussian", "multinomial", "logistic")


@dataclass(frozen=True)
class NetworkScore(Recorded):
    """Local score of a network: what its parameters integrate to.

    Attributes
    ----------
    kind : int
        Position in `SCORES`.
    size : float
        Rows that the prior is worth, or the prior weight of each cell; 1 for scores without a prior.
    """

    kind: int = constant("network_score")
    size: float = constant("network_score_size")

    @classmethod
    def of(cls, score: str, size: float) -> "NetworkScore":
        """Constants of a score by its name."""
        return cls(SCORES.index(score), float(size))


@dataclass(frozen=True)
class NetworkStates(Recorded):
    """States of the columns of a discrete network.

    Attributes
    ----------
    count : (d,) ndarray of int
        Number of states of each column.
    """

    count: np.ndarray = constant("states", "node")


@dataclass(frozen=True)
class SetMask(Recorded):
    """Which values of the table ``x`` were set from outside.

    Attributes
    ----------
    was_set : (n, d) ndarray of int, optional
        1 where a value was set; absent if none was.
    """

    was_set: np.ndarray | None = constant("cell_set", ("observation", "node"), optional=True)

    @classmethod
    def free(cls, source, shape: tuple[int, ...]) -> np.ndarray:
        """Return a bool array of this shape that is true where a value was not set from outside.

        Parameters
        ----------
        source : xarray.DataTree or xarray.Dataset
            A result, or its group ``constant_data``.
        shape : tuple of int
            Of the table.
        """
        was_set = cls.read(source).was_set
        return np.ones(shape, bool) if was_set is None else was_set.reshape(shape) == 0
