"""Graphs for other programs: Gephi, Cytoscape, igraph, Graphviz, a spreadsheet."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesstruct.graphs.graphs import median_graph, to_networkx

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["write_dot", "write_edge_list", "write_graphml"]


def write_graphml(graph_or_idata: Any, path: Any) -> Path:
    """Write a graph as GraphML.

    Parameters
    ----------
    graph_or_idata : networkx.Graph or xarray.DataTree
        A graph, or a result of a graph model: then all its edges (arcs) with probability, weight
        and Bayes factor.
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


def write_dot(graph_or_idata: Any, path: Any) -> Path:
    """Write a graph in the DOT language of Graphviz.

    Parameters
    ----------
    graph_or_idata : networkx.Graph or xarray.DataTree
        A graph, directed or not, or a result of a graph model: then its median graph.
    path : str or Path
        File to write.

    Returns
    -------
    pathlib.Path

    Notes
    -----
    Edges that have a `probability` are labelled with it and the paler the less probable they are.
    A pair of arcs in both directions (as in the graphs of `cpdag`) is one line without arrow
    heads. Names are quoted, so that they may hold anything.

    Examples
    --------
    >>> write_dot(median_graph(idata), "network.dot")  # doctest: +SKIP
    """
    import networkx as nx

    given = isinstance(graph_or_idata, nx.Graph)
    graph = graph_or_idata if given else median_graph(graph_or_idata)
    kind, link = ("digraph", "->") if graph.is_directed() else ("graph", "--")
    lines = [f"  {_quoted(node)};" for node in graph.nodes]
    written = set()
    for a, b, about in graph.edges(data=True):
        if (b, a) in written:
            continue
        written.add((a, b))
        style = _style(about)
        if graph.is_directed() and graph.has_edge(b, a):
            style["dir"] = "none"
        shown = ", ".join(f"{name}={_quoted(value)}" for name, value in style.items())
        lines.append(f"  {_quoted(a)} {link} {_quoted(b)}{f' [{shown}]' * bool(shown)};")
    Path(path).write_text("\n".join([f"{kind} {{", *lines, "}", ""]), encoding="utf-8")
    return Path(path)


def _style(about: dict) -> dict[str, str]:
    if "probability" not in about:
        return {}
    opacity = round(255 * min(max(0.25 + 0.75 * about["probability"] ** 2, 0), 1))
    return {"label": f"{about['probability']:.2f}", "color": f"#000000{opacity:02x}"}


def _quoted(name) -> str:
    """Text as a DOT string; a backslash is doubled, since labels give it a meaning."""
    text = str(name).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def write_edge_list(graph_or_idata: Any, path: Any) -> Path:
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
