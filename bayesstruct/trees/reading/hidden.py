"""Posteriors over trees with hidden nodes: how their edges divide the columns, how many hidden nodes there are, and their values."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.readers import register_check, register_figure, register_summary, variables
from bayesstruct.core.tables.codings import StateLevels
from bayesstruct.core.tables.predictions import StateRows, register_prediction
from bayesstruct.data.arguments import number, whole_number
from bayesstruct.graphs.groups import CONSTANTS, SAMPLE_DIMS
from bayesstruct.graphs.mixing import indicator_ess, indicator_rhat
from bayesstruct.networks.reading.effects import spread_positions
from bayesstruct.precision.reading.predictive import NORMAL_READERS
from bayesstruct.trees.kernels.hidden_normal import predict_hidden
from bayesstruct.trees.priors.records import HiddenNodePrior, HiddenNodeStates

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    import xarray as xr

    from matplotlib.axes import Axes

__all__ = [
    "consensus_tree",
    "hidden_node_table",
    "hidden_values",
    "plot_consensus_tree",
    "split_table",
]

_KIND = "trees with hidden nodes"
_STATES = "trees of columns of states with hidden nodes"
_COMMON = ("hidden_node_table", "consensus_tree", "plot_consensus_tree")
_READERS = (*_COMMON, "hidden_values", "edge_table", *NORMAL_READERS)
_LEAST = 0.05  # splits that `bs.check` follows have at least this probability


@dataclass(frozen=True, eq=False)
class _Trees:
    """Draws of trees: of each node the columns beyond it, seen from the first one.

    Attributes
    ----------
    names : list of str
    parents : (chain, draw, nodes) ndarray
    strengths : (chain, draw, nodes) ndarray
        Of the edges to the parents: correlations of numbers, mutual information of states.
    strength : {"correlation", "information"}
    """

    names: list[str]
    parents: np.ndarray
    strengths: np.ndarray
    strength: str

    @classmethod
    def read(cls, source) -> "_Trees":
        """Read them from the group of the draws."""
        draws = source.transpose(*SAMPLE_DIMS, ...)
        labels = [str(v) for v in draws["tree_node"].values]
        if "deviation" in draws:
            p, strength = draws["deviation"].shape[-1], "correlation"
        else:
            p, strength = (1 + isqrt(1 + 8 * draws["edge"].shape[-1])) // 2, "information"
        values = draws[f"parent_{strength}"].values
        return cls(labels[:p], draws["parent"].values, values, strength)

    @cached_property
    def below(self) -> list[list[int]]:
        """Columns beyond each node as the bits of a number, 0 for nodes that are not used; one list for each draw."""
        known: dict[bytes, list[int]] = {}
        flat = np.ascontiguousarray(self.parents).reshape(-1, self.parents.shape[-1])
        out = []
        for parent in flat:
            key = parent.tobytes()
            if key not in known:
                known[key] = _below(parent.tolist(), len(self.names))
            out.append(known[key])
        return out

    @cached_property
    def shares(self) -> dict[int, float]:
        """Share of the draws that have each split."""
        counts = Counter(split for masks in self.below for split in masks[1:] if split)
        return {split: count / len(self.below) for split, count in counts.items()}

    def indicators(self, splits: list[int]) -> np.ndarray:
        """Which draws have each split, (chain, draw, splits)."""
        place = {split: k for k, split in enumerate(splits)}
        out = np.zeros((len(self.below), len(splits)), bool)
        for row, masks in zip(out, self.below, strict=True):
            row[[place[split] for split in masks[1:] if split in place]] = True
        return out.reshape(*self.parents.shape[:2], -1)

    def mean_strengths(self, splits: list[int]) -> np.ndarray:
        """Mean strength of the edge of each split over the draws that have it."""
        place = {split: k for k, split in enumerate(splits)}
        total, count = np.zeros(len(splits)), np.zeros(len(splits))
        rows = self.strengths.reshape(-1, self.strengths.shape[-1])
        for masks, row in zip(self.below, rows, strict=True):
            for node, split in enumerate(masks):
                if node and split in place:
                    total[place[split]] += row[node]
                    count[place[split]] += 1
        return total / np.maximum(count, 1)

    def columns(self, split: int) -> list[str]:
        """Names of the columns of a split."""
        return [name for k, name in enumerate(self.names) if split >> k & 1]


def _below(parent: list[int], p: int) -> list[int]:
    """Columns beyond each node of one tree as bits."""
    children = defaultdict(list)
    for node, above in enumerate(parent):
        if above >= 0:
            children[above].append(node)
    order = [0]
    for node in order:
        order.extend(children[node])
    masks = [0] * len(parent)
    for node in reversed(order):
        masks[node] |= 1 << node if node < p else 0
        for child in children[node]:
            masks[node] |= masks[child]
    return masks


def _read(idata: "xr.DataTree") -> _Trees:
    if not _is_hidden_tree(idata):
        raise ValueError(
            "this is not a result of bs.models.latent_tree: the posterior has no trees with hidden nodes. Pass the whole "
            "result of pm.sample(), idata instead of idata.posterior"
        )
    return _Trees.read(idata["posterior"].to_dataset())


def _is_hidden_tree(idata) -> bool:
    return _of_numbers(idata) or _of_states(idata)


def _of_numbers(idata) -> bool:
    own = {"parent", "parent_correlation", "deviation"} <= variables(idata)
    return own and "hidden_prior" in variables(idata, CONSTANTS)


def _of_states(idata) -> bool:
    own = {"parent", "parent_table", "parent_information"} <= variables(idata)
    return own and "hidden_prior" in variables(idata, CONSTANTS)


def split_table(idata: "xr.DataTree", *, least: float = 0.05) -> "pd.DataFrame":
    """How the edges of the trees divide the columns, most probable first.

    An edge of a tree, if it is removed, leaves columns on two sides. Hidden nodes have no names, but these splits can be compared between
    draws, and together they are the tree.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.latent_tree`.
    least : float, default 0.05
        Leave out splits with a smaller probability.

    Returns
    -------
    pandas.DataFrame
        One row for each split: ``split``, the columns on the side without the first column; ``size``, how many; ``probability``; ``correlation``, the mean
        along the edge in draws that have it (that of a hidden node with its neighbour nearer to the first column is positive), or of states ``information``, the
        mean mutual information of the two ends in nats; ``ess`` and ``r_hat`` of the
        indicator, NaN where all draws agree. A split of one column says that it is a leaf and not between others.

    Raises
    ------
    ValueError
        If `idata` is not such a result, or `least` is no probability.

    Examples
    --------
    >>> split_table(idata).head()  # doctest: +SKIP
    """
    import pandas as pd

    trees = _read(idata)
    least = number("least", least, least=0, most=1)
    kept = [split for split, share in trees.shares.items() if share >= least]
    kept.sort(key=lambda split: (-trees.shares[split], split.bit_count(), split))
    found = trees.indicators(kept)
    return pd.DataFrame(
        {
            "split": [", ".join(trees.columns(split)) for split in kept],
            "size": [split.bit_count() for split in kept],
            "probability": [trees.shares[split] for split in kept],
            trees.strength: trees.mean_strengths(kept),
            "ess": indicator_ess(found),
            "r_hat": indicator_rhat(found),
        }
    )


def hidden_node_table(idata: "xr.DataTree") -> "pd.DataFrame":
    """How many hidden nodes there are: posterior and prior probabilities.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.latent_tree`.

    Returns
    -------
    pandas.DataFrame
        One row for each number of hidden nodes, from 0 to the maximum: ``probability`` and ``prior``.

    Raises
    ------
    ValueError
        If `idata` is not such a result.

    Examples
    --------
    >>> hidden_node_table(idata)  # doctest: +SKIP
    """
    import pandas as pd

    trees, prior = _read(idata), HiddenNodePrior.read(idata).probability
    counts = (trees.parents[..., len(trees.names) :] >= 0).sum(axis=-1).ravel()
    share = np.bincount(counts, minlength=len(prior)) / len(counts)
    index = pd.Index(range(len(prior)), name="hidden_nodes")
    return pd.DataFrame({"probability": share, "prior": prior}, index=index)


def consensus_tree(idata: "xr.DataTree") -> "nx.Graph":
    """Return the tree of all splits that more than half of the draws have.

    Such splits always fit together. Where no split has a majority, several columns hang on one node: the draws do not say how these are joined.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.latent_tree`.

    Returns
    -------
    networkx.Graph
        Nodes are the columns and hidden nodes "h1", "h2", ... (or a name that no column has), with ``hidden``. Edges have ``probability``, that of their split, and
        ``weight``, the mean correlation along them in draws with the split (of states the mean mutual information), 0 if there are none.

    Raises
    ------
    ValueError
        If `idata` is not such a result.

    Examples
    --------
    >>> tree = consensus_tree(idata)  # doctest: +SKIP
    >>> bs.plot_graph(tree)  # doctest: +SKIP
    """
    trees = _read(idata)
    return _graph(trees, _majority(trees))


def _majority(trees: _Trees) -> list[int]:
    """Return splits of more than half of the draws, large ones first, after all columns."""
    every = (1 << len(trees.names)) - 1
    found = [split for split, share in trees.shares.items() if share > 0.5]
    return [every, *sorted(found, key=lambda split: (-split.bit_count(), split))]


def _above(splits: list[int]) -> list[int]:
    """Place of the smallest split that holds each one; -1 for the first, which holds all."""
    return [
        max((j for j in range(k) if splits[j] & own == own), default=-1, key=lambda j: j)
        for k, own in enumerate(splits)
    ]


def _own(splits: list[int], above: list[int]) -> list[int]:
    """Columns of each split that are in no smaller one."""
    out = list(splits)
    for k in range(1, len(splits)):
        out[above[k]] &= ~splits[k]
    return out


def _hidden_names(names: list[str], count: int) -> list[str]:
    stem = "h"
    while any(f"{stem}{k}" in names for k in range(1, count + 1)):
        stem = "hidden_" if stem == "h" else f"{stem}_"
    return [f"{stem}{k}" for k in range(1, count + 1)]


def _labels(trees: _Trees, splits: list[int]) -> tuple[list[int], list[int], list[str]]:
    """Place above each split, its own columns, and the name of its node."""
    above = _above(splits)
    own = _own(splits, above)
    hidden = iter(_hidden_names(trees.names, len(splits)))
    return (
        above,
        own,
        [trees.columns(mask)[0] if mask.bit_count() == 1 else next(hidden) for mask in own],
    )


def _graph(trees: _Trees, splits: list[int]) -> "nx.Graph":
    import networkx as nx

    above, own, labels = _labels(trees, splits)
    weights = trees.mean_strengths(splits)
    graph: nx.Graph = nx.Graph(forest=True)
    graph.add_nodes_from(trees.names, hidden=False)
    for k, label in enumerate(labels):
        if label not in graph:
            graph.add_node(label, hidden=True)
        if k:
            share = trees.shares[splits[k]]
            graph.add_edge(labels[above[k]], label, probability=share, weight=float(weights[k]))
        if own[k].bit_count() > 1:
            for name in trees.columns(own[k]):
                split = 1 << trees.names.index(name)
                split = split if split > 1 else splits[0] ^ 1
                share = trees.shares.get(split, 0.0)
                weight = float(trees.mean_strengths([split])[0])
                graph.add_edge(label, name, probability=share, weight=weight)
    return graph


def hidden_values(idata: "xr.DataTree", *, draws: int = 200) -> "pd.DataFrame":
    """Return expected values of the hidden nodes of the consensus tree in each row of the table.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.latent_tree`.
    draws : int, default 200
        Number of draws to average over, spread evenly.

    Returns
    -------
    pandas.DataFrame
        One row for each row of the table, by position, and one column for each hidden node of :func:`consensus_tree` that some draws have, with the same branches: its
        mean given the row, with variance 1 in the population. Signs are those by which the draws agree with each other, and by which most of them go with the neighbour
        nearer to the first column, which may be another one in each draw.
        ``attrs["probability"]`` has the share of the draws with that node, ``attrs["sd"]`` the standard deviation of its value given tree and row.

    Raises
    ------
    ValueError
        If `idata` is not such a result, or one of columns of states, or `draws` is less than 1.

    Examples
    --------
    >>> hidden_values(idata).corrwith(known)  # doctest: +SKIP
    """
    import pandas as pd

    from bayesstruct.core.tables.observed import completed_tables, observed_table

    trees = _read(idata)
    if trees.strength != "correlation":
        raise ValueError(
            "hidden nodes of columns of states have states without names, which draws may name differently: there is no mean of them; "
            "bs.split_table(idata) shows which columns are beyond each of them"
        )
    wanted = _wanted(trees)
    table, missing = observed_table(idata)
    posterior = idata["posterior"].to_dataset().transpose(*SAMPLE_DIMS, ...)
    completed = completed_tables(table, missing, posterior)
    constants = idata[CONSTANTS]
    location, scale = constants["location"].values, constants["scale"].values
    p, total = len(trees.names), {name: np.zeros(len(table)) for name in wanted.values()}
    count: Counter[str] = Counter()
    turned: Counter[str] = Counter()
    spread: defaultdict[str, float] = defaultdict(float)
    size = trees.parents.shape[:2]
    whole = whole_number("draws", draws, 1)
    chosen = np.unique(np.linspace(0, size[0] * size[1] - 1, whole).astype(int))
    for k in chosen:
        c, d = divmod(int(k), size[1])
        present = _present(trees.parents[c, d].tolist(), trees.below[k], p)
        found = {node: wanted[key] for node, key in present.items() if key in wanted}
        if not found:
            continue
        z = (completed(c, d) - location) / scale - posterior["mean"].values[c, d]
        z = z / posterior["deviation"].values[c, d]
        mean, covariance = predict_hidden(trees.parents[c, d], trees.strengths[c, d], z)
        for node, name in found.items():
            # A neighbour that is another one in each draw may go with the node in another direction.
            sign = -1.0 if total[name] @ mean[:, node - p] < 0.0 else 1.0
            total[name] += sign * mean[:, node - p]
            turned[name] += sign < 0.0
            spread[name] += covariance[node - p, node - p]
            count[name] += 1
    kept = [name for name in total if count[name]]
    signs = {name: -1.0 if 2 * turned[name] > count[name] else 1.0 for name in kept}
    out = pd.DataFrame(
        {name: signs[name] * total[name] / count[name] for name in kept}, index=range(len(table))
    )
    out.attrs["probability"] = {name: count[name] / len(chosen) for name in kept}
    out.attrs["sd"] = {name: float(np.sqrt(spread[name] / count[name])) for name in kept}
    return out


def _present(parent: list[int], masks: list[int], p: int) -> dict:
    """Hidden nodes of one tree by their branches, as seen from the first column."""
    children = defaultdict(set)
    for node, above in enumerate(parent):
        if above >= p:
            children[above].add(masks[node])
    return {node: (masks[node], frozenset(below)) for node, below in children.items()}


def _wanted(trees: _Trees) -> dict:
    """Names of the hidden nodes of the consensus tree by their branches."""
    splits = _majority(trees)
    above, own, labels = _labels(trees, splits)
    out = {}
    for k, label in enumerate(labels):
        if k and not own[k]:
            below = frozenset(split for j, split in enumerate(splits) if above[j] == k)
            out[splits[k], below] = label
    return out


def _quantities(draws: "xr.Dataset"):
    """Quantities that do not depend on the numbers of hidden nodes."""
    import xarray as xr

    trees = _Trees.read(draws)
    p = len(trees.names)
    parent = draws["parent"].transpose(*SAMPLE_DIMS, ...)
    yield "number of hidden nodes", (parent[..., p:] >= 0).sum("tree_node")
    moving = [split for split, share in trees.shares.items() if share < 1.0]
    frequent = [split for split in moving if _LEAST <= trees.shares[split]]
    # Splits that all draws have tell nothing of convergence: rarer ones do.
    kept = frequent or sorted(moving, key=trees.shares.__getitem__)[-1:] or [*trees.shares]
    labels = [", ".join(trees.columns(split)) for split in kept]
    found = trees.indicators(kept).astype(float)
    yield "splits", xr.DataArray(found, dims=(*SAMPLE_DIMS, "split"), coords={"split": labels})


def _labelled(draws: "xr.Dataset"):
    """Names of what depends on the numbers of hidden nodes, and of edges that never changed, as splits tell more of these."""
    of_edges = [name for name in ("edge", "weight") if name in draws]
    still = [name for name in of_edges if not np.ptp(draws[name].values, axis=(0, 1)).any()]
    own = ("parent", "parent_correlation", "parent_table", "parent_information")
    return [*(name for name in own if name in draws), *still]


def plot_consensus_tree(
    idata: "xr.DataTree", *, ax: "Axes | None" = None, **options: Any
) -> "Axes":
    """Draw the tree of all splits that more than half of the draws have, hidden nodes in a colour of their own.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.latent_tree`.
    ax : matplotlib.axes.Axes, optional
    **options
        Of :func:`bayesstruct.plot_graph`.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If `idata` is not such a result.

    Examples
    --------
    >>> plot_consensus_tree(idata)  # doctest: +SKIP
    """
    from bayesstruct.graphs.plots.network import plot_graph

    graph = consensus_tree(idata)
    kinds = {node: "hidden" if own["hidden"] else "column" for node, own in graph.nodes(data=True)}
    return plot_graph(graph, ax=ax, **({"groups": kinds} | options))


def _rows(idata: "xr.DataTree") -> StateRows:
    """Distribution of a row of states in each draw."""
    from bayesstruct.trees.kernels.hidden_states.messages import row_log_likelihoods

    trees, constants = _read(idata), idata[CONSTANTS].to_dataset()
    p, most = len(trees.names), trees.parents.shape[-1]
    coding = StateLevels.coding(constants, trees.names)
    draws = idata["posterior"].to_dataset().transpose(*SAMPLE_DIMS, ...)
    tables = draws["parent_table"].values
    tables = tables.reshape(-1, *tables.shape[2:])
    parents = trees.parents.reshape(-1, most).astype(np.int64)
    keep = spread_positions(len(parents))
    hidden = int(HiddenNodeStates.read(idata).count)
    states = np.array([*(len(own) for own in coding.levels), *[hidden] * (most - p)])

    def weigh(rows, part):
        codes = np.ascontiguousarray(rows, np.int64)
        return np.array(
            [row_log_likelihoods(parents[k], tables[k], states, codes) for k in keep[part]]
        )

    return StateRows(coding, weigh, len(keep), {})


register_summary(
    _STATES,
    _of_states,
    split_table,
    (*_COMMON, "edge_table", "predict", "pointwise"),
    before="undirected graphs",
)
register_summary(
    _KIND,
    _of_numbers,
    split_table,
    tuple(dict.fromkeys(_READERS)),
    before="Gaussian graphical models",
)
register_figure(plot_consensus_tree, _KIND, _STATES)
register_check(_KIND, _of_numbers, _quantities, _labelled)
register_check(_STATES, _of_states, _quantities, _labelled)
register_prediction(_STATES, _of_states, _rows)
