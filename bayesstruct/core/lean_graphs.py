"""Take out of graphs what compiles long and changes nothing, in models of this package.

PyMC joins the parameters of a model in one vector, and takes each one out again by a slice whose
length PyTensor then checks: the error message of that check, with the length that was found, takes two seconds to
compile. Each change of the dimensions of a scalar takes a fifth of a second.
"""

import numpy as np
import pytensor.tensor as pt

from pytensor.graph.basic import Apply, Constant
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.tensor.basic import ScalarFromTensor
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import Subtensor

from bayesstruct.core.ops import SolverOp, register_rewrite

__all__ = ["KnownLength", "Product"]


class KnownLength(SolverOp):
    """A vector that must have a certain length.

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
        if len(inputs[0]) != self.length:
            raise AssertionError(self._message())
        output_storage[0][0] = inputs[0]

    def numba_function(self, node):
        """Return the check."""
        length, message = self.length, self._message()

        def check(vector):
            if vector.shape[0] != length:
                raise AssertionError(message)
            return vector

        return check

    def infer_shape(self, node, input_shapes):
        """Shape of the vector."""
        return [tuple(input_shapes[0])]

    def pullback(self, inputs, outputs, cotangents):
        """Return the derivatives as they are."""
        return list(cotangents)

    def _message(self) -> str:
        return f"a vector does not have the length that the model says, {self.length}"


class Product(SolverOp):
    """Product of two matrices in double precision; PyTensor's own takes a second to compile.

    Parameters
    ----------
    cast : bool
        Whether the first matrix has another type, and is converted.
    """

    __props__ = ("cast",)

    def __init__(self, cast: bool):
        self.cast = cast

    def make_node(self, a, b):
        """Apply the operation to two matrices."""
        self.register()
        shape = (a.type.shape[0], b.type.shape[1])
        return Apply(self, [a, b], [pt.tensor(dtype="float64", shape=shape)])

    def perform(self, node, inputs, output_storage):
        """Multiply."""
        output_storage[0][0] = np.dot(*inputs)

    def numba_function(self, node):
        """Return NumPy's product."""

        def product(a, b):
            return np.dot(a, b)

        def cast_product(a, b):
            return np.dot(a.astype(np.float64), b)

        return cast_product if self.cast else product

    def infer_shape(self, node, input_shapes):
        """Rows of the first and columns of the second."""
        return [(input_shapes[0][0], input_shapes[1][1])]


class _Simplify(GraphRewriter):
    """Replace checks of the lengths of slices, and products of matrices."""

    def apply(self, fgraph):
        nodes = list(fgraph.apply_nodes)
        if not any(isinstance(node.op, SolverOp) for node in nodes):
            return  # no graph of this package
        for node in nodes:
            if isinstance(node.op, SpecifyShape) and _is_slice(node.inputs[0]):
                (length,) = node.outputs[0].type.shape
                if length is not None:
                    known = KnownLength(length)(node.inputs[0])
                    fgraph.replace(node.outputs[0], known, reason="simplify")
            elif isinstance(node.op, Dot) and node.outputs[0].type.dtype == "float64":
                a, b = node.inputs
                if b.type.dtype == "float64":
                    product = Product(a.type.dtype != "float64")(a, b)
                    fgraph.replace(node.outputs[0], product, reason="simplify")


def _is_slice(variable) -> bool:
    """Whether a variable is a part of another vector."""
    return (
        variable.type.ndim == 1
        and variable.owner is not None
        and isinstance(variable.owner.op, Subtensor)
    )


class _DropViews(GraphRewriter):
    """Replace constants and scalars whose dimensions are only added and taken away."""

    def apply(self, fgraph):
        nodes = fgraph.toposort()
        if not any(isinstance(node.op, SolverOp) for node in nodes):
            return
        for node in nodes:
            if isinstance(node.op, DimShuffle | ScalarFromTensor):
                same = _without_view(node)
                if same is not None and same.type == node.outputs[0].type:
                    fgraph.replace(node.outputs[0], same, reason="drop_views")


def _without_view(node):
    """Return what a view of a constant, or a view of a view, amounts to; None if it is needed."""
    (inner,) = node.inputs
    if isinstance(inner, Constant):
        storage = [None]
        node.op.perform(node, [inner.data], [storage])
        return node.outputs[0].type.make_constant(storage[0])
    if inner.owner is not None and type(node.op) is type(inner.owner.op) is DimShuffle:
        order = [i if i == "x" else inner.owner.op.new_order[i] for i in node.op.new_order]
        if order == list(range(inner.owner.inputs[0].type.ndim)):
            return inner.owner.inputs[0]
    return None


# The first comes before elementwise operations are fused, the second after all that adds such views.
register_rewrite("simplify", _Simplify(), 48.0)
register_rewrite("drop_views", _DropViews(), 100.5)
