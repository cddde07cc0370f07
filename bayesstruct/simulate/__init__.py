"""Simulators with a known truth."""

from bayesstruct.simulate.gaussian_graphical import Simulation, gaussian_graphical
from bayesstruct.simulate.ising import IsingSimulation, ising

__all__ = ["IsingSimulation", "Simulation", "gaussian_graphical", "ising"]
