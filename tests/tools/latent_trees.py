"""Random trees with hidden nodes, and when two of them are the same."""

import networkx as nx
import numpy as np


def random_tree(rng):
    """Edges with lengths of a tree whose hidden nodes have three neighbours or more, and its number of columns, which come first."""
    while True:
        n = int(rng.integers(6, 16))
        graph = nx.Graph([(i, int(rng.integers(0, i))) for i in range(1, n)])
        hidden = [i for i in graph if graph.degree(i) > 2 and rng.random() < 0.8]
        seen = [i for i in graph if i not in hidden]
        if len(seen) > 2 and hidden:
            break
    seen = [seen[k] for k in rng.permutation(len(seen))]
    place = {node: k for k, node in enumerate([*seen, *hidden])}
    lines = [(place[a], place[b], -np.log(rng.uniform(0.2, 0.8))) for a, b in graph.edges]
    return lines, len(seen)


def splits(lines, m):
    """How each edge divides the first m nodes, with its length; edges without an effect on them would add up."""
    graph, found = nx.Graph(), {}
    graph.add_weighted_edges_from(lines)
    for a, b, length in lines:
        graph.remove_edge(a, b)
        side = frozenset(i for i in nx.node_connected_component(graph, a) if i < m)
        graph.add_edge(a, b)
        other = frozenset(range(m)) - side
        key = min(side, other, key=lambda own: (len(own), sorted(own)))
        found[key] = found.get(key, 0.0) + length
    return found


def same_tree(one, other, m, atol=1e-6):
    """Whether two trees have the same splits, nodes and lengths."""
    a, b = splits(one, m), splits(other, m)
    return (
        len(one) == len(other) and a.keys() == b.keys() and all(abs(a[k] - b[k]) < atol for k in a)
    )
