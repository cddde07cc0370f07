"""Recognise the part of a model that is a tree with hidden nodes, its tables and rows of states, for its step."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    is_op,
    parameters,
    unpadded_parameters,
)
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.trees.priors.hidden_states import HiddenTreeStatesRV, TreeTablesRV
from bayesstruct.trees.recognition.checks import check_free, refuse_others
from bayesstruct.trees.recognition.hidden import the_one

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor import TensorVariable

__all__ = ["HiddenStatesPart", "hidden_states_part"]


@dataclass(frozen=True, eq=False)
class HiddenStatesPart:
    """A tree with hidden nodes, its tables, and rows of states.

    Attributes
    ----------
    tree, tables, rows : TensorVariable
    """

    tree: "TensorVariable"
    tables: "TensorVariable"
    rows: "TensorVariable"

    @property
    def variables(self) -> list["TensorVariable"]:
        """Random variables that are drawn together."""
        return [self.tree, self.tables]


def hidden_states_part(model: "Model", tree: "TensorVariable") -> HiddenStatesPart:
    """Collect what a tree with hidden nodes is drawn with.

    Raises
    ------
    NotRecognized
        Says which variable stands in the way.
    """
    if tree.type.ndim != 1:
        raise NotRecognized(f"{tree.name!r} holds several trees; make a variable of each")
    children = children_of(model, tree)
    tables = the_one(children, (TreeTablesRV,), tree, "TreeTables")
    rows = the_one(children, (HiddenTreeStatesRV,), tree, "observed HiddenTreeStates")
    part = HiddenStatesPart(tree, tables, rows)
    refuse_others(model, part.variables, rows)
    check_free(model, part.variables, rows)
    if random_ancestors(*parameters(tree), parameters(tables)[1]):
        raise NotRecognized(f"a parameter of the prior of {tree.name!r} is random")
    used = unpadded_parameters(rows)
    if not (used[0] is tree and used[1] is tables and is_op(rows, HiddenTreeStatesRV)):
        raise NotRecognized(f"{rows.name!r} has another tree or other tables")
    return part
