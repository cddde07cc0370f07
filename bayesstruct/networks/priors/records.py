"""Constants that models of Bayesian networks record for their readers."""

from dataclasses import dataclass

import numpy as np

from bayesstruct.core.recorded import Recorded, constant
from bayesstruct.networks.kernels.mixed_layout import FAMILIES, MixedLayout

__all__ = ["SCORES", "ClassifierTarget", "MixedColumns", "NetworkScore", "NetworkStates", "SetMask"]

#: Local scores of networks; results record their positions.
SCORES = ("bge", "bdeu", "bde", "gaussian", "multinomial", "logistic", "mixed")


@dataclass(frozen=True)
class NetworkScore(Recorded):
    """Local score of a network: what its parameters integrate to.

    Attributes
    ----------
    kind : int
        Position in `SCORES`.
    size : float
        Rows that the prior is worth, the prior weight of each cell, or the standard deviation of coefficients under
        ``"mixed"``; 1 for scores without a prior.
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
class MixedColumns(Recorded):
    """Families of the columns of a network of columns of several kinds.

    Attributes
    ----------
    family : (d,) ndarray of int
        Positions in :data:`bayesstruct.networks.kernels.mixed_layout.FAMILIES`.
    count : (d,) ndarray of int
        Number of states of each column, 0 for numbers.
    """

    family: np.ndarray = constant("column_family", "node")
    count: np.ndarray = constant("column_states", "node")

    def layout(self) -> MixedLayout:
        """Return features and places of parameters of these columns."""
        families = [FAMILIES[k] for k in self.family.astype(int)]
        return MixedLayout(families, self.count.astype(int).tolist())


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


@dataclass(frozen=True)
class ClassifierTarget(Recorded):
    """Which column is the class, if the network is a classifier: its arcs are then no effects.

    Attributes
    ----------
    position : int
        Among the columns.
    """

    position: int = constant("classifier_target")
