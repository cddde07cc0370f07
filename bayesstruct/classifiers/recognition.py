"""Recognise the part of a model that is a classifier: structure, tables and rows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytensor.graph.basic import Constant

from bayesstruct.classifiers.ops import ArcSum
from bayesstruct.classifiers.priors import AugmentedTreeRV
from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    is_op,
    parameters,
    unpadded_parameters,
)
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.networks.priors.discrete_network import (
    DiscreteNetworkRV,
    EvenTablesRV,
    ProbabilityTablesRV,
)
from bayesstruct.networks.recognition.tables import DiscreteTable

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor import TensorVariable

__all__ = ["TABLES", "ClassifierPart", "classifier_of", "graph_of", "line_gains"]

#: Ops of the tables.
TABLES = (ProbabilityTablesRV, EvenTablesRV)
_EVEN = 1e-8  # by which the gain of a line may depend on its direction, over the size of gains


@dataclass(frozen=True, eq=False)
class ClassifierPart:
    """Part of a model that is a classifier.

    Attributes
    ----------
    dag : TensorVariable or (d, d) ndarray of int8
        The structure, if it is random; otherwise its value.
    tables : TensorVariable
    table : DiscreteTable
        Values of the rows, and the prior of the tables.
    weights : (d, d) ndarray of float
        Sum of the weights of each arc in the log density, besides the marginal likelihood of the rows.
    """

    dag: Any
    tables: "TensorVariable"
    table: DiscreteTable
    weights: np.ndarray

    @property
    def is_random(self) -> bool:
        """Whether the structure is drawn."""
        return not isinstance(self.dag, np.ndarray)

    @property
    def variables(self) -> list:
        """Random variables that are drawn together."""
        return [self.dag, self.tables] if self.is_random else [self.tables]


def graph_of(tables: "TensorVariable") -> "TensorVariable | None":
    """Return the graph of tables if it is a structure of a classifier or a constant, else None."""
    graph = unpadded_parameters(tables)[0]
    return graph if isinstance(graph, Constant) or is_op(graph, AugmentedTreeRV) else None


def classifier_of(model: "Model", tables: "TensorVariable") -> ClassifierPart:
    """Recognise the classifier around its tables, and read its rows.

    Raises
    ------
    NotRecognized
        Says which part of the model is not that of a classifier.
    """
    graph: Any = graph_of(tables)
    if graph is None:
        raise NotRecognized(
            f"the graph of {tables.name!r} is neither an AugmentedTree nor a constant"
        )
    random = not isinstance(graph, Constant)
    rows = _rows_of(model, tables, graph)
    for rv in (rows, tables):
        sources = {*random_ancestors(*parameters(rv))} & {*model.basic_RVs}
        if lost := sources - {graph, tables}:
            names = ", ".join(sorted(repr(v.name) for v in lost))
            raise NotRecognized(f"{rv.name!r} also depends on {names}")
    for rv in [tables, graph] if random else [tables]:
        if rv not in model.free_RVs:
            raise NotRecognized(f"{rv.name!r} is observed")
    if model.rvs_to_transforms.get(tables) is not None:
        raise NotRecognized(f"{tables.name!r} has a transform")
    table = DiscreteTable.of(model, rows, {type(tables.owner.op): tables})
    weights = np.zeros((len(table.states),) * 2)
    if not random:
        return ClassifierPart(np.asarray(graph.data, np.int8), tables, table, weights)
    for term in children_of(model, graph):
        if term not in (rows, tables):
            weights += _weights(term, graph)
    return ClassifierPart(graph, tables, table, weights)


def _rows_of(model, tables, graph):
    """Return the observed rows, the only child of the tables."""
    children = children_of(model, tables)
    if len(children) != 1 or not is_op(children[0], DiscreteNetworkRV):
        raise NotRecognized(f"not one DiscreteNetwork depends on {tables.name!r}, and nothing else")
    [rows] = children
    if rows not in model.observed_RVs:
        raise NotRecognized(f"{rows.name!r} is not observed")
    own, used, *_ = unpadded_parameters(rows)
    same = own is graph or (
        isinstance(own, Constant)
        and isinstance(graph, Constant)
        and np.array_equal(own.data, graph.data)
    )
    if not same or used is not tables:
        raise NotRecognized(f"{rows.name!r} has another graph or other tables than {tables.name!r}")
    return rows


def _weights(term, graph):
    """Weights of the arcs in a potential."""
    if is_op(term, ArcSum):
        dag, weights = term.owner.inputs
        if dag is graph and isinstance(weights, Constant):
            return weights.data
    raise NotRecognized(
        f"{term.name!r} depends on {graph.name!r}, and is no arc_sum of it with constant weights"
    )


def line_gains(part: ClassifierPart, target: int) -> np.ndarray:
    """Log density that each line between two features adds, (features, features).

    Raises
    ------
    NotRecognized
        If it depends on the direction of the line.
    """
    score, d = part.table.score(part.table.x), len(part.table.states)
    features = np.delete(np.arange(d), target)
    gains = np.zeros((d - 1, d - 1))
    for b, child in enumerate(features.tolist()):
        alone = score.local(child, [target])
        for a, parent in enumerate(features.tolist()):
            if a != b:
                gains[a, b] = score.local(child, [target, parent]) - alone
    gains += part.weights[np.ix_(features, features)]
    if np.abs(gains - gains.T).max() > _EVEN * max(np.abs(gains).max(), 1.0):
        raise NotRecognized(
            "the density of a tree depends on its root: with EvenTables and without a score that makes up for it"
        )
    return (gains + gains.T) / 2.0
