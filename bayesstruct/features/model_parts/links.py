"""Coordinates and recorded constants of models of pairs of objects."""

import numpy as np

from bayesstruct.features.data.links import LinkTable
from bayesstruct.features.kernels.link_codes import LIKELIHOODS
from bayesstruct.features.reading.records import LinkedPairs

__all__ = ["pair_coords", "record_pairs"]


def pair_coords(table: LinkTable, max_features: int, other: int | None = None) -> dict:
    """Coordinates of the objects, their features and the observed pairs.

    Parameters
    ----------
    table : LinkTable
    max_features : int
        Maximum number of features of the objects.
    other : int, optional
        That of the objects of the second set; by default there is one set.
    """
    coords = {
        "observation": list(table.names),
        "latent": np.arange(max_features),
        "pair": table.labels,
        "latent_": np.arange(max_features if other is None else other),
    }
    if table.other is not None:
        coords["node"] = list(table.other)
    return coords


def record_pairs(table: LinkTable, likelihood: str) -> None:
    """Record the observed pairs, and the likelihood with which others are predicted."""
    code = LIKELIHOODS.index(likelihood)
    LinkedPairs(table.source, table.target, int(table.directed), code).record()
