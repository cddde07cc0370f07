"""Do without checks of lengths that cannot fail, in models of this package.

PyMC joins the parameters of a model in one vector, and takes each one out again by a slice whose
length PyTensor then checks. The error message of that check takes two seconds to compile.
"""

import numpy as np

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import Subtensor, get_idx_list

from bayesstruct.core.ops import SolverOp

__all__ = ["KnownLength"]


class KnownLength(SolverOp):
    """A vector whose length is known, as it is.

    Parameters
    ----------
    length : int
    """

    __props__ = ("length",)
    view_map = {0: [0]}

    def __init__(self, length: int):
        self.length = length

    def make_node(self, vector):
        """Apply the operation to a vector."""
        self.register()
        return Apply(self, [vector], [vector.type.clone(shape=(self.length,))()])

    def perform(self, node, inputs, output_storage):
        """Return the vector."""
        output_storage[0][0] = inputs[0]

    def numba_function(self, node):
        """Return the identity."""

        def same(vector):
            return vector

        return same

    def infer_shape(self, node, input_shapes):
        """Shape of the vector."""
        return [tuple(input_shapes[0])]

    def pullback(self, inputs, outputs, cotangents):
        """Return the derivatives as they are."""
        return list(cotangents)


class _TrustSlices(GraphRewriter):
    """Replace the check of the length of a slice of a parameter vector."""

    def apply(self, fgraph):
        nodes = list(fgraph.apply_nodes)
        if not any(isinstance(node.op, SolverOp) for node in nodes):
            return  # no graph of this package
        for node in nodes:
            if isinstance(node.op, SpecifyShape) and _is_parameter(node, fgraph.inputs):
                known = KnownLength(node.outputs[0].type.shape[0])(node.inputs[0])
                fgraph.replace(node.outputs[0], known, reason="trust_slices")


def _is_parameter(node, inputs) -> bool:
    """Whether a node checks the constant length of a slice from an input of the graph."""
    part = node.inputs[0].owner
    if node.outputs[0].type.ndim != 1 or part is None or not isinstance(part.op, Subtensor):
        return False
    (index,) = get_idx_list(part.inputs, part.op.idx_list)
    length = node.outputs[0].type.shape[0]
    return part.inputs[0] in inputs and length is not None and _length(index) == length


def _length(index) -> int | None:
    """Length of a slice with constant bounds, or None."""
    if not isinstance(index, slice) or index.step is not None:
        return None
    bounds = [getattr(v, "data", v) for v in (index.start, index.stop)]
    start, stop = bounds[0] or 0, bounds[1]
    if not all(isinstance(v, int | np.integer) and v >= 0 for v in (start, stop)):
        return None
    return int(stop - start)


# Before elementwise operations are fused.
optdb.register("trust_slices", _TrustSlices(), "numba", position=48.0)
