"""Step of Dirichlet-process mixtures of generalised linear models."""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.util import get_random_generator

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
from bayesstruct.mixtures.priors.chinese_restaurant import ChineseRestaurantRV
from bayesstruct.mixtures.priors.mixture_parameters import ClusterNormalsRV, ClusterVariancesRV
from bayesstruct.mixtures.priors.mixture_rows import (
    ClusterBinaryRV,
    ClusterCountRV,
    ClusterResponseRV,
    ClusterRowsRV,
)

__all__ = ["DirichletMixtureGibbs"]

_SUPPORTED = (
    "Supported is a ChineseRestaurant with observed ClusterRows, whose means and variances are ClusterNormals and "
    "ClusterVariances, and one observed response of these rows with ClusterNormals as coefficients, on "
    "which nothing else depends; bs.models.dp_glm makes these"
)
_KINDS = (ClusterNormalsRV, ClusterVariancesRV)
_EMPTY = 3  # empty clusters of Neal's algorithm 8


@dataclass
class _Part:
    """Labels, parameters of clusters, columns and response."""

    cluster: object
    mean: object
    variance: object
    coefficient: object
    noise: object
    rows: object
    response: object

    @property
    def variables(self):
        """Random variables that the step draws."""
        drawn = [self.cluster, self.mean, self.variance, self.coefficient, self.noise]
        return [v for v in drawn if v is not None]


def _mixture_of(model, cluster) -> _Part:
    """Collect what depends on labels.

    Raises
    ------
    NotRecognized
        Says what stands in the way.
    """
    children = children_of(model, cluster)
    rows = [rv for rv in children if is_op(rv, ClusterRowsRV)]
    responses = [rv for rv in children if is_op(rv, (ClusterResponseRV, ClusterBinaryRV))]
    if len(rows) != 1 or len(responses) != 1:
        names = ", ".join(repr(rv.name) for rv in children) or "nothing"
        raise NotRecognized(
            f"{names} depends on {cluster.name!r}, not one set of rows and one response"
        )
    [table], [response] = rows, responses
    labels, mean, variance = parameters(table)
    x, own, coefficient, _, *noise = parameters(response)
    if x is not table or labels is not cluster or own is not cluster:
        raise NotRecognized(
            f"{response.name!r} is not a response of {table.name!r} in the clusters of both"
        )
    noise = noise[0] if noise else None
    part = _Part(cluster, mean, variance, coefficient, noise, table, response)
    _check_graph(model, part, children)
    return part


def _check_graph(model, part, children):
    """Refuse a mixture whose variables are not of the kinds, or do not hang together."""
    if set(children) != {*part.variables[1:], part.rows, part.response}:
        raise NotRecognized(f"something else depends on {part.cluster.name!r}")
    for rv in part.variables:
        if rv not in model.free_RVs or model.rvs_to_transforms.get(rv) is not None:
            raise NotRecognized(f"{rv.name!r} is observed or has a transform")
    for rv in (part.rows, part.response):
        if rv not in model.observed_RVs:
            raise NotRecognized(f"{rv.name!r} is not observed")
    wanted = [(part.mean, {part.rows}), (part.coefficient, {part.response})]
    wanted.append((part.variance, {part.mean, part.rows}))
    if part.noise is not None:
        wanted.append((part.noise, {part.coefficient, part.response}))
    for rv, users in wanted:
        if set(children_of(model, rv)) != users:
            raise NotRecognized(f"something else depends on {rv.name!r}")
    _check_parameters(part)


def _check_parameters(part):
    """Refuse parameters that do not have the priors for which labels can be drawn."""
    for rv in part.variables[1:]:
        kind = ClusterVariancesRV if rv in (part.variance, part.noise) else ClusterNormalsRV
        if not is_op(rv, kind) or parameters(rv)[0] is not part.cluster:
            raise NotRecognized(
                f"{rv.name!r} does not have the prior of parameters of its clusters"
            )
    pairs = [(part.mean, part.variance), (part.coefficient, part.noise)]
    for rv, variance in pairs:
        if variance is not None and parameters(rv)[1] is not variance:
            raise NotRecognized(f"{variance.name!r} is not the variance of {rv.name!r}")
    laws = [t for rv in part.variables[1:] for t in parameters(rv)[1:] if t not in part.variables]
    if depends_on([*laws, parameters(part.response)[3]], part.cluster):
        raise NotRecognized(f"hyperparameters depend on {part.cluster.name!r}")


@register_step
class DirichletMixtureGibbs(BlockedStep):
    """Gibbs sampler of Dirichlet-process mixtures of generalised linear models.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.ChineseRestaurant` and the parameters of its clusters. One
    call visits the labels of all rows, in random order. For normal responses all parameters are summed out, and
    clusters are split and merged too (:func:`bayesstruct.mixtures.kernels.mixture_regression.scan_labels`); for others the
    coefficients are kept (:func:`bayesstruct.mixtures.kernels.mixture_glm.scan_glm`). Then parameters are drawn given
    labels. The mass of the process, and hyperparameters that are random, are left to other steps.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of labels and parameters.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional
    moves : int, default 3
        Splits and merges that are proposed in a call; for responses that are not normal, draws of the
        coefficients of each cluster.

    Raises
    ------
    ValueError
        If the model is not such a mixture, or, during a run, there are more clusters than there is room for.

    Notes
    -----
    Statistics of each draw: ``n_clusters``.
    """

    name = "dirichlet_mixture_gibbs"
    default_blocked = True
    stats_dtypes_shapes = {"n_clusters": (int, [])}
    _state_class = StepMethodState

    def __init__(
        self,
        vars,
        *,
        model=None,
        initial_point=None,
        compile_kwargs=None,
        rng=None,
        blocked=True,
        moves=3,
    ):
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        drawn = [model.values_to_rvs[v] for v in self.vars]
        cluster = only_one(drawn, ChineseRestaurantRV, "sets of labels", _SUPPORTED)
        with refusals(cluster, _SUPPORTED):
            part = _mixture_of(model, cluster)
            check_drawn(part.variables, drawn)
        self.rng, self.moves = get_random_generator(rng), moves
        # Names only: processes get a copy of the step.
        self.cluster, self.coefficient = cluster.name, part.coefficient.name
        self.moments = part.mean.name, part.variance.name
        self.noise = None if part.noise is None else part.noise.name
        self.counts = is_op(part.response, ClusterCountRV)
        self.alpha = Expressions(model, parameters(cluster), compile_kwargs)
        normals = [*parameters(part.mean)[2:], *parameters(part.coefficient)[2:]]
        variances = [*parameters(part.variance)[1:]]
        variances += [] if part.noise is None else parameters(part.noise)[1:]
        centre = parameters(part.response)[3]
        tensors = [centre, *normals, *variances]
        if part.noise is None:
            tensors.append(parameters(part.coefficient)[1])
        self.laws = Expressions(model, tensors, compile_kwargs)
        observed = [model.rvs_to_values[rv] for rv in (part.rows, part.response)]
        x, y = Expressions(model, observed, compile_kwargs)(model.initial_point())
        self.x, self.y = np.asarray(x, float), np.asarray(y, float)

    def step(self, point):
        """Draw labels, and parameters given these, once."""
        from bayesstruct.mixtures.kernels.chinese_restaurant import relabel

        point = dict(point)
        labels = np.array(point[self.cluster], np.int64)
        alpha = float(np.squeeze(self.alpha(point)[0]))
        draw = self._draw_normal if self.noise is not None else self._draw_other
        room = len(point[self.coefficient])
        names = np.empty(room, np.int64)
        if not draw(point, labels, alpha, names):
            raise ValueError(
                f"there are more than {room} clusters in {self.cluster!r}: set `max_clusters` of "
                "the ChineseRestaurant, or `max_clusters` of the model, to more"
            )
        used = relabel(labels, names)
        point[self.cluster] = labels
        return point, [{"n_clusters": used}]

    def _draw_normal(self, point, labels, alpha, names):
        """Draw labels and parameters of normal regressions into the point; False without room."""
        from bayesstruct.mixtures.kernels.chinese_restaurant import relabel
        from bayesstruct.mixtures.kernels.mixture_columns import log_gains
        from bayesstruct.mixtures.kernels.mixture_regression import (
            RegressionLaw,
            draw_parameters,
            scan_labels,
        )

        n = len(labels)
        centre, location, strength, start, weight, shape, rate, a, b = self.laws(point)
        design = np.column_stack([np.ones(n), self.x - centre])
        table = (
            np.ascontiguousarray(self.x - location),
            np.column_stack([design, self.y - design @ start]),
        )
        a = float(np.squeeze(a))
        root = np.sqrt(np.append(weight, 2.0 * np.squeeze(b)))
        laws = (_column_law(strength, shape, rate, n), RegressionLaw(a, root, log_gains(a, n)))
        order = self.rng.permutation(n)
        room = len(names)
        if not scan_labels(self.rng, labels, order, table, laws, alpha, room, self.moves):
            return False
        used = relabel(labels, names)
        moments = np.zeros((2, room, self.x.shape[1]))
        coefficient, noise = np.zeros((room, len(start))), np.zeros(room)
        draw_parameters(self.rng, labels, table, laws, moments, coefficient, noise)
        coefficient[:used] += start
        self._store(point, moments, location, used)
        point[self.coefficient], point[self.noise] = coefficient, noise[:, None]
        return True

    def _draw_other(self, point, labels, alpha, names):
        """Draw labels and parameters of other regressions into the point; False without room."""
        from bayesstruct.mixtures.kernels.chinese_restaurant import relabel
        from bayesstruct.mixtures.kernels.mixture_glm import (
            LOGISTIC,
            POISSON,
            Responses,
            draw_columns,
            scan_glm,
        )

        n = len(labels)
        centre, location, strength, start, weight, shape, rate, spread = self.laws(point)
        design = np.column_stack([np.ones(n), self.x - centre])
        family = POISSON if self.counts else LOGISTIC
        if (spread != spread[0]).any():
            raise ValueError(f"the prior of {self.coefficient!r} must be that of all clusters")
        deviation = np.sqrt(spread[0] / weight)
        data = Responses(family, design, self.y, design @ start, deviation)
        x = np.ascontiguousarray(self.x - location)
        law = _column_law(strength, shape, rate, n)
        coefficient = np.array(point[self.coefficient], float)
        coefficient[: labels.max() + 1] -= start
        order = self.rng.permutation(n)
        if not scan_glm(
            self.rng, labels, order, x, law, data, alpha, coefficient, _EMPTY, self.moves
        ):
            return False
        used = relabel(labels, names)
        sorted_ = np.zeros_like(coefficient)
        there = names >= 0
        sorted_[names[there]] = coefficient[there] + start
        moments = np.zeros((2, len(names), x.shape[1]))
        draw_columns(self.rng, labels, x, law, moments)
        self._store(point, moments, location, used)
        point[self.coefficient] = sorted_
        return True

    def _store(self, point, moments, location, used):
        """Put means and variances of the columns into the point."""
        moments[0, :used] += location
        mean, variance = self.moments
        point[mean], point[variance] = moments

    @staticmethod
    def competence(var, has_grad):
        """Ideal for labels and the parameters of their clusters.

        Were it to decline labels, samplers that are wrong for them would take them; so the constructor takes
        all, and raises for those that it cannot draw.
        """
        mine = is_op(var, (*_KINDS, ChineseRestaurantRV))
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE


def _column_law(strength, shape, rate, n):
    from bayesstruct.mixtures.kernels.mixture_columns import ColumnLaw, log_gains

    shape = float(np.squeeze(shape))
    strength, rate = np.asarray(strength, float), np.asarray(rate, float)
    return ColumnLaw(strength, shape, rate, log_gains(shape, n))
