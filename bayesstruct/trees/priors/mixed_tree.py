"""Trees of columns of numbers and states as random variables, and the parameters given one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pytensor.gradient import disconnected_grad, grad_undefined
from pytensor.graph.basic import Apply, Constant

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.ops import InterpretedOp
from bayesstruct.core.tensors import as_float
from bayesstruct.graphs.spanning_trees.indicators import (
    indicators,
    is_spanning_tree,
    lines_of,
    node_count,
    pair_matrix,
)
from bayesstruct.graphs.spanning_trees.sums import rooted
from bayesstruct.graphs.spanning_trees.two_kinds import TreesOfTwoKinds
from bayesstruct.networks.kernels.mixed_layout import MixedLayout
from bayesstruct.trees.data import first_state
from bayesstruct.trees.kernels.mixed import MixedTotals, draw_parameters, log_prior
from bayesstruct.trees.ops.spanning_trees import is_tree, log_tree_normaliser, maximum_tree
from bayesstruct.trees.priors.spanning_tree import pair_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = [
    "MixedSpanningTree",
    "MixedSpanningTreeRV",
    "MixedTreeParameters",
    "MixedTreeParametersRV",
]


@dataclass(frozen=True)
class _Trees:
    """Independent draws of trees of two kinds of nodes."""

    outer: tuple[bool, ...]
    dtype: ClassVar = "int8"
    ndims: ClassVar = (1,)

    @property
    def shape(self):
        return (len(self.outer) * (len(self.outer) - 1) // 2,)

    def __call__(self, rng, out, log_weights):
        trees = TreesOfTwoKinds(pair_matrix(log_weights), self.outer)
        out[:] = indicators(trees.draw(len(out), rng), len(self.outer))


class MixedSpanningTreeRV(GraphRV):
    """A tree that joins all nodes, of which the inner ones form a tree."""

    extended_signature = "[rng],[size],(e)->[rng],(e)"
    _print_name = ("MixedSpanningTree", "\\operatorname{MixedSpanningTree}")
    options = ("outer",)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.outer)

    @classmethod
    def build(cls, rng, size, log_weights, *, outer):
        """Build the graph of a draw."""
        return seeded_draw(_Trees(outer), rng, size, (log_weights,))


class MixedSpanningTree(Discrete):
    r"""A random tree of columns of numbers and states in which no path leads from states over numbers to states.

    .. math:: P(T) \propto \prod_{ij \in T} w_{ij}

    ========  ===================================================================================================
    Support   0/1 vectors over the pairs of nodes, row by row of the upper triangle, that are trees on all nodes, and
              on those of states
    ========  ===================================================================================================

    Parameters
    ----------
    name : str
    log_weights : tensor_like of float
        As of :class:`bayesstruct.SpanningTree`.
    numbers : (p,) array_like of bool
        Which columns hold numbers; some, not all.

    Raises
    ------
    ValueError
        If log weights are no such array, leave no tree, or all columns are of one kind.

    Notes
    -----
    Draws are exact and independent, *logp* has its constant and is differentiable with respect to `log_weights`
    (:mod:`bayesstruct.graphs.spanning_trees.two_kinds`).

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> tree = MixedSpanningTree.dist(np.zeros((3, 3)), numbers=[False, False, True])
    >>> pm.draw(tree, random_seed=1)[0]  # the two columns of states are joined in both trees
    np.int8(1)
    """

    rv_type, rv_op = MixedSpanningTreeRV, MixedSpanningTreeRV.rv_op

    @classmethod
    def dist(cls, log_weights: "TensorLike", *, numbers: "ArrayLike", **kwargs) -> "TensorVariable":
        """Create the distribution without a model."""
        weights, outer = pair_weights(log_weights), tuple(map(bool, np.ravel(numbers)))
        nodes = node_count(weights.type.shape[-1])
        if len(outer) != nodes or all(outer) or not any(outer):
            raise ValueError(
                f"`numbers` says of each of the {nodes} nodes whether it holds numbers: of some, not of all; it is {numbers!r}"
            )
        if isinstance(weights, Constant):
            TreesOfTwoKinds(pair_matrix(weights.data), outer)  # raises if no tree is left
        return super().dist([weights], outer=outer, **kwargs)

    def support_point(rv, size, log_weights):
        """Return the most probable tree."""
        point = maximum_tree(log_weights, rv.owner.op.outer)
        return point if rv_size_is_none(size) else pt.full((*size, *rv.shape[-1:]), point)


@_logprob.register(MixedSpanningTreeRV)
def _tree_logp(op, values, rng, size, log_weights, **kwargs):
    (value,) = values
    among, _, _ = _places(op.outer)
    inside = pt.eq(value[..., among].sum(axis=-1), op.nodes - sum(op.outer) - 1)
    # Not a product: 0 times -inf, of a forbidden edge that is not there, is 0 here.
    total = pt.switch(pt.eq(value, 1), log_weights, 0.0).sum(axis=-1)
    return pt.switch(
        is_tree(value) & inside, total - _log_normaliser(log_weights, op.outer), -np.inf
    )


def _places(outer):
    """Positions of pairs among inner nodes, of those (inner, outer), and of those among outer ones."""
    outer = np.array(outer)
    first, second = np.triu_indices(len(outer), 1)
    position = np.zeros((len(outer),) * 2, int)
    position[first, second] = position[second, first] = np.arange(len(first))
    among = np.flatnonzero(~outer[first] & ~outer[second])
    return among, position[np.ix_(~outer, outer)], np.flatnonzero(outer[first] & outer[second])


def _log_normaliser(log_weights, outer):
    """Log of the sum over all trees: a product of sums, see `TreesOfTwoKinds`."""
    among, between, rest = _places(outer)
    cross = log_weights[..., between]
    # An edge that is not there has no derivative: no infinity may enter a difference.
    most = disconnected_grad(cross.max(axis=-2, keepdims=True))
    most = pt.switch(pt.isinf(most), 0.0, most)
    sums = pt.exp(cross - most).sum(axis=-2)
    there = sums > 0.0
    joined = pt.switch(there, pt.log(pt.switch(there, sums, 1.0)) + most[..., 0, :], -np.inf)
    whole = pt.concatenate([joined, log_weights[..., rest]], axis=-1)
    pairs = len(rest) + between.shape[1]
    whole = pt.specify_shape(whole, (*log_weights.type.shape[:-1], pairs))
    total = log_tree_normaliser(whole)
    return total + log_tree_normaliser(log_weights[..., among]) if len(among) else total


class _ParameterDraws:
    """Draws of parameters given a tree."""

    dtype, ndims = "float64", (1, 0)

    def __init__(self, layout: MixedLayout):
        self.layout, self.shape = layout, (layout.size,)

    def __eq__(self, other):
        return type(other) is type(self) and other.layout == self.layout

    def __hash__(self):
        return hash((type(self), self.layout))

    def __call__(self, rng, out, tree, size):
        states = self.layout.states
        nothing = MixedTotals(np.empty((0, len(states))), states, float(size))
        parent = rooted(lines_of(tree), first_state(states))
        for vector in out:
            vector[:] = draw_parameters(nothing, self.layout, parent, rng)


class _ParameterDensity(InterpretedOp):
    """Log prior density of the parameters of a tree, without derivatives."""

    __props__ = ("layout",)

    def __init__(self, layout: MixedLayout):
        self.layout = layout

    def make_node(self, tree, vector, size):
        """Apply the Op to (..., pairs), (..., parameters) and a number."""
        self.register()
        inputs = [pt.as_tensor_variable(v) for v in (tree, vector, size)]
        batch = max(v.type.ndim - 1 for v in inputs[:2])
        return Apply(self, inputs, [pt.tensor(dtype="float64", shape=(None,) * batch)])

    def compute(self, tree, vector, size):
        """Return the log densities; -inf for a graph that is no such tree."""
        batch = np.broadcast_shapes(tree.shape[:-1], vector.shape[:-1])
        trees = np.broadcast_to(tree, (*batch, *tree.shape[-1:]))
        vectors = np.broadcast_to(vector, (*batch, *vector.shape[-1:]))
        out = np.empty(batch)
        for at in np.ndindex(*batch):
            out[at] = self._one(trees[at], vectors[at], float(np.ravel(size)[0]))
        return out

    def _one(self, tree, vector, size):
        states = np.array(self.layout.states)
        if not is_spanning_tree(tree):
            return -np.inf
        parent = rooted(lines_of(tree), first_state(states))
        inner = parent[states > 0]
        if (states[inner[inner >= 0]] == 0).any():
            return -np.inf
        return log_prior(self.layout, parent, vector, size)

    def pullback(self, inputs, outputs, cotangents):
        """Return that there are no derivatives: the step of trees needs none."""
        reason = f"{type(self).__name__} has none"
        return [grad_undefined(self, i, v, reason) for i, v in enumerate(inputs)]


class MixedTreeParametersRV(GraphRV):
    """Parameters of a tree of numbers and states."""

    extended_signature = "[rng],[size],(e),()->[rng],(m)"
    _print_name = ("MixedTreeParameters", "\\operatorname{MixedTreeParameters}")
    options = ("layout",)

    @classmethod
    def build(cls, rng, size, tree, rows, *, layout):
        """Build the graph of a draw."""
        return seeded_draw(_ParameterDraws(layout), rng, size, (tree, rows))


class MixedTreeParameters(Continuous):
    r"""Parameters of a tree of columns of numbers and states, with conjugate priors.

    The tree is directed away from the first column of states. A column of states has Dirichlet distributed probabilities given its parent, as under
    the score BDeu. A column of numbers is normal: next to states with a mean :math:`m_k \mid v \sim N(0, v / \alpha)` in
    each state and the same variance :math:`v \sim \mathrm{InvGamma}((\alpha + 2) / 2, t / 2)`, :math:`t = \alpha^2 / (\alpha + 1)`; next to numbers as under the score
    BGe. The evidence of a tree is then a product over its edges (:mod:`bayesstruct.trees.kernels.mixed`).

    Parameters
    ----------
    name : str
    tree : TensorVariable
        (pairs,), a :class:`bayesstruct.distributions.MixedSpanningTree`.
    rows : float, default 1
        :math:`\alpha`, rows that the prior is worth.
    layout : MixedLayout
        Numbers of states of the columns, and the places of their parameters in the vector: logits, coefficients and standard deviations, see
        :mod:`bayesstruct.networks.kernels.mixed_layout`. Families are ``"normal"`` and ``"multinomial"``.

    Notes
    -----
    The density is that of the parameters that the tree has, and zero if another one is not zero.
    """

    rv_type, rv_op = MixedTreeParametersRV, MixedTreeParametersRV.rv_op

    @classmethod
    def dist(
        cls, tree: "TensorVariable", rows: "TensorLike" = 1.0, *, layout: MixedLayout, **kwargs
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        if odd := set(layout.families) - {"normal", "multinomial"}:
            raise ValueError(f"columns of a tree are 'normal' or 'multinomial', not {min(odd)!r}")
        return super().dist([pt.as_tensor_variable(tree), as_float(rows)], layout=layout, **kwargs)

    def support_point(rv, size, tree, rows):
        """Return equal probabilities, means zero and standard deviations one."""
        layout = rv.owner.op.layout
        point = np.zeros(layout.size)
        point[np.concatenate([own for own in layout.extras if len(own)])] = 1.0
        return pt.broadcast_to(pt.as_tensor_variable(point), rv.shape)


@_logprob.register(MixedTreeParametersRV)
def _parameters_logp(op, values, rng, size, tree, rows, **kwargs):
    (value,) = values
    return _ParameterDensity(op.layout)(tree, value, rows)
