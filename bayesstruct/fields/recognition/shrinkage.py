"""Recognise a model that is a Markov random field with a (group-)Laplace prior of fixed rate."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pymc.distributions.continuous import FlatRV
from pytensor.tensor.random.basic import LaplaceRV, NormalRV

from bayesstruct.core.recognition import is_op, parameters
from bayesstruct.core.tensors import constant_value
from bayesstruct.fields.recognition.fields import Field, fields_of
from bayesstruct.sparse.priors.group_laplace import GroupLaplaceRV

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["ShrunkField", "shrunk_field"]


@dataclass(frozen=True)
class ShrunkField:
    """A Markov random field with a (group-)Laplace prior of its weights.

    Attributes
    ----------
    field : Field
    norm : {1, 2, numpy.inf, "nuclear"}
        Of the weights of a pair.
    rate, ridge : float
        Penalties of the norms, and of the squared biases.
    """

    field: Field
    norm: object
    rate: float
    ridge: float


def shrunk_field(model: "pm.Model") -> ShrunkField | None:
    """Return the field if the model is one and nothing else, with constant hyperparameters."""
    fields = [field for field in fields_of(model) if field.rows in model.observed_RVs]
    if len(fields) != 1:
        return None
    [field] = fields
    own = {v for v in (field.bias, field.weight, field.missing) if v is not None}
    if own != set(model.free_RVs) or model.potentials:
        return None
    penalty, ridge = _penalty(field.weight), _ridge(field.bias)
    if penalty is None or ridge is None:
        return None
    norm, rate = penalty
    return ShrunkField(field, norm, rate, ridge)


def _common(tensor):
    """Return the number to which all entries of a constant are equal, or None."""
    value = constant_value(tensor)
    if value is None or value.size == 0 or (value != value.flat[0]).any():
        return None
    return float(value.flat[0])


def _penalty(weight):
    """Return norm and rate of the prior of the weights, or None."""
    if is_op(weight, LaplaceRV):
        mean, scale = (_common(v) for v in parameters(weight))
        return None if mean != 0 or scale is None else (1, 1.0 / scale)
    if is_op(weight, GroupLaplaceRV):
        rate = _common(parameters(weight)[0])
        return None if rate is None else (weight.owner.op.structure.penalty.norm, rate)
    return None


def _ridge(bias):
    """Return the penalty of the squared biases, or None."""
    if is_op(bias, NormalRV):
        mean, deviation = (_common(v) for v in parameters(bias))
        return None if mean != 0 or deviation is None else 0.5 / deviation**2
    return 0.0 if is_op(bias, FlatRV) else None
