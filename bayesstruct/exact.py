"""Exact posteriors over structures, by enumeration and dynamic programming, and constants of their priors."""

from bayesstruct.classifiers.exact import AveragedTAN, averaged_tan
from bayesstruct.networks.exact.posterior import (
    DAGPosterior,
    FeatureProbabilities,
    IndependentDraws,
    dag_posterior,
    prior_arc_probabilities,
)
from bayesstruct.precision.exact.constants import LogConstant, g_wishart_log_constant
from bayesstruct.precision.exact.graphs import GraphPosterior, gaussian_graphs
from bayesstruct.sem.exact.identifiability import (
    SinkIdentifiability,
    sink_identifiability,
    tolerated_variance_ratio,
)
from bayesstruct.sem.exact.posterior import SemPosterior, linear_sem
from bayesstruct.trees.exact import (
    ForestPosterior,
    TreePosterior,
    forest_posterior,
    tree_posterior,
)

__all__ = [
    "AveragedTAN",
    "DAGPosterior",
    "FeatureProbabilities",
    "ForestPosterior",
    "GraphPosterior",
    "IndependentDraws",
    "LogConstant",
    "SemPosterior",
    "SinkIdentifiability",
    "TreePosterior",
    "averaged_tan",
    "dag_posterior",
    "forest_posterior",
    "g_wishart_log_constant",
    "gaussian_graphs",
    "linear_sem",
    "prior_arc_probabilities",
    "sink_identifiability",
    "tolerated_variance_ratio",
    "tree_posterior",
]
