"""What a binary matrix says about its columns, as one operation.

As an expression of PyTensor's own operations the same takes seconds to compile.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import pytensor.tensor as pt

from pytensor.graph.basic import Apply
from pytensor.tensor.blockwise import Blockwise

from bayesstruct.core.ops import KernelOp

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["ColumnPattern", "Columns", "columns_of", "features_in_use", "is_used"]


class Columns(NamedTuple):
    """Properties of the columns of a binary matrix.

    Attributes
    ----------
    sums : TensorVariable, shape (k,), float64
        Rows that have each feature.
    rank : TensorVariable, shape (k,), float64
        Columns up to each one, itself included, that are equal to it.
    ordered : TensorVariable, scalar, bool
        Whether all entries are 0 or 1 and no column is less than the next, as binary numbers.
    used : TensorVariable, scalar, int64
        Columns that are not zero.
    """

    sums: "TensorVariable"
    rank: "TensorVariable"
    ordered: "TensorVariable"
    used: "TensorVariable"


def columns_of(matrix: Any) -> Columns:
    """Return the properties of the columns of a binary matrix.

    Parameters
    ----------
    matrix : tensor_like of int, shape (..., n, k)

    Returns
    -------
    Columns
        Of shape (..., k) and (...).
    """
    matrix = pt.as_tensor_variable(matrix)
    op = ColumnPattern() if matrix.type.ndim == 2 else Blockwise(ColumnPattern())
    return Columns(*op.make_node(matrix).outputs)


def features_in_use(matrix: Any) -> "TensorVariable":
    """Return the number of columns of a binary matrix that are not zero, of shape (...)."""
    return columns_of(matrix).used


def is_used(matrix: Any) -> "TensorVariable":
    """Whether each column of a binary matrix is not zero, of shape (..., k)."""
    return pt.gt(columns_of(matrix).sums, 0.0)


class ColumnPattern(KernelOp):
    """Sums, ranks among equals, order and number of the columns of a binary matrix."""

    __props__ = ()
    gufunc_signature = "(n,k)->(k),(k),(),()"

    def make_node(self, matrix):
        """Apply the operation to a matrix of whole numbers."""
        self.register()
        matrix = pt.as_tensor_variable(matrix)
        if matrix.type.ndim != 2:
            raise TypeError(f"the matrix must have two dimensions, it has {matrix.type.ndim}")
        column = pt.tensor(dtype="float64", shape=(matrix.type.shape[1],))
        outputs = [column, column.clone(), pt.scalar(dtype="bool"), pt.scalar(dtype="int64")]
        return Apply(self, [matrix], outputs)

    def definition(self, matrix):
        """Give an output as an expression of PyTensor's own operations; for fingerprints of models."""
        return [None, None, None, (matrix.sum(axis=0) > 0).sum()]

    def kernel(self):
        """Return the kernel."""
        from bayesstruct.features.kernels.column_pattern import column_pattern

        return column_pattern

    def infer_shape(self, node, input_shapes):
        """Shapes of the outputs."""
        ((_, k),) = input_shapes
        return [(k,), (k,), (), ()]
