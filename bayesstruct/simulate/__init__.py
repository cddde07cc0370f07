"""Simulators with a known truth."""

from bayesstruct.simulate.bayesian_network import (
    BayesianNetworkSimulation,
    bayesian_network,
)
from bayesstruct.simulate.gaussian_graphical import Simulation, gaussian_graphical
from bayesstruct.simulate.ising import IsingSimulation, ising
from bayesstruct.simulate.pairwise import PairwiseSimulation, pairwise_mrf

__all__ = [
    "BayesianNetworkSimulation",
    "IsingSimulation",
    "PairwiseSimulation",
    "Simulation",
    "bayesian_network",
    "gaussian_graphical",
    "ising",
    "pairwise_mrf",
]
