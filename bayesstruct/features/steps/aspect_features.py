"""Step of the aspects by which options are chosen."""

from dataclasses import dataclass

import numpy as np

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pytensor.graph.basic import Constant
from pytensor.tensor.random.basic import BinomialRV

from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    depends_on,
    is_claimed,
    is_op,
    parameters,
)
from bayesstruct.features.kernels.link_codes import DIAGONAL
from bayesstruct.features.priors.aspect_choices import AspectProbabilities
from bayesstruct.features.priors.feature_interactions import FeatureInteractionsRV
from bayesstruct.features.steps.base import FeatureStep, children_of_kinds
from bayesstruct.features.steps.latent_features import LatentFeatureGibbs
from bayesstruct.features.steps.links import is_initial_point

__all__ = ["AspectFeatureGibbs"]

_LEAST = 0.25  # share of the choices that count at the beginning of a warm-up


@dataclass
class _Part:
    """Aspects, their weights and the choices."""

    feature: object
    weight: object
    rows: object
    trials: np.ndarray
    first: np.ndarray
    second: np.ndarray
    lapse: object

    @property
    def variables(self):
        return self.feature, self.weight


def _is_choice(rv) -> bool:
    """Whether these are numbers of choices by elimination of aspects."""
    return is_op(rv, BinomialRV) and is_op(parameters(rv)[1], AspectProbabilities)


@dataclass_state
class AspectFeatureGibbsState(StepMethodState):
    """State of a step: calls so far, and in how many of them choices count less."""

    calls: int
    cool: int


@register_step(before=LatentFeatureGibbs)
class AspectFeatureGibbs(FeatureStep):
    """Gibbs sampler of the aspects by which options are chosen, and of their weights.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` and its
    :class:`bayesstruct.distributions.FeatureInteractions` where these go into :func:`bayesstruct.distributions.aspect_probabilities`. One
    call visits all options (:func:`bayesstruct.features.kernels.aspect_features.scan_aspects`), then all weights. The
    lapse, the scale of the weights and the parameters of the process are left to other steps.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of one set of aspects and its weights.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If the model is another one, or, during a run, there are more aspects than there is room for, or the
        choices have probability zero where the chain starts, which takes a lapse of zero.

    Notes
    -----
    A warm-up that is at the initial point of the model begins with one aspect for each option, of the weights of
    the model of Bradley and Terry; other starting points stay. In its first half the choices count less, from a
    quarter to in full: many of them leave a chain no way from one set of aspects to another. Statistics of each
    draw: ``n_features``.
    """

    name = "aspect_feature_gibbs"
    supported = (
        "Supported is one observed Binomial with constant `n` whose probability is `bs.distributions.aspect_probabilities` of an "
        "IndianBuffet and its positive diagonal FeatureInteractions, on which nothing else depends; "
        "bs.models.elimination_by_aspects makes these"
    )
    _state_class = AspectFeatureGibbsState

    @staticmethod
    def part_of(model, feature) -> _Part:
        """Collect weights and choices around aspects."""
        weight, y = children_of_kinds(model, feature, (FeatureInteractionsRV, BinomialRV))
        if not _is_choice(y) or children_of(model, weight) != [y]:
            raise NotRecognized(f"{weight.name!r} does not go into aspect_probabilities alone")
        trials, chance = parameters(y)
        z, w, lapse, first, second = chance.owner.inputs
        op = weight.owner.op
        if z is not feature or w is not weight or op.kind != DIAGONAL or not op.positive:
            raise NotRecognized(
                f"{weight.name!r} are not positive weights of {feature.name!r}, one each"
            )
        if not isinstance(trials, Constant):
            raise NotRecognized(f"`n` of {y.name!r} is not constant")
        if any(depends_on([lapse, parameters(weight)[2]], rv) for rv in (feature, weight)):
            raise NotRecognized("the lapse or the scale of the weights depends on the aspects")
        if max(first.data.max(), second.data.max()) >= feature.owner.op.matrix[0]:
            raise NotRecognized(f"{y.name!r} has options that have no row of aspects")
        return _Part(feature, weight, y, trials.data, first.data, second.data, lapse)

    @staticmethod
    def tensors(part) -> list:
        """Parameters of the process, scale of the weights, lapse."""
        return [*parameters(part.feature), parameters(part.weight)[2], part.lapse]

    def observe(self, part, x):
        """Keep the choices, and which of them each option is in."""
        from bayesstruct.features.kernels.link_features import incidence

        n = self.matrix[0]
        if x.shape != part.first.shape:
            raise ValueError(
                f"{part.rows.name!r} has shape {x.shape} and its `aspect_probabilities` {len(part.first)} pairs of "
                "options: give one count for each pair"
            )
        self.rows = part.rows.name
        self.pairs = part.first.astype(np.int64), part.second.astype(np.int64)
        self.incidence = incidence(*self.pairs, n, n, True)
        self.counts = x.astype(float), np.broadcast_to(part.trials, x.shape).astype(float)
        self.calls, self.cool = 0, 0

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain, and the length of its warm-up."""
        super().setup_chain(rng, tune, draws)
        self.calls, self.cool = 0, tune // 2

    def step(self, point):
        """Draw aspects and weights once."""
        from bayesstruct.features.kernels import aspect_features as kernel

        point = dict(point)
        alpha, c, discount, scale, lapse = (float(np.squeeze(v)) for v in self.values(point))
        n, most = self.matrix
        z = np.array(point[self.names[0]], np.int8, order="C")
        w = np.array(point[self.names[1]], float)[:, None].copy()
        if self.calls == 0 < self.cool and n <= most and is_initial_point(z):
            z[:], w[:] = np.eye(n, most), 0.0
            w[:n, 0] = kernel.own_weights(n, *self.pairs, *self.counts, scale)
        gain = kernel.advantages(z, w[:, 0], *self.pairs)
        choices = kernel.Choices(*self.pairs, *(self._share() * v for v in self.counts), gain)
        if not np.isfinite(kernel.log_choices(choices, lapse, scale)):
            raise ValueError(
                f"{self.rows!r} has choices whose probability is zero or no number: an option was chosen that has no "
                "aspect of its own; start elsewhere, or let `lapse` be above 0"
            )
        self.calls += 1
        process = np.array([self._new_rate(alpha, c, discount), c, discount])
        used, options = int(z.any(axis=0).sum()), self.rng.permutation(n)
        places = self.incidence.start, self.incidence.pair
        used = kernel.scan_aspects(
            self.rng, z, w, used, choices, *places, options, lapse, scale, process
        )
        self._check_room(used >= 0)
        kernel.draw_aspect_weights(self.rng, z, w, used, choices, lapse, scale)
        order = self._order(z)
        point[self.names[0]], point[self.names[1]] = z[:, order], w[order, 0]
        return point, [{"n_features": used}]

    def _share(self) -> float:
        """Share of the choices that count in this call."""
        if self.calls >= self.cool:
            return 1.0
        return _LEAST + (1.0 - _LEAST) * self.calls / self.cool

    @staticmethod
    def competence(var, has_grad):
        """Ideal for aspects and weights that go into aspect_probabilities."""
        return (
            Competence.IDEAL if is_claimed(var, "aspect_feature_gibbs") else Competence.INCOMPATIBLE
        )
