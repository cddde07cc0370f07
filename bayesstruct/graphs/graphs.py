"""Posteriors as networkx graphs: the median graph, the most visited one, all edges."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.posteriors.reading import read_graphs
from bayesstruct.graphs.summaries import bayes_factor_text

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["graph_from_key", "graph_probabilities", "map_graph", "median_graph", "to_networkx"]


def median_graph(idata: "xr.DataTree | GraphPosterior", threshold: float = 0.5) -> "nx.Graph":
    """Return the graph of all edges (arcs) that are at least as probable as `threshold`.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    threshold : float, between 0 and 1
        Smallest probability of an edge that is kept; 0.5 gives the median probability model.

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        On all variables, those without an edge included. Edges carry `probability` and `weight`
        (posterior mean; discrete Bayesian networks have none). Of a Bayesian network a
        directed acyclic graph.

    Raises
    ------
    ValueError
        When `threshold` is not strictly between 0 and 1.

    Notes
    -----
    The median probability model minimises the expected number of wrong edges; in the normal linear
    model it is often the best single model for prediction [1]_.

    The probable arcs of a Bayesian network can form a directed cycle, though they rarely do. They
    are therefore taken from the most to the least probable (ties: in the order of the result),
    and an arc is left out when the arcs taken before have a path from its child to its parent:
    each arc left out is the least probable one of the cycle that it would close.
    ``graph.graph["left_out"]`` is their number.

    References
    ----------
    .. [1] Barbieri and Berger (2004). Optimal predictive model selection. Annals of Statistics 32,
       870-897.

    Examples
    --------
    >>> sorted(median_graph(idata).edges)  # doctest: +SKIP
    """
    check_fraction("threshold", threshold)
    posterior = read_graphs(idata)
    chosen = posterior.median_lines(threshold)
    graph = posterior.graph(chosen)
    graph.graph["threshold"] = threshold
    if posterior.directed:
        probable = posterior.probability >= threshold
        graph.graph["left_out"] = int(probable.sum() - chosen.sum())
    return graph


def map_graph(idata: "xr.DataTree | GraphPosterior") -> "nx.Graph":
    """Return the graph that was visited most often.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        As `median_graph`; `graph.graph["probability"]` is the share of the draws that are this
        graph, `graph.graph["visits"]` their number.

    Notes
    -----
    With more than some fifteen variables hardly any graph is visited twice; a most visited graph
    with few visits is accidental, and `median_graph` the better summary; `find_MAP` of a Markov random
    field or a Bayesian network searches for the most probable graph. Ties go to the graph that was visited first. Of a Bayesian network see also `essential_graph_probabilities`, which adds
    up the graphs that data without interventions cannot tell apart.
    """
    posterior = read_graphs(idata)
    graph = posterior.graph(posterior.distinct.rows[0])
    visits = posterior.distinct.count[0]
    graph.graph |= {"probability": float(visits / posterior.n_draws), "visits": int(visits)}
    return graph


def graph_probabilities(
    idata: "xr.DataTree | GraphPosterior", top: int | None = None
) -> "pd.DataFrame":
    """List the distinct graphs that were visited and how often.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    top : int, optional
        Number of rows to return; all by default.

    Returns
    -------
    pandas.DataFrame
        Most visited first: `edges` (number of edges; `arcs` for a Bayesian network),
        `probability` (share of the draws) and `key` (the graph itself as a hexadecimal string,
        equal for equal graphs over the same variables; `graph_from_key` turns it back into a
        graph). `attrs["n_graphs"]` is the number of distinct graphs in the draws.

    Raises
    ------
    ValueError
        When `top` is not positive.

    Examples
    --------
    >>> graph_probabilities(idata, top=5)  # doctest: +SKIP
    """
    import pandas as pd

    if top is not None and top < 1:
        raise ValueError(f"`top` must be at least 1, got {top}.")
    posterior = read_graphs(idata)
    graphs, visits = posterior.distinct.rows[:top], posterior.distinct.count
    table = pd.DataFrame(
        {
            f"{posterior.line}s": graphs.sum(axis=1),
            "probability": visits[:top] / posterior.n_draws,
            "key": posterior.keys(graphs),
        }
    )
    table.attrs["n_graphs"] = len(visits)
    return table


def graph_from_key(idata: "xr.DataTree | GraphPosterior", key: str) -> "nx.Graph":
    """Build the graph that a key of `graph_probabilities` stands for.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model over the same variables.
    key : str
        From the column `key`, also of `essential_graph_probabilities`: then an edge without a fixed
        direction is there in both.

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        As `median_graph`: edges carry their own probability and weight.

    Raises
    ------
    ValueError
        When the key does not fit the number of edges.
    """
    posterior = read_graphs(idata)
    return posterior.graph(posterior.lines_of_key(key))


def to_networkx(idata: "xr.DataTree | GraphPosterior") -> "nx.Graph":
    """Return all possible edges (arcs) as one weighted graph.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        Every pair of variables the model considers, with `probability`, `weight` (posterior mean;
        discrete Bayesian networks have none), `bayes_factor`, and `bayes_factor_shown`, a text that
        marks bounds, on each. For a graph to look at,
        take `median_graph`.
    """
    posterior = read_graphs(idata)
    graph = posterior.graph(np.ones(posterior.n_lines, dtype=bool))
    for source, target, *value in zip(*posterior.ends(), *posterior.bayes_factors(), strict=True):
        about = graph.edges[source, target]
        about["bayes_factor"], about["bayes_factor_shown"] = (
            value[0].item(),
            bayes_factor_text(*value),
        )
    return graph


def check_fraction(name: str, value: float) -> None:
    """Raise for a number that is not strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"`{name}` must be strictly between 0 and 1, got {value}.")
