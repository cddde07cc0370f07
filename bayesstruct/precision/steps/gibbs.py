"""Exact Gibbs step of precision matrices with element-wise priors."""

from typing import Any

import numpy as np
import pymc as pm

from pymc.step_methods.compound import Competence
from scipy.linalg import lapack

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import (
    NotRecognized,
    check_childless,
    children_of,
    is_claimed,
    is_op,
    parameters,
)
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.precision.kernels.rows.latent_tables import LatentRows
from bayesstruct.precision.priors.alternative_rows import MissingWeightedCellsRV, ValueWeightsRV
from bayesstruct.precision.priors.edge_probability import EdgeProbabilityRV
from bayesstruct.precision.priors.edges import EdgesRV
from bayesstruct.precision.priors.g_wishart import GWishartRV, IndependentEdgesRV
from bayesstruct.precision.priors.horseshoe import GlobalScaleRV, GraphicalHorseshoeRV
from bayesstruct.precision.priors.latent_rows import LatentValuesRV
from bayesstruct.precision.priors.rows import ColumnMeansRV, MissingCellsRV
from bayesstruct.precision.priors.student_rows import DegreesOfFreedomRV, MissingStudentCellsRV
from bayesstruct.precision.recognition.parts import PRECISION_RVS, PrecisionPart, parts_of
from bayesstruct.precision.recognition.values import (
    FusedValues,
    GroupValues,
    HorseshoeValues,
    LaplaceValues,
    NuclearValues,
    PartValues,
    SpikeSlabValues,
    values_type,
)
from bayesstruct.precision.steps.penalised import FusedSweep, GroupSweep, NuclearSweep
from bayesstruct.precision.steps.scale_mixtures import ELEMENT_VARIANCES
from bayesstruct.precision.steps.student import StudentGibbs, ValueWeightsGibbs

__all__ = ["EdgesGibbs", "PrecisionGibbs", "normal_draw"]

_SUPPORTED = "PrecisionGibbs draws matrices whose children are tables of normal rows; give other likelihoods latent normal rows in between"
_MAX_SWEEPS = 8
_CANDIDATES = (
    *PRECISION_RVS,
    EdgesRV,
    EdgeProbabilityRV,
    GlobalScaleRV,
    ColumnMeansRV,
    MissingCellsRV,
    DegreesOfFreedomRV,
    MissingStudentCellsRV,
    LatentValuesRV,
    ValueWeightsRV,
    MissingWeightedCellsRV,
)


class SpikeSlabSweep:
    """Sweep under the spike-and-slab prior."""

    def __init__(self, p: int):
        self.edges = np.zeros((p, p), np.int8)
        self.inclusion, self.work = np.zeros((p, p)), np.empty((2, p))

    def __call__(self, rng, precision, covariance, scatter, n, values: SpikeSlabValues) -> None:
        """Update the matrix and its inverse in place."""
        from bayesstruct.precision.kernels.gibbs import spike_slab_sweep
        from bayesstruct.precision.kernels.odds import log_odds_matrix

        log_odds = log_odds_matrix(values.probability)
        prior = (log_odds, values.spike, values.slab, values.diagonal_rate)
        state = (precision, covariance, self.edges, self.inclusion)
        spike_slab_sweep(rng, *state, scatter, n, *prior, self.work)


class LaplaceSweep:
    """Sweep under the graphical-lasso prior."""

    def __init__(self, p: int):
        self.work = np.empty((2, p))

    def __call__(self, rng, precision, covariance, scatter, n, values: LaplaceValues) -> None:
        """Update the matrix and its inverse in place."""
        from bayesstruct.precision.kernels.gibbs import laplace_sweep

        prior = (values.rates, values.diagonal_rate)
        laplace_sweep(rng, precision, covariance, scatter, n, *prior, self.work)


class HorseshoeSweep:
    """Sweep under the graphical horseshoe."""

    def __init__(self, p: int):
        self.work, self.space = np.empty((2, p)), np.empty((2, p, p))

    def __call__(self, rng, precision, covariance, scatter, n, values: HorseshoeValues) -> None:
        """Update the matrix and its inverse in place."""
        from bayesstruct.precision.kernels.horseshoe.sweep import horseshoe_sweep

        prior = (values.scales, values.diagonal_rate)
        horseshoe_sweep(rng, precision, covariance, scatter, n, *prior, self.work)

    def draw_scale(self, rng, precision, scatter, n, values: HorseshoeValues) -> np.ndarray:
        """Draw the global scale, with the matrix in place if its scatter matrix is given; return its logarithm."""
        from bayesstruct.precision.kernels.horseshoe.sweep import draw_global_scale, rescale

        scale = draw_global_scale(rng, precision, values.global_scale, values.width)
        if scatter is not None:
            scale = rescale(rng, precision, scatter, n, scale, values.width, self.space)
        return np.asarray(np.log(scale))


# A sweep is made for p columns, and updates matrix and inverse in place.
SWEEPS: dict[type, type] = {
    SpikeSlabValues: SpikeSlabSweep,
    LaplaceValues: LaplaceSweep,
    HorseshoeValues: HorseshoeSweep,
    FusedValues: FusedSweep,
    GroupValues: GroupSweep,
    NuclearValues: NuclearSweep,
}


def normal_draw(rng, system: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Draw from the normal distribution with precision matrix `system` and its product with the mean `target`."""
    factor = np.linalg.cholesky(system)
    half, _ = lapack.dtrtrs(factor, target, lower=1)
    noise = rng.standard_normal(len(target))
    draw, _ = lapack.dtrtrs(factor, half + noise, lower=1, trans=1)
    return draw


class PartGibbs:
    """Gibbs updates of one recognised part: means, missing values, matrix, indicators.

    Parameters
    ----------
    model : pymc.Model
    part : PrecisionPart
    drawn : set of TensorVariable
        Random variables to draw; the others are moved by other samplers.
    initial_point, compile_kwargs : dict, optional
        See `PartValues`.
    """

    def __init__(self, model, part: PrecisionPart, drawn, initial_point=None, compile_kwargs=None):
        self.values = PartValues(model, part, initial_point, compile_kwargs)
        self.drawn = {role for role, variable in part.roles.items() if variable in drawn}
        self.draws_missing = [t.missing_rv in drawn for t in part.tables]
        self.latent = [
            at for at, t in enumerate(part.tables) if t.codes is not None and t.rv in drawn
        ]
        name = self.values.names["degrees"] if "degrees" in self.drawn else None
        self.weights = [
            kind(model, part, name, drawn, compile_kwargs)
            for kind in (StudentGibbs, ValueWeightsGibbs)
            if any(map(kind.draws, part.tables))
        ]
        self.prepare()

    def prepare(self) -> None:
        """Make the sweep."""
        self.sweep: Any = SWEEPS[self.values.values_type](self.values.p)

    def forget(self) -> None:
        """Read the tables anew: they may have been exchanged."""
        self.values.tables = []

    def update(self, rng, point: dict) -> int:
        """Draw every variable of the part once, in place in the point; return the number of edges."""
        self.values.load(point)
        precision, covariance = self.read_matrix(point)
        means = self._update_tables(rng, precision, point)
        values = self.values.prior(point)
        return self.update_matrix(rng, precision, covariance, means, values, point)

    def read_matrix(self, point: dict) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix at the point, and its inverse."""
        return unpack_cholesky(point[self.values.names["precision"]], self.values.p)

    def _update_tables(self, rng, precision: np.ndarray, point: dict) -> list[np.ndarray]:
        """Draw what the rows have of their own, their means and missing values; return the means."""
        part, names = self.values, self.values.names
        for table, name in zip(part.tables, part.missing, strict=True):
            if name is not None:
                table.fill(point[name])
        for weights in self.weights:
            weights.update(rng, part.tables, precision, part.means(point), point)
        if "mean" in self.drawn:
            point[names["mean"]] = self._move_means(
                rng, self._draw_mean(rng, precision, point), point
            )
        means = part.means(point)
        self._draw_missing(rng, precision, means, point)
        return means

    def update_matrix(self, rng, precision, covariance, means: list, values, point: dict) -> int:
        """Draw the matrix and what depends on it alone; return the number of edges."""
        names = self.values.names
        # The prior is a scale family: K = scale * Q with the unit prior on Q and scatter * scale.
        precision /= values.scale
        if "precision" in self.drawn:
            covariance *= values.scale
            self.draw_units(rng, precision, covariance, means, values, point)
            scatter, n = self.values.scatter(means)
            for _ in range(self._sweeps()):
                self.sweep(rng, precision, covariance, scatter * values.scale, n, values)
            if "global_scale" in self.drawn:
                point[names["global_scale"]] = self.sweep.draw_scale(
                    rng, precision, scatter, n, values
                )
            point[names["precision"]] = pack_cholesky(precision * values.scale)
        elif "global_scale" in self.drawn:
            point[names["global_scale"]] = self.sweep.draw_scale(rng, precision, None, 0.0, values)
        if isinstance(values, SpikeSlabValues):
            return self._draw_edges(rng, precision, values, point)
        return 0

    def _draw_mean(self, rng, precision: np.ndarray, point: dict) -> np.ndarray:
        """Draw the column means from their normal conditional."""
        return normal_draw(rng, *self.values.mean_system(precision, point))

    def _move_means(self, rng, mean: np.ndarray, point: dict) -> np.ndarray:
        """Draw the means of columns of latent values, which move with them; return all means."""
        table = self.values.tables[0]
        if not self._moves_latent() or not isinstance(table, LatentRows):
            return mean
        return table.move_means(rng, mean, *self.values.mean_prior(point))

    def _sweeps(self) -> int:
        """Sweeps of the matrix in one update: several where latent values, O(n p^2), take most of its time."""
        if not self.latent:
            return 1
        return max(1, min(_MAX_SWEEPS, self.values.tables[0].n // self.values.p))

    def _moves_latent(self) -> bool:
        """Whether the only table has latent values that are drawn."""
        return self.latent == [0] and len(self.values.tables) == 1

    def draw_units(self, rng, precision, covariance, means: list, values, point: dict) -> None:
        """Draw the units of columns of latent values, and row and column of the matrix with them."""
        if not self._moves_latent():
            return
        table, prior = self.values.tables[0], self.unit_prior(rng, precision, values)
        if prior is None or not isinstance(table, LatentRows):
            return
        table.rescale(rng, precision, covariance, means[0], *prior)
        if "mean" in self.drawn and len(table.chosen):
            means[0] = means[0].copy()
            scale = float(values.scale) if np.ndim(values.scale) == 0 else 1.0
            known = (means[0], scale, prior, *self.values.mean_prior(point))
            table.move_choices(rng, precision, covariance, *known)
            point[self.values.names["mean"]] = means[0]
        point[self.values.missing[0]] = table.missing_values()

    def unit_prior(self, rng, precision: np.ndarray, values) -> tuple | None:
        """Shapes, variances and rates for `rescale_columns`, or None if the prior allows no such move."""
        draw = ELEMENT_VARIANCES.get(type(values))
        if draw is None:
            return None
        p = len(precision)
        shapes, rates = np.full(p, 0.5 * (p + 1)), np.full(p, values.diagonal_rate)
        return shapes, draw(rng, precision, values), rates

    def _draw_missing(self, rng, precision: np.ndarray, means: list, point: dict) -> None:
        """Draw the missing values of each table given its observed ones."""
        part = self.values
        rows = zip(part.tables, part.missing, self.draws_missing, means, strict=True)
        for table, name, drawn, mean in rows:
            if drawn:
                table.impute(rng, precision, mean)
                point[name] = table.missing_values()

    def _draw_edges(self, rng, precision: np.ndarray, values: SpikeSlabValues, point: dict) -> int:
        """Draw the edges given the matrix and the common edge probability given the edges."""
        from bayesstruct.precision.kernels import prior as kernel

        edge, share = (self.values.names.get(role) for role in ("edge", "share"))
        if "edge" in self.drawn:
            scales = values.spike, values.slab
            point[edge] = kernel.draw_edges(rng, precision, values.probability, *scales)
        if "share" in self.drawn and values.shapes is not None:
            lower = np.zeros((self.values.p, self.values.p), np.int8)
            lower.T[np.triu_indices(self.values.p, 1)] = point[edge]
            drawn = kernel.draw_share(rng, lower, values.nominal, *values.shapes)
            point[share] = np.asarray(np.log(drawn) - np.log1p(-drawn))
        return 0 if edge is None else int(point[edge].sum())


# Priors whose matrix is not drawn by a sweep over all its elements; filled where these updates are defined.
UPDATES: dict[type, type[PartGibbs]] = {}


def _part_update(model, part: PrecisionPart, drawn, *extra) -> PartGibbs:
    """Make the updates of a part."""
    kind = UPDATES.get(values_type(part.precision), PartGibbs)
    return kind(model, part, drawn, *extra)


@register_step
class PrecisionGibbs(GibbsStep):
    """Gibbs sweeps over a precision matrix, its edges, the column means and the missing values.

    Assigned by ``pm.sample`` to every precision matrix whose children are all tables of normal
    rows (``pm.MvNormal(tau=...)`` or :class:`bayesstruct.distributions.GraphicalNormal`), whatever
    their means are computed from; other samplers move the rest of the model. One call is one sweep;
    see :mod:`bayesstruct.precision.kernels.gibbs` for the algorithm. The state of a chain is its
    point and its generator: nothing else is carried from one call to the next.

    Raises
    ------
    ValueError
        If a matrix has a child that is not a table of normal rows.
    """

    name = "precision_gibbs"
    stats_dtypes_shapes: dict = {"n_edges": (int, [])}

    def prepare(self, model, drawn):
        """Recognise the parts around the precision matrices."""
        drawn = set(drawn)
        extra = (self.initial_point, self.compile_kwargs)
        self.parts = [
            _part_update(model, part, drawn, *extra) for part in _parts_to_draw(model, drawn)
        ]

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain and forget the tables of the last one."""
        super().setup_chain(rng, tune, draws)
        for part in self.parts:
            part.forget()

    def step(self, point):
        """Draw every variable of the step once."""
        point = dict(point)
        edges = sum(part.update(self.rng, point) for part in self.parts)
        return point, [{"n_edges": edges}]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for the variables of a recognised part, and for all horseshoes."""
        if not is_op(var, _CANDIDATES) and not is_claimed(var, PrecisionGibbs.name):
            return Competence.INCOMPATIBLE
        model = pm.Model.get_context(error_if_none=False)
        if model is None or var not in model.basic_RVs:
            return Competence.IDEAL  # the constructor looks at the model
        if is_op(var, (GraphicalHorseshoeRV, GlobalScaleRV)):
            return Competence.IDEAL  # NUTS gets stuck at the poles of its density
        parts = [p for p in parts_of(model).values() if not isinstance(p, NotRecognized)]
        if any(var is v for part in parts for v in part.variables):
            return Competence.IDEAL
        # No other step keeps the zeros of a matrix; this one says why it cannot draw it, or the graph of an observed one.
        alone = is_op(var, GWishartRV) or _has_matrix(model, var)
        return Competence.IDEAL if alone else Competence.INCOMPATIBLE


def _has_matrix(model, var) -> bool:
    """Whether a variable is the random graph of a G-Wishart matrix."""
    graph = is_op(var, IndependentEdgesRV)
    return graph and any(is_op(child, GWishartRV) for child in children_of(model, var))


def _parts_to_draw(model, drawn: set) -> list[PrecisionPart]:
    """Return the parts that have these variables, or raise if one cannot be drawn."""
    parts, left = [], set(drawn)
    for precision, part in parts_of(model).items():
        if not isinstance(part, NotRecognized):
            own = left & set(part.variables)
            left -= own
            parts += [part] if own else []
        elif precision in drawn and is_op(precision, GWishartRV):
            raise ValueError(f"{precision.name!r} cannot be drawn exactly: {part}. {_SUPPORTED}.")
        elif precision in drawn and is_op(precision, GraphicalHorseshoeRV):
            raise ValueError(
                f"PrecisionGibbs cannot draw {precision.name!r} exactly: {part}. NUTS would get stuck where an element is near "
                "zero, at which the horseshoe density is infinite: use bs.GraphicalSpikeSlab or bs.GraphicalLasso in this model"
            )
        elif precision in drawn:
            raise ValueError(
                f"PrecisionGibbs cannot draw {precision.name!r} exactly: {part}. Call pm.sample "
                f"inside `with model:`, where NUTS is assigned instead, or pass "
                f"step=pm.NUTS([{precision.name}])."
            )
    for graph in left:
        if _has_matrix(model, graph):
            raise ValueError(
                f"{graph.name!r} cannot be drawn: its precision matrix is observed, and the graph is where that is not zero"
            )
    if left:
        names = ", ".join(repr(v.name) for v in left)
        raise ValueError(
            f"PrecisionGibbs cannot draw {names} exactly: no precision matrix is recognised beside "
            "it. Call pm.sample inside `with model:`, or name another step for it."
        )
    return parts


@register_step
class EdgesGibbs(GibbsStep):
    """Draw the edge indicators given a precision matrix that another sampler moves.

    Raises
    ------
    ValueError
        If something in the model depends on the indicators.
    """

    name = "edges_gibbs"
    default_blocked = False
    stats_dtypes_shapes: dict = {"n_edges": (int, [])}

    def prepare(self, model, drawn):
        """Take the parameters of the indicators, on which nothing may depend."""
        [edge] = drawn
        [value] = self.vars
        try:
            check_childless(model, edge)
        except NotRecognized as reason:
            raise ValueError(
                f"the indicators {value.name!r} cannot be drawn exactly: {reason}. Write that term "
                "with the precision matrix or its partial correlations instead."
            ) from None
        self.value_name = value.name
        self.parameters = Expressions(model, list(parameters(edge)), self.compile_kwargs)

    def step(self, point):
        """Draw the indicators from their Bernoulli conditionals."""
        from bayesstruct.precision.kernels.prior import draw_edges

        precision, probability, spike, slab, scale = self.parameters(point)
        edges = draw_edges(
            self.rng, precision / scale, np.asarray(probability), float(spike), float(slab)
        )
        return {**point, self.value_name: edges}, [{"n_edges": int(edges.sum())}]

    @staticmethod
    def competence(var, has_grad):
        """Compatible with edge indicators that no Gibbs step of their matrix takes."""
        return Competence.PREFERRED if is_op(var, EdgesRV) else Competence.INCOMPATIBLE
