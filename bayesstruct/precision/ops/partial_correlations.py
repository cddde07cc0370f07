r"""Partial correlations of a precision matrix, as one operation that compiles at once."""

import numpy as np
import pytensor.tensor as pt

from pytensor.graph.basic import Apply

from bayesstruct.core.ops import ExpressionOp

__all__ = ["PartialCorrelations"]


class PartialCorrelations(ExpressionOp):
    """Partial correlations of a (p, p) precision matrix, upper triangle row by row."""

    __props__ = ()

    def make_node(self, precision):
        """Apply the operation to a matrix whose size is known."""
        self.register()
        p = precision.type.shape[0]
        return Apply(self, [precision], [pt.tensor(dtype="float64", shape=(p * (p - 1) // 2,))])

    def kernel(self):
        """Return the kernel."""
        from bayesstruct.precision.kernels.partial_correlations import partial_correlations

        return partial_correlations

    def definition(self, precision):
        """Return the partial correlations in PyTensor's own operations."""
        root = pt.sqrt(pt.diagonal(precision, axis1=-2, axis2=-1))
        matrix = -precision / (root[..., :, None] * root[..., None, :])
        rows, columns = np.triu_indices(precision.type.shape[0], 1)
        return [matrix[..., pt.as_tensor_variable(rows), pt.as_tensor_variable(columns)]]

    def infer_shape(self, node, input_shapes):
        """One entry a pair."""
        return [tuple(pt.constant(n, dtype="int64") for n in node.outputs[0].type.shape)]
