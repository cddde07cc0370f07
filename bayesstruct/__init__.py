"""Bayesian structure learning in PyMC.

A table goes in, a function of :mod:`bayesstruct.models` makes an ordinary ``pm.Model`` of it, plain
``pm.sample()`` draws from the posterior of its structure, and a handful of functions read that
posterior as graphs.
"""

from importlib import import_module

# Importing the steps registers them with PyMC, so that pm.sample assigns them unasked.
from bayesstruct import distributions, steps
from bayesstruct.distributions import (
    DAG,
    ArcWeights,
    CauseActivations,
    ChineseRestaurant,
    ClusterBinary,
    ClusterCount,
    ClusterNormals,
    ClusterResponse,
    ClusterRows,
    ClusterVariances,
    DiscreteNetwork,
    Edges,
    FactorRows,
    FeatureInteractions,
    FeatureLinks,
    FeatureLoadings,
    FeatureScores,
    FiniteFeatures,
    GaussianNetwork,
    GraphicalLasso,
    GraphicalNormal,
    GraphicalSpikeSlab,
    GroupLaplace,
    GroupSpikeAndSlab,
    IncompleteDiscreteNetwork,
    IncompleteGaussianNetwork,
    IncompletePairwiseMRF,
    IndianBuffet,
    Intercepts,
    Ising,
    MissingStates,
    NetworkCells,
    NoiseVariances,
    NoisyOr,
    PairwiseMRF,
    ProbabilityTables,
    RegularizedHorseshoe,
    SparseGroupLaplace,
    SpikeAndSlab,
    StickBreakingProbabilities,
    TreeLaplace,
    aspect_probabilities,
    edges,
    feature_pairs,
    implied_arc_probability,
    implied_edge_probability,
    included,
    partial_correlations,
)

__version__ = "0.1.0"

_ROOMS = {
    "data": (
        "StochasticBlock",
        "TableError",
        "TableWarning",
        "datasets",
        "load_dataset",
        "load_network",
    ),
    "diagnostics": (
        "check",
        "predictive_correlations",
        "predictive_item_rest",
        "predictive_pair_tables",
        "predictive_sum_scores",
    ),
    "exact": (),
    "inference": ("find_MAP", "load_checkpoint", "sample", "sample_neighbourhoods", "sandwich"),
    "models": (),
    "ops": (),
    "penalties": (),
    "plots": (
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
    ),
    "simulate": (),
    "solvers": (),
    "structure": (
        "arc_probabilities",
        "arc_table",
        "blanket_probabilities",
        "cluster_coefficients",
        "cluster_table",
        "co_assignment",
        "co_clustering",
        "compare",
        "cpdag",
        "credible_edges",
        "do",
        "edge_information",
        "edge_table",
        "essential_graph_probabilities",
        "expected_shd",
        "feature_count_probabilities",
        "feature_membership",
        "feature_table",
        "graph_probabilities",
        "inclusion_probabilities",
        "link_probabilities",
        "loading_table",
        "map_graph",
        "median_graph",
        "mixture_predictions",
        "path_probabilities",
        "structural_hamming_distance",
        "structural_intervention_distance",
        "symmetrize",
        "to_networkx",
        "write_dot",
        "write_edge_list",
        "write_graphml",
    ),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "DAG",
    "ArcWeights",
    "CauseActivations",
    "ChineseRestaurant",
    "ClusterBinary",
    "ClusterCount",
    "ClusterNormals",
    "ClusterResponse",
    "ClusterRows",
    "ClusterVariances",
    "DiscreteNetwork",
    "Edges",
    "FactorRows",
    "FeatureInteractions",
    "FeatureLinks",
    "FeatureLoadings",
    "FeatureScores",
    "FiniteFeatures",
    "GaussianNetwork",
    "GraphicalLasso",
    "GraphicalNormal",
    "GraphicalSpikeSlab",
    "GroupLaplace",
    "GroupSpikeAndSlab",
    "IncompleteDiscreteNetwork",
    "IncompleteGaussianNetwork",
    "IncompletePairwiseMRF",
    "IndianBuffet",
    "Intercepts",
    "Ising",
    "MissingStates",
    "NetworkCells",
    "NoiseVariances",
    "NoisyOr",
    "PairwiseMRF",
    "ProbabilityTables",
    "RegularizedHorseshoe",
    "SparseGroupLaplace",
    "SpikeAndSlab",
    "StickBreakingProbabilities",
    "TreeLaplace",
    "aspect_probabilities",
    "distributions",
    "edges",
    "feature_pairs",
    "implied_arc_probability",
    "implied_edge_probability",
    "included",
    "partial_correlations",
    "steps",
]
__all__ += list(_ROOMS)
__all__ += list(_HOME)


def __getattr__(name):
    """Load a room when it is first asked for, so that importing the package stays fast."""
    if name in _ROOMS:
        return import_module(f"bayesstruct.{name}")
    if name in _HOME:
        return getattr(import_module(f"bayesstruct.{_HOME[name]}"), name)
    raise AttributeError(f"module 'bayesstruct' has no attribute {name!r}")


def __dir__():
    return sorted([*__all__, "__version__"])
