"""Recognise a Markov random field in a model, with its biases, weights and missing values."""

import math

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pymc.distributions.continuous import FlatRV
from pytensor.graph.basic import Constant
from pytensor.tensor.random.basic import CategoricalRV, NormalRV

from bayesstruct.core.missing import Mask
from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    depends_on,
    is_op,
    parameters,
    unpad,
)
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.priors.random_fields import IncompletePairwiseRV, PairwiseRV
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlabRV
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlabRV

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor import TensorVariable

__all__ = [
    "MAX_STATES",
    "SPIKE_AND_SLAB",
    "Field",
    "block_labels",
    "check_uniform",
    "field_of_missing",
    "field_of_weights",
    "fields_of",
    "fields_with_absent_edges",
    "sampled_blocks",
]

#: Priors under which the weights of an edge may be zero.
SPIKE_AND_SLAB = (SpikeAndSlabRV, GroupSpikeAndSlabRV)
#: Largest number of joint states that are held in memory.
MAX_STATES = 2**22


@dataclass(frozen=True)
class Field:
    """A Markov random field in a model.

    Attributes
    ----------
    rows : TensorVariable
        Rows of states, a :class:`bayesstruct.PairwiseMRF` or
        :class:`bayesstruct.distributions.IncompletePairwiseMRF`.
    bias, weight : TensorVariable
        Biases and weights as they enter the density: variables of the model, or expressions.
    missing : TensorVariable or None
        Missing values of the rows.
    own_bias : TensorVariable or None
        The biases, if they are a normal or flat variable on which only this field depends.
    """

    rows: "TensorVariable"
    bias: "TensorVariable"
    weight: "TensorVariable"
    missing: "TensorVariable | None" = None
    own_bias: "TensorVariable | None" = None

    @property
    def potentials(self) -> Potentials:
        """Family of the potentials, numbers of states, edges."""
        return self.rows.owner.op.potentials

    @property
    def likelihood(self) -> str:
        """``"exact"`` or ``"pseudo"``."""
        return self.rows.owner.op.likelihood

    @property
    def mask(self) -> Mask:
        """Which values of the table are missing; only if some are."""
        return self.rows.owner.op.mask

    @property
    def variables(self) -> list:
        """Random variables that are drawn together if edges may be absent."""
        return [v for v in (self.weight, self.own_bias, self.missing) if v is not None]


def fields_of(model: "pm.Model") -> list[Field]:
    """Return every Markov random field of a model, observed or not."""
    return [_field(model, rv) for rv in model.basic_RVs if is_op(rv, PairwiseRV)]


def _field(model, rows) -> Field:
    bias, weight, *missing = parameters(rows)
    own = bias in model.free_RVs and is_op(bias, (NormalRV, FlatRV))
    own = own and children_of(model, bias) == [rows]
    return Field(rows, bias, weight, missing[0] if missing else None, bias if own else None)


def field_of_weights(model: "pm.Model", weight: "TensorVariable") -> Field:
    """Find the Markov random field that some weights belong to.

    Parameters
    ----------
    model : pymc.Model
    weight : TensorVariable
        Random variable with a spike-and-slab prior.

    Returns
    -------
    Field
        Observed, and the only variable that depends on the weights.

    Raises
    ------
    NotRecognized
        If the weights cannot be drawn exactly; says why.
    """
    children = children_of(model, weight)
    rows = [child for child in children if is_op(child, PairwiseRV)]
    if len(rows) != 1:
        raise NotRecognized(f"{weight.name!r} does not belong to one PairwiseMRF")
    field = _field(model, rows[0])
    _check_weights(model, field, weight, children)
    if field.likelihood == "exact":
        total = math.prod(field.potentials.states)
        if total > MAX_STATES:
            raise NotRecognized(
                f"{float(total):.3g} joint states are too many to hold (at most {MAX_STATES:,}); use "
                'likelihood="pseudo"'
            )
    if field.missing is not None:
        field_of_missing(model, field.missing)
    return field


def _check_weights(model, field, weight, children):
    """Refuse weights that something else depends on, or that enter the field transformed."""
    rows = field.rows
    if len(children) > 1:
        names = ", ".join(repr(c.name) for c in children if c is not rows)
        raise NotRecognized(f"{names} depends on {weight.name!r} too")
    if rows not in model.observed_RVs:
        raise NotRecognized(f"{rows.name!r} is not observed")
    if field.weight is not weight:
        raise NotRecognized(f"{weight.name!r} is not the vector of weights of {rows.name!r} itself")
    if model.rvs_to_transforms.get(weight) is not None:
        raise NotRecognized(f"{weight.name!r} has a transform")


def fields_with_absent_edges(model: "pm.Model") -> list[Field]:
    """Return every field whose weights have a spike-and-slab prior and can be drawn exactly."""
    found = []
    for rv in model.free_RVs:
        if is_op(rv, SPIKE_AND_SLAB):
            try:
                found.append(field_of_weights(model, rv))
            except NotRecognized:
                continue
    return found


def field_of_missing(model: "pm.Model", missing: "TensorVariable") -> Field:
    """Find the Markov random field that some missing values belong to.

    Parameters
    ----------
    model : pymc.Model
    missing : TensorVariable

    Returns
    -------
    Field
        Observed, whose biases and weights do not depend on the missing values.

    Raises
    ------
    NotRecognized
        If the missing values cannot be drawn exactly; says why.
    """
    if missing not in model.free_RVs:
        raise NotRecognized("the missing values are not a free variable of the model")
    children = children_of(model, missing)
    tables = [child for child in children if is_op(child, IncompletePairwiseRV)]
    if others := [child.name for child in children if child not in tables]:
        raise NotRecognized(f"{', '.join(map(repr, others))} depends on {missing.name!r}")
    if len(tables) != 1:
        raise NotRecognized(f"{missing.name!r} does not belong to one IncompletePairwiseMRF")
    [rows] = tables
    if rows not in model.observed_RVs or rows.type.ndim != 2:
        raise NotRecognized(f"{rows.name!r} is not an observed table")
    field = _field(model, rows)
    if field.missing is not missing:
        raise NotRecognized(
            f"{missing.name!r} is not the vector of missing values of {rows.name!r} itself"
        )
    if depends_on([field.bias, field.weight], missing):
        raise NotRecognized(f"biases or weights of {rows.name!r} depend on {missing.name!r}")
    check_uniform(missing, field.potentials, field.mask)
    return field


def check_uniform(missing: "TensorVariable", potentials: Potentials, mask: Mask) -> None:
    """Refuse missing values whose prior is not uniform."""
    p = unpad(parameters(missing)[0]) if is_op(missing, CategoricalRV) else None
    if not isinstance(p, Constant):
        raise NotRecognized(f"{missing.name!r} is not bayesstruct.distributions.MissingStates")
    states = np.array(potentials.states)[mask.columns, None]
    width = p.data.shape[-1]
    wanted = (np.arange(width) < states) / states
    known = p.data.ndim <= 2 and p.data.shape[:-1] in ((), (1,), (len(states),))
    if not known or width < states.max(initial=0) or not np.allclose(p.data, wanted):
        raise NotRecognized(f"the prior of {missing.name!r} is not uniform over its states")


def sampled_blocks(field: Field) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights that are present or absent together, under a spike-and-slab prior.

    Parameters
    ----------
    field : Field

    Returns
    -------
    edge : (blocks,) array of int
        To which each block belongs.
    start : (blocks + 1,) array of int
        Where the weights of each block start in `order`.
    order : (weights,) array of int
        Weights, block by block.

    Raises
    ------
    ValueError
        If a block has weights of several edges.
    """
    potentials, labels = field.potentials, block_labels(field)
    order = np.argsort(labels, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(labels))])
    edges = potentials.edge_of_weight[order]
    first, last = edges[start[:-1]], edges[start[1:] - 1]
    if (first != last).any():
        raise ValueError(
            f"a group of {field.weight.name!r} has weights of several edges of the Markov random field "
            f"{field.rows.name!r}: give each edge groups of its own"
        )
    return first, start, order


def block_labels(field: Field) -> np.ndarray:
    """Return the block of each weight, (weights,)."""
    if is_op(field.weight, GroupSpikeAndSlabRV):
        return field.weight.owner.op.groups.labels
    return np.arange(field.potentials.weight_size)
