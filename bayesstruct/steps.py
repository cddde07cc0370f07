"""Step methods. Importing this module registers all of them, so that ``pm.sample`` assigns them unasked."""

from bayesstruct.classifiers.steps import ClassifierDraws
from bayesstruct.features.steps.aspect_features import AspectFeatureGibbs
from bayesstruct.features.steps.finite_features import FiniteFeatureMetropolis
from bayesstruct.features.steps.hidden_causes import HiddenCauseGibbs
from bayesstruct.features.steps.latent_features import LatentFeatureGibbs, LatentFeatureSlice
from bayesstruct.features.steps.links import LinkFeatureGibbs
from bayesstruct.features.steps.sparse_factors import SparseFactorGibbs
from bayesstruct.fields.steps.groups import GroupedPairwiseGibbs
from bayesstruct.fields.steps.missing import PairwiseCells
from bayesstruct.fields.steps.spike_slab import PairwiseSpikeSlab
from bayesstruct.mixtures.steps import DirichletMixtureGibbs
from bayesstruct.networks.steps.complete import NetworkMCMC
from bayesstruct.networks.steps.incomplete import IncompleteNetworkMCMC
from bayesstruct.networks.steps.mixed import MixedNetworkMCMC
from bayesstruct.networks.steps.ordered import OrderNetworkMCMC
from bayesstruct.networks.steps.scored import ScoredNetworkMCMC
from bayesstruct.precision.steps.blocks import BlocksGibbs
from bayesstruct.precision.steps.g_wishart import GraphGibbs  # noqa: F401  registers the updates
from bayesstruct.precision.steps.gibbs import EdgesGibbs, PrecisionGibbs
from bayesstruct.precision.steps.graph_jumps import GraphJumps
from bayesstruct.precision.steps.groups import GroupedPrecisionGibbs, RelationsGibbs
from bayesstruct.precision.steps.node_inclusion import NodeInclusionGibbs
from bayesstruct.sem.steps.linear import LinearSemMCMC
from bayesstruct.series.steps import SwitchingSeriesMCMC
from bayesstruct.sparse.steps.group_regression import GroupSpikeSlabRegression
from bayesstruct.sparse.steps.spike_slab_regression import SpikeSlabRegression
from bayesstruct.trees.steps.hidden import HiddenTreeMoves
from bayesstruct.trees.steps.hidden_states import HiddenStateMoves
from bayesstruct.trees.steps.tables import TreeDraws

__all__ = [
    "AspectFeatureGibbs",
    "BlocksGibbs",
    "ClassifierDraws",
    "DirichletMixtureGibbs",
    "EdgesGibbs",
    "FiniteFeatureMetropolis",
    "GraphJumps",
    "GroupSpikeSlabRegression",
    "GroupedPairwiseGibbs",
    "GroupedPrecisionGibbs",
    "HiddenCauseGibbs",
    "HiddenStateMoves",
    "HiddenTreeMoves",
    "IncompleteNetworkMCMC",
    "LatentFeatureGibbs",
    "LatentFeatureSlice",
    "LinearSemMCMC",
    "LinkFeatureGibbs",
    "MixedNetworkMCMC",
    "NetworkMCMC",
    "NodeInclusionGibbs",
    "OrderNetworkMCMC",
    "PairwiseCells",
    "PairwiseSpikeSlab",
    "PrecisionGibbs",
    "RelationsGibbs",
    "ScoredNetworkMCMC",
    "SparseFactorGibbs",
    "SpikeSlabRegression",
    "SwitchingSeriesMCMC",
    "TreeDraws",
]
