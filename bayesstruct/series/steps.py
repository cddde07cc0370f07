"""Step of series that switch among shared behaviours."""

import numpy as np

from pymc.step_methods.compound import Competence

from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import is_claimed, is_op, parameters
from bayesstruct.features.priors.indian_buffet import FeatureLoadingsRV
from bayesstruct.features.steps.base import FeatureStep
from bayesstruct.features.steps.latent_features import LatentFeatureGibbs
from bayesstruct.series.priors import BehaviourScalesRV, BehaviourTransitionsRV
from bayesstruct.series.recognition import switching_series_of

__all__ = ["SwitchingSeriesMCMC"]


@register_step(before=LatentFeatureGibbs)
class SwitchingSeriesMCMC(FeatureStep):
    """Sampler of the behaviours that time series share, their transitions, means and standard deviations.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` over series under a
    :class:`bayesstruct.distributions.SwitchingSeries`. One call visits the behaviours of all series with the states
    summed out (:func:`bayesstruct.series.kernels.scan.scan_behaviours`), draws states, and given them transitions,
    means and standard deviations (:func:`bayesstruct.series.kernels.states.draw_given_states`). Parameters of the
    priors are left to other steps.

    Raises
    ------
    ValueError
        If the model has another form, or if during a run there are more behaviours than the maximum number.

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
    recognise = staticmethod(switching_series_of)

    @staticmethod
    def tensors(part) -> list:
        """Parameters of the process, then those of transitions, means and standard deviations."""
        own = [t for rv in part.variables[1:] for t in parameters(rv)[1:]]
        return [*parameters(part.feature), *own]

    def observe(self, part, x):
        """Keep the series, where each begins, and the windows to which behaviours are fitted."""
        from bayesstruct.series.kernels.behaviours import fit_windows

        self.observed = np.where(part.seen > 0, x, np.nan)
        self.starts = np.concatenate([[0], np.cumsum(part.rows.owner.op.lengths)])
        self.windows = fit_windows(self.observed, self.starts)

    def step(self, point):
        """Draw behaviours, transitions and parameters of behaviours once."""
        from bayesstruct.series.kernels.scan import scan_behaviours
        from bayesstruct.series.kernels.states import draw_given_states

        point, prior = dict(point), self._prior(point)
        state = z, *_ = self._read(point)
        order, table = self.rng.permutation(len(z)), (self.observed, self.starts)
        fits = scan_behaviours(self.rng, *state, prior, *table, self.windows, order)
        used = int(z.any(axis=0).sum())
        self._check_number(fits and used <= self.matrix[1])
        states = np.empty(len(self.observed), np.int64)
        draw_given_states(self.rng, *state, prior, *table, states)
        self._write(point, *state)
        return point, [{"n_features": used}]

    def _prior(self, point):
        """Parameters of the priors at a point, as the kernels take them."""
        from bayesstruct.series.kernels.behaviours import BehaviourPrior

        alpha, c, discount, *others = (float(np.squeeze(v)) for v in self.values(point))
        return BehaviourPrior(self._new_rate(alpha, c, discount), c, discount, *others)

    def _read(self, point):
        """Copy a point with one column more, in which the scan tries new behaviours."""
        n, most = self.matrix
        feature, transition, mean, scale = (point[name] for name in self.names)
        z, weights = np.zeros((n, most + 1), np.int8), np.zeros((n, most + 1, most + 1))
        theta = np.zeros((2, most + 1, self.observed.shape[1]))
        z[:, :most], theta[0, :most], theta[1, :most] = feature, mean, scale
        weights[:, :most, :most] = transition
        return z, weights, theta

    def _write(self, point, z, weights, theta):
        """Put behaviours into a point in left order, the empty column that was added and others like it last."""
        columns = self._order(z)[: self.matrix[1]]
        z = z[:, columns]
        theta = np.where(z.any(axis=0)[:, None], theta[:, columns], 0.0)
        weights = weights[:, columns[:, None], columns] * z[:, :, None] * z[:, None, :]
        total = weights.sum(axis=2, keepdims=True)
        feature, transition, mean, scale = self.names
        point[feature], (point[mean], point[scale]) = z, theta
        point[transition] = weights / np.where(total > 0.0, total, 1.0)

    @staticmethod
    def competence(var, has_grad):
        """Ideal for behaviours of series, and for their transitions, means and standard deviations."""
        if is_op(var, (BehaviourTransitionsRV, BehaviourScalesRV)):
            return Competence.IDEAL
        if is_op(var, FeatureLoadingsRV):
            var = parameters(var)[0]
        mine = is_claimed(var, "switching_series_mcmc")
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE
