"""What the steps of one set of latent features and of what belongs to them share."""

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, StepMethodState
from pymc.util import get_random_generator

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.recognition import (
    NotRecognized,
    check_drawn,
    children_of,
    depends_on,
    is_op,
    only_one,
    refusals,
)
from bayesstruct.features.priors.indian_buffet import IndianBuffetRV

__all__ = ["FeatureStep", "children_of_kinds"]


def children_of_kinds(model, feature, kinds) -> list:
    """Return the children of features, one of each kind and no other.

    Raises
    ------
    NotRecognized
    """
    children = children_of(model, feature)
    found = [[rv for rv in children if is_op(rv, kind)] for kind in kinds]
    if len(children) != len(kinds) or any(len(rvs) != 1 for rvs in found):
        names = ", ".join(repr(rv.name) for rv in children) or "nothing"
        raise NotRecognized(f"{names} depends on {feature.name!r}")
    return [rv for [rv] in found]


class FeatureStep(BlockedStep):
    """Step of an IndianBuffet and the variables that are drawn with it.

    A subclass has ``supported``, a sentence; ``part_of(model, feature)``, which recognises the model around the
    features and returns an object with ``variables``, the features first, and ``rows``, what was observed;
    ``tensors(part)``, whose values `self.values` gives at a point and which may not depend on the variables; and
    ``observe(part, x)``, called once. What else changes between calls goes into a ``_state_class`` of its own.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If the model has another form.
    """

    default_blocked = True
    stats_dtypes_shapes = {"n_features": (int, [])}
    supported = ""
    _state_class = StepMethodState

    def __init__(
        self, vars, *, model=None, initial_point=None, compile_kwargs=None, rng=None, blocked=True
    ):
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        drawn = [model.values_to_rvs[v] for v in self.vars]
        feature = only_one(drawn, IndianBuffetRV, "sets of features", self.supported)
        with refusals(feature, self.supported):
            part = self.part_of(model, feature)
            check_drawn(part.variables, drawn)
            for rv in part.variables:
                if depends_on(self.tensors(part), rv):
                    raise NotRecognized(f"hyperparameters depend on {rv.name!r}")
            if any(rv not in model.free_RVs for rv in part.variables):
                raise NotRecognized("some of these are observed")
            if part.rows not in model.observed_RVs:
                raise NotRecognized(f"{part.rows.name!r} is not observed")
        self.rng = get_random_generator(rng)
        self.names = tuple(rv.name for rv in part.variables)
        self.matrix = feature.owner.op.matrix
        self.values = Expressions(model, self.tensors(part), compile_kwargs)
        observed = Expressions(model, [model.rvs_to_values[part.rows]], compile_kwargs)
        self.observe(part, np.asarray(observed(model.initial_point())[0]))

    def _new_rate(self, alpha, concentration, discount) -> float:
        """Mean number of features that a row has alone, a priori."""
        from bayesstruct.features.kernels.indian_buffet import new_dish_rates

        return float(alpha * new_dish_rates(self.matrix[0], concentration, discount)[-1])

    def _check_room(self, enough):
        if not enough:
            raise ValueError(
                f"there are more than {self.matrix[1]} features in {self.names[0]!r}: set `truncation` of the "
                "IndianBuffet, or `max_features` of the model, to more"
            )

    def _order(self, z) -> np.ndarray:
        """Left order; columns that are alike come in random order, as what belongs to them is exchangeable."""
        from bayesstruct.features.kernels.indian_buffet import left_order

        order = self.rng.permutation(z.shape[1])
        return order[left_order(z[:, order])]
