"""Posterior modes of models with a precision matrix."""

import logging

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from bayesstruct.core.modes import Climb, Mode, ModeSolver, register_mode, relative_change
from bayesstruct.core.recognition import NotRecognized, is_op, parameters
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.precision.priors.blocks import BlockEdgeProbabilitiesRV, BlockLabelsRV
from bayesstruct.precision.priors.g_wishart import GWishartRV
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
    NuclearValues,
    PartValues,
    SpikeSlabValues,
)
from bayesstruct.precision.steps.student import StudentGibbs

__all__ = ["GraphMode", "GroupedPrecisionMode", "PartMode", "PrecisionMode"]

#: Whether values have weights of their own, the kind of a model without a mode, and the reason.
_NO_EXPECTATION = {
    False: (
        "columns that count by their order",
        "the expected latent values given the order of whole columns have no closed form, and a maximum over "
        "the latent values themselves moves them all together",
    ),
    True: (
        "alternative t rows",
        "the expected weights of the values of a row have no closed form, and a maximum over the weights themselves says that most are 0",
    ),
}
_log = logging.getLogger("bayesstruct")
#: Change of the scatter matrix, over the number of rows, after which graphs are compared anew.
_MOVED = 1e-3
_SEED, _RESTARTS = 20150201, 5  # fixed: equal models have equal modes
_LABELS = (NodeInclusionRV, BlockLabelsRV, BlockEdgeProbabilitiesRV)


@register_mode(last=True)
class PrecisionMode(ModeSolver):
    r"""Mode of a precision matrix and of the other continuous variables of its model.

    .. math:: p(K, \mu, \theta \mid x_{\mathrm{obs}})

    on the natural scale, indicators and missing values summed out: the graphical lasso for the Laplace
    prior, conditional maximisation for the spike and slab, inside an EM loop over the missing values and the weights
    of rows with a t distribution.
    ``edge`` is the more probable value of each indicator given the mode, and ``x_missing`` the
    expected values. Other continuous variables, such as regression coefficients or a random rate, are
    climbed in alternation with the matrix by SciPy's L-BFGS.

    Nodes that are included and unknown blocks of columns climb in turn with the matrix, one node at a time.

    With a G-Wishart prior (``prior="g_wishart"``) the result is the mode of the matrix *given a graph*, a convex problem that is solved to a
    certified gap. A random graph is the most probable one that a search finds, the matrix integrated out: from the graph without edges,
    and for up to ten columns from that of all edges too, single edges are flipped while that raises the posterior probability: up to twenty columns no flip raises it in the end, and with more columns
    flips that do not look promising are not tried. That no other graph is more probable is not proved. The marginal likelihood is exact on decomposable graphs and by
    Laplace's method, with a correction, on others; a beta edge probability is integrated out, and missing values have their expected products given the graph and the
    mode of the matrix, in turn (structural EM).

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
            _check_edge_prior(part)
        for table in (table for part in known for table in part.tables):
            if table.weights is not None or table.codes is not None:
                kind, reason = _NO_EXPECTATION[table.codes is None]
                raise ValueError(
                    f"find_MAP knows no mode of a model of {kind}: {reason}. Draw from its posterior with pm.sample(), and read "
                    "posterior means, bs.median_graph or bs.map_graph"
                )
        return known or None

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Climb the matrices and the other variables in turn."""
        point = model.initial_point(0)  # equal models have equal modes
        modes = [_part_mode(model, one, point) for one in part]
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


class StudentMode(StudentGibbs):
    """Expected weights of t rows, after the degrees of freedom were set to their mode given matrix and means."""

    def expect(self, tables: list, precision: np.ndarray, means: list, point: dict) -> None:
        """Set both once; missing values of the tables are their expectations."""
        own = [(tables[at], np.atleast_1d(means[at])) for at in self.places]
        quadratic = [table.quadratic(precision, mean) for table, mean in own]
        sizes = [table.sizes for table, _ in own]
        if self.name is not None:
            rows = (np.concatenate(quadratic), np.concatenate(sizes))
            point[self.name] = np.asarray(_best_degrees(*rows, *map(float, self.prior(point))))
        known = zip(own, quadratic, sizes, self.degrees(point), strict=True)
        for (table, _), q, size, degrees in known:
            table.set_weights((degrees + size) / (degrees + q))


def _best_degrees(quadratic, sizes, shape: float, scale: float) -> float:
    """Logarithm of the degrees of freedom of greatest density, the weights integrated out."""
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln

    def loss(t):
        degrees = np.exp(t)
        total = degrees + sizes
        fit = gammaln(0.5 * total) - gammaln(0.5 * degrees) - 0.5 * sizes * t
        fit -= 0.5 * total * np.log1p(quadratic / degrees)
        return degrees / scale - (shape - 1.0) * t - fit.sum()

    grid = np.linspace(-4.0, 9.0, 53)  # there may be two maxima
    best = grid[np.argmin([loss(t) for t in grid])]
    bounds = (best - 0.25, best + 0.25)
    return minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-9}).x


class PartMode:
    """Mode of one recognised part: a round of expectation and maximisation at a time."""

    def __init__(self, model, part: PrecisionPart, point: dict):
        self.values = PartValues(model, part, point)
        self.has_mean = part.mean is not None
        self.last: np.ndarray | None = None
        name = self.values.names.get("degrees")
        student = any(map(StudentMode.draws, part.tables))
        self.student = StudentMode(model, part, name, ()) if student else None
        missing = any(t.missing_rv is not None for t in part.tables)
        self.alternates = missing or student or part.share is not None or self.has_mean

    def update(self, point: dict, tol: float) -> None:
        """Raise the posterior density once, in place in the point."""
        part, names = self.values, self.values.names
        part.load(point)
        precision = self._first_matrix(point) if self.last is None else self.last
        spread = self._expect_missing(precision, point)
        if self.student is not None:
            self.student.expect(part.tables, precision, part.means(point), point)
        if self.has_mean:
            point[names["mean"]] = np.linalg.solve(*part.mean_system(precision, point))
        scatter, n = part.scatter(part.means(point))
        self._climb(scatter + spread, n, point, tol, precision)

    def _first_matrix(self, point: dict) -> np.ndarray:
        """Return the matrix at the point."""
        return unpack_cholesky(point[self.values.names["precision"]], self.values.p)[0]

    def _climb(self, scatter, n, point: dict, tol: float, precision: np.ndarray) -> None:
        """Maximise over the matrix and its hyperparameters, in place in the point."""
        values = self.values.prior(point)
        scaled, start = scatter * values.scale, precision / values.scale
        mode = self.solvers[self.values.values_type](self, scaled, n, values, point, tol, start)
        self.last = values.scale * mode
        point[self.values.names["precision"]] = pack_cholesky(self.last)

    def _expect_missing(self, precision: np.ndarray, point: dict) -> np.ndarray:
        """Fill in the expected missing values; return the sum of their conditional covariances."""
        from bayesstruct.precision.kernels.rows.missing_values import expect_missing

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

    def _solve_nuclear(
        self, scatter, n, values: NuclearValues, point: dict, tol, start
    ) -> np.ndarray:
        from bayesstruct.precision.solvers.structured import solve_nuclear

        start = None if self.last is None else start
        rates = values.rates, values.labels, values.block_rates, values.diagonal_rate
        solution = solve_nuclear(scatter / n, n, *rates, tol, start)
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
        NuclearValues: _solve_nuclear,
    }


class GWishartPartMode(PartMode):
    """Mode of a G-Wishart matrix given its graph, which is searched for if it is random.

    Missing values get their expected products under the graph of all edges first, and then, as in structural EM, under the graph
    that was found: expected products under a graph of few edges would confirm it.
    """

    def __init__(self, model, part: PrecisionPart, point: dict):
        super().__init__(model, part, point)
        self.searches = "edge" in self.values.names
        self.filling = self.searches and any(name is not None for name in self.values.missing)
        self.seen: np.ndarray | None = None

    def _first_matrix(self, point: dict) -> np.ndarray:
        """Return the matrix at the point, where it has no transform."""
        return np.array(point[self.values.names["precision"]], float)

    def _climb(self, scatter, n, point: dict, tol: float, precision: np.ndarray) -> None:
        """Search for the graph and maximise over the matrix given it, in place in the point."""
        from bayesstruct.precision.solvers.covariance_selection import covariance_selection

        if self.searches:
            self._choose_graph(scatter, n, point)
        values, names = self.values.prior(point), self.values.names
        if "share" in names and values.shapes is not None:
            upper = np.triu_indices(self.values.p, 1)
            chosen, nominal = values.adjacency[upper], values.nominal[upper]
            point[names["share"]] = _best_share(chosen, nominal, *values.shapes)
        target = (values.scale + scatter) / (values.degrees_of_freedom + n - 2.0)
        gap = max(
            tol**2, 1e-13
        )  # of second order in the error of the matrix; smaller ones are rounding
        self.last = covariance_selection(target, values.adjacency, tol=gap).precision
        point[names["precision"]] = self.last

    def _choose_graph(self, scatter, n, point: dict) -> None:
        """Search for the graph if expected products have changed, or allow all edges until they settle; in place in the point."""
        from bayesstruct.precision.kernels.odds import log_odds_matrix
        from bayesstruct.precision.solvers.graph_search import (
            EdgePrior,
            GraphScores,
            probable_graph,
        )

        moved = self.seen is None or np.abs(scatter - self.seen).max() > _MOVED * n
        if not moved and not self.filling:
            return
        self.filling, self.seen = self.filling and moved, scatter
        values = self.values.prior(point)
        prior = EdgePrior(log_odds_matrix(values.nominal), values.shapes)
        graph = prior.log_odds > -np.inf
        if not self.filling:
            rows = max(n - self.has_mean, 0.0)  # means that are estimated cost one row
            own = values.degrees_of_freedom, values.scale
            graph, _ = probable_graph(GraphScores(scatter, rows, *own, prior))
        point[self.values.names["edge"]] = graph[np.triu_indices(self.values.p, 1)].astype("int64")


def _part_mode(model, part: PrecisionPart, point: dict) -> PartMode:
    kind = GWishartPartMode if is_op(part.precision, GWishartRV) else PartMode
    return kind(model, part, point)


def _check_edge_prior(part: PrecisionPart) -> None:
    """Raise if the probability of edges of a random graph depends on more than one common probability."""
    if not is_op(part.precision, GWishartRV) or part.edge is None or part.share is not None:
        return
    if sources := random_ancestors(*parameters(part.edge)):
        raise ValueError(
            f"find_MAP knows no mode of the graph {part.edge.name!r}, whose edge probabilities depend on {sources[0].name!r}: give numbers or "
            "one beta distribution, or draw from the posterior with pm.sample() and read bs.median_graph"
        )


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
            if edge.ndim > 1:
                raise NotRecognized(
                    f"the search for the graph {edge.name!r} needs a table without missing values: leave out rows, or fill them in"
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
        best, highest, rounds = model.initial_point(random_seed=_SEED), -np.inf, 0
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
        from bayesstruct.precision.kernels.rows.missing_values import expect_missing

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
