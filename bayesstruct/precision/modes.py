"""Posterior modes of models with a precision matrix."""

import logging

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from bayesstruct.core.modes import Climb, Mode, ModeSolver, register_mode, relative_change
from bayesstruct.core.recognition import NotRecognized, is_op
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.precision.priors.blocks import BlockEdgeProbabilitiesRV, BlockLabelsRV
from bayesstruct.precision.priors.node_inclusion import NodeInclusionRV
from bayesstruct.precision.recognition.labels import labels_of
from bayesstruct.precision.recognition.parts import PrecisionPart, parts_of
from bayesstruct.precision.recognition.values import (
    FusedValues,
    GroupValues,
    LaplaceValues,
    PartValues,
    SpikeSlabValues,
)

__all__ = ["PartMode", "PrecisionMode"]

_log = logging.getLogger("bayesstruct")
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
    each coordinate taking the better of its spike and slab maxima on the way.
    """

    def recognise(self, model):
        """Return the parts around precision matrices, or None without such a matrix."""
        parts = parts_of(model)
        known = [part for part in parts.values() if not isinstance(part, NotRecognized)]
        if parts and not known:
            raise NotRecognized(
                "; ".join(
                    f"the solver for the precision matrix {rv.name!r} does not fit this model, because {reason}"
                    for rv, reason in parts.items()
                )
            )
        return known or None

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Climb the matrices and the other variables in turn."""
        point = model.initial_point()
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
