"""Posteriors over directed acyclic graphs as networkx graphs; `graphs` calls these."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.arc_tables import arc_factors, blocks
from bayesstruct.graphs.arcs import DagPosterior
from bayesstruct.graphs.digraphs import from_off_diagonal, off_diagonal, without_cycles

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


def median_dag(posterior: DagPosterior, threshold: float) -> "nx.DiGraph":
    """Graph of the probable arcs, made acyclic; see `graphs.median_graph`."""
    wanted = np.flatnonzero(posterior.frequency >= threshold)
    graph = _graph(posterior, wanted[_acyclic(posterior, wanted)])
    graph.graph |= {"threshold": threshold, "left_out": len(wanted) - graph.number_of_edges()}
    return graph


def median_matrix(posterior: DagPosterior, threshold: float = 0.5) -> np.ndarray:
    """Adjacency of the median graph, boolean (p, p)."""
    wanted = np.flatnonzero(posterior.frequency >= threshold)
    kept = np.zeros(len(posterior.source), bool)
    kept[wanted[_acyclic(posterior, wanted)]] = True
    return posterior.matrices(kept)


def map_dag(posterior: DagPosterior) -> "nx.DiGraph":
    """Most visited graph; see `graphs.map_graph`."""
    graphs, visits = posterior.distinct
    graph = _graph(posterior, np.flatnonzero(graphs[0][posterior.source, posterior.target]))
    graph.graph |= {"probability": float(visits[0] / posterior.n_draws), "visits": int(visits[0])}
    return graph


def dag_probabilities(posterior: DagPosterior, top: int | None) -> "pd.DataFrame":
    """Distinct graphs and their visits; see `graphs.graph_probabilities`."""
    import pandas as pd

    graphs, visits = posterior.distinct
    rows = np.packbits(off_diagonal(graphs[:top]), axis=1)
    table = pd.DataFrame(
        {
            "arcs": graphs[:top].sum(axis=(1, 2)),
            "probability": visits[:top] / posterior.n_draws,
            "key": [row.tobytes().hex() for row in rows],
        }
    )
    table.attrs["n_graphs"] = len(visits)
    return table


def dag_from_key(posterior: DagPosterior, key: str) -> "nx.DiGraph":
    """Graph, or essential graph, of a key; see `graphs.graph_from_key`."""
    p = len(posterior.variables)
    packed = np.frombuffer(bytes.fromhex(key), dtype=np.uint8)
    if len(packed) != -(-p * (p - 1) // 8):
        raise ValueError(f"This key is not one of a directed graph with {p} variables.")
    bits = np.unpackbits(packed, count=p * (p - 1)).astype(bool)
    present = from_off_diagonal(bits, p)[posterior.source, posterior.target]
    if present.sum() < bits.sum():
        raise ValueError("This key has arcs that the model does not consider.")
    return _graph(posterior, np.flatnonzero(present))


def all_arcs(posterior: DagPosterior) -> "nx.DiGraph":
    """Every arc with its probability and Bayes factor; see `graphs.to_networkx`."""
    graph = _graph(posterior, np.arange(len(posterior.source)))
    factor, _ = arc_factors(posterior)
    names = posterior.variables
    for i, j, value in zip(posterior.source, posterior.target, factor, strict=True):
        graph.edges[names[i], names[j]]["bayes_factor"] = float(value)
    return graph


def mean_weights(posterior: DagPosterior, arcs: np.ndarray) -> np.ndarray:
    """Posterior mean of the coefficients of some arcs, in blocks: floats of all would not fit."""
    means = [posterior.weights(at).mean(axis=(0, 1)) for at in blocks(arcs)]
    return np.concatenate([np.zeros(0), *means])


def _acyclic(posterior: DagPosterior, arcs: np.ndarray) -> np.ndarray:
    """Which of some arcs to keep, the most probable first."""
    order = np.argsort(-posterior.frequency[arcs], kind="stable")
    first = arcs[order]
    kept = np.zeros(len(arcs), bool)
    kept[order] = without_cycles(
        posterior.source[first], posterior.target[first], len(posterior.variables)
    )
    return kept


def _graph(posterior: DagPosterior, arcs: np.ndarray) -> "nx.DiGraph":
    import networkx as nx

    names = posterior.variables
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    weights = mean_weights(posterior, arcs) if posterior.weighted else None
    for k, arc in enumerate(arcs):
        about = {"probability": float(posterior.frequency[arc])}
        if weights is not None:
            about["weight"] = float(weights[k])
        graph.add_edge(names[posterior.source[arc]], names[posterior.target[arc]], **about)
    return graph
