"""Directed acyclic graphs: their topological orders, and all graphs of a few variables.

Graphs are adjacency matrices with parents as rows, int8.

References
----------
Robinson, R. W. (1973). Counting labeled acyclic digraphs. In *New Directions in the Theory of Graphs*,
239-273.
"""

from functools import cache, lru_cache
from math import comb
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["all_dags", "is_acyclic", "number_of_dags", "topological_order", "topological_orders"]


@cache
def number_of_dags(d: int) -> int:
    """Count the directed acyclic graphs on d labelled variables: 1, 3, 25, 543, 29281, ...

    Raises
    ------
    ValueError
        If `d` is negative.
    """
    if d < 0:
        raise ValueError(f"the number of variables must not be negative, it is {d}")
    counts = [1]
    for n in range(1, d + 1):
        terms = (
            (-1) ** (k + 1) * comb(n, k) * 2 ** (k * (n - k)) * counts[n - k]
            for k in range(1, n + 1)
        )
        counts.append(sum(terms))
    return counts[d]


def topological_order(adjacency: "ArrayLike") -> np.ndarray:
    """Order in which each variable comes after its parents; int64, (d,).

    Of those that may come next the first one comes next.

    Raises
    ------
    ValueError
        If the graph has a cycle.
    """
    graph = np.asarray(adjacency) != 0
    order = _peel(graph)
    if len(order) < len(graph):
        cyclic = np.setdiff1d(np.arange(len(graph)), order).tolist()
        raise ValueError(f"the graph has a cycle; it is among the variables {cyclic}")
    return np.array(order, np.int64)


def is_acyclic(adjacency: "ArrayLike") -> bool:
    """Whether a directed graph has no cycle (nor a loop)."""
    graph = np.asarray(adjacency) != 0
    return len(_peel(graph)) == len(graph)


def _peel(graph):
    left = graph.sum(axis=0)
    ready = np.flatnonzero(left == 0).tolist()
    order = []
    while ready:
        j = ready.pop(0)
        order.append(j)
        left[graph[j]] -= 1
        fresh = np.flatnonzero(graph[j] & (left == 0))
        ready = sorted([*ready, *fresh.tolist()])
    return order


@lru_cache(maxsize=8)
def all_dags(d: int) -> np.ndarray:
    """Every directed acyclic graph on d <= 5 variables; int8, (graphs, d, d), read-only.

    Raises
    ------
    ValueError
        If there are more than five variables, or none.
    """
    if not 1 <= d <= 5:
        raise ValueError(f"graphs are enumerated for 1 to 5 variables, not for {d}")
    codes = np.arange(2 ** (d * (d - 1)), dtype=np.int32)
    parents = np.zeros((d, len(codes)), np.int8)
    for i in range(d):
        bits = (codes >> i * (d - 1)) & ((1 << d - 1) - 1)
        low = (1 << i) - 1
        parents[i] = (bits & low) | ((bits & ~low) << 1)
    alive = np.full(len(codes), (1 << d) - 1, np.int8)
    for _ in range(d):
        for i in range(d):
            alive = np.where(parents[i] & alive == 0, alive & np.int8(~(1 << i)), alive)
    kept = parents[:, alive == 0]
    graphs = (kept.T[:, None, :] >> np.arange(d, dtype=np.int8)[:, None]) & 1
    graphs.flags.writeable = False
    return graphs


def topological_orders(graphs: "ArrayLike") -> np.ndarray:
    """Count the topological orders of each of some graphs on a few variables.

    Parameters
    ----------
    graphs : (graphs, d, d) array_like
        Takes memory for ``graphs * 2**d`` integers.

    Returns
    -------
    numpy.ndarray
        (graphs,) int64; 0 for a graph with a cycle.
    """
    graphs = np.asarray(graphs)
    d = graphs.shape[1]
    parents = (graphs.astype(np.int64) << np.arange(d)[:, None]).sum(axis=1)
    counts = np.zeros((1 << d, len(graphs)), np.int64)
    counts[0] = 1
    for mask in range(1, 1 << d):
        for i in range(d):
            if mask >> i & 1:
                rest = mask ^ (1 << i)
                counts[mask] += np.where(parents[:, i] & ~rest == 0, counts[rest], 0)
    return counts[-1]
