"""Recognise a graph whose only data are the correlations of a table, by regressions of columns on neighbours."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pymc.logprob.transforms import LogOddsTransform
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Switch
from pytensor.tensor.elemwise import DimShuffle

from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    is_elemwise,
    is_op,
    parameters,
    unpad,
)
from bayesstruct.core.tensors import is_beta, random_ancestors
from bayesstruct.precision.priors.graphs import (
    ImputationRV,
    NeighbourRegressionsRV,
    RandomGraphRV,
)
from bayesstruct.precision.recognition.parts import has_transform

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor.variable import TensorVariable

__all__ = ["GraphPart", "graph_part", "graph_parts"]


@dataclass(frozen=True)
class GraphPart:
    """A random graph and what its draws depend on.

    Attributes
    ----------
    edge : TensorVariable
        Indicators.
    probability : TensorVariable
        Of each edge.
    correlation : TensorVariable
        The observed correlations.
    n : TensorVariable
        Number of rows.
    weight : TensorVariable
        Power of the pseudo-likelihood.
    share : TensorVariable, optional
        The common probability of the edges that are not certain, if it has a beta distribution and nothing else depends on it.
    free : (pairs,) ndarray of bool, optional
        Edges that are not certain, if `share` is their probability; None for all.
    imputation : TensorVariable, optional
        Which of several graphs is looked at, where each belongs to a completed table.
    """

    edge: "TensorVariable"
    probability: "TensorVariable"
    correlation: "TensorVariable"
    n: "TensorVariable"
    weight: "TensorVariable"
    share: "TensorVariable | None" = None
    free: "np.ndarray | None" = None
    imputation: "TensorVariable | None" = None


def graph_part(model: "pm.Model", edge: "TensorVariable") -> GraphPart:
    """Collect what the draws of a graph depend on.

    Raises
    ------
    NotRecognized
        Says which variable stands in the way.
    """
    children = children_of(model, edge)
    tables = [child for child in children if is_op(child, NeighbourRegressionsRV)]
    others = [str(child.name) for child in children if child not in tables]
    if others:
        raise NotRecognized(f"{', '.join(others)} depends on it")
    if len(tables) != 1 or tables[0] not in model.observed_RVs:
        raise NotRecognized("it has no observed table, or several")
    indicator, n, weight = parameters(tables[0])
    if unpad(indicator) is not edge:
        raise NotRecognized(f"{tables[0].name!r} depends on a function of it")
    if random_ancestors(n, weight):
        raise NotRecognized("the number of rows or the power of the pseudo-likelihood is random")
    [probability] = parameters(edge)
    share, free = _share(model, edge, probability)
    number = _imputation(model) if edge.type.ndim > 1 else None
    return GraphPart(edge, probability, tables[0], n, weight, share, free, number)


def _imputation(model):
    """Return the number of the completed table that is looked at."""
    found = [rv for rv in model.free_RVs if is_op(rv, ImputationRV)]
    if len(found) != 1 or children_of(model, found[0]):
        raise NotRecognized("there is no number of a completed table, or something depends on it")
    return found[0]


def _share(model, edge, probability):
    """Return the beta variable that all uncertain probabilities are equal to, and which these are; or twice None."""
    share, free = unpad(probability), None
    if is_elemwise(share, Switch):
        condition, first, second = (unpad(v) for v in share.owner.inputs)
        if not (isinstance(condition, Constant) and isinstance(second, Constant)):
            return None, None
        free, share = np.asarray(condition.data, bool).reshape(-1), _without_columns(first)
        if not np.isin(second.data.reshape(-1)[~free], (0, 1)).all():
            return None, None
    alone = share in model.free_RVs and is_beta(share) and children_of(model, share) == [edge]
    alone = alone and has_transform(model, share, LogOddsTransform)
    known = alone and share.type.ndim == edge.type.ndim - 1 and _common(*parameters(share))
    return (share, free) if known else (None, None)


def _without_columns(tensor):
    """Return a vector in place of the same vector as a column."""
    op = None if tensor.owner is None else tensor.owner.op
    column = isinstance(op, DimShuffle) and tuple(op.new_order) == (0, "x")
    return tensor.owner.inputs[0] if column else tensor


def _common(*shapes):
    """Whether parameters are fixed, and the same for all entries."""
    return not random_ancestors(*shapes) and all(all(v.type.broadcastable) for v in shapes)


def graph_parts(model: "pm.Model") -> dict["TensorVariable", GraphPart | NotRecognized]:
    """Map each random graph of a model that has a table to its part, or to the reason why it has none."""
    out: dict[TensorVariable, GraphPart | NotRecognized] = {}
    for rv in model.free_RVs:
        if is_op(rv, RandomGraphRV) and any(
            is_op(child, NeighbourRegressionsRV) for child in children_of(model, rv)
        ):
            try:
                out[rv] = graph_part(model, rv)
            except NotRecognized as reason:
                out[rv] = reason
    return out
