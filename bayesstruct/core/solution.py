"""Results of solvers, the warning of a solver that stopped early, and solvers whose penalty is tuned."""

import warnings

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "ConvergenceWarning",
    "Fit",
    "PrecisionSolution",
    "Solution",
    "Tuner",
    "register_tuner",
    "tuner_of",
]


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


_TUNERS: dict[str, type["Tuner"]] = {}


class Fit(NamedTuple):
    """Mode of a model at one setting.

    Attributes
    ----------
    edges : (pairs,) numpy.ndarray of bool
        Which edges it has.
    log_density : callable
        Of a (m, p) array of rows: the (m,) logarithms of their densities at the mode.
    state : object
        What the next fit can start from.
    """

    edges: np.ndarray
    log_density: Callable[[np.ndarray], np.ndarray]
    state: Any = None


class Tuner:
    """Modes of one model of a table, at settings of the numbers that are tuned.

    The constructor takes the table and the options of the model that stay as they are. A subclass defines the methods, and is
    registered by `register_tuner` under the name of the model.

    Attributes
    ----------
    rows : (n, p) numpy.ndarray
        The table as the model sees it.
    columns : sequence of str, length p
        Names of the columns.
    names : sequence of str
        Numbers that may be tuned.
    """

    rows: np.ndarray
    columns: Sequence[str]
    names: Sequence[str]

    def __init__(self, data: Any, **options: Any):
        raise NotImplementedError

    def grid(self) -> dict[str, np.ndarray]:
        """Return the grid that is used unless one is given."""
        raise NotImplementedError

    def fit(self, rows: np.ndarray, setting: dict[str, float], start: Fit | None = None) -> Fit:
        """Find the mode of some of the rows; settings are those for all of them."""
        raise NotImplementedError

    def best_log_likelihood(self, edges: np.ndarray) -> float:
        """Return the largest log-likelihood of all rows with these edges; NaN if there is none."""
        raise NotImplementedError


def register_tuner(model: str):
    """Class decorator: the tuner of a model, by its name in the catalogue."""

    def register(tuner: type[Tuner]) -> type[Tuner]:
        _TUNERS[model] = tuner
        return tuner

    return register


def tuner_of(model: str) -> type[Tuner]:
    """Return the tuner of a model.

    Raises
    ------
    ValueError
        If it has none; the message lists those that have one.
    """
    if model not in _TUNERS:
        known = ", ".join(sorted(_TUNERS))
        raise ValueError(f"{model!r} has no penalty that is tuned; these models have: {known}")
    return _TUNERS[model]
