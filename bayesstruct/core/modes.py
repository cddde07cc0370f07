"""Registry of the solvers that find posterior modes of whole models, and a general climb for parts of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor.variable import TensorVariable

__all__ = ["Climb", "Mode", "ModeSolver", "mode_solvers", "register_mode", "relative_change"]

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


class Climb:
    """Maximisation over some variables on the natural scale, all others held fixed.

    Parameters
    ----------
    model : pymc.Model
    variables : sequence of TensorVariable
        Continuous free variables that are moved.
    terms : sequence of TensorVariable
        Variables and potentials whose log densities are added.
    """

    def __init__(
        self,
        model: "Model",
        variables: Sequence["TensorVariable"],
        terms: Sequence["TensorVariable"],
    ) -> None:
        import pytensor.tensor as pt

        self.values = [model.rvs_to_values[v] for v in variables]
        logp = model.logp(vars=terms, jacobian=False)
        slopes: Any = pt.grad(logp, self.values)
        gradient = pt.concatenate([slope.ravel() for slope in slopes])
        self.function = model.compile_fn(
            [-logp, -gradient], inputs=model.value_vars, on_unused_input="ignore"
        )

    def update(self, point: dict) -> None:
        """Run L-BFGS from the point, in place."""
        from scipy.optimize import minimize

        names = [v.name for v in self.values]
        shapes = [np.shape(point[name]) for name in names]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

        def place(vector):
            pieces = np.split(vector, ends[:-1])
            for name, piece, shape in zip(names, pieces, shapes, strict=True):
                point[name] = piece.reshape(shape)

        def objective(vector):
            place(vector)
            value, gradient = self.function(point)
            return float(value), np.asarray(gradient)

        start = np.concatenate([np.ravel(point[name]) for name in names])
        result = minimize(
            objective, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10}
        )
        place(result.x)
