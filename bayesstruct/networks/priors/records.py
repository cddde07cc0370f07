"""Constants that models of Bayesian networks record for their readers."""

from dataclasses import dataclass

import numpy as np

from bayesstruct.core.recorded import Recorded, constant

__all__ = ["NetworkStates", "NetworkUnits", "SetMask"]


@dataclass(frozen=True)
class NetworkStates(Recorded):
    """States of the columns of a discrete network.

    Attributes
    ----------
    count : (d,) ndarray of int
        Number of states of each column.
    node : (states,) ndarray of int
        Position of the column that each entry of the coordinate ``state`` belongs to.
    """

    count: np.ndarray = constant("states", "node")
    node: np.ndarray = constant("state_node", "state")


@dataclass(frozen=True)
class NetworkUnits(Recorded):
    """Units of the columns of a Gaussian network; the model keeps them as data.

    Attributes
    ----------
    location, scale : (d,) ndarray of float
        Mean and standard deviation by which each column was standardised.
    """

    location: np.ndarray = constant("location", "node")
    scale: np.ndarray = constant("scale", "node")


@dataclass(frozen=True)
class SetMask(Recorded):
    """Which values of the table ``x`` were set from outside.

    Attributes
    ----------
    was_set : (n, d) ndarray of int, optional
        1 where a value was set; absent if none was.
    """

    was_set: np.ndarray | None = constant("cell_set", ("observation", "node"), optional=True)
