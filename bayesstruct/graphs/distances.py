"""Distances between directed graphs: by their adjacencies, and by their causal statements."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.ancestry import descendants
from bayesstruct.graphs.digraphs import to_dag_matrix, to_matrix

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["structural_hamming_distance", "structural_intervention_distance"]


def structural_hamming_distance(a: "nx.Graph", b: "nx.Graph") -> int:
    """Count the pairs of nodes that two graphs join differently.

    Parameters
    ----------
    a, b : networkx.DiGraph or networkx.Graph
        Over the same nodes, in any order: directed acyclic graphs, essential graphs as `cpdag`
        makes them (an undirected edge is there in both directions), or undirected graphs.

    Returns
    -------
    int

    Raises
    ------
    TypeError
        When one is not a graph.
    ValueError
        When the nodes differ.

    Notes
    -----
    A pair of nodes is not joined, joined one way, the other way, or by an undirected edge, and
    counts one when that differs: one for an arc that is missing, one for an extra arc, and one (not
    two) for an arc that is reversed, or undirected in one graph only. Take the distance of
    essential graphs where the data have no interventions [1]_.

    References
    ----------
    .. [1] Tsamardinos, Brown and Aliferis (2006). The max-min hill-climbing Bayesian network
       structure learning algorithm. Machine Learning 65, 31-78, section 7.

    Examples
    --------
    >>> import networkx as nx
    >>> truth = nx.DiGraph([("a", "b"), ("b", "c")])
    >>> structural_hamming_distance(truth, nx.DiGraph([("b", "a"), ("b", "c"), ("a", "c")]))
    2
    """
    names = _shared_nodes(a, b)
    first, second = (to_matrix(graph.to_directed(as_view=True), names) for graph in (a, b))
    return int(joined_differently(first, second))


def structural_intervention_distance(true: "nx.DiGraph", estimated: "nx.DiGraph") -> int:
    r"""Count the effects of interventions that an estimated graph gets wrong.

    Parameters
    ----------
    true, estimated : networkx.DiGraph
        Directed acyclic graphs over the same nodes, in any order.

    Returns
    -------
    int
        Between 0 and p (p - 1): number of ordered pairs (i, j) for which the effect on j of
        setting i, worked out by adjusting for the parents of i in `estimated`, is wrong for some
        distribution that is Markov to `true`.

    Raises
    ------
    TypeError
        When one is not a networkx.DiGraph.
    ValueError
        When one has a directed cycle, or the nodes differ.

    Notes
    -----
    The structural intervention distance of Peters and Bühlmann [1]_. Not symmetric, and 0 exactly
    when each parent set of `estimated` is a valid adjustment set in `true`, for example when
    `estimated` has only extra arcs. With Z the parents of i in `estimated`, a pair counts (their
    proposition 6)

    - if j is in Z: when i is an ancestor of j in `true`;
    - otherwise: when Z has a descendant of a node other than i on a directed path from i to j,
      or leaves open a path from i to j that is not directed.

    One search of the open paths for each i makes this O(p (p + arcs)).

    References
    ----------
    .. [1] Peters and Bühlmann (2015). Structural intervention distance for evaluating causal
       graphs. Neural Computation 27, 771-799.

    Examples
    --------
    >>> import networkx as nx
    >>> truth = nx.DiGraph([("a", "b")])
    >>> structural_intervention_distance(truth, nx.DiGraph([("b", "a")]))
    2
    """
    matrix = to_dag_matrix(true, "The true graph")
    other = to_dag_matrix(estimated, "The estimated graph")
    _shared_nodes(true, estimated)
    order = [list(estimated.nodes).index(name) for name in true.nodes]
    return int(wrong_effects(matrix, other[np.ix_(order, order)]).sum())


def expected_differences(p: np.ndarray, q: np.ndarray) -> float:
    """Return the expected number of lines in which independent graphs with these probabilities of lines differ."""
    return float((p + q - 2 * p * q).sum())


def joined_differently(graphs: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Structural Hamming distance of adjacencies (..., p, p) to one adjacency, shape (...)."""
    apart = graphs != reference
    apart |= apart.swapaxes(-1, -2)
    return apart.sum(axis=(-2, -1)) // 2


def wrong_effects(true: np.ndarray, estimated: np.ndarray) -> np.ndarray:
    """Mark the pairs whose effect is wrong, boolean (p, p), for adjacencies of acyclic graphs."""
    below = descendants(true[None])[0] | np.eye(len(true), dtype=bool)
    return np.array([_wrong_from(i, true, below, estimated[:, i]) for i in range(len(true))])


def _wrong_from(i: int, graph: np.ndarray, below: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Nodes on which the effect of setting i is wrong, adjusting for `given`; boolean (p,)."""
    above_given = below[:, given].any(axis=1)
    harmful = below[i] & above_given  # descendants of i that no directed path may pass
    harmful[i] = False
    wrong = below[harmful].any(axis=0) | _open_detours(i, graph, given, above_given)
    wrong[given] = below[i, given]
    wrong[i] = False
    return wrong


def _open_detours(i: int, graph: np.ndarray, given: np.ndarray, above_given: np.ndarray):
    """Nodes that i is linked to by an open path that is not directed away from i.

    A walk is followed by its last node, whether it came there along the arrow, and whether it has
    gone along all arrows so far. It passes a node that is not given, or a collider with a given
    descendant. A walk that comes back to a node can stand for a directed path only where that path
    passes an ancestor of a given node, and those pairs are wrong already.
    """
    parents = [np.flatnonzero(column).tolist() for column in graph.T]
    children = [np.flatnonzero(row).tolist() for row in graph]
    found = np.zeros(len(graph), bool)
    waiting = [(c, True, True) for c in children[i]] + [(q, False, False) for q in parents[i]]
    seen = set(waiting)
    while waiting:
        node, along, directed = waiting.pop()
        found[node] |= not directed
        after = []
        if not given[node]:
            after += [(c, True, directed) for c in children[node]]
        if above_given[node] if along else not given[node]:
            after += [(q, False, False) for q in parents[node]]
        fresh = [state for state in after if state[0] != i and state not in seen]
        seen.update(fresh)
        waiting += fresh
    return found


def _shared_nodes(a: "nx.Graph", b: "nx.Graph") -> list:
    import networkx as nx

    for graph in (a, b):
        if not isinstance(graph, nx.Graph):
            raise TypeError(f"Expected a networkx graph, got {type(graph).__name__}.")
    if different := sorted(map(str, set(a.nodes) ^ set(b.nodes))):
        raise ValueError(
            f"The graphs have different nodes: {', '.join(different)}. Add nodes without arcs with "
            "graph.add_nodes_from(names)."
        )
    return list(a.nodes)
