"""What Markov random fields share: the prior of the edges, the biases, and the observed states."""

import math

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.data.edge_priors import StochasticBlock, edge_probability_matrix, fixed_edges
from bayesstruct.data.names import nearest
from bayesstruct.distributions import IncompletePairwiseMRF, MissingStates, PairwiseMRF
from bayesstruct.distributions.precision import is_beta
from bayesstruct.models.parts import record

__all__ = ["add_biases", "check_likelihood", "edge_inclusion", "observe_states", "record_field"]

_ROWS = ("observation", "node")
LIKELIHOODS = ("pseudo", "exact")
#: The most joint states that ``likelihood="exact"`` goes through for each value of the density.
MAX_STATES = 2**22


def check_likelihood(likelihood, states):
    """Refuse an unknown likelihood, and the exact one for more states than can be enumerated."""
    if likelihood not in LIKELIHOODS:
        raise ValueError(nearest("likelihood", likelihood, LIKELIHOODS))
    total = math.prod(states)
    if likelihood == "exact" and total > MAX_STATES:
        raise ValueError(
            f"the {len(states)} columns have {float(total):.3g} joint states, and the exact likelihood "
            f"goes through all of them (at most {MAX_STATES:,}); use "
            'likelihood="pseudo", or fewer columns'
        )


def add_biases(labels, dims, scale):
    """Add the biases: normal, or flat where `scale` is infinite.

    Parameters
    ----------
    labels : list of str or None
        Coordinates of a new dimension `dims`; None where the model has it.
    dims : str
    scale : float
    """
    if not scale > 0:
        raise ValueError(f"`bias_scale` must be positive, it is {scale}")
    if labels is not None:
        pm.modelcontext(None).add_coord(dims, labels)
    if math.isinf(scale):
        return pm.Flat("bias", dims=dims)
    return pm.Normal("bias", 0.0, scale, dims=dims)


def edge_inclusion(table, probability, required, forbidden):
    """Prior probability of each edge, with the variables that it depends on.

    Parameters
    ----------
    table : StateTable
    probability : float, (p, p) array_like, unregistered beta distribution or StochasticBlock
    required, forbidden : iterable of pairs of column names

    Returns
    -------
    inclusion : numpy.ndarray or TensorVariable
        (edges,), of which a model makes indicators.
    implied : numpy.ndarray
        (edges,), its prior mean.
    """
    source, target = table.edge_index
    if is_beta(probability):
        fixed = fixed_edges(table.names, required, forbidden)[source, target]
        share, mean = _beta(probability)
        return _where_free(fixed, share), np.where(fixed == 0.5, mean, fixed)
    if isinstance(probability, StochasticBlock):
        fixed = fixed_edges(table.names, required, forbidden)[source, target]
        return (
            _where_free(fixed, _blocks(table, probability)),
            np.where(fixed == 0.5, probability.mean, fixed),
        )
    if hasattr(probability, "owner"):
        raise ValueError(
            "`edge_probability` can be a number, a matrix of numbers, a beta distribution such as "
            "pm.Beta.dist(1, 1), or bs.StochasticBlock()"
        )
    nominal = edge_probability_matrix(table.names, probability, required, forbidden)
    return nominal[source, target], nominal[source, target]


def _where_free(fixed, probability):
    if (fixed == 0.5).all():
        return probability + pt.zeros(len(fixed))
    return pt.switch(pt.eq(fixed, 0.5), probability, fixed)


def _beta(distribution):
    """Probability that all edges share, and its prior mean."""
    shapes = distribution.owner.op.dist_params(distribution.owner)
    alpha, beta = (float(np.asarray(v.eval(mode="FAST_COMPILE")).item()) for v in shapes)
    return pm.Beta("edge_probability", alpha, beta), alpha / (alpha + beta)


def _blocks(table, spec):
    """Probability of each edge by the hidden blocks of its ends."""
    model = pm.modelcontext(None)
    pairs = np.triu_indices(spec.blocks)
    names = [f"block {a} -- block {b}" for a, b in zip(*pairs, strict=True)]
    model.add_coords({"block_label": list(range(spec.blocks)), "block_pair": names})
    share = pm.Dirichlet(
        "block_share", np.full(spec.blocks, spec.concentration), dims="block_label"
    )
    block = pm.Categorical("block", share, dims="node")
    within = pairs[0] == pairs[1]
    alpha, beta = (
        np.where(within, inside, across)
        for inside, across in zip(spec.within, spec.between, strict=True)
    )
    probability = pm.Beta("block_probability", alpha, beta, dims="block_pair")
    at = np.zeros((spec.blocks, spec.blocks), int)
    at[pairs] = np.arange(len(names))
    at = pt.as_tensor_variable(np.maximum(at, at.T))
    source, target = (pt.as_tensor_variable(end) for end in table.edge_index)
    return probability[at[block[source], block[target]]]


def observe_states(table, bias, weight, *, potentials, likelihood):
    """Add the table as ``x``, and its missing cells as ``x_missing``."""
    options = {"potentials": potentials, "likelihood": likelihood}
    if not table.missing.any():
        PairwiseMRF("x", bias, weight, **options, observed=table.codes, dims=_ROWS)
        return
    cells = [f"{table.names[j]}[{i}]" for i, j in np.argwhere(table.missing)]
    pm.modelcontext(None).add_coord("missing", cells)
    record("cell_missing", table.missing.astype("int64"), dims=_ROWS)
    states = np.asarray(table.states)[np.nonzero(table.missing)[1]]
    drawn = MissingStates("x_missing", states, dims="missing")
    IncompletePairwiseMRF(
        "x", bias, weight, drawn, **options,
        missing=table.missing, observed=np.maximum(table.codes, 0), dims=_ROWS,
    )  # fmt: skip


def record_field(table, potentials, implied, negligible):
    """Record what the posterior of a field is read with."""
    source, target = table.edge_index
    record("edge_source", source, dims="pair")
    record("edge_target", target, dims="pair")
    record("edge_prior", np.broadcast_to(implied, len(source)).copy(), dims="pair")
    record("states", np.asarray(table.states), dims="node")
    record("potentials", potentials.code)
    record("reference_state", potentials.reference)
    if negligible > 0:
        record("negligible", float(negligible))
