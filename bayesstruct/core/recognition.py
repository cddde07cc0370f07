"""Recognise parts of a model: which variables depend on which, and what a distribution is made of."""

from contextlib import contextmanager

import numpy as np

from pytensor.graph.basic import Constant
from pytensor.graph.traversal import walk
from pytensor.scalar.basic import Second
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Shape, Shape_i

__all__ = [
    "NotRecognized",
    "check_childless",
    "check_drawn",
    "children_of",
    "claim",
    "depends_on",
    "is_claimed",
    "is_elemwise",
    "is_op",
    "only_one",
    "parameters",
    "refusals",
    "same_value",
    "unpad",
    "unpadded_parameters",
    "without_casts",
]


class NotRecognized(Exception):
    """The model has a part that keeps the precision matrix from being drawn exactly."""


@contextmanager
def refusals(head, supported):
    """Turn what is not recognised around a variable that a step is to draw into its error."""
    try:
        yield
    except NotRecognized as reason:
        raise ValueError(f"{head.name!r} cannot be drawn exactly: {reason}. {supported}.") from None


def only_one(drawn, kinds, plural, supported):
    """Return the one variable of some kinds among those that a step is to draw.

    Raises
    ------
    ValueError
        If there is none, or several.
    """
    heads = [rv for rv in drawn if is_op(rv, kinds)]
    if len(heads) != 1:
        names = ", ".join(rv.name for rv in drawn)
        raise ValueError(f"{names}: there are {len(heads)} {plural}, not one. {supported}.")
    return heads[0]


def check_drawn(variables, drawn):
    """Refuse a step that is to draw others than the variables that belong together."""
    if lost := {v.name for v in variables} ^ {v.name for v in drawn}:
        raise NotRecognized(f"{', '.join(sorted(lost))} must be drawn by one step")


def is_op(rv, kinds) -> bool:
    """Whether a variable is the output of an Op of one of these types."""
    return rv.owner is not None and isinstance(rv.owner.op, kinds)


def claim(variable, step: str):
    """Say that a variable is drawn by one step method, together with the variable at hand.

    A distribution claims what its step draws with it. ``pm.sample(model=model)`` outside of a context
    asks steps about a variable without telling them the model: they look for the claim then.

    Parameters
    ----------
    variable : TensorVariable
        A random variable.
    step : str
        ``name`` of the step method.

    Raises
    ------
    ValueError
        If another step method has claimed the variable.
    """
    owner = getattr(variable.tag, "drawn_by", None)
    if owner not in (None, step):
        raise ValueError(
            f"{variable.name!r} is drawn by the step {owner!r} already, together with another variable, and "
            f"cannot be drawn by {step!r} too: give each a variable of its own"
        )
    variable.tag.drawn_by = step


def is_claimed(variable, step: str) -> bool:
    """Whether a distribution has claimed a variable for a step method, see `claim`."""
    return getattr(variable.tag, "drawn_by", None) == step


def parameters(rv) -> tuple:
    """Distribution parameters of a random variable, as they are in the graph."""
    return tuple(rv.owner.op.dist_params(rv.owner))


def unpadded_parameters(rv) -> tuple:
    """Distribution parameters without padding dimensions and broadcasts."""
    return tuple(unpad(v) for v in parameters(rv))


def unpad(variable):
    """Look through the leading dimensions of length one and the broadcasts that PyMC adds."""
    while variable.owner is not None:
        inner = _padded(variable)
        if inner is None or inner.type.ndim > variable.type.ndim:
            break
        # A broadcast along the columns would change what a row of means is, unless it is a number.
        if inner.type.ndim > 0 and inner.type.shape[-1] == 1 != variable.type.shape[-1]:
            inner = _number(inner)
            if inner is None:
                break
        variable = inner
    return variable


def without_casts(tensor):
    """Look through conversions of type and leading dimensions of length one."""
    while tensor.owner is not None:
        op = tensor.owner.op
        cast = isinstance(op, Elemwise) and op.scalar_op.name.startswith("Cast")
        if not cast and not (isinstance(op, DimShuffle) and op.is_left_expand_dims):
            break
        tensor = tensor.owner.inputs[0]
    return tensor


def _number(variable):
    """Return the scalar of which a tensor is the padding, or None."""
    while variable.type.ndim > 0:
        owner = variable.owner
        if owner is None or not isinstance(owner.op, DimShuffle):
            return None
        variable = owner.inputs[0]
    return variable


def _padded(variable):
    """Return what a padding or broadcasting operation was applied to, or None."""
    op, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(op, DimShuffle):
        return inputs[0] if op.is_left_expand_dims else None
    if isinstance(op, Alloc):
        return inputs[0]
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, Second):
        return inputs[1]
    return None


def children_of(model, variable) -> list:
    """Random variables and potentials whose density contains the variable."""
    blocks = set(model.basic_RVs)

    def parents(node):
        return None if node in blocks or node.owner is None else node.owner.inputs

    out = []
    for rv in [*model.basic_RVs, *model.potentials]:
        if rv is variable:
            continue
        starts = rv.owner.inputs if rv in blocks else [rv]
        if variable in set(walk(starts, parents)):
            out.append(rv)
    return out


def check_childless(model, variable):
    """Refuse a variable, drawn from its law given the matrix, that something else depends on."""
    children = [] if variable is None else children_of(model, variable)
    if children:
        names = ", ".join(repr(child.name) for child in children)
        raise NotRecognized(f"{names} depends on {variable.name!r}")


def depends_on(tensors, variable) -> bool:
    """Whether the values, and not only the shapes, of tensors depend on a variable."""

    def parents(node):
        shape = node.owner is None or isinstance(node.owner.op, Shape | Shape_i)
        return None if shape else node.owner.inputs

    return variable in set(walk(tensors, parents))


def same_value(a, b) -> bool:
    """Whether two tensors are one and the same, or equal constants."""
    if isinstance(a, Constant) and isinstance(b, Constant):
        return np.array_equal(a.data, b.data)
    return a is b


def is_elemwise(tensor, kind) -> bool:
    """Whether a tensor is the result of an element-wise scalar operation of one of these types."""
    op = None if tensor.owner is None else tensor.owner.op
    return isinstance(op, Elemwise) and isinstance(op.scalar_op, kind)
