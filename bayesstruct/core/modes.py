"""Registry of the solvers that find posterior modes of whole models."""

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Mode", "ModeSolver", "mode_solvers", "register_mode", "relative_change"]

_SOLVERS: list["ModeSolver"] = []


@dataclass(frozen=True)
class Mode:
    """A posterior mode, and whether it was reached.

    Attributes
    ----------
    point : dict
        Values of the value variables by name.
    converged : bool
    rounds : int
        Rounds of alternation that were made, or their bound.
    change : float
        Largest relative change in the last round.
    """

    point: dict
    converged: bool = True
    rounds: int = 1
    change: float = 0.0


class ModeSolver:
    """Finds the posterior mode of models with one kind of structure.

    The docstring of a subclass says which mode that is: `bayesstruct.find_MAP` shows it.
    """

    def recognise(self, model):
        """Return the part of a model that this solver serves, or None.

        Raises
        ------
        NotRecognized
            If there is a structure of this kind in a model that the solver does not serve.
        ValueError
            If the model has such a structure, whose mode nothing finds; with reason and remedy.
        """
        raise NotImplementedError

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Find the mode.

        Parameters
        ----------
        model : pymc.Model
        part : object
            As from `recognise`.
        tol : float
            Relative change of the mode at which the solver stops.
        max_rounds : int
            Bound on the rounds of alternation.
        """
        raise NotImplementedError


def register_mode(
    solver: type["ModeSolver"] | None = None,
    *,
    before: type | tuple[type, ...] = (),
    after: type | tuple[type, ...] = (),
    last: bool = False,
) -> Any:
    """Let ``find_MAP`` ask a solver whether it serves a model.

    Parameters
    ----------
    solver : type, optional
        Subclass of `ModeSolver`. Without it a decorator is returned.
    before, after : type or tuple of type
        Registered solvers that must be asked after this one, or before it. By default it is asked first.
    last : bool
        Whether all others are asked before it.

    Returns
    -------
    type
        The solver.

    Raises
    ------
    ValueError
        If one of these is not registered.
    """
    if solver is None:
        return lambda solver: register_mode(solver, before=before, after=after, last=last)
    later = before if isinstance(before, tuple) else (before,)
    earlier = after if isinstance(after, tuple) else (after,)
    kinds = [type(known) for known in _SOLVERS]
    for other in (*later, *earlier):
        if other not in kinds:
            raise ValueError(
                f"{other.__name__} must be registered before {solver.__name__} names it"
            )
    if solver not in kinds:
        place = min((kinds.index(other) for other in later), default=0)
        place = max((kinds.index(other) + 1 for other in earlier), default=place)
        _SOLVERS.insert(len(_SOLVERS) if last else place, solver())
    return solver


def mode_solvers() -> tuple:
    """Return the registered solvers, in the order in which they are asked."""
    return tuple(_SOLVERS)


def relative_change(before, after) -> float:
    """Largest change of an array, relative to one and the largest new value."""
    before, after = np.asarray(before, float), np.asarray(after, float)
    if before.size == 0:
        return 0.0
    return float(np.max(np.abs(after - before)) / (1.0 + np.max(np.abs(after))))
