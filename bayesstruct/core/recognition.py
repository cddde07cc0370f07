"""Recognise parts of a model: which variables depend on which, and what a distribution is made of."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from pytensor.graph.basic import Constant
from pytensor.graph.traversal import walk
from pytensor.scalar.basic import Second
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Shape, Shape_i

from bayesstruct.core.tensors import random_ancestors

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor.variable import TensorVariable

Kinds = type | tuple[type, ...]

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
    """A part of the model does not have a form that a step method or a solver knows.

    The message says which variable differs, and how; it completes the sentence "because ...".
    """


@contextmanager
def refusals(head: "TensorVariable", supported: str) -> Iterator[None]:
    """Raise a `ValueError` in place of a `NotRecognized`, for the constructor of a step method.

    Parameters
    ----------
    head : TensorVariable
        The variable that the step method is asked to draw.
    supported : str
        Sentence that says which models the step method supports, without a full stop.
    """
    try:
        yield
    except NotRecognized as reason:
        raise ValueError(f"{head.name!r} cannot be drawn exactly: {reason}. {supported}.") from None


def only_one(
    drawn: Iterable["TensorVariable"], kinds: Kinds, plural: str, supported: str
) -> "TensorVariable":
    """Return the only variable with a distribution of these types among those to be drawn.

    Raises
    ------
    ValueError
        If there is none, or several.
    """
    heads = [rv for rv in drawn if is_op(rv, kinds)]
    if len(heads) != 1:
        names = ", ".join(str(rv.name) for rv in drawn)
        apart = " Sample models of one kind one after the other." if len(heads) > 1 else ""
        raise ValueError(f"{names}: there are {len(heads)} {plural}, not one. {supported}.{apart}")
    return heads[0]


def check_drawn(variables: Iterable["TensorVariable"], drawn: Iterable["TensorVariable"]) -> None:
    """Raise `NotRecognized` unless a step method draws exactly the variables that belong together."""
    if lost := {str(v.name) for v in variables} ^ {str(v.name) for v in drawn}:
        raise NotRecognized(f"{', '.join(sorted(lost))} must be drawn by one step")


def is_op(rv: "TensorVariable", kinds: Kinds) -> bool:
    """Whether a variable is the output of an Op of one of these types."""
    return rv.owner is not None and isinstance(rv.owner.op, kinds)


def claim(variable: "TensorVariable", step: str, *, instead_of: str | None = None) -> None:
    """Reserve a variable for one step method.

    A distribution claims the variables that its step method draws together with it. When
    ``pm.sample(model=model)`` is called outside of a context, PyMC asks step methods about single
    variables without telling them the model; the claim is then all they know.

    Parameters
    ----------
    variable : TensorVariable
        A random variable.
    step : str
        ``name`` of the step method.
    instead_of : str, optional
        ``name`` of a more general step method whose claim this one replaces.

    Raises
    ------
    ValueError
        If another step method has claimed the variable.
    """
    if not random_ancestors(variable):
        return  # data, which no step method draws
    owner = getattr(variable.tag, "drawn_by", None)
    if owner not in (None, step, instead_of):
        raise ValueError(
            f"{variable.name!r} is drawn by the step {owner!r} already, together with another variable, and "
            f"cannot be drawn by {step!r} too: give each a variable of its own"
        )
    variable.tag.drawn_by = step


def is_claimed(variable: "TensorVariable", step: str) -> bool:
    """Whether a variable is reserved for a step method, see `claim`."""
    return getattr(variable.tag, "drawn_by", None) == step


def parameters(rv: "TensorVariable") -> tuple["TensorVariable", ...]:
    """Return the distribution parameters of a random variable, as they stand in the graph."""
    return tuple(rv.owner.op.dist_params(rv.owner))


def unpadded_parameters(rv: "TensorVariable") -> tuple["TensorVariable", ...]:
    """Return the distribution parameters without padding dimensions and broadcasts."""
    return tuple(unpad(v) for v in parameters(rv))


def unpad(variable: "TensorVariable") -> "TensorVariable":
    """Return a tensor without the leading dimensions of length one and the broadcasts that PyMC adds."""
    while variable.owner is not None:
        inner = _padded(variable)
        if inner is None or inner.type.ndim > variable.type.ndim:
            break
        # A broadcast along the columns changes the meaning of a row, unless the inner tensor is a number.
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
    """Return the scalar that a tensor pads with dimensions, or None."""
    while variable.type.ndim > 0:
        owner = variable.owner
        if owner is None or not isinstance(owner.op, DimShuffle):
            return None
        variable = owner.inputs[0]
    return variable


def _padded(variable):
    """Return the input of a padding or broadcasting operation, or None for other operations."""
    op, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(op, DimShuffle):
        return inputs[0] if op.is_left_expand_dims else None
    if isinstance(op, Alloc):
        return inputs[0]
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, Second):
        return inputs[1]
    return None


def children_of(model: "Model", variable: "TensorVariable") -> list["TensorVariable"]:
    """Return the random variables and potentials whose density depends directly on a variable."""
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


def check_childless(model: "Model", variable: "TensorVariable | None") -> None:
    """Raise `NotRecognized` if anything in the model depends on a variable."""
    if variable is None:
        return
    if children := children_of(model, variable):
        names = ", ".join(repr(child.name) for child in children)
        raise NotRecognized(f"{names} depends on {variable.name!r}")


def depends_on(tensors: Iterable["TensorVariable"], variable: "TensorVariable") -> bool:
    """Whether the values of tensors, and not only their shapes, depend on a variable."""

    def parents(node):
        shape = node.owner is None or isinstance(node.owner.op, Shape | Shape_i)
        return None if shape else node.owner.inputs

    return variable in set(walk(tensors, parents))


def same_value(a: "TensorVariable", b: "TensorVariable") -> bool:
    """Whether two tensors are the same object or equal constants."""
    if isinstance(a, Constant) and isinstance(b, Constant):
        return np.array_equal(a.data, b.data)
    return a is b


def is_elemwise(tensor: "TensorVariable", kind: Kinds) -> bool:
    """Whether a tensor is the result of an element-wise operation of one of these scalar types."""
    op = None if tensor.owner is None else tensor.owner.op
    return isinstance(op, Elemwise) and isinstance(op.scalar_op, kind)
