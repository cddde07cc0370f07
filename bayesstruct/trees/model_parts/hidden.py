"""Parts of models of trees with hidden nodes: the random tree, where it begins, and the rows given it."""

import warnings

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from bayesstruct.core.recognition import claim
from bayesstruct.graphs.records import EdgeEnds, EdgePrior
from bayesstruct.precision.model_parts.rows import observe_rows, warn_size
from bayesstruct.trees.kernels.hidden_counts import (
    log_tree_counts,
    log_tree_probabilities,
    prior_edge_share,
)
from bayesstruct.trees.ops.hidden_trees import hidden_tree_precision, neighbour_correlations
from bayesstruct.trees.priors.gaussian import TreeMeans
from bayesstruct.trees.priors.hidden_trees import HIDDEN_STEP, HiddenTree, TreeCorrelations
from bayesstruct.trees.priors.records import HiddenNodePrior

if TYPE_CHECKING:
    import networkx as nx

    from pytensor.tensor import TensorVariable

    from bayesstruct.data.states import StateTable
    from bayesstruct.data.table import Table

__all__ = ["observe_hidden_tree", "random_hidden_tree", "record_hidden_tree"]

_STRONGEST = 0.98  # correlation along an edge of the first tree


def random_hidden_tree(
    table: "Table", most: int, weight: float, shape: float
) -> tuple["TensorVariable", "TensorVariable"]:
    """Add the tree as ``parent`` and the correlations along it as ``parent_correlation``, begun at an estimate.

    Parameters
    ----------
    table : Table
        Standardised.
    most : int
        Maximum number of hidden nodes.
    weight, shape : float
        Of the priors.
    """
    p = table.p
    record_hidden_tree(table, most, weight)
    start, correlation = _start(table, most)
    tree = HiddenTree("parent", p, weight, most, dims="tree_node", start=start)
    own = TreeCorrelations("parent_correlation", tree, shape, dims="tree_node", start=correlation)
    edge, strength = neighbour_correlations(tree, own, p)
    pm.Deterministic("edge", edge, dims="pair")
    pm.Deterministic("weight", strength, dims="pair")
    return tree, own


def record_hidden_tree(table: "Table | StateTable", most: int, weight: float) -> None:
    """Name the nodes of a tree, and record what readers need to know of its prior.

    Parameters
    ----------
    table : Table or StateTable
    most, weight
        As of `random_hidden_tree`.
    """
    model = pm.modelcontext(None)
    model.add_coord("tree_node", [*table.names, *(f"hidden {k + 1}" for k in range(most))])
    source, target = table.edge_index
    each = log_tree_probabilities(table.p, most, weight)
    chances = np.exp(log_tree_counts(table.p, most) + each)
    EdgeEnds.in_model(source, target).record()
    EdgePrior(np.full(len(source), chances @ prior_edge_share(table.p, most))).record()
    model.add_coord("hidden_count", list(range(most + 1)))
    HiddenNodePrior(chances).record()


def observe_hidden_tree(
    table: "Table",
    tree: "TensorVariable",
    correlations: "TensorVariable",
    scale_spread: float,
) -> None:
    """Add standard deviations, precision matrix, means and rows, given the tree.

    Parameters
    ----------
    table : Table
        Standardised.
    tree, correlations : TensorVariable
    scale_spread : float
        Standard deviation of the logarithms of the standard deviations.
    """
    warn_size(table)
    deviation = pm.LogNormal("deviation", 0.0, scale_spread, dims="node", default_transform=None)
    claim(deviation, HIDDEN_STEP)
    precision = hidden_tree_precision(tree, correlations, deviation, table.p)
    pm.Deterministic("precision", precision, dims=("node", "node_"))
    mean = TreeMeans("mean", precision, 1.0, dims="node")
    claim(mean, HIDDEN_STEP)
    observe_rows(table, mean, precision)
    missing = pm.modelcontext(None).named_vars.get("x_missing")
    if missing is not None:
        claim(missing, HIDDEN_STEP)


def _start(table, most) -> tuple[np.ndarray, np.ndarray]:
    """Return an estimated tree in the form with a root: with hidden nodes if they are not too many, else without."""
    import pandas as pd

    from bayesstruct.trees.kernels.hidden_trees import rooted_parents  # with Numba
    from bayesstruct.trees.solvers.latent_trees import latent_tree

    p, names = table.p, list(table.names)
    frame = pd.DataFrame(np.where(table.missing, 0.0, table.standardized), columns=names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table was remarked upon, in its own units
        graph = _joined(frame) if most == 0 else latent_tree(frame, columns="numbers").graph
    hidden = [node for node in graph if graph.nodes[node]["hidden"]]
    if len(hidden) > most:
        graph, hidden = _joined(frame), []
    place = {name: k for k, name in enumerate([*names, *hidden])}
    edges = [(place[a], place[b]) for a, b in graph.edges]
    sizes = [graph.edges[edge]["weight"] for edge in graph.edges]
    values = np.where(np.abs(sizes) < 1e-3, 1e-3, np.clip(sizes, -_STRONGEST, _STRONGEST))
    return rooted_parents(edges, p, p + most, values)


def _joined(frame) -> "nx.Graph":
    """Return the tree of columns of the greatest likelihood, with correlations as weights."""
    import networkx as nx

    from bayesstruct.trees.kernels.distances import correlations, normal_distances

    values, names = frame.to_numpy(), list(frame.columns)
    distance, weight = normal_distances(values), correlations(values)
    full: nx.Graph = nx.Graph()
    full.add_nodes_from(names, hidden=False)
    pairs = [(i, j) for i in range(len(names)) for j in range(i)]
    full.add_weighted_edges_from((names[i], names[j], distance[i, j]) for i, j in pairs)
    tree = nx.minimum_spanning_tree(full)
    for a, b in tree.edges:
        tree.edges[a, b]["weight"] = weight[names.index(a), names.index(b)]
    return tree
