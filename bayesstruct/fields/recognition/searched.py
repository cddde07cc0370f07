"""Recognise a Markov random field whose graph can be searched for, and the prior of that graph."""

import itertools

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pymc.distributions.continuous import FlatRV
from pytensor.tensor.random.basic import BetaRV, CategoricalRV, DirichletRV

from bayesstruct.core.recognition import NotRecognized, is_op, parameters
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.fields.priors.random_fields import PairwiseRV
from bayesstruct.fields.recognition.fields import (
    SPIKE_AND_SLAB,
    Field,
    field_of_weights,
    sampled_blocks,
)

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor import TensorVariable

    from bayesstruct.fields.solvers.edge_priors import BlockEdges, IndependentEdges
    from bayesstruct.fields.solvers.evidence import FieldPrior

__all__ = ["SearchedField", "searched_field"]

#: Draws of probabilities and hidden labels, for each pair of labels, from which the expression is learnt.
_DRAWS = 50


@dataclass(frozen=True)
class SearchedField:
    """A Markov random field whose graph can be searched for.

    Attributes
    ----------
    field : Field
    prior : FieldPrior
        Of biases and weights.
    edges : IndependentEdges or BlockEdges
        Prior of the graph.
    share, labels, proportions : TensorVariable or None
        Probabilities of edges, hidden labels of the columns, and probabilities of the labels.
    """

    field: Field
    prior: "FieldPrior"
    edges: "IndependentEdges | BlockEdges"
    share: "TensorVariable | None" = None
    labels: "TensorVariable | None" = None
    proportions: "TensorVariable | None" = None


def searched_field(model: "pm.Model") -> SearchedField | None:
    """Return the field of a model whose edges may be absent, or None if there is no such field.

    Raises
    ------
    ValueError
        If the model has one, but the search does not apply to the model; says why.
    """
    weights = [rv for rv in model.free_RVs if is_op(rv, SPIKE_AND_SLAB)]
    fields = [rv for rv in model.basic_RVs if is_op(rv, PairwiseRV)]
    if len(weights) != 1 or not any(weights[0] in parameters(rv) for rv in fields):
        return None
    [weight] = weights
    try:
        return _recognized(model, weight)
    except NotRecognized as reason:
        raise ValueError(
            f"{weight.name!r} has a spike-and-slab prior, and the search for the most probable graph does "
            f"not apply to this model, because {reason}. Sample instead (pm.sample()) and read the draws: "
            "bs.map_graph and bs.median_graph give a graph, bs.edge_table the probabilities; or take a "
            'prior that only shrinks and whose mode is sparse: prior="laplace", or "group_laplace" for '
            "tables of potentials"
        ) from None


def _recognized(model, weight) -> SearchedField:
    if model.potentials:
        raise NotRecognized("it has potentials (pm.Potential)")
    field = field_of_weights(model, weight)
    if field.own_bias is None:
        raise NotRecognized(f"the biases of {field.rows.name!r} are not a normal or flat variable")
    inclusion, scale = parameters(weight)
    hidden = _hidden(model, inclusion)
    edge, start, order = sampled_blocks(field)
    blocks = [np.sort(order[a:b]) for a, b in itertools.pairwise(start)]
    ends = np.column_stack([end[edge] for end in field.potentials.ends])
    prior = _prior(field, scale, blocks)
    edges = _edge_prior(inclusion, hidden, ends)
    known = {field.rows, *field.variables, *hidden.values()}
    if others := [rv.name for rv in model.basic_RVs if rv not in known]:
        raise NotRecognized(f"it has other variables: {', '.join(map(repr, others))}")
    return SearchedField(field, prior, edges, **hidden)


def _hidden(model, inclusion) -> dict:
    """Random variables that the probabilities of edges depend on, by what they are."""
    found = [rv for rv in model.free_RVs if rv in random_ancestors(inclusion)]
    out = {}
    for rv in found:
        for name, kind in (
            ("share", BetaRV),
            ("labels", CategoricalRV),
            ("proportions", DirichletRV),
        ):
            if is_op(rv, kind) and name not in out:
                out[name] = rv
    sets: tuple[set[str], ...] = ({"share"}, {"share", "labels", "proportions"}, set())
    if len(out) < len(found) or set(out) not in sets:
        names = ", ".join(repr(rv.name) for rv in found)
        raise NotRecognized(
            f"the edge probabilities depend on {names}, and may only be constant, a beta variable, or "
            "those of bs.StochasticBlock()"
        )
    return out


def _constant(tensor, name, size):
    """Value of a tensor without random ancestors."""
    if random_ancestors(tensor):
        raise NotRecognized(f"{name} are random")
    value = np.asarray(tensor.eval(mode="FAST_COMPILE"), float)
    return np.broadcast_to(value, (size,)).copy()


def _prior(field, scale, blocks):
    """Prior of biases and weights."""
    from bayesstruct.fields.solvers.evidence import FieldPrior

    size, slab = field.potentials.bias_size, field.weight.owner.op.slab
    scale = _constant(scale, "the scales of the slab", field.potentials.weight_size)
    if is_op(field.own_bias, FlatRV):
        mean, precision = np.zeros(size), np.zeros(size)
    else:
        mean, deviation = (
            _constant(v, "the hyperparameters of the biases", size)
            for v in parameters(field.own_bias)
        )
        precision = deviation**-2.0
    return FieldPrior(slab, scale, mean, precision, blocks)


def _edge_prior(inclusion, hidden, ends):
    """Prior of the graph."""
    from bayesstruct.fields.solvers.edge_priors import BlockEdges, IndependentEdges, SharedEdges

    if not hidden:
        return IndependentEdges(_constant(inclusion, "the edge probabilities", len(ends)))
    share = hidden["share"]
    alpha, beta = (
        _constant(v, "the hyperparameters of the edge probabilities", _size(share))
        for v in parameters(share)
    )
    if "labels" not in hidden:
        if _size(share) > 1:
            raise NotRecognized(f"{share.name!r} is more than one probability")
        _, known = _learn(_function([share], inclusion), share, None, ends, 1)
        return SharedEdges(known, float(alpha[0]), float(beta[0]))
    labels, proportions = hidden["labels"], hidden["proportions"]
    count = _size(proportions)
    trial = np.arange(1.0, count + 1.0) / (0.5 * count * (count + 1.0))
    given = np.atleast_1d(np.squeeze(_function([proportions], parameters(labels)[0])(trial)))
    if given.shape != trial.shape or not np.allclose(given, trial):
        raise NotRecognized(f"{proportions.name!r} are not the probabilities of {labels.name!r}")
    [concentration] = parameters(proportions)
    concentration = _constant(concentration, "the hyperparameters of the labels", count)
    pair_of, known = _learn(_function([share, labels], inclusion), share, labels, ends, count)
    return BlockEdges(known, ends, pair_of, alpha, beta, concentration)


def _function(inputs, output):
    import pytensor

    return pytensor.function(inputs, output, mode="FAST_COMPILE", on_unused_input="ignore")


def _size(rv) -> int:
    return int(np.prod(rv.shape.eval(mode="FAST_COMPILE")))


def _learn(function, share, labels, ends, count):
    """Learn which probability each pair of labels has, and which edges are certain.

    From random values of the probabilities, new ones for each draw of the labels: an expression that
    agrees with one of them each time is the choice of that one, and no other function of them.

    Returns
    -------
    pair_of : (labels, labels) array of int
    known : (edges,) array
        0 and 1 where an edge is certain, NaN elsewhere.
    """
    rng = np.random.default_rng(0)
    shape = tuple(share.shape.eval(mode="FAST_COMPILE"))
    pair_of = np.full((count, count), -1)
    nodes = int(ends.max()) + 1 if labels is None else _size(labels)
    for _ in range(_DRAWS * count**2):
        values = rng.uniform(0.05, 0.95, _size(share))
        drawn = rng.integers(0, count, nodes)
        arguments = [values.reshape(shape)] if labels is None else [values.reshape(shape), drawn]
        q = np.broadcast_to(function(*arguments), (len(ends),))
        certain = np.isin(q, (0.0, 1.0))
        which = np.abs(q[:, None] - values).argmin(axis=1)
        first, second = drawn[ends[~certain]].T
        before = pair_of[first, second]
        pair_of[first, second] = pair_of[second, first] = which[~certain]
        strange = (before >= 0) & (before != which[~certain])
        if strange.any() or not np.isclose(q, values[which])[~certain].all():
            raise NotRecognized(f"the edge probabilities are not those in {share.name!r}")
    return np.maximum(pair_of, 0), np.where(certain, q, np.nan)
