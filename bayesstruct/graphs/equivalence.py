"""Markov equivalence: directions of arcs that data without interventions can determine."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.ancestry import blocks, compelled_arcs, essential
from bayesstruct.graphs.digraphs import digraph, from_off_diagonal, off_diagonal, to_dag_matrix
from bayesstruct.graphs.posteriors.base import distinct_rows
from bayesstruct.graphs.posteriors.reading import read_dags

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["cpdag", "essential_graph_probabilities"]


def cpdag(graph: "nx.DiGraph") -> "nx.DiGraph":
    """Return the essential graph (completed partially directed acyclic graph) of a directed one.

    Parameters
    ----------
    graph : networkx.DiGraph
        Directed and acyclic.

    Returns
    -------
    networkx.DiGraph
        On the same nodes. An arc that has this direction in all Markov equivalent graphs is there
        once; an edge whose direction differs among them is **there in both directions**. Arcs carry
        `compelled`, True for the former.

    Raises
    ------
    TypeError
        When `graph` is not a networkx.DiGraph.
    ValueError
        When it has a directed cycle; the message shows one.

    Notes
    -----
    Two directed acyclic graphs describe the same conditional independences, and have the same
    essential graph, exactly when they have the same adjacencies and the same v-structures
    (a -> c <- b with a and b not adjacent) [1]_. Arcs are labelled as in [2]_.

    References
    ----------
    .. [1] Verma and Pearl (1990). Equivalence and synthesis of causal models. UAI 6, 220-227.
    .. [2] Chickering (1995). A transformational characterization of equivalent Bayesian network
       structures. UAI 11, 87-98.

    Examples
    --------
    >>> import networkx as nx
    >>> chain = cpdag(nx.DiGraph([("a", "b"), ("b", "c")]))
    >>> sorted(chain.edges)
    [('a', 'b'), ('b', 'a'), ('b', 'c'), ('c', 'b')]
    >>> sorted(cpdag(nx.DiGraph([("a", "b"), ("c", "b")])).edges)
    [('a', 'b'), ('c', 'b')]
    """
    matrix = to_dag_matrix(graph)
    compelled = compelled_arcs(matrix[None])[0]
    out = digraph(list(graph.nodes), essential(matrix[None])[0])
    names = list(out.nodes)
    for i, j in np.argwhere(matrix):
        sides = [(i, j)] if compelled[i, j] else [(i, j), (j, i)]
        for a, b in sides:
            out.edges[names[a], names[b]]["compelled"] = bool(compelled[i, j])
    return out


def essential_graph_probabilities(
    idata: "xr.DataTree | GraphPosterior", top: int | None = None, *, group: str = "posterior"
) -> "pd.DataFrame":
    """List the Markov equivalence classes that were visited and how often.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.bayesian_network`.
    top : int, optional
        Number of rows to return; all by default.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    pandas.DataFrame
        Most visited first: `arcs` (compelled) and `edges` (of no fixed direction), `graphs`
        (directed acyclic graphs of the class that were visited), `probability` (share of the draws)
        and `key`, from which `graph_from_key` makes the essential graph. ``attrs["n_classes"]`` is
        the number of classes in the draws.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of a Bayesian network, or `top` is not positive.

    Notes
    -----
    For data under interventions the graphs of a class need not be equally probable: then see
    `graph_probabilities`.

    Examples
    --------
    >>> essential_graph_probabilities(idata, top=3)  # doctest: +SKIP
    """
    import pandas as pd

    if top is not None and top < 1:
        raise ValueError(f"`top` must be at least 1, got {top}.")
    posterior = read_dags(idata, group)
    graphs, visits = posterior.dags
    rows = np.concatenate([off_diagonal(essential(graphs[at])) for at in blocks(len(graphs))])
    classes = distinct_rows(rows)
    drawn = np.bincount(classes.index, visits)
    order = np.argsort(-drawn, kind="stable")
    arcs = classes.rows[order].sum(axis=1)
    both = _both_ways(classes.rows[order], len(posterior.variables))
    table = pd.DataFrame(
        {
            "arcs": arcs - 2 * both,
            "edges": both,
            "graphs": classes.count[order],
            "probability": drawn[order] / posterior.n_draws,
            "key": [classes.packed[k].tobytes().hex() for k in order],
        }
    )[:top]
    table.attrs["n_classes"] = len(drawn)
    return table


def _both_ways(rows: np.ndarray, p: int) -> np.ndarray:
    """Count the pairs that are joined in both directions."""
    matrices = from_off_diagonal(rows, p)
    return (matrices & matrices.swapaxes(1, 2)).sum(axis=(1, 2)) // 2
