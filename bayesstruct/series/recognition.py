"""Recognise series that switch among shared behaviours: behaviours, their parameters, and the rows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.recognition import NotRecognized, children_of, depends_on, parameters
from bayesstruct.features.priors.indian_buffet import FeatureLoadingsRV
from bayesstruct.features.recognition.children import children_of_kinds
from bayesstruct.series.priors import BehaviourScalesRV, BehaviourTransitionsRV, SwitchingSeriesRV

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor import TensorVariable

__all__ = ["SwitchingPart", "switching_series_of"]

_KINDS = (BehaviourTransitionsRV, FeatureLoadingsRV, BehaviourScalesRV, SwitchingSeriesRV)


@dataclass(frozen=True, eq=False)
class SwitchingPart:
    """The part of a model that describes series which switch among behaviours.

    Attributes
    ----------
    feature : TensorVariable
        Which behaviours each series has.
    transition : TensorVariable
        Transition probabilities of each series.
    mean, scale : TensorVariable
        Parameters of the behaviours.
    rows : TensorVariable
        The rows of all series.
    seen : ndarray
        1 where a value was observed; broadcasts with the rows.
    """

    feature: "TensorVariable"
    transition: "TensorVariable"
    mean: "TensorVariable"
    scale: "TensorVariable"
    rows: "TensorVariable"
    seen: np.ndarray

    @property
    def variables(self) -> list:
        """Random variables that are drawn together."""
        return [self.feature, self.transition, self.mean, self.scale]


def switching_series_of(model: "pm.Model", feature: "TensorVariable") -> SwitchingPart:
    """Collect transitions, means, deviations and rows around the behaviours of series.

    Raises
    ------
    NotRecognized
        Says what keeps the behaviours from being drawn exactly.
    """
    transition, mean, scale, table = children_of_kinds(model, feature, _KINDS)
    parts = transition, mean, scale
    *made_of, seen = parameters(table)
    if any(a is not b for a, b in zip(made_of, (feature, *parts), strict=True)):
        raise NotRecognized(
            f"{table.name!r} is not made of {feature.name!r} and what belongs to it"
        )
    for rv in parts:
        if parameters(rv)[0] is not feature:
            raise NotRecognized(f"{rv.name!r} does not belong to {feature.name!r}")
        if children_of(model, rv) != [table]:
            raise NotRecognized(f"{table.name!r} is not all that depends on {rv.name!r}")
    if depends_on([seen], feature):
        raise NotRecognized(
            f"which values of {table.name!r} are missing depends on {feature.name!r}"
        )
    [seen] = Expressions(model, [seen])(model.initial_point())
    return SwitchingPart(feature, transition, mean, scale, table, seen)
