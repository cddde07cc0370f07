"""Simulators with a known truth."""

from bayesstruct.features.simulate.hidden_causes import HiddenCauseSimulation, hidden_causes
from bayesstruct.features.simulate.latent_features import LatentFeatureSimulation, latent_features
from bayesstruct.features.simulate.link_prediction import LinkSimulation, link_prediction
from bayesstruct.fields.simulate.ising import IsingSimulation, ising
from bayesstruct.fields.simulate.pairwise_mrf import PairwiseMRFSimulation, pairwise_mrf
from bayesstruct.mixtures.simulate import MixtureSimulation, dp_glm
from bayesstruct.networks.simulate import BayesianNetworkSimulation, bayesian_network
from bayesstruct.precision.simulate import (
    GroupedSimulation,
    Simulation,
    gaussian_graphical,
    grouped_gaussian_graphical,
)
from bayesstruct.sem.simulate import LinearSEMSimulation, linear_sem
from bayesstruct.series.simulate import SwitchingSimulation, markov_transitions
from bayesstruct.trees.simulate import LatentTreeSimulation, latent_tree

__all__ = [
    "BayesianNetworkSimulation",
    "GroupedSimulation",
    "HiddenCauseSimulation",
    "IsingSimulation",
    "LatentFeatureSimulation",
    "LatentTreeSimulation",
    "LinearSEMSimulation",
    "LinkSimulation",
    "MixtureSimulation",
    "PairwiseMRFSimulation",
    "Simulation",
    "SwitchingSimulation",
    "bayesian_network",
    "dp_glm",
    "gaussian_graphical",
    "grouped_gaussian_graphical",
    "hidden_causes",
    "ising",
    "latent_features",
    "latent_tree",
    "linear_sem",
    "link_prediction",
    "markov_transitions",
    "pairwise_mrf",
]
