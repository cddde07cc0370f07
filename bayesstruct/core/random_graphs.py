"""Random undirected graphs, and missing values, for simulated tables."""

import difflib

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import networkx

__all__ = ["GRAPHS", "hide_values", "make_graph"]


def make_graph(graph, p: int, edge_probability: float | None, rng) -> "networkx.Graph":
    """Return a random graph of a kind, or the given one with its nodes named by text.

    Parameters
    ----------
    graph : str or networkx.Graph
        One of ``GRAPHS``, or a graph.
    p : int
        Number of nodes of a random graph.
    edge_probability : float or None
        Of the kinds ``"random"`` and ``"cluster"``.
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        For an unknown kind, a probability that does not apply, or a graph that is not simple.
    """
    import networkx as nx

    if isinstance(graph, nx.Graph):
        _refuse_probability(edge_probability, "a networkx graph")
        return _check_graph(graph)
    if graph not in GRAPHS:
        near = difflib.get_close_matches(str(graph).lower(), GRAPHS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        available = ", ".join(map(repr, GRAPHS))
        raise ValueError(
            f"There is no graph {graph!r}.{hint} Available: {available}, or a networkx.Graph."
        )
    if p < 2:
        raise ValueError(f"p must be at least 2 variables to have an edge, got {p}.")
    if graph not in ("random", "cluster"):
        _refuse_probability(edge_probability, f"{graph!r}")
    if edge_probability is None:
        edge_probability = _default_probability(p)
    if not 0 <= edge_probability <= 1:
        raise ValueError(f"edge_probability must be between 0 and 1, got {edge_probability}.")
    ends = GRAPHS[graph](p, edge_probability, rng)
    truth = nx.Graph()
    truth.add_nodes_from(f"x{i}" for i in range(p))
    truth.add_edges_from((f"x{i}", f"x{j}") for i, j in ends)
    return truth


def _refuse_probability(edge_probability: float | None, graph: str) -> None:
    if edge_probability is not None:
        raise ValueError(
            f"edge_probability is for 'random' and 'cluster'; {graph} fixes its edges: leave it out."
        )


def _check_graph(graph: "networkx.Graph") -> "networkx.Graph":
    import networkx as nx

    if graph.is_directed() or graph.is_multigraph():
        kind = type(graph).__name__
        raise ValueError(f"The graph must be undirected and simple (networkx.Graph), not a {kind}.")
    if loops := list(nx.nodes_with_selfloops(graph)):
        raise ValueError(f"Node {loops[0]!r} of the graph is linked to itself: remove that edge.")
    if len(graph) < 2:
        raise ValueError(f"The graph must have at least 2 nodes, it has {len(graph)}.")
    names = {node: str(node) for node in graph}
    if len(set(names.values())) < len(names):
        raise ValueError("Two nodes of the graph have the same name as text: rename one.")
    truth = nx.Graph()
    truth.add_nodes_from(names.values())
    truth.add_edges_from((names[a], names[b]) for a, b in graph.edges)
    return truth


def _default_probability(p: int) -> float:
    sizes, probabilities = [10, 50, 100, 200], [0.2, 0.05, 0.02, 0.01]
    if p > sizes[-1]:
        return 2 / p
    return float(np.exp(np.interp(np.log(p), np.log(sizes), np.log(probabilities))))


def _random(p: int, edge_probability: float, rng) -> list:
    i, j = np.triu_indices(p, k=1)
    chosen = rng.random(i.size) < edge_probability
    return list(zip(i[chosen].tolist(), j[chosen].tolist(), strict=True))


def _cluster(p: int, edge_probability: float, rng) -> list:
    block = _blocks(p)
    return [(i, j) for i, j in _random(p, edge_probability, rng) if block[i] == block[j]]


def _blocks(p: int) -> np.ndarray:
    """Return the block of each node: consecutive, of nearly equal size."""
    return np.arange(p) * min(max(2, p // 20), p // 2) // p


def _scale_free(p: int, _, rng) -> list:
    import networkx as nx

    return list(nx.barabasi_albert_graph(p, 1, seed=int(rng.integers(2**31))).edges)


def _hub(p: int, *_) -> list:
    block = _blocks(p)
    centre = np.searchsorted(block, block)
    return [(int(centre[i]), i) for i in range(p) if centre[i] != i]


def _band(p: int, *_) -> list:
    return [(i, j) for i in range(p) for j in range(i + 1, min(i + 3, p))]


def _grid(p: int, *_) -> list:
    width = int(np.ceil(np.sqrt(p)))
    right = [(i, i + 1) for i in range(p - 1) if (i + 1) % width]
    return right + [(i, i + width) for i in range(p - width)]


GRAPHS = {
    "random": _random,
    "cluster": _cluster,
    "scale-free": _scale_free,
    "hub": _hub,
    "band": _band,
    "grid": _grid,
}


def hide_values(values: np.ndarray, missing: float, rng) -> None:
    """Set a share of the cells to NaN, in place, and leave one in each row."""
    n, p = values.shape
    count = round(missing * n * p)
    free = np.ones((n, p), dtype=bool)
    free[np.arange(n), rng.integers(p, size=n)] = False
    if count > free.sum():
        raise ValueError(
            f"missing = {missing} leaves a row without any observed value: at most "
            f"{(p - 1) / p:.3g} with {p} variables."
        )
    values.flat[rng.choice(np.flatnonzero(free), size=count, replace=False)] = np.nan
