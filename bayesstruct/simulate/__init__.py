"""Simulators with a known truth."""

from bayesstruct.simulate.gaussian_graphical import Simulation, gaussian_graphical

__all__ = ["Simulation", "gaussian_graphical"]
