"""Results of solvers, and the warning of a solver that stopped early."""

import warnings

from dataclasses import dataclass

import numpy as np

__all__ = ["ConvergenceWarning", "PrecisionSolution", "Solution"]


class ConvergenceWarning(UserWarning):
    """A solver stopped before its gap or residual reached the tolerance."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of a solver; subclasses add the estimate.

    Attributes
    ----------
    objective : float
        Objective at the estimate, as the solver's docstring defines it.
    gap : float
        Certified bound on the distance to the optimal objective.
    iterations : int
        Outer iterations taken.
    converged : bool
        Whether the stopping rule was met.
    """

    objective: float
    gap: float
    iterations: int
    converged: bool

    def warn_unless_converged(self, name: str, advice: str) -> None:
        """Warn with a `ConvergenceWarning`, at the line of the caller's caller, unless converged."""
        if not self.converged:
            warnings.warn(
                f"{name} stopped after {self.iterations} iterations with gap {self.gap:.2g}. {advice}",
                ConvergenceWarning,
                stacklevel=3,
            )


@dataclass(frozen=True, eq=False)
class PrecisionSolution(Solution):
    """A `Solution` whose estimate is a precision matrix.

    Attributes
    ----------
    precision : (p, p) numpy.ndarray
        The estimate; exact zeros off its support.
    covariance : (p, p) numpy.ndarray
        Its inverse.
    """

    precision: np.ndarray
    covariance: np.ndarray
