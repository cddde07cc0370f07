"""Step of the hidden causes of binary variables."""

from dataclasses import dataclass

import numpy as np

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state

from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    depends_on,
    is_claimed,
    is_op,
    parameters,
)
from bayesstruct.features.priors.hidden_causes import MISSING, CauseActivationsRV, NoisyOrRV
from bayesstruct.features.steps.base import FeatureStep, children_of_kinds
from bayesstruct.features.steps.latent_features import LatentFeatureGibbs

__all__ = ["HiddenCauseGibbs"]

_LEAK = 0.4  # of the first call of a warm-up
_MOVES = 20  # merges and splits that are tried in a call


@dataclass
class _Part:
    """Links, activities and the table."""

    feature: object
    cause: object
    rows: object

    @property
    def variables(self):
        return self.feature, self.cause


@dataclass_state
class HiddenCauseGibbsState(StepMethodState):
    """State of a step: calls so far, and in how many of them the leak is larger than it is."""

    calls: int
    cool: int


@register_step(before=LatentFeatureGibbs)
class HiddenCauseGibbs(FeatureStep):
    """Gibbs sampler of the hidden causes of binary variables, and of the rows in which they are active.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` and its
    :class:`bayesstruct.distributions.CauseActivations` under a :class:`bayesstruct.distributions.NoisyOr`. One call visits the links of
    all variables (:func:`bayesstruct.features.kernels.hidden_causes.scan_links`), then all activities, and tries to merge
    causes and to split some. Probabilities and the parameters of the process are left to other steps.

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
    In the first half of a warm-up the leak falls from 0.4 to its value: links are then less certain, and a chain
    finds its way from one set of causes to another. Strength, leak and base rate are one number each: variables or
    rows with probabilities of their own are refused. Statistics of each draw: ``n_features``.
    """

    name = "hidden_cause_gibbs"
    _state_class = HiddenCauseGibbsState
    supported = (
        "Supported is one observed NoisyOr of an IndianBuffet over variables and its CauseActivations, on "
        "which nothing else depends; bs.models.hidden_causes makes these"
    )

    @staticmethod
    def part_of(model, feature) -> _Part:
        """Collect activities and table around links."""
        cause, table = children_of_kinds(model, feature, (CauseActivationsRV, NoisyOrRV))
        if children_of(model, cause) != [table]:
            raise NotRecognized(f"{table.name!r} is not all that depends on {cause.name!r}")
        first, second, *chances = parameters(table)
        if first is not cause or second is not feature or parameters(cause)[0] is not feature:
            raise NotRecognized(
                f"{table.name!r} is not a NoisyOr of {cause.name!r} and {feature.name!r}"
            )
        if any(depends_on([chance], rv) for chance in chances for rv in (feature, cause)):
            raise NotRecognized(f"the probabilities of {table.name!r} depend on its causes")
        for rv, numbers in ((table, chances), (cause, parameters(cause)[1:])):
            if any(length != 1 for number in numbers for length in number.type.shape):
                raise NotRecognized(f"the probabilities of {rv.name!r} are not one number each")
        return _Part(feature, cause, table)

    @staticmethod
    def tensors(part) -> list:
        """Parameters of the process, strength, leak and base rate."""
        _, base = parameters(part.cause)
        _, _, strength, leak = parameters(part.rows)
        return [*parameters(part.feature), strength, leak, base]

    def observe(self, part, x):
        """Keep the table as the kernels take it."""
        self.observed = np.ascontiguousarray(np.where(x == MISSING, 2, x).T, np.int8)
        self.calls, self.cool = 0, 0

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain, and the length of its warm-up."""
        super().setup_chain(rng, tune, draws)
        self.calls, self.cool = 0, tune // 2

    def step(self, point):
        """Draw links and activities once."""
        from bayesstruct.features.kernels.hidden_causes import scan_activities, scan_links

        point, rng = dict(point), self.rng
        feature, cause = self.names
        alpha, c, discount, *chances = (float(np.squeeze(v)) for v in self.values(point))
        chances[1] = self._leak(chances[1])
        self.calls += 1
        z = np.array(point[feature], np.int8, order="C")
        y = np.ascontiguousarray(point[cause].T, np.int8)
        used, variables = int(z.any(axis=0).sum()), rng.permutation(len(z))
        process = self._new_rate(alpha, c, discount), c, discount
        used = scan_links(rng, z, y, used, self.observed, variables, *chances, *process)
        self._check_room(used >= 0)
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
        from bayesstruct.features.kernels.hidden_causes import merge_or_split

        links, active = z[:, :used].copy(), y[:used].copy()
        for _ in range(_MOVES):
            links, active = merge_or_split(self.rng, links, active, self.observed, chances, process)
            self._check_room(links.shape[1] <= z.shape[1])
        used = links.shape[1]
        z[:, :used], z[:, used:] = links, 0
        y[:used], y[used:] = active, 0
        return used

    @staticmethod
    def competence(var, has_grad):
        """Ideal for activities, and for the features that have some."""
        if is_op(var, CauseActivationsRV) or is_claimed(var, "hidden_cause_gibbs"):
            return Competence.IDEAL
        return Competence.INCOMPATIBLE
