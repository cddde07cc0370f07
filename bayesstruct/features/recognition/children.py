"""Variables that depend on a set of features."""

from typing import TYPE_CHECKING

from bayesstruct.core.recognition import NotRecognized, children_of, is_op

if TYPE_CHECKING:
    import pymc as pm

    from pytensor.tensor import TensorVariable

__all__ = ["children_of_kinds"]


def children_of_kinds(model: "pm.Model", feature: "TensorVariable", kinds) -> list:
    """Return the variables that depend on features: one of each kind and no other.

    Parameters
    ----------
    model : pymc.Model
    feature : TensorVariable
    kinds : sequence of type
        Types of Ops.

    Raises
    ------
    NotRecognized
        If others depend on the features, or not all of these do.
    """
    children = children_of(model, feature)
    found = [[rv for rv in children if is_op(rv, kind)] for kind in kinds]
    if len(children) != len(kinds) or any(len(rvs) != 1 for rvs in found):
        names = ", ".join(repr(rv.name) for rv in children) or "nothing"
        raise NotRecognized(f"{names} depends on {feature.name!r}")
    return [rv for [rv] in found]
