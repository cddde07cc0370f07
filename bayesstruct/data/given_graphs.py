"""Read a graph on the columns of a table, given by the user, as pairs of positions."""

from collections.abc import Sequence
from typing import Any

from bayesstruct.data.errors import TableError, listing
from bayesstruct.data.labels import refuse_zero_weights
from bayesstruct.data.names import label_text, nearest

__all__ = ["graph_pairs"]


def graph_pairs(names: Sequence[str], graph: Any) -> tuple[tuple[int, int], ...]:
    """Return the pairs of columns that a graph joins.

    Parameters
    ----------
    names : sequence of str
        Columns, in the order of the table.
    graph : networkx.Graph or iterable of pairs of str
        Its nodes are columns; columns without edges may be absent.

    Returns
    -------
    tuple of pairs of int
        Positions i < j, row by row.

    Raises
    ------
    TableError
        For an unknown name, a loop, a pair given twice, a directed graph, or one without edges.

    Examples
    --------
    >>> graph_pairs(["a", "b", "c"], [("c", "b"), ("a", "b")])
    ((0, 1), (1, 2))
    """
    at = {name: position for position, name in enumerate(names)}
    found = {}
    for pair in _pairs(at, graph):
        a, b = _ends(at, pair)
        key = (min(at[a], at[b]), max(at[a], at[b]))
        if key in found:
            raise TableError(f"graph: {a} -- {b} is given twice; give each pair once")
        found[key] = pair
    if not found:
        raise TableError(
            "graph has no edges; give the pairs of columns that may depend on each other"
        )
    return tuple(sorted(found))


def _pairs(at, graph):
    if not hasattr(graph, "is_directed"):
        if isinstance(graph, str):
            raise TableError(
                f"graph is a networkx.Graph or an iterable of pairs of columns, it is {graph!r}"
            )
        try:
            return list(graph)
        except TypeError:
            raise TableError(
                "graph is a networkx.Graph or an iterable of pairs of columns, it is of the type "
                f"{type(graph).__name__}"
            ) from None
    if graph.is_directed():
        raise TableError("graph is directed; use graph.to_undirected(), or its moral graph")
    refuse_zero_weights(graph)
    if unknown := [node for node in graph.nodes if label_text(node) not in at]:
        raise TableError(f"graph: {_unknown(unknown, at)}")
    return [edge[:2] for edge in graph.edges]


def _ends(at, pair):
    try:
        a, b = pair
    except (TypeError, ValueError):
        raise TableError(f"graph: {pair!r} is not a pair of columns") from None
    if isinstance(pair, str):
        raise TableError(f"graph: {pair!r} is not a pair of columns")
    a, b = label_text(a), label_text(b)
    if unknown := [name for name in (a, b) if name not in at]:
        raise TableError(f"graph: {_unknown(unknown, at)}")
    if a == b:
        raise TableError(f"graph: {a} is joined with itself; leave this loop out")
    return a, b


def _unknown(unknown, at):
    if len(unknown) == 1:
        return nearest("column", unknown[0], at)
    return f"unknown columns {listing(unknown)}; there are: {', '.join(at)}"
