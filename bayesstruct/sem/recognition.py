"""Recognise linear structural equations in a model, for steps and modes.

Types of distributions are read from the graph. That parameters are linked as in these equations is read from their
values at two random points, so that it does not matter how an expression is written.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytensor.tensor.random.basic import BernoulliRV, BetaRV, DirichletRV

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.missing import observed_values
from bayesstruct.core.recognition import NotRecognized, is_op, parameters
from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.priors.dag import DAGRV
from bayesstruct.networks.priors.gaussian_network import InterceptsRV, arc_index
from bayesstruct.networks.recognition.network import dependents
from bayesstruct.sem.kernels.errors import BASE
from bayesstruct.sem.kernels.settings import NOISES, PRIORS, VARIANCES, SemSettings
from bayesstruct.sem.priors.incomplete import IncompleteLinearSemRV, MissingNumbersRV
from bayesstruct.sem.priors.noise import noise_law, with_normal
from bayesstruct.sem.priors.parameters import (
    ArcSlabsRV,
    CommonNoiseScaleRV,
    LocalScalesRV,
    NoiseDegreesRV,
    NoiseScalesRV,
)
from bayesstruct.sem.priors.rows import LinearSemRV

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor import TensorVariable

__all__ = ["PARAMETERS", "TABLES", "LinearEquations", "equations_of", "sem_problem"]

#: Ops of parameters that are drawn together with the graph.
PARAMETERS = (
    NoiseScalesRV,
    CommonNoiseScaleRV,
    ArcSlabsRV,
    LocalScalesRV,
    InterceptsRV,
    NoiseDegreesRV,
    DirichletRV,
    BernoulliRV,
    BetaRV,
    MissingNumbersRV,
)
#: Ops of tables.
TABLES = (LinearSemRV, IncompleteLinearSemRV)
_SEEDS = 1, 2  # of the points
_USED = {LinearSemRV: 7}  # the eighth are missing values
_MODE = {"mode": "FAST_COMPILE"}  # expressions are evaluated twice


@dataclass(frozen=True, eq=False)
class LinearEquations:
    """Part of a model that is a system of linear structural equations.

    Attributes
    ----------
    dag, rows : TensorVariable
        The graph, and the observed table.
    parameters : dict
        Random variables that are the parameters, by the type of their Op.
    settings : SemSettings
        Noise, variances and priors.
    relative : (d,) array
        Squared noise scales in units of the common one; ones if they are free.
    location, spread : (d,) array
        Units of the table.
    setting : (n, d) array
        Values that variables were set to, NaN where they were not.
    x : (n, d) array
        The table.
    """

    dag: "TensorVariable"
    rows: "TensorVariable"
    parameters: dict[type, "TensorVariable"]
    settings: SemSettings
    relative: np.ndarray
    location: np.ndarray
    spread: np.ndarray
    setting: np.ndarray
    x: np.ndarray

    @property
    def variables(self) -> list:
        """Random variables that are drawn together."""
        return [self.dag, *self.parameters.values()]

    @property
    def names(self) -> dict[type, str]:
        """Names of the parameters, by the type of their Op."""
        return {kind: str(rv.name) for kind, rv in self.parameters.items()}

    @property
    def missing(self) -> np.ndarray:
        """Values that are missing, (n, d) bool."""
        op = self.rows.owner.op
        return (
            op.mask.missing
            if isinstance(op, IncompleteLinearSemRV)
            else np.zeros(self.x.shape, bool)
        )

    @property
    def free(self) -> np.ndarray:
        """Values that were not set from outside, (n, d) bool."""
        return np.isnan(self.setting)

    @property
    def table(self) -> np.ndarray:
        """The table in the units of the model, (n, d)."""
        return (self.x - self.location) / self.spread


def equations_of(model: "Model", dag: "TensorVariable") -> LinearEquations:
    """Recognise the linear structural equations around a graph, and read their table.

    Raises
    ------
    NotRecognized
        Says which part of the model is not that of linear structural equations.
    """
    if dag not in model.free_RVs:
        raise NotRecognized(f"{dag.name!r} is observed")
    if not is_op(dag, DAGRV):
        raise NotRecognized(f"the prior of {dag.name!r} counts orders")
    family = [dag, *dependents(model, dag)]
    tables = [rv for rv in family if is_op(rv, TABLES)]
    if len(tables) != 1 or tables[0] not in model.observed_RVs:
        raise NotRecognized(f"{len(tables)} tables depend on {dag.name!r}, not an observed one")
    rows = tables[0]
    found = _parameters(model, rows)
    if strange := [rv.name for rv in family if rv not in (dag, rows, *found.values())]:
        raise NotRecognized(f"{', '.join(map(repr, strange))} depends on {dag.name!r}")
    for rv in found.values():
        _check_free(model, rv)
        if others := [v for v in dependents(model, rv) if v not in (rows, *found.values())]:
            raise NotRecognized(f"{others[0].name!r} depends on {rv.name!r}")
    values = _Values(model, dag, rows, found)
    return LinearEquations(dag, rows, found, values.settings(), *values.constants())


def sem_problem(equations: LinearEquations) -> NetworkProblem:
    """Names, approximate local scores and prior of equations with a complete table."""
    from bayesstruct.sem.kernels.scores import SemScores

    op, free = equations.dag.owner.op, equations.free
    scores = SemScores(
        equations.table,
        equations.settings,
        interventions=None if free.all() else ~free,
        relative=equations.relative,
    )
    return NetworkProblem(tuple(map(str, op.names)), scores, op.prior, op.order)


def _parameters(model, rows):
    """Random variables that a table is made of, by the type of their Op; raise if some are strange."""
    found, strange, new = {}, [], [rows]
    known = set(model.basic_RVs)
    while new:
        above = {v for rv in new for v in _sources(rv, known)}
        new = []
        for rv in sorted(above, key=lambda v: v.name):
            if is_op(rv, DAGRV) or rv in found.values():
                continue
            kind = next((kind for kind in PARAMETERS if is_op(rv, kind)), None)
            if kind is None or kind in found:
                strange.append(rv.name)
                continue
            found[kind] = rv
            new.append(rv)
    if strange:
        raise NotRecognized(f"{rows.name!r} also depends on {', '.join(map(repr, strange))}")
    _check_kinds(rows, found)
    return found


def _sources(rv, known):
    """Random variables of a model that the distribution of another one depends on directly."""
    from pytensor.graph.traversal import walk

    def inputs(node):
        return None if node in known or node.owner is None else node.owner.inputs

    return {v for v in walk(rv.owner.inputs, inputs) if v in known}


def _check_kinds(rows, found):
    law = rows.owner.op.law
    needed = {ArcSlabsRV, InterceptsRV} | {
        "student": {NoiseDegreesRV},
        "mixture": {DirichletRV},
    }.get(law.name, set())
    scales = {NoiseScalesRV, CommonNoiseScaleRV} & set(found)
    optional = {LocalScalesRV} if ArcSlabsRV in found else set()
    if law.may_be_normal:
        needed, optional = needed | {BernoulliRV}, optional | {BetaRV}
    if is_op(rows, IncompleteLinearSemRV):
        needed = needed | {MissingNumbersRV}
    if len(scales) != 1 or not needed <= set(found) or set(found) - needed - scales - optional:
        names = ", ".join(sorted(kind.__name__.removesuffix("RV") for kind in found))
        raise NotRecognized(f"the parameters of {rows.name!r} with {law.name} noise are {names}")
    if law.name == "mixture" and law != noise_law("mixture", normal=law.may_be_normal):
        raise NotRecognized(f"the mixture of {rows.name!r} has other components than noise_law")
    if (
        MissingNumbersRV in found
        and found[MissingNumbersRV].owner.op.mask is not rows.owner.op.mask
    ):
        raise NotRecognized(
            f"{found[MissingNumbersRV].name!r} are not the values that {rows.name!r} misses"
        )


def _check_free(model, rv):
    if rv not in model.free_RVs:
        raise NotRecognized(f"{rv.name!r} is observed")
    if model.rvs_to_transforms.get(rv) is not None:
        raise NotRecognized(f"{rv.name!r} has a transform; give it default_transform=None")


def _indicators(rv, shape, d, seed):
    """Return which columns have normal noise at a point: none, all, then those whose number has a binary digit."""
    if shape != (d,):
        raise NotRecognized(f"{rv.name!r} is not one value for each of the {d} columns")
    if seed in _SEEDS:
        return np.full(d, seed == _SEEDS[1], int)
    return np.arange(d) >> (seed - _SEEDS[-1] - 1) & 1


class _Values:
    """Parameters of the distributions at two random points, and at more where columns have indicators."""

    def __init__(self, model, dag, rows, found):
        self.found, self.rows = found, rows
        tensors, self.places = [], {}
        for name, rv in {**found, LinearSemRV: rows}.items():
            own = parameters(rv)[: _USED.get(name)]
            self.places[name] = slice(len(tensors), len(tensors) + len(own))
            tensors += own
        tensors.append(observed_values(model, rows))
        evaluate = Expressions(model, tensors, _MODE)
        seeds = [*_SEEDS]
        if (
            BernoulliRV in found
        ):  # the binary digits of the number of a column tell it from the others
            d = len(dag.owner.op.names)
            seeds += range(_SEEDS[-1] + 1, _SEEDS[-1] + 1 + (d - 1).bit_length())
        points = [self._point(model, dag, seed) for seed in seeds]
        self.points = [{kind: point[rv.name] for kind, rv in found.items()} for point in points]
        self.values = [evaluate(point) for point in points]
        self.d = points[0][dag.name].shape[-1]
        self._check_links()

    def _point(self, model, dag, seed):
        rng, point = np.random.default_rng(seed), dict(model.initial_point())
        for kind, rv in self.found.items():
            shape = np.shape(point[rv.name])
            if kind is DirichletRV:
                point[rv.name] = rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
            elif kind is BernoulliRV:
                point[rv.name] = _indicators(rv, shape, len(dag.owner.op.names), seed)
            elif kind is NoiseDegreesRV:
                point[rv.name] = 3.0 + rng.random(shape)
            elif kind is BetaRV:
                point[rv.name] = 0.1 + 0.8 * rng.random(shape)
            else:
                point[rv.name] = 0.5 + rng.random(shape)
        return point

    def of(self, kind, point=0):
        """Parameters of a distribution as arrays without padding."""
        return [np.asarray(v, float) for v in self.values[point][self.places[kind]]]

    def _number(self, kind, place):
        values = [np.unique(self.of(kind, point)[place]) for point in range(len(_SEEDS))]
        if not all(len(v) == 1 and np.allclose(v, values[0]) for v in values):
            raise NotRecognized(
                f"the prior of {self.found[kind].name!r} does not have the same constants everywhere"
            )
        return float(values[0][0])

    def _check_links(self):
        ratios = []
        for k, point in enumerate(self.points):
            intercept, matrix, scales, shape, *_ = self.of(LinearSemRV, k)
            target, source = np.nonzero(~np.eye(self.d, dtype=bool))
            weight = np.zeros((self.d, self.d))
            weight[target, source] = point[ArcSlabsRV]
            wanted = [
                (intercept, point[InterceptsRV]),
                (matrix, weight),
                (self.of(InterceptsRV, k)[0], np.square(scales)),
                (shape, self._shape(point, shape.shape)),
            ]
            if NoiseScalesRV in point:
                wanted.append((scales, point[NoiseScalesRV]))
            for found, right in wanted:
                if not np.allclose(np.squeeze(found), np.squeeze(right), rtol=1e-9):
                    raise NotRecognized(
                        f"the parameters of {self.rows.name!r} are not linked as in linear structural equations"
                    )
            ratios.append(self._slab_ratio(k, point, scales))
        if not np.allclose(ratios, ratios[0][0], rtol=1e-9):
            raise NotRecognized(
                f"the scale of {self.found[ArcSlabsRV].name!r} is not a constant times the noise scale of "
                "the child"
            )
        self.scale = float(ratios[0][0])
        self.relative = self._relative()

    def _shape(self, point, shape):
        if NoiseDegreesRV in point:
            return point[NoiseDegreesRV][:, None]
        if BernoulliRV in point:
            weights = np.broadcast_to(point[DirichletRV], (shape[0], len(BASE)))
            return with_normal(weights, point[BernoulliRV])
        if DirichletRV in point:
            return np.broadcast_to(point[DirichletRV], shape)
        return np.zeros(shape)

    def _slab_ratio(self, k, point, scales):
        width, target = self.of(ArcSlabsRV, k)[1], arc_index(self.d)[1]
        own = np.broadcast_to(np.squeeze(scales), (self.d,))[target]
        return np.squeeze(width) / (own * point.get(LocalScalesRV, 1.0))

    def _relative(self):
        if NoiseScalesRV in self.found:
            return np.ones(self.d)
        found = [
            np.square(np.squeeze(self.of(LinearSemRV, k)[2]) / point[CommonNoiseScaleRV])
            for k, point in enumerate(self.points)
        ]
        if not np.allclose(found[0], found[1], rtol=1e-9):
            raise NotRecognized(
                f"noise scales of {self.rows.name!r} are not one number times constants"
            )
        return np.broadcast_to(found[0], (self.d,)).copy()

    def settings(self) -> SemSettings:
        """Noise, variances and priors as numbers."""
        if NoiseScalesRV in self.found:
            variances = "free"
            alpha_w, t = (self._number(NoiseScalesRV, place) for place in (1, 2))
            shape, rate = 0.5 * (alpha_w - self.d + 1.0), 0.5 * t
        else:
            variances = "equal" if np.allclose(self.relative, 1.0) else "known"
            shape, rate = (self._number(CommonNoiseScaleRV, place) for place in (0, 1))
        prior = "horseshoe" if LocalScalesRV in self.found else "spike_slab"
        if self.found[ArcSlabsRV].owner.op.slab == "laplace":
            if prior == "horseshoe":
                raise NotRecognized("Laplace slabs have no local scales")
            prior = "laplace"
        more = {}
        if NoiseDegreesRV in self.found:
            more["degrees_shape"] = self._number(NoiseDegreesRV, 0)
            more["degrees_rate"] = self._number(NoiseDegreesRV, 1)
        if DirichletRV in self.found:
            more["concentration"] = self._concentration()
        if BernoulliRV in self.found:
            more |= self._normal_prior()
            if variances != "free":
                raise NotRecognized(
                    f"{self.found[BernoulliRV].name!r} needs noise scales of their own for all columns"
                )
        return SemSettings(
            NOISES.index(self.rows.owner.op.law.name),
            VARIANCES.index(variances),
            PRIORS.index(prior),
            self._number(InterceptsRV, 1),
            self.scale,
            shape,
            rate,
            **more,
        )

    def _normal_prior(self):
        """Return the probability of normal noise, or the numbers of its prior."""
        if BetaRV not in self.found:
            return {"normal_probability": self._number(BernoulliRV, 0)}
        name = self.found[BetaRV].name
        if np.shape(self.points[0][BetaRV]) != ():
            raise NotRecognized(f"{name!r} is not one number for all columns")
        for k, point in enumerate(self.points):
            if not np.allclose(self.of(BernoulliRV, k)[0], point[BetaRV], rtol=1e-9):
                raise NotRecognized(
                    f"{name!r} is not the prior probability of {self.found[BernoulliRV].name!r}"
                )
        alpha, beta = (self._number(BetaRV, place) for place in (0, 1))
        share = alpha / (alpha + beta)
        return {"normal_probability": share, "share_alpha": alpha, "share_beta": beta}

    def _concentration(self):
        """Sum of the prior weights of the components, which have to be those of these components."""
        alphas = [self.of(DirichletRV, k)[0] for k in range(len(_SEEDS))]
        total = float(alphas[0].sum(axis=-1).flat[0])
        if not all(np.allclose(alpha, total * BASE) for alpha in alphas):
            raise NotRecognized(
                f"the prior weights of {self.found[DirichletRV].name!r} are not a number times "
                f"{BASE.round(4).tolist()}"
            )
        return total

    def constants(self):
        """Relative variances, units, values that were set, and the table."""
        *_, location, spread, setting = self.of(LinearSemRV)
        for found, other in zip(
            (location, spread, setting), self.of(LinearSemRV, 1)[-3:], strict=True
        ):
            if not np.array_equal(found, other, equal_nan=True):
                raise NotRecognized(f"the units of {self.rows.name!r} are not constants")
        x = np.asarray(self.values[0][-1], float)
        units = (np.array(np.broadcast_to(np.squeeze(v), (self.d,))) for v in (location, spread))
        return self.relative, *units, np.array(np.broadcast_to(np.squeeze(setting), x.shape)), x
