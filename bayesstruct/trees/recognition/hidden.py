"""Recognise the part of a model that is a tree with hidden nodes, its parameters and normal rows, for its step."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytensor.tensor.random.basic import LogNormalRV

from bayesstruct.core.recognition import (
    NotRecognized,
    children_of,
    is_claimed,
    is_op,
    parameters,
    same_value,
    unpad,
    unpadded_parameters,
)
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.precision.priors.rows import (
    GraphicalNormalRV,
    IncompleteGraphicalNormalRV,
    MissingCellsRV,
)
from bayesstruct.trees.ops.hidden_trees import HiddenTreePrecision
from bayesstruct.trees.priors.gaussian import TreeMeansRV
from bayesstruct.trees.priors.hidden_trees import HIDDEN_STEP, TreeCorrelationsRV
from bayesstruct.trees.recognition.checks import check_free, refuse_others

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor import TensorVariable

__all__ = ["HiddenTreePart", "hidden_tree_part", "the_one"]

_ROWS = (GraphicalNormalRV, IncompleteGraphicalNormalRV)


@dataclass(frozen=True, eq=False)
class HiddenTreePart:
    """A tree with hidden nodes, its parameters, and normal rows.

    Attributes
    ----------
    tree, correlations, deviations, mean, rows : TensorVariable
    missing : TensorVariable, optional
        Missing values of the rows.
    """

    tree: "TensorVariable"
    correlations: "TensorVariable"
    deviations: "TensorVariable"
    mean: "TensorVariable"
    rows: "TensorVariable"
    missing: "TensorVariable | None"

    @property
    def variables(self) -> list["TensorVariable"]:
        """Random variables that are drawn together."""
        own = [self.tree, self.correlations, self.deviations, self.mean]
        return own if self.missing is None else [*own, self.missing]


def hidden_tree_part(model: "Model", tree: "TensorVariable") -> HiddenTreePart:
    """Collect what a tree with hidden nodes is drawn with.

    Raises
    ------
    NotRecognized
        Says which variable stands in the way.
    """
    if tree.type.ndim != 1:
        raise NotRecognized(f"{tree.name!r} holds several trees; make a variable of each")
    children = children_of(model, tree)
    correlations = the_one(children, (TreeCorrelationsRV,), tree, "TreeCorrelations")
    mean = the_one(children, (TreeMeansRV,), tree, "TreeMeans")
    rows = the_one(children, _ROWS, tree, "observed GraphicalNormal")
    gaps = [rv for rv in children if is_op(rv, MissingCellsRV)]
    precision = unpadded_parameters(mean)[0]
    deviations = _deviations(model, precision, (tree, correlations))
    if len(gaps) != is_op(rows, IncompleteGraphicalNormalRV):
        raise NotRecognized(f"{len(gaps)} variables are missing values of {rows.name!r}")
    part = HiddenTreePart(tree, correlations, deviations, mean, rows, gaps[0] if gaps else None)
    refuse_others(model, part.variables, part.rows)
    _check_parameters(part, precision)
    check_free(model, part.variables, part.rows)
    return part


def the_one(variables, kinds, parent, name):
    """Return the only one of some variables that is of these kinds.

    Raises
    ------
    NotRecognized
        If there is none, or several.
    """
    found = [rv for rv in variables if is_op(rv, kinds)]
    if len(found) != 1:
        raise NotRecognized(
            f"{len(found)} variables that depend on {parent.name!r} are a {name}, not one"
        )
    return found[0]


def _deviations(model, precision, known):
    """Return the standard deviations that a precision matrix was made of."""
    made = precision.owner.inputs if is_op(precision, HiddenTreePrecision) else ()
    if [unpad(v) for v in made[:2]] != [*known]:
        raise NotRecognized(
            f"the matrix of the means is not made of {known[0].name!r} and {known[1].name!r} by hidden_tree_precision"
        )
    deviations = unpad(made[2])
    if not is_op(deviations, LogNormalRV) or not is_claimed(deviations, HIDDEN_STEP):
        raise NotRecognized("the standard deviations are not those of bs.models.latent_tree")
    return deviations


def _check_parameters(part, precision):
    """Refuse hyperparameters that are random, and rows with other means or another matrix."""
    hyper = [*parameters(part.tree), parameters(part.correlations)[1]]
    hyper += [*parameters(part.deviations), parameters(part.mean)[1]]
    if random_ancestors(*hyper):
        raise NotRecognized(f"a parameter of the prior of {part.tree.name!r} is random")
    used = unpadded_parameters(part.rows)
    if not (used[0] is part.mean and used[1] is precision):
        raise NotRecognized(f"{part.rows.name!r} has other means or another matrix")
    if random_ancestors(*used[2:]):
        raise NotRecognized(f"location or scale of {part.rows.name!r} is random")
    if part.missing is not None:
        *shared, _, mask = unpadded_parameters(part.missing)
        if not all(map(same_value, [*shared, mask], used)):
            raise NotRecognized(
                f"{part.missing.name!r} has other parameters than {part.rows.name!r}"
            )
