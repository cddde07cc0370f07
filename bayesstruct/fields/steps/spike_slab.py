"""Step method for the weights of a Markov random field whose edges may be absent.

It accepts weights with a prior of :mod:`bayesstruct.sparse.priors.spike_and_slab` or
:mod:`bayesstruct.sparse.priors.group_spike_and_slab` whose only child, beside deterministics, is one
observed :class:`bayesstruct.PairwiseMRF`, of which they are the weights. The biases, if they are normal
or flat, and the missing values are drawn by the same step.
"""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from pymc.distributions.continuous import FlatRV
from pymc.step_methods.compound import Competence

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.missing import observed_values
from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    is_claimed,
    is_op,
    parameters,
)
from bayesstruct.core.tensors import as_float
from bayesstruct.fields.kernels.potentials import check_codes
from bayesstruct.fields.priors.random_fields import PairwiseRV
from bayesstruct.fields.recognition.fields import (
    SPIKE_AND_SLAB,
    Field,
    block_labels,
    field_of_weights,
    fields_with_absent_edges,
    sampled_blocks,
)
from bayesstruct.fields.steps.missing import MissingDraws, PairwiseCells
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlabRV
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlabRV
from bayesstruct.sparse.steps.spike_slab_regression import SpikeSlabRegression

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["PairwiseSpikeSlab"]

_SLABS = {"normal": 0, "laplace": 1, "cauchy": 2}
SWAPS = 3  # see benchmarks/ising_gibbs.py


@register_step(before=(SpikeSlabRegression, PairwiseCells))
class PairwiseSpikeSlab(GibbsStep):
    """Metropolis-within-Gibbs draws of a Markov random field whose edges may be absent.

    Assigned by ``pm.sample`` to the weights of a :class:`bayesstruct.PairwiseMRF` with a
    :class:`bayesstruct.SpikeAndSlab` or :class:`bayesstruct.GroupSpikeAndSlab` prior, to its biases if
    they are normal or flat, and to its missing values. One call draws the missing values, then every
    edge, indicator and weights together, then tries some exchanges of edges, then draws the biases;
    see :mod:`bayesstruct.fields.kernels.spike_slab`. Nothing is adapted: of the tuning draws only those
    before convergence are lost.

    Parameters
    ----------
    swaps : int, default 3
        Number of proposed exchanges, of an edge for an absent one, in each call.

    Raises
    ------
    ValueError
        If the weights are not those of a Markov random field that can be drawn exactly.

    Notes
    -----
    Statistics of each draw: ``n_edges``, the number of edges; ``acceptance``, the mean probability
    of acceptance of the proposals; and ``<name of the weights>_inclusion``, float32, one number for each
    edge. The expectation of the last is the posterior probability of the edge, as that of the 0/1
    indicator is, with a variance far smaller: it is nearly the probability of the edge given everything
    else at the time at which the edge is drawn. Single values may be outside of [0, 1].
    :func:`bayesstruct.edge_table` and other readers average it.
    """

    name = "pairwise_spike_slab"
    stats_dtypes_shapes: dict = {"n_edges": (int, []), "acceptance": (float, [])}

    def prepare(self, model, drawn, *, swaps=SWAPS):
        """Find the Markov random field of the weights."""
        fields = [_field_of(model, rv) for rv in drawn if is_op(rv, SPIKE_AND_SLAB)]
        left = {v.name for v in drawn} - {v.name for field in fields for v in field.variables}
        if not fields or left:
            raise ValueError(
                f"{sorted(left)} do not belong to a Markov random field with absent edges; if the weights were set by "
                "pm.do or observed, call pm.sample() within `with model:`"
            )
        self.fields = [
            _Sampler(
                model,
                field,
                [v for v in field.variables if v in drawn],
                swaps,
                self.compile_kwargs,
            )
            for field in fields
        ]
        # PyMC's traces go by the type alone, others by the shape.
        sizes = {field.statistic: len(field.blocks[0]) for field in self.fields}
        shapes = {name: (np.float32, [size]) for name, size in sizes.items()}
        types = {name: np.dtype((np.float32, (size,))) for name, size in sizes.items()}
        self.stats_dtypes_shapes: dict = type(self).stats_dtypes_shapes | shapes
        self.stats_dtypes = [self.stats_dtypes[0] | types]

    def setup_chain(self, rng: np.random.Generator, tune: int, draws: int) -> None:
        """Take the generator of the chain, and forget the table of the last one."""
        super().setup_chain(rng, tune, draws)
        for field in self.fields:
            field.table = None

    def step(self, point: dict) -> tuple[dict, list[dict]]:
        """Draw the field once."""
        point, edges, tally = dict(point), 0, np.zeros(2)
        for field in self.fields:
            edges += field.draw(self.rng, point, tally)
        share = tally[0] / tally[1] if tally[1] else 1.0
        stats = {"n_edges": int(edges), "acceptance": float(share)}
        for field in self.fields:
            stats[field.statistic] = field.work.inclusion.astype(np.float32)
        return point, [stats]

    @staticmethod
    def competence(var: "TensorVariable", has_grad: bool) -> Competence:
        """Ideal for the variables of a recognised Markov random field, and for all weights of one.

        If it declined weights, samplers that never reach zero would take them. So the constructor
        accepts all, and raises for those that it cannot draw.
        """
        if is_op(var, GroupSpikeAndSlabRV):
            mine = is_claimed(var, "pairwise_spike_slab")
            return Competence.IDEAL if mine else Competence.INCOMPATIBLE
        model = pm.Model.get_context(error_if_none=False)
        if model is None or var not in model.free_RVs:
            mine = is_claimed(var, "pairwise_spike_slab")
            return Competence.IDEAL if mine else Competence.INCOMPATIBLE
        if is_op(var, SpikeAndSlabRV):
            fields = [child for child in children_of(model, var) if is_op(child, PairwiseRV)]
            return Competence.IDEAL if fields else Competence.INCOMPATIBLE
        if any(var is v for field in fields_with_absent_edges(model) for v in field.variables):
            return Competence.IDEAL
        return Competence.INCOMPATIBLE


def _field_of(model, weight) -> Field:
    try:
        return field_of_weights(model, weight)
    except NotRecognized as reason:
        raise ValueError(
            f"the weights {weight.name!r} cannot be drawn exactly: {reason}. Supported are weights of "
            "one observed PairwiseMRF on which nothing else depends."
        ) from None


class _Sampler:
    """Draws of one field: the arrays that the kernels work on."""

    def __init__(self, model, field, drawn, swaps, compile_kwargs):
        self.potentials, self.exact = field.potentials, field.likelihood == "exact"
        self.statistic = f"{field.weight.name}_inclusion"
        self.swaps = int(swaps)
        self.mask = None if field.missing is None else field.mask
        self.missing = None if self.mask is None else MissingDraws(self.potentials, self.mask)
        variables = {"weight": field.weight, "bias": field.own_bias, "missing": field.missing}
        self.names = {
            key: model.rvs_to_values[rv].name for key, rv in variables.items() if rv in drawn
        }
        self.slab = _SLABS[field.weight.owner.op.slab]
        self.labels, self.blocks = block_labels(field), sampled_blocks(field)
        missing = as_float(0.0) if field.missing is None else field.missing
        mean, deviation = as_float(0.0), as_float(np.inf)
        if "bias" in self.names and not is_op(field.own_bias, FlatRV):
            mean, deviation = parameters(field.own_bias)
        tensors = [*parameters(field.weight), mean, deviation, field.bias, missing]
        self.values = Expressions(model, tensors, compile_kwargs, user=field.weight.name)
        self.observed = Expressions(model, [observed_values(model, field.rows)], compile_kwargs)
        self.layout = self.table = self.chain = self.work = None

    def draw(self, rng, point, tally) -> int:
        """Draw the field once, in the point; return the number of edges."""
        from bayesstruct.fields.kernels.spike_slab import sweep

        inclusion, scale, mean, deviation, bias, missing = self.values(point)
        if "bias" in self.names:
            bias = point[self.names["bias"]]
        weight = np.array(point[self.names["weight"]], float)
        bias = np.array(np.broadcast_to(bias, (self.potentials.bias_size,)), float)
        self._load(rng, point, weight, bias, missing)
        sweep(
            rng,
            self.layout,
            self.table,
            self.chain,
            self._prior(inclusion, scale, mean, deviation),
            self.work,
            np.arange(len(self.blocks[1]) - 1),
            np.arange(self.potentials.p),
            self.swaps,
            tally,
        )
        point[self.names["weight"]] = self.chain.weight.copy()
        if "bias" in self.names:
            point[self.names["bias"]] = self.chain.bias.copy()
        on = np.bincount(self.labels, self.chain.weight != 0)
        return int(np.count_nonzero(on))

    def _prior(self, inclusion, scale, mean, deviation):
        from bayesstruct.fields.kernels.arrays import Prior

        weights, biases = (self.potentials.weight_size,), (self.potentials.bias_size,)
        return Prior(
            slab=self.slab,
            log_odds=_log_odds(inclusion, len(self.blocks[1]) - 1),
            scale=np.broadcast_to(np.asarray(scale, float), weights) * 1.0,
            tied="bias" in self.names,
            mean=np.broadcast_to(np.asarray(mean, float), biases) * 1.0,
            precision=np.broadcast_to(np.asarray(deviation, float), biases) ** -2.0,
        )

    def _load(self, rng, point, weight, bias, missing):
        """Bring table and chain up to date with the point; draw the missing values."""
        from bayesstruct.fields.kernels.arrays import Work
        from bayesstruct.fields.kernels.preparation import make_chain, make_layout, make_table

        if self.layout is None:
            self.layout = make_layout(self.potentials, self.blocks, self.exact)
        if self.table is None or self.mask is not None:
            [observed] = self.observed(point)
            codes = np.array(observed, np.int64)
            if self.mask is not None:
                if "missing" in self.names:
                    missing = self.missing(rng, codes, missing, weight, bias)
                    point[self.names["missing"]] = missing
                codes[self.mask.rows, self.mask.columns] = np.asarray(missing, np.int64)
            check_codes(codes, self.potentials)
            self.table = make_table(self.potentials, codes)
        # Made anew for each draw: a run that is continued from a point goes on bit for bit.
        self.chain, joint = make_chain(self.potentials, self.table, self.exact, weight, bias)
        if self.work is None:
            self.work = Work.of(self.layout, joint)


def _log_odds(inclusion, count):
    q = np.broadcast_to(np.asarray(inclusion, float), (count,))
    with np.errstate(divide="ignore"):
        return np.log(q) - np.log1p(-q)
