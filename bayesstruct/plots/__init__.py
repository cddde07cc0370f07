"""Pictures of a posterior over graphs. Matplotlib only; each takes `ax=` and returns the axes."""

from bayesstruct.plots.calibration import plot_calibration
from bayesstruct.plots.evidence import plot_evidence
from bayesstruct.plots.features import plot_feature_count, plot_features
from bayesstruct.plots.forest import plot_edges
from bayesstruct.plots.heatmap import plot_matrix
from bayesstruct.plots.network import plot_graph
from bayesstruct.plots.positions import layout
from bayesstruct.plots.predictive import plot_correlations
from bayesstruct.plots.predictive_states import (
    plot_item_rest,
    plot_pair_tables,
    plot_sum_scores,
)

__all__ = [
    "layout",
    "plot_calibration",
    "plot_correlations",
    "plot_edges",
    "plot_evidence",
    "plot_feature_count",
    "plot_features",
    "plot_graph",
    "plot_item_rest",
    "plot_matrix",
    "plot_pair_tables",
    "plot_sum_scores",
]
