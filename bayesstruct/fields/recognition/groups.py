"""Recognise a Markov random field of several groups of rows in a model, with its biases, weights and missing values."""

import math

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pymc.distributions.continuous import FlatRV
from pytensor.tensor.random.basic import NormalRV

from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    depends_on,
    is_op,
    parameters,
    unpad,
)
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.priors.group_rows import (
    GroupedPairwiseRV,
    IncompleteGroupedPairwiseRV,
    RowPlaces,
)
from bayesstruct.fields.priors.groups import GroupedWeightsRV
from bayesstruct.fields.recognition.fields import MAX_STATES, check_uniform

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor import TensorVariable

__all__ = ["GroupedField", "grouped_field_of", "grouped_fields"]


@dataclass(frozen=True)
class GroupedField:
    """A Markov random field of several groups in a model.

    Attributes
    ----------
    rows : TensorVariable
        Rows of states, a :class:`bayesstruct.distributions.GroupedPairwiseMRF` or
        :class:`bayesstruct.distributions.IncompleteGroupedPairwiseMRF`.
    bias, weight : TensorVariable
        Biases and weights as they enter the density.
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
    def places(self) -> RowPlaces:
        """Which rows belong to which group."""
        return self.rows.owner.op.places

    @property
    def mask(self):
        """Which values of the table are missing; None if none is."""
        return self.rows.owner.op.mask

    @property
    def variables(self) -> list:
        """Random variables that are drawn together."""
        return [v for v in (self.weight, self.own_bias, self.missing) if v is not None]


def grouped_field_of(model: "pm.Model", weight: "TensorVariable") -> GroupedField:
    """Find the Markov random field of several groups that some weights belong to.

    Parameters
    ----------
    model : pymc.Model
    weight : TensorVariable
        Random variable with the prior :class:`bayesstruct.distributions.GroupedWeights`.

    Returns
    -------
    GroupedField
        Observed, and the only variable that depends on the weights.

    Raises
    ------
    NotRecognized
        If the weights cannot be drawn exactly; says why.
    """
    children = children_of(model, weight)
    found = [child for child in children if is_op(child, GroupedPairwiseRV)]
    if len(found) != 1:
        raise NotRecognized(f"{weight.name!r} does not belong to one GroupedPairwiseMRF")
    [rows] = found
    if len(children) > 1:
        names = ", ".join(repr(c.name) for c in children if c is not rows)
        raise NotRecognized(f"{names} depends on {weight.name!r} too")
    if rows not in model.observed_RVs:
        raise NotRecognized(f"{rows.name!r} is not observed")
    _, bias, own, *missing = (unpad(v) for v in parameters(rows))
    if own is not weight:
        raise NotRecognized(f"{weight.name!r} is not the matrix of weights of {rows.name!r} itself")
    field = GroupedField(
        rows, bias, weight, missing[0] if missing else None, _own(model, bias, rows)
    )
    _check(model, field)
    return field


def _own(model, bias, rows):
    """Return the biases if they are a variable of this field alone that the step draws."""
    known = bias in model.free_RVs and is_op(bias, (NormalRV, FlatRV))
    return bias if known and children_of(model, bias) == [rows] else None


def _check(model, field):
    """Refuse fields of other potentials, of too many states, or with other missing values."""
    potentials = field.potentials
    if potentials.weight_size != len(potentials.ends[0]):
        raise NotRecognized(
            f"pairs of {field.rows.name!r} have several weights each, and relations are those of pairs with one"
        )
    total = math.prod(potentials.states)
    if field.likelihood == "exact" and total > MAX_STATES:
        raise NotRecognized(
            f"{float(total):.3g} joint states are too many to hold (at most {MAX_STATES:,}); use "
            'likelihood="pseudo"'
        )
    missing = field.missing
    if missing is None:
        return
    if missing not in model.free_RVs:
        raise NotRecognized("the missing values are not a free variable of the model")
    if children_of(model, missing) != [field.rows] or not is_op(
        field.rows, IncompleteGroupedPairwiseRV
    ):
        raise NotRecognized(f"{missing.name!r} does not belong to {field.rows.name!r} alone")
    if depends_on([field.bias, field.weight], missing):
        raise NotRecognized(f"biases or weights of {field.rows.name!r} depend on {missing.name!r}")
    check_uniform(missing, potentials, field.mask)


def grouped_fields(model: "pm.Model") -> list[GroupedField]:
    """Return every Markov random field of several groups of a model that can be drawn exactly."""
    found = []
    for rv in model.free_RVs:
        if is_op(rv, GroupedWeightsRV):
            try:
                found.append(grouped_field_of(model, rv))
            except NotRecognized:
                continue
    return found
