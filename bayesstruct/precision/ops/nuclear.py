"""Nuclear norms of the blocks of a precision matrix as an operation with derivatives."""

import pytensor.tensor as pt

from pytensor.graph.basic import Apply

from bayesstruct.core.ops import KernelOp
from bayesstruct.core.tensors import as_float

__all__ = ["BlockNorms"]


class _BlocksOp(KernelOp):
    """An Op of a matrix (p, p), the block of each column (p,), and a number for each two blocks (b, b)."""

    __props__ = ()
    like = 0  # the input whose shape the output has

    def make_node(self, *inputs):
        """Apply to numbers."""
        self.register()
        inputs = [as_float(x) for x in inputs]
        if [x.type.ndim for x in inputs] != [2, 1, 2]:
            raise TypeError("nuclear norms of blocks are of a matrix, labels and a matrix of rates")
        shape = inputs[self.like].type.shape
        return Apply(self, inputs, [pt.tensor(dtype="float64", shape=shape)])

    def infer_shape(self, node, input_shapes):
        """Return the shape of the matrix or of the rates."""
        return [input_shapes[self.like]]


class BlockNorms(_BlocksOp):
    """Nuclear norm of each block between two groups of columns, in both orders, times its rate."""

    gufunc_signature = "(p,p),(p),(b,b)->(b,b)"
    like = 2

    def kernel(self):
        """Return the kernel."""
        from bayesstruct.precision.kernels.nuclear import block_norms

        return block_norms

    def pullback(self, inputs, outputs, cotangents):
        """Differentiate: a subgradient where a block has not its full rank."""
        (matrix, labels, rates), [found], [weights] = inputs, outputs, cotangents
        norms = found / pt.switch(rates > 0, rates, 1.0)
        return [
            BlockSlopes()(matrix, labels, rates * weights),
            pt.zeros_like(labels),
            weights * norms,
        ]

    def connection_pattern(self, node):
        """Labels are no numbers to differentiate in, but the gradient in them is zero almost everywhere."""
        return [[True], [True], [True]]


class BlockSlopes(_BlocksOp):
    """Derivative of `BlockNorms`, of which it has none itself."""

    gufunc_signature = "(p,p),(p),(b,b)->(p,p)"

    def kernel(self):
        """Return the kernel."""
        from bayesstruct.precision.kernels.nuclear import block_slopes

        return block_slopes
