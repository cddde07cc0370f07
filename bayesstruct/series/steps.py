"""Step of series that switch among shared behaviours."""

from dataclasses import dataclass

import numpy as np

from pymc.step_methods.compound import Competence

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    depends_on,
    is_claimed,
    is_op,
    parameters,
)
from bayesstruct.features.priors.indian_buffet import FeatureLoadingsRV
from bayesstruct.features.steps.base import FeatureStep, children_of_kinds
from bayesstruct.features.steps.latent_features import LatentFeatureGibbs
from bayesstruct.series.priors import BehaviourScalesRV, BehaviourTransitionsRV, SwitchingSeriesRV

__all__ = ["SwitchingSeriesMCMC"]

_KINDS = (BehaviourTransitionsRV, FeatureLoadingsRV, BehaviourScalesRV, SwitchingSeriesRV)


@dataclass
class _Part:
    """Behaviours, their parts and the series."""

    feature: object
    transition: object
    mean: object
    scale: object
    rows: object
    seen: np.ndarray

    @property
    def variables(self):
        return self.feature, self.transition, self.mean, self.scale


@register_step(before=LatentFeatureGibbs)
class SwitchingSeriesMCMC(FeatureStep):
    """Sampler of the behaviours that time series share, their transitions, means and deviations.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` over series under a
    :class:`bayesstruct.distributions.SwitchingSeries`. One call visits the behaviours of all series with the states summed out
    (:func:`bayesstruct.series.kernels.scan_behaviours`), draws states, and given them transitions, means and
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
    supported = (
        "Supported is one observed SwitchingSeries of an IndianBuffet over series with its "
        "BehaviourTransitions, FeatureLoadings and BehaviourScales, on which nothing else depends; "
        "bs.models.markov_transitions makes these"
    )

    @staticmethod
    def part_of(model, feature) -> _Part:
        """Collect transitions, means, deviations and series around behaviours."""
        *parts, table = children_of_kinds(model, feature, _KINDS)
        *made_of, seen = parameters(table)
        if any(a is not b for a, b in zip(made_of, (feature, *parts), strict=True)):
            raise NotRecognized(
                f"{table.name!r} is not made of {feature.name!r} and what belongs to it"
            )
        for rv in parts:
            if parameters(rv)[0] is not feature:
                raise NotRecognized(f"{rv.name!r} does not belong to {feature.name!r}")
            if children_of(model, rv) != [table]:
                raise NotRecognized(f"{table.name!r} is not all that depends on {rv.name!r}")
        if depends_on([seen], feature):
            raise NotRecognized(f"which cells of {table.name!r} count depends on {feature.name!r}")
        [seen] = Expressions(model, [seen])(model.initial_point())
        return _Part(feature, *parts, table, seen)

    @staticmethod
    def tensors(part) -> list:
        """Parameters of the process, then those of transitions, means and deviations."""
        own = [t for rv in part.variables[1:] for t in parameters(rv)[1:]]
        return [*parameters(part.feature), *own]

    def observe(self, part, x):
        """Keep the series, where each begins, and the windows to which behaviours are fitted."""
        from bayesstruct.series.kernels import fit_windows

        self.observed = np.where(part.seen > 0, x, np.nan)
        self.starts = np.concatenate([[0], np.cumsum(part.rows.owner.op.lengths)])
        self.windows = fit_windows(self.observed, self.starts)

    def step(self, point):
        """Draw behaviours and their parts once."""
        from bayesstruct.series.kernels import draw_given_states, scan_behaviours

        point, law = dict(point), self._law(point)
        z, weights, theta = self._state(point)
        order, table = self.rng.permutation(len(z)), (self.observed, self.starts)
        fits = scan_behaviours(self.rng, z, weights, theta, law, *table, self.windows, order)
        used = int(z.any(axis=0).sum())
        self._check_room(fits and used <= self.matrix[1])
        states = np.empty(len(self.observed), np.int64)
        draw_given_states(self.rng, z, weights, theta, law, *table, states)
        # Empty columns, of which there is one more than in the point, come last.
        columns = self._order(z)[: self.matrix[1]]
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
        alpha, c, discount, *others = (float(np.squeeze(v)) for v in self.values(point))
        return np.array([self._new_rate(alpha, c, discount), c, discount, *others])

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
        mine = is_claimed(var, "switching_series_mcmc")
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE
