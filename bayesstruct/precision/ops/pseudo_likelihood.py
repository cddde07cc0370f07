"""Log pseudo-likelihood of the graph of a table of normal columns, as one operation."""

import pytensor.tensor as pt

from pytensor.graph.basic import Apply

from bayesstruct.core.ops import KernelOp

__all__ = ["PseudoLikelihood"]


class PseudoLikelihood(KernelOp):
    """Sum of the log marginal densities of all columns given their neighbours, parameters integrated out.

    Inputs are the (p, p) correlations, the (pairs,) indicators of the edges and the number of rows.
    """

    __props__ = ()

    def make_node(self, correlation, edge, n):
        """Apply the operation."""
        self.register()
        return Apply(self, [correlation, edge, n], [pt.scalar(dtype="float64")])

    def kernel(self):
        """Return the kernel."""
        from bayesstruct.precision.kernels.nodewise import pseudo_likelihood

        return pseudo_likelihood

    def infer_shape(self, node, input_shapes):
        """Return the shape of a number."""
        return [()]
