"""Entries of a matrix at given places, as one operation that compiles at once."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

from pytensor.graph.basic import Apply

from bayesstruct.core.ops import ExpressionOp

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["MatrixEntries", "entries"]


def entries(matrix: Any, rows: np.ndarray, columns: np.ndarray) -> "TensorVariable":
    """Return entries of a matrix as a vector.

    Parameters
    ----------
    matrix : tensor_like, shape (..., n, m)
    rows, columns : (k,) array of int
        Places of the entries, from 0 on.

    Returns
    -------
    TensorVariable
        Of shape (..., k). Its evaluation raises IndexError if the matrix has no such place.
    """
    matrix = pt.as_tensor_variable(matrix)
    # As tensors: PyTensor looks at a NumPy index element by element.
    places = [pt.as_tensor_variable(np.ascontiguousarray(i)) for i in (rows, columns)]
    if matrix.type.ndim != 2:
        return matrix[..., *places]
    return MatrixEntries().make_node(matrix, *places).outputs[0]


class MatrixEntries(ExpressionOp):
    """Entries of a matrix at given places, which are not negative."""

    __props__ = ()

    def make_node(self, matrix, rows, columns):
        """Apply the operation to a matrix and two vectors of whole numbers."""
        self.register()
        out = pt.tensor(dtype=matrix.type.dtype, shape=rows.type.shape)
        return Apply(self, [matrix, rows, columns], [out])

    def kernel(self):
        """Return the kernel."""
        from bayesstruct.core.arrays import entries_at

        return entries_at

    def definition(self, matrix, rows, columns):
        """Return the entries by an index."""
        return [matrix[rows, columns]]

    def infer_shape(self, node, input_shapes):
        """One entry a place."""
        return [input_shapes[1]]
