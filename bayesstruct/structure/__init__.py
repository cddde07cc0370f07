"""The posterior read as graphs: edge tables, summaries, comparisons, export.

Every function takes the DataTree that `pm.sample()` returned for a graph model of bayesstruct.
"""

from bayesstruct.structure.comparison import Comparison, calibration_table, compare, expected_shd
from bayesstruct.structure.export import write_edge_list, write_graphml
from bayesstruct.structure.graphs import (
    graph_from_key,
    graph_probabilities,
    map_graph,
    median_graph,
    to_networkx,
)
from bayesstruct.structure.information import conditional_information, edge_information
from bayesstruct.structure.matrices import as_matrix, inclusion_matrix, partial_correlations
from bayesstruct.structure.neighbourhoods import arc_table, symmetrize
from bayesstruct.structure.probabilities import bayes_factors, inclusion_probabilities
from bayesstruct.structure.selection import credible_edges
from bayesstruct.structure.tables import edge_table

__all__ = [
    "Comparison",
    "arc_table",
    "as_matrix",
    "bayes_factors",
    "calibration_table",
    "compare",
    "conditional_information",
    "credible_edges",
    "edge_information",
    "edge_table",
    "expected_shd",
    "graph_from_key",
    "graph_probabilities",
    "inclusion_matrix",
    "inclusion_probabilities",
    "map_graph",
    "median_graph",
    "partial_correlations",
    "symmetrize",
    "to_networkx",
    "write_edge_list",
    "write_graphml",
]
