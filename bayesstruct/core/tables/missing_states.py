"""Prior of the missing values of a table of states."""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorVariable

__all__ = ["MissingStates"]


class MissingStates(pm.Categorical):
    """Missing values of a table of states, with a uniform prior over the states of their columns.

    Parameters
    ----------
    name : str
    states : (missing values,) array_like of int
        Number of states of each missing value.
    **kwargs
        ``dims`` and the like.
    """

    rv_op = pm.Categorical.rv_op

    @classmethod
    def dist(cls, states: "ArrayLike", **kwargs) -> "TensorVariable":
        """Create the distribution without a model."""
        states = np.asarray(states)[:, None]
        known = np.arange(states.max()) < states
        return super().dist(p=known / states, **kwargs)
