"""Parts of models with a Markov random field: prior of the edges, biases, observed states."""

import math

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor.tensor.random.op import RandomVariable

from bayesstruct.core.missing import MissingMask, show_missing
from bayesstruct.core.recognition import claim, is_op, parameters, unpadded_parameters
from bayesstruct.core.recorded import Recorded
from bayesstruct.core.tables.codings import record_levels, refuse_gaps
from bayesstruct.core.tables.missing_states import MissingStates
from bayesstruct.core.tables.rows import remember_rows
from bayesstruct.core.tensors import is_beta, random_ancestors
from bayesstruct.data.arguments import is_number, number
from bayesstruct.data.checks import SEPARATOR
from bayesstruct.data.coding import coding_of
from bayesstruct.data.edge_priors import StochasticBlock, edge_probability_matrix, fixed_edges
from bayesstruct.data.errors import TableError
from bayesstruct.data.given_graphs import graph_pairs
from bayesstruct.data.names import nearest
from bayesstruct.data.states import StateTable
from bayesstruct.fields.kernels.exact_sums import ExactSums
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.priors.interactions import interaction_strengths
from bayesstruct.fields.priors.random_fields import IncompletePairwiseMRF, PairwiseMRF, PairwiseRV
from bayesstruct.fields.priors.records import FieldPotentials, FieldSlab
from bayesstruct.graphs.own_models import EdgeParts, edge_parts, prior_mean, refuse_negligible
from bayesstruct.graphs.priors.blocks import block_edge_probability
from bayesstruct.graphs.records import CompositeLikelihood, EdgeEnds, EdgePrior
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlabRV
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlabRV

if TYPE_CHECKING:
    from collections.abc import Iterable

    import networkx

    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorVariable

__all__ = [
    "add_biases",
    "add_missing",
    "beta_probability",
    "check_likelihood",
    "edge_inclusion",
    "field_coords",
    "field_potentials",
    "observe_states",
    "record_field",
    "record_slab",
]

_ROWS = ("observation", "node")
_ATOMS = (SpikeAndSlabRV, GroupSpikeAndSlabRV)
LIKELIHOODS = ("pseudo", "exact")
#: Largest number of joint states that ``likelihood="exact"`` sums over for each value of the density.
MAX_STATES = 2**22


def field_potentials(
    table: StateTable,
    kind: str,
    reference: int = 0,
    graph: "networkx.Graph | Iterable[tuple[str, str]] | None" = None,
) -> Potentials:
    """Potentials of all pairs of columns of a table, or of those that a graph joins.

    Parameters
    ----------
    table : StateTable
    kind : str
        Family, see `Potentials`.
    reference : int
        State from which Blume-Capel biases measure distance.
    graph : networkx.Graph or iterable of pairs of column names, optional
    """
    edges = None if graph is None else graph_pairs(table.names, graph)
    return Potentials(kind, table.states, reference, edges)


def field_coords(table: StateTable, potentials: Potentials) -> dict:
    """Coordinates of a model, whose dimension ``pair`` is over the edges of the potentials."""
    if potentials.edges is None:
        return table.coords
    names = table.names
    pairs = [f"{names[i]}{SEPARATOR}{names[j]}" for i, j in potentials.edges]
    return table.coords | {"pair": pairs}


def check_likelihood(likelihood: str, potentials: Potentials, *, absent: bool = False) -> None:
    """Raise if the likelihood is unknown, or exact and would take too long.

    Parameters
    ----------
    likelihood : str
    potentials : Potentials
    absent : bool
        Whether edges may be absent: their sampler keeps a table of all joint states.
    """
    if likelihood not in LIKELIHOODS:
        raise ValueError(nearest("likelihood", likelihood, LIKELIHOODS))
    if likelihood == "pseudo":
        return
    total = math.prod(potentials.states)
    if absent and total > MAX_STATES:
        raise ValueError(
            f"the {potentials.p} columns have {float(total):.3g} joint states, and spike and slab with "
            f"the exact likelihood sums over all of them (at most {MAX_STATES:,}); use "
            'likelihood="pseudo", fewer columns, or, if a sparse graph of possible edges is known, a '
            "prior that only shrinks together with `graph`"
        )
    ExactSums.of(potentials, MAX_STATES)  # raises if it takes too long


def add_biases(
    labels: list[str] | None, dims: str, scale: float, *, group: str | None = None
) -> "TensorVariable":
    """Add the biases: normal, or flat where `scale` is infinite.

    Parameters
    ----------
    labels : list of str or None
        Coordinates of the new dimension `dims`; None if the model has it.
    dims : str
    scale : float
    group : str, optional
        Dimension over groups of rows, each of which has its own biases.
    """
    if not (is_number(scale) and scale > 0):
        raise ValueError(f"`bias_scale` must be a positive number or infinite, it is {scale!r:.60}")
    if labels is not None:
        pm.modelcontext(None).add_coord(dims, labels)
    own = dims if group is None else (group, dims)
    if math.isinf(scale):
        return pm.Flat("bias", dims=own)
    return pm.Normal("bias", 0.0, scale, dims=own)


def edge_inclusion(
    table: StateTable,
    potentials: Potentials,
    probability: "float | ArrayLike | TensorVariable | StochasticBlock",
    required: "Iterable[tuple[str, str]]",
    forbidden: "Iterable[tuple[str, str]]",
) -> "tuple[np.ndarray | TensorVariable, np.ndarray]":
    """Prior probability of each edge; adds the variables that it depends on to the model.

    Parameters
    ----------
    table : StateTable
    potentials : Potentials
        Of these edges.
    probability : float, (p, p) array_like, unregistered beta distribution or StochasticBlock
    required, forbidden : iterable of pairs of column names

    Returns
    -------
    inclusion : numpy.ndarray or TensorVariable
        (edges,), probabilities of the indicators.
    implied : numpy.ndarray
        (edges,), its prior mean.
    """
    source, target = potentials.ends
    required, forbidden = list(required), list(forbidden)
    known = fixed_edges(table.names, required, forbidden)
    _check_required(table, potentials, known)
    if is_beta(probability):
        share, mean = beta_probability("edge_probability", probability)
        return _where_free(known, share, source, target), known.fill(mean)[source, target]
    if isinstance(probability, StochasticBlock):
        share = block_edge_probability(probability, *potentials.ends)
        return _where_free(known, share, source, target), known.fill(probability.mean)[
            source, target
        ]
    if hasattr(probability, "owner"):
        raise ValueError(
            "`edge_probability` can be a number, a matrix of numbers, a beta distribution such as "
            "pm.Beta.dist(1, 1), or bs.StochasticBlock(); in a model of your own it is any expression: "
            'bs.SpikeAndSlab("weight", inclusion)'
        )
    nominal = edge_probability_matrix(table.names, probability, required, forbidden)
    return nominal[source, target], nominal[source, target]


def _check_required(table, potentials, known):
    """Raise if the graph does not contain a required edge."""
    if potentials.edges is None:
        return
    required = {(i, j) for i, j in np.argwhere(known.required).tolist() if i < j}
    if left_out := sorted(required - set(potentials.edges)):
        i, j = left_out[0]
        raise TableError(
            f"edge {table.names[i]}{SEPARATOR}{table.names[j]} is required and not in `graph`; add it "
            "there"
        )


def _where_free(known, probability, source, target):
    """Probability of the free edges, and 0 or 1 of the others."""
    if known.free[source, target].all():
        return probability + pt.zeros(len(source))
    # A comparison and not the mask: the fingerprints of checkpoints contain it.
    filled = known.fill(0.5)[source, target]
    return pt.switch(pt.eq(filled, 0.5), probability, filled)


def beta_probability(name: str, distribution: Any) -> "tuple[TensorVariable, float]":
    """Add the probability that all pairs share; returns it and its prior mean.

    Parameters
    ----------
    name : str
        Of the new variable.
    distribution : TensorVariable
        Unregistered beta distribution.
    """
    shapes = distribution.owner.op.dist_params(distribution.owner)
    if distribution.type.ndim or any(
        length != 1 for shape in shapes for length in shape.type.shape
    ):
        raise ValueError(
            f"`{name}` is one beta distribution for all edges: give pm.Beta.dist(1, 1), without a shape"
        )
    alpha, beta = (float(np.asarray(v.eval(mode="FAST_COMPILE")).item()) for v in shapes)
    return pm.Beta(name, alpha, beta), alpha / (alpha + beta)


def observe_states(
    table: StateTable,
    bias: "TensorVariable",
    weight: "TensorVariable",
    *,
    potentials: Potentials,
    likelihood: str,
) -> None:
    """Add the table as ``x``, and its missing values as ``x_missing``.

    Parameters
    ----------
    table : StateTable
    bias, weight : TensorVariable
    potentials : Potentials
    likelihood : {"pseudo", "exact"}
    """
    options = {"potentials": potentials, "likelihood": likelihood, "dims": _ROWS}
    if table.missing.any():
        values = add_missing(table)
        observed = np.maximum(table.codes, 0)
        options |= {"missing": table.missing, "observed": observed, "floats": True}
        x = IncompletePairwiseMRF("x", bias, weight, values, **options)
        show_missing(x, table.missing, "int64")
    else:
        PairwiseMRF("x", bias, weight, observed=table.codes, **options)
    record_levels(table)
    others = partial(
        _observe_others, weight=weight.name, potentials=potentials, likelihood=likelihood
    )
    remember_rows(coding_of(table), others)
    if likelihood == "pseudo":
        CompositeLikelihood(1).record()
    if owner := getattr(weight.tag, "drawn_by", None):
        claim(bias, owner)  # drawn with the weights, also if pm.sample is outside of the context


def add_missing(table: StateTable) -> "TensorVariable":
    """Add the missing values of a table as ``x_missing``, and record which they are."""
    places = [f"{table.names[j]}[{i}]" for i, j in np.argwhere(table.missing)]
    pm.modelcontext(None).add_coord("missing", places)
    MissingMask(table.missing.astype("int64")).record()
    states = np.asarray(table.states)[np.nonzero(table.missing)[1]]
    return MissingStates("x_missing", states, dims="missing")


def _observe_others(table, *, weight, potentials, likelihood):
    """Add the rows of another table to a model without rows."""
    refuse_gaps(table)
    model = pm.modelcontext(None)
    options = {"potentials": potentials, "likelihood": likelihood, "dims": _ROWS}
    PairwiseMRF("x", model["bias"], model[weight], observed=table.codes, **options)


def record_field(potentials: Potentials, implied: "ArrayLike", negligible: float) -> None:
    """Record the constants that readers of a posterior need.

    Parameters
    ----------
    potentials : Potentials
    implied : (edges,) array_like
        Prior probability of each edge.
    negligible : float
        Strength up to which there is no edge; 0 if an edge is any strength but zero.
    """
    EdgeEnds.in_model(*potentials.ends).record()
    for constants in _constants(potentials, implied, negligible):
        constants.record()


def record_slab(scale: "float | np.ndarray", slab: str, potentials: Potentials) -> None:
    """Record the slab of models with one weight for each pair, if it is normal."""
    if slab == "normal":
        FieldSlab(np.broadcast_to(scale, len(potentials.ends[0])).astype(float)).record()


def _constants(potentials, implied, negligible) -> tuple[Recorded, ...]:
    """Prior of the edges, and the potentials."""
    size = len(potentials.ends[0])
    prior = np.broadcast_to(implied, size).copy()
    cut = float(negligible) if negligible > 0 else None
    return EdgePrior(prior, cut, count=size), FieldPotentials.of(potentials)


@edge_parts.register(PairwiseRV)
def _field_parts(op, rows, negligible) -> EdgeParts:
    potentials, weight = op.potentials, unpadded_parameters(rows)[1]
    atoms = any(is_op(v, _ATOMS) for v in random_ancestors(weight))
    if atoms:
        refuse_negligible(negligible)
    cut = 0.0 if atoms else _cut(potentials, negligible)
    single = potentials.weight_size == len(potentials.ends[0])
    strength = weight if single else interaction_strengths(weight, potentials)
    indicator = pt.gt(pt.abs(strength), cut).astype("int64")
    implied = prior_mean(_probability(weight, indicator, potentials, cut))

    def add(name, dims):
        return pm.Deterministic(name, indicator, dims=dims)

    source, target = potentials.ends
    return EdgeParts(
        size=potentials.p,
        source=source,
        target=target,
        weight=strength,
        add=add,
        constants=_constants(potentials, implied, cut),
    )


def _cut(potentials, negligible) -> float:
    """Strength up to which there is no edge: 0.2 in the coding 0, 1, which is .05 for -1, 1."""
    if negligible is None:
        return 0.05 if potentials.kind == "spin" else 0.2
    return number("negligible", negligible, above=0)


def _probability(weight, indicator, potentials, cut):
    """Tensor whose prior mean is the prior probability of each edge; of small variance where possible."""
    if is_op(weight, GroupSpikeAndSlabRV):
        labels = weight.owner.op.groups.labels
        if len(labels) == potentials.weight_size and _same_groups(labels, potentials):
            return parameters(weight)[0][
                pt.as_tensor_variable(labels[potentials.weight_start[:-1]])
            ]
    if potentials.weight_size != len(potentials.ends[0]):
        return indicator
    if is_op(weight, SpikeAndSlabRV):
        return parameters(weight)[0]
    if weight.owner is not None and isinstance(weight.owner.op, RandomVariable):
        try:
            inside = [pt.exp(pm.logcdf(weight, np.full(weight.type.shape, c))) for c in (cut, -cut)]
        except (NotImplementedError, TypeError):  # no distribution function, or unknown length
            return indicator
        return 1.0 - inside[0] + inside[1]
    return indicator


def _same_groups(labels, potentials) -> bool:
    """Whether the weights of each edge are a group, and those of different edges are not."""
    edge = potentials.edge_of_weight
    pairs = len(set(zip(labels.tolist(), edge.tolist(), strict=True)))
    return pairs == len(set(labels.tolist())) == len(set(edge.tolist()))
