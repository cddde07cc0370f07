"""Posterior modes: NumPy in, NumPy out, stopped on a certified gap."""

from bayesstruct.solvers.graphical_lasso import (
    graphical_lasso,
    graphical_lasso_gap,
    graphical_lasso_path,
)
from bayesstruct.solvers.graphical_spike_slab import SpikeSlabSolution, graphical_spike_slab
from bayesstruct.solvers.neighbourhoods import NeighbourhoodSolution, neighbourhood_modes
from bayesstruct.solvers.selection import (
    bayesian_information_criterion,
    cross_validate,
    stability_selection,
)
from bayesstruct.solvers.solution import ConvergenceWarning, PrecisionSolution, Solution
from bayesstruct.solvers.sparse import SparseSolution, sparse_mode, sparse_path

__all__ = [
    "ConvergenceWarning",
    "NeighbourhoodSolution",
    "PrecisionSolution",
    "Solution",
    "SparseSolution",
    "SpikeSlabSolution",
    "bayesian_information_criterion",
    "cross_validate",
    "graphical_lasso",
    "graphical_lasso_gap",
    "graphical_lasso_path",
    "graphical_spike_slab",
    "neighbourhood_modes",
    "sparse_mode",
    "sparse_path",
    "stability_selection",
]
