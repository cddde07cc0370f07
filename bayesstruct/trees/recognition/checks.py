"""Checks that are the same for all trees with parameters and rows."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bayesstruct.core.recognition import NotRecognized, children_of

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor import TensorVariable

__all__ = ["check_free", "refuse_dependants", "refuse_others"]


def refuse_dependants(variables: Iterable["TensorVariable"], parent: "TensorVariable") -> None:
    """Refuse variables that depend on another one, if there are any."""
    names = [repr(rv.name) for rv in variables]
    if names:
        verb = "depends" if len(names) == 1 else "depend"
        raise NotRecognized(f"{', '.join(names)} {verb} on {parent.name!r}")


def refuse_others(model: "Model", drawn: list["TensorVariable"], rows: "TensorVariable") -> None:
    """Refuse whatever depends on variables that are drawn together, besides these and the rows."""
    own = {*drawn, rows}
    for rv in drawn:
        refuse_dependants([child for child in children_of(model, rv) if child not in own], rv)


def check_free(model: "Model", drawn: list["TensorVariable"], rows: "TensorVariable") -> None:
    """Refuse parameters that are observed or transformed, and rows that are not observed."""
    if rows not in model.observed_RVs:
        raise NotRecognized(f"{rows.name!r} is not observed")
    for rv in drawn:
        if rv not in model.free_RVs or model.rvs_to_transforms.get(rv) is not None:
            raise NotRecognized(f"{rv.name!r} is observed or has a transform")
