"""Distributions: priors over structures, and what a structure says about data."""

from bayesstruct.distributions.aspect_choices import aspect_probabilities
from bayesstruct.distributions.chinese_restaurant import ChineseRestaurant
from bayesstruct.distributions.dag import DAG
from bayesstruct.distributions.discrete_network import (
    DiscreteNetwork,
    EvenTables,
    ProbabilityTables,
)
from bayesstruct.distributions.edges import Edges, edges, partial_correlations
from bayesstruct.distributions.feature_interactions import FeatureInteractions, feature_pairs
from bayesstruct.distributions.feature_links import FeatureLinks
from bayesstruct.distributions.feature_scores import FactorRows, FeatureScores
from bayesstruct.distributions.finite_features import FiniteFeatures, StickBreakingProbabilities
from bayesstruct.distributions.fitted_networks import (
    FittedDiscreteNetwork,
    FittedGaussianNetwork,
    fitted,
)
from bayesstruct.distributions.gaussian_network import (
    ArcWeights,
    GaussianNetwork,
    Intercepts,
    NoiseVariances,
)
from bayesstruct.distributions.group_laplace import GroupLaplace, SparseGroupLaplace
from bayesstruct.distributions.group_spike_and_slab import GroupSpikeAndSlab
from bayesstruct.distributions.hidden_causes import CauseActivations, NoisyOr
from bayesstruct.distributions.horseshoe import RegularizedHorseshoe
from bayesstruct.distributions.implied import (
    implied_arc_probability,
    implied_edge_probability,
    implied_nonnegligible_probability,
)
from bayesstruct.distributions.incomplete_networks import (
    IncompleteDiscreteNetwork,
    IncompleteGaussianNetwork,
    NetworkCells,
)
from bayesstruct.distributions.indian_buffet import FeatureLoadings, IndianBuffet
from bayesstruct.distributions.interactions import interaction_strengths
from bayesstruct.distributions.mixture_parameters import ClusterNormals, ClusterVariances
from bayesstruct.distributions.mixture_rows import (
    ClusterBinary,
    ClusterCount,
    ClusterResponse,
    ClusterRows,
)
from bayesstruct.distributions.pairwise import (
    IncompletePairwiseMRF,
    Ising,
    MissingStates,
    PairwiseMRF,
)
from bayesstruct.distributions.precision import (
    EdgeProbability,
    GraphicalLasso,
    GraphicalSpikeSlab,
)
from bayesstruct.distributions.rows import (
    ColumnMeans,
    GraphicalNormal,
    IncompleteGraphicalNormal,
    MissingCells,
)
from bayesstruct.distributions.spike_and_slab import (
    CauchySpikeAndSlab,
    LaplaceSpikeAndSlab,
    NormalSpikeAndSlab,
    SpikeAndSlab,
    included,
)
from bayesstruct.distributions.switching_series import (
    BehaviourScales,
    BehaviourTransitions,
    SwitchingSeries,
)
from bayesstruct.distributions.tree_laplace import TreeLaplace

__all__ = [
    "DAG",
    "ArcWeights",
    "BehaviourScales",
    "BehaviourTransitions",
    "CauchySpikeAndSlab",
    "CauseActivations",
    "ChineseRestaurant",
    "ClusterBinary",
    "ClusterCount",
    "ClusterNormals",
    "ClusterResponse",
    "ClusterRows",
    "ClusterVariances",
    "ColumnMeans",
    "DiscreteNetwork",
    "EdgeProbability",
    "Edges",
    "EvenTables",
    "FactorRows",
    "FeatureInteractions",
    "FeatureLinks",
    "FeatureLoadings",
    "FeatureScores",
    "FiniteFeatures",
    "FittedDiscreteNetwork",
    "FittedGaussianNetwork",
    "GaussianNetwork",
    "GraphicalLasso",
    "GraphicalNormal",
    "GraphicalSpikeSlab",
    "GroupLaplace",
    "GroupSpikeAndSlab",
    "IncompleteDiscreteNetwork",
    "IncompleteGaussianNetwork",
    "IncompleteGraphicalNormal",
    "IncompletePairwiseMRF",
    "IndianBuffet",
    "Intercepts",
    "Ising",
    "LaplaceSpikeAndSlab",
    "MissingCells",
    "MissingStates",
    "NetworkCells",
    "NoiseVariances",
    "NoisyOr",
    "NormalSpikeAndSlab",
    "PairwiseMRF",
    "ProbabilityTables",
    "RegularizedHorseshoe",
    "SparseGroupLaplace",
    "SpikeAndSlab",
    "StickBreakingProbabilities",
    "SwitchingSeries",
    "TreeLaplace",
    "aspect_probabilities",
    "edges",
    "feature_pairs",
    "fitted",
    "implied_arc_probability",
    "implied_edge_probability",
    "implied_nonnegligible_probability",
    "included",
    "interaction_strengths",
    "partial_correlations",
]
