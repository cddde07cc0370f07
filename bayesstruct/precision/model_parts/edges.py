"""Edges that models record for readers, and their prior probabilities."""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.recognition import parameters
from bayesstruct.data.errors import column_list, warn
from bayesstruct.data.table import Table
from bayesstruct.graphs.own_models import prior_mean
from bayesstruct.graphs.records import (
    EdgeEnds,
    EdgePrior,
    EdgeScales,
)
from bayesstruct.precision.model_parts.units import too_strong_for_slab
from bayesstruct.precision.priors.edges import partial_correlations, upper
from bayesstruct.precision.priors.g_wishart import beta_share

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = [
    "check_negligible",
    "exceeding",
    "independent_edge_prior",
    "negligible_edges",
    "record_edges",
    "warn_of_narrow_slab",
]


def record_edges(table: "Table", implied, nominal=None, scales: dict | None = None) -> None:
    """Record the ends of the edges and their prior.

    Parameters
    ----------
    table : Table
    implied : (pairs,) array_like
        Prior probability of each edge that the model implies.
    nominal : (p, p) array_like, optional
        Probability of each edge before the matrix is restricted to be positive definite.
    scales : dict, optional
        ``spike_scale``, ``slab_scale`` and ``diagonal_rate``.
    """
    source, target = table.edge_index
    EdgeEnds.in_model(source, target).record()
    EdgePrior(np.asarray(implied)).record()
    if scales is not None:
        scales = {name: float(value) for name, value in scales.items()}
        EdgeScales(**scales, nominal=nominal[source, target]).record()


def negligible_edges(table: "Table", precision, negligible: float, implied) -> None:
    """Add weights, and edges where they are beyond ``negligible``; record their prior probabilities."""
    weight = pm.Deterministic("weight", partial_correlations(precision), dims="pair")
    pm.Deterministic("edge", exceeding(weight, negligible), dims="pair")
    record_edges(table, implied)


def check_negligible(negligible: float) -> None:
    """Raise unless a bound of partial correlations is between 0 and 1."""
    if not 0 < negligible < 1:
        raise ValueError(f"`negligible` must be between 0 and 1, it is {negligible}")


def exceeding(weight, negligible) -> "TensorVariable":
    """Return indicators of the partial correlations that are not negligible."""
    return pt.gt(pt.abs(weight), negligible).astype("int64")


def independent_edge_prior(edge) -> np.ndarray:
    """Prior probability of each edge of a random graph with independent edges, (pairs,)."""
    size = parameters(edge)[0].type.shape[-1]
    found = beta_share(edge)
    if found is None:
        prior = prior_mean(upper(parameters(edge)[0]))
    else:
        share, pattern = found[0], found[1][np.triu_indices(size, 1)]
        prior = np.where((pattern > 0) & (pattern < 1), prior_mean(share), pattern)
    return np.array(np.broadcast_to(prior, size * (size - 1) // 2), float)


def warn_of_narrow_slab(
    rows, names, slab_scale: float, *, n: int | None = None, where: str = "", others: str = ""
) -> None:
    """Warn if columns depend on each other so strongly that the slab is too narrow for their elements.

    Elements of the precision matrix far beyond the slab are shrunk, and pairs around them make up for it: pairs without an edge then
    get one. A table with fewer rows than twice its columns says too little about that, and so does one whose means depend on covariates.

    Parameters
    ----------
    rows : (n, p) ndarray
        Rows less their means; NaN where missing. Or, with `n`, their (p, p) scatter matrix.
    names : sequence of str
    slab_scale : float
    n : int, optional
        Number of rows of a scatter matrix.
    where : str
        Which rows these are, for the message.
    others : str
        Remedies beside a wider slab.
    """
    found = too_strong_for_slab(rows, n, slab_scale)
    if found is None or "covariate" in pm.modelcontext(None).coords:
        return
    pair, largest = found
    warn(
        f"{column_list([names[j] for j in pair])}{where} depend on each other so strongly that their element of the precision matrix is "
        f"near {largest:.2g}, far beyond slab_scale={slab_scale:g}: pairs without an edge can get one with certainty. Take "
        f"slab_scale={largest / 2:.2g}{others}"
    )
