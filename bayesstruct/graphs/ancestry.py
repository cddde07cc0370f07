"""Relations in many directed acyclic graphs at once: bit rows, no loop over graphs."""

from collections.abc import Iterator

import numpy as np

_BITS = 64
_BLOCK = 1024  # graphs at a time: their bit rows stay in the cache


def ancestor_counts(graphs: np.ndarray, visits: np.ndarray) -> np.ndarray:
    """Sum over graphs of the ancestor relation.

    Parameters
    ----------
    graphs : ndarray of bool, shape (n_graphs, p, p)
        Directed acyclic graphs, rows parents.
    visits : ndarray, shape (n_graphs,)
        Weight of each graph.

    Returns
    -------
    ndarray, shape (p, p)
        At [i, j] the weight of the graphs with a directed path from i to j.
    """
    return _weighted_sum(graphs, visits, descendants)


def blanket_counts(graphs: np.ndarray, visits: np.ndarray) -> np.ndarray:
    """Sum over graphs of the Markov blankets; as `ancestor_counts`, symmetric."""
    return _weighted_sum(graphs, visits, blankets)


def descendants(graphs: np.ndarray) -> np.ndarray:
    """Mark the descendants of each node, shape (n_graphs, p, p); no node is its own.

    Warshall's algorithm on rows of bits: a node that reaches k reaches all that k reaches.
    """
    p = graphs.shape[-1]
    rows = _pack(graphs)
    for k in range(p):
        rows |= rows[:, k, None, :] & _has(rows, k)
    return _unpack(rows, p)


def blankets(graphs: np.ndarray) -> np.ndarray:
    """Mark the Markov blanket of each node: parents, children and the children's other parents."""
    p = graphs.shape[-1]
    children, parents = _pack(graphs), _pack(graphs.swapaxes(1, 2))
    rows = children | parents
    for k in range(p):
        rows |= parents[:, k, None, :] & _has(children, k)
    out = _unpack(rows, p)
    out[:, np.arange(p), np.arange(p)] = False
    return out


def compelled_arcs(graphs: np.ndarray) -> np.ndarray:
    r"""Mark the arcs that are in every graph of the Markov equivalence class.

    Parameters
    ----------
    graphs : ndarray of bool, shape (n_graphs, p, p)
        Directed acyclic graphs, rows parents.

    Returns
    -------
    ndarray of bool, shape (n_graphs, p, p)

    Notes
    -----
    The labelling of Chickering (1995), for all graphs in step. Nodes are visited in topological
    order. With x the last parent of y in that order, all arcs into y are compelled when y has a
    parent that x lacks, or x a compelled parent that y lacks; otherwise those parents of y are
    that are compelled parents of x. (One look at x decides: his loop over the arcs into y labels
    all that are left in its first round.)

    References
    ----------
    .. [1] Chickering (1995). A transformational characterization of equivalent Bayesian network
       structures. UAI 11, 87-98, section 3.
    """
    every = np.arange(len(graphs))
    # An ancestor has fewer ancestors than its descendants.
    order = np.argsort(descendants(graphs).sum(axis=1), axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    parents = np.ascontiguousarray(graphs.swapaxes(1, 2))
    compelled = np.zeros_like(parents)
    for y in order.T:
        of_y = parents[every, y]
        x = np.where(of_y, rank, -1).argmax(axis=1)
        of_x, forced = parents[every, x], compelled[every, x]
        others = of_y & ~of_x
        others[every, x] = False
        whole = others.any(axis=1) | (forced & ~of_y).any(axis=1)
        compelled[every, y] = of_y & (forced | whole[:, None])
    return compelled.swapaxes(1, 2)


def essential(graphs: np.ndarray) -> np.ndarray:
    """Essential graphs: compelled arcs one way, reversible ones both ways; shape as `graphs`."""
    reversible = graphs & ~compelled_arcs(graphs)
    return graphs | reversible.swapaxes(1, 2)


def blocks(n: int) -> Iterator[slice]:
    """Cut n graphs into pieces whose temporary arrays are small."""
    return (slice(start, start + _BLOCK) for start in range(0, n, _BLOCK))


def _weighted_sum(graphs: np.ndarray, visits: np.ndarray, relation) -> np.ndarray:
    p = graphs.shape[-1]
    total = np.zeros(p * p)
    for block in blocks(len(graphs)):
        total += visits[block].astype(float) @ relation(graphs[block]).reshape(-1, p * p)
    return total.reshape(p, p)


def _pack(graphs: np.ndarray) -> np.ndarray:
    """Rows as 64-bit words, (n_graphs, p, words)."""
    n, p, _ = graphs.shape
    words = -(-p // _BITS)
    bits = np.zeros((n, p, words * _BITS), bool)
    bits[..., :p] = graphs
    return np.packbits(bits, axis=-1, bitorder="little").view("<u8")


def _unpack(rows: np.ndarray, p: int) -> np.ndarray:
    return np.unpackbits(rows.view(np.uint8), axis=-1, bitorder="little", count=p).view(bool)


def _has(rows: np.ndarray, k: int) -> np.ndarray:
    """All ones where a row has bit k, zero elsewhere: (n_graphs, p, 1)."""
    bit = (rows[..., k // _BITS] >> np.uint64(k % _BITS)) & np.uint64(1)
    return (np.uint64(0) - bit)[..., None]
