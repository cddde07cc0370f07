"""Simulators with a known truth."""

from bayesstruct.simulate.bayesian_network import (
    BayesianNetworkSimulation,
    bayesian_network,
)
from bayesstruct.simulate.dp_glm import MixtureSimulation, dp_glm
from bayesstruct.simulate.gaussian_graphical import Simulation, gaussian_graphical
from bayesstruct.simulate.hidden_causes import HiddenCauseSimulation, hidden_causes
from bayesstruct.simulate.ising import IsingSimulation, ising
from bayesstruct.simulate.latent_features import LatentFeatureSimulation, latent_features
from bayesstruct.simulate.link_prediction import LinkSimulation, link_prediction
from bayesstruct.simulate.markov_transitions import SwitchingSimulation, markov_transitions
from bayesstruct.simulate.pairwise import PairwiseSimulation, pairwise_mrf

__all__ = [
    "BayesianNetworkSimulation",
    "HiddenCauseSimulation",
    "IsingSimulation",
    "LatentFeatureSimulation",
    "LinkSimulation",
    "MixtureSimulation",
    "PairwiseSimulation",
    "Simulation",
    "SwitchingSimulation",
    "bayesian_network",
    "dp_glm",
    "gaussian_graphical",
    "hidden_causes",
    "ising",
    "latent_features",
    "link_prediction",
    "markov_transitions",
    "pairwise_mrf",
]
