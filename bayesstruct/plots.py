"""Pictures of a posterior over graphs. Matplotlib only; each takes `ax=` and returns the axes."""

from bayesstruct.features.reading.plots import plot_feature_count, plot_features
from bayesstruct.fields.reading.plots import plot_item_rest, plot_pair_tables, plot_sum_scores
from bayesstruct.graphs.plots.calibration import plot_calibration
from bayesstruct.graphs.plots.comparison import plot_bootstrap_support, plot_comparison
from bayesstruct.graphs.plots.differences import plot_difference
from bayesstruct.graphs.plots.evidence import plot_evidence
from bayesstruct.graphs.plots.forest import plot_edges
from bayesstruct.graphs.plots.heatmap import plot_matrix
from bayesstruct.graphs.plots.network import plot_graph
from bayesstruct.graphs.plots.positions import layout
from bayesstruct.graphs.plots.sensitivity import plot_sensitivity
from bayesstruct.precision.reading.plots import plot_correlations

__all__ = [
    "layout",
    "plot_bootstrap_support",
    "plot_calibration",
    "plot_comparison",
    "plot_correlations",
    "plot_difference",
    "plot_edges",
    "plot_evidence",
    "plot_feature_count",
    "plot_features",
    "plot_graph",
    "plot_item_rest",
    "plot_matrix",
    "plot_pair_tables",
    "plot_sensitivity",
    "plot_sum_scores",
]
