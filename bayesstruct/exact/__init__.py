"""Exact posteriors over structures, by enumeration and dynamic programming."""

from importlib import import_module

__all__ = [
    "DAGPosterior",
    "FeatureProbabilities",
    "IndependentDraws",
    "dag_posterior",
    "prior_arc_probabilities",
]


def __getattr__(name):
    """Load the sums when they are first asked for, so that importing the package stays fast."""
    if name in __all__:
        return getattr(import_module("bayesstruct.exact.posterior"), name)
    raise AttributeError(f"module 'bayesstruct.exact' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
