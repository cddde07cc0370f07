"""Recognise features of objects of which pairs are observed: features, their weights, and the pairs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pytensor.graph.basic import Constant
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import NormalRV

from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    depends_on,
    is_op,
    parameters,
    without_casts,
)
from bayesstruct.features.priors.feature_interactions import FeaturePairs
from bayesstruct.features.priors.feature_links import FeatureLinksRV
from bayesstruct.features.priors.indian_buffet import IndianBuffetRV

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor import TensorVariable

__all__ = ["LinkedFeatures", "linked_features_of", "unequal"]


@dataclass(frozen=True, eq=False)
class LinkedFeatures:
    """Features of objects of which pairs are observed.

    Attributes
    ----------
    feature, other : TensorVariable
        Features of the first and of the second object of a pair: the same variable if all are of one set.
    interaction : TensorVariable
        Their weights.
    y : TensorVariable
        The responses, one for each pair.
    source, target : (d,) ndarray of int
        Positions of the two objects of each pair.
    offset : TensorVariable
        Terms of the linear predictors beside sums of weights.
    noise : TensorVariable or None
        Standard deviation of normal responses.
    """

    feature: "TensorVariable"
    other: "TensorVariable"
    interaction: "TensorVariable"
    y: "TensorVariable"
    source: np.ndarray
    target: np.ndarray
    offset: "TensorVariable"
    noise: "TensorVariable | None"

    @property
    def one_set(self) -> bool:
        """Whether both objects of a pair are of one set."""
        return self.other is self.feature

    @property
    def likelihood(self) -> str:
        """Name of the likelihood, see `bayesstruct.features.kernels.link_codes.LIKELIHOODS`."""
        return self.y.owner.op.link if is_op(self.y, FeatureLinksRV) else "normal"

    @property
    def variables(self) -> list:
        """Random variables that are drawn together, the weights last."""
        sets = [self.feature] if self.one_set else [self.feature, self.other]
        return [*sets, self.interaction]


def linked_features_of(model: "pm.Model", interaction: "TensorVariable") -> LinkedFeatures:
    """Collect features and pairs around weights.

    Raises
    ------
    NotRecognized
        Says what keeps them from being drawn exactly.
    """
    feature, other, scale = (without_casts(v) for v in parameters(interaction))
    children = children_of(model, interaction)
    if len(children) != 1:
        names = ", ".join(repr(rv.name) for rv in children) or "nothing"
        raise NotRecognized(f"{names} depends on {interaction.name!r}")
    [y] = children
    predictor, noise = _predictor(model, y)
    source, target, offset = _pairs(predictor, (feature, interaction, other), y)
    part = LinkedFeatures(feature, other, interaction, y, source, target, offset, noise)
    _check_variables(model, part)
    rest = [part.offset] if noise is None else [part.offset, noise]
    if any(depends_on(rest, rv) for rv in part.variables):
        raise NotRecognized(f"features or weights enter {y.name!r} outside of `feature_pairs`")
    if any(depends_on([scale], rv) for rv in part.variables):
        raise NotRecognized(f"the scale of {interaction.name!r} depends on its features")
    _check_pairs(part)
    return part


def _check_variables(model, part):
    """Refuse features and weights that are not free, or on which something else depends."""
    for rv in part.variables:
        if rv not in model.free_RVs or model.rvs_to_transforms.get(rv) is not None:
            raise NotRecognized(
                f"{rv.name or 'a set of features'!r} is observed or has a transform"
            )
    for rv in part.variables[:-1]:
        if not is_op(rv, IndianBuffetRV):
            raise NotRecognized(f"{rv.name!r} is not an IndianBuffet")
        if others := [
            c.name for c in children_of(model, rv) if c not in (part.interaction, part.y)
        ]:
            raise NotRecognized(f"{', '.join(map(repr, others))} depends on {rv.name!r}")


def _predictor(model, y):
    """Return the linear predictor of the pairs, and their standard deviation, if they have one."""
    if y not in model.observed_RVs:
        raise NotRecognized(f"{y.name!r} is not observed, or in part only")
    if is_op(y, FeatureLinksRV):
        return parameters(y)[0], None
    if not is_op(y, NormalRV):
        raise NotRecognized(f"{y.name!r} is neither FeatureLinks nor Normal")
    mean, noise = parameters(y)
    if any(length != 1 for length in noise.type.shape):
        raise NotRecognized(f"the standard deviation of {y.name!r} is not one number")
    return mean, noise


def _terms(tensor) -> list:
    """Terms of a sum."""
    tensor = without_casts(tensor)
    owner = tensor.owner
    if owner is not None and isinstance(owner.op, Elemwise):
        if owner.op.scalar_op.name in ("add", "Add"):
            return [term for v in owner.inputs for term in _terms(v)]
    return [tensor]


def _pairs(predictor, variables, y):
    """Return source and target of the pairs, and the offset that is added to their sums of weights.

    ``variables`` are the features, their weights and the features of the other side.
    """
    terms = _terms(predictor)
    sums = [v for v in terms if is_op(v, FeaturePairs)]
    if len(sums) != 1:
        raise NotRecognized(f"the predictor of {y.name!r} has {len(sums)} terms `feature_pairs`")
    feature, interaction, other = variables
    first, weights, *rest = (without_casts(v) for v in sums[0].owner.inputs)
    second = rest[0] if len(rest) == 3 else first
    if first is not feature or second is not other:
        raise NotRecognized(
            f"`feature_pairs` in {y.name!r} has other features than those of its weights"
        )
    if weights is not interaction:
        raise NotRecognized(
            f"`feature_pairs` in {y.name!r} takes {interaction.name!r} changed, not as it is: to have other weights, "
            "change the `scale` of FeatureInteractions"
        )
    places = rest[-2:]
    if not all(isinstance(v, Constant) for v in places):
        raise NotRecognized(f"the objects of {y.name!r} are not constant")
    offset = pt.constant(0.0)
    for term in terms:
        if term is not sums[0]:
            offset = offset + term
    return places[0].data, places[1].data, offset


def _check_pairs(part):
    n, m = part.feature.owner.op.matrix[0], part.other.owner.op.matrix[0]
    if len(part.source) == 0:
        raise NotRecognized(f"{part.y.name!r} has no pairs")
    if part.y.type.ndim != 1:
        raise NotRecognized(f"{part.y.name!r} has {part.y.type.ndim} dimensions, not one")
    [length] = part.y.type.shape
    if length not in (None, len(part.source)):  # None for pm.Data: the step looks at each call
        raise NotRecognized(unequal(part.y.name, length, len(part.source)))
    if part.source.max() >= n or part.target.max() >= m:
        raise NotRecognized(f"{part.y.name!r} has objects that have no row of features")
    if part.one_set and (part.source == part.target).any():
        raise NotRecognized(f"{part.y.name!r} has pairs of an object with itself")
    if part.likelihood == "noisy_or" and not part.interaction.owner.op.positive:
        raise NotRecognized(f"'noisy_or' takes weights {part.interaction.name!r} that are positive")


def unequal(name: str, responses: int, pairs: int) -> str:
    """Say that there is not one response for each pair."""
    return f"{name!r} has {responses} responses and its `feature_pairs` {pairs} pairs: give one for each"
