"""Recognise choices by elimination of aspects: which aspects options have, their weights, and the choices."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytensor.graph.basic import Constant
from pytensor.tensor.random.basic import BinomialRV

from bayesstruct.core.recognition import NotRecognized, children_of, depends_on, is_op, parameters
from bayesstruct.features.kernels.link_codes import DIAGONAL
from bayesstruct.features.priors.aspect_choices import AspectProbabilities
from bayesstruct.features.priors.feature_interactions import FeatureInteractionsRV
from bayesstruct.features.recognition.children import children_of_kinds

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor import TensorVariable

__all__ = ["Aspects", "aspects_of"]


@dataclass(frozen=True, eq=False)
class Aspects:
    """Aspects by which one of two options is chosen.

    Attributes
    ----------
    feature, weight, rows : TensorVariable
        Which aspects each option has, their weights, and how often the first option of each pair was chosen.
    trials : ndarray
        How often a choice was made; broadcasts with the pairs.
    first, second : (m,) ndarray of int
        Positions of the two options of each pair.
    lapse : TensorVariable
        Probability of a choice at random.
    """

    feature: "TensorVariable"
    weight: "TensorVariable"
    rows: "TensorVariable"
    trials: np.ndarray
    first: np.ndarray
    second: np.ndarray
    lapse: "TensorVariable"

    @property
    def variables(self) -> list:
        """Random variables that are drawn together."""
        return [self.feature, self.weight]


def aspects_of(model: "pm.Model", feature: "TensorVariable") -> Aspects:
    """Collect weights and choices around aspects.

    Raises
    ------
    NotRecognized
        Says what keeps them from being drawn exactly.
    """
    weight, y = children_of_kinds(model, feature, (FeatureInteractionsRV, BinomialRV))
    if not is_op(parameters(y)[1], AspectProbabilities) or children_of(model, weight) != [y]:
        raise NotRecognized(f"{weight.name!r} does not go into aspect_probabilities alone")
    trials, chance = parameters(y)
    z, w, lapse, first, second = chance.owner.inputs
    op = weight.owner.op
    if z is not feature or w is not weight or op.kind != DIAGONAL or not op.positive:
        raise NotRecognized(
            f"{weight.name!r} are not positive weights of {feature.name!r}, one each"
        )
    if not isinstance(trials, Constant):
        raise NotRecognized(f"`n` of {y.name!r} is not constant")
    if any(depends_on([lapse, parameters(weight)[2]], rv) for rv in (feature, weight)):
        raise NotRecognized("the lapse or the scale of the weights depends on the aspects")
    if max(first.data.max(), second.data.max()) >= feature.owner.op.matrix[0]:
        raise NotRecognized(f"{y.name!r} has options that have no row of aspects")
    return Aspects(feature, weight, y, trials.data, first.data, second.data, lapse)
