"""Variables whose parents differ between good graphs, and that a Markov chain has to change at once."""

import itertools

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.solvers.parent_search import good_network, log_weight, near_best

if TYPE_CHECKING:
    from bayesstruct.networks.exact.problem import NetworkProblem
    from bayesstruct.networks.kernels.parent_tables import ParentTables

__all__ = ["local_modes", "nearest_equivalent", "switching_blocks"]

_SEED = 20170  # blocks are part of the sampler: they must not depend on a chain
_SEARCHES = 20


def local_modes(problem: "NetworkProblem", tables: "ParentTables") -> list[np.ndarray]:
    """Graphs where single searches from random orders end, except those far below the best one.

    Parameters
    ----------
    problem : NetworkProblem
    tables : ParentTables

    Returns
    -------
    list of (d, d) numpy.ndarray
        int8; 1 at (parent, child).
    """
    from bayesstruct.networks.kernels.order_search import best_graph

    rng, found = np.random.default_rng(_SEED), []
    for _ in range(_SEARCHES):
        if hasattr(problem.score, "families"):
            _, graph = good_network(problem, rng, climbs=1)
        else:
            graph, _, _ = best_graph(tables, rng, climbs=1)
        found.append((log_weight(problem, graph), graph))
    return near_best(found)


def switching_blocks(graphs: list[np.ndarray], most: int) -> list[np.ndarray]:
    """Blocks of variables whose parents have to change for one graph to become another.

    Two graphs often differ in several places that have nothing to do with each other: arcs that are in one of them
    only, joined where they share a variable. The variables that have other parents in one place are a
    block. Of equivalent graphs the nearest are compared.

    Parameters
    ----------
    graphs : list of (d, d) int array
        Acyclic; 1 at (parent, child).
    most : int
        Maximum number of variables in a block; larger ones are left out.

    Returns
    -------
    list of numpy.ndarray
        int64, increasing, each block once.
    """
    import networkx as nx

    blocks = set()
    for first, other in itertools.combinations(graphs, 2):
        different = np.asarray(first, bool) != np.asarray(nearest_equivalent(other, first), bool)
        places = nx.from_numpy_array(different | different.T)
        for place in nx.connected_components(places):
            block = tuple(sorted(int(j) for j in place if different[:, j].any()))
            if 2 <= len(block) <= most:
                blocks.add(block)
    return [np.array(block, np.int64) for block in sorted(blocks)]


def nearest_equivalent(graph: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Reverse covered arcs of a graph as long as that brings it nearer to another one.

    An arc is covered if its ends have the same other parents; its reversal gives an equivalent graph, and a graph
    that is equivalent to the target ends as the target (Chickering 1995).

    Parameters
    ----------
    graph, target : (d, d) int array
        Acyclic; 1 at (parent, child).

    Returns
    -------
    (d, d) numpy.ndarray
        int8.

    References
    ----------
    Chickering, D. M. (1995). A transformational characterization of equivalent Bayesian network structures.
    *UAI*, 87-98.
    """
    graph, changed = np.array(graph, np.int8), True
    while changed:
        changed = False
        for i, j in np.argwhere((graph == 1) & (np.asarray(target).T == 1)):
            parents = graph[:, j].copy()
            parents[i] = 0
            if (parents == graph[:, i]).all():
                graph[i, j], graph[j, i], changed = 0, 1, True
    return graph
