"""Indicators of the coefficients that a spike-and-slab prior leaves in a model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.tensors import random_ancestors
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlabRV
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlabRV

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["included"]


def included(
    name: str, coefficients: "TensorVariable", *, dims: str | Sequence[str] | None = None
) -> "TensorVariable":
    """Add indicators of the coefficients that are not zero to the model.

    Parameters
    ----------
    name : str
    coefficients : TensorVariable
        Model variable with the :class:`SpikeAndSlab` or ``GroupSpikeAndSlab`` prior, or computed
        from one.
    dims : str or sequence of str, optional

    Returns
    -------
    TensorVariable
        0/1, of the shape of the coefficients.

    Raises
    ------
    TypeError
        If the coefficients have another prior: they are never exactly zero then.
    """
    kinds = (SpikeAndSlabRV, GroupSpikeAndSlabRV)
    parents = random_ancestors(pt.as_tensor_variable(coefficients))
    if getattr(coefficients, "owner", None) is not None and coefficients in parents:
        parents = [coefficients]
    if not any(isinstance(parent.owner.op, kinds) for parent in parents):
        raise TypeError(
            f"`coefficients` of {name!r} must have a SpikeAndSlab prior, those with other priors are "
            "never exactly zero; for these choose a threshold, "
            f"pm.Deterministic({name!r}, pt.abs(w) > 0.1)"
        )
    return pm.Deterministic(name, pt.neq(coefficients, 0.0).astype("int64"), dims=dims)
