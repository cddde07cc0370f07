"""Lower triangular matrix from the vector that stores it, as one operation.

As an expression of PyTensor's own operations the same takes seconds to compile.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.transforms import CholeskyCovTransform
from pytensor.graph.basic import Apply

from bayesstruct.core.ops import SolverOp

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["PackedCholesky", "UnpackLower"]


class UnpackLower(SolverOp):
    """Lower triangular matrix whose rows are stored one after the other, the diagonal as logarithms.

    Parameters
    ----------
    size : int
        p.
    """

    __props__ = ("size",)

    def __init__(self, size: int):
        self.size = size

    def make_node(self, packed):
        """Apply the operation to a vector of length p (p + 1) / 2."""
        self.register()
        return Apply(self, [packed], [pt.tensor(dtype="float64", shape=(self.size, self.size))])

    def perform(self, node, inputs, output_storage):
        """Fill the matrix."""
        from bayesstruct.precision.kernels.cholesky import fill_lower

        output_storage[0][0] = fill_lower(inputs[0], self.size)

    def numba_function(self, node):
        """Return the call of the kernel."""
        from bayesstruct.precision.kernels.cholesky import fill_lower

        size = self.size

        def unpack(packed):
            return fill_lower(packed, size)

        return unpack

    def infer_shape(self, node, input_shapes):
        """Shape of the matrix."""
        return [(self.size, self.size)]

    def pullback(self, inputs, outputs, cotangents):
        """Take the elements of the lower triangle, times the diagonal itself where a logarithm was stored."""
        slopes = cotangents[0] * pt.where(np.eye(self.size, dtype=bool), outputs[0], 1.0)
        rows, columns = np.tril_indices(self.size)
        return [slopes[pt.as_tensor_variable(rows), pt.as_tensor_variable(columns)]]


class PackedCholesky(CholeskyCovTransform):
    """PyMC's transform of a positive definite matrix, with `UnpackLower` where the size is known."""

    def backward(self, value: Any, *inputs) -> "TensorVariable":
        """Matrix from the vector of its Cholesky factor."""
        value = pt.as_tensor_variable(value)
        if not isinstance(self.n, int | np.integer) or value.type.ndim != 1:
            return super().backward(value, *inputs)
        lower = UnpackLower(int(self.n)).make_node(value.astype("float64")).outputs[0]
        lower.tag.lower_triangular = True  # the factor of the product is known
        return lower @ lower.mT
