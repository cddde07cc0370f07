"""Step of the binary features of objects of which pairs are observed, and of their weights."""

import numpy as np
import pytensor.tensor as pt

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import (
    check_drawn,
    is_claimed,
    is_op,
    only_one,
    parameters,
    refusals,
)
from bayesstruct.features.priors.feature_interactions import FeatureInteractionsRV
from bayesstruct.features.recognition.links import linked_features_of, unequal
from bayesstruct.features.steps.base import is_initial, random_left_order, too_many_features
from bayesstruct.features.steps.latent_features import LatentFeatureGibbs

__all__ = ["LinkFeatureGibbs"]

_WAITS = 20  # calls after the search in which features stay, and bias and standard deviations adapt
_RESTARTS = 5  # searches of a chain, of which the best counts
_PAIRS = 20_000  # pairs times searches; fewer searches where there are more pairs
_TRIES = 2  # proposals of the features that one object alone has, each time that it is visited
_SUPPORTED = (
    "Supported is one observed FeatureLinks, or Normal with one number as its standard deviation, whose "
    "predictor is `feature_pairs(...)` plus what depends on neither features nor weights, with one or two "
    "IndianBuffets and their FeatureInteractions on which nothing else depends; bs.models.link_prediction "
    "makes these"
)


@dataclass_state
class LinkFeatureGibbsState(StepMethodState):
    """State of a step: whether it has begun, and for how many more calls features stay."""

    begun: bool
    waits: int


@register_step(before=LatentFeatureGibbs)
class LinkFeatureGibbs(GibbsStep):
    """Gibbs sampler of the latent features of objects of which pairs are observed, and of their weights.

    Assigned by ``pm.sample`` to :class:`bayesstruct.distributions.FeatureInteractions` and the
    :class:`bayesstruct.IndianBuffet` of its features, one set of objects or two. One call visits all
    objects (:func:`bayesstruct.features.kernels.link_features.scan_objects`), then all weights
    (:func:`bayesstruct.features.kernels.link_weights.draw_weights`). The bias, standard deviations and the
    parameters of the process are left to other steps.

    Raises
    ------
    ValueError
        If the model has another form, or if during a run there are more features than the maximum number.

    Notes
    -----
    The first call of a warm-up that is at the initial point of the model moves the chain to the result of a search
    (:func:`bayesstruct.features.solvers.links.link_features`); for some calls features and weights then stay, until
    bias and standard deviations fit them. From other starting points they are drawn at once.

    Statistics of each draw: ``n_features``, those of both sets together.
    """

    name = "link_feature_gibbs"
    stats_dtypes_shapes: dict = {"n_features": (int, [])}
    _state_class = LinkFeatureGibbsState

    def prepare(self, model, drawn):
        """Recognise features, weights and pairs around the weights among `drawn`."""
        interaction = only_one(drawn, FeatureInteractionsRV, "sets of weights", _SUPPORTED)
        with refusals(interaction, _SUPPORTED):
            part = linked_features_of(model, interaction)
            check_drawn(part.variables, drawn)
        self.names = part.feature.name, part.other.name, part.interaction.name
        self.y_name, self.one_set, self.link = part.y.name, part.one_set, part.likelihood
        self.matrices = part.feature.owner.op.matrix, part.other.owner.op.matrix
        self.values = _expressions(model, part, self.compile_kwargs)
        self.sampler = self._sampler(part)
        self.begun, self.waits = False, 0

    def _sampler(self, part):
        from bayesstruct.features.kernels.link_sampler import LinkSampler

        op, sizes = part.interaction.owner.op, [n for n, _ in self.matrices]
        return LinkSampler(part.source, part.target, sizes, self.one_set, op.kind, op.positive)

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.begun, self.waits = tune == 0, min(_WAITS, tune // 2)

    def step(self, point):
        """Draw features and weights once."""
        point = dict(point)
        *numbers, offset, y = self.values(point)
        numbers = [float(np.squeeze(v)) for v in numbers]
        buffets, (scale, noise) = (numbers[:3], numbers[3:6]), numbers[6:]
        y = np.ascontiguousarray(y, float)
        if len(y) != len(self.sampler.source):
            raise ValueError(unequal(self.y_name, len(y), len(self.sampler.source)))
        state = self._read(point)
        begins, self.begun = not self.begun, True
        searches = begins and is_initial(state.z) and is_initial(state.u)
        if begins and not searches:
            self.waits = 0
        if searches:
            state = self._search(y, offset, buffets, scale)
        elif self.waits > 0:
            self.waits -= 1
        else:
            self._draw(state, y, offset, buffets, scale, noise)
        return self._write(point, state)

    def _read(self, point):
        """Features and weights of a point, as the kernels have them."""
        from bayesstruct.features.kernels.link_sampler import LinkState

        z_name, u_name, w_name = self.names
        z = np.array(point[z_name], np.int8)
        u = z if self.one_set else np.array(point[u_name], np.int8)
        weights = np.array(point[w_name], float)
        return LinkState(z, u, np.diag(weights).copy() if weights.ndim == 1 else weights)

    def _search(self, y, offset, buffets, scale):
        """Features and weights where a chain begins."""
        from bayesstruct.features.solvers.links import link_features

        options = (self.matrices, buffets, scale, self.rng)
        restarts = max(1, min(_RESTARTS, _PAIRS // len(y)))
        found = link_features(self.sampler, self.link, y, offset, *options, restarts=restarts)
        return found.state

    def _draw(self, state, y, offset, buffets, scale, noise):
        """Draw features, then weights."""
        from bayesstruct.features.kernels.link_codes import LIKELIHOODS
        from bayesstruct.features.kernels.link_likelihoods import Likelihood
        from bayesstruct.features.kernels.link_sampler import Full

        likelihood = Likelihood(LIKELIHOODS.index(self.link), noise)
        observed = self.sampler.observe(state, offset, y, likelihood)
        if not np.isfinite(observed.density).all():
            raise ValueError(
                f"{self.y_name!r} has a pair whose density is zero or no number: with 'noisy_or' the bias "
                "must be above 0; otherwise look for values of the bias that are not finite"
            )
        try:
            self.sampler.scan(self.rng, state, observed, likelihood, scale, buffets, _TRIES)
        except Full as full:
            [side] = full.args
            raise too_many_features(self.names[side], self.matrices[side][1]) from None
        self.sampler.draw_weights(self.rng, state, observed, likelihood, scale)

    def _write(self, point, state):
        """Put features, in left order, and weights into a point."""
        rows = random_left_order(self.rng, state.z)
        columns = rows if self.one_set else random_left_order(self.rng, state.u)
        z, u = state.z[:, rows], state.u[:, columns]
        weights = state.weights[np.ix_(rows, columns)]
        number = int(z.any(axis=0).sum())
        point[self.names[0]] = np.ascontiguousarray(z)
        if not self.one_set:
            point[self.names[1]] = np.ascontiguousarray(u)
            number += int(u.any(axis=0).sum())
        diagonal = np.ndim(point[self.names[2]]) == 1
        point[self.names[2]] = np.diag(weights).copy() if diagonal else weights
        return point, [{"n_features": number}]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for weights between features and for the features of these.

        If it declined, PyMC would assign samplers that are wrong for them; so the constructor accepts
        all, and raises for those that it cannot draw.
        """
        mine = is_op(var, FeatureInteractionsRV) or is_claimed(var, "link_feature_gibbs")
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE


def _expressions(model, part, compile_kwargs):
    """Compile the parameters of priors, noise, offset and the responses."""
    noise = pt.constant(1.0) if part.noise is None else part.noise
    tensors = [
        *parameters(part.feature),
        *parameters(part.other),
        parameters(part.interaction)[2],
        noise,
        part.offset,
        model.rvs_to_values[part.y],
    ]
    return Expressions(model, tensors, compile_kwargs, user=part.interaction.name)
