"""Tables of probabilities along a tree of columns and hidden nodes, and rows of states given these, as random variables."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, Discrete
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.recognition import claim
from bayesstruct.core.tensors import as_float
from bayesstruct.trees.ops.hidden_states import tree_row_log_likelihoods
from bayesstruct.trees.priors.hidden_trees import HiddenTreeRV

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.tensor import TensorLike, TensorVariable

__all__ = [
    "HIDDEN_STATE_STEP",
    "HiddenTreeStates",
    "HiddenTreeStatesRV",
    "TreeTables",
    "TreeTablesRV",
]

HIDDEN_STATE_STEP = "hidden_state_moves"  # name of the step method


class _Draws:
    """Draws that know the numbers of states of all nodes and the number of columns."""

    def __init__(self, states, columns):
        self.states, self.columns = states, columns

    def __eq__(self, other):
        own = type(other) is type(self)
        return own and (other.states, other.columns) == (self.states, self.columns)

    def __hash__(self):
        return hash((type(self), self.states, self.columns))


class _Tables(_Draws):
    """Draws of tables given a tree."""

    dtype = "float64"
    ndims = (1, 0)

    @property
    def shape(self):
        most = max(self.states)
        return len(self.states), most, most

    def __call__(self, rng, out, parent, size):
        for tables in out:
            for node, above in enumerate(parent):
                own = self.states[node]
                if node and above < 0:
                    continue
                lines = self.states[above] if node else 1
                weights = np.full(own, float(size) / (own * lines))
                tables[node, :lines, :own] = rng.dirichlet(weights, lines)


class _Rows(_Draws):
    """Draws of rows given a tree and its tables."""

    dtype = "int64"
    ndims = (1, 3)

    @property
    def shape(self):
        return (self.columns,)

    def __call__(self, rng, out, parent, tables):
        state = np.zeros((len(out), len(self.states)), np.int64)
        waiting = [0]
        for node in waiting:
            line = state[:, parent[node]] if node else 0
            below = np.cumsum(tables[node, line], axis=-1)
            u = rng.random((len(out), 1)) * below[..., -1:]
            state[:, node] = np.minimum((u >= below).sum(axis=1), self.states[node] - 1)
            waiting.extend(np.flatnonzero(parent == node).tolist())
        out[:] = state[:, : self.columns]


def _all_states(tree, states, hidden_states) -> tuple[int, ...]:
    """Return the numbers of states of columns and hidden nodes."""
    op = None if tree.owner is None else tree.owner.op
    if not isinstance(op, HiddenTreeRV):
        raise TypeError("`tree` is a bs.distributions.HiddenTree of the model")
    if len(states) != op.columns:
        raise ValueError(
            f"`states` has the numbers of states of {len(states)} columns, and the tree has {op.columns}"
        )
    return (*map(int, states), *[int(hidden_states)] * op.hidden)


class TreeTablesRV(GraphRV):
    """Tables of probabilities of the nodes of a tree given their parents."""

    extended_signature = "[rng],[size],(n),()->[rng],(n,k,k)"
    _print_name = ("TreeTables", "\\operatorname{TreeTables}")
    options = ("states", "columns")

    @classmethod
    def build(cls, rng, size, tree, weight, *, states, columns):
        """Build the graph of a draw."""
        return seeded_draw(_Tables(states, columns), rng, size, (tree, weight))


class TreeTables(Continuous):
    r"""Probabilities of the states of each node of a tree given those of its parent.

    .. math:: \theta_{1} \sim \mathrm{Dirichlet}(a / k_1), \qquad \theta_{js} \sim \mathrm{Dirichlet}\Bigl(\frac{a}{k_j k_{\mathrm{pa}_j}}\Bigr)

    ========  ==============================================================================
    Support   one table for each node, its lines sum to 1; 0 for nodes that are not used
    ========  ==============================================================================

    for the first column, which is the root, and each state s of the parent of another node j, with :math:`k_j` states. The distribution
    of all nodes is the same whatever node is the root (hyper-Dirichlet, Dawid and Lauritzen 1993). Names of hidden states are arbitrary.

    Parameters
    ----------
    name : str
    tree : TensorVariable
        A :class:`bayesstruct.distributions.HiddenTree`.
    equivalent_sample_size : float
        a: rows that the prior is worth, positive.
    states : sequence of int
        Number of states of each column.
    hidden_states : int, default 2
        Number of states of each hidden node.

    Notes
    -----
    A value is (nodes, K, K), K being the largest number of states: at (j, s, t) the probability that node j is in state t if its parent is in s. The
    root has its probabilities in line 0. *Posterior draws*: :class:`bayesstruct.steps.HiddenStateMoves`.
    """

    rv_type, rv_op = TreeTablesRV, TreeTablesRV.rv_op

    @classmethod
    def dist(
        cls,
        tree: "TensorVariable",
        equivalent_sample_size: "TensorLike",
        *,
        states: "Sequence[int]",
        hidden_states: int = 2,
        **kwargs: Any,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        tree = pt.as_tensor_variable(tree)
        own = _all_states(tree, states, hidden_states)
        claim(tree, HIDDEN_STATE_STEP)
        params = [tree, as_float(equivalent_sample_size)]
        return super().dist(params, states=own, columns=len(states), **kwargs)

    def support_point(rv, size, tree, weight):
        """Return even tables of the tree."""
        op = rv.owner.op
        used, _ = _used_cells(tree, op.states)
        return pt.broadcast_to(used / np.array(op.states)[:, None, None], rv.shape)


def _used_cells(tree, states):
    """Whether each cell belongs to a table, (..., nodes, K, K), and the number of lines of each, (..., nodes)."""
    k = np.array(states)
    root = np.arange(len(k)) == 0
    lines = pt.switch(pt.ge(tree, 0), pt.as_tensor_variable(k)[pt.maximum(tree, 0)], root * 1)
    place = np.arange(k.max())
    rows = pt.lt(place[:, None], lines[..., None, None])
    return pt.and_(rows, place < k[:, None, None]).astype("float64"), lines


@_logprob.register(TreeTablesRV)
def _tables_logp(op, values, rng, size, tree, weight, **kwargs):
    (value,) = values
    k = np.array(op.states, float)
    used, lines = _used_cells(tree, op.states)
    alpha = weight[..., None] / (k * pt.maximum(lines, 1))
    safe = pt.switch(pt.gt(value, 0.0), value, 1.0)
    terms = ((alpha - 1.0)[..., None, None] * pt.log(safe) * used).sum(axis=(-2, -1))
    constant = lines * (pt.gammaln(alpha * k) - k * pt.gammaln(alpha))
    inside = pt.all(pt.switch(used > 0.0, value > 0.0, pt.eq(value, 0.0)), axis=(-3, -2, -1))
    off = pt.abs(value.sum(axis=-1) - used[..., 0])
    return pt.switch(
        inside & (off.max(axis=(-2, -1)) < 1e-6), (terms + constant).sum(axis=-1), -np.inf
    )


class HiddenTreeStatesRV(GraphRV):
    """Rows of states of the columns of a tree with hidden nodes."""

    extended_signature = "[rng],[size],(n),(n,k,k)->[rng],(p)"
    _print_name = ("HiddenTreeStates", "\\operatorname{HiddenTreeStates}")
    options = ("states", "columns")

    @classmethod
    def build(cls, rng, size, tree, tables, *, states, columns):
        """Build the graph of a draw."""
        return seeded_draw(_Rows(states, columns), rng, size, (tree, tables))


class HiddenTreeStates(Discrete):
    """Rows of states of columns that depend on each other along a tree with hidden nodes, which are summed out.

    Parameters
    ----------
    name : str
    tree : TensorVariable
        A :class:`bayesstruct.distributions.HiddenTree`.
    tables : TensorVariable
        Its :class:`bayesstruct.distributions.TreeTables`.
    """

    rv_type, rv_op = HiddenTreeStatesRV, HiddenTreeStatesRV.rv_op

    @classmethod
    def dist(
        cls, tree: "TensorVariable", tables: "TensorVariable", **kwargs: Any
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        tables = pt.as_tensor_variable(tables)
        op = None if tables.owner is None else tables.owner.op
        if not isinstance(op, TreeTablesRV):
            raise TypeError("`tables` is a bs.distributions.TreeTables of the model")
        params = [pt.as_tensor_variable(tree), tables]
        return super().dist(params, states=op.states, columns=op.columns, **kwargs)

    def support_point(rv, size, tree, tables):
        """Return first states."""
        return pt.zeros(rv.shape, dtype="int64")


@_logprob.register(HiddenTreeStatesRV)
def _rows_logp(op, values, rng, size, tree, tables, **kwargs):
    (value,) = values
    return row_densities(tree_row_log_likelihoods(tree, tables, value, op.states))
