"""Convergence of structure-valued draws, in words."""

from bayesstruct.diagnostics.convergence import Check, Row, check
from bayesstruct.diagnostics.indicators import edge_ess, edge_rhat
from bayesstruct.diagnostics.predictive import predictive_correlations
from bayesstruct.diagnostics.predictive_states import (
    predictive_item_rest,
    predictive_pair_tables,
    predictive_sum_scores,
)
from bayesstruct.diagnostics.summaries import graph_distance, n_edges

__all__ = [
    "Check",
    "Row",
    "check",
    "edge_ess",
    "edge_rhat",
    "graph_distance",
    "n_edges",
    "predictive_correlations",
    "predictive_item_rest",
    "predictive_pair_tables",
    "predictive_sum_scores",
]
