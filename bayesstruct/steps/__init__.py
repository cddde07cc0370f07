"""Step methods, put before PyMC's own so that ``pm.sample`` assigns them unasked."""

from pymc.step_methods import STEP_METHODS

from bayesstruct.steps.networks import NetworkMCMC
from bayesstruct.steps.pairwise import PairwiseSpikeSlab
from bayesstruct.steps.precision import EdgesGibbs, PrecisionGibbs
from bayesstruct.steps.spike_slab_regression import SpikeSlabRegression

__all__ = [
    "EdgesGibbs",
    "NetworkMCMC",
    "PairwiseSpikeSlab",
    "PrecisionGibbs",
    "SpikeSlabRegression",
]

for _step in (EdgesGibbs, PrecisionGibbs, SpikeSlabRegression, PairwiseSpikeSlab, NetworkMCMC):
    if _step not in STEP_METHODS:
        STEP_METHODS.insert(0, _step)
