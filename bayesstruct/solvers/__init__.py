"""Posterior modes: NumPy in, NumPy out, stopped on a certified gap."""

from bayesstruct.solvers.graphical_lasso import (
    graphical_lasso,
    graphical_lasso_gap,
    graphical_lasso_path,
)
from bayesstruct.solvers.solution import ConvergenceWarning, PrecisionSolution, Solution

__all__ = [
    "ConvergenceWarning",
    "PrecisionSolution",
    "Solution",
    "graphical_lasso",
    "graphical_lasso_gap",
    "graphical_lasso_path",
]
