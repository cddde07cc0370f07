"""Centrality of nodes: posterior means, intervals and ranks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.mixing import series_ess, series_rhat
from bayesstruct.graphs.nodes.measures import Measures, node_groups
from bayesstruct.graphs.nodes.weighted import DRAWS, WeightedGraphs, weighted_graphs
from bayesstruct.graphs.summaries import interval_probability

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["centrality", "centrality_draws"]


def centrality_draws(
    idata: "xr.DataTree | GraphPosterior",
    measures: str | Sequence[str] | None = None,
    *,
    communities: Any = None,
    draws: int | None = DRAWS,
    all_weights: bool = False,
    group: str = "posterior",
) -> "xr.Dataset":
    """Centrality of each node in each drawn graph.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model, undirected or directed.
    measures : str or sequence of str, optional
        As of :func:`bayesstruct.centrality`.
    communities : mapping of name to group, pandas.Series or Communities, optional
        Group of each node, for bridge measures.
    draws : int, default 1000
        Largest number of draws, evenly spaced over each chain; None for all.
    all_weights : bool
        Keep the weights of edges (arcs) that a draw does not have.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    xarray.Dataset
        A variable for each measure, over chain, draw and node. `attrs["notes"]` says what was computed.

    Raises
    ------
    TypeError, ValueError
        As :func:`bayesstruct.centrality`.

    Examples
    --------
    Is one node more central than another?

    >>> strength = centrality_draws(idata, "strength")["strength"]  # doctest: +SKIP
    >>> float((strength.sel(node="PKA") > strength.sel(node="PKC")).mean())  # doctest: +SKIP
    """
    import xarray as xr

    graphs = weighted_graphs(idata, draws=draws, all_weights=all_weights, group=group)
    found = Measures(graphs, node_groups(communities, graphs.posterior.variables))
    asked = (measures,) if isinstance(measures, str) else measures
    if asked is not None and not isinstance(asked, Sequence):
        raise TypeError(f"`measures` must be a name or a list of names, not {measures!r}")
    names = found.usual() if asked is None else tuple(dict.fromkeys(asked))
    if not names:
        raise ValueError(
            f"`measures` names none; there are {', '.join(map(repr, found.available))}"
        )
    values = {name: graphs.labelled(found.take(name), name) for name in names}
    return xr.Dataset(values, attrs={"notes": _notes(graphs, all_weights, names)})


def centrality(
    idata: "xr.DataTree | GraphPosterior",
    measures: str | Sequence[str] | None = None,
    *,
    communities: Any = None,
    ci_prob: float | None = None,
    draws: int | None = DRAWS,
    all_weights: bool = False,
    group: str = "posterior",
) -> "pd.DataFrame":
    r"""Say how central each node is in the graph, with intervals and ranks.

    Every measure is computed in each drawn graph, so that intervals and ranks express what is not known of edges and of
    weights. The weight of an edge that a draw does not have is zero in that draw.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model, undirected or directed.
    measures : str or sequence of str, optional
        Of an undirected graph

        "strength"
            Sum of the absolute weights of the edges of a node.
        "expected_influence"
            Sum of the weights with their signs [1]_.
        "expected_influence_two_step"
            The same plus the sum over neighbours of weight times expected influence of the neighbour [1]_.
        "betweenness"
            Share of the pairs of other nodes whose shortest path goes through the node; several equally short paths count
            in parts [2]_.
        "closeness"
            One over the mean distance to the nodes that can be reached, times their share of the other nodes; 0 without
            any [3]_.
        "degree"
            Number of edges.
        "bridge_strength", "bridge_expected_influence"
            Strength and expected influence of edges to nodes of other groups alone [4]_.

        In a directed graph there are "in_strength", "out_strength", "in_closeness", "out_closeness", "in_degree" and
        "out_degree" (arcs and paths that lead to the node, and that start there); influence is that of arcs that leave
        a node, paths follow the arcs, and bridge strength counts both directions.
        By default all but degrees and two steps; of graphs without weights all that there are.
    communities : mapping of name to group, pandas.Series or Communities, optional
        Group of each node, for bridge measures; a result of :func:`bayesstruct.communities` will do.
    ci_prob : float, optional
        Probability of highest-density intervals and of intervals of ranks, between 0 and 1;
        ``arviz.rcParams["stats.ci_prob"]`` by default.
    draws : int, default 1000
        Largest number of draws, evenly spaced over each chain; None for all.
    all_weights : bool
        Keep the weights of edges (arcs) that a draw does not have, as continuous priors give them small ones. Paths then
        go through all lines.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    pandas.DataFrame
        A row for each measure and node; of each measure the largest mean first. Columns

        measure, node
            Names.
        mean, hdi_low, hdi_high
            Posterior mean and highest-density interval.
        largest
            Probability that no other node has a larger value; nodes that are equal share it, so that a measure adds up to 1.
        rank, rank_low, rank_high
            Mean and equal-tailed interval of the rank, 1 for the largest value; equal values have the mean of their ranks.
        ess, r_hat
            Of the mean.

        `attrs` has ``ci_prob``, the number of ``draws`` and ``notes``.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of a graph model or has a graph for each of several groups (read one,
        :func:`bayesstruct.one_group`), if a measure is unknown, needs weights or needs `communities`, if
        `communities` do not fit the nodes, or an argument is out of range.

    See Also
    --------
    centrality_draws : the values in each draw.
    bayesstruct.plot_centrality : picture.
    degree_table : degrees and hubs.

    Notes
    -----
    Weights are partial correlations, log odds ratios or the other weights of the result (`weight`), of standardised columns where
    the model standardises them. The length of a line is :math:`1 / |w|`, and 1 where lines have no weights. Betweenness is
    that of networkx with ``normalized=True``, closeness its ``closeness_centrality`` (``wf_improved=True``); the betweenness of
    qgraph is the number of pairs, :math:`(p - 1)(p - 2) / 2` times this one. In a graph of several components,
    closeness compares nodes with the others of their component. Paths take some two milliseconds for a draw with 100 nodes, and more
    than a second with 1,000: ask for fewer `draws` there. An interval of betweenness may be [0, 0], and not hold its mean, where
    few draws have paths through the node.

    Betweenness and closeness of networks that are estimated from data vary more than strength does [5]_: look at
    their intervals.

    References
    ----------
    .. [1] Robinaugh, Millner and McNally (2016). Identifying highly influential nodes in the complicated grief network.
       Journal of Abnormal Psychology 125, 747-757.
    .. [2] Freeman (1977). A set of measures of centrality based on betweenness. Sociometry 40, 35-41.
    .. [3] Wasserman and Faust (1994). Social Network Analysis, 201.
    .. [4] Jones, Ma and McNally (2021). Bridge centrality: a network approach to understanding comorbidity. Multivariate
       Behavioral Research 56, 353-367.
    .. [5] Epskamp, Borsboom and Fried (2018). Estimating psychological networks and their accuracy. Behavior Research
       Methods 50, 195-212.

    Examples
    --------
    >>> table = centrality(idata, ["strength", "betweenness"])  # doctest: +SKIP
    >>> table.query("measure == 'strength' and largest > 0.05")  # doctest: +SKIP
    """
    import pandas as pd

    ci_prob = interval_probability(ci_prob)
    found = centrality_draws(
        idata, measures, communities=communities, draws=draws, all_weights=all_weights, group=group
    )
    parts = [_summarised(found[name], ci_prob) for name in found.data_vars]
    table = pd.concat(parts, ignore_index=True)
    used = found.sizes["chain"] * found.sizes["draw"]
    table.attrs = {"ci_prob": ci_prob, "draws": used, "notes": found.attrs["notes"]}
    return table


def _summarised(values: "xr.DataArray", ci_prob: float) -> "pd.DataFrame":
    """Table of one measure, the largest mean first."""
    import pandas as pd

    series = values.values
    flat = series.reshape(-1, series.shape[-1])
    columns = {"measure": values.name, "node": values["node"].values, "mean": flat.mean(axis=0)}
    columns |= interval_columns(flat, ci_prob) | _ranks(flat, ci_prob)
    columns |= {"ess": series_ess(series), "r_hat": series_rhat(series)}
    return pd.DataFrame(columns).sort_values("mean", ascending=False, kind="stable")


def interval_columns(flat: np.ndarray, ci_prob: float, prefix: str = "hdi_") -> dict:
    """Highest-density intervals of draws (n, p), as two columns."""
    import arviz as az

    flat = np.asarray(flat, float)
    low, high = flat.min(axis=0), flat.max(axis=0)
    moves = low < high
    if moves.any() and len(flat) > 1:
        interval = az.hdi(np.ascontiguousarray(flat[:, moves].T), prob=ci_prob)
        low[moves], high[moves] = interval[:, 0], interval[:, 1]
    return {f"{prefix}low": low, f"{prefix}high": high}


def _ranks(flat: np.ndarray, ci_prob: float) -> dict:
    """Probability of being the largest, and ranks from the largest value."""
    from scipy.stats import rankdata

    # Sums of the same weights in another order differ by rounding, and are equal
    values = np.round(flat, 12)
    top = values == values.max(axis=1, keepdims=True)
    ranks = rankdata(-values, axis=1)
    tail = (1 - ci_prob) / 2
    low, high = np.quantile(ranks, [tail, 1 - tail], axis=0, method="inverted_cdf")
    return {
        "largest": (top / top.sum(axis=1, keepdims=True)).mean(axis=0),
        "rank": ranks.mean(axis=0),
        "rank_low": low,
        "rank_high": high,
    }


def _notes(graphs: WeightedGraphs, all_weights: bool, names: Sequence[str]) -> list[str]:
    posterior = graphs.posterior
    line = posterior.line
    notes = graphs.note()
    if graphs.weights is None:
        notes.append(f"{line}s have no weights: the length of each is 1.")
    elif all_weights:
        notes.append(f"weights of {line}s that a draw does not have are kept.")
    else:
        notes.append(f"the weight of an {line} that a draw does not have is zero in that draw.")
    signed = any("influence" in name for name in names)
    if signed and graphs.weights is not None and "potential" in posterior.draws:
        notes.append(
            "an edge has several parameters, and its weight is their norm, without a sign: expected influence is strength."
        )
    return notes
