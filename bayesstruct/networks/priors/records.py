"""Constants that models of Bayesian networks record for their readers."""

from dataclasses import dataclass

import numpy as np

from bayesstruct.core.recorded import Recorded, constant

__all__ = ["NetworkStates"]


@dataclass(frozen=True)
class NetworkStates(Recorded):
    """States of the columns of a discrete network.

    Attributes
    ----------
    count : (d,) ndarray of int
        Number of states of each column.
    """

    count: np.ndarray = constant("states", "node")
