"""Maximisation of a model's density over some of its continuous variables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor.variable import TensorVariable

__all__ = ["Climb"]


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
