"""Step of the hidden causes of binary variables."""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence
from pymc.util import get_random_generator

from bayesstruct.distributions.hidden_causes import MISSING, CauseActivationsRV, NoisyOrRV
from bayesstruct.distributions.indian_buffet import IndianBuffetRV
from bayesstruct.steps.recognition import (
    NotRecognized,
    _children,
    _depends_on,
    check_drawn,
    is_op,
    only_one,
    parameters,
    refusals,
)
from bayesstruct.steps.tables import Expressions

__all__ = ["HiddenCauseGibbs"]

_SUPPORTED = (
    "Supported is one observed NoisyOr of an IndianBuffet over variables and its CauseActivations, on "
    "which nothing else depends; bs.models.hidden_causes makes these"
)


@dataclass
class _Part:
    """Links, activities and the table."""

    feature: object
    cause: object
    rows: object


def _causes_of(model, feature) -> _Part:
    """Collect activities and table around links.

    Raises
    ------
    NotRecognized
        Says what stands in the way.
    """
    children = _children(model, feature)
    causes = [rv for rv in children if is_op(rv, CauseActivationsRV)]
    rows = [rv for rv in children if is_op(rv, NoisyOrRV)]
    if len(causes) != 1 or len(rows) != 1 or len(children) != 2:
        names = ", ".join(repr(rv.name) for rv in children) or "nothing"
        raise NotRecognized(f"{names} depends on {feature.name!r}")
    [cause], [table] = causes, rows
    if _children(model, cause) != [table]:
        raise NotRecognized(f"{table.name!r} is not all that depends on {cause.name!r}")
    first, second, *chances = parameters(table)
    if first is not cause or second is not feature or parameters(cause)[0] is not feature:
        raise NotRecognized(
            f"{table.name!r} is not a NoisyOr of {cause.name!r} and {feature.name!r}"
        )
    if table not in model.observed_RVs:
        raise NotRecognized(f"{table.name!r} is not observed")
    if any(_depends_on([chance], rv) for chance in chances for rv in (feature, cause)):
        raise NotRecognized(f"the probabilities of {table.name!r} depend on its causes")
    if any(rv not in model.free_RVs for rv in (feature, cause)):
        raise NotRecognized(f"{feature.name!r} or {cause.name!r} is observed")
    return _Part(feature, cause, table)


class HiddenCauseGibbs(BlockedStep):
    """Gibbs sampler of the hidden causes of binary variables, and of the rows in which they are active.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` and its
    :class:`bayesstruct.CauseActivations` under a :class:`bayesstruct.NoisyOr`. One call visits the links of
    all variables (:func:`bayesstruct.kernels.hidden_causes.scan_links`), then all activities. Probabilities
    and the parameters of the process are left to other steps.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of one set of links and its activities.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If the causes are not those of a noisy or, or, during a run, there are more of them than there is
        room for.

    Notes
    -----
    Statistics of each draw: ``n_features``.
    """

    name = "hidden_cause_gibbs"
    default_blocked = True
    stats_dtypes_shapes = {"n_features": (int, [])}

    def __init__(
        self, vars, *, model=None, initial_point=None, compile_kwargs=None, rng=None, blocked=True
    ):
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        drawn = [model.values_to_rvs[v] for v in self.vars]
        feature = only_one(drawn, IndianBuffetRV, "sets of links", _SUPPORTED)
        with refusals(feature, _SUPPORTED):
            part = _causes_of(model, feature)
            check_drawn((part.feature, part.cause), drawn)
        self.rng = get_random_generator(rng)
        self.names = part.feature.name, part.cause.name
        self.matrix = part.feature.owner.op.matrix
        _, base = parameters(part.cause)
        _, _, strength, leak = parameters(part.rows)
        tensors = [*parameters(part.feature), strength, leak, base]
        self.values = Expressions(model, tensors, compile_kwargs)
        observed = Expressions(model, [model.rvs_to_values[part.rows]], compile_kwargs)
        x = np.asarray(observed(model.initial_point())[0])
        self.observed = np.ascontiguousarray(np.where(x == MISSING, 2, x).T, np.int8)

    def step(self, point):
        """Draw links and activities once."""
        from bayesstruct.kernels.hidden_causes import scan_activities, scan_links
        from bayesstruct.kernels.indian_buffet import left_order, new_dish_rates

        point = dict(point)
        alpha, c, discount, strength, leak, base = (
            float(np.squeeze(v)) for v in self.values(point)
        )
        p, most = self.matrix
        z = np.array(point[self.names[0]], np.int8)
        y = np.ascontiguousarray(point[self.names[1]].T, np.int8)
        used = int(z.any(axis=0).sum())
        rate = alpha * new_dish_rates(p, c, discount)[-1]
        order = self.rng.permutation(p)
        used = scan_links(
            self.rng, z, y, used, self.observed, order, strength, leak, base, rate, c, discount
        )
        if used < 0:
            raise ValueError(
                f"there are more than {most} causes in {self.names[0]!r}: set `truncation` of the "
                "IndianBuffet, or `max_features` of the model, to more"
            )
        scan_activities(self.rng, z, y, used, self.observed, strength, leak, base)
        columns = left_order(z)
        point[self.names[0]] = z[:, columns]
        point[self.names[1]] = y[columns].T.astype(point[self.names[1]].dtype)
        return point, [{"n_features": used}]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for activities, and for the features that have some."""
        if is_op(var, CauseActivationsRV):
            return Competence.IDEAL
        if not is_op(var, IndianBuffetRV):
            return Competence.INCOMPATIBLE
        children = _children(pm.modelcontext(None), var)
        mine = any(is_op(rv, (CauseActivationsRV, NoisyOrRV)) for rv in children)
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE
