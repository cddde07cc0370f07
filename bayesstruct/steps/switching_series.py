"""Step of series that switch among shared behaviours."""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence
from pymc.util import get_random_generator

from bayesstruct.distributions.indian_buffet import FeatureLoadingsRV, IndianBuffetRV
from bayesstruct.distributions.switching_series import (
    BehaviourScalesRV,
    BehaviourTransitionsRV,
    SwitchingSeriesRV,
)
from bayesstruct.steps.recognition import (
    NotRecognized,
    _children,
    check_drawn,
    is_drawn_with,
    is_op,
    only_one,
    parameters,
    refusals,
)
from bayesstruct.steps.tables import Expressions

__all__ = ["SwitchingSeriesMCMC"]

_SUPPORTED = (
    "Supported is one observed SwitchingSeries of an IndianBuffet over series with its "
    "BehaviourTransitions, FeatureLoadings and BehaviourScales, on which nothing else depends; "
    "bs.models.markov_transitions makes these"
)
_KINDS = (BehaviourTransitionsRV, FeatureLoadingsRV, BehaviourScalesRV)


@dataclass
class _Part:
    """Behaviours, their parts and the series."""

    feature: object
    transition: object
    mean: object
    scale: object
    series: object

    @property
    def drawn(self):
        return self.feature, self.transition, self.mean, self.scale


def _behaviours_of(model, feature) -> _Part:
    """Collect what belongs to behaviours.

    Raises
    ------
    NotRecognized
        Says what stands in the way.
    """
    children = _children(model, feature)
    tables = [rv for rv in children if is_op(rv, SwitchingSeriesRV)]
    if len(tables) != 1 or len(children) != 4:
        names = ", ".join(repr(rv.name) for rv in children) or "nothing"
        raise NotRecognized(f"{names} depends on {feature.name!r}")
    [table] = tables
    first, *parts, _ = parameters(table)
    if first is not feature:
        raise NotRecognized(f"{table.name!r} is not made of {feature.name!r}")
    for rv, kind in zip(parts, _KINDS, strict=True):
        if not is_op(rv, kind) or parameters(rv)[0] is not feature:
            raise NotRecognized(f"a part of {table.name!r} is no {kind.__name__[:-2]} of its own")
        if _children(model, rv) != [table]:
            raise NotRecognized(f"{table.name!r} is not all that depends on {rv.name!r}")
    part = _Part(feature, *parts, table)
    if table not in model.observed_RVs or any(rv not in model.free_RVs for rv in part.drawn):
        raise NotRecognized(f"{table.name!r} must be observed, and nothing else")
    return part


class SwitchingSeriesMCMC(BlockedStep):
    """Sampler of the behaviours that time series share, their transitions, means and deviations.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` over series under a
    :class:`bayesstruct.SwitchingSeries`. One call visits the behaviours of all series with the states summed out
    (:func:`bayesstruct.kernels.switching_series.scan_behaviours`), draws states, and given them transitions, means and
    standard deviations. Parameters of the priors are left to other steps.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of the behaviours and their three parts.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If the model is another one, or, during a run, there are more behaviours than there is room for.

    Notes
    -----
    Statistics of each draw: ``n_features``.
    """

    name = "switching_series_mcmc"
    default_blocked = True
    stats_dtypes_shapes = {"n_features": (int, [])}

    def __init__(
        self, vars, *, model=None, initial_point=None, compile_kwargs=None, rng=None, blocked=True
    ):
        from bayesstruct.kernels.switching_series import fit_windows

        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        drawn = [model.values_to_rvs[v] for v in self.vars]
        feature = only_one(drawn, IndianBuffetRV, "sets of behaviours", _SUPPORTED)
        with refusals(feature, _SUPPORTED):
            part = _behaviours_of(model, feature)
            check_drawn(part.drawn, drawn)
        self.rng = get_random_generator(rng)
        self.names = [rv.name for rv in part.drawn]
        self.matrix = part.feature.owner.op.matrix
        tensors = list(parameters(part.feature))
        for rv in (part.transition, part.mean, part.scale):
            tensors += parameters(rv)[1:]
        self.values = Expressions(model, tensors, compile_kwargs)
        seen = parameters(part.series)[-1]
        fixed = Expressions(model, [model.rvs_to_values[part.series], seen], compile_kwargs)
        x, seen = fixed(model.initial_point())
        self.observed = np.where(np.asarray(seen) > 0, x, np.nan)
        lengths = part.series.owner.op.lengths
        self.starts = np.concatenate([[0], np.cumsum(lengths)])
        self.windows = fit_windows(self.observed, self.starts)

    def step(self, point):
        """Draw behaviours and their parts once."""
        from bayesstruct.kernels.indian_buffet import left_order
        from bayesstruct.kernels.switching_series import draw_given_states, scan_behaviours

        point, law = dict(point), self._law(point)
        z, weights, theta = self._state(point)
        order, table = self.rng.permutation(len(z)), (self.observed, self.starts)
        fits = scan_behaviours(self.rng, z, weights, theta, law, *table, self.windows, order)
        used = int(z.any(axis=0).sum())
        if not fits or used > self.matrix[1]:
            raise ValueError(
                f"there are more than {self.matrix[1]} behaviours in {self.names[0]!r}: set `truncation` of "
                "the IndianBuffet, or `max_features` of the model, to more"
            )
        states = np.empty(len(self.observed), np.int64)
        draw_given_states(self.rng, z, weights, theta, law, *table, states)
        columns = left_order(z)[: self.matrix[1]]
        z = z[:, columns]
        theta = np.where(z.any(axis=0)[:, None], theta[:, columns], 0.0)
        weights = weights[:, columns[:, None], columns] * z[:, :, None] * z[:, None, :]
        total = weights.sum(axis=2, keepdims=True)
        feature, transition, mean, scale = self.names
        point[feature], (point[mean], point[scale]) = z, theta
        point[transition] = weights / np.where(total > 0.0, total, 1.0)
        return point, [{"n_features": used}]

    def _law(self, point):
        """Parameters of the priors, as the kernels take them."""
        from bayesstruct.kernels.indian_buffet import new_dish_rates

        alpha, c, discount, *others = (float(np.squeeze(v)) for v in self.values(point))
        rate = alpha * new_dish_rates(self.matrix[0], c, discount)[-1]
        return np.array([rate, c, discount, *others])

    def _state(self, point):
        """Copy a point with one column more, in which the scan tries new behaviours."""
        n, most = self.matrix
        feature, transition, mean, scale = (point[name] for name in self.names)
        z, weights = np.zeros((n, most + 1), np.int8), np.zeros((n, most + 1, most + 1))
        theta = np.zeros((2, most + 1, self.observed.shape[1]))
        z[:, :most], theta[0, :most], theta[1, :most] = feature, mean, scale
        weights[:, :most, :most] = transition
        return z, weights, theta

    @staticmethod
    def competence(var, has_grad):
        """Ideal for behaviours of series, and for their parts."""
        if is_op(var, (BehaviourTransitionsRV, BehaviourScalesRV)):
            return Competence.IDEAL
        if is_op(var, FeatureLoadingsRV):
            var = parameters(var)[0]
        mine = is_drawn_with(var, "behaviours")
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE
