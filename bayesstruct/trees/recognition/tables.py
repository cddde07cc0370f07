"""Recognise the part of a model that is a tree, its parameters and a table, for its step."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytensor.tensor as pt

from pymc.distributions.transforms import LogOddsTransform

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
from bayesstruct.core.tensors import is_beta, random_ancestors
from bayesstruct.networks.priors.discrete_network import DiscreteNetworkRV, ProbabilityTablesRV
from bayesstruct.networks.priors.incomplete_mixed import (
    IncompleteMixedNetworkRV,
    MissingMixedValuesRV,
)
from bayesstruct.networks.priors.incomplete_networks import IncompleteDiscreteNetworkRV
from bayesstruct.networks.priors.mixed_networks import MixedNetworkRV
from bayesstruct.networks.recognition.tables import DiscreteTable
from bayesstruct.precision.priors.rows import (
    GraphicalNormalRV,
    IncompleteGraphicalNormalRV,
    MissingCellsRV,
)
from bayesstruct.trees.ops.spanning_trees import RootedTree
from bayesstruct.trees.priors.gaussian import TreeMeansRV, TreePrecisionRV
from bayesstruct.trees.priors.mixed_tree import MixedSpanningTreeRV, MixedTreeParametersRV
from bayesstruct.trees.priors.spanning_forest import SpanningForestRV
from bayesstruct.trees.priors.spanning_tree import STEP, SpanningTreeRV
from bayesstruct.trees.recognition.checks import check_free, refuse_dependants

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor import TensorVariable

__all__ = [
    "GRAPHS",
    "MixedPart",
    "NumberPart",
    "StatePart",
    "TreePart",
    "claimed_share",
    "is_tree_variable",
    "tree_of",
    "tree_part",
]

#: Ops of the graphs that are drawn.
GRAPHS = (SpanningTreeRV, SpanningForestRV, MixedSpanningTreeRV)
_NUMBERS = (GraphicalNormalRV, IncompleteGraphicalNormalRV)
_STATES = (DiscreteNetworkRV, IncompleteDiscreteNetworkRV)
_MIXED = (MixedNetworkRV, IncompleteMixedNetworkRV)


@dataclass(frozen=True, eq=False)
class TreePart:
    """A random tree on which nothing depends.

    Attributes
    ----------
    tree : TensorVariable
    """

    tree: "TensorVariable"

    @property
    def log_weights(self) -> "TensorVariable":
        """Log weights of the pairs; of a forest after the root weights, which are those of pairs with the ground."""
        weights, *roots = parameters(self.tree)
        return pt.concatenate([*roots, weights], axis=-1) if roots else weights

    @property
    def variables(self) -> list["TensorVariable"]:
        """Random variables that are drawn together."""
        return [self.tree]


@dataclass(frozen=True, eq=False)
class NumberPart(TreePart):
    """A tree with the parameters of normal rows.

    Attributes
    ----------
    precision, mean, rows : TensorVariable
    missing : TensorVariable, optional
        Missing values of the rows.
    """

    precision: "TensorVariable"
    mean: "TensorVariable"
    rows: "TensorVariable"
    missing: "TensorVariable | None"

    @property
    def variables(self) -> list["TensorVariable"]:
        """Random variables that are drawn together."""
        own = [self.tree, self.precision, self.mean]
        return own if self.missing is None else [*own, self.missing]


@dataclass(frozen=True, eq=False)
class StatePart(TreePart):
    """A tree with tables of probabilities and rows of states.

    Attributes
    ----------
    tables, rows : TensorVariable
    table : DiscreteTable
        Values of the rows, and the prior of the tables.
    missing : TensorVariable, optional
        Missing states of the rows.
    """

    tables: "TensorVariable"
    rows: "TensorVariable"
    table: DiscreteTable
    missing: "TensorVariable | None"

    @property
    def mask(self):
        """Which values are missing."""
        return self.rows.owner.op.mask

    @property
    def variables(self) -> list["TensorVariable"]:
        """Random variables that are drawn together."""
        own = [self.tree, self.tables]
        return own if self.missing is None else [*own, self.missing]


@dataclass(frozen=True, eq=False)
class MixedPart(TreePart):
    """A tree with the parameters of rows of numbers and states.

    Attributes
    ----------
    vector, rows : TensorVariable
        Parameters, and the observed table.
    missing : TensorVariable, optional
        Missing values of the rows.
    """

    vector: "TensorVariable"
    rows: "TensorVariable"
    missing: "TensorVariable | None"

    @property
    def mask(self):
        """Which values are missing."""
        return self.rows.owner.op.mask

    @property
    def variables(self) -> list["TensorVariable"]:
        """Random variables that are drawn together."""
        own = [self.tree, self.vector]
        return own if self.missing is None else [*own, self.missing]


def tree_of(variable: "TensorVariable") -> "TensorVariable | None":
    """Return the random tree on which the distribution of a variable depends as a parameter of it, else None."""
    if is_op(variable, (ProbabilityTablesRV, *_STATES, *_MIXED)):
        graph = unpadded_parameters(variable)[0]
        if is_op(graph, RootedTree):
            return unpad(graph.owner.inputs[0])
    if is_op(variable, (TreePrecisionRV, MixedTreeParametersRV)):
        return unpadded_parameters(variable)[0]
    if is_op(variable, (MissingCellsRV, TreeMeansRV)):
        matrix = unpadded_parameters(variable)[0 if is_op(variable, TreeMeansRV) else 1]
        return tree_of(matrix) if is_op(matrix, TreePrecisionRV) else None
    return None


def tree_part(model: "Model", tree: "TensorVariable") -> TreePart:
    """Collect what the draws of a tree depend on, and what is drawn with it.

    Raises
    ------
    NotRecognized
        Says which variable stands in the way.
    """
    if tree not in model.free_RVs:
        raise NotRecognized(f"{tree.name!r} is observed")
    if tree.type.ndim != 1:
        raise NotRecognized(f"{tree.name!r} holds several trees; make a variable of each")
    children = children_of(model, tree)
    if not children:
        return TreePart(tree)
    if any(is_op(child, TreePrecisionRV) for child in children):
        return _numbers(model, tree, children)
    if any(is_op(child, MixedTreeParametersRV) for child in children):
        return _mixed(model, tree, children)
    if not any(is_op(child, (ProbabilityTablesRV, *_STATES)) for child in children):
        refuse_dependants(children, tree)
    return _states(model, tree, children)


def claimed_share(model: "Model", part: TreePart) -> "TensorVariable | None":
    """Return the share of edges of a forest that is drawn together with it, if there is one.

    That is a beta variable with fixed shapes which :func:`bayesstruct.trees.model_parts.random_forest` has claimed: log weights of edges
    are equal and those of roots as they have to be for the number of edges to be binomial.

    Raises
    ------
    NotRecognized
        If something else depends on it.
    """
    if not is_op(part.tree, SpanningForestRV):
        return None
    found = [rv for rv in model.free_RVs if is_beta(rv) and is_claimed(rv, STEP)]
    if not found:
        return None
    [share] = found
    if children_of(model, share) != [part.tree]:
        raise NotRecognized(f"something else than {part.tree.name!r} depends on {share.name!r}")
    if random_ancestors(*parameters(share)) or not isinstance(
        model.rvs_to_transforms.get(share), LogOddsTransform
    ):
        raise NotRecognized(f"{share.name!r} has random shapes or another transform")
    return share


def _numbers(model, tree, children):
    precision = _the_one(children, TreePrecisionRV, tree)
    refuse_dependants([rv for rv in children if rv is not precision], tree)
    below = children_of(model, precision)
    mean = _the_one(below, TreeMeansRV, precision)
    rows = _the_one(below, _NUMBERS, precision)
    gaps = [rv for rv in below if is_op(rv, MissingCellsRV)]
    refuse_dependants([rv for rv in below if rv not in (mean, rows, *gaps)], precision)
    refuse_dependants([rv for rv in children_of(model, mean) if rv not in (rows, *gaps)], mean)
    incomplete = is_op(rows, IncompleteGraphicalNormalRV)
    if len(gaps) != incomplete:
        raise NotRecognized(f"{len(gaps)} variables are missing values of {rows.name!r}")
    missing = gaps[0] if gaps else None
    part = NumberPart(tree, precision, mean, rows, missing)
    check_free(model, part.variables, part.rows)
    used = unpadded_parameters(rows)
    if not (used[0] is mean and used[1] is precision):
        raise NotRecognized(f"{rows.name!r} has other means or another matrix")
    if random_ancestors(*used[2:]):
        raise NotRecognized(f"location or scale of {rows.name!r} is random")
    if missing is not None:
        *shared, _, mask = unpadded_parameters(missing)
        if not all(map(same_value, [*shared, mask], used)):
            raise NotRecognized(f"{missing.name!r} has other parameters than {rows.name!r}")
        refuse_dependants(children_of(model, missing), missing)
    return part


def _states(model, tree, children):
    tables = _the_one(children, ProbabilityTablesRV, tree)
    rows = _the_one(children, _STATES, tree)
    refuse_dependants([rv for rv in children if rv not in (tables, rows)], tree)
    refuse_dependants([rv for rv in children_of(model, tables) if rv is not rows], tables)
    _, used, *others = unpadded_parameters(rows)
    if used is not tables or not tree_of(tables) is tree_of(rows) is tree:
        raise NotRecognized(f"{rows.name!r} has another graph or other tables")
    missing = others[-1] if is_op(rows, IncompleteDiscreteNetworkRV) else None
    if missing is not None:
        if missing not in model.free_RVs:
            raise NotRecognized("the missing values are no variable of the model")
        refuse_dependants([rv for rv in children_of(model, missing) if rv is not rows], missing)
    table = DiscreteTable.of(model, rows, {ProbabilityTablesRV: tables})
    if not table.free.all():
        raise NotRecognized(
            f"values of {rows.name!r} were set from outside, and a tree has no directions"
        )
    part = StatePart(tree, tables, rows, table, missing)
    check_free(model, part.variables, part.rows)
    return part


def _mixed(model, tree, children):
    vector = _the_one(children, MixedTreeParametersRV, tree)
    rows = _the_one(children, _MIXED, tree)
    refuse_dependants([rv for rv in children if rv not in (vector, rows)], tree)
    refuse_dependants([rv for rv in children_of(model, vector) if rv is not rows], vector)
    _, used, *units, _ = unpadded_parameters(rows)[:5]
    missing = unpadded_parameters(rows)[5] if is_op(rows, IncompleteMixedNetworkRV) else None
    layout, numbers = rows.owner.op.layout, tuple(not k for k in rows.owner.op.layout.states)
    if used is not vector or tree_of(rows) is not tree or vector.owner.op.layout != layout:
        raise NotRecognized(f"{rows.name!r} has another graph or other parameters")
    if not is_op(tree, MixedSpanningTreeRV) or tree.owner.op.outer != numbers:
        raise NotRecognized(
            f"{tree.name!r} is no MixedSpanningTree of the numbers of {rows.name!r}"
        )
    if random_ancestors(*units):
        raise NotRecognized(f"location or scale of {rows.name!r} is random")
    if missing is not None:
        same = is_op(missing, MissingMixedValuesRV)
        if not same or missing.owner.op.mask is not rows.owner.op.mask:
            raise NotRecognized(f"{missing.name!r} are not the values that {rows.name!r} misses")
        refuse_dependants([rv for rv in children_of(model, missing) if rv is not rows], missing)
    part = MixedPart(tree, vector, rows, missing)
    check_free(model, part.variables, part.rows)
    return part


def _the_one(variables, kinds, parent):
    """Return the only variable of these kinds."""
    found = [rv for rv in variables if is_op(rv, kinds)]
    if len(found) != 1:
        raise NotRecognized(
            f"{len(found)} variables of the kind that is needed depend on {parent.name!r}, not one: "
            f"{', '.join(repr(rv.name) for rv in variables)}"
        )
    return found[0]


def is_tree_variable(variable: "TensorVariable") -> bool:
    """Whether a variable is a tree, or one of its parameters or missing numbers by its type."""
    return is_op(variable, (*GRAPHS, TreePrecisionRV, TreeMeansRV, MixedTreeParametersRV)) or (
        is_op(variable, (ProbabilityTablesRV, MissingCellsRV)) and tree_of(variable) is not None
    )
