"""One number for each sampled graph, so that chains of graphs can be diagnosed as any chain."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.graphs.posteriors.base import GraphPosterior
from bayesstruct.graphs.posteriors.reading import read

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["graph_distance", "n_edges"]


def n_edges(idata: "xr.DataTree | GraphPosterior", *, group: str = "posterior") -> "xr.DataArray":
    """Count the edges (arcs) of each sampled graph.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    xarray.DataArray, dims (chain, draw)

    Examples
    --------
    >>> az.plot_rank(n_edges(idata))  # doctest: +SKIP
    """
    posterior = read(idata, group)
    return _over_draws(posterior, posterior.indicators.sum(axis=-1, dtype=int), "n_edges")


def graph_distance(idata: "xr.DataTree | GraphPosterior", reference: Any = None) -> "xr.DataArray":
    """Distance of each sampled graph to a reference graph.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    reference : known graph, optional
        In any form that `structure.compare` takes; by default the graph of the edges that were in
        at least half of the draws (of a Bayesian network: `median_graph`).

    Returns
    -------
    xarray.DataArray, dims (chain, draw)
        Number of edges (arcs of a neighbourhood model) in which the two differ (Hamming distance);
        for Bayesian networks the structural Hamming distance, one for a missing, extra or reversed
        arc.

    Raises
    ------
    ValueError
        For a reference with unknown names.
    """
    posterior = read(idata)
    if reference is None:
        known = posterior.typical_lines()
    else:
        known = posterior.known_lines(reference)
    # Chain by chain: comparisons of all draws would take as much memory again.
    distance = [posterior.distance(draws.astype(bool), known) for draws in posterior.indicators]
    return _over_draws(posterior, np.array(distance), "graph_distance")


def _over_draws(posterior: GraphPosterior, values: np.ndarray, name: str) -> "xr.DataArray":
    import xarray as xr

    coords = {d: posterior.draws[d] for d in SAMPLE_DIMS if d in posterior.draws.coords}
    return xr.DataArray(values, dims=SAMPLE_DIMS, coords=coords, name=name)
