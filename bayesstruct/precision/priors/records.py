"""Constants that Gaussian graphical models record for their readers."""

from dataclasses import dataclass

from bayesstruct.core.recorded import Recorded, constant

__all__ = ["WishartPrior"]


@dataclass(frozen=True)
class WishartPrior(Recorded):
    """G-Wishart prior of a precision matrix given its graph, with the identity as its scale matrix.

    Attributes
    ----------
    degrees_of_freedom : float
    """

    degrees_of_freedom: float = constant("wishart_degrees")
