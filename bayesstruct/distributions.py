"""Distributions: priors over structures, and what a structure says about data."""

import bayesstruct.steps  # noqa: F401  registers the step methods of these distributions

from bayesstruct.classifiers.ops import arc_sum
from bayesstruct.classifiers.priors import AugmentedTree
from bayesstruct.core.tables.missing_states import MissingStates
from bayesstruct.features.priors.aspect_choices import aspect_probabilities
from bayesstruct.features.priors.feature_interactions import FeatureInteractions, feature_pairs
from bayesstruct.features.priors.feature_links import FeatureLinks
from bayesstruct.features.priors.feature_scores import FactorRows, FeatureScores
from bayesstruct.features.priors.finite_features import FiniteFeatures, StickBreakingProbabilities
from bayesstruct.features.priors.hidden_causes import CauseActivations, NoisyOr
from bayesstruct.features.priors.indian_buffet import FeatureLoadings, IndianBuffet
from bayesstruct.fields.priors.group_rows import GroupedPairwiseMRF, IncompleteGroupedPairwiseMRF
from bayesstruct.fields.priors.groups import GroupedWeights
from bayesstruct.fields.priors.interactions import interaction_strengths
from bayesstruct.fields.priors.random_fields import IncompletePairwiseMRF, Ising, PairwiseMRF
from bayesstruct.mixtures.priors.chinese_restaurant import ChineseRestaurant
from bayesstruct.mixtures.priors.mixture_parameters import ClusterNormals, ClusterVariances
from bayesstruct.mixtures.priors.mixture_rows import (
    ClusterBinary,
    ClusterCount,
    ClusterResponse,
    ClusterRows,
)
from bayesstruct.networks.priors.dag import DAG
from bayesstruct.networks.priors.discrete_network import (
    DiscreteNetwork,
    EvenTables,
    ProbabilityTables,
)
from bayesstruct.networks.priors.fitted_networks import (
    FittedDiscreteNetwork,
    FittedGaussianNetwork,
    fitted,
)
from bayesstruct.networks.priors.gaussian_network import (
    ArcWeights,
    GaussianNetwork,
    Intercepts,
    NoiseVariances,
    coefficient_matrix,
)
from bayesstruct.networks.priors.implied import implied_arc_probability
from bayesstruct.networks.priors.incomplete_mixed import (
    IncompleteMixedNetwork,
    MissingMixedValues,
)
from bayesstruct.networks.priors.incomplete_networks import (
    IncompleteDiscreteNetwork,
    IncompleteGaussianNetwork,
    MissingNetworkValues,
)
from bayesstruct.networks.priors.mixed_networks import MixedNetwork, MixedParameters
from bayesstruct.networks.priors.sample_covariance import NetworkCovariance
from bayesstruct.precision.priors.alternative_rows import (
    AlternativeStudent,
    MissingWeightedValues,
    ValueWeights,
)
from bayesstruct.precision.priors.blocks import (
    BlockEdgeProbabilities,
    BlockLabels,
    BlockSpikeSlab,
)
from bayesstruct.precision.priors.edge_probability import EdgeProbability
from bayesstruct.precision.priors.edges import Edges, partial_correlations
from bayesstruct.precision.priors.fused import GraphicalFusedLasso
from bayesstruct.precision.priors.g_wishart import GWishart, IndependentEdges
from bayesstruct.precision.priors.graphs import NeighbourRegressions, RandomGraph
from bayesstruct.precision.priors.group_edges import GroupEdges, GroupIndicatorSpikeSlab
from bayesstruct.precision.priors.group_lasso import (
    GraphicalGroupLasso,
    block_members,
    node_members,
)
from bayesstruct.precision.priors.group_probabilities import GroupProbability
from bayesstruct.precision.priors.group_rows import (
    GroupedMissingValues,
    GroupedNormal,
    IncompleteGroupedNormal,
)
from bayesstruct.precision.priors.groups import GroupedSpikeSlab, Relations
from bayesstruct.precision.priors.horseshoe import GlobalScale, GraphicalHorseshoe
from bayesstruct.precision.priors.implied import (
    implied_edge_probability,
    implied_group_edge_probability,
    implied_horseshoe_probability,
    implied_nonnegligible_probability,
    implied_relation_probabilities,
)
from bayesstruct.precision.priors.latent_rows import LatentValues, OrderedRows
from bayesstruct.precision.priors.node_inclusion import NodeInclusion, NodeSpikeSlab
from bayesstruct.precision.priors.nuclear import GraphicalNuclearLasso
from bayesstruct.precision.priors.precision import (
    GraphicalLasso,
    GraphicalSpikeSlab,
)
from bayesstruct.precision.priors.rows import (
    ColumnMeans,
    GraphicalNormal,
    IncompleteGraphicalNormal,
    MissingValues,
)
from bayesstruct.precision.priors.sample_covariance import GraphicalCovariance, GroupedCovariance
from bayesstruct.precision.priors.student_rows import (
    DegreesOfFreedom,
    GraphicalStudent,
    IncompleteGraphicalStudent,
    MissingStudentValues,
)
from bayesstruct.sem.priors.incomplete import IncompleteLinearSem, MissingNumbers
from bayesstruct.sem.priors.noise import NoiseLaw, noise_law
from bayesstruct.sem.priors.parameters import (
    ArcSlabs,
    CommonNoiseScale,
    LocalScales,
    NoiseDegrees,
    NoiseScales,
)
from bayesstruct.sem.priors.rows import LinearSem
from bayesstruct.series.priors import BehaviourScales, BehaviourTransitions, SwitchingSeries
from bayesstruct.sparse.priors.group_laplace import GroupLaplace, SparseGroupLaplace
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlab
from bayesstruct.sparse.priors.horseshoe import RegularizedHorseshoe
from bayesstruct.sparse.priors.included import included
from bayesstruct.sparse.priors.spike_and_slab import (
    CauchySpikeAndSlab,
    LaplaceSpikeAndSlab,
    NormalSpikeAndSlab,
    SpikeAndSlab,
)
from bayesstruct.sparse.priors.tree_laplace import TreeLaplace
from bayesstruct.trees.priors.gaussian import TreeMeans, TreePrecision
from bayesstruct.trees.priors.hidden_states import HiddenTreeStates, TreeTables
from bayesstruct.trees.priors.hidden_trees import HiddenTree, TreeCorrelations
from bayesstruct.trees.priors.mixed_tree import MixedSpanningTree, MixedTreeParameters
from bayesstruct.trees.priors.spanning_forest import SpanningForest
from bayesstruct.trees.priors.spanning_tree import SpanningTree, from_lower_triangle

__all__ = [
    "DAG",
    "AlternativeStudent",
    "ArcSlabs",
    "ArcWeights",
    "AugmentedTree",
    "BehaviourScales",
    "BehaviourTransitions",
    "BlockEdgeProbabilities",
    "BlockLabels",
    "BlockSpikeSlab",
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
    "CommonNoiseScale",
    "DegreesOfFreedom",
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
    "GWishart",
    "GaussianNetwork",
    "GlobalScale",
    "GraphicalCovariance",
    "GraphicalFusedLasso",
    "GraphicalGroupLasso",
    "GraphicalHorseshoe",
    "GraphicalLasso",
    "GraphicalNormal",
    "GraphicalNuclearLasso",
    "GraphicalSpikeSlab",
    "GraphicalStudent",
    "GroupEdges",
    "GroupIndicatorSpikeSlab",
    "GroupLaplace",
    "GroupProbability",
    "GroupSpikeAndSlab",
    "GroupedCovariance",
    "GroupedMissingValues",
    "GroupedNormal",
    "GroupedPairwiseMRF",
    "GroupedSpikeSlab",
    "GroupedWeights",
    "HiddenTree",
    "HiddenTreeStates",
    "IncompleteDiscreteNetwork",
    "IncompleteGaussianNetwork",
    "IncompleteGraphicalNormal",
    "IncompleteGraphicalStudent",
    "IncompleteGroupedNormal",
    "IncompleteGroupedPairwiseMRF",
    "IncompleteLinearSem",
    "IncompleteMixedNetwork",
    "IncompletePairwiseMRF",
    "IndependentEdges",
    "IndianBuffet",
    "Intercepts",
    "Ising",
    "LaplaceSpikeAndSlab",
    "LatentValues",
    "LinearSem",
    "LocalScales",
    "MissingMixedValues",
    "MissingNetworkValues",
    "MissingNumbers",
    "MissingStates",
    "MissingStudentValues",
    "MissingValues",
    "MissingWeightedValues",
    "MixedNetwork",
    "MixedParameters",
    "MixedSpanningTree",
    "MixedTreeParameters",
    "NeighbourRegressions",
    "NetworkCovariance",
    "NodeInclusion",
    "NodeSpikeSlab",
    "NoiseDegrees",
    "NoiseLaw",
    "NoiseScales",
    "NoiseVariances",
    "NoisyOr",
    "NormalSpikeAndSlab",
    "OrderedRows",
    "PairwiseMRF",
    "ProbabilityTables",
    "RandomGraph",
    "RegularizedHorseshoe",
    "Relations",
    "SpanningForest",
    "SpanningTree",
    "SparseGroupLaplace",
    "SpikeAndSlab",
    "StickBreakingProbabilities",
    "SwitchingSeries",
    "TreeCorrelations",
    "TreeLaplace",
    "TreeMeans",
    "TreePrecision",
    "TreeTables",
    "ValueWeights",
    "arc_sum",
    "aspect_probabilities",
    "block_members",
    "coefficient_matrix",
    "feature_pairs",
    "fitted",
    "from_lower_triangle",
    "implied_arc_probability",
    "implied_edge_probability",
    "implied_group_edge_probability",
    "implied_horseshoe_probability",
    "implied_nonnegligible_probability",
    "implied_relation_probabilities",
    "included",
    "interaction_strengths",
    "node_members",
    "noise_law",
    "partial_correlations",
]
