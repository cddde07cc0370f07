"""Posteriors as graphs: tables of edges and arcs, summaries, comparisons, export.

Every function takes the DataTree that `pm.sample()` returns for a model of bayesstruct.
"""

from bayesstruct.classifiers.reading.predictions import class_probabilities, classification_table
from bayesstruct.features.reading.links import link_probabilities
from bayesstruct.features.reading.tables import (
    co_assignment,
    feature_count_probabilities,
    feature_membership,
    feature_table,
    loading_table,
)
from bayesstruct.fields.reading.information import conditional_information, edge_information
from bayesstruct.fields.reading.predictive import (
    predictive_item_rest,
    predictive_pair_tables,
    predictive_sum_scores,
)
from bayesstruct.graphs.comparison import Comparison, calibration_table, compare, expected_shd
from bayesstruct.graphs.comparisons.bootstrap import BootstrapSupport
from bayesstruct.graphs.comparisons.results import ResultComparison
from bayesstruct.graphs.comparisons.sensitivity import Sensitivity
from bayesstruct.graphs.dag_comparison import ArcComparison
from bayesstruct.graphs.directed import arc_probabilities, blanket_probabilities, path_probabilities
from bayesstruct.graphs.distances import (
    structural_hamming_distance,
    structural_intervention_distance,
)
from bayesstruct.graphs.equivalence import cpdag, essential_graph_probabilities
from bayesstruct.graphs.export import write_dot, write_edge_list, write_graphml
from bayesstruct.graphs.graphs import (
    graph_from_key,
    graph_probabilities,
    map_graph,
    median_graph,
    to_networkx,
)
from bayesstruct.graphs.groups import submodel
from bayesstruct.graphs.indicators import edge_ess, edge_rhat
from bayesstruct.graphs.matrices import as_matrix, inclusion_matrix, partial_correlations
from bayesstruct.graphs.nodes.centrality import centrality, centrality_draws
from bayesstruct.graphs.nodes.communities import Communities, communities
from bayesstruct.graphs.nodes.degrees import degree_distribution, degree_table
from bayesstruct.graphs.probabilities import bayes_factors, inclusion_probabilities
from bayesstruct.graphs.sets.consensus import consensus_graph
from bayesstruct.graphs.sets.weights import GraphWeights, graph_weights
from bayesstruct.graphs.tables.arcs import arc_table
from bayesstruct.graphs.tables.differences import difference_table, one_group
from bayesstruct.graphs.tables.directions import direction_table
from bayesstruct.graphs.tables.edges import credible_edges, edge_table
from bayesstruct.graphs.traces import graph_distance, n_edges
from bayesstruct.graphs.units import coefficients, covariance, precision_matrix
from bayesstruct.mixtures.reading.clusters import cluster_coefficients, cluster_table, co_clustering
from bayesstruct.mixtures.reading.predictions import mixture_predictions
from bayesstruct.neighbourhoods.reading.symmetrize import symmetrize
from bayesstruct.networks.reading.effects import do
from bayesstruct.networks.reading.effects_by_graph import GraphEffects
from bayesstruct.networks.reading.independence import independence_check
from bayesstruct.precision.reading.nodes import node_table
from bayesstruct.precision.reading.precision_draws import precision_draws
from bayesstruct.precision.reading.predictive import predictive_correlations
from bayesstruct.precision.reading.state_columns import variable_edges
from bayesstruct.sem.reading.noise_check import noise_check
from bayesstruct.series.reading import state_probabilities
from bayesstruct.sparse.reading import support_table
from bayesstruct.trees.reading.hidden import (
    consensus_tree,
    hidden_node_table,
    hidden_values,
    split_table,
)

__all__ = [
    "ArcComparison",
    "BootstrapSupport",
    "Communities",
    "Comparison",
    "GraphEffects",
    "GraphWeights",
    "ResultComparison",
    "Sensitivity",
    "arc_probabilities",
    "arc_table",
    "as_matrix",
    "bayes_factors",
    "blanket_probabilities",
    "calibration_table",
    "centrality",
    "centrality_draws",
    "class_probabilities",
    "classification_table",
    "cluster_coefficients",
    "cluster_table",
    "co_assignment",
    "co_clustering",
    "coefficients",
    "communities",
    "compare",
    "conditional_information",
    "consensus_graph",
    "consensus_tree",
    "covariance",
    "cpdag",
    "credible_edges",
    "degree_distribution",
    "degree_table",
    "difference_table",
    "direction_table",
    "do",
    "edge_ess",
    "edge_information",
    "edge_rhat",
    "edge_table",
    "essential_graph_probabilities",
    "expected_shd",
    "feature_count_probabilities",
    "feature_membership",
    "feature_table",
    "graph_distance",
    "graph_from_key",
    "graph_probabilities",
    "graph_weights",
    "hidden_node_table",
    "hidden_values",
    "inclusion_matrix",
    "inclusion_probabilities",
    "independence_check",
    "link_probabilities",
    "loading_table",
    "map_graph",
    "median_graph",
    "mixture_predictions",
    "n_edges",
    "node_table",
    "noise_check",
    "one_group",
    "partial_correlations",
    "path_probabilities",
    "precision_draws",
    "precision_matrix",
    "predictive_correlations",
    "predictive_item_rest",
    "predictive_pair_tables",
    "predictive_sum_scores",
    "split_table",
    "state_probabilities",
    "structural_hamming_distance",
    "structural_intervention_distance",
    "submodel",
    "support_table",
    "symmetrize",
    "to_networkx",
    "variable_edges",
    "write_dot",
    "write_edge_list",
    "write_graphml",
]
