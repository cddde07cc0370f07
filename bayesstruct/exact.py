"""Exact posteriors over structures, by enumeration and dynamic programming."""

from bayesstruct.networks.exact.posterior import (
    DAGPosterior,
    FeatureProbabilities,
    IndependentDraws,
    dag_posterior,
    prior_arc_probabilities,
)

__all__ = [
    "DAGPosterior",
    "FeatureProbabilities",
    "IndependentDraws",
    "dag_posterior",
    "prior_arc_probabilities",
]
