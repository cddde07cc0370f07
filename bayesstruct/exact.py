"""Exact posteriors over structures, by enumeration and dynamic programming, and constants of their priors."""

from bayesstruct.networks.exact.posterior import (
    DAGPosterior,
    FeatureProbabilities,
    IndependentDraws,
    dag_posterior,
    prior_arc_probabilities,
)
from bayesstruct.precision.exact.constants import LogConstant, g_wishart_log_constant
from bayesstruct.precision.exact.graphs import GraphPosterior, gaussian_graphs
from bayesstruct.sem.exact import SemPosterior, linear_sem

__all__ = [
    "DAGPosterior",
    "FeatureProbabilities",
    "GraphPosterior",
    "IndependentDraws",
    "LogConstant",
    "SemPosterior",
    "dag_posterior",
    "g_wishart_log_constant",
    "gaussian_graphs",
    "linear_sem",
    "prior_arc_probabilities",
]
