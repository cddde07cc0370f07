"""Sums over the arcs of a structure, as terms of the log density of a model."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

from pytensor.graph.basic import Apply

from bayesstruct.core.ops import InterpretedOp

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorVariable

__all__ = ["ArcSum", "arc_sum"]


class ArcSum(InterpretedOp):
    """Sum of the weights of the arcs of a graph; a step method knows it by its type."""

    __props__ = ()

    def make_node(self, dag, weights):
        """Apply the Op to a graph and to weights, both (d, d)."""
        self.register()
        inputs = [pt.as_tensor_variable(dag), pt.as_tensor_variable(weights)]
        return Apply(self, inputs, [pt.scalar(dtype="float64")])

    def infer_shape(self, node, input_shapes):
        """Return the shape of a number."""
        return [()]

    def compute(self, dag, weights):
        """Compute from arrays."""
        return np.asarray(weights[np.asarray(dag) != 0].sum())

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False], [False]]


def arc_sum(dag: "TensorVariable", weights: "ArrayLike") -> "TensorVariable":
    """Return the sum of the weights of the arcs of a graph, a term of a log density.

    Parameters
    ----------
    dag : TensorVariable
        (d, d), 1 at (parent, child).
    weights : (d, d) array_like of float
    """
    total: Any = ArcSum()(dag, pt.constant(np.asarray(weights, float)))
    return total
