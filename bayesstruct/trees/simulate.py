"""Tables from a tree some of whose nodes are hidden."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import (
    choice,
    generator,
    number,
    numbers,
    refuse_given,
    whole_number,
)
from bayesstruct.data.errors import count

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = ["LatentTreeSimulation", "latent_tree"]

KINDS = ("gaussian", "discrete")
SHAPES = ("random", "star", "double_star", "chain", "leaves")


@dataclass(frozen=True, eq=False, repr=False)
class LatentTreeSimulation:
    """A simulated table with the tree behind it.

    Attributes
    ----------
    data : pandas.DataFrame, shape (n, p)
        Floats for ``"gaussian"``, 0, 1, ... for ``"discrete"``.
    graph : networkx.Graph
        The true tree: nodes with ``hidden``, edges with their ``correlation`` as ``weight`` and their information ``distance``.
    hidden : pandas.DataFrame, shape (n, hidden nodes)
        Values of the hidden nodes.
    """

    data: "pd.DataFrame"
    graph: "nx.Graph"
    hidden: "pd.DataFrame"

    def __repr__(self) -> str:
        n, p = self.data.shape
        return f"LatentTreeSimulation({n:,} x {p:,} table, {count(self.hidden.shape[1], 'hidden node')})"


def latent_tree(
    n: int,
    p: int = 10,
    *,
    kind: str = "gaussian",
    shape: str | None = None,
    graph: "nx.Graph | None" = None,
    correlations: tuple[float, float] = (0.4, 0.8),
    states: int | None = None,
    random_seed: int | np.random.Generator | None = None,
) -> LatentTreeSimulation:
    r"""Simulate a table of columns that depend on each other through a tree with hidden nodes.

    Parameters
    ----------
    n : int
        Number of rows.
    p : int, default 10
        Number of columns, named ``x0``, ``x1``, ..., at least 3. Not used if `graph` is given.
    kind : {"gaussian", "discrete"}
        ``"gaussian"``: normal numbers with variance 1. ``"discrete"``: states 0, 1, ..., equally probable; a node has the state of its neighbour with
        probability :math:`1 - (K - 1) \theta` and each other one with :math:`\theta`.
    shape : {"random", "star", "double_star", "chain", "leaves"}, optional
        ``"random"``, the default: a random tree in which every hidden node has three neighbours or more and some columns are inner nodes; ``"leaves"``: the same with columns as leaves only;
        ``"star"``, ``"double_star"``: one or two hidden nodes whose neighbours are all columns, in turn; ``"chain"``: hidden nodes in a row, each with
        one column, and one more at both ends (a hidden Markov model).
    graph : networkx.Graph, optional
        A tree in place of `shape`; nodes whose attribute ``hidden`` is true are hidden.
    correlations : pair of float, default (0.4, 0.8)
        Smallest and largest absolute correlation of neighbours, uniform between them: for states :math:`1 - K \theta`. Signs of
        numbers are fair coins.
    states : int, optional
        Number K of states of ``"discrete"`` only, 2 by default.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    LatentTreeSimulation

    Raises
    ------
    TypeError
        If `graph` is not a networkx.Graph.
    ValueError
        If `graph` is no tree, or an option is unknown, out of range or does not apply.

    Examples
    --------
    >>> table = latent_tree(100, p=6, shape="double_star", random_seed=1)
    >>> table
    LatentTreeSimulation(100 x 6 table, 2 hidden nodes)
    >>> sorted(table.graph["h1"])
    ['h2', 'x0', 'x2', 'x4']
    """
    import pandas as pd

    choice("kind", kind, KINDS)
    if kind == "gaussian":
        refuse_given("kind='discrete'", states=states)
    n, k = whole_number("n", n, 1), 2 if states is None else whole_number("states", states, 2)
    low, high = _bounds(correlations)
    rng = generator(random_seed)
    if graph is None:
        shape = "random" if shape is None else choice("shape", shape, SHAPES)
        tree = _shaped(shape, whole_number("p", p, 4 if shape == "chain" else 3), rng)
    else:
        refuse_given("a tree that is drawn, and here is a `graph`", shape=shape)
        tree = _checked(graph)
    tree.graph["forest"] = True
    values: dict[Any, np.ndarray] = {}
    for node, parent in _outward(tree):
        if parent is None:
            values[node] = rng.normal(size=n) if kind == "gaussian" else rng.integers(0, k, n)
            continue
        r = rng.uniform(low, high)
        if kind == "gaussian":
            r *= rng.choice([-1.0, 1.0])
            values[node] = r * values[parent] + np.sqrt(1.0 - r * r) * rng.normal(size=n)
        else:
            kept = rng.random(n) < r
            values[node] = np.where(kept, values[parent], rng.integers(0, k, n))
        steps = k - 1 if kind == "discrete" else 1
        tree.edges[parent, node].update(weight=float(r), distance=float(-steps * np.log(abs(r))))
    seen = [node for node, unseen in tree.nodes(data="hidden") if not unseen]
    unseen = [node for node in tree if node not in set(seen)]
    return LatentTreeSimulation(
        data=pd.DataFrame({node: values[node] for node in seen}),
        graph=tree,
        hidden=pd.DataFrame({node: values[node] for node in unseen}, index=range(n)),
    )


def _bounds(correlations) -> list[float]:
    """Check the smallest and the largest correlation."""
    pair = numbers("correlations", correlations)
    if pair.shape != (2,):
        raise ValueError(
            "`correlations` is the smallest and the largest correlation, such as (0.4, 0.8); for one give it twice"
        )
    low, high = (number("correlations", own, above=0, most=1) for own in pair)
    if low > high:
        raise ValueError("`correlations` has a smaller second number than first one; exchange them")
    return [low, high]


def _checked(graph: Any) -> "nx.Graph":
    """Return a copy of a tree with an attribute for hidden nodes."""
    import networkx as nx

    if not isinstance(graph, nx.Graph) or graph.is_directed():
        raise TypeError(f"`graph` must be an undirected networkx.Graph, not {type(graph).__name__}")
    if len(graph) < 2 or not nx.is_tree(graph):
        raise ValueError("`graph` must be a tree of two nodes or more")
    names = [str(node) for node in graph]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"`graph` has two nodes whose name is {twice[0]!r}; rename one, columns are told apart by the text of their names"
        )
    tree: nx.Graph = nx.Graph()
    for node, unseen in graph.nodes(data="hidden"):
        tree.add_node(node, hidden=bool(unseen))
    tree.add_edges_from(graph.edges)
    if sum(not unseen for _, unseen in tree.nodes(data="hidden")) < 2:
        raise ValueError("`graph` has fewer than two nodes that are not hidden")
    return tree


def _shaped(shape: str, p: int, rng: np.random.Generator) -> "nx.Graph":
    """Return a tree of p columns and of hidden nodes."""
    import networkx as nx

    if shape in ("random", "leaves"):
        return _random_tree(p, rng, inner=shape == "random")
    tree: nx.Graph = nx.Graph()
    tree.add_nodes_from([f"x{j}" for j in range(p)], hidden=False)
    count = {"star": 1, "double_star": 2, "chain": p - 2}[shape]
    tree.add_nodes_from([f"h{j + 1}" for j in range(count)], hidden=True)
    tree.add_edges_from((f"h{j}", f"h{j + 1}") for j in range(1, count))
    for j in range(p):
        up = min(max(j - 1, 0), count - 1) if shape == "chain" else j % count
        tree.add_edge(f"h{up + 1}", f"x{j}")
    return tree


def _random_tree(p: int, rng: np.random.Generator, inner: bool) -> "nx.Graph":
    """Add columns one by one: to an edge, to a hidden node or, if `inner`, to a column."""
    import networkx as nx

    tree: nx.Graph = nx.Graph()
    tree.add_nodes_from([f"x{j}" for j in range(p)], hidden=False)
    tree.add_edges_from(("h1", f"x{j}") for j in range(3))
    hidden = 1
    for j in range(3, p):
        move = rng.choice(3, p=[0.5, 0.25, 0.25] if inner else [0.6, 0.4, 0.0])
        if move == 0:
            edges = sorted(tuple(sorted(edge)) for edge in tree.edges)
            a, b = edges[rng.integers(len(edges))]
            hidden += 1
            tree.remove_edge(a, b)
            tree.add_edges_from((f"h{hidden}", node) for node in (a, b, f"x{j}"))
        elif move == 1:
            tree.add_edge(f"h{rng.integers(1, hidden + 1)}", f"x{j}")
        else:
            tree.add_edge(f"x{rng.integers(j)}", f"x{j}")
    for h in range(1, hidden + 1):
        tree.nodes[f"h{h}"]["hidden"] = True
    return tree


def _outward(tree: "nx.Graph") -> list[tuple[Any, Any]]:
    """Nodes, each after its parent; None for the first."""
    import networkx as nx

    first = next(iter(tree))
    return [(first, None), *((child, up) for up, child in nx.bfs_edges(tree, first))]
