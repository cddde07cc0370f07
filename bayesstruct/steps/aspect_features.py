"""Step of the aspects by which options are chosen."""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.graph.basic import Constant
from pytensor.tensor.random.basic import BinomialRV

from bayesstruct.distributions.aspect_choices import AspectProbabilities
from bayesstruct.distributions.feature_interactions import FeatureInteractionsRV
from bayesstruct.distributions.indian_buffet import IndianBuffetRV
from bayesstruct.kernels.dyadic_codes import DIAGONAL
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

__all__ = ["AspectFeatureGibbs"]

_LEAST = 0.25  # share of the choices that count at the beginning of a warm-up

_SUPPORTED = (
    "Supported is one observed Binomial with constant `n` whose probability is `bs.aspect_probabilities` of an "
    "IndianBuffet and its positive diagonal FeatureInteractions, on which nothing else depends; "
    "bs.models.elimination_by_aspects makes these"
)


@dataclass
class _Part:
    """Aspects, their weights and the choices."""

    feature: object
    weight: object
    y: object
    trials: np.ndarray
    first: np.ndarray
    second: np.ndarray
    lapse: object


def _chosen_by(model, weight):
    """Return the choices that depend on weights, and their probabilities, or None."""
    for y in _children(model, weight):
        if is_op(y, BinomialRV) and is_op(parameters(y)[1], AspectProbabilities):
            return y, parameters(y)[1]
    return None


def _aspects_of(model, feature) -> _Part:
    """Collect weights and choices around aspects.

    Raises
    ------
    NotRecognized
        Says what stands in the way.
    """
    children = _children(model, feature)
    weights = [rv for rv in children if is_op(rv, FeatureInteractionsRV)]
    if len(weights) != 1 or len(children) != 2:
        names = ", ".join(repr(rv.name) for rv in children) or "nothing"
        raise NotRecognized(f"{names} depends on {feature.name!r}")
    [weight] = weights
    found = _chosen_by(model, weight)
    if found is None or len(_children(model, weight)) != 1:
        raise NotRecognized(f"{weight.name!r} does not go into aspect_probabilities alone")
    y, chance = found
    z, w, lapse, first, second = chance.owner.inputs
    op = weight.owner.op
    if z is not feature or w is not weight or op.kind != DIAGONAL or not op.positive:
        raise NotRecognized(
            f"{weight.name!r} are not positive weights of {feature.name!r}, one each"
        )
    trials = parameters(y)[0]
    if not isinstance(trials, Constant) or y not in model.observed_RVs:
        raise NotRecognized(f"{y.name!r} is not observed, or its `n` is not constant")
    if any(_depends_on([lapse], rv) for rv in (feature, weight)):
        raise NotRecognized("the lapse depends on the aspects")
    if any(rv not in model.free_RVs or model.rvs_to_transforms.get(rv) for rv in (feature, weight)):
        raise NotRecognized(f"{feature.name!r} or {weight.name!r} is observed or has a transform")
    return _Part(feature, weight, y, trials.data, first.data, second.data, lapse)


@dataclass_state
class AspectFeatureGibbsState(StepMethodState):
    """State of a step: calls so far, and in how many of them choices count less."""

    calls: int
    cool: int


class AspectFeatureGibbs(BlockedStep):
    """Gibbs sampler of the aspects by which options are chosen, and of their weights.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` and its
    :class:`bayesstruct.FeatureInteractions` where these go into :func:`bayesstruct.aspect_probabilities`. One
    call visits all options (:func:`bayesstruct.kernels.aspect_features.scan_aspects`), then all weights. The
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
        If the model is another one, or, during a run, there are more aspects than there is room for.

    Notes
    -----
    A warm-up begins with one aspect for each option, of the weights of the model of Bradley and Terry. In its
    first half the choices count less, from a quarter to in full: many of them leave a chain no way from one set
    of aspects to another. Statistics of each draw: ``n_features``.
    """

    name = "aspect_feature_gibbs"
    default_blocked = True
    stats_dtypes_shapes = {"n_features": (int, [])}
    _state_class = AspectFeatureGibbsState

    def __init__(
        self, vars, *, model=None, initial_point=None, compile_kwargs=None, rng=None, blocked=True
    ):
        from bayesstruct.kernels.dyadic_features import incidence

        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        drawn = [model.values_to_rvs[v] for v in self.vars]
        feature = only_one(drawn, IndianBuffetRV, "sets of aspects", _SUPPORTED)
        with refusals(feature, _SUPPORTED):
            part = _aspects_of(model, feature)
            check_drawn((part.feature, part.weight), drawn)
        self.rng = get_random_generator(rng)
        self.names = part.feature.name, part.weight.name
        self.matrix = part.feature.owner.op.matrix
        self.pairs = part.first.astype(np.int64), part.second.astype(np.int64)
        n = self.matrix[0]
        self.incidence = incidence(*self.pairs, n, n, True)
        tensors = [*parameters(part.feature), parameters(part.weight)[2], part.lapse]
        self.values = Expressions(model, tensors, compile_kwargs)
        observed = Expressions(model, [model.rvs_to_values[part.y]], compile_kwargs)
        wins = np.asarray(observed(model.initial_point())[0], float)
        self.counts = wins, np.broadcast_to(part.trials, wins.shape).astype(float)
        self.calls, self.cool = 0, 0

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain, and the length of its warm-up."""
        super().setup_chain(rng, tune, draws)
        self.calls, self.cool = 0, tune // 2

    def step(self, point):
        """Draw aspects and weights once."""
        from bayesstruct.kernels import aspect_features as kernel
        from bayesstruct.kernels.indian_buffet import left_order, new_dish_rates

        point = dict(point)
        alpha, c, discount, scale, lapse = (float(np.squeeze(v)) for v in self.values(point))
        n, most = self.matrix
        z = np.array(point[self.names[0]], np.int8, order="C")
        w = np.array(point[self.names[1]], float)[:, None].copy()
        if self.calls == 0 < self.cool and n <= most:
            z[:], w[:] = np.eye(n, most), 0.0
            w[:n, 0] = kernel.own_weights(n, *self.pairs, *self.counts)
        gain = kernel.advantages(z, w[:, 0], *self.pairs)
        choices = kernel.Choices(*self.pairs, *(self._share() * v for v in self.counts), gain)
        self.calls += 1
        process = np.array([alpha * new_dish_rates(n, c, discount)[-1], c, discount])
        used, options = int(z.any(axis=0).sum()), self.rng.permutation(n)
        places = self.incidence.start, self.incidence.dyad
        used = kernel.scan_aspects(
            self.rng, z, w, used, choices, *places, options, lapse, scale, process
        )
        if used < 0:
            raise ValueError(
                f"there are more than {most} aspects in {self.names[0]!r}: set `truncation` of the "
                "IndianBuffet, or `max_features` of the model, to more"
            )
        kernel.draw_aspect_weights(self.rng, z, w, used, choices, lapse, scale)
        order = self._order(z, left_order)
        point[self.names[0]], point[self.names[1]] = z[:, order], w[order, 0]
        return point, [{"n_features": used}]

    def _share(self) -> float:
        """Share of the choices that count in this call."""
        if self.calls >= self.cool:
            return 1.0
        return _LEAST + (1.0 - _LEAST) * self.calls / self.cool

    def _order(self, z, left_order):
        """Left order; columns that are alike come in random order, as their weights are exchangeable."""
        order = self.rng.permutation(z.shape[1])
        return order[left_order(z[:, order])]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for aspects and weights that go into aspect_probabilities."""
        model = pm.Model.get_context(error_if_none=False)
        if model is None or not is_op(var, (IndianBuffetRV, FeatureInteractionsRV)):
            return Competence.INCOMPATIBLE
        mine = any(
            is_op(y, BinomialRV) and is_op(parameters(y)[1], AspectProbabilities)
            for y in _children(model, var)
        )
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE
