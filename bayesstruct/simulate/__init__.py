"""Simulators with a known truth."""

from bayesstruct.simulate.bayesian_network import (
    BayesianNetworkSimulation,
    bayesian_network,
)
from bayesstruct.simulate.gaussian_graphical import Simulation, gaussian_graphical
from bayesstruct.simulate.ising import IsingSimulation, ising
from bayesstruct.simulate.latent_features import LatentFeatureSimulation, latent_features
from bayesstruct.simulate.pairwise import PairwiseSimulation, pairwise_mrf

__all__ = [
    "BayesianNetworkSimulation",
    "IsingSimulation",
    "LatentFeatureSimulation",
    "PairwiseSimulation",
    "Simulation",
    "bayesian_network",
    "gaussian_graphical",
    "ising",
    "latent_features",
    "pairwise_mrf",
]
