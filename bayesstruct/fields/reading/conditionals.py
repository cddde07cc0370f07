"""Conditional distributions of the states of each column of a Markov random field given its row."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.groups import SAMPLE_DIMS

if TYPE_CHECKING:
    import xarray as xr

    from bayesstruct.fields.kernels.potentials import Potentials

__all__ = ["field_conditionals"]


def field_conditionals(
    potentials: "Potentials", draws: "xr.Dataset"
) -> Callable[[int, int], Callable[[np.ndarray], list[np.ndarray]]]:
    """Return the conditional distributions of each draw.

    Parameters
    ----------
    potentials : Potentials
    draws : xarray.Dataset
        With ``bias``, and ``weight`` or ``potential``, over chain and draw.

    Returns
    -------
    callable
        Of the positions of a chain and of a draw; it returns a function of a complete table of states, (n, p), whose
        value is a list with the log probabilities (states, n) of each column given the others.
    """
    from bayesstruct.fields.kernels.conditionals import condition

    name = "potential" if "potential" in draws else "weight"
    bias, weight = (
        draws[own].transpose(*SAMPLE_DIMS, ...).values.astype(float) for own in ("bias", name)
    )
    start, ends = potentials.unary_start, potentials.ends

    def of_draw(c, d):
        unary = potentials.unary(bias[c, d].reshape(-1))
        pair = potentials.pair(weight[c, d].reshape(-1))

        def conditional(x):
            codes = np.ascontiguousarray(x.T, np.int16)
            logs, shares = np.empty((2, int(start[-1]), len(x)))
            lowest = np.empty(potentials.p)
            condition(codes, start, unary, pair, potentials.pair_start, *ends, logs, shares, lowest)
            with np.errstate(divide="ignore"):
                logs = np.log(shares)
            return [logs[start[j] : start[j + 1]] for j in range(potentials.p)]

        return conditional

    return of_draw
