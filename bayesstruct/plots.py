"""Pictures of posteriors. Matplotlib only; each takes `ax=` and returns the axes."""

from bayesstruct.features.reading.link_plots import plot_links
from bayesstruct.features.reading.plots import plot_feature_count, plot_features
from bayesstruct.fields.reading.plots import plot_item_rest, plot_pair_tables, plot_sum_scores
from bayesstruct.graphs.plots.calibration import plot_calibration
from bayesstruct.graphs.plots.centrality import plot_centrality
from bayesstruct.graphs.plots.communities import plot_co_membership
from bayesstruct.graphs.plots.comparison import plot_bootstrap_support, plot_comparison
from bayesstruct.graphs.plots.differences import plot_difference
from bayesstruct.graphs.plots.directions import plot_directions
from bayesstruct.graphs.plots.evidence import plot_evidence
from bayesstruct.graphs.plots.forest import plot_edges
from bayesstruct.graphs.plots.heatmap import plot_matrix
from bayesstruct.graphs.plots.layouts.positions import layout
from bayesstruct.graphs.plots.network import plot_graph
from bayesstruct.graphs.plots.sensitivity import plot_sensitivity
from bayesstruct.mixtures.reading.plots import plot_clusters
from bayesstruct.precision.reading.plots import plot_correlations, plot_nodes
from bayesstruct.series.reading import plot_states
from bayesstruct.sparse.reading import plot_support
from bayesstruct.trees.reading.hidden import plot_consensus_tree

__all__ = [
    "layout",
    "plot_bootstrap_support",
    "plot_calibration",
    "plot_centrality",
    "plot_clusters",
    "plot_co_membership",
    "plot_comparison",
    "plot_consensus_tree",
    "plot_correlations",
    "plot_difference",
    "plot_directions",
    "plot_edges",
    "plot_evidence",
    "plot_feature_count",
    "plot_features",
    "plot_graph",
    "plot_item_rest",
    "plot_links",
    "plot_matrix",
    "plot_nodes",
    "plot_pair_tables",
    "plot_sensitivity",
    "plot_states",
    "plot_sum_scores",
    "plot_support",
]
