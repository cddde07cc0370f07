"""Step of the binary features of a linear Gaussian model, and of their loadings."""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import NormalRV

from bayesstruct.distributions.indian_buffet import FeatureLoadingsRV, IndianBuffetRV
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

__all__ = ["LatentFeatureGibbs"]

_WAITS = 10  # calls after the search in which standard deviations find their place
_SUPPORTED = (
    "Supported is one observed Normal whose mean is `feature @ loading`, plus what depends on neither, and "
    "whose standard deviation is one number, with an IndianBuffet and its FeatureLoadings on which "
    "nothing else depends; bs.models.latent_features makes these"
)


@dataclass
class _Part:
    """Features, their loadings and the table."""

    feature: object
    loading: object
    rows: object
    baseline: object
    noise: object


def _product(tensor):
    """Return the two factors of a matrix product, without conversions of type, or None."""
    owner = tensor.owner
    if owner is None or type(getattr(owner.op, "core_op", owner.op)).__name__ not in (
        "Dot",
        "MatMul",
    ):
        return None
    return tuple(_plain(v) for v in owner.inputs)


def _plain(tensor):
    while tensor.owner is not None and (
        (
            isinstance(tensor.owner.op, Elemwise)
            and tensor.owner.op.scalar_op.name.startswith("Cast")
        )
        or (isinstance(tensor.owner.op, DimShuffle) and tensor.owner.op.is_left_expand_dims)
    ):
        tensor = tensor.owner.inputs[0]
    return tensor


def features_of(model, feature) -> _Part:
    """Collect loadings and table around features.

    Raises
    ------
    NotRecognized
        Says what stands in the way.
    """
    children = _children(model, feature)
    loadings = [rv for rv in children if is_op(rv, FeatureLoadingsRV)]
    rows = [rv for rv in children if rv not in loadings]
    if len(loadings) != 1 or len(rows) != 1:
        names = ", ".join(repr(rv.name) for rv in children) or "nothing"
        raise NotRecognized(f"{names} depends on {feature.name!r}")
    [loading], [table] = loadings, rows
    if _children(model, loading) != [table]:
        raise NotRecognized(f"{table.name!r} is not all that depends on {loading.name!r}")
    if _plain(parameters(loading)[0]) is not feature:
        raise NotRecognized(f"the loadings {loading.name!r} are not those of {feature.name!r}")
    if not is_op(table, NormalRV) or table not in model.observed_RVs:
        raise NotRecognized(f"{table.name!r} is not an observed Normal")
    for rv in (feature, loading):
        if rv not in model.free_RVs or model.rvs_to_transforms.get(rv) is not None:
            raise NotRecognized(f"{rv.name!r} is observed or has a transform")
    mean, noise = parameters(table)
    baseline = _baseline(_plain(mean), feature, loading)
    if baseline is None or _depends_on([noise, baseline], feature):
        raise NotRecognized(f"the mean of {table.name!r} is not {feature.name} @ {loading.name}")
    if any(length != 1 for length in noise.type.shape):
        raise NotRecognized(f"the standard deviation of {table.name!r} is not one number")
    return _Part(feature, loading, table, baseline, noise)


def _baseline(mean, feature, loading):
    """Return what is added to the product of features and loadings, or None."""
    import pytensor.tensor as pt

    if _product(mean) == (feature, loading):
        return pt.constant(0.0)
    owner = mean.owner
    if owner is None or not (
        isinstance(owner.op, Elemwise) and owner.op.scalar_op.name in ("add", "Add")
    ):
        return None
    terms = [_plain(v) for v in owner.inputs]
    products = [v for v in terms if _product(v) == (feature, loading)]
    others = [v for v in owner.inputs if _plain(v) not in products]
    if len(products) != 1 or _depends_on(others, loading):
        return None
    return sum(others[1:], others[0])


@dataclass_state
class LatentFeatureGibbsState(StepMethodState):
    """State of a step: whether it has begun, and for how many calls features still stay."""

    begun: bool
    waits: int


class LatentFeatureGibbs(BlockedStep):
    """Gibbs sampler of latent features, their loadings summed out, and of the loadings given them.

    Assigned by ``pm.sample`` to an :class:`bayesstruct.IndianBuffet` and its
    :class:`bayesstruct.FeatureLoadings` where the table is normal around their product. One call visits all
    rows (:func:`bayesstruct.kernels.latent_features.scan_rows`), then draws the loadings. The standard
    deviations and the parameters of the process are left to other steps.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of one set of features and its loadings.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If the features are not those of a linear Gaussian model, or, during a run, there are more of
        them than there is room for.

    Notes
    -----
    The first call of a chain that is at the initial point of the model puts it at the end of a search
    (:func:`bayesstruct.solvers.latent_features`); for some calls of the warm-up the features then stay, until the
    standard deviations fit them.

    Statistics of each draw: ``n_features``.
    """

    name = "latent_feature_gibbs"
    default_blocked = True
    stats_dtypes_shapes = {"n_features": (int, [])}
    _state_class = LatentFeatureGibbsState

    def __init__(
        self, vars, *, model=None, initial_point=None, compile_kwargs=None, rng=None, blocked=True
    ):
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        drawn = [model.values_to_rvs[v] for v in self.vars]
        part = _one_part(model, drawn)
        self.rng = get_random_generator(rng)
        self.names = part.feature.name, part.loading.name
        self.matrix = part.feature.owner.op.matrix
        [_, scale] = parameters(part.loading)
        tensors = [*parameters(part.feature), scale, part.noise, part.baseline]
        self.values = Expressions(model, tensors, compile_kwargs)
        observed = Expressions(model, [model.rvs_to_values[part.rows]], compile_kwargs)
        self.observed = np.asarray(observed(model.initial_point())[0], float)
        self.begun, self.waits = False, 0

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.begun, self.waits = False, min(_WAITS, tune)

    def step(self, point):
        """Draw features and loadings once."""
        from bayesstruct.kernels.latent_features import draw_loadings

        point = dict(point)
        *numbers, baseline = self.values(point)
        alpha, c, discount, scale, noise = (float(np.squeeze(v)) for v in numbers)
        x = np.ascontiguousarray(self.observed - baseline)
        feature = np.array(point[self.names[0]], np.int8)
        if not self.begun:
            self.begun = True
            if _is_initial(feature):
                feature, noise, scale = self._search(x, alpha)
        elif self.waits > 0:
            self.waits -= 1
        else:
            feature = self._scan(feature, x, alpha, c, discount, noise, scale)
        point[self.names[0]] = feature
        point[self.names[1]] = draw_loadings(self.rng, feature, x, noise, scale)
        return point, [{"n_features": int(feature.any(axis=0).sum())}]

    def _search(self, x, alpha):
        """Features where a chain begins, and the standard deviations that belong to them."""
        from bayesstruct.solvers.latent_features import latent_features

        found = latent_features(x, alpha=alpha, max_features=self.matrix[1], random_seed=self.rng)
        feature = np.zeros(self.matrix, np.int8)
        feature[:, : found.feature.shape[1]] = found.feature
        return feature, found.noise, found.scale

    def _scan(self, feature, x, alpha, c, discount, noise, scale):
        """Draw the features of all rows."""
        from bayesstruct.kernels.indian_buffet import left_ordered, new_dish_rates
        from bayesstruct.kernels.latent_features import scan_rows

        n, most = self.matrix
        used = int(feature.any(axis=0).sum())
        rate = alpha * new_dish_rates(n, c, discount)[-1]
        rows = self.rng.permutation(n)
        if scan_rows(self.rng, feature, used, x, rows, noise, scale, rate, c, discount, -1) < 0:
            raise ValueError(
                f"there are more than {most} features in {self.names[0]!r}: set `truncation` of the "
                "IndianBuffet, or `max_features` of the model, to more; if features keep coming, the "
                "noise is too small for the table"
            )
        return left_ordered(feature)

    @staticmethod
    def competence(var, has_grad):
        """Ideal for features and their loadings.

        Were it to decline, samplers that are wrong for them would take them; so the constructor takes
        all, and raises for those that it cannot draw.
        """
        kinds = (IndianBuffetRV, FeatureLoadingsRV)
        return Competence.IDEAL if is_op(var, kinds) else Competence.INCOMPATIBLE


def _is_initial(feature) -> bool:
    """Whether there is one feature, that all rows have: the initial point of an IndianBuffet."""
    return bool(feature[:, 0].all() and not feature[:, 1:].any())


def _one_part(model, drawn):
    feature = only_one(drawn, IndianBuffetRV, "sets of features", _SUPPORTED)
    with refusals(feature, _SUPPORTED):
        part = features_of(model, feature)
        check_drawn((part.feature, part.loading), drawn)
    return part
