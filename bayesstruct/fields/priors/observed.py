"""Check observed tables of states before PyMC converts them."""

import numpy as np

from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable

from bayesstruct.data.arguments import numbers

__all__ = ["check_observed"]


def check_observed(name: str, observed, states: tuple[int, ...] | None, missing=None) -> None:
    """Raise if observed values are not states; PyMC would round them to whole numbers.

    Parameters
    ----------
    name : str
    observed : array_like, DataFrame or shared variable
        (n, p) or (p,).
    states : tuple of int or None
        Number of states of each column; two if not given.
    missing : array_like of bool, optional
        True where a value is missing, and anything may stand.

    Raises
    ------
    ValueError
        Names the column and the remedy.
    """
    columns = getattr(observed, "columns", None)
    if isinstance(observed, SharedVariable | Constant):
        observed = observed.get_value() if isinstance(observed, SharedVariable) else observed.data
    if isinstance(observed, Variable):
        return
    table = np.atleast_2d(np.asarray(observed))
    width = table.shape[-1]
    names = list(columns) if columns is not None else [f"column {j}" for j in range(width)]
    states = (2,) * width if states is None else states
    masked = np.broadcast_to(np.atleast_2d(np.ma.getmaskarray(observed)), table.shape)
    if width != len(states):
        raise ValueError(f"{name!r} has {len(states)} columns, the observed table has {width}")
    known = ~masked if missing is None else ~np.asarray(missing, bool).reshape(table.shape)
    for j, k in enumerate(states):
        try:
            own = numbers(names[j], table[..., j][known[..., j]])
        except ValueError as error:
            raise ValueError(
                f"{error}: states are 0 to {k - 1}; bs.models.pairwise_mrf takes labels of any kind"
            ) from None
        wrong = own[~((own >= 0) & (own < k) & (own == np.floor(own)))]
        if len(wrong):
            raise ValueError(f"{names[j]}: {wrong[0]:g} is not a state. {_remedy(own, k)}")


def _remedy(values, k):
    """Say how to change these values."""
    if np.isnan(values).any():
        return (
            "Drop the rows with missing values, or use bs.models.pairwise_mrf, which imputes them (in a model of "
            "your own: bs.distributions.IncompletePairwiseMRF with bs.distributions.MissingStates)"
        )
    if set(values) <= {-1.0, 1.0}:
        return 'States are 0 and 1, also with coding="pm": give (x + 1) // 2'
    return f"States are the whole numbers 0 to {k - 1}; bs.data.StateTable.read(table).codes converts a table to them"
