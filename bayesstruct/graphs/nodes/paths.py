"""Betweenness and closeness: shortest paths of many weighted graphs, compiled."""

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = ["shortest_paths"]

#: Relative difference up to which two paths are equally long: sums of the same numbers differ by rounding.
_EQUAL = 1e-12


@kernel
def shortest_paths(length, source, target, p, directed):
    """Follow all shortest paths of each graph.

    Parameters
    ----------
    length : (n, lines) ndarray of float
        Positive length of each line in each graph, infinite where there is none.
    source, target : (lines,) ndarray of int
        Ends of the lines.
    p : int
        Number of nodes.
    directed : bool
        Whether lines lead from source to target only.

    Returns
    -------
    between : (n, p) ndarray of float
        Sum over ordered pairs of other nodes of the share of their shortest paths that pass through the node
        (Brandes 2001, A faster algorithm for betweenness centrality. Journal of Mathematical Sociology 25, 163-177).
    reached, total : (n, 2, p) ndarray of float
        Number of other nodes that paths lead to from the node [0], and that paths lead to the node from [1]; and the
        sums of their distances.
    """
    n = len(length)
    between = np.zeros((n, p))
    reached, total = np.zeros((n, 2, p)), np.zeros((n, 2, p))
    for k in range(n):
        ahead = _neighbours(length[k], source, target, p, directed)
        behind = _neighbours(length[k], target, source, p, directed)
        for start in range(p):
            distance, order = _distances(ahead, start, p)
            _add_dependencies(behind, distance, order, between[k])
            for node in order[1:]:
                reached[k, 0, start] += 1.0
                total[k, 0, start] += distance[node]
                reached[k, 1, node] += 1.0
                total[k, 1, node] += distance[node]
    return between, reached, total


@inner
def _neighbours(length, tail, head, p, directed):
    """List the nodes that lines lead to from each node: where each list begins, nodes, lengths."""
    begin = np.zeros(p + 1, np.int64)
    for line in range(len(length)):
        if length[line] < np.inf:
            begin[tail[line] + 1] += 1
            if not directed:
                begin[head[line] + 1] += 1
    begin = np.cumsum(begin)
    node, far, place = np.empty(begin[p], np.int64), np.empty(begin[p]), begin.copy()
    for line in range(len(length)):
        if length[line] < np.inf:
            a, b = tail[line], head[line]
            node[place[a]], far[place[a]] = b, length[line]
            place[a] += 1
            if not directed:
                node[place[b]], far[place[b]] = a, length[line]
                place[b] += 1
    return begin, node, far


@inner
def _distances(ahead, start, p):
    """Distances from a node (Dijkstra), and the nodes that are reached, nearest first."""
    begin, node, far = ahead
    distance = np.full(p, np.inf)
    distance[start] = 0.0
    # Nodes before `count` are done, those from there to `known` have a distance that may fall: looking through these
    # few is faster than a heap up to thousands of nodes
    order, seen = np.empty(p, np.int64), np.zeros(p, np.bool_)
    order[0], seen[start], count, known = start, True, 0, 1
    while count < known:
        best = count
        for k in range(count + 1, known):
            if distance[order[k]] < distance[order[best]]:
                best = k
        here = order[best]
        order[best], order[count] = order[count], here
        count += 1
        for k in range(begin[here], begin[here + 1]):
            if not seen[node[k]]:
                seen[node[k]] = True
                order[known] = node[k]
                known += 1
            distance[node[k]] = min(distance[node[k]], distance[here] + far[k])
    return distance, order[:count]


@inner
def _add_dependencies(behind, distance, order, between):
    """Add the shares of paths from the first node of an order that pass through each node."""
    begin, node, far = behind
    p = len(distance)
    place = np.full(p, p)  # in the order; unreached nodes come last
    place[order] = np.arange(len(order))
    paths, share = np.zeros(p), np.zeros(p)
    paths[order[0]] = 1.0
    for w in order[1:]:
        for k in range(begin[w], begin[w + 1]):
            if _is_before(place, distance, node[k], w, far[k]):
                paths[w] += paths[node[k]]
    for w in order[:0:-1]:
        for k in range(begin[w], begin[w + 1]):
            v = node[k]
            if _is_before(place, distance, v, w, far[k]):
                share[v] += paths[v] / paths[w] * (1.0 + share[w])
        between[w] += share[w]


@inner
def _is_before(place, distance, v, w, far):
    """Whether a shortest path to w has v as its last node but one."""
    if place[v] >= place[w]:
        return False
    return distance[v] + far - distance[w] <= _EQUAL * distance[w]
