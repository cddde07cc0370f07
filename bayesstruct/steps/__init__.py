"""Step methods, put before PyMC's own so that ``pm.sample`` assigns them unasked."""

from pymc.step_methods import STEP_METHODS

from bayesstruct.steps.aspect_features import AspectFeatureGibbs
from bayesstruct.steps.dyadic_features import DyadicFeatureGibbs
from bayesstruct.steps.finite_features import FiniteFeatureMetropolis
from bayesstruct.steps.hidden_causes import HiddenCauseGibbs
from bayesstruct.steps.latent_features import LatentFeatureGibbs, LatentFeatureSlice
from bayesstruct.steps.mixture_clusters import DirichletMixtureGibbs
from bayesstruct.steps.network_cells import IncompleteNetworkMCMC
from bayesstruct.steps.networks import NetworkMCMC
from bayesstruct.steps.order_networks import OrderNetworkMCMC
from bayesstruct.steps.pairwise import PairwiseSpikeSlab
from bayesstruct.steps.pairwise_cells import PairwiseCells
from bayesstruct.steps.precision import EdgesGibbs, PrecisionGibbs
from bayesstruct.steps.scored_networks import ScoredNetworkMCMC
from bayesstruct.steps.sparse_factors import SparseFactorGibbs
from bayesstruct.steps.spike_slab_regression import SpikeSlabRegression
from bayesstruct.steps.switching_series import SwitchingSeriesMCMC

__all__ = [
    "AspectFeatureGibbs",
    "DirichletMixtureGibbs",
    "DyadicFeatureGibbs",
    "EdgesGibbs",
    "FiniteFeatureMetropolis",
    "HiddenCauseGibbs",
    "IncompleteNetworkMCMC",
    "LatentFeatureGibbs",
    "LatentFeatureSlice",
    "NetworkMCMC",
    "OrderNetworkMCMC",
    "PairwiseCells",
    "PairwiseSpikeSlab",
    "PrecisionGibbs",
    "ScoredNetworkMCMC",
    "SparseFactorGibbs",
    "SpikeSlabRegression",
    "SwitchingSeriesMCMC",
]

# The last is asked first: NetworkMCMC takes all graphs of which the later ones do not say more.
for _step in (
    EdgesGibbs,
    PrecisionGibbs,
    SpikeSlabRegression,
    PairwiseCells,
    PairwiseSpikeSlab,
    LatentFeatureGibbs,
    FiniteFeatureMetropolis,
    LatentFeatureSlice,
    HiddenCauseGibbs,
    SparseFactorGibbs,
    DyadicFeatureGibbs,
    AspectFeatureGibbs,
    SwitchingSeriesMCMC,
    DirichletMixtureGibbs,
    NetworkMCMC,
    OrderNetworkMCMC,
    IncompleteNetworkMCMC,
    ScoredNetworkMCMC,
):
    if _step not in STEP_METHODS:
        STEP_METHODS.insert(0, _step)
