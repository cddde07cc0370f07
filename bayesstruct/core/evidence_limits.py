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

__all__ = ["Limits", "bayes_factor_of", "least_strength", "limits_of", "register_limits"]


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
    raise ValueError(
        f"the Bayes factors that a table can reach are known for {', '.join(_KNOWN)}, as far as the result records its prior: "
        "results of versions before 0.1 may not"
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
