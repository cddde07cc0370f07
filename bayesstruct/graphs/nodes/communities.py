"""Communities of the nodes of drawn graphs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import choice, generator, number, whole_number
from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.graphs.nodes.centrality import interval_columns
from bayesstruct.graphs.nodes.weighted import DRAWS, WeightedGraphs, weighted_graphs
from bayesstruct.graphs.partitions import labelled_blocks
from bayesstruct.graphs.summaries import interval_probability

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["Communities", "communities"]

NEGATIVE = ("absolute", "signed", "zero")


@dataclass(frozen=True, eq=False)
class Communities:
    """Communities of the nodes of a graph.

    Attributes
    ----------
    table : pandas.DataFrame
        One row for each node, by community, with columns ``node``; ``community`` of the representative partition, 1 for the
        largest; ``together``, the mean probability that the node is in one community with another one of those that are in its
        community (NaN if it is alone there); ``alone``, the probability that it is in no community with others.
    co_membership : pandas.DataFrame, shape (p, p)
        Probability that two nodes are in one community, ones on the diagonal, nodes in the order of the model.
    number : pandas.Series
        Probability of each number of communities, those of single nodes not counted.
    modularity : dict
        ``mean``, ``hdi_low`` and ``hdi_high`` of the modularity of the communities in their graphs.
    labels : xarray.DataArray
        Community of each node in each draw, over chain, draw and node, numbered from 0; numbers of different draws are not
        related.
    notes : list of str
    """

    table: "pd.DataFrame"
    co_membership: "pd.DataFrame"
    number: "pd.Series"
    modularity: dict[str, float]
    labels: "xr.DataArray"
    notes: list[str]

    @property
    def partition(self) -> "pd.Series":
        """Community of each node in the representative partition, by name, in the order of the model."""
        return self.table.set_index("node")["community"].loc[self.co_membership.index]

    def __repr__(self):
        lines = [f"Communities of {len(self.table)} nodes"]
        for community, part in self.table.groupby("community"):
            lines.append(f"  {community}: {', '.join(part['node'])}")
        shown = self.number[self.number >= 0.005].items()
        lines.append("probability of their number: " + ", ".join(f"{k}: {v:.2f}" for k, v in shown))
        return "\n".join([*lines, *self.notes])


def communities(
    idata: "xr.DataTree | GraphPosterior",
    *,
    method: str = "modularity",
    negative: str = "absolute",
    resolution: float = 1.0,
    starts: int = 5,
    draws: int | None = DRAWS,
    all_weights: bool = False,
    ci_prob: float | None = None,
    random_seed: Any = 0,
    group: str = "posterior",
) -> Communities:
    r"""Find communities, groups of nodes with many or strong edges among them, in each drawn graph.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model. Of a directed graph the weights of both directions are added.
    method : {"modularity", "blocks"}
        ``"modularity"``: a partition of large modularity of each drawn graph, whatever the model. ``"blocks"``: the blocks of a
        model in which they are parameters, with ``edge_probability=bs.StochasticBlock()`` or unknown kinds of columns.
    negative : {"absolute", "signed", "zero"}
        How negative weights count. ``"absolute"``: as positive ones of this size, so that communities do not depend on the
        direction in which a column is coded. ``"signed"``: against a community of the two nodes [2]_. ``"zero"``: as no edge.
        For graphs without weights, where each edge has weight 1, all are the same.
    resolution : float, default 1
        Above 1 communities are smaller and more, below 1 larger and fewer.
    starts : int, default 5
        Number of random orders of the nodes from which each graph is searched; the best partition counts.
    draws : int, default 1000
        Largest number of draws, evenly spaced over each chain; None for all.
    all_weights : bool
        Keep the weights of edges (arcs) that a draw does not have.
    ci_prob : float, optional
        Probability of the interval of the modularity, between 0 and 1; ``arviz.rcParams["stats.ci_prob"]`` by default.
    random_seed : int, numpy.random.Generator or None
        For the orders of the nodes; 0 by default, so that a result has the same communities each time.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    Communities
        With ``table``, ``partition``, ``co_membership``, ``number``, ``modularity`` and ``labels``.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of a graph model or has a graph for each of several groups, or an argument is not
        one of those that there are.

    See Also
    --------
    bayesstruct.plot_co_membership : picture.
    centrality : takes communities for bridge measures.

    Notes
    -----
    In each draw the partition is one of largest modularity

    .. math:: Q = \frac{1}{2m} \sum_{ij} \Bigl(w_{ij} - \gamma \frac{s_i s_j}{2m}\Bigr) 1(c_i = c_j),

    with strengths :math:`s_i`, :math:`2m = \sum_i s_i` and resolution :math:`\gamma`, by the method of Louvain [1]_. With
    ``negative="signed"``, Q is that of the positive weights minus that of the negative ones, each times its share of the total weight [2]_. The
    partition need not be the best of all. A node without edges is a community by itself.

    The representative partition is the one whose expected variation of information from those drawn has the smallest
    lower bound [3]_, of all that were drawn and those into 1, 2, ..., p parts by average linkage of the co-membership. Every
    graph has some partition of largest modularity, random ones too: `number`, `modularity` and `co_membership` tell whether draws agree.

    References
    ----------
    .. [1] Blondel, Guillaume, Lambiotte and Lefebvre (2008). Fast unfolding of communities in large networks. Journal of
       Statistical Mechanics P10008.
    .. [2] Gómez, Jensen and Arenas (2009). Analysis of community structure in networks of correlated data. Physical
       Review E 80, 016114.
    .. [3] Wade and Ghahramani (2018). Bayesian cluster analysis: point estimation and credible balls. Bayesian
       Analysis 13, 559-626.

    Examples
    --------
    >>> found = communities(idata)  # doctest: +SKIP
    >>> found.table  # doctest: +SKIP
    >>> centrality(idata, "bridge_strength", communities=found)  # doctest: +SKIP
    """
    choice("method", method, ("modularity", "blocks"))
    choice("negative", negative, NEGATIVE)
    resolution = number("resolution", resolution, above=0)
    starts, ci_prob = whole_number("starts", starts, 1), interval_probability(ci_prob)
    rng = generator(random_seed)
    graphs = weighted_graphs(idata, draws=draws, all_weights=all_weights, group=group)
    options = negative, resolution
    if method == "blocks":
        labels = _blocks(graphs)
        quality = _modularities(graphs, labels, *options)
    else:
        labels, quality = _partitions(graphs, *options, starts, rng)
    together = _co_membership(labels)
    names = graphs.posterior.variables
    return Communities(
        table=_table(_representative(labels, together), labels, together, names),
        co_membership=_frame(together, names),
        number=_number(labels),
        modularity=_mean_and_interval(quality, ci_prob),
        labels=graphs.labelled(labels, "community"),
        notes=_notes(graphs, method, negative),
    )


def _partitions(
    graphs: WeightedGraphs, negative: str, resolution: float, starts: int, rng
) -> tuple[np.ndarray, np.ndarray]:
    """Communities of each graph, (n, p), and their modularity, (n,)."""
    from bayesstruct.graphs.nodes.modularity import best_partitions  # loads Numba

    n, p = graphs.present.shape[0], graphs.p
    orders = np.array([rng.permutation(p) for _ in range(starts)])
    labels, quality = np.empty((n, p), np.int64), np.empty(n)
    for k in range(n):
        matrix = modularity_matrix(_weights(graphs, k), negative, resolution)
        labels[k], quality[k] = best_partitions(matrix, orders)
    return labels, quality


def _blocks(graphs: WeightedGraphs) -> np.ndarray:
    """Blocks of the nodes in each draw, (n, p), numbered as they first appear."""
    draws = graphs.posterior.draws
    if not labelled_blocks(draws):
        raise ValueError(
            "this result has no hidden blocks of nodes: those of a model with edge_probability=bs.StochasticBlock() are "
            '`block` in its posterior; method="modularity" finds communities in any graph'
        )
    blocks = draws["block"].transpose(*SAMPLE_DIMS, "node").values.reshape(-1, graphs.p)
    return np.array([_by_appearance(row) for row in blocks])


def _modularities(
    graphs: WeightedGraphs, labels: np.ndarray, negative: str, resolution: float
) -> np.ndarray:
    """Modularity of given communities in their graphs, (n,)."""
    quality = np.empty(len(labels))
    for k, row in enumerate(labels):
        matrix = modularity_matrix(_weights(graphs, k), negative, resolution)
        quality[k] = matrix[row[:, None] == row].sum()
    return quality


def _weights(graphs: WeightedGraphs, k: int) -> np.ndarray:
    """Symmetric matrix of the weights of one graph."""
    posterior = graphs.posterior
    weights = graphs.present[k].astype(float) if graphs.weights is None else graphs.weights[k]
    matrix = np.zeros((graphs.p, graphs.p))
    matrix[posterior.source, posterior.target] = weights
    return matrix + matrix.T


def modularity_matrix(weights: np.ndarray, negative: str, resolution: float = 1.0) -> np.ndarray:
    """Return what each pair of nodes adds to the modularity if both are in one community.

    Parameters
    ----------
    weights : (p, p) ndarray of float
        Symmetric, zeros on the diagonal.
    negative : {"absolute", "signed", "zero"}
    resolution : float

    Returns
    -------
    ndarray, shape (p, p)
    """
    if negative == "absolute":
        return _beyond_chance(np.abs(weights), resolution)
    more = np.maximum(weights, 0.0)
    if negative == "zero":
        return _beyond_chance(more, resolution)
    less = more - weights
    share = more.sum() / (more.sum() + less.sum() or 1.0)
    return share * _beyond_chance(more, resolution) - (1 - share) * _beyond_chance(less, resolution)


def _beyond_chance(weights: np.ndarray, resolution: float) -> np.ndarray:
    """Share of each pair in the total weight, minus that which is expected from the strengths."""
    total = weights.sum()
    if total == 0:
        return np.zeros_like(weights)
    strength = weights.sum(axis=0) / total
    return weights / total - resolution * np.outer(strength, strength)


def _co_membership(labels: np.ndarray) -> np.ndarray:
    """Share of the draws in which two nodes have one label."""
    together = np.zeros((labels.shape[1], labels.shape[1]))
    for row in labels:
        together += row[:, None] == row
    return together / len(labels)


def _representative(labels: np.ndarray, together: np.ndarray) -> np.ndarray:
    """Partition with the smallest bound on the expected variation of information, of those drawn and those of a tree."""
    candidates = np.unique(np.concatenate([labels, _cuts(together)]), axis=0)
    losses = []
    for row in candidates:
        same = row[:, None] == row
        losses.append(np.sum(np.log(same.sum(1)) - 2 * np.log((together * same).sum(1))))
    return candidates[int(np.argmin(np.round(losses, 10)))]


def _cuts(together: np.ndarray) -> np.ndarray:
    """Partitions into 1, 2, ..., p parts by average linkage of co-membership, labels as they first appear."""
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import squareform

    p = len(together)
    if p < 2:
        return np.zeros((1, p), int)
    apart = np.clip(1.0 - together, 0.0, 1.0)
    np.fill_diagonal(apart, 0.0)
    cuts = cut_tree(linkage(squareform(apart, checks=False), "average")).T
    return np.array([_by_appearance(row) for row in cuts])


def _by_appearance(labels: np.ndarray) -> np.ndarray:
    """Renumber labels from 0 in the order of their first nodes."""
    first, inverse = np.unique(labels, return_index=True, return_inverse=True)[1:]
    return np.argsort(np.argsort(first))[inverse]


def _table(
    partition: np.ndarray, labels: np.ndarray, together: np.ndarray, names: list[str]
) -> "pd.DataFrame":
    import pandas as pd

    same = partition[:, None] == partition
    others = same & ~np.eye(len(partition), dtype=bool)
    count = others.sum(1)
    mean = np.divide(
        (together * others).sum(1), count, out=np.full(len(count), np.nan), where=count > 0
    )
    alone = np.mean([np.bincount(row)[row] == 1 for row in labels], axis=0)
    sizes = np.bincount(partition)
    order = np.argsort(-sizes, kind="stable")  # labels are in the order of their first nodes
    place = np.empty(len(sizes), int)
    place[order] = np.arange(1, len(sizes) + 1)
    columns = {"node": names, "community": place[partition], "together": mean, "alone": alone}
    table = pd.DataFrame(columns)
    return table.sort_values(
        ["community", "together"], ascending=[True, False], kind="stable", ignore_index=True
    )


def _number(labels: np.ndarray) -> "pd.Series":
    import pandas as pd

    counts = [int((np.bincount(row) > 1).sum()) for row in labels]
    values, times = np.unique(counts, return_counts=True)
    return pd.Series(times / len(labels), pd.Index(values, name="communities"), name="probability")


def _mean_and_interval(values: np.ndarray, ci_prob: float) -> dict[str, float]:
    interval = interval_columns(values[:, None], ci_prob)
    return {"mean": float(values.mean())} | {name: float(v[0]) for name, v in interval.items()}


def _frame(matrix: np.ndarray, names: list[str]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(matrix, index=names, columns=names)


def _notes(graphs: WeightedGraphs, method: str, negative: str) -> list[str]:
    notes = graphs.note()
    if method == "blocks":
        return [*notes, "communities are the hidden blocks of the model."]
    if graphs.directed:
        notes.append("directions of arcs were left out: weights of both were added.")
    if graphs.weights is None:
        notes.append(f"{graphs.posterior.line}s have no weights: each has weight 1.")
    elif (graphs.weights < 0).any():
        count = {
            "absolute": "by their absolute values",
            "signed": "against a community",
            "zero": "as no edges",
        }
        notes.append(f"negative weights count {count[negative]} (`negative`).")
    return notes
