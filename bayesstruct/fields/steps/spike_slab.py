"""Step of the weights of a Markov random field whose edges may be absent.

Recognised are weights with a prior of :mod:`bayesstruct.sparse.priors.spike_and_slab` or
:mod:`bayesstruct.sparse.priors.group_spike_and_slab` whose only child, beside deterministics, is one
observed :class:`bayesstruct.PairwiseMRF`, of which they are the weights. Its biases, if they are normal
or flat, and its missing cells are drawn by the same step.
"""

import math

from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc.distributions.continuous import FlatRV
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.tensor.random.basic import NormalRV

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    is_claimed,
    is_op,
    parameters,
)
from bayesstruct.core.tensors import as_float
from bayesstruct.fields.priors.random_fields import IncompletePairwiseRV, PairwiseRV
from bayesstruct.fields.steps.cells import CellDraws, PairwiseCells, check_states, recognize_cells
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlabRV
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlabRV
from bayesstruct.sparse.steps.spike_slab_regression import SpikeSlabRegression

__all__ = ["PairwiseSpikeSlab"]

_SLABS = {"normal": 0, "laplace": 1, "cauchy": 2}
SWAPS = 3  # see benchmarks/ising_gibbs.py
MAX_STATES = 2**22
_WEIGHTS = (SpikeAndSlabRV, GroupSpikeAndSlabRV)


@dataclass
class FieldPart:
    """The variables of a Markov random field that are drawn together."""

    rows: object
    weight: object
    bias: object  # the biases as they enter the field
    cells: object = None
    own_bias: object = None  # them, if they are drawn here

    @property
    def variables(self) -> list:
        """Random variables that the step draws."""
        return [v for v in (self.weight, self.own_bias, self.cells) if v is not None]


def recognize_field(model, weight) -> FieldPart:
    """Find the field that some weights belong to.

    Parameters
    ----------
    model : pymc.Model
    weight : TensorVariable

    Returns
    -------
    FieldPart

    Raises
    ------
    NotRecognized
        Says what stands in the way.
    """
    children = children_of(model, weight)
    rows = [child for child in children if is_op(child, PairwiseRV)]
    if len(rows) != 1:
        raise NotRecognized(f"{weight.name!r} does not belong to one PairwiseMRF")
    [rows] = rows
    if len(children) > 1:
        names = ", ".join(repr(c.name) for c in children if c is not rows)
        raise NotRecognized(f"{names} depends on {weight.name!r} too")
    if rows not in model.observed_RVs:
        raise NotRecognized(f"{rows.name!r} is not observed")
    bias, own, *cells = parameters(rows)
    if own is not weight:
        raise NotRecognized(f"{weight.name!r} is not the vector of weights of {rows.name!r} itself")
    if model.rvs_to_transforms.get(weight) is not None:
        raise NotRecognized(f"{weight.name!r} has a transform")
    if rows.owner.op.likelihood == "exact":
        total = math.prod(rows.owner.op.potentials.states)
        if total > MAX_STATES:
            raise NotRecognized(
                f"{float(total):.3g} joint states are too many to hold (at most {MAX_STATES:,}); use "
                'likelihood="pseudo"'
            )
    part = FieldPart(rows, weight, bias)
    if is_op(rows, IncompletePairwiseRV):
        [part.cells] = cells
        recognize_cells(model, part.cells)
    if _is_own(model, bias, rows):
        part.own_bias = bias
    return part


def _is_own(model, bias, rows) -> bool:
    """Whether the biases are a normal or flat variable that only the field depends on."""
    known = bias in model.free_RVs and is_op(bias, (NormalRV, FlatRV))
    return known and children_of(model, bias) == [rows]


def fields_of(model) -> list[FieldPart]:
    """Every recognised field of a model."""
    parts = []
    for rv in model.free_RVs:
        if is_op(rv, _WEIGHTS):
            try:
                parts.append(recognize_field(model, rv))
            except NotRecognized:
                continue
    return parts


@dataclass_state
class PairwiseSpikeSlabState(StepMethodState):
    """State of a step that remembers nothing but its generator."""


@register_step(before=(SpikeSlabRegression, PairwiseCells))
class PairwiseSpikeSlab(BlockedStep):
    """Metropolis-within-Gibbs draws of a Markov random field whose edges may be absent.

    Assigned by ``pm.sample`` to the weights of a :class:`bayesstruct.PairwiseMRF` with a
    :class:`bayesstruct.SpikeAndSlab` or :class:`bayesstruct.GroupSpikeAndSlab` prior, to its biases if
    they are normal or flat, and to its missing cells. One call draws the missing cells, then every
    edge, indicator and weights together, then tries some exchanges of edges, then draws the biases;
    see :mod:`bayesstruct.fields.kernels.spike_slab`. Nothing is adapted, so that no draws need be
    dropped for tuning but those before the chain has converged.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of one field.
    swaps : int, default 3
        Exchanges of an edge for an absent one that are tried in each call.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If the weights are not those of a field that can be drawn exactly.

    Notes
    -----
    Statistics of each draw: ``n_edges``, the number of edges; ``acceptance``, the mean probability
    of acceptance of the proposals; and ``<name of the weights>_inclusion``, float32, one number for each
    edge. The expectation of the last is the posterior probability of the edge, as that of the 0/1
    indicator is, with a variance far smaller: it is nearly the probability of the edge given everything
    else at the time at which the edge is drawn. Single values may be outside of [0, 1].
    :func:`bayesstruct.edge_table` and the like average it.
    """

    name = "pairwise_spike_slab"
    default_blocked = True
    stats_dtypes_shapes = {"n_edges": (int, []), "acceptance": (float, [])}
    _state_class = PairwiseSpikeSlabState

    def __init__(
        self,
        vars,
        *,
        swaps=SWAPS,
        model=None,
        initial_point=None,
        compile_kwargs=None,
        rng=None,
        blocked=True,
    ):
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        drawn = [model.values_to_rvs[v] for v in self.vars]
        parts = [_one_field(model, rv) for rv in drawn if is_op(rv, _WEIGHTS)]
        left = {v.name for v in drawn} - {v.name for part in parts for v in part.variables}
        if not parts or left:
            raise ValueError(
                f"{sorted(left)} do not belong to a field with absent edges; if the weights were set by "
                "pm.do or observed, call pm.sample() within `with model:`"
            )
        self.rng = get_random_generator(rng)
        self.fields = [
            _Sampler(model, part, [v for v in part.variables if v in drawn], swaps, compile_kwargs)
            for part in parts
        ]
        # PyMC's traces go by the type alone, others by the shape.
        sizes = {field.statistic: len(field.blocks[0]) for field in self.fields}
        shapes = {name: (np.float32, [size]) for name, size in sizes.items()}
        types = {name: np.dtype((np.float32, (size,))) for name, size in sizes.items()}
        self.stats_dtypes_shapes = type(self).stats_dtypes_shapes | shapes
        self.stats_dtypes = [self.stats_dtypes[0] | types]

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain, and forget the table of the last one."""
        super().setup_chain(rng, tune, draws)
        for field in self.fields:
            field.table = None

    def step(self, point):
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
    def competence(var, has_grad):
        """Ideal for the variables of a recognised field, and for all weights of a field.

        Were it to decline weights, samplers that never reach zero would take them; so the constructor
        takes all, and raises for those that it cannot draw.
        """
        if is_op(var, GroupSpikeAndSlabRV):
            return Competence.IDEAL
        model = pm.Model.get_context(error_if_none=False)
        if model is None or var not in model.free_RVs:
            mine = is_claimed(var, "pairwise_spike_slab")
            return Competence.IDEAL if mine else Competence.INCOMPATIBLE
        if is_op(var, SpikeAndSlabRV):
            fields = [child for child in children_of(model, var) if is_op(child, PairwiseRV)]
            return Competence.IDEAL if fields else Competence.INCOMPATIBLE
        if any(var is v for part in fields_of(model) for v in part.variables):
            return Competence.IDEAL
        return Competence.INCOMPATIBLE


def _one_field(model, weight):
    try:
        return recognize_field(model, weight)
    except NotRecognized as reason:
        raise ValueError(
            f"the weights {weight.name!r} cannot be drawn exactly: {reason}. Supported are weights of "
            "one observed PairwiseMRF on which nothing else depends."
        ) from None


class _Sampler:
    """Draws of one field: the arrays that the kernels work on."""

    def __init__(self, model, part, drawn, swaps, compile_kwargs):
        op = part.rows.owner.op
        self.potentials, self.exact = op.potentials, op.likelihood == "exact"
        self.statistic = f"{part.weight.name}_inclusion"
        self.swaps = int(swaps)
        self.mask = op.mask if part.cells is not None else None
        self.cells = CellDraws(op) if part.cells is not None else None
        self.names = {
            key: model.rvs_to_values[rv].name
            for key, rv in (("weight", part.weight), ("bias", part.own_bias), ("cells", part.cells))
            if rv in drawn
        }
        grouped = is_op(part.weight, GroupSpikeAndSlabRV)
        weight_op = part.weight.owner.op
        self.slab = _SLABS[weight_op.slab]
        self.labels = weight_op.groups.labels if grouped else np.arange(self.potentials.weight_size)
        self.blocks = weight_blocks(self.potentials, self.labels)
        cells = as_float(0.0) if part.cells is None else part.cells
        own = parameters(part.own_bias) if "bias" in self.names else ()
        flat = "bias" in self.names and is_op(part.own_bias, FlatRV)
        mean, deviation = (as_float(0.0), as_float(np.inf)) if flat or not own else own
        tensors = [*parameters(part.weight), mean, deviation, part.bias, cells]
        self.values = Expressions(model, tensors, compile_kwargs)
        self.observed = Expressions(model, [model.rvs_to_values[part.rows]], compile_kwargs)
        self.layout = self.table = self.chain = self.work = None

    def draw(self, rng, point, tally) -> int:
        """Draw the field once, in the point; return the number of edges."""
        from bayesstruct.fields.kernels.arrays import Prior
        from bayesstruct.fields.kernels.spike_slab import sweep

        inclusion, scale, mean, deviation, bias, cells = self.values(point)
        if "bias" in self.names:
            bias = point[self.names["bias"]]
        weight = np.array(point[self.names["weight"]], float)
        bias = np.array(np.broadcast_to(bias, (self.potentials.bias_size,)), float)
        self._load(rng, point, weight, bias, cells)
        prior = Prior(
            self.slab,
            _log_odds(inclusion, len(self.blocks[1]) - 1),
            np.broadcast_to(np.asarray(scale, float), weight.shape) * 1.0,
            "bias" in self.names,
            np.broadcast_to(np.asarray(mean, float), bias.shape) * 1.0,
            np.broadcast_to(np.asarray(deviation, float), bias.shape) ** -2.0,
        )
        blocks = np.arange(len(self.blocks[1]) - 1)
        sweep(
            rng, self.layout, self.table, self.chain, prior, self.work, blocks,
            np.arange(self.potentials.p), self.swaps, tally,
        )  # fmt: skip
        point[self.names["weight"]] = self.chain.weight.copy()
        if "bias" in self.names:
            point[self.names["bias"]] = self.chain.bias.copy()
        on = np.bincount(self.labels, self.chain.weight != 0)
        return int(np.count_nonzero(on))

    def _load(self, rng, point, weight, bias, cells):
        """Bring table and chain up to date with the point; draw the missing cells."""
        from bayesstruct.fields.kernels.arrays import Work

        if self.layout is None:
            self.layout = _layout(self.potentials, self.blocks, self.exact)
        if self.table is None or self.mask is not None:
            [observed] = self.observed(point)
            codes = np.array(observed, np.int64)
            if self.mask is not None:
                if "cells" in self.names:
                    cells = self.cells(rng, codes, cells, weight, bias)
                    point[self.names["cells"]] = cells
                codes[self.mask.rows, self.mask.columns] = np.asarray(cells, np.int64)
            check_states(codes, self.potentials)
            self.codes, self.table = codes, _table(self.potentials, codes)
        # Made anew for each draw: a run that is taken up from a point goes on bit for bit.
        self.chain, joint = _chain(self.potentials, self.table, self.exact, weight, bias)
        if self.work is None:
            self.work = Work.of(self.layout, joint)


def _log_odds(inclusion, count):
    q = np.broadcast_to(np.asarray(inclusion, float), (count,))
    with np.errstate(divide="ignore"):
        return np.log(q) - np.log1p(-q)


def weight_blocks(potentials, labels):
    """Edge of each block, where its weights start, and the weights."""
    order = np.argsort(labels, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(labels))])
    edges = potentials.edge_of_weight[order]
    first, last = edges[start[:-1]], edges[start[1:] - 1]
    if (first != last).any():
        raise ValueError("a group of weights belongs to several edges of the random field")
    return first, start, order


def _layout(potentials, blocks, exact):
    from bayesstruct.fields.kernels.arrays import Layout

    k = max(potentials.states)
    effect, recover = np.zeros((2, potentials.bias_size, k))
    index, coefficient = potentials.unary_map
    for i in range(potentials.p):
        cells = slice(potentials.unary_start[i], potentials.unary_start[i + 1])
        first, last = potentials.bias_start[i], potentials.bias_start[i + 1]
        states = potentials.states[i]
        for column, c in zip(index[cells].T, coefficient[cells].T, strict=True):
            effect[np.where(c != 0, column, first), np.arange(states)] += c
        # A change of the table is one of the biases, up to a constant.
        design = np.vstack([effect[first:last, :states], np.ones(states)])
        recover[first:last, :states] = np.linalg.pinv(design.T)[:-1]
    weight, pair_coefficient = potentials.pair_map
    source, target = potentials.ends
    edge, start, order = blocks
    return Layout(
        exact, np.array(potentials.states), potentials.unary_start,
        np.asarray(potentials.bias_start, np.int64), effect, recover, potentials.pair_start,
        weight, pair_coefficient, source, target, edge, start.astype(np.int64), order,
    )  # fmt: skip


def _table(potentials, codes):
    """Distinct rows in groups of equal multiplicity, and counts."""
    from bayesstruct.fields.kernels.arrays import Table
    from bayesstruct.fields.kernels.spike_slab_rows import count_pairs

    rows, counts = np.unique(codes, axis=0, return_counts=True)
    order = np.argsort(counts, kind="stable")
    rows, counts = rows[order], counts[order]
    sizes, starts = np.unique(counts, return_index=True)
    states = np.zeros((potentials.p + 1, len(rows)), np.int16)
    states[:-1] = rows.T
    unary = np.zeros(int(potentials.unary_start[-1]))
    pair = np.zeros(int(potentials.pair_start[-1]))
    _count(potentials, rows, counts, unary, pair, count_pairs)
    return Table(
        states, np.concatenate([starts, [len(rows)]]).astype(np.int64), sizes.astype(float),
        unary, pair, float(len(codes)),
    )  # fmt: skip


def _count(potentials, rows, counts, unary, pair, count_pairs):
    if potentials.edges is None:
        table = np.ascontiguousarray(rows.T.astype(np.int16))
        count_pairs(
            table, counts.astype(float), np.array(potentials.states), potentials.unary_start,
            potentials.pair_start, unary, pair,
        )  # fmt: skip
        return
    for i in range(potentials.p):
        np.add.at(unary, potentials.unary_start[i] + rows[:, i], counts)
    for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
        cell = potentials.pair_start[e] + rows[:, i] * potentials.states[j] + rows[:, j]
        np.add.at(pair, cell, counts)


def _chain(potentials, table, exact, weight, bias):
    """Tables of the model at these parameters, and the number of joint states."""
    from bayesstruct.fields.kernels.arrays import Chain

    make = _joint if exact else _conditionals
    logs, probability, lowest, energy, digits = make(potentials, table, weight, bias)
    chain = Chain(weight, bias, logs, probability, lowest, energy, digits)
    return chain, len(energy)


def _joint(potentials, table, weight, bias):
    states = np.array(potentials.states)
    size = int(states.prod())
    digits = np.array(np.unravel_index(np.arange(size), tuple(states)), np.int16)
    unary, pair = potentials.unary(bias), potentials.pair(weight)
    energy = np.zeros(size)
    for i in range(potentials.p):
        energy += unary[potentials.unary_start[i] + digits[i].astype(int)]
    for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
        cell = digits[i].astype(int) * states[j] + digits[j]
        energy += pair[potentials.pair_start[e] + cell]
    none = np.zeros((0, 0))
    return none, none, np.zeros(0), energy, digits


def _conditionals(potentials, table, weight, bias):
    from bayesstruct.fields.kernels.spike_slab_rows import condition

    start = potentials.unary_start
    logs = np.empty((int(start[-1]), table.states.shape[1]))
    probability, lowest = np.empty_like(logs), np.empty(potentials.p)
    condition(
        table.states, start, potentials.unary(bias), potentials.pair(weight),
        potentials.pair_start, *potentials.ends, logs, probability, lowest,
    )  # fmt: skip
    return logs, probability, lowest, np.zeros(0), np.zeros((potentials.p, 0), np.int16)
