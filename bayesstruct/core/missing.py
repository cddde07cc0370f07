"""Missing values of a table of states."""

import numpy as np
import pymc as pm

__all__ = ["Mask", "MissingStates"]


class Mask:
    """Which cells of a table are missing; as a property of an Op, equal to itself only.

    Parameters
    ----------
    missing : (n, p) array_like of bool
    """

    def __init__(self, missing):
        self.missing = np.asarray(missing).astype(bool)
        if self.missing.ndim != 2:
            raise ValueError("`missing` is a table, true where a cell was not observed")
        self.rows, self.columns = np.nonzero(self.missing)


class MissingStates(pm.Categorical):
    """Missing cells of a table of states, before anything is known of them: uniform.

    Parameters
    ----------
    name : str
    states : (missing cells,) array_like of int
        Number of states of each cell.
    **kwargs
        ``dims`` and the like.
    """

    rv_op = pm.Categorical.rv_op

    @classmethod
    def dist(cls, states, **kwargs):
        """Create the distribution without a model."""
        states = np.asarray(states)[:, None]
        known = np.arange(states.max()) < states
        return super().dist(p=known / states, **kwargs)
