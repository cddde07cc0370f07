"""Trees of columns and hidden nodes as PyTensor graphs: whether values are such trees, and what they say about the columns."""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pytensor.gradient import disconnected_type, pullback
from pytensor.graph.basic import Apply

from bayesstruct.core.ops import InterpretedOp
from bayesstruct.trees.kernels.hidden_normal import column_precision

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = [
    "HiddenTreePrecision",
    "IsRootedForm",
    "hidden_tree_precision",
    "is_rooted_form",
    "neighbour_correlations",
]


class IsRootedForm(InterpretedOp):
    """Whether (..., nodes) vectors of parents are trees with hidden nodes in the form with a root."""

    __props__ = ("columns",)

    def __init__(self, columns):
        self.columns = columns

    def make_node(self, parents):
        """Apply the Op."""
        self.register()
        return Apply(self, [parents], [pt.tensor(dtype="bool", shape=parents.type.shape[:-1])])

    def infer_shape(self, node, input_shapes):
        """One answer a vector."""
        return [input_shapes[0][:-1]]

    def compute(self, parents):
        """Look at one vector after the other."""
        from bayesstruct.trees.kernels.hidden_trees import is_rooted_form  # with Numba

        flat = np.ascontiguousarray(parents, np.int64).reshape(-1, parents.shape[-1])
        found = [is_rooted_form(one, self.columns) for one in flat]
        return np.array(found, bool).reshape(parents.shape[:-1])

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False]]


def is_rooted_form(parents: "TensorVariable", columns: int) -> "TensorVariable":
    """Whether (..., nodes) parents are those of a :class:`bayesstruct.distributions.HiddenTree` of so many columns."""
    return IsRootedForm(columns).make_node(pt.as_tensor_variable(parents)).outputs[0]


class HiddenTreePrecision(InterpretedOp):
    """Precision matrix of the columns of a tree whose hidden nodes are summed out, with derivatives."""

    __props__ = ("columns", "nodes")

    def __init__(self, columns, nodes):
        self.columns, self.nodes = columns, nodes

    def make_node(self, parent, correlation, deviation):
        """Apply the Op to (..., nodes), (..., nodes) and (..., p) tensors."""
        self.register()
        batch, p = deviation.type.shape[:-1], self.columns
        out = pt.tensor(dtype="float64", shape=(*batch, p, p))
        return Apply(self, [parent, correlation, deviation], [out])

    def infer_shape(self, node, input_shapes):
        """Return the shape of a batch of square matrices."""
        shape = input_shapes[2]
        return [(*shape, shape[-1])]

    def compute(self, parent, correlation, deviation):
        """Return the matrices."""
        return column_precision(parent, correlation, deviation)

    def definition(self, parent, correlation, deviation):
        """Return the matrix in PyTensor's own operations."""
        nodes, p = self.nodes, self.columns
        above = pt.eq(parent[..., :, None], np.arange(nodes))
        rest = pt.eye(nodes) - above * correlation[..., :, None]
        whole = rest.mT @ (rest / (1.0 - correlation**2)[..., :, None])
        own = whole[..., :p, :p]
        if nodes > p:
            beside = whole[..., p:, :p]
            own = own - beside.mT @ pt.linalg.solve(whole[..., p:, p:], beside, b_ndim=2)
        own = 0.5 * (own + own.mT)
        return [own / (deviation[..., :, None] * deviation[..., None, :])]

    def pullback(self, inputs, outputs, cotangents):
        """Differentiate the expression."""
        found = pullback(self.definition(*inputs), inputs[1:], cotangents)
        return [disconnected_type(), *found]

    def connection_pattern(self, node):
        """Return that a tree has no derivatives."""
        return [[False], [True], [True]]


def hidden_tree_precision(
    parent: "TensorVariable",
    correlation: "TensorVariable",
    deviation: "TensorVariable",
    columns: int,
) -> "TensorVariable":
    """Precision matrix of the columns of a tree whose hidden nodes are summed out.

    Parameters
    ----------
    parent, correlation : TensorVariable
        (..., nodes), as of :class:`bayesstruct.distributions.HiddenTree` and :class:`bayesstruct.distributions.TreeCorrelations`.
    deviation : TensorVariable
        (..., p), standard deviations of the columns.
    columns : int
        p.
    """
    op = HiddenTreePrecision(columns, parent.type.shape[-1])
    return op.make_node(parent, correlation, deviation).outputs[0]


def neighbour_correlations(
    parent: "TensorVariable", correlation: "TensorVariable", columns: int
) -> tuple["TensorVariable", "TensorVariable"]:
    """Whether the two columns of each pair are neighbours, and the correlation along their edge, 0 if there is none.

    Parameters
    ----------
    parent, correlation : TensorVariable
        (..., nodes).
    columns : int
    """
    first, second = np.triu_indices(columns, 1)
    below = pt.eq(parent[..., second], first)
    above = pt.eq(parent[..., first], second)
    value = correlation[..., second] * below + correlation[..., first] * above
    return (below | above).astype("int8"), value
