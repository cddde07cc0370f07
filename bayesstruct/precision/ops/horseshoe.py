"""Logarithm of the scaled exponential integral, the density of the horseshoe, as one operation."""

import pytensor.tensor as pt

from pytensor.graph.basic import Apply

from bayesstruct.core.ops import KernelOp

__all__ = ["LogScaledExpIntegral"]


class LogScaledExpIntegral(KernelOp):
    """``log(exp(z) E1(z))`` of each element of a matrix of positive numbers."""

    __props__ = ()
    gufunc_signature = "(m,n)->(m,n)"

    def make_node(self, z):
        """Apply the operation to a matrix."""
        self.register()
        z = pt.as_tensor_variable(z)
        if z.type.ndim != 2 or z.type.dtype != "float64":
            raise TypeError("the operation is for a matrix of float64")
        return Apply(self, [z], [z.type()])

    def kernel(self):
        """Return the kernel."""
        from bayesstruct.precision.kernels.horseshoe.density import log_scaled_exp_integrals

        return log_scaled_exp_integrals

    def pullback(self, inputs, outputs, cotangents):
        """Differentiate: the integrand of E1 is known."""
        [z], [value] = inputs, outputs
        return [cotangents[0] * (1.0 - pt.exp(-value) / z)]

    def connection_pattern(self, node):
        """Tell that the output depends on the input."""
        return [[True]]

    def infer_shape(self, node, input_shapes):
        """Return the shape of the input."""
        return input_shapes
