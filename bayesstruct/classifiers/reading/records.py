"""Constants that models of classifiers record for their readers."""

from dataclasses import dataclass

from bayesstruct.core.recorded import Recorded, constant

__all__ = ["ClassifierTarget"]


@dataclass(frozen=True)
class ClassifierTarget(Recorded):
    """Which column is the class.

    Attributes
    ----------
    position : int
        Among the columns.
    """

    position: int = constant("classifier_target")
