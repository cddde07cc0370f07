"""What a table of this size can say about single pairs of columns, from any result.

A family registers how its results become `Limits`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.families import import_chapters

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "Limits",
    "bayes_factor_of",
    "least_strength",
    "limits_of",
    "log_wishart_factor",
    "refuse_limits",
    "register_limits",
]


@dataclass(frozen=True, eq=False)
class Limits:
    """Bayes factors that a table can reach.

    Attributes
    ----------
    source, target : (pairs,) ndarray of int
        Positions of the columns.
    smallest : (pairs,) ndarray of float
        Bayes factor of a pair that is exactly independent in the table, given all other columns; NaN if nothing is tested.
    strength : callable
        Of a Bayes factor above 1: least absolute dependence in the table that has it, (pairs,); NaN if there is none.
    measure : str
        Of the dependence.
    rows : int
        Of the table.
    """

    source: np.ndarray
    target: np.ndarray
    smallest: np.ndarray
    strength: Callable[[float], np.ndarray]
    measure: str
    rows: int


_KNOWN: dict[str, tuple[Callable, Callable]] = {}
_UNKNOWN: dict[str, tuple[Callable, str]] = {}


def register_limits(
    kind: str,
    recognise: Callable[["xr.DataTree"], bool],
    read: Callable[["xr.DataTree"], Limits],
) -> None:
    """Let ``bayesstruct.evidence_limits`` read results of a kind.

    Parameters
    ----------
    kind : str
        What the results are of, in the plural; a kind that is registered already is replaced.
    recognise : callable
        Of a result: whether it is of this kind, and records what is needed.
    read : callable
        Of a result.
    """
    _KNOWN[kind] = recognise, read


def refuse_limits(kind: str, recognise: Callable[["xr.DataTree"], bool], reason: str) -> None:
    """Let ``bayesstruct.evidence_limits`` say why nothing is known for results of a kind.

    Parameters
    ----------
    kind : str
        What the results are of, in the plural.
    recognise : callable
        Of a result: whether it is of this kind.
    reason : str
        Reason, and what serves instead.
    """
    _UNKNOWN[kind] = recognise, reason


def limits_of(idata: "xr.DataTree") -> Limits:
    """Bayes factors that the table of a result can reach.

    Raises
    ------
    ValueError
        If they are not known for results of this kind.
    """
    import_chapters("reading")
    for recognise, read in _KNOWN.values():
        if recognise(idata):
            return read(idata)
    for kind, (recognise, reason) in _UNKNOWN.items():
        if recognise(idata):
            raise ValueError(
                f"the Bayes factors that a table can reach are not known for {kind}: {reason}"
            )
    raise ValueError(
        f"the Bayes factors that a table can reach are known for {', '.join(_KNOWN)}, as far as the result records its prior: "
        "a result that was sampled earlier may not, nor one of a part of a model"
    )


def bayes_factor_of(log_ratio: np.ndarray, nominal: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Bayes factors of pairs from logarithms of ratios of marginal likelihoods; NaN where nothing is tested.

    Parameters
    ----------
    log_ratio : (pairs,) ndarray of float
    nominal : (draws, pairs) ndarray of float
        Probability of each edge in draws of the posterior; one draw if they are known.
    prior : (pairs,) ndarray of float
        Prior probability that the model implies.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = nominal / (1.0 - nominal) * np.exp(log_ratio)
        absent = (1.0 / (1.0 + odds)).mean(axis=0)
        present = (1.0 / (1.0 + 1.0 / odds)).mean(axis=0)
        factor = present / absent * (1.0 - prior) / prior
    return np.where(np.isin(prior, (0, 1)) | np.isnan(prior), np.nan, factor)


def least_strength(
    log_factor: Callable[[np.ndarray], np.ndarray], threshold: float, most: float, size: int
) -> np.ndarray:
    """Least strength at which an increasing Bayes factor reaches a threshold; NaN where it is beyond `most`.

    Parameters
    ----------
    log_factor : callable
        Of strengths (size,): logarithms of Bayes factors.
    threshold : float
    most : float
        Largest strength.
    size : int
    """
    low, high = np.zeros(size), np.full(size, most)
    beyond = ~(log_factor(high) >= np.log(threshold))
    for _ in range(30):
        middle = 0.5 * (low + high)
        reached = log_factor(middle) >= np.log(threshold)
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.where(beyond, np.nan, high)


def log_wishart_factor(
    r: "np.ndarray | float", rows: float, first: np.ndarray, other: np.ndarray, shape: np.ndarray
) -> np.ndarray:
    r"""Logarithm of the Bayes factor of an edge under a G-Wishart(shape, I) distribution.

    Parameters
    ----------
    r : float or ndarray
        Sample correlation of the two columns.
    rows : float
        Degrees of freedom of their scatter matrix.
    first, other : ndarray of float
        Diagonal elements of that matrix, plus 1.
    shape : ndarray of float
        Degrees of freedom of the prior; of a pair inside of a larger graph, plus the number of common neighbours.

    Returns
    -------
    ndarray

    Notes
    -----
    With b degrees of freedom and scale matrix D the normalising constant of a full 2 x 2 matrix over that of a diagonal one is
    :math:`\sqrt\pi \, \Gamma(\tfrac{b + 1}{2}) / \Gamma(\tfrac b2) \; (D_{11} D_{22} / 4)^{-1/2} (1 - \rho^2)^{-(b + 1) / 2}`,
    :math:`\rho` the correlation of D. The Bayes factor is this ratio with the posterior's b and D over that with the prior's.
    """
    r = np.asarray(r, float) * np.sqrt((1.0 - 1.0 / first) * (1.0 - 1.0 / other))
    ratio = _log_gamma_step(shape + rows) - _log_gamma_step(shape)
    return ratio - 0.5 * np.log(first * other) - 0.5 * (shape + rows + 1.0) * np.log1p(-(r**2))


def _log_gamma_step(b):
    from scipy.special import gammaln

    return gammaln(0.5 * (b + 1.0)) - gammaln(0.5 * b)
