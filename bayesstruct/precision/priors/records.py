"""Constants that Gaussian graphical models record for their readers."""

from dataclasses import dataclass

from bayesstruct.core.recorded import Recorded, constant

__all__ = ["LaplaceRates", "WishartPrior"]


@dataclass(frozen=True)
class WishartPrior(Recorded):
    """G-Wishart prior of a precision matrix given its graph, with the identity as its scale matrix.

    Attributes
    ----------
    degrees_of_freedom : float
    """

    degrees_of_freedom: float = constant("wishart_degrees")


@dataclass(frozen=True)
class LaplaceRates(Recorded):
    """Laplace prior of the elements of a precision matrix.

    Attributes
    ----------
    rate, diagonal_rate : float
        Rates of the elements beside the diagonal and on it.
    negligible : float
        Absolute partial correlation up to which there is no edge.
    """

    rate: float = constant("laplace_rate")
    diagonal_rate: float = constant("laplace_diagonal_rate")
    negligible: float = constant("laplace_negligible")
