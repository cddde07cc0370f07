"""Step of the binary features of objects of which pairs are observed, and of their weights."""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.graph.basic import Constant
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import NormalRV

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import (
    NotRecognized,
    check_drawn,
    children_of,
    depends_on,
    is_op,
    only_one,
    parameters,
    refusals,
)
from bayesstruct.features.priors.feature_interactions import FeatureInteractionsRV, FeaturePairs
from bayesstruct.features.priors.feature_links import FeatureLinksRV
from bayesstruct.features.priors.indian_buffet import IndianBuffetRV
from bayesstruct.features.recognition import without_casts
from bayesstruct.features.steps.base import FeatureStep
from bayesstruct.features.steps.latent_features import LatentFeatureGibbs

__all__ = ["LinkFeatureGibbs"]

_WAITS = 20  # calls after the search in which bias and standard deviations find their place
_RESTARTS = 5  # searches of a chain, of which the best counts
_PAIRS = 20_000  # pairs times searches; fewer searches where there are more pairs
_TRIES = 2  # proposals of the features that one object alone has, each time that it is visited
_SUPPORTED = (
    "Supported is one observed FeatureLinks, or Normal with one number as its standard deviation, whose "
    "predictor is `feature_pairs(...)` plus what depends on neither features nor weights, with one or two "
    "IndianBuffets and their FeatureInteractions on which nothing else depends; bs.models.link_prediction "
    "makes these"
)


@dataclass
class _Part:
    """Features, their weights and the pairs."""

    feature: object
    other: object
    interaction: object
    y: object
    source: np.ndarray
    target: np.ndarray
    offset: object
    noise: object

    @property
    def one_set(self):
        return self.other is self.feature

    @property
    def link(self):
        return self.y.owner.op.link if is_op(self.y, FeatureLinksRV) else "normal"

    @property
    def variables(self):
        sets = [self.feature] if self.one_set else [self.feature, self.other]
        return [*sets, self.interaction]


def pairs_of(model, interaction) -> _Part:
    """Collect features and pairs around weights.

    Raises
    ------
    NotRecognized
        Says what stands in the way.
    """
    feature, other, scale = (without_casts(v) for v in parameters(interaction))
    children = children_of(model, interaction)
    if len(children) != 1:
        names = ", ".join(repr(rv.name) for rv in children) or "nothing"
        raise NotRecognized(f"{names} depends on {interaction.name!r}")
    [y] = children
    predictor, noise = _predictor(model, y)
    places = _pairs(predictor, (feature, interaction, other), y)
    part = _Part(feature, other, interaction, y, *places, noise)
    for rv in part.variables:
        if rv not in model.free_RVs or model.rvs_to_transforms.get(rv) is not None:
            raise NotRecognized(
                f"{rv.name or 'a set of features'!r} is observed or has a transform"
            )
    for rv in part.variables[:-1]:
        if not is_op(rv, IndianBuffetRV):
            raise NotRecognized(f"{rv.name!r} is not an IndianBuffet")
        if others := [c.name for c in children_of(model, rv) if c not in (interaction, y)]:
            raise NotRecognized(f"{', '.join(map(repr, others))} depends on {rv.name!r}")
    rest = [part.offset] if noise is None else [part.offset, noise]
    if any(depends_on(rest, rv) for rv in part.variables):
        raise NotRecognized(f"features or weights enter {y.name!r} outside of `feature_pairs`")
    if any(depends_on([scale], rv) for rv in part.variables):
        raise NotRecognized(f"the scale of {interaction.name!r} depends on its features")
    _check_pairs(part)
    return part


def _predictor(model, y):
    """Return the linear predictor of the pairs, and their standard deviation, if they have one."""
    if y not in model.observed_RVs:
        raise NotRecognized(f"{y.name!r} is not observed, or in part only")
    if is_op(y, FeatureLinksRV):
        return parameters(y)[0], None
    if not is_op(y, NormalRV):
        raise NotRecognized(f"{y.name!r} is neither FeatureLinks nor Normal")
    mean, noise = parameters(y)
    if any(length != 1 for length in noise.type.shape):
        raise NotRecognized(f"the standard deviation of {y.name!r} is not one number")
    return mean, noise


def _terms(tensor) -> list:
    """Terms of a sum."""
    tensor = without_casts(tensor)
    owner = tensor.owner
    if owner is not None and isinstance(owner.op, Elemwise):
        if owner.op.scalar_op.name in ("add", "Add"):
            return [term for v in owner.inputs for term in _terms(v)]
    return [tensor]


def _pairs(predictor, variables, y):
    """Return source and target of the pairs, and what is added to their sums of weights.

    ``variables`` are the features, their weights and the features of the other side.
    """
    import pytensor.tensor as pt

    terms = _terms(predictor)
    sums = [v for v in terms if is_op(v, FeaturePairs)]
    if len(sums) != 1:
        raise NotRecognized(f"the predictor of {y.name!r} has {len(sums)} terms `feature_pairs`")
    feature, interaction, other = variables
    first, weights, *rest = (without_casts(v) for v in sums[0].owner.inputs)
    second = rest[0] if len(rest) == 3 else first
    if first is not feature or second is not other:
        raise NotRecognized(
            f"`feature_pairs` in {y.name!r} has other features than those of its weights"
        )
    if weights is not interaction:
        raise NotRecognized(
            f"`feature_pairs` in {y.name!r} takes {interaction.name!r} changed, not as it is: to have other weights, "
            "change the `scale` of FeatureInteractions"
        )
    places = rest[-2:]
    if not all(isinstance(v, Constant) for v in places):
        raise NotRecognized(f"the objects of {y.name!r} are not constant")
    offset = pt.constant(0.0)
    for term in terms:
        if term is not sums[0]:
            offset = offset + term
    return places[0].data, places[1].data, offset


def _check_pairs(part):
    n, m = part.feature.owner.op.matrix[0], part.other.owner.op.matrix[0]
    if len(part.source) == 0:
        raise NotRecognized(f"{part.y.name!r} has no pairs")
    if part.y.type.ndim != 1:
        raise NotRecognized(f"{part.y.name!r} has {part.y.type.ndim} dimensions, not one")
    [length] = part.y.type.shape
    if length not in (None, len(part.source)):  # None for pm.Data: the step looks at each call
        raise NotRecognized(_unequal(part.y.name, length, len(part.source)))
    if part.source.max() >= n or part.target.max() >= m:
        raise NotRecognized(f"{part.y.name!r} has objects that have no row of features")
    if part.one_set and (part.source == part.target).any():
        raise NotRecognized(f"{part.y.name!r} has pairs of an object with itself")
    if part.link == "noisy_or" and not part.interaction.owner.op.positive:
        raise NotRecognized(f"'noisy_or' takes weights {part.interaction.name!r} that are positive")


def _unequal(name, responses, pairs) -> str:
    """Say that responses are not one for each pair."""
    return f"{name!r} has {responses} responses and its `feature_pairs` {pairs} pairs: give one for each"


@dataclass_state
class LinkFeatureGibbsState(StepMethodState):
    """State of a step: whether it has begun, and for how many calls features still stay."""

    begun: bool
    waits: int


@register_step(before=LatentFeatureGibbs)
class LinkFeatureGibbs(BlockedStep):
    """Gibbs sampler of the latent features of objects of which pairs are observed, and of their weights.

    Assigned by ``pm.sample`` to :class:`bayesstruct.distributions.FeatureInteractions` and the
    :class:`bayesstruct.IndianBuffet` of its features, one set of objects or two. One call visits all
    objects (:func:`bayesstruct.features.kernels.link_features.scan_objects`), then all weights
    (:func:`bayesstruct.features.kernels.link_weights.draw_weights`). The bias, standard deviations and the
    parameters of the process are left to other steps.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of the features and their weights.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If the model has another form, or, during a run, there are more features than there is room for.

    Notes
    -----
    The first call of a warm-up that is at the initial point of the model puts the chain at the end of a search
    (:func:`bayesstruct.solvers.link_features`); for some calls features and weights then stay, until bias and
    standard deviations fit them. From other starting points they are drawn at once.

    Statistics of each draw: ``n_features``, those of both sets together.
    """

    name = "link_feature_gibbs"
    default_blocked = True
    stats_dtypes_shapes = {"n_features": (int, [])}
    _state_class = LinkFeatureGibbsState

    def __init__(
        self, vars, *, model=None, initial_point=None, compile_kwargs=None, rng=None, blocked=True
    ):
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        part = _one_part(model, [model.values_to_rvs[v] for v in self.vars])
        self.rng = get_random_generator(rng)
        self.names = part.feature.name, part.other.name, part.interaction.name
        self.y_name, self.one_set, self.link = part.y.name, part.one_set, part.link
        self.rooms = part.feature.owner.op.matrix, part.other.owner.op.matrix
        self.values = _expressions(model, part, compile_kwargs)
        self.sampler = self._sampler(part)
        self.begun, self.waits = False, 0

    def _sampler(self, part):
        from bayesstruct.features.kernels.link_sampler import LinkSampler

        op, sizes = part.interaction.owner.op, [n for n, _ in self.rooms]
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
            raise ValueError(_unequal(self.y_name, len(y), len(self.sampler.source)))
        state = self._read(point)
        begins, self.begun = not self.begun, True
        searches = begins and is_initial_point(state.z) and is_initial_point(state.u)
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

        options = (self.rooms, buffets, scale, self.rng)
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
            raise ValueError(
                f"there are more than {self.rooms[side][1]} features in {self.names[side]!r}: set "
                "`truncation` of the IndianBuffet, or `max_features` of the model, to more"
            ) from None
        self.sampler.draw_weights(self.rng, state, observed, likelihood, scale)

    def _write(self, point, state):
        """Put features, in left order, and weights into a point."""
        rows = self._order(state.z)
        columns = rows if self.one_set else self._order(state.u)
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

    _order = FeatureStep._order

    @staticmethod
    def competence(var, has_grad):
        """Ideal for weights between features and for the features of these.

        Were it to decline, samplers that are wrong for them would take them; so the constructor takes
        all, and raises for those that it cannot draw.
        """
        dyadic = is_op(var, IndianBuffetRV) and getattr(var.tag, "dyadic", False)
        if dyadic or is_op(var, FeatureInteractionsRV):
            return Competence.IDEAL
        return Competence.INCOMPATIBLE


def _expressions(model, part, compile_kwargs):
    """Functions of what the model says about prior and pairs."""
    import pytensor.tensor as pt

    noise = pt.constant(1.0) if part.noise is None else part.noise
    tensors = [
        *parameters(part.feature),
        *parameters(part.other),
        parameters(part.interaction)[2],
        noise,
        part.offset,
        model.rvs_to_values[part.y],
    ]
    return Expressions(model, tensors, compile_kwargs)


def is_initial_point(feature) -> bool:
    """Whether there is one feature, that all rows have: the initial point of an IndianBuffet."""
    return bool(feature[:, 0].all() and not feature[:, 1:].any())


def _one_part(model, drawn):
    interaction = only_one(drawn, FeatureInteractionsRV, "sets of weights", _SUPPORTED)
    with refusals(interaction, _SUPPORTED):
        part = pairs_of(model, interaction)
        check_drawn(part.variables, drawn)
    return part
