"""Evaluate tensors of a model at a point."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor.variable import TensorVariable

__all__ = ["Expressions"]


class Expressions:
    """Evaluate tensors of a model at points, without compiling a function where none is needed.

    Constants, shared variables and untransformed free variables are read; a function is compiled for
    the other tensors.

    Parameters
    ----------
    model : pymc.Model
    tensors : sequence of TensorVariable
    compile_kwargs : dict, optional
        Options of that compilation.
    user : str, optional
        Name of the variable that is drawn given these tensors, which must then be numbers, not NaN.
    """

    def __init__(
        self,
        model: "Model",
        tensors: Sequence["TensorVariable"],
        compile_kwargs: dict | None = None,
        user: str | None = None,
    ) -> None:
        self.user = user
        self.values = [t.data if isinstance(t, Constant) else None for t in tensors]
        self.shared = {i: t for i, t in enumerate(tensors) if isinstance(t, SharedVariable)}
        self.direct = {
            i: model.rvs_to_values[t].name
            for i, t in enumerate(tensors)
            if t in model.free_RVs and model.rvs_to_transforms.get(t) is None
        }
        known = {*self.direct, *self.shared}
        self.places = [i for i, v in enumerate(self.values) if v is None and i not in known]
        self.function = None
        if self.places:
            outputs = model.replace_rvs_by_values([tensors[i] for i in self.places])
            self.function = model.compile_fn(
                outputs,
                inputs=model.value_vars,
                on_unused_input="ignore",
                **(compile_kwargs or {}),
            )

    def __call__(self, point: dict) -> list:
        """Return the values at a point, a dict of value variables by name.

        Raises
        ------
        ValueError
            If a value is NaN that somebody is to be drawn from.
        """
        out = list(self.values)
        for i, name in self.direct.items():
            out[i] = point[name]
        for i, variable in self.shared.items():
            out[i] = variable.get_value()
        if self.function is not None:
            for i, value in zip(self.places, self.function(point), strict=True):
                out[i] = value
        if self.user is not None and any(np.isnan(np.asarray(value)).any() for value in out):
            raise ValueError(
                f"{self.user!r} cannot be drawn: a term that it depends on is NaN. Look for missing values in the covariates, "
                "offsets and other constants of the model; leave out their rows or fill them"
            )
        return out
