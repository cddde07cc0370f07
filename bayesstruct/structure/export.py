"""Graphs for other programs: Gephi, Cytoscape, igraph, a spreadsheet."""

from pathlib import Path
from typing import TYPE_CHECKING

from bayesstruct.structure.graphs import to_networkx

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["write_edge_list", "write_graphml"]


def write_graphml(graph_or_idata, path) -> Path:
    """Write a graph as GraphML.

    Parameters
    ----------
    graph_or_idata : networkx.Graph or xarray.DataTree
        A graph, or a result of a graph model: then all its edges with probability, weight and Bayes
        factor.
    path : str or Path
        File to write.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> write_graphml(median_graph(idata), "network.graphml")  # doctest: +SKIP
    """
    import networkx as nx

    # the plain XML writer, not lxml's: the same file on every machine
    nx.write_graphml_xml(_as_graph(graph_or_idata), path)
    return Path(path)


def write_edge_list(graph_or_idata, path) -> Path:
    """Write the edges as a comma-separated table.

    Parameters
    ----------
    graph_or_idata : networkx.Graph or xarray.DataTree
        A graph, or a result of a graph model: then all its edges.
    path : str or Path
        File to write.

    Returns
    -------
    pathlib.Path

    Notes
    -----
    Columns source, target and the attributes of the edges. Variables without an edge are not in
    such a list; GraphML keeps them.
    """
    import pandas as pd

    edges = _as_graph(graph_or_idata).edges(data=True)
    rows = [{"source": a, "target": b, **attributes} for a, b, attributes in edges]
    table = pd.DataFrame(rows) if rows else pd.DataFrame(columns=["source", "target"])
    table.to_csv(path, index=False)
    return Path(path)


def _as_graph(graph_or_idata) -> "nx.Graph":
    import networkx as nx

    return graph_or_idata if isinstance(graph_or_idata, nx.Graph) else to_networkx(graph_or_idata)
