"""Exact posteriors over structures, by enumeration and dynamic programming."""

from bayesstruct.exact.posterior import DAGPosterior, FeatureProbabilities, dag_posterior

__all__ = ["DAGPosterior", "FeatureProbabilities", "dag_posterior"]
