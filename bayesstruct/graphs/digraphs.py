"""Directed graphs as networkx graphs and as matrices whose rows are parents."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import networkx as nx


def to_matrix(graph: "nx.DiGraph", names: list) -> np.ndarray:
    """Adjacency of a graph, boolean (p, p), in the order of `names`."""
    position = {name: i for i, name in enumerate(names)}
    out = np.zeros((len(names), len(names)), bool)
    for a, b in graph.edges():
        out[position[a], position[b]] = True
    return out


def to_dag_matrix(graph: "nx.DiGraph", name: str = "The graph") -> np.ndarray:
    """Adjacency of a directed acyclic graph, in the order of its nodes.

    Raises
    ------
    TypeError
        When it is not a networkx.DiGraph.
    ValueError
        When it has a directed cycle.
    """
    import networkx as nx

    if not isinstance(graph, nx.DiGraph):
        raise TypeError(f"{name} must be a networkx.DiGraph, got {type(graph).__name__}.")
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [a for a, _ in nx.find_cycle(graph)]
        shown = " -> ".join(map(str, [*cycle, cycle[0]]))
        raise ValueError(f"{name} has a directed cycle: {shown}. It must be acyclic.")
    return to_matrix(graph, list(graph.nodes))


def digraph(names: list, matrix: np.ndarray) -> "nx.DiGraph":
    """Graph on `names` with the arcs of a matrix."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((names[i], names[j]) for i, j in np.argwhere(matrix))
    return graph


def off_diagonal(matrices: np.ndarray) -> np.ndarray:
    """Entries off the diagonal, row by row: (..., p, p) to (..., p (p - 1))."""
    return matrices[..., ~np.eye(matrices.shape[-1], dtype=bool)]


def from_off_diagonal(rows: np.ndarray, p: int) -> np.ndarray:
    """Undo `off_diagonal`, with zeros on the diagonal."""
    out = np.zeros((*rows.shape[:-1], p, p), rows.dtype)
    out[..., ~np.eye(p, dtype=bool)] = rows
    return out


def without_cycles(parents: np.ndarray, children: np.ndarray, p: int) -> np.ndarray:
    """Which arcs of a list to keep, so that they form no directed cycle.

    Parameters
    ----------
    parents, children : ndarray of int, shape (n_arcs,)
        Ends of the arcs, most important first.
    p : int
        Number of nodes.

    Returns
    -------
    ndarray of bool, shape (n_arcs,)
        Arcs are taken in their order, and one is left out when the arcs taken before have a path
        from its child to its parent. It is then the least important arc of the cycle that it
        would close.
    """
    reach = np.eye(p, dtype=bool)
    kept = np.zeros(len(parents), bool)
    for at, (i, j) in enumerate(zip(parents, children, strict=True)):
        if not reach[j, i]:
            kept[at] = True
            reach |= np.outer(reach[:, i], reach[j])
    return kept
