"""Trees of columns and hidden nodes with states as PyTensor graphs: densities of rows, and how much neighbours say about each other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pytensor.graph.basic import Apply

from bayesstruct.core.ops import InterpretedOp

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["parent_information", "tree_row_log_likelihoods"]


def _each(parent, table, lead):
    """Yield the place in a batch, the tree and its tables."""
    parents = np.broadcast_to(parent, (*lead, parent.shape[-1]))
    tables = np.broadcast_to(table, (*lead, *table.shape[-3:]))
    for place in np.ndindex(lead):
        yield (
            place,
            np.ascontiguousarray(parents[place], np.int64),
            np.ascontiguousarray(tables[place]),
        )


class TreeRowLogLikelihoods(InterpretedOp):
    """Log probabilities of rows of states, hidden nodes being summed out."""

    __props__ = ("states",)

    def __init__(self, states):
        self.states = tuple(int(k) for k in states)

    def make_node(self, parent, table, value):
        """Apply the Op to (..., nodes), (..., nodes, K, K) and (..., p) tensors."""
        self.register()
        batch = max(parent.type.ndim - 1, table.type.ndim - 3, value.type.ndim - 1)
        return Apply(
            self, [parent, table, value], [pt.tensor(dtype="float64", shape=(None,) * batch)]
        )

    def infer_shape(self, node, input_shapes):
        """One number a row."""
        shapes = [input_shapes[0][:-1], input_shapes[1][:-3], input_shapes[2][:-1]]
        return [tuple(pt.broadcast_shape(*shapes, arrays_are_shapes=True))]

    def compute(self, parent, table, value):
        """Sum over hidden nodes, for all rows of one tree at once where there is one."""
        from bayesstruct.trees.kernels.hidden_states.messages import row_log_likelihoods

        lead = np.broadcast_shapes(parent.shape[:-1], table.shape[:-3])
        rows = np.broadcast_shapes(lead, value.shape[:-1])
        states = np.array(self.states)
        top = states[: value.shape[-1]]
        inside = ((value >= 0) & (value < top)).all(axis=-1)
        codes = np.clip(value, 0, top - 1).astype(np.int64)
        if np.prod(lead, dtype=int) == 1:
            [(_, tree, own)] = _each(parent.reshape(-1), table.reshape(table.shape[-3:]), ())
            flat = np.ascontiguousarray(codes.reshape(-1, codes.shape[-1]))
            found = row_log_likelihoods(tree, own, states, flat).reshape(codes.shape[:-1])
            return np.broadcast_to(np.where(inside, found, -np.inf), rows).copy()
        out = np.empty(rows)
        codes = np.broadcast_to(codes, (*rows, codes.shape[-1]))
        for place, tree, own in _each(parent, table, rows):
            row = np.ascontiguousarray(codes[place])[None]
            out[place] = row_log_likelihoods(tree, own, states, row)[0]
        return np.where(inside, out, -np.inf)

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False], [False], [False]]


class ParentInformation(InterpretedOp):
    """Mutual information of each node and its parent, in nats; 0 where there is none."""

    __props__ = ("states",)

    def __init__(self, states):
        self.states = tuple(int(k) for k in states)

    def make_node(self, parent, table):
        """Apply the Op to (..., nodes) and (..., nodes, K, K) tensors."""
        self.register()
        return Apply(self, [parent, table], [pt.tensor(dtype="float64", shape=parent.type.shape)])

    def infer_shape(self, node, input_shapes):
        """One number a node."""
        return [input_shapes[0]]

    def compute(self, parent, table):
        """Go away from the root with the probabilities of the states of each node."""
        out = np.zeros(parent.shape)
        for place, tree, own in _each(parent, table, parent.shape[:-1]):
            out[place] = _information(tree, own)
        return out

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False], [False]]


def _information(parent, table):
    """Mutual information of each node of one tree and its parent."""
    share, out, waiting = {0: table[0, 0]}, np.zeros(len(parent)), [0]
    for above in waiting:
        for node in np.flatnonzero(parent == above):
            joint = share[above][:, None] * table[node]
            share[node] = joint.sum(axis=0)
            own, even = joint[joint > 0.0], np.outer(share[above], share[node])[joint > 0.0]
            out[node] = max(float(own @ np.log(own / even)), 0.0)
            waiting.append(int(node))
    return out


def tree_row_log_likelihoods(
    parent: "TensorVariable",
    table: "TensorVariable",
    value: "TensorVariable",
    states: Sequence[int],
) -> "TensorVariable":
    """Log probabilities of (..., p) rows, hidden nodes being summed out.

    Parameters
    ----------
    parent, table : TensorVariable
        (..., nodes) and (..., nodes, K, K), as of :class:`bayesstruct.distributions.HiddenTree` and :class:`bayesstruct.distributions.TreeTables`.
    value : TensorVariable
    states : sequence of int
        Number of states of each node.
    """
    return TreeRowLogLikelihoods(states).make_node(parent, table, value).outputs[0]


def parent_information(
    parent: "TensorVariable", table: "TensorVariable", states: Sequence[int]
) -> "TensorVariable":
    """Mutual information of each node and its parent in nats, (..., nodes); 0 where there is none."""
    return ParentInformation(states).make_node(parent, table).outputs[0]
