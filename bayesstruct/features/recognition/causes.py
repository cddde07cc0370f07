"""Recognise hidden causes: which causes variables have, where they are active, and the table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bayesstruct.core.recognition import NotRecognized, children_of, depends_on, parameters
from bayesstruct.features.priors.hidden_causes import CauseActivationsRV, NoisyOrRV
from bayesstruct.features.recognition.children import children_of_kinds

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor import TensorVariable

__all__ = ["HiddenCauses", "hidden_causes_of"]


@dataclass(frozen=True, eq=False)
class HiddenCauses:
    """Causes of binary variables.

    Attributes
    ----------
    feature : TensorVariable
        Which causes each variable has.
    cause : TensorVariable
        In which rows they are active.
    rows : TensorVariable
        The table.
    """

    feature: "TensorVariable"
    cause: "TensorVariable"
    rows: "TensorVariable"

    @property
    def variables(self) -> list:
        """Random variables that are drawn together."""
        return [self.feature, self.cause]


def hidden_causes_of(model: "pm.Model", feature: "TensorVariable") -> HiddenCauses:
    """Collect activities and table around the causes that variables have.

    Raises
    ------
    NotRecognized
        Says what keeps them from being drawn exactly.
    """
    cause, table = children_of_kinds(model, feature, (CauseActivationsRV, NoisyOrRV))
    if children_of(model, cause) != [table]:
        raise NotRecognized(f"{table.name!r} is not all that depends on {cause.name!r}")
    first, second, *chances = parameters(table)
    if first is not cause or second is not feature or parameters(cause)[0] is not feature:
        raise NotRecognized(
            f"{table.name!r} is not a NoisyOr of {cause.name!r} and {feature.name!r}"
        )
    if any(depends_on([chance], rv) for chance in chances for rv in (feature, cause)):
        raise NotRecognized(f"the probabilities of {table.name!r} depend on its causes")
    for rv, numbers in ((table, chances), (cause, parameters(cause)[1:])):
        if any(length != 1 for number in numbers for length in number.type.shape):
            raise NotRecognized(f"the probabilities of {rv.name!r} are not one number each")
    return HiddenCauses(feature, cause, table)
