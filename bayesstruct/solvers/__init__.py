"""Posterior modes: NumPy in, NumPy out, stopped on a certified gap."""

from bayesstruct.solvers.graphical_lasso import (
    graphical_lasso,
    graphical_lasso_gap,
    graphical_lasso_path,
)
from bayesstruct.solvers.graphical_spike_slab import SpikeSlabSolution, graphical_spike_slab
from bayesstruct.solvers.solution import ConvergenceWarning, PrecisionSolution, Solution

__all__ = [
    "ConvergenceWarning",
    "PrecisionSolution",
    "Solution",
    "SpikeSlabSolution",
    "graphical_lasso",
    "graphical_lasso_gap",
    "graphical_lasso_path",
    "graphical_spike_slab",
]
