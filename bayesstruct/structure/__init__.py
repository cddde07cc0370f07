"""The posterior read as graphs: edge tables, summaries, comparisons, export.

Every function takes the DataTree that `pm.sample()` returned for a graph model of bayesstruct.
"""

from bayesstruct.structure.arc_tables import arc_table
from bayesstruct.structure.clusters import cluster_coefficients, cluster_table, co_clustering
from bayesstruct.structure.comparison import Comparison, calibration_table, compare, expected_shd
from bayesstruct.structure.dag_comparison import ArcComparison
from bayesstruct.structure.directed import (
    arc_probabilities,
    blanket_probabilities,
    path_probabilities,
)
from bayesstruct.structure.distances import (
    structural_hamming_distance,
    structural_intervention_distance,
)
from bayesstruct.structure.effects import do
from bayesstruct.structure.equivalence import cpdag, essential_graph_probabilities
from bayesstruct.structure.export import write_dot, write_edge_list, write_graphml
from bayesstruct.structure.features import (
    co_assignment,
    feature_count_probabilities,
    feature_membership,
    feature_table,
    loading_table,
)
from bayesstruct.structure.graphs import (
    graph_from_key,
    graph_probabilities,
    map_graph,
    median_graph,
    to_networkx,
)
from bayesstruct.structure.information import conditional_information, edge_information
from bayesstruct.structure.link_probabilities import link_probabilities
from bayesstruct.structure.matrices import as_matrix, inclusion_matrix, partial_correlations
from bayesstruct.structure.mixture_predictions import mixture_predictions
from bayesstruct.structure.neighbourhoods import symmetrize
from bayesstruct.structure.probabilities import bayes_factors, inclusion_probabilities
from bayesstruct.structure.selection import credible_edges
from bayesstruct.structure.state_probabilities import state_probabilities
from bayesstruct.structure.tables import edge_table

__all__ = [
    "ArcComparison",
    "Comparison",
    "arc_probabilities",
    "arc_table",
    "as_matrix",
    "bayes_factors",
    "blanket_probabilities",
    "calibration_table",
    "cluster_coefficients",
    "cluster_table",
    "co_assignment",
    "co_clustering",
    "compare",
    "conditional_information",
    "cpdag",
    "credible_edges",
    "do",
    "edge_information",
    "edge_table",
    "essential_graph_probabilities",
    "expected_shd",
    "feature_count_probabilities",
    "feature_membership",
    "feature_table",
    "graph_from_key",
    "graph_probabilities",
    "inclusion_matrix",
    "inclusion_probabilities",
    "link_probabilities",
    "loading_table",
    "map_graph",
    "median_graph",
    "mixture_predictions",
    "partial_correlations",
    "path_probabilities",
    "state_probabilities",
    "structural_hamming_distance",
    "structural_intervention_distance",
    "symmetrize",
    "to_networkx",
    "write_dot",
    "write_edge_list",
    "write_graphml",
]
