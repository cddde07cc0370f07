"""Exact Gibbs step of the precision matrices of several groups."""

import numpy as np
import pymc as pm

from pymc.step_methods.compound import Competence

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import (
    NotRecognized,
    check_childless,
    is_claimed,
    is_op,
    parameters,
)
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.precision.priors.group_probabilities import GroupProbabilityRV
from bayesstruct.precision.priors.group_rows import GroupedMissingValuesRV
from bayesstruct.precision.priors.rows import ColumnMeansRV
from bayesstruct.precision.recognition.groups import (
    GROUP_PRIORS,
    INDICATOR_RVS,
    SHARES,
    GroupPart,
    GroupTables,
    group_parts_of,
)
from bayesstruct.precision.steps.gibbs import PrecisionGibbs, normal_draw

__all__ = ["GroupedPrecisionGibbs", "RelationsGibbs"]

_CANDIDATES = (
    *GROUP_PRIORS,
    *INDICATOR_RVS,
    ColumnMeansRV,
    GroupedMissingValuesRV,
    GroupProbabilityRV,
)


def draw_indicators(rng, precision: np.ndarray, log_prior: np.ndarray, scales) -> np.ndarray:
    """Draw the relations of pairs, or their edges in each group, given the matrices, or with two scales the edges of each group.

    Parameters
    ----------
    rng : numpy.random.Generator
    precision : (G, p, p) ndarray
    log_prior : (p, p, 3) ndarray
    scales : tuple of float
        The four of contrasts, or the two of indicators in each group.
    """
    from bayesstruct.precision.kernels.row_groups import prior as kernel

    if len(scales) == 2:
        return kernel.draw_group_edges(rng, precision, log_prior, *scales)
    return kernel.draw_relations(rng, precision, log_prior, scales)


def counted(indicators: np.ndarray) -> dict[str, int]:
    """Numbers of pairs with an edge in some group, and of pairs that differ between groups."""
    if indicators.ndim == 1:
        edge, different = indicators > 0, indicators > 1
    else:
        edge = indicators.any(axis=0)
        different = edge & ~indicators.all(axis=0)
    return {"n_edges": int(edge.sum()), "n_differences": int(different.sum())}


class GroupPartGibbs:
    """Gibbs updates of one recognised part: means, missing values, matrices, relations, their probabilities.

    Parameters
    ----------
    model : pymc.Model
    part : GroupPart
    drawn : set of TensorVariable
        Random variables to draw; the others are moved by other samplers.
    compile_kwargs : dict, optional
    """

    def __init__(self, model, part: GroupPart, drawn, compile_kwargs=None):
        self.values = GroupTables(model, part, compile_kwargs)
        self.drawn = {role for role, variable in part.roles.items() if variable in drawn}
        groups, p = self.values.groups, self.values.p
        self.chances = np.zeros((4, p, p))
        self.work = np.empty((2, groups, p)), np.empty((11, max(groups, 4)))

    def forget(self) -> None:
        """Read the table anew: it may have been exchanged."""
        self.values.tables, self.values.places = [], []

    def update(self, rng, point: dict) -> np.ndarray:
        """Draw every variable of the part once, in place in the point; return the relations or edges."""
        from bayesstruct.precision.kernels.row_groups.sweep import INDICATORS, groups_sweep

        part, names = self.values, self.values.names
        part.load(point)
        both = [unpack_cholesky(vector, part.p) for vector in point[names["precision"]]]
        precision, covariance = (np.stack(matrices) for matrices in zip(*both, strict=True))
        scatter, n = np.zeros_like(precision), np.zeros(part.groups)
        if part.has_rows:
            self._draw_means_and_missing(rng, precision, point)
            for g, mean in enumerate(point[names["mean"]]):
                scatter[g], n[g] = part.tables[g].scatter(mean), part.tables[g].n
        log_prior = part.log_prior(point)
        if "precision" in self.drawn:
            state = precision, covariance, self.chances
            prior = log_prior, part.scales, part.rates
            groups_sweep(rng, *state, scatter, n, *prior, *self.work, part.design)
            point[names["precision"]] = np.stack([pack_cholesky(matrix) for matrix in precision])
        if "relation" not in self.drawn:
            if self.drawn & {*SHARES}:
                self._draw_shares(rng, np.asarray(point[names["relation"]]), point)
            return np.zeros(0, int)
        scales = part.scales[:2] if part.design == INDICATORS else part.scales
        drawn = draw_indicators(rng, precision, log_prior, scales)
        point[names["relation"]] = drawn
        if self.drawn & {*SHARES}:
            self._draw_shares(rng, drawn, point)
        return drawn

    def _draw_shares(self, rng, drawn: np.ndarray, point: dict) -> None:
        """Draw the common probabilities given the relations, or the edges of each group."""
        from bayesstruct.precision.kernels.row_groups.shares import draw_shares, relations_of_edges

        part = self.values
        relation = drawn if drawn.ndim == 1 else relations_of_edges(drawn)
        shares = part.shares(point)
        draw_shares(rng, relation, part.edge, part.difference, part.shapes, shares)
        part.put_shares(shares, point)

    def _draw_means_and_missing(self, rng, precision: np.ndarray, point: dict) -> None:
        """Draw the means of each group, and its missing values given its observed ones."""
        from bayesstruct.precision.kernels.rows.missing_values import draw_missing

        part, names = self.values, self.values.names
        means = np.array(point[names["mean"]])
        missing = np.array(point[names["missing"]]) if "missing" in names else None
        for g, table in enumerate(part.tables):
            if missing is not None:
                table.fill(missing[part.places[g]])
            if "mean" in self.drawn:
                weight = part.deviation[g] ** -2.0
                system = table.n * precision[g] + np.diag(weight)
                means[g] = normal_draw(
                    rng, system, precision[g] @ table.sum() + part.centre[g] * weight
                )
            if missing is not None and "missing" in self.drawn:
                residuals = table.residuals(means[g])
                draw_missing(rng, precision[g], residuals, table.mask)
                table.set_residuals(residuals, means[g])
                missing[part.places[g]] = table.missing_values()
        point[names["mean"]] = means
        if missing is not None:
            point[names["missing"]] = missing


@register_step(before=PrecisionGibbs)
class GroupedPrecisionGibbs(GibbsStep):
    """Gibbs sweeps over the precision matrices of several groups, their relations and probabilities, column means and missing values.

    Assigned by ``pm.sample`` to matrices with the prior :class:`bayesstruct.distributions.GroupedSpikeSlab` or
    :class:`bayesstruct.distributions.GroupIndicatorSpikeSlab` that belong to one table of normal rows. One call is one
    sweep; see :mod:`bayesstruct.precision.kernels.row_groups.sweep` for the algorithm. The state of a chain is its point and its
    generator.

    Raises
    ------
    ValueError
        If the matrices have a child of another form.
    """

    name = "grouped_precision_gibbs"
    stats_dtypes_shapes: dict = {"n_edges": (int, []), "n_differences": (int, [])}

    def prepare(self, model, drawn):
        """Recognise the parts around the matrices."""
        left = set(drawn)
        self.parts = []
        for precision, part in group_parts_of(model).items():
            if isinstance(part, NotRecognized):
                if precision in left:
                    raise ValueError(
                        f"GroupedPrecisionGibbs cannot draw {precision.name!r} exactly: {part}. Call pm.sample inside "
                        f"`with model:`, where NUTS is assigned instead, or pass step=pm.NUTS([{precision.name}])."
                    )
                continue
            own = left & set(part.roles.values())
            left -= own
            if own:
                self.parts.append(GroupPartGibbs(model, part, own, self.compile_kwargs))
        if left:
            names = ", ".join(repr(v.name) for v in left)
            raise ValueError(
                f"GroupedPrecisionGibbs cannot draw {names} exactly: no precision matrices of groups are recognised "
                "beside it. Call pm.sample inside `with model:`, or name another step for it."
            )

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain and forget the table of the last one."""
        super().setup_chain(rng, tune, draws)
        for part in self.parts:
            part.forget()

    def step(self, point):
        """Draw every variable of the step once."""
        point = dict(point)
        counts = [counted(part.update(self.rng, point)) for part in self.parts]
        return point, [{name: sum(one[name] for one in counts) for name in counts[0]}]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for the variables of a recognised part."""
        if not is_op(var, _CANDIDATES):
            return Competence.INCOMPATIBLE
        model = pm.Model.get_context(error_if_none=False)
        if model is None or var not in model.basic_RVs:
            known = not is_op(var, ColumnMeansRV) or is_claimed(var, "grouped_precision_gibbs")
            return Competence.IDEAL if known else Competence.INCOMPATIBLE
        parts = [p for p in group_parts_of(model).values() if not isinstance(p, NotRecognized)]
        if any(var is v for part in parts for v in part.roles.values()):
            return Competence.IDEAL
        return Competence.INCOMPATIBLE


@register_step(before=GroupedPrecisionGibbs)
class RelationsGibbs(GibbsStep):
    """Draw the relations of pairs given precision matrices of groups that another sampler moves.

    Raises
    ------
    ValueError
        If something in the model depends on the relations.
    """

    name = "relations_gibbs"
    default_blocked = False
    stats_dtypes_shapes: dict = {"n_edges": (int, []), "n_differences": (int, [])}

    def prepare(self, model, drawn):
        """Take the parameters of the relations, on which nothing may depend."""
        [relation] = drawn
        [value] = self.vars
        try:
            check_childless(model, relation)
        except NotRecognized as reason:
            raise ValueError(
                f"the relations {value.name!r} cannot be drawn exactly: {reason}. Write that term with the precision "
                "matrices or their partial correlations instead."
            ) from None
        self.value_name = value.name
        self.parameters = Expressions(model, list(parameters(relation)), self.compile_kwargs)

    def step(self, point):
        """Draw the relations from their conditionals."""
        from bayesstruct.precision.kernels.row_groups.prior import log_relations

        precision, edge, difference, *scales = self.parameters(point)
        prior = log_relations(edge, difference), tuple(float(v) for v in scales)
        drawn = draw_indicators(self.rng, np.ascontiguousarray(precision), *prior)
        return {**point, self.value_name: drawn}, [counted(drawn)]

    @staticmethod
    def competence(var, has_grad):
        """Compatible with relations that no Gibbs step of their matrices takes."""
        if not is_op(var, INDICATOR_RVS):
            return Competence.INCOMPATIBLE
        model = pm.Model.get_context(error_if_none=False)
        if model is None or var not in model.basic_RVs:
            return Competence.INCOMPATIBLE
        parts = [p for p in group_parts_of(model).values() if not isinstance(p, NotRecognized)]
        known = any(var is part.relation for part in parts)
        return Competence.INCOMPATIBLE if known else Competence.IDEAL
