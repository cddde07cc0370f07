"""Constants that models of latent features record for their readers."""

from dataclasses import dataclass

import numpy as np

from bayesstruct.core.recorded import Recorded, constant

__all__ = ["CauseNumbers", "FeatureNumbers", "LinkedPairs"]


@dataclass(frozen=True)
class LinkedPairs(Recorded):
    """Observed pairs of objects.

    Attributes
    ----------
    source, target : (d,) ndarray of int
        Positions of the two objects of each pair.
    directed : int
        1 if (i, j) and (j, i) are two pairs.
    likelihood : int
        Position in :data:`bayesstruct.features.kernels.link_codes.LIKELIHOODS`.
    """

    source: np.ndarray = constant("pair_source", "pair")
    target: np.ndarray = constant("pair_target", "pair")
    directed: int = constant("pair_directed")
    likelihood: int = constant("link_likelihood")


@dataclass(frozen=True)
class FeatureNumbers(Recorded):
    """Parameters of a linear Gaussian model of features that are numbers, and no variables.

    Attributes
    ----------
    baseline : (d,) ndarray of float
        Values of a row without any feature.
    concentration, discount : float
        Of the Indian buffet process.
    alpha, noise, loading_scale : float, optional
        Absent where they are variables of the model.
    """

    baseline: np.ndarray = constant("feature_baseline", "node")
    concentration: float = constant("feature_concentration")
    discount: float = constant("feature_discount")
    alpha: float | None = constant("feature_alpha", optional=True)
    noise: float | None = constant("feature_noise", optional=True)
    loading_scale: float | None = constant("feature_loading_scale", optional=True)


@dataclass(frozen=True)
class CauseNumbers(Recorded):
    """Parameters of hidden causes that are numbers, and no variables.

    Attributes
    ----------
    strength, leak, base_rate : float, optional
        Absent where they are variables of the model.
    """

    strength: float | None = constant("cause_strength", optional=True)
    leak: float | None = constant("cause_leak", optional=True)
    base_rate: float | None = constant("cause_base_rate", optional=True)
