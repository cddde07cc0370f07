"""Step method for Markov random fields of several groups of rows, whose edges may be absent or differ between groups."""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from pymc.distributions.continuous import FlatRV
from pymc.step_methods.compound import Competence

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.missing import Mask, observed_values
from bayesstruct.core.recognition import NotRecognized, is_claimed, is_op, parameters
from bayesstruct.core.tensors import as_float
from bayesstruct.fields.kernels.potentials import check_codes
from bayesstruct.fields.priors.groups import GroupedWeightsRV
from bayesstruct.fields.recognition.groups import GroupedField, grouped_field_of, grouped_fields
from bayesstruct.fields.steps.missing import MissingDraws, PairwiseCells

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["GroupedPairwiseGibbs"]


@register_step(before=PairwiseCells)
class GroupedPairwiseGibbs(GibbsStep):
    """Metropolis-within-Gibbs draws of a Markov random field of several groups of rows.

    Assigned by ``pm.sample`` to weights with the prior :class:`bayesstruct.distributions.GroupedWeights` that belong to one
    :class:`bayesstruct.distributions.GroupedPairwiseMRF`, to its biases if they are normal or flat, and to its missing values. One call
    draws the missing values, then every pair, its relation and the weights of all groups together, then the biases of each
    group; see :mod:`bayesstruct.fields.kernels.groups`. Nothing is adapted.

    Raises
    ------
    ValueError
        If the weights are not those of a Markov random field of several groups that can be drawn exactly.

    Notes
    -----
    Statistics of each draw: ``n_edges`` and ``n_differences``, the numbers of pairs; ``acceptance``, the mean probability of acceptance;
    ``<name of the weights>_inclusion`` and ``<name of the weights>_difference``, float32, a number for each pair whose expectation is
    the posterior probability of an edge and of a difference, with a variance far smaller than that of the indicators.
    Single values may be outside of [0, 1]. :func:`bayesstruct.difference_table` and other readers average them.
    """

    name = "grouped_pairwise_gibbs"
    stats_dtypes_shapes: dict = {
        "n_edges": (int, []),
        "n_differences": (int, []),
        "acceptance": (float, []),
    }

    def prepare(self, model, drawn):
        """Find the Markov random field of the weights."""
        fields = [_field_of(model, rv) for rv in drawn if is_op(rv, GroupedWeightsRV)]
        left = {v.name for v in drawn} - {v.name for field in fields for v in field.variables}
        if not fields or left:
            raise ValueError(
                f"{sorted(left)} do not belong to a Markov random field of several groups; if the weights were set by "
                "pm.do or observed, call pm.sample() within `with model:`"
            )
        self.fields = [
            _Sampler(model, field, [v for v in field.variables if v in drawn], self.compile_kwargs)
            for field in fields
        ]
        sizes = {
            name: field.potentials.weight_size for field in self.fields for name in field.statistics
        }
        shapes = {name: (np.float32, [size]) for name, size in sizes.items()}
        types = {name: np.dtype((np.float32, (size,))) for name, size in sizes.items()}
        self.stats_dtypes_shapes: dict = type(self).stats_dtypes_shapes | shapes
        self.stats_dtypes = [self.stats_dtypes[0] | types]

    def setup_chain(self, rng: np.random.Generator, tune: int, draws: int) -> None:
        """Take the generator of the chain, and forget the table of the last one."""
        super().setup_chain(rng, tune, draws)
        for field in self.fields:
            field.tables = None

    def step(self, point: dict) -> tuple[dict, list[dict]]:
        """Draw the field once."""
        point, tally = dict(point), np.zeros(2)
        stats: dict = {}
        edges = differences = 0
        for field in self.fields:
            relation = field.draw(self.rng, point, tally)
            edges += int(np.count_nonzero(relation))
            differences += int(np.count_nonzero(relation == 2))
            reported = field.pool.edge, field.pool.difference
            stats |= dict(
                zip(field.statistics, (v.astype(np.float32) for v in reported), strict=True)
            )
        share = tally[0] / tally[1] if tally[1] else 1.0
        counts = {"n_edges": edges, "n_differences": differences}
        return point, [counts | {"acceptance": float(share)} | stats]

    @staticmethod
    def competence(var: "TensorVariable", has_grad: bool) -> Competence:
        """Ideal for the variables of a recognised Markov random field, and for all weights of one.

        If it declined weights, samplers that never reach zero would take them. So the constructor
        accepts all, and raises for those that it cannot draw.
        """
        if is_op(var, GroupedWeightsRV):
            return Competence.IDEAL
        model = pm.Model.get_context(error_if_none=False)
        if model is None or var not in model.free_RVs:
            mine = is_claimed(var, "grouped_pairwise_gibbs")
            return Competence.IDEAL if mine else Competence.INCOMPATIBLE
        if any(var is v for field in grouped_fields(model) for v in field.variables):
            return Competence.IDEAL
        return Competence.INCOMPATIBLE


def _field_of(model, weight) -> GroupedField:
    try:
        return grouped_field_of(model, weight)
    except NotRecognized as reason:
        raise ValueError(
            f"the weights {weight.name!r} cannot be drawn exactly: {reason}. Supported are weights of "
            "one observed GroupedPairwiseMRF on which nothing else depends."
        ) from None


class _Sampler:
    """Draws of one field: the arrays that the kernels work on."""

    def __init__(self, model, field, drawn, compile_kwargs):
        self.potentials, self.exact = field.potentials, field.likelihood == "exact"
        self.statistics = tuple(
            f"{field.weight.name}_{what}" for what in ("inclusion", "difference")
        )
        self.rows, self.mask = field.places.rows, field.mask
        self.missing = [] if self.mask is None else self._missing_draws()
        variables = {"weight": field.weight, "bias": field.own_bias, "missing": field.missing}
        self.names = {
            key: model.rvs_to_values[rv].name for key, rv in variables.items() if rv in drawn
        }
        missing = as_float(0.0) if field.missing is None else field.missing
        mean, deviation = as_float(0.0), as_float(np.inf)
        if "bias" in self.names and not is_op(field.own_bias, FlatRV):
            mean, deviation = parameters(field.own_bias)
        tensors = [*parameters(field.weight), mean, deviation, field.bias, missing]
        self.values = Expressions(model, tensors, compile_kwargs, user=field.weight.name)
        self.observed = Expressions(model, [observed_values(model, field.rows)], compile_kwargs)
        self.layout = self.tables = self.pool = self.works = None

    def _missing_draws(self):
        """Draws of the missing values of each group, with their places among all."""
        owner = np.full(len(self.mask.missing), -1)
        for g, rows in enumerate(self.rows):
            owner[rows] = g
        return [
            (
                np.flatnonzero(owner[self.mask.rows] == g),
                MissingDraws(self.potentials, Mask(self.mask.missing[rows])),
            )
            for g, rows in enumerate(self.rows)
        ]

    def draw(self, rng, point, tally) -> np.ndarray:
        """Draw the field once, in the point; return the relation of each pair."""
        from bayesstruct.fields.kernels.groups import groups_sweep

        *prior, bias, missing = self.values(point)
        if "bias" in self.names:
            bias = point[self.names["bias"]]
        weight = np.array(point[self.names["weight"]], float)
        shape = (len(self.rows), self.potentials.bias_size)
        bias = np.array(np.broadcast_to(bias, shape), float)
        chains = self._load(rng, point, weight, bias, missing)
        arrays = self.layout, self.tables, chains, self._prior(*prior), self.works, self.pool
        groups_sweep(rng, *arrays, tally)
        weight = point[self.names["weight"]] = chains.weight
        if "bias" in self.names:
            point[self.names["bias"]] = chains.bias
        return (weight != 0).any(axis=0).astype(int) + (weight != weight[0]).any(axis=0)

    def _prior(self, edge, difference, slab, large, mean, deviation):
        from bayesstruct.fields.kernels.group_arrays import GroupPrior

        biases = (len(self.rows), self.potentials.bias_size)
        return GroupPrior(
            log_odds=log_relations(edge, difference),
            scale=np.stack([slab, large]).astype(float),
            tied="bias" in self.names,
            mean=np.broadcast_to(np.asarray(mean, float), biases) * 1.0,
            precision=np.broadcast_to(np.asarray(deviation, float), biases) ** -2.0,
        )

    def _load(self, rng, point, weight, bias, missing):
        """Bring tables and chains up to date with the point; draw the missing values."""
        from bayesstruct.fields.kernels.group_arrays import (
            Pool,
            join_chains,
            join_tables,
            join_works,
        )
        from bayesstruct.fields.kernels.preparation import make_chain, make_layout, make_table

        potentials, groups = self.potentials, range(len(self.rows))
        if self.layout is None:
            pairs = np.arange(potentials.weight_size)
            blocks = pairs, np.arange(len(pairs) + 1), pairs
            self.layout = make_layout(potentials, blocks, self.exact)
        if self.tables is None or self.mask is not None:
            codes = self._codes(rng, point, weight, bias, missing)
            self.parts = [make_table(potentials, codes[rows]) for rows in self.rows]
            self.tables = join_tables(self.parts)
        # Made anew for each draw: a run that is continued from a point goes on bit for bit.
        made = [
            make_chain(potentials, self.parts[g], self.exact, weight[g].copy(), bias[g].copy())
            for g in groups
        ]
        if self.pool is None:
            self.pool = Pool.of(self.layout, len(self.rows))
            self.works = join_works(self.layout, made[0][1], len(self.rows))
        return join_chains([chain for chain, _ in made])

    def _codes(self, rng, point, weight, bias, missing):
        """Return the table, completed by missing values that are drawn first."""
        [observed] = self.observed(point)
        codes = np.array(observed, np.int64)
        if self.mask is not None:
            states = np.array(missing, np.int64)
            for g, (own, draw) in enumerate(self.missing if "missing" in self.names else ()):
                if len(own):
                    states[own] = draw(rng, codes[self.rows[g]], states[own], weight[g], bias[g])
            if "missing" in self.names:
                point[self.names["missing"]] = states
            codes[self.mask.rows, self.mask.columns] = states
        check_codes(codes, self.potentials)
        return codes


def log_relations(edge: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """Return the logarithms of the probabilities of absent, equal and different, (pairs, 3)."""
    edge, difference = np.broadcast_arrays(np.asarray(edge, float), np.asarray(difference, float))
    with np.errstate(divide="ignore"):
        return np.stack(
            [
                np.log1p(-edge),
                np.log(edge) + np.log1p(-difference),
                np.log(edge) + np.log(difference),
            ],
            axis=-1,
        )
