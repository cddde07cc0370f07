"""Step of the aspects by which options are chosen."""

import numpy as np

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state

from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import is_claimed, parameters
from bayesstruct.features.recognition.aspects import aspects_of
from bayesstruct.features.steps.base import FeatureStep, is_initial
from bayesstruct.features.steps.latent_features import LatentFeatureGibbs
from bayesstruct.features.steps.links import LinkFeatureGibbs

__all__ = ["AspectFeatureGibbs"]

_TRIES = 50  # least number of moves of whole aspects in each call; otherwise one for each option
_LEAST = 0.25  # share of the choices that count at the beginning of a warm-up


@dataclass_state
class AspectFeatureGibbsState(StepMethodState):
    """State of a step: number of calls, and in how many calls choices count less."""

    calls: int
    cool: int


@register_step(before=(LatentFeatureGibbs, LinkFeatureGibbs))
class AspectFeatureGibbs(FeatureStep):
    """Gibbs sampler of the aspects by which options are chosen, and of their weights.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` and its
    :class:`bayesstruct.distributions.FeatureInteractions` if these go into
    :func:`bayesstruct.distributions.aspect_probabilities`. One call visits all options (:func:`bayesstruct.features.kernels.aspect_features.scan_aspects`), tries to
    add, remove, split and unite aspects (:func:`bayesstruct.features.kernels.aspect_moves.move_aspects`), then draws all weights. The lapse, the scale of the weights and the parameters of the process are left to other steps.

    Raises
    ------
    ValueError
        If the model has another form, if during a run there are more aspects than the maximum number, or if the
        choices have probability zero where the chain starts, which can happen only with a lapse of zero.

    Notes
    -----
    A warm-up that is at the initial point of the model begins with one aspect for each option, with the weights of
    the model of Bradley and Terry; other starting points stay. In its first half the weight of the choices grows
    from a quarter to one: with many choices a chain finds no way from one set of aspects to another. Statistics of
    each draw: ``n_features``.
    """

    name = "aspect_feature_gibbs"
    supported = (
        "Supported is one observed Binomial with constant `n` whose probability is "
        "`bs.distributions.aspect_probabilities` of an IndianBuffet and its positive diagonal FeatureInteractions, on which nothing else depends; "
        "bs.models.elimination_by_aspects makes these"
    )
    _state_class = AspectFeatureGibbsState

    recognise = staticmethod(aspects_of)

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
        from bayesstruct.features.kernels.aspect_moves import aspect_moves, move_aspects

        point = dict(point)
        alpha, c, discount, scale, lapse = (float(np.squeeze(v)) for v in self.values(point))
        n, most = self.matrix
        z = np.array(point[self.names[0]], np.int8, order="C")
        w = np.array(point[self.names[1]], float)[:, None].copy()
        if self.calls == 0 < self.cool and n <= most and is_initial(z):
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
        self._check_number(used >= 0)
        moves, tries = aspect_moves(n, alpha, c, discount), max(n, _TRIES)
        used = move_aspects(self.rng, z, w, used, choices, moves, tries, lapse, scale)
        self._check_number(used >= 0)
        kernel.draw_aspect_weights(self.rng, z, w, used, choices, lapse, scale)
        w *= kernel.draw_length(self.rng, w[:used, 0], scale)
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
