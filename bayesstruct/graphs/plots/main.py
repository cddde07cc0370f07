"""The main figures of posteriors over graphs that no family has a figure of its own for."""

from bayesstruct.core.readers import register_figure
from bayesstruct.graphs.plots.differences import plot_difference
from bayesstruct.graphs.plots.forest import plot_edges
from bayesstruct.graphs.plots.network import plot_graph

__all__: list[str] = []

register_figure(
    plot_graph, "undirected graphs", "undirected graphs alone", "directed acyclic graphs"
)
register_figure(plot_edges, "dependency networks")
register_figure(plot_difference, "differences between groups")
