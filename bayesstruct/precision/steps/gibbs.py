"""Exact Gibbs step of precision matrices with element-wise priors."""

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from scipy.linalg import lapack

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import NotRecognized, check_childless, is_op, parameters
from bayesstruct.precision.priors.edges import EdgesRV
from bayesstruct.precision.priors.precision import EdgeProbabilityRV, GraphicalSpikeSlabRV
from bayesstruct.precision.priors.rows import ColumnMeansRV, MissingCellsRV
from bayesstruct.precision.recognition import PRECISION_RVS, PrecisionPart, parts_of
from bayesstruct.precision.steps.tables import TableRows

__all__ = ["EdgesGibbs", "PrecisionGibbs"]

_CANDIDATES = (*PRECISION_RVS, EdgesRV, EdgeProbabilityRV, ColumnMeansRV, MissingCellsRV)


def unpack_cholesky(vector, p):
    """Return ``K`` and its inverse from the unconstrained vector of its default transform."""
    factor = np.zeros((p, p))
    factor[np.tril_indices(p)] = vector
    diagonal = np.arange(p)
    factor[diagonal, diagonal] = np.exp(factor[diagonal, diagonal])
    inverse, _ = lapack.dpotri(factor, lower=1)
    lower = np.tril(inverse, -1)
    return factor @ factor.T, np.ascontiguousarray(lower + lower.T + np.diag(np.diag(inverse)))


def pack_cholesky(precision):
    """Return the unconstrained vector of a precision matrix."""
    factor = np.linalg.cholesky(precision)
    p = factor.shape[0]
    diagonal = np.arange(p)
    factor[diagonal, diagonal] = np.log(factor[diagonal, diagonal])
    return factor[np.tril_indices(p)]


class SpikeSlabUpdate:
    """Sweep, indicators and common edge probability of the spike-and-slab prior."""

    def __init__(self, part, names, p):
        self.edge, self.share = names.get("edge"), names.get("share")
        self.tensors = list(parameters(part.precision))
        self.fixed = None
        if part.share is not None:
            alpha, beta, fixed, *_ = parameters(part.share)
            self.tensors[0] = fixed
            self.tensors += [alpha, beta]
        self.edges = np.zeros((p, p), np.int8)
        self.inclusion, self.work = np.zeros((p, p)), np.empty((2, p))

    def _probability(self, values, point):
        from bayesstruct.precision.kernels.prior import share_odds

        if self.share is None:
            return values[0]
        return share_odds(values[0], float(1.0 / (1.0 + np.exp(-point[self.share]))))

    def sweep(self, rng, precision, covariance, scatter, n, values, point):
        """Update the matrix and its inverse in place."""
        from bayesstruct.precision.kernels.gibbs import spike_slab_sweep
        from bayesstruct.precision.kernels.prior import log_odds_matrix

        _, spike, slab, rate, *_ = (float(v) if np.ndim(v) == 0 else v for v in values)
        log_odds = log_odds_matrix(self._probability(values, point))
        spike_slab_sweep(
            rng, precision, covariance, self.edges, self.inclusion,
            scatter, n, log_odds, spike, slab, rate, self.work,
        )  # fmt: skip

    def draw_indicators(self, rng, precision, values, point, drawn):
        """Draw the edges given the matrix and the common edge probability given the edges."""
        from bayesstruct.precision.kernels import prior as kernel

        if "edge" in drawn:
            probability = self._probability(values, point)
            spike, slab = float(values[1]), float(values[2])
            point[self.edge] = kernel.draw_edges(rng, precision, probability, spike, slab)
        if "share" in drawn:
            lower = np.zeros_like(self.edges)
            lower.T[np.triu_indices(len(lower), 1)] = point[self.edge]
            alpha, beta = float(values[5]), float(values[6])
            share = kernel.draw_share(rng, lower, values[0], alpha, beta)
            point[self.share] = np.asarray(np.log(share) - np.log1p(-share))
        return 0 if self.edge is None else int(point[self.edge].sum())


class LaplaceUpdate:
    """Sweep of the graphical-lasso prior."""

    def __init__(self, part, names, p):
        self.tensors = list(parameters(part.precision))
        self.work = np.empty((2, p))

    def sweep(self, rng, precision, covariance, scatter, n, values, point):
        """Update the matrix in place."""
        from bayesstruct.precision.kernels.gibbs import laplace_sweep

        rates, diagonal_rate, _ = values
        laplace_sweep(
            rng, precision, covariance, scatter, n, rates, float(diagonal_rate), self.work
        )

    def draw_indicators(self, rng, precision, values, point, drawn):
        """Nothing to draw: the prior has no indicators."""
        return 0


class PartGibbs:
    """Gibbs updates of one recognised part: means, missing cells, matrix, indicators.

    Parameters
    ----------
    model : pymc.Model
    part : PrecisionPart
    drawn : set of TensorVariable
        Random variables to draw; the others are moved by other samplers.
    initial_point : dict, optional
        A point of the model, looked at for the number of variables.
    compile_kwargs : dict, optional
    """

    def __init__(self, model, part: PrecisionPart, drawn, initial_point=None, compile_kwargs=None):
        roles = {"precision": part.precision, "edge": part.edge, "share": part.share}
        roles["mean"] = part.mean
        names = {k: model.rvs_to_values[v].name for k, v in roles.items() if v is not None}
        self.names = names
        self.drawn = {k for k, v in roles.items() if v in drawn}
        self.cells = [
            None if t.missing_rv is None else model.rvs_to_values[t.missing_rv].name
            for t in part.tables
        ]
        self.draws_cells = [t.missing_rv in drawn for t in part.tables]
        start = model.initial_point() if initial_point is None else initial_point
        self.p = round((np.sqrt(8 * start[names["precision"]].size + 1) - 1) / 2)
        kind = SpikeSlabUpdate if is_op(part.precision, GraphicalSpikeSlabRV) else LaplaceUpdate
        self.prior = kind(part, names, self.p)
        self.scale_at = 4 if kind is SpikeSlabUpdate else 2
        self.prior_values = Expressions(model, self.prior.tensors, compile_kwargs)
        self.means = Expressions(model, [t.mean for t in part.tables], compile_kwargs)
        self.mean_prior = None
        if part.mean is not None:
            self.mean_prior = Expressions(model, list(parameters(part.mean)), compile_kwargs)
        self.data = Expressions(model, self._data_tensors(model, part), compile_kwargs)
        self.latent = any(t.rv in model.free_RVs for t in part.tables)
        self.tables = None

    @staticmethod
    def _data_tensors(model, part):
        from pytensor.tensor import as_tensor_variable

        out = []
        for t in part.tables:
            value = t.rv if t.rv in model.free_RVs else model.rvs_to_values[t.rv]
            out.append(value)
            out.append(as_tensor_variable(0.0) if t.location is None else t.location)
            out.append(as_tensor_variable(1.0) if t.scale is None else t.scale)
            out.append(as_tensor_variable(0.0) if t.missing is None else t.missing)
        return out

    def load(self, point):
        """Read the tables; they may have been exchanged since the step was made."""
        values = self.data(point)
        self.tables = []
        for at in range(0, len(values), 4):
            data, location, scale, missing = values[at : at + 4]
            location, scale = (np.broadcast_to(v, (self.p,)) * 1.0 for v in (location, scale))
            mask = None if np.ndim(missing) == 0 else missing
            self.tables.append(TableRows(np.asarray(data, float), location, scale, mask))

    def update(self, rng, point):
        """Draw every variable of the part once, in place in the point."""
        if self.tables is None or self.latent:
            self.load(point)
        precision, covariance = unpack_cholesky(point[self.names["precision"]], self.p)
        for table, name in zip(self.tables, self.cells, strict=True):
            if name is not None:
                table.fill(point[name])
        if "mean" in self.drawn:
            point[self.names["mean"]] = self._draw_mean(rng, precision, point)
        means = [np.asarray(m, float) for m in self.means(point)]
        self._draw_cells(rng, precision, means, point)
        values = self.prior_values(point)
        # The prior is a scale family: K = scale * Q with the unit prior on Q and scatter * scale.
        scale = float(values[self.scale_at])
        precision /= scale
        if "precision" in self.drawn:
            scatter, n = self._scatter(means)
            covariance *= scale
            self.prior.sweep(rng, precision, covariance, scatter * scale, n, values, point)
            point[self.names["precision"]] = pack_cholesky(precision * scale)
        return self.prior.draw_indicators(rng, precision, values, point, self.drawn)

    def _scatter(self, means):
        """Scatter matrix about the means and number of rows, over all tables."""
        scatter, n = np.zeros((self.p, self.p)), 0
        for table, mean in zip(self.tables, means, strict=True):
            scatter += table.scatter(np.broadcast_to(mean, (self.p,)) if mean.ndim == 0 else mean)
            n += table.n
        return scatter, float(n)

    def _draw_mean(self, rng, precision, point):
        """Draw the column means from their normal conditional."""
        centre, sd = (np.broadcast_to(v, (self.p,)) for v in self.mean_prior(point))
        n = sum(table.n for table in self.tables)
        total = sum(table.sum() for table in self.tables)
        factor = np.linalg.cholesky(n * precision + np.diag(1.0 / sd**2))
        target = precision @ total + centre / sd**2
        half, _ = lapack.dtrtrs(factor, target, lower=1)
        draw, _ = lapack.dtrtrs(factor, half + rng.standard_normal(self.p), lower=1, trans=1)
        return draw

    def _draw_cells(self, rng, precision, means, point):
        """Draw the missing cells of each table given its observed ones."""
        from bayesstruct.precision.kernels.missing_cells import draw_missing

        rows = zip(self.tables, self.cells, self.draws_cells, means, strict=True)
        for table, name, drawn, mean in rows:
            if drawn:
                residuals = table.residuals(mean)
                draw_missing(rng, precision, residuals, table.mask)
                table.set_residuals(residuals, mean)
                point[name] = table.cells()


@dataclass_state
class GibbsState(StepMethodState):
    """State of a step that remembers nothing but its generator."""


def _context():
    """Return the model on the context stack, or None."""
    return pm.Model.get_context(error_if_none=False)


@register_step
class PrecisionGibbs(BlockedStep):
    """Gibbs sweeps over a precision matrix, its edges, the column means and the missing cells.

    Assigned by ``pm.sample`` to every precision matrix whose children are all tables of normal
    rows (``pm.MvNormal(tau=...)`` or :class:`bayesstruct.distributions.GraphicalNormal`), whatever their means
    are made of; other samplers move the rest of the model. One call is one sweep; see
    :mod:`bayesstruct.precision.kernels.gibbs` for the algorithm. The state of a chain is its point
    and its generator: nothing else is carried from one call to the next.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If a matrix has a child that is not a table of normal rows.
    """

    name = "precision_gibbs"
    default_blocked = True
    stats_dtypes_shapes = {"n_edges": (int, [])}
    _state_class = GibbsState

    def __init__(
        self, vars, *, model=None, initial_point=None, compile_kwargs=None, rng=None, blocked=True
    ):
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        self.rng = get_random_generator(rng)
        drawn = {model.values_to_rvs[v] for v in self.vars}
        parts = _parts_to_draw(model, drawn)
        extra = (initial_point, compile_kwargs)
        self.parts = [PartGibbs(model, part, drawn, *extra) for part in parts]

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain and forget the tables of the last one."""
        super().setup_chain(rng, tune, draws)
        for part in self.parts:
            part.tables = None

    def step(self, point):
        """Draw every variable of the step once."""
        point = dict(point)
        edges = sum(part.update(self.rng, point) for part in self.parts)
        return point, [{"n_edges": edges}]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for the variables of a recognised part."""
        if not is_op(var, _CANDIDATES):
            return Competence.INCOMPATIBLE
        model = _context()
        if model is None or var not in model.basic_RVs:
            return Competence.IDEAL  # the constructor looks at the model
        parts = [p for p in parts_of(model).values() if not isinstance(p, NotRecognized)]
        if any(var is v for part in parts for v in part.variables):
            return Competence.IDEAL
        return Competence.INCOMPATIBLE


def _parts_to_draw(model, drawn) -> list:
    """Return the parts that have these variables, or say why one cannot be drawn."""
    parts, left = [], set(drawn)
    for precision, part in parts_of(model).items():
        if not isinstance(part, NotRecognized):
            own = left & set(part.variables)
            left -= own
            parts += [part] if own else []
        elif precision in drawn:
            raise ValueError(
                f"PrecisionGibbs cannot draw {precision.name!r} exactly: {part}. Call pm.sample "
                f"inside `with model:`, where NUTS is assigned instead, or pass "
                f"step=pm.NUTS([{precision.name}])."
            )
    if left:
        names = ", ".join(repr(v.name) for v in left)
        raise ValueError(
            f"PrecisionGibbs cannot draw {names} exactly: no precision matrix is recognised beside "
            "it. Call pm.sample inside `with model:`, or name another step for it."
        )
    return parts


@register_step
class EdgesGibbs(BlockedStep):
    """Draw the edge indicators given a precision matrix that another sampler moves.

    Raises
    ------
    ValueError
        If something in the model depends on the indicators.
    """

    name = "edges_gibbs"
    default_blocked = False
    stats_dtypes_shapes = {"n_edges": (int, [])}
    _state_class = GibbsState

    def __init__(
        self, vars, *, model=None, initial_point=None, compile_kwargs=None, rng=None, blocked=False
    ):
        model = pm.modelcontext(model)
        [value] = self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        try:
            check_childless(model, model.values_to_rvs[value])
        except NotRecognized as reason:
            raise ValueError(
                f"the indicators {value.name!r} cannot be drawn exactly: {reason}. Write that term "
                "with the precision matrix or its partial correlations instead."
            ) from None
        self.rng = get_random_generator(rng)
        self.value_name = value.name
        self.parameters = Expressions(
            model, list(parameters(model.values_to_rvs[value])), compile_kwargs
        )

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
