"""Posterior modes of regressions under priors of norms; coefficients that may be exactly zero have none."""

import warnings

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.modes import Climb, Mode, ModeSolver, register_mode, relative_change
from bayesstruct.core.recognition import NotRecognized, is_op, parameters
from bayesstruct.core.solution import ConvergenceWarning
from bayesstruct.core.tensors import as_float, constant_value
from bayesstruct.sparse.priors.group_laplace import GroupLaplaceRV, SparseGroupLaplaceRV
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlabRV
from bayesstruct.sparse.priors.norms import NormRV
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlabRV
from bayesstruct.sparse.recognition import recognize_regression

if TYPE_CHECKING:
    from bayesstruct.sparse.penalties.base import Penalty
    from bayesstruct.sparse.recognition import RegressionPart

__all__ = ["NormPriorMode", "SpikeAndSlabRefusal"]


#: Duality gap, relative to the objective, up to which coefficients are the mode.
_GAP = 1e-10


@register_mode
class SpikeAndSlabRefusal(ModeSolver):
    """Refuses coefficients with a spike-and-slab prior, unless a solver before it searches graphs.

    Densities at zero and elsewhere do not compare, so that there is no mode.
    """

    def recognise(self, model):
        """Raise for coefficients that may be zero or not."""
        kinds = (SpikeAndSlabRV, GroupSpikeAndSlabRV)
        uncertain = [rv for rv in model.free_RVs if is_op(rv, kinds) and _is_uncertain(rv)]
        if not uncertain:
            return
        raise ValueError(
            f"{', '.join(repr(rv.name) for rv in uncertain)} has a spike-and-slab prior, with exact zeros, so "
            "that its density has no mode: values at zero and elsewhere cannot be compared. "
            "Sample instead (pm.sample()) and read the draws: bs.map_graph and bs.median_graph give a graph, "
            "bs.edge_table and bs.arc_table the probabilities, bs.distributions.included those of other "
            'coefficients. Or take a prior that only shrinks and whose mode is sparse: prior="laplace", or '
            '"group_laplace" for tables of potentials.'
        )


def _is_uncertain(rv) -> bool:
    """Whether anything is neither always zero nor never."""
    inclusion = constant_value(parameters(rv)[0])
    return inclusion is None or not np.isin(inclusion, (0.0, 1.0)).all()


@register_mode
class NormPriorMode(ModeSolver):
    r"""Mode of regressions whose coefficients have the prior `GroupLaplace`, `SparseGroupLaplace` or `TreeLaplace`.

    Of :math:`X w` in the mean of a ``pm.Normal`` or the logit of a ``pm.Bernoulli``, plus any other terms. Given everything else
    the coefficients are the solution of a convex problem (:func:`bayesstruct.solvers.sparse_mode`, exact zeros and a certified
    duality gap); other continuous variables, such as rates, noise and intercept, are climbed in alternation by SciPy's L-BFGS, on
    the natural scale. With a random rate or noise the posterior can have several modes; this is the one reached from the
    initial point of the model.
    """

    def recognise(self, model):
        """Return the regressions, or None without such coefficients."""
        coefficients = [rv for rv in model.free_RVs if is_op(rv, NormRV)]
        if not coefficients:
            return None
        if names := [v.name for v in model.discrete_value_vars]:
            raise NotRecognized(f"{', '.join(map(repr, names))} is discrete")
        return [_regression(model, rv) for rv in coefficients]

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Solve the regressions, and climb the other variables, in turn."""
        point = model.initial_point()
        own = {one.coefficients for one in part}
        others = [rv for rv in model.free_RVs if rv not in own]
        solvers = [_CoefficientMode(model, one) for one in part]
        terms = [*model.basic_RVs, *model.potentials]
        climb = Climb(model, others, terms) if others else None
        change, rounds = np.inf, 0
        while change > tol and rounds < max_rounds:
            before = {name: np.array(value) for name, value in point.items()}
            for solver in solvers:
                solver.update(point, tol)
            if climb is not None:
                climb.update(point)
            change = max(relative_change(before[name], point[name]) for name in point)
            rounds += 1
            if climb is None and len(solvers) == 1:
                break
        certified = all(solver.certified for solver in solvers)
        settled = change <= tol or (climb is None and len(solvers) == 1)
        return Mode(point, certified and settled, rounds, change)


def _regression(model, coefficients) -> "RegressionPart":
    part = recognize_regression(model, coefficients)
    if part.response is None:
        raise NotRecognized(f"nothing depends on {coefficients.name!r}")
    part.require("normal", "logistic")
    if coefficients.type.ndim != 1:
        raise NotRecognized(f"{coefficients.name!r} is not a vector")
    return part


class _CoefficientMode:
    """Mode of the coefficients of one regression given everything else."""

    def __init__(self, model, part: "RegressionPart"):
        rv = part.coefficients
        self.op, self.logistic = rv.owner.op, part.logistic
        self.name = model.rvs_to_values[rv].name
        rest = as_float(0.0) if part.rest is None else part.rest
        noise = as_float(1.0) if part.noise is None else part.noise
        data: list[Any] = [part.design, model.rvs_to_values[part.response]]
        self.values = Expressions(model, [*data, rest, noise, *parameters(rv)])
        self.certified = False

    def update(self, point: dict, tol: float) -> None:
        """Solve, in place in the point."""
        from bayesstruct.sparse.solvers.losses import ShiftedLogistic
        from bayesstruct.sparse.solvers.sparse import sparse_mode

        X, y, rest, noise, *rates = (np.asarray(v, float) for v in self.values(point))
        rest = np.broadcast_to(rest, y.shape)
        family = ShiftedLogistic(y, shift=rest) if self.logistic else "gaussian"
        if not self.logistic:
            deviation = np.broadcast_to(noise, y.shape)
            X, y = X / deviation[:, None], (y - rest) / deviation
        penalty = _penalty(self.op, rates)
        gap = max(tol**2, 1e-13)  # of second order in the error of the coefficients
        with warnings.catch_warnings():
            # Rounding may end it before: whether what was reached is enough, is asked below.
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = sparse_mode(X, y, family=family, penalty=penalty, intercept=False, tol=gap)
        point[self.name] = solution.coefficients
        self.certified = solution.gap <= _GAP * (1.0 + abs(solution.objective))


def _penalty(op, rates) -> "Penalty":
    """Minus the log density of the coefficients, at these rates."""
    unit = op.structure.penalty
    if isinstance(op, GroupLaplaceRV):
        return replace(unit, weights=rates[0])
    if isinstance(op, SparseGroupLaplaceRV):
        return replace(unit, rate=float(rates[0]), weights=rates[1])
    return unit.with_rate(float(rates[0]))
