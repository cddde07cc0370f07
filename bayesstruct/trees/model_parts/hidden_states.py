"""Parts of models of trees of columns of states and hidden nodes: the random tree with its tables, and the rows given it."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from bayesstruct.core.tables.codings import record_levels
from bayesstruct.core.tables.rows import remember_rows
from bayesstruct.data.coding import coding_of
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.networks.model_parts import ROWS
from bayesstruct.networks.priors.records import NetworkStates
from bayesstruct.trees.model_parts.hidden import record_hidden_tree
from bayesstruct.trees.ops.hidden_states import parent_information
from bayesstruct.trees.ops.hidden_trees import neighbour_correlations
from bayesstruct.trees.priors.hidden_states import HiddenTreeStates, TreeTables
from bayesstruct.trees.priors.hidden_trees import HiddenTree
from bayesstruct.trees.priors.records import HiddenNodeStates

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

    from bayesstruct.data.states import StateTable

__all__ = ["MOST_HIDDEN_STATES", "observe_hidden_states", "random_hidden_state_tree"]

MOST_HIDDEN_STATES = 5  # states of a hidden node are renamed in all ways in each move
_MOST_STATES = 12  # of a column: each move fits tables of so many lines and columns


def random_hidden_state_tree(
    table: "StateTable", most: int, weight: float, size: float, hidden_states: int | None
) -> tuple["TensorVariable", "TensorVariable"]:
    """Add the tree as ``parent`` and the tables along it as ``parent_table``, begun at the best tree of the columns alone.

    Parameters
    ----------
    table : StateTable
    most : int
        Maximum number of hidden nodes.
    weight : float
        Of each hidden node in the prior of the tree.
    size : float
        Rows that the prior of the tables is worth.
    hidden_states : int or None
        States of a hidden node; None for those of the columns if all have the same number and it is no more than 5, else 2.
    """
    wide = [name for name, k in zip(table.names, table.states, strict=True) if k > _MOST_STATES]
    if wide:
        raise TableError(
            f"{column_list(wide)}: more than {_MOST_STATES} states; merge rare ones, or use bs.models.tree(score='bdeu')"
        )
    common = set(table.states)
    usual = max(common) if len(common) == 1 and max(common) <= MOST_HIDDEN_STATES else 2
    hidden = usual if hidden_states is None else hidden_states
    record_levels(table)
    NetworkStates(np.array(table.states)).record()
    record_hidden_tree(table, most, weight)
    HiddenNodeStates(hidden).record()
    model, p = pm.modelcontext(None), table.p
    largest = max(*table.states, hidden if most else 0)
    model.add_coord("parent_code", range(largest))
    model.add_coord("code", range(largest))
    tree = HiddenTree("parent", p, weight, most, dims="tree_node", start=_start(table, most))
    own = TreeTables(
        "parent_table",
        tree,
        size,
        states=table.states,
        hidden_states=hidden,
        dims=("tree_node", "parent_code", "code"),
    )
    information = parent_information(tree, own, own.owner.op.states)
    pm.Deterministic("parent_information", information, dims="tree_node")
    edge, strength = neighbour_correlations(tree, information, p)
    pm.Deterministic("edge", edge, dims="pair")
    pm.Deterministic("weight", strength, dims="pair")
    return tree, own


def observe_hidden_states(
    table: "StateTable", tree: "TensorVariable", tables: "TensorVariable"
) -> None:
    """Add the rows, given the tree and its tables."""
    HiddenTreeStates("x", tree, tables, observed=table.codes, dims=ROWS)
    remember_rows(coding_of(table), _observe_others)


def _observe_others(table):
    """Add the rows of another table to a model without rows."""
    from bayesstruct.core.tables.codings import refuse_gaps

    model: Any = pm.modelcontext(None)
    refuse_gaps(table)
    observe_hidden_states(table, model["parent"], model["parent_table"])


def _start(table, most) -> np.ndarray:
    """Return the tree of the columns of the greatest likelihood, in the form with a root."""
    import networkx as nx

    from bayesstruct.trees.kernels.hidden_trees import rooted_parents  # with Numba
    from bayesstruct.trees.kernels.information import pairwise_information

    information = pairwise_information(table.codes, np.array(table.states))
    source, target = table.edge_index
    full: nx.Graph = nx.Graph()
    full.add_weighted_edges_from(
        zip(source.tolist(), target.tolist(), information[source, target], strict=True)
    )
    tree = nx.maximum_spanning_tree(full)
    return rooted_parents(list(tree.edges), table.p, table.p + most)
