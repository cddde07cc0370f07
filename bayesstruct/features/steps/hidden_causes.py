"""Step of the hidden causes of binary variables."""

import numpy as np

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state

from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import is_claimed, is_op, parameters
from bayesstruct.features.priors.hidden_causes import MISSING, CauseActivationsRV
from bayesstruct.features.recognition.causes import hidden_causes_of
from bayesstruct.features.steps.base import FeatureStep
from bayesstruct.features.steps.latent_features import LatentFeatureGibbs

__all__ = ["HiddenCauseGibbs"]

_LEAK = 0.4  # of the first call of a warm-up
_MOVES = 20  # merges and splits that are tried in a call


@dataclass_state
class HiddenCauseGibbsState(StepMethodState):
    """State of a step: number of calls, and in how many calls the leak is increased."""

    calls: int
    cool: int


@register_step(before=LatentFeatureGibbs)
class HiddenCauseGibbs(FeatureStep):
    """Gibbs sampler of the hidden causes of binary variables, and of the rows in which they are active.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` and its
    :class:`bayesstruct.distributions.CauseActivations` under a :class:`bayesstruct.distributions.NoisyOr`. One call
    visits the causes of all variables (:func:`bayesstruct.features.kernels.hidden_causes.scan_causes`), then all activities, and
    tries to merge causes and to split some. Probabilities and the parameters of the process are left to other
    steps.

    Raises
    ------
    ValueError
        If the causes are not those of a noisy or, or if during a run there are more causes than the maximum
        number.

    Notes
    -----
    In the first half of a warm-up the leak falls from 0.4 to its value: which causes variables have is then less
    certain, and a chain finds its way from one set of causes to another. Strength, leak and base rate are one number
    each: variables or rows with probabilities of their own are refused. Statistics of each draw: ``n_features``.
    """

    name = "hidden_cause_gibbs"
    _state_class = HiddenCauseGibbsState
    supported = (
        "Supported is one observed NoisyOr of an IndianBuffet over variables and its CauseActivations, on "
        "which nothing else depends; bs.models.hidden_causes makes these"
    )
    recognise = staticmethod(hidden_causes_of)

    @staticmethod
    def tensors(part) -> list:
        """Parameters of the process, strength, leak and base rate."""
        _, base = parameters(part.cause)
        _, _, strength, leak = parameters(part.rows)
        return [*parameters(part.feature), strength, leak, base]

    def observe(self, part, x):
        """Keep the table as the kernels take it."""
        self.observed = np.ascontiguousarray(
            np.where(np.isnan(x) | (x == MISSING), 2, x).T, np.int8
        )
        self.calls, self.cool = 0, 0

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain, and the length of its warm-up."""
        super().setup_chain(rng, tune, draws)
        self.calls, self.cool = 0, tune // 2

    def step(self, point):
        """Draw causes of variables and activities once."""
        from bayesstruct.features.kernels.hidden_causes import scan_activities, scan_causes

        point, rng = dict(point), self.rng
        feature, cause = self.names
        alpha, c, discount, *chances = (float(np.squeeze(v)) for v in self.values(point))
        chances[1] = self._leak(chances[1])
        self.calls += 1
        z = np.array(point[feature], np.int8, order="C")
        y = np.ascontiguousarray(point[cause].T, np.int8)
        used, variables = int(z.any(axis=0).sum()), rng.permutation(len(z))
        process = self._new_rate(alpha, c, discount), c, discount
        used = scan_causes(rng, z, y, used, self.observed, variables, *chances, *process)
        self._check_number(used >= 0)
        scan_activities(rng, z, y, used, self.observed, *chances)
        used = self._merge_and_split(z, y, used, chances, (alpha, c, discount))
        order = self._order(z)
        point[feature], point[cause] = z[:, order], y[order].T.astype(point[cause].dtype)
        return point, [{"n_features": used}]

    def _leak(self, value) -> float:
        """Leak in this call, given its value at the point."""
        if self.calls >= self.cool:
            return value
        return value + (max(_LEAK, value) - value) * (1 - self.calls / self.cool)

    def _merge_and_split(self, z, y, used, chances, process):
        """Try to merge causes and to split some, in place; return the number of causes."""
        from bayesstruct.features.kernels.cause_splits import merge_or_split

        has, active = z[:, :used].copy(), y[:used].copy()
        for _ in range(_MOVES):
            has, active = merge_or_split(self.rng, has, active, self.observed, chances, process)
            self._check_number(has.shape[1] <= z.shape[1])
        used = has.shape[1]
        z[:, :used], z[:, used:] = has, 0
        y[:used], y[used:] = active, 0
        return used

    @staticmethod
    def competence(var, has_grad):
        """Ideal for activities, and for the features that have some."""
        if is_op(var, CauseActivationsRV) or is_claimed(var, "hidden_cause_gibbs"):
            return Competence.IDEAL
        return Competence.INCOMPATIBLE
