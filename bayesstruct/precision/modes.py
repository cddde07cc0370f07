"""Posterior modes of models with a precision matrix."""

import logging

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from bayesstruct.core.modes import Climb, Mode, ModeSolver, register_mode, relative_change
from bayesstruct.core.recognition import NotRecognized, is_op
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.precision.priors.blocks import BlockEdgeProbabilitiesRV, BlockLabelsRV
from bayesstruct.precision.priors.horseshoe import GraphicalHorseshoeRV
from bayesstruct.precision.priors.node_inclusion import NodeInclusionRV
from bayesstruct.precision.recognition.graphs import graph_parts
from bayesstruct.precision.recognition.groups import GroupPart, GroupTables, group_parts_of
from bayesstruct.precision.recognition.labels import labels_of
from bayesstruct.precision.recognition.parts import PrecisionPart, parts_of
from bayesstruct.precision.recognition.values import (
    FusedValues,
    GroupValues,
    LaplaceValues,
    PartValues,
    SpikeSlabValues,
    values_type,
)

__all__ = ["GraphMode", "GroupedPrecisionMode", "PartMode", "PrecisionMode"]

_NO_MODE = (
    "find_MAP does not maximise over matrices with a G-Wishart prior: the densities of graphs with different numbers of edges "
    "cannot be compared. Sample, and read bs.map_graph or bs.median_graph"
)
_log = logging.getLogger("bayesstruct")
_SEED, _RESTARTS = 20150201, 5  # fixed: equal models have equal modes
_LABELS = (NodeInclusionRV, BlockLabelsRV, BlockEdgeProbabilitiesRV)


@register_mode(last=True)
class PrecisionMode(ModeSolver):
    r"""Mode of a precision matrix and of the other continuous variables of its model.

    .. math:: p(K, \mu, \theta \mid x_{\mathrm{obs}})

    on the natural scale, indicators and missing values summed out: the graphical lasso for the Laplace
    prior, conditional maximisation for the spike and slab, inside an EM loop over the missing values.
    ``edge`` is the more probable value of each indicator given the mode, and ``x_missing`` the
    expected values. Other continuous variables, such as regression coefficients or a random rate, are
    climbed in alternation with the matrix by SciPy's L-BFGS.

    Nodes that are included and unknown blocks of columns climb in turn with the matrix, one node at a time.

    The spike-and-slab posterior has several modes; this is the one reached from the identity matrix,
    each coordinate taking the better of its spike and slab maxima on the way. The graphical horseshoe has no mode.
    """

    def recognise(self, model):
        """Return the parts around precision matrices, or None without such a matrix."""
        parts = parts_of(model)
        for rv in parts:
            if is_op(rv, GraphicalHorseshoeRV):
                raise ValueError(
                    f"{rv.name!r} has the graphical horseshoe prior, whose density is infinite where an element is zero, so that "
                    "the posterior has no mode: sample and take the posterior mean, or use the Laplace prior, whose mode is the "
                    "graphical lasso"
                )
        known = [part for part in parts.values() if not isinstance(part, NotRecognized)]
        if parts and not known:
            raise NotRecognized(
                "; ".join(
                    f"the solver for the precision matrix {rv.name!r} does not fit this model, because {reason}"
                    for rv, reason in parts.items()
                )
            )
        for part in known:
            if values_type(part.precision) not in PartMode.solvers:
                raise ValueError(_NO_MODE)
        for table in (table for part in known for table in part.tables):
            if table.degrees is not None or table.codes is not None:
                kind = "t rows" if table.codes is None else "columns that count by their order"
                raise ValueError(
                    f"find_MAP knows no mode of a model of {kind}: draw from its posterior with pm.sample()"
                )
        return known or None

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Climb the matrices and the other variables in turn."""
        point = model.initial_point(0)  # equal models have equal modes
        modes = [PartMode(model, one, point) for one in part]
        others = _other_variables(model, part)
        labels = labels_of(model)
        climb = _climb(model, part, others) if others else None
        change, rounds = np.inf, 0
        while change > tol and rounds < max_rounds:
            before = {name: np.array(value) for name, value in point.items()}
            for mode in modes:
                mode.update(point, tol)
            if climb is not None:
                climb.update(point)
            for nodes in labels:
                nodes.climb(point)
            change = max(relative_change(before[name], point[name]) for name in point)
            rounds += 1
            if climb is None and not labels and not any(mode.alternates for mode in modes):
                break
        return Mode(point, change <= tol or rounds < max_rounds, rounds, change)


class PartMode:
    """Mode of one recognised part: a round of expectation and maximisation at a time."""

    def __init__(self, model, part: PrecisionPart, point: dict):
        self.values = PartValues(model, part, point)
        self.has_mean = part.mean is not None
        self.last: np.ndarray | None = None
        missing = any(t.missing_rv is not None for t in part.tables)
        self.alternates = missing or part.share is not None or self.has_mean

    def update(self, point: dict, tol: float) -> None:
        """Raise the posterior density once, in place in the point."""
        part, names = self.values, self.values.names
        part.load(point)
        precision = self.last
        if precision is None:
            precision, _ = unpack_cholesky(point[names["precision"]], part.p)
        spread = self._expect_missing(precision, point)
        if self.has_mean:
            point[names["mean"]] = np.linalg.solve(*part.mean_system(precision, point))
        scatter, n = part.scatter(part.means(point))
        values = part.prior(point)
        scaled, start = (scatter + spread) * values.scale, precision / values.scale
        mode = self.solvers[self.values.values_type](self, scaled, n, values, point, tol, start)
        self.last = values.scale * mode
        point[names["precision"]] = pack_cholesky(self.last)

    def _expect_missing(self, precision: np.ndarray, point: dict) -> np.ndarray:
        """Fill in the expected missing values; return the sum of their conditional covariances."""
        from bayesstruct.precision.kernels.missing_values import expect_missing

        part = self.values
        spread = np.zeros((part.p, part.p))
        for table, name, mean in zip(part.tables, part.missing, part.means(point), strict=True):
            if name is not None:
                residuals = table.residuals(mean)
                expect_missing(precision, residuals, table.mask, spread)
                table.set_residuals(residuals, mean)
                point[name] = table.missing_values()
        return spread

    def _solve_laplace(
        self, scatter, n, values: LaplaceValues, point: dict, tol, start
    ) -> np.ndarray:
        from bayesstruct.precision.solvers.graphical_lasso import graphical_lasso

        penalty = values.rates / n
        penalty = 0.5 * (penalty + penalty.T)
        np.fill_diagonal(penalty, 2.0 * values.diagonal_rate / n)
        # The gap is of second order in the error of the matrix.
        return graphical_lasso(scatter / n, penalty, tol=max(tol**2, 1e-22), init=start).precision

    def _solve_fused(self, scatter, n, values: FusedValues, point: dict, tol, start) -> np.ndarray:
        from bayesstruct.precision.solvers.structured import solve_local_constancy

        pairs = np.argwhere(np.triu(values.differences, 1) > 0)
        smooth = values.differences[tuple(pairs.T)]
        rates = values.rates, values.diagonal_rate
        start = None if self.last is None else start
        solution = solve_local_constancy(scatter / n, n, pairs, *rates, smooth, tol, start)
        solution.warn_unless_converged("find_MAP", "Raise tol or the rates.")
        return solution.precision

    def _solve_groups(self, scatter, n, values: GroupValues, point: dict, tol, start) -> np.ndarray:
        from bayesstruct.precision.solvers.structured import solve_groups

        groups = values.members, values.group_rates, values.norm
        start = None if self.last is None else start
        solution = solve_groups(
            scatter / n, n, values.rates, *groups, values.diagonal_rate, tol, start
        )
        solution.warn_unless_converged("find_MAP", "Raise tol or the rates.")
        return solution.precision

    def _solve_spike_slab(
        self, scatter, n, values: SpikeSlabValues, point: dict, tol, start
    ) -> np.ndarray:
        from bayesstruct.precision.kernels.odds import log_odds_matrix
        from bayesstruct.precision.solvers.graphical_spike_slab import graphical_spike_slab

        names, first = self.values.names, self.last is None
        solution = graphical_spike_slab(
            scatter,
            n,
            log_odds_matrix(values.probability),
            spike_scale=values.spike,
            slab_scale=values.slab,
            diagonal_rate=values.diagonal_rate,
            init=None if first else start,
            tol=tol,
        )
        inclusion = solution.inclusion[np.triu_indices(self.values.p, 1)]
        if "edge" in names:
            point[names["edge"]] = (inclusion > 0.5).astype("int64")
        if values.shapes is not None:
            fixed = values.nominal[np.triu_indices(self.values.p, 1)]
            point[names["share"]] = _best_share(inclusion, fixed, *values.shapes)
        return solution.precision

    solvers: ClassVar[dict[type, Callable[..., np.ndarray]]] = {
        SpikeSlabValues: _solve_spike_slab,
        LaplaceValues: _solve_laplace,
        FusedValues: _solve_fused,
        GroupValues: _solve_groups,
    }


@register_mode
class GraphMode(ModeSolver):
    r"""Most probable graph of a table under regressions of columns on their neighbours.

    The graph of the greatest posterior probability that a search finds for
    :func:`bayesstruct.models.gaussian_graphical` with ``prior="pseudo_likelihood"``: from the graph without edges, and then from
    draws of the sampler that start at the best graph so far, the edge whose flip raises the probability most is
    flipped until none raises it. No change of a single edge improves the result; that no other graph is better is not proved. A
    common edge probability with a beta distribution is set to its mode given the graph in turn.
    """

    def recognise(self, model):
        """Return the part around a random graph, or None without such a graph."""
        parts = graph_parts(model)
        for edge, part in parts.items():
            if isinstance(part, NotRecognized):
                raise NotRecognized(
                    f"the search for the graph {edge.name!r} does not fit, because {part}"
                )
            known = {v for v in (part.edge, part.share) if v is not None}
            if others := [str(v.name) for v in model.free_RVs if v not in known]:
                raise NotRecognized(
                    f"the search for the graph {edge.name!r} is for a model of nothing else, and {', '.join(others)} is free too"
                )
        return next(iter(parts.values()), None)

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Search."""
        from bayesstruct.precision.steps.graph_sampler import GraphSampler

        sampler = GraphSampler(model, part)
        best, highest, rounds = model.initial_point(), -np.inf, 0
        rng, point = np.random.default_rng(_SEED), best
        for _ in range(_RESTARTS + 1):
            point, height, rounds = sampler.climb(point, max_rounds)
            if height > highest + 1e-9:
                best, highest = point, height
            point = sampler.disturb(rng, best)
        return Mode(best, rounds < max_rounds or part.share is None, rounds)


def _best_share(inclusion: np.ndarray, fixed: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    """Log odds of the common edge probability that maximises its expected log density."""
    free = (fixed > 0) & (fixed < 1)
    present = inclusion[free].sum() + alpha - 1.0
    absent = free.sum() - inclusion[free].sum() + beta - 1.0
    share = np.clip(present / (present + absent), 1e-12, 1 - 1e-12)
    return np.asarray(np.log(share) - np.log1p(-share))


def _climb(model, parts, others) -> Climb:
    """Maximisation over the variables outside the parts, the indicators and missing values summed out."""
    summed = {v for part in parts for v in (part.edge, *(t.missing_rv for t in part.tables))}
    rest = [v for v in model.basic_RVs if v not in summed] + list(model.potentials)
    return Climb(model, others, rest)


def _other_variables(model, parts) -> list:
    """Continuous free variables outside the parts; discrete ones stay where they start."""
    known = {v for part in parts for v in part.variables}
    others = [v for v in model.free_RVs if v not in known and not is_op(v, _LABELS)]
    fixed = [v.name for v in others if v.dtype.startswith(("int", "bool", "uint"))]
    if fixed:
        _log.warning(
            "find_MAP: %s: discrete and not the edges of a known prior, so that the initial value is kept.",
            ", ".join(map(repr, fixed)),
        )
    return [v for v in others if v.name not in fixed]


@register_mode
class GroupedPrecisionMode(ModeSolver):
    r"""Mode of the precision matrices of several groups of rows and of their means.

    .. math:: p(K_1, \dots, K_G, \mu \mid x_{\mathrm{obs}})

    on the natural scale, relations or edges of groups and missing values summed out: conditional maximisation of the
    elements of one pair in all groups at a time, inside an EM loop over the missing values. ``relation`` is the most probable one of each pair
    given the mode, and ``group_edge`` the most probable pattern of edges. Probabilities of edges and differences that have beta distributions
    climb in turn with the matrices. There may be several modes; this is the one reached from unit matrices.
    """

    def recognise(self, model):
        """Return the part around the precision matrices of groups, or None without such matrices."""
        parts = group_parts_of(model)
        if not parts:
            return None
        [(precision, part), *more] = parts.items()
        if isinstance(part, NotRecognized):
            raise NotRecognized(
                f"the solver for {precision.name!r} does not fit this model, because {part}"
            )
        if more or {*model.free_RVs} != {*part.roles.values()} or part.rows is None:
            raise NotRecognized(
                f"the solver for {precision.name!r} fits models that have rows, and no other variables"
            )
        return part

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Climb the means and matrices in turn, with expected missing values."""
        point = model.initial_point(0)
        mode, change, rounds = GroupMode(model, part), np.inf, 0
        while change > tol and rounds < max_rounds:
            before = {name: np.array(value) for name, value in point.items()}
            mode.update(point, tol)
            change = max(relative_change(before[name], point[name]) for name in point)
            rounds += 1
        return Mode(point, change <= tol, rounds, change)


class GroupMode:
    """Mode of the matrices of several groups: a round of expectation and maximisation at a time."""

    def __init__(self, model, part: GroupPart):
        self.values = GroupTables(model, part)
        p, groups = self.values.p, self.values.groups
        self.precision = np.stack([np.eye(p)] * groups)
        self.work = np.empty((2, groups, p)), np.empty((13, max(groups, 3)))

    def update(self, point: dict, tol: float, sweeps: int = 1000) -> None:
        """Raise the posterior density once, in place in the point."""
        from bayesstruct.precision.kernels.row_groups.mode import groups_mode_sweep

        part, names = self.values, self.values.names
        part.load(point)
        spread = self._expect_missing(point)
        scatter = np.empty_like(self.precision)
        for g, table in enumerate(part.tables):
            weight = part.deviation[g] ** -2.0
            system = table.n * self.precision[g] + np.diag(weight)
            target = self.precision[g] @ table.sum() + part.centre[g] * weight
            point[names["mean"]][g] = np.linalg.solve(system, target)
            scatter[g] = table.scatter(point[names["mean"]][g]) + spread[g]
        n = np.array([float(table.n) for table in part.tables])
        log_prior = part.log_prior(point)
        known = scatter, n, log_prior, part.scales, part.rates, *self.work, part.design
        for _ in range(sweeps):
            covariance = np.linalg.inv(self.precision)
            if groups_mode_sweep(self.precision, covariance, *known) <= tol:
                break
        point[names["precision"]] = np.stack([pack_cholesky(matrix) for matrix in self.precision])
        if "relation" in names:
            self._update_relations(log_prior, point)

    def _update_relations(self, log_prior: np.ndarray, point: dict) -> None:
        """Put the most probable relations or edges, and the modes of their probabilities, into the point."""
        from bayesstruct.precision.kernels.row_groups.edges_mode import likely_edges
        from bayesstruct.precision.kernels.row_groups.mode import relation_chances
        from bayesstruct.precision.kernels.row_groups.sweep import INDICATORS

        part = self.values
        chances = relation_chances(self.precision, log_prior, part.scales, part.design)
        if part.design == INDICATORS:
            found = likely_edges(self.precision, log_prior, *part.scales[:2])
        else:
            found = chances.argmax(axis=1)
        point[part.names["relation"]] = found
        if max(part.shapes) > 0:
            part.put_shares(self._best_shares(chances), point)

    def _best_shares(self, chances: np.ndarray) -> np.ndarray:
        """Probabilities of an edge and of a difference that maximise their expected log density."""
        part, upper = self.values, np.triu_indices(self.values.p, 1)
        absent, equal, different = chances.T
        counts = ((equal + different, absent), (different, equal))
        shares = np.full(2, 0.5)
        for k, (nominal, (present, other)) in enumerate(
            zip((part.edge, part.difference), counts, strict=True)
        ):
            alpha, beta = part.shapes[2 * k : 2 * k + 2]
            if alpha > 0:
                free = (nominal[upper] > 0) & (nominal[upper] < 1)
                yes, no = present[free].sum() + alpha - 1.0, other[free].sum() + beta - 1.0
                shares[k] = np.clip(yes / (yes + no), 1e-12, 1 - 1e-12)
        return shares

    def _expect_missing(self, point: dict) -> np.ndarray:
        """Fill in the expected missing values; return the sums of their conditional covariances."""
        from bayesstruct.precision.kernels.missing_values import expect_missing

        part, spread = self.values, np.zeros_like(self.precision)
        if "missing" not in part.names:
            return spread
        missing = np.array(point[part.names["missing"]])
        for g, table in enumerate(part.tables):
            mean = point[part.names["mean"]][g]
            table.fill(missing[part.places[g]])
            residuals = table.residuals(mean)
            expect_missing(self.precision[g], residuals, table.mask, spread[g])
            table.set_residuals(residuals, mean)
            missing[part.places[g]] = table.missing_values()
        point[part.names["missing"]] = missing
        return spread
