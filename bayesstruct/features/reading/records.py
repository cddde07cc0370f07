"""Constants that models of latent features record for their readers."""

from dataclasses import dataclass

import numpy as np

from bayesstruct.core.recorded import Recorded, constant

__all__ = ["LinkedPairs"]


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
