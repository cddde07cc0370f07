"""Constants that models of trees with hidden nodes record for their readers."""

from dataclasses import dataclass

import numpy as np

from bayesstruct.core.recorded import Recorded, constant

__all__ = ["HiddenNodePrior", "HiddenNodeStates"]


@dataclass(frozen=True)
class HiddenNodePrior(Recorded):
    """Prior probabilities of the numbers of hidden nodes of a tree.

    Attributes
    ----------
    probability : (most + 1,) ndarray
    """

    probability: np.ndarray = constant("hidden_prior", "hidden_count")


@dataclass(frozen=True)
class HiddenNodeStates(Recorded):
    """How many states a hidden node has.

    Attributes
    ----------
    count : int
    """

    count: int = constant("hidden_states")
