"""What the density of transition probabilities needs of them, as one operation.

As an expression of PyTensor's own operations the same takes seconds to compile.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import pytensor.tensor as pt

from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply
from pytensor.tensor.blockwise import Blockwise

from bayesstruct.core.ops import KernelOp

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["TransitionSums", "Transitions", "transitions_of"]


class Transitions(NamedTuple):
    """Sums over the transition probabilities of series.

    Attributes
    ----------
    members : TensorVariable, shape (n,), float64
        Behaviours of each series.
    stay, leave : TensorVariable, scalar, float64
        Sums of the logarithms of the probabilities to stay in a behaviour, and to go to another one.
    valid : TensorVariable, scalar, bool
        Whether rows are distributions over the behaviours that a series has, and zero for others.
    """

    members: "TensorVariable"
    stay: "TensorVariable"
    leave: "TensorVariable"
    valid: "TensorVariable"


def transitions_of(value: Any, feature: Any) -> Transitions:
    """Return the sums over transition probabilities.

    Parameters
    ----------
    value : tensor_like of float, shape (..., n, k, k)
    feature : tensor_like of int, shape (..., n, k)
        Which behaviours each series has.

    Returns
    -------
    Transitions
        Of shape (..., n) and (...).
    """
    value, feature = pt.as_tensor_variable(value), pt.as_tensor_variable(feature)
    single = value.type.ndim == 3 and feature.type.ndim == 2
    op = TransitionSums() if single else Blockwise(TransitionSums())
    return Transitions(*op.make_node(value, feature).outputs)


class TransitionSums(KernelOp):
    """Sums over the transition probabilities of series among the behaviours that they have."""

    __props__ = ()
    gufunc_signature = "(n,k,k),(n,k)->(n),(),(),()"

    def make_node(self, value, feature):
        """Apply the operation to transition probabilities and an indicator of behaviours."""
        self.register()
        value, feature = pt.as_tensor_variable(value), pt.as_tensor_variable(feature)
        if value.type.ndim != 3 or feature.type.ndim != 2:
            raise TypeError("probabilities must have three dimensions and features two")
        members = pt.tensor(dtype="float64", shape=feature.type.shape[:1])
        scalars = [pt.scalar(dtype=kind) for kind in ("float64", "float64", "bool")]
        return Apply(self, [value, feature], [members, *scalars])

    def kernel(self):
        """Return the kernel."""
        from bayesstruct.series.kernels.transition_sums import transition_sums

        return transition_sums

    def infer_shape(self, node, input_shapes):
        """Shapes of the outputs."""
        return [(input_shapes[1][0],), (), (), ()]

    def pullback(self, inputs, outputs, cotangents):
        """Differentiate the logarithms of the probabilities."""
        value, feature = inputs
        stay, leave = (0.0 if isinstance(v.type, DisconnectedType) else v for v in cotangents[1:3])
        has = pt.gt(feature, 0)
        used = pt.and_(has[:, :, None], has[:, None, :])
        slope = pt.where(pt.eye(feature.shape[1]) > 0.0, stay, leave)
        inside = pt.and_(used, pt.gt(value, 0.0))
        return [pt.where(inside, slope / pt.where(inside, value, 1.0), 0.0), disconnected_type()]

    def connection_pattern(self, node):
        """Only the sums of logarithms vary continuously, with the probabilities."""
        return [[False, True, True, False], [False] * 4]
