"""Degrees of nodes, hubs, and the density of the graph."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import is_number, number, whole_number
from bayesstruct.graphs.mixing import series_ess, series_rhat
from bayesstruct.graphs.nodes.centrality import interval_columns
from bayesstruct.graphs.nodes.weighted import refuse_groups
from bayesstruct.graphs.posteriors.reading import read
from bayesstruct.graphs.summaries import interval_probability

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["degree_distribution", "degree_table"]


def degree_table(
    idata: "xr.DataTree | GraphPosterior",
    *,
    hub: float = 0.1,
    ci_prob: float | None = None,
    group: str = "posterior",
) -> "pd.DataFrame":
    """Count the edges (arcs) of each node, and say how probably it is a hub.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model, undirected or directed.
    hub : float or int, default 0.1
        What a hub is. Below 1 a share of the nodes: in each drawn graph hubs are the nodes whose degree is that of the
        node at the end of this share or more, the nodes sorted by degree, and at least one edge; with the default the
        top tenth. A whole number from 1 up is the degree that makes a hub.
    ci_prob : float, optional
        Probability of highest-density intervals, between 0 and 1; ``arviz.rcParams["stats.ci_prob"]`` by default.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    pandas.DataFrame
        One row for each node, the largest mean degree first, with columns

        node
            Name of the column.
        degree, hdi_low, hdi_high
            Posterior mean and highest-density interval of the number of edges; in a directed graph of all arcs that enter
            or leave.
        in_degree, in_low, in_high, out_degree, out_low, out_high
            Likewise of the arcs that enter (parents), and that leave (children); of directed graphs alone.
        connected
            Probability that the node has an edge.
        hub
            Probability that it is a hub.
        ess, r_hat
            Of the degree.

        `attrs` has ``density``, the share of the pairs of nodes that are joined (of directed graphs with cycles: of the
        ordered pairs), with ``mean``, ``hdi_low`` and ``hdi_high``; ``hub``, the definition in words; and ``ci_prob``.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of a graph model, or has a graph for each of several groups, or an argument is out
        of range.

    See Also
    --------
    degree_distribution : how many nodes have each degree.
    centrality : measures that weigh edges.

    Examples
    --------
    >>> degree_table(idata, hub=4).query("hub > 0.5")  # doctest: +SKIP
    """
    import pandas as pd

    ci_prob = interval_probability(ci_prob)
    posterior = read(idata, group)
    refuse_groups(posterior)
    entering, leaving = _degrees(posterior)
    degree = entering + leaving
    flat = degree.reshape(-1, degree.shape[-1])
    hubs, definition = _hubs(flat, hub)
    columns = {"node": posterior.variables, "degree": flat.mean(axis=0)}
    columns |= interval_columns(flat, ci_prob)
    if posterior.directed:
        for side, counts in (("in", entering), ("out", leaving)):
            own = counts.reshape(flat.shape)
            columns |= {f"{side}_degree": own.mean(axis=0)}
            columns |= interval_columns(own, ci_prob, f"{side}_")
    columns |= {"connected": (flat > 0).mean(axis=0), "hub": hubs.mean(axis=0)}
    columns |= {"ess": series_ess(degree), "r_hat": series_rhat(degree)}
    table = pd.DataFrame(columns).sort_values("degree", ascending=False, kind="stable")
    table = table.reset_index(drop=True)
    table.attrs = {"ci_prob": ci_prob, "hub": definition, "density": _density(posterior, ci_prob)}
    return table


def degree_distribution(
    idata: "xr.DataTree | GraphPosterior",
    *,
    ci_prob: float | None = None,
    group: str = "posterior",
) -> "pd.DataFrame":
    """Share of the nodes that have each number of edges (arcs).

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model, undirected or directed.
    ci_prob : float, optional
        Probability of highest-density intervals, between 0 and 1; ``arviz.rcParams["stats.ci_prob"]`` by default.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    pandas.DataFrame
        A row for each degree from 0 to the largest that was drawn. Columns ``degree``, ``share`` (posterior mean of the
        share of the nodes), ``hdi_low`` and ``hdi_high``. Of a directed graph the column ``direction`` says whether arcs that enter a
        node ("in") or leave it ("out") are counted.

    Raises
    ------
    TypeError, ValueError
        As :func:`degree_table`.

    Examples
    --------
    >>> degree_distribution(idata).set_index("degree")["share"].plot.bar()  # doctest: +SKIP
    """
    import pandas as pd

    ci_prob = interval_probability(ci_prob)
    posterior = read(idata, group)
    refuse_groups(posterior)
    entering, leaving = _degrees(posterior)
    if not posterior.directed:
        return pd.DataFrame(_shares(entering + leaving, ci_prob))
    parts = {"in": entering, "out": leaving}
    tables = [
        pd.DataFrame({"direction": side} | _shares(counts, ci_prob))
        for side, counts in parts.items()
    ]
    return pd.concat(tables, ignore_index=True)


def _degrees(posterior: "GraphPosterior") -> tuple[np.ndarray, np.ndarray]:
    """Count the lines of which a node is the target, and the source; two arrays (chain, draw, p)."""
    from scipy.sparse import csr_array

    lines, p, present = posterior.n_lines, len(posterior.variables), posterior.indicators
    counts = []
    for ends in (posterior.target, posterior.source):
        at = csr_array((np.ones(lines), (ends, np.arange(lines))), shape=(p, lines))
        # Chain by chain: sparse products turn indicators into floats
        counts.append(np.array([(at @ chain.T).T for chain in present]))
    return counts[0].astype(int), counts[1].astype(int)


def _hubs(degree: np.ndarray, hub: float) -> tuple[np.ndarray, str]:
    """Which nodes are hubs in each draw, (n, p), and the definition in words."""
    if is_number(hub) and hub >= 1:
        least = whole_number("hub", hub, 1)
        return degree >= least, f"a node of degree {least} or more"
    share = number("hub", hub, above=0)
    first = int(np.ceil(share * degree.shape[1] - 1e-9))
    bound = -np.sort(-degree, axis=1)[:, first - 1]
    hubs = (degree >= bound[:, None]) & (degree > 0)
    which = "the node" if first == 1 else f"one of the {first} nodes"
    return hubs, f"{which} of largest degree, or one of equal degree ({share:g} of all nodes)"


def _density(posterior: "GraphPosterior", ci_prob: float) -> dict[str, float]:
    """Mean and interval of the share of the pairs that are joined."""
    p = len(posterior.variables)
    pairs = p * (p - 1) // 2
    if posterior.directed and not getattr(posterior, "acyclic", False):
        pairs *= 2
    lines = posterior.indicators.sum(axis=-1, dtype=int).reshape(-1, 1) / max(pairs, 1)
    interval = interval_columns(lines, ci_prob)
    return {"mean": float(lines.mean())} | {name: float(v[0]) for name, v in interval.items()}


def _shares(counts: np.ndarray, ci_prob: float) -> dict[str, np.ndarray]:
    """Share of the nodes with each count: mean and interval."""
    flat = counts.reshape(-1, counts.shape[-1])
    degrees = np.arange(flat.max() + 1)
    shares = np.stack([(flat == k).mean(axis=1) for k in degrees], axis=1)
    mean = {"degree": degrees, "share": shares.mean(axis=0)}
    return mean | interval_columns(shares, ci_prob)
