"""The directed acyclic graph of least expected structural Hamming distance."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.distances import joined_differently
from bayesstruct.graphs.mixing import series_ess
from bayesstruct.graphs.posteriors.reading import read_dags
from bayesstruct.graphs.sets.acyclic import best_acyclic

if TYPE_CHECKING:
    import networkx as nx
    import xarray as xr

    from bayesstruct.graphs.posteriors.arcs import DagPosterior
    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["consensus_graph"]

_CERTAIN = 1e-8  # difference up to which the bound is reached


def consensus_graph(
    idata: "xr.DataTree | GraphPosterior", *, group: str = "posterior"
) -> "nx.DiGraph":
    """Return the directed acyclic graph that is nearest to the drawn graphs on average.

    Of all directed acyclic graphs it has the least expected structural Hamming distance under the posterior: the
    expected number of pairs of columns that are joined in another way, in which a missing, an extra and a reversed
    arc count one each.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a model of directed acyclic graphs, such as :func:`bayesstruct.models.bayesian_network`.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    networkx.DiGraph
        On all columns. Arcs carry `probability` and `weight` as those of `median_graph`. ``graph.graph`` has

        expected_shd, mcse
            The expected distance, and its Monte Carlo standard error.
        least_shd
            No directed acyclic graph (with the required arcs) has a smaller expected distance.
        optimal
            Whether the bound is reached, so that the graph is certainly the best one. False only if the search in a
            component of more than 16 columns, whose probable arcs form many cycles, was ended after 20 seconds.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result with directed acyclic graphs.

    Notes
    -----
    A pair in state s (one of the two directions, or no arc) adds 1 - P(s) to the expected distance, so that an
    arc gains P(arc) - P(no arc), and the graph is the acyclic set of arcs of the greatest total gain.
    Unlike in `median_graph`, an arc with a probability below 1/2 is included where the edge is probable and its
    direction is not: leaving it out is wrong more often. Required arcs are always included. Arcs whose gains are equal,
    such as the two directions of one that the data do not direct, are chosen arbitrarily; `direction_table` shows
    them.

    The distance in its columns says how much of the posterior one graph can represent: `graph_weights` lists the others.

    Examples
    --------
    >>> consensus_graph(idata).graph["expected_shd"]  # doctest: +SKIP
    """
    posterior = read_dags(idata, group)
    probability = posterior.matrix(posterior.probability)
    absent = np.clip(1 - probability - probability.T, 0, 1)
    gain = probability - absent
    certain = posterior.matrix(posterior.fixed & (posterior.prior == 1))
    found = best_acyclic(np.where(certain, 1 + gain[gain > 0].sum(), gain))
    nothing = float(np.triu(1 - absent, 1).sum())  # expected distance of the graph without arcs
    expected = nothing - float(gain[found.arcs].sum())
    left = max(found.bound - found.gain, 0.0)
    graph = posterior.graph(found.arcs[posterior.source, posterior.target])
    graph.graph |= {
        "expected_shd": expected,
        "mcse": _error(posterior, found.arcs),
        "least_shd": max(expected - left, 0.0),
        "optimal": left <= _CERTAIN,
    }
    return graph


def _error(posterior: "DagPosterior", arcs: np.ndarray) -> float:
    """Monte Carlo standard error of the mean distance of the draws."""
    graphs, _ = posterior.dags
    distance = joined_differently(graphs, arcs).astype(float)[posterior.distinct.index]
    if distance.min() == distance.max():
        return 0.0
    [ess] = series_ess(distance.reshape(posterior.n_chains, -1)[..., None])
    return float(distance.std() / np.sqrt(posterior.n_draws if np.isnan(ess) else max(ess, 1.0)))
