r"""Base of the priors of norms, :math:`p(w) \propto e^{-\Omega(w)}` with a penalty's structure.

Which coordinates belong together is a constant and travels on the Op; rates are parameters.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.gradient import DisconnectedType, disconnected_type, grad_not_implemented
from pytensor.graph.basic import Apply, Constant
from pytensor.tensor.random.op import RandomVariable

from bayesstruct.core.distributions import KernelRV
from bayesstruct.core.ops import SolverOp
from bayesstruct.core.tensors import draw_batch
from bayesstruct.sparse.penalties.structure import Structure

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = [
    "NormRV",
    "check_length",
    "last_dimension",
    "norms",
    "nuclear_norms",
    "refuse_constant",
    "zero",
]


class NormRV(KernelRV):
    """A random variable with a `Structure`, drawn by a compiled kernel."""

    __props__: Any = (*RandomVariable.__props__, "structure")

    def __init__(self, *args, structure=None, **kwargs):
        self.structure = structure
        super().__init__(*args, **kwargs)

    @classmethod
    def build(cls, *params, structure, size=None, rng=None, **kwargs):
        """Apply an Op of this type with this structure."""
        rng = pt.random.shared_rng(seed=None) if rng is None else rng
        op = cls(structure=structure)
        return op(*params, size=size, rng=rng, return_next_rng=True, **kwargs)[1]

    def _supp_shape_from_params(self, dist_params, param_shapes=None):
        return [pt.constant(self.structure.size, dtype="int64")]

    def kernel(self):
        """Return the compiled function of generator, rates and arrays of the structure."""
        raise NotImplementedError

    def tail(self):
        """Return the arguments of the compiled function after the generator and the rates."""
        return (*self.structure.arrays, self.structure.size)

    def rng_fn(self, rng, *args):
        """Draw in Python."""
        *params, size = args
        draw, tail = self.kernel(), self.tail()

        def core(rng, *rates):
            # Copies, since those of a batch are read-only, and the kernel would be compiled again.
            own = (rate.copy() if isinstance(rate, np.ndarray) else rate for rate in rates)
            return draw(rng, *own, *tail)

        return draw_batch(core, rng, self.ndims_params, params, size, (self.structure.size,))


def zero(rv: "TensorVariable", size: Any, *rates: "TensorVariable") -> "TensorVariable":
    """Return the mode."""
    shape = rv.shape if rv_size_is_none(size) else (*size, rv.shape[-1])
    return pt.zeros(shape)


def refuse_constant(name: str, value: "TensorVariable", *, zero: bool = False) -> None:
    """Raise at once for a constant rate that is not positive."""
    if not isinstance(value, Constant):
        return
    rates = value.data
    inside = np.isfinite(rates) & (rates >= 0 if zero else rates > 0)
    if not inside.all():
        bound = "must not be negative" if zero else "must be positive"
        raise ValueError(f"`{name}` {bound}, and finite; it is {rates}")


def check_length(shape: Any, size: int) -> None:
    """Refuse a ``shape``, or that of ``dims``, whose last entry is another than the number of coefficients.

    Raises
    ------
    ValueError
    """
    entries = shape if isinstance(shape, tuple | list) else (shape,)
    last = entries[-1] if entries else None
    if isinstance(last, Constant):
        last = last.data
    elif isinstance(last, SharedVariable):  # the length of a dimension of the model
        last = last.get_value()
    if isinstance(last, int | np.integer | np.ndarray) and int(last) != size:
        raise ValueError(
            f"`shape` or `dims` has {int(last)} entries for the coefficients, the groups hold {size}"
        )


def norms(
    value: "TensorVariable", members: Sequence[np.ndarray], maximum: bool
) -> "TensorVariable":
    """Norm of each group of coordinates in the last dimension; the gradient at zero is zero.

    Groups of similar sizes are gathered together, filled up with a zero coordinate: the graph grows
    with the logarithm of the largest size, and is at most twice as long as the groups.
    """
    p = value.shape[-1]
    batch = tuple(value.shape[k] for k in range(value.type.ndim - 1))
    filled = pt.concatenate([value, pt.zeros((*batch, 1))], axis=-1)
    widths = np.array([1 << (len(group) - 1).bit_length() for group in members])
    parts, places = [], []
    for width in np.unique(widths):
        at = np.flatnonzero(widths == width)
        index = np.full((len(at), width), -1)
        for row, g in zip(index, at, strict=True):
            group = members[int(g)]
            row[: len(group)] = group
        flat = pt.as_tensor(index.ravel())
        block = pt.take(filled, pt.switch(pt.lt(flat, 0), p, flat), axis=-1)
        block = block.reshape((*batch, len(at), int(width)))
        parts.append(_norm(block, maximum))
        places.append(at)
    together = parts[0] if len(parts) == 1 else pt.concatenate(parts, axis=-1)
    back = np.argsort(np.concatenate(places))
    return together if (back == np.arange(len(back))).all() else pt.take(together, back, axis=-1)


def _norm(block, maximum):
    if maximum:
        return pt.max(pt.abs(block), axis=-1)
    if block.type.shape[-1] == 1:
        return pt.abs(block[..., 0])
    square = pt.sum(pt.square(block), axis=-1)
    none = pt.eq(square, 0.0)  # so that NaN stays NaN
    root = pt.sqrt(pt.switch(none, np.float64(1.0), square))
    return pt.switch(none, np.float64(0.0), root)


def nuclear_norms(value: "TensorVariable", structure: Structure) -> "TensorVariable":
    """Nuclear norm of each group of coordinates in the last dimension.

    Parameters
    ----------
    value : TensorVariable, shape (..., p)
    structure : Structure
        Whose arrays are order, starts and shapes of the groups.

    Returns
    -------
    TensorVariable, shape (..., groups)
        The gradient is U V' over the singular values that are not zero, so zero at zero.
    """
    batch = tuple(value.shape[k] for k in range(value.type.ndim - 1))
    rows = value.reshape((-1, structure.size))
    of_rows: Any = NuclearNorms(structure)(rows)
    return of_rows[0].reshape((*batch, len(structure.members)))


class NuclearOp(SolverOp):
    """A compiled function of rows of coordinates and of a `Structure` of matrices."""

    __props__ = ("structure",)

    def __init__(self, structure):
        self.structure = structure

    def constants(self):
        """Return order, starts and shapes, read-only as constants of compiled graphs are.

        So Python and compiled graphs call the same machine code.
        """
        views = tuple(array.view() for array in self.structure.arrays)
        for view in views:
            view.flags.writeable = False
        return views


class NuclearNorms(NuclearOp):
    """Nuclear norms of the groups of each row of coordinates, and their gradients."""

    gufunc_signature = "(m,p)->(m,g),(m,p)"

    def make_node(self, w):
        """Apply to a matrix."""
        self.register()
        w = pt.cast(w, "float64")
        m = w.type.shape[0]
        shapes = (m, len(self.structure.members)), (m, self.structure.size)
        return Apply(self, [w], [pt.tensor(dtype="float64", shape=shape) for shape in shapes])

    def perform(self, node, inputs, output_storage):
        """Decompose."""
        output_storage[0][0], output_storage[1][0] = self.numba_function(node)(*inputs)

    def infer_shape(self, node, input_shapes):
        """Return a column for each group, and one for each coordinate."""
        m = input_shapes[0][0]
        return [(m, pt.constant(len(self.structure.members))), (m, input_shapes[0][1])]

    def pullback(self, inputs, outputs, cotangents):
        """Multiply the gradients, and their derivatives, by the cotangents."""
        (w,), (_, gradients), (norm, slope) = inputs, outputs, cotangents
        total = None
        if not isinstance(norm.type, DisconnectedType):
            group = np.empty(self.structure.size, dtype=np.int64)
            for g, members in enumerate(self.structure.members):
                group[members] = g
            total = gradients * pt.take(norm, group, axis=1)
        if not isinstance(slope.type, DisconnectedType):
            bent = NuclearCurvature(self.structure)(w, slope)
            total = bent if total is None else total + bent
        return [disconnected_type() if total is None else total]

    def numba_function(self, node):
        """Call the kernel."""
        from bayesstruct.sparse.kernels.nuclear import nuclear_norms as kernel

        order, start, shapes = self.constants()

        def call(w):
            return kernel(np.ascontiguousarray(w), order, start, shapes)

        return call


class NuclearCurvature(NuclearOp):
    """Hessian of the sum of the nuclear norms of each row of coordinates, times a vector."""

    gufunc_signature = "(m,p),(m,p)->(m,p)"

    def make_node(self, w, v):
        """Apply to two matrices."""
        self.register()
        w, v = pt.cast(w, "float64"), pt.cast(v, "float64")
        return Apply(self, [w, v], [pt.tensor(dtype="float64", shape=w.type.shape)])

    def perform(self, node, inputs, output_storage):
        """Decompose and multiply."""
        output_storage[0][0] = self.numba_function(node)(*inputs)

    def infer_shape(self, node, input_shapes):
        """Return that of the coordinates."""
        return [input_shapes[0]]

    def pullback(self, inputs, outputs, cotangents):
        """Multiply by the Hessian, which is symmetric; of third derivatives there are none."""
        (w, _), (out,) = inputs, cotangents
        return [grad_not_implemented(self, 0, w), type(self)(self.structure)(w, out)]

    def numba_function(self, node):
        """Call the kernel."""
        from bayesstruct.sparse.kernels.nuclear import nuclear_curvature as kernel

        order, start, shapes = self.constants()

        def call(w, v):
            w, v = np.ascontiguousarray(w), np.ascontiguousarray(v)
            return kernel(w, v, order, start, shapes)

        return call


def last_dimension(rates: "TensorVariable", count: int, name: str) -> "TensorVariable":
    """Return rates as (..., count): one number stands for all groups.

    Raises
    ------
    ValueError
        If the last dimension is known and is another one.
    """
    if rates.type.ndim == 0:
        return pt.full((count,), rates)
    known = rates.type.shape[-1]
    if known not in {None, 1, count}:
        raise ValueError(f"`{name}` has {known} entries; there are {count} groups")
    if known == count:
        return rates
    shape = tuple(rates.shape[k] for k in range(rates.type.ndim - 1))
    return pt.broadcast_to(rates, (*shape, count))
