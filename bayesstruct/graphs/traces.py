"""One number for each sampled graph, so that a chain of graphs can be looked at as any chain."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.arcs import (
    ArcPosterior,
    DagPosterior,
    has_arcs,
    has_dags,
    read_arcs,
    read_dags,
)
from bayesstruct.graphs.comparison import edges_of
from bayesstruct.graphs.dag_graphs import median_matrix
from bayesstruct.graphs.distances import joined_differently
from bayesstruct.graphs.edges import SAMPLE_DIMS, EdgePosterior, read_posterior
from bayesstruct.graphs.truth import arc_matrix

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["graph_distance", "n_edges"]


def n_edges(idata, *, group: str = "posterior") -> "xr.DataArray":
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
    if has_arcs(idata):
        posterior = read_arcs(idata, group)
        return _over_draws(posterior, posterior.arcs.sum(axis=-1, dtype=int), "n_edges")
    posterior = read_posterior(idata, group)
    return _over_draws(posterior, posterior.indicators.sum(axis=-1), "n_edges")


def graph_distance(idata, reference=None) -> "xr.DataArray":
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
    if has_dags(idata):
        return _dag_distance(read_dags(idata), reference)
    if has_arcs(idata):
        return _arc_distance(read_arcs(idata), reference)
    posterior = read_posterior(idata)
    drawn = posterior.indicators
    if reference is None:
        present = drawn.mean(axis=(0, 1)) >= 0.5
    else:
        present = edges_of(reference, posterior)
    return _over_draws(posterior, (drawn != present).sum(axis=-1), "graph_distance")


def _arc_distance(posterior: ArcPosterior, reference) -> "xr.DataArray":
    if reference is None:
        known = posterior.frequency >= 0.5
    else:
        known = arc_matrix(reference, posterior.variables)[posterior.source, posterior.target]
    # Chain by chain: comparisons of all draws would take as much memory again.
    distance = [(draws != known).sum(axis=-1) for draws in posterior.arcs]
    return _over_draws(posterior, np.array(distance), "graph_distance")


def _dag_distance(posterior: DagPosterior, reference) -> "xr.DataArray":
    if reference is None:
        known = median_matrix(posterior)
    else:
        known = arc_matrix(reference, posterior.variables)
    distance = [  # chain by chain: adjacencies of all would take p / (p - 1) times the arcs again
        joined_differently(posterior.matrices(draws.astype(bool)), known)
        for draws in posterior.arcs
    ]
    return _over_draws(posterior, np.array(distance), "graph_distance")


def _over_draws(
    posterior: EdgePosterior | ArcPosterior, values: np.ndarray, name: str
) -> "xr.DataArray":
    import xarray as xr

    coords = {d: posterior.draws[d] for d in SAMPLE_DIMS if d in posterior.draws.coords}
    return xr.DataArray(values, dims=SAMPLE_DIMS, coords=coords, name=name)
