"""Sums over trees as PyTensor operations with derivatives, and trees as graphs with arrows from a root."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply

from bayesstruct.core.ops import InterpretedOp
from bayesstruct.core.tensors import as_float
from bayesstruct.graphs.spanning_trees.indicators import (
    indicators,
    is_forest,
    is_spanning_tree,
    lines_of,
    node_count,
    pair_matrix,
    pair_values,
)
from bayesstruct.graphs.spanning_trees.sums import (
    SpanningTrees,
    log_tree_sum,
    rooted,
    rooted_forest,
)
from bayesstruct.graphs.spanning_trees.two_kinds import maximum_tree_of

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

    from bayesstruct.networks.kernels.mixed_layout import MixedLayout

__all__ = [
    "Components",
    "EdgeStrengths",
    "LogTreeSum",
    "MaximumTree",
    "MutualInformation",
    "RootedTree",
    "TreeProbabilities",
    "away_from_root",
    "components_of",
    "edge_strengths",
    "is_tree",
    "log_tree_normaliser",
    "maximum_tree",
    "mutual_information",
    "tree_probabilities",
]


class _OfPairs(InterpretedOp):
    """An Op on (..., pairs) vectors that works on one vector at a time."""

    __props__: tuple[str, ...] = ()
    dtype = "float64"

    def core_shape(self, pairs):
        """Return the shape of the output of one vector."""
        return ()

    def core(self, vector):
        """Return the output of one vector."""
        raise NotImplementedError

    def make_node(self, vectors):
        """Apply the Op."""
        self.register()
        *batch, pairs = vectors.type.shape
        core = self.core_shape(pairs)
        return Apply(self, [vectors], [pt.tensor(dtype=self.dtype, shape=(*batch, *core))])

    def infer_shape(self, node, input_shapes):
        """Shape of the batch, and of one output."""
        [shape] = input_shapes
        return [(*shape[:-1], *self.core_shape(shape[-1]))]

    def compute(self, vectors):
        """Compute from an array, one vector after the other."""
        found = [self.core(vector) for vector in vectors.reshape(-1, vectors.shape[-1])]
        core = np.shape(found[0]) if found else self.core_shape(vectors.shape[-1])
        return np.array(found, self.dtype).reshape((*vectors.shape[:-1], *core))

    def connection_pattern(self, node):
        """No derivatives, unless a subclass has them."""
        return [[False]]


class LogTreeSum(_OfPairs):
    """Log of the sum over all spanning trees of the products of their weights, from log weights of the pairs."""

    def core(self, vector):
        """Sum over the trees of one graph; NaN where a weight is none."""
        if np.isnan(vector).any() or (vector == np.inf).any():
            return np.nan
        return log_tree_sum(pair_matrix(vector, -np.inf))

    def connection_pattern(self, node):
        """Differentiable."""
        return [[True]]

    def pullback(self, inputs, outputs, cotangents):
        """Return the probabilities of the edges: they are the derivatives."""
        if isinstance(cotangents[0].type, DisconnectedType):
            return [disconnected_type()]
        return [cotangents[0][..., None] * tree_probabilities(inputs[0])]


class TreeProbabilities(_OfPairs):
    """Probability of each pair to be an edge of a tree, from log weights of the pairs."""

    def core_shape(self, pairs):
        """One probability a pair."""
        return (pairs,)

    def core(self, vector):
        """Return the probabilities of one graph; NaN if it has no tree."""
        if not np.isfinite(LogTreeSum().core(vector)):
            return np.full(len(vector), np.nan)
        return pair_values(SpanningTrees(pair_matrix(vector)).probabilities)

    def connection_pattern(self, node):
        """Differentiable."""
        return [[True]]

    def pullback(self, inputs, outputs, cotangents):
        r"""Multiply by the covariance of the indicators of the edges.

        That of two pairs e and f is :math:`-w_e w_f (b_e' G b_f)^2`, G being the inverse of the Laplacian matrix and
        :math:`b_e` the difference of the two unit vectors of a pair, so that its product with g is
        :math:`P_e g_e - w_e b_e' G M G b_e` with the Laplacian matrix M of the weights :math:`w g`.
        """
        [logs], [g] = inputs, cotangents
        if isinstance(g.type, DisconnectedType):
            return [disconnected_type()]
        n = _nodes(logs)
        weights = pt.exp(logs - logs.max(axis=-1, keepdims=True))
        inverse = pt.linalg.inv(_laplacian(weights, n)[..., 1:, 1:])
        inner = inverse @ _laplacian(weights * g, n)[..., 1:, 1:] @ inverse
        spread = pt.zeros((*logs.shape[:-1], n, n))[..., 1:, 1:].set(inner)
        first, second = np.triu_indices(n, 1)
        ends = spread[..., first, first] + spread[..., second, second]
        return [outputs[0] * g - weights * (ends - 2.0 * spread[..., first, second])]


class _IsTree(_OfPairs):
    """Whether 0/1 vectors are spanning trees."""

    dtype = "bool"

    def core(self, vector):
        """Look at one vector."""
        return is_spanning_tree(vector)


class MaximumTree(_OfPairs):
    """Spanning tree with the greatest sum of weights, as a 0/1 vector; `outer` marks outer nodes of two kinds."""

    __props__ = ("outer",)
    dtype = "int8"

    def __init__(self, outer=None):
        self.outer = outer

    def core_shape(self, pairs):
        """One indicator a pair."""
        return (pairs,)

    def core(self, vector):
        """Return the tree of one graph."""
        matrix = pair_matrix(vector, -np.inf)
        return indicators(maximum_tree_of(matrix, self.outer), len(matrix))


class RootedTree(_OfPairs):
    """Trees and forests as directed graphs away from roots: 1 at (parent, child)."""

    __props__ = ("nodes", "root")
    dtype = "int8"

    def __init__(self, nodes, root=0):
        self.nodes, self.root = nodes, root

    def core_shape(self, pairs):
        """Return the shape of a square matrix."""
        return self.nodes, self.nodes

    def core(self, vector):
        """Direct the lines of one forest; of any other graph nothing."""
        dag = np.zeros((self.nodes, self.nodes), np.int8)
        if is_forest(vector):
            parent = rooted_forest(lines_of(vector), self.nodes, self.root)
            child = np.flatnonzero(parent >= 0)
            dag[parent[child], child] = 1
        return dag


class Components(_OfPairs):
    """Components of forests: row k has ones at the nodes of component k; zeros for a graph with a cycle."""

    __props__ = ("nodes",)
    dtype = "int8"

    def __init__(self, nodes):
        self.nodes = nodes

    def core_shape(self, pairs):
        """Return the shape of a square matrix: there are at most as many components as nodes."""
        return self.nodes, self.nodes

    def core(self, vector):
        """Find the components of one graph."""
        members = np.zeros((self.nodes, self.nodes), np.int8)
        if not np.isin(vector, (0, 1)).all():
            return members
        member = np.arange(self.nodes)
        for i, j in lines_of(vector).tolist():
            if member[i] == member[j]:
                return members
            member[member == member[j]] = member[i]
        members[member, np.arange(self.nodes)] = 1
        return members


class MutualInformation(InterpretedOp):
    """Mutual information of the ends of the edges of a tree with tables of probabilities, in nats."""

    __props__ = ("states",)

    def __init__(self, states):
        self.states = tuple(int(k) for k in states)

    def make_node(self, tree, tables):
        """Apply the Op to a (pairs,) vector and to (p, cells) tables of the tree away from its first node."""
        self.register()
        inputs = [pt.as_tensor_variable(tree), as_float(tables)]
        return Apply(self, inputs, [pt.tensor(dtype="float64", shape=tree.type.shape)])

    def infer_shape(self, node, input_shapes):
        """One number a pair."""
        return [input_shapes[0]]

    def compute(self, tree, tables):
        """Go away from the root with the probabilities of the states of each node."""
        d = len(self.states)
        parent, share = rooted_forest(lines_of(tree), d), {}
        matrix = np.zeros((d, d))
        for child in _downwards(parent):
            above, k = parent[child], self.states[child]
            if above < 0:
                share[child] = tables[child, :k]
                continue
            given = tables[child, : self.states[above] * k].reshape(-1, k)
            joint = share[above][:, None] * given
            share[child] = joint.sum(axis=0)
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = joint * (np.log(given) - np.log(share[child]))
            matrix[above, child] = matrix[child, above] = max(np.nansum(terms), 0.0)
        return pair_values(matrix)

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False], [False]]


class EdgeStrengths(InterpretedOp):
    """Strengths of the edges of a tree of numbers and states, from the tree and its parameters."""

    __props__ = ("layout", "root")

    def __init__(self, layout, root):
        self.layout, self.root = layout, root

    def make_node(self, tree, vector):
        """Apply the Op to a (pairs,) vector and the parameters."""
        self.register()
        inputs = [pt.as_tensor_variable(tree), as_float(vector)]
        return Apply(self, inputs, [pt.tensor(dtype="float64", shape=tree.type.shape)])

    def infer_shape(self, node, input_shapes):
        """One number a pair."""
        return [input_shapes[0]]

    def compute(self, tree, vector):
        """Direct the tree, and put the strength of each column with its parent at the pair."""
        from bayesstruct.trees.kernels.strengths import edge_strengths

        parent = rooted(lines_of(tree), self.root)
        child = np.flatnonzero(parent >= 0)
        matrix = np.zeros((len(parent),) * 2)
        own = edge_strengths(self.layout, parent, vector)[child]
        matrix[child, parent[child]] = matrix[parent[child], child] = own
        return pair_values(matrix)

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False], [False]]


def _downwards(parent) -> list[int]:
    """All nodes, each after its parent."""
    order = np.flatnonzero(parent < 0).tolist()
    below = [np.flatnonzero(parent == v).tolist() for v in range(len(parent))]
    for node in order:
        order.extend(below[node])
    return order


def _nodes(vectors) -> int:
    """Return the number of nodes of vectors of known length."""
    pairs = vectors.type.shape[-1]
    if pairs is None:
        raise ValueError(
            "the number of pairs must be known when the graph is made: use pt.specify_shape"
        )
    return node_count(pairs)


def _laplacian(weights, n):
    """Laplacian matrices (..., n, n) of weights of pairs."""
    first, second = np.triu_indices(n, 1)
    upper = pt.zeros((*weights.shape[:-1], n, n))[..., first, second].set(weights)
    whole = upper + upper.mT
    return pt.eye(n) * whole.sum(axis=-1, keepdims=True) - whole


def log_tree_normaliser(log_weights: "TensorVariable") -> "TensorVariable":
    r"""Log of the sum over all spanning trees, :math:`\log \sum_T \prod_{ij \in T} w_{ij}`, with all derivatives.

    Parameters
    ----------
    log_weights : tensor_like of float
        (..., pairs), of the pairs of nodes row by row of the upper triangle; -inf where there is no edge.

    Returns
    -------
    TensorVariable
        (...). -inf if there is no tree, NaN if a weight is NaN or infinite.

    Notes
    -----
    The first derivatives are the probabilities of the edges. Both are right to about rounding however much the weights differ
    (:mod:`bayesstruct.graphs.spanning_trees.elimination`). Second and further derivatives invert the Laplacian matrix, and lose as many
    digits as the weights of the lines of the maximum spanning tree span powers of ten.

    Examples
    --------
    >>> import numpy as np
    >>> float(
    ...     np.exp(log_tree_normaliser(np.zeros(6)).eval()).round(9)
    ... )  # four nodes, Cayley's formula
    16.0
    """
    return LogTreeSum().make_node(as_float(log_weights)).outputs[0]


def tree_probabilities(log_weights: "TensorVariable") -> "TensorVariable":
    """Probability of each pair to be an edge, (..., pairs); parameters are those of `log_tree_normaliser`."""
    return TreeProbabilities().make_node(as_float(log_weights)).outputs[0]


def is_tree(indicator: "TensorVariable") -> "TensorVariable":
    """Whether (..., pairs) vectors are 0/1 vectors of spanning trees."""
    return _IsTree().make_node(pt.as_tensor_variable(indicator)).outputs[0]


def components_of(indicator: "TensorVariable", nodes: int) -> "TensorVariable":
    """Components of (..., pairs) vectors: (..., nodes, nodes), one row for each with ones at its nodes; only zeros if there is a cycle."""
    return Components(nodes).make_node(pt.as_tensor_variable(indicator)).outputs[0]


def maximum_tree(
    log_weights: "TensorVariable", outer: tuple[bool, ...] | None = None
) -> "TensorVariable":
    """Spanning tree with the greatest sum of log weights, a (..., pairs) vector of 0 and 1; `outer` marks outer nodes of two kinds."""
    return MaximumTree(outer).make_node(as_float(log_weights)).outputs[0]


def away_from_root(indicator: "TensorVariable", nodes: int, root: int = 0) -> "TensorVariable":
    """Directed graph (..., nodes, nodes) of a tree, 1 at (parent, child), whose root is by default the first node.

    The roots of the other components of a forest are their first nodes.
    """
    return RootedTree(nodes, root).make_node(pt.as_tensor_variable(indicator)).outputs[0]


def mutual_information(
    tree: "TensorVariable", tables: "TensorVariable", states: Sequence[int]
) -> "TensorVariable":
    """Mutual information of the two ends of each edge of a tree, (pairs,), in nats; 0 where there is no edge.

    Parameters
    ----------
    tree : TensorVariable
        (pairs,), of 0 and 1; or a forest.
    tables : TensorVariable
        (p, cells), :class:`bayesstruct.distributions.ProbabilityTables` of the tree away from its first node.
    states : sequence of int
        Number of states of each node.
    """
    return MutualInformation(states).make_node(tree, tables).outputs[0]


def edge_strengths(
    tree: "TensorVariable", vector: "TensorVariable", layout: "MixedLayout", root: int
) -> "TensorVariable":
    """Strength of the dependence along each edge of a tree of numbers and states, (pairs,); 0 where there is no edge.

    Parameters
    ----------
    tree, vector : TensorVariable
        A :class:`bayesstruct.distributions.MixedSpanningTree` and its :class:`bayesstruct.distributions.MixedTreeParameters`.
    layout : MixedLayout
    root : int
        The first column of states.
    """
    return EdgeStrengths(layout, root).make_node(tree, vector).outputs[0]
