"""Trees of columns and hidden nodes, and the correlations along their edges, as random variables."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.tensors import as_float
from bayesstruct.data.arguments import whole_number
from bayesstruct.trees.kernels.hidden_counts import (
    draw_edges,
    log_tree_counts,
    log_tree_probabilities,
)
from bayesstruct.trees.ops.hidden_trees import is_rooted_form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.tensor import TensorLike, TensorVariable

__all__ = ["HIDDEN_STEP", "HiddenTree", "HiddenTreeRV", "TreeCorrelations", "TreeCorrelationsRV"]

HIDDEN_STEP = "hidden_tree_moves"  # name of the step method


@dataclass(frozen=True)
class _Trees:
    """Independent draws of trees with hidden nodes."""

    columns: int
    hidden: int
    dtype: ClassVar = "int64"
    ndims: ClassVar = (0,)

    @property
    def shape(self):
        return (self.columns + self.hidden,)

    def __call__(self, rng, out, weight):
        from bayesstruct.trees.kernels.hidden_trees import rooted_parents  # with Numba

        p, most = self.columns, self.hidden
        each = log_tree_probabilities(p, most, float(weight))
        chances = np.exp(log_tree_counts(p, most) + each)
        numbers = rng.choice(most + 1, size=len(out), p=chances / chances.sum())
        for h in np.unique(numbers):
            rows = np.flatnonzero(numbers == h)
            for row, edges in zip(rows, draw_edges(rng, p, int(h), len(rows)), strict=True):
                out[row] = rooted_parents(edges, p, p + most)


class HiddenTreeRV(GraphRV):
    """A tree of columns and hidden nodes."""

    extended_signature = "[rng],[size],()->[rng],(n)"
    _print_name = ("HiddenTree", "\\operatorname{HiddenTree}")
    options = ("columns", "hidden", "start")

    @classmethod
    def build(cls, rng, size, weight, *, columns, hidden, start):
        """Build the graph of a draw."""
        return seeded_draw(_Trees(columns, hidden), rng, size, (weight,))


class HiddenTree(Discrete):
    r"""A random tree that joins p columns and any number of hidden nodes, each of which has three neighbours or more.

    .. math:: P(T) \propto w^h, \qquad h \text{ the number of hidden nodes}

    ========  ==============================================================================
    Support   parents of the p columns and of the hidden nodes, in the form with a root
    ========  ==============================================================================

    The first column is the root, with parent -1. Each other node has its neighbour on the way to the root, by its number; hidden nodes are numbered from p on
    in the order of a walk that goes first where the first column is, and -1 is also the parent of those that are not used. So each tree has
    one value, though hidden nodes have no names. There are at most p - 2.

    Parameters
    ----------
    name : str
    columns : int
        p, 2 or more.
    weight : float, default 1
        w: how much a tree loses or gains by each hidden node. With 1 all trees have the same probability.
    hidden : int, optional
        Maximum number of hidden nodes, at most p - 2, the default.
    start : sequence of int, optional
        Value at which chains begin, by default the columns in a row.

    Raises
    ------
    ValueError
        If there are fewer than two columns, `hidden` is more than p - 2, or `start` does not have p + `hidden` numbers.

    Notes
    -----
    There are :math:`p^{p - 2}` trees without a hidden node, and for four columns 13 with one and 3 with two. *Draws* are exact and independent. *Posterior draws*:
    :class:`bayesstruct.steps.HiddenTreeMoves`.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> tree = HiddenTree.dist(4)
    >>> star = np.array([-1, 4, 4, 4, 0, -1])
    >>> float(np.exp(-pm.logp(tree, star).eval()).round(9))
    32.0
    """

    rv_type, rv_op = HiddenTreeRV, HiddenTreeRV.rv_op

    @classmethod
    def dist(
        cls,
        columns: int,
        weight: "TensorLike" = 1.0,
        hidden: int | None = None,
        start: "Sequence[int] | None" = None,
        **kwargs: Any,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        p = whole_number("columns", columns, 2)
        most = p - 2 if hidden is None else whole_number("hidden", hidden, 0)
        if most > p - 2:
            raise ValueError(
                f"`hidden` is at most {p - 2}: each hidden node of a tree of {p} columns has three neighbours or more"
            )
        chain = [-1, *range(p - 1), *[-1] * most]
        first = tuple(map(int, chain if start is None else start))
        _check_length(first, p + most)
        return super().dist([as_float(weight)], columns=p, hidden=most, start=first, **kwargs)

    def support_point(rv, size, weight):
        """Return the tree at which chains begin."""
        point = np.array(rv.owner.op.start)
        return point if rv_size_is_none(size) else pt.full((*size, len(point)), point)


def _check_length(start, nodes):
    """Refuse a start that does not have one number for each node."""
    if len(start) != nodes:
        raise ValueError(
            f"`start` has one number for each column and each hidden node that there may be, {nodes} in all, not {len(start)}"
        )


@_logprob.register(HiddenTreeRV)
def _tree_logp(op, values, rng, size, weight, **kwargs):
    (value,) = values
    counts = log_tree_counts(op.columns, op.hidden)
    logs = counts + pt.log(weight)[..., None] * np.arange(op.hidden + 1)
    used = pt.ge(value[..., op.columns :], 0).sum(axis=-1)
    total = used * pt.log(weight) - pt.logsumexp(logs, axis=-1)
    return pt.switch(is_rooted_form(value, op.columns), total, -np.inf)


class TreeCorrelationsRV(GraphRV):
    """Correlations of the nodes of a tree with their parents."""

    extended_signature = "[rng],[size],(n),()->[rng],(n)"
    _print_name = ("TreeCorrelations", "\\operatorname{TreeCorrelations}")
    options = ("columns", "nodes", "start")

    @classmethod
    def build(cls, rng, size, tree, shape, *, columns, nodes, start):
        """Build the graph of a draw."""
        shapes = pt.broadcast_arrays(pt.zeros(tree.shape), shape[..., None])[1]
        if not rv_size_is_none(size):
            shapes = pt.broadcast_to(shapes, (*size, nodes))
        rng, drawn = pt.random.beta(shapes, shapes, rng=rng, return_next_rng=True)
        value = 2.0 * drawn - 1.0
        hidden = np.arange(nodes) >= columns
        return rng, pt.switch(pt.ge(tree, 0), pt.switch(hidden, pt.abs(value), value), 0.0)


class TreeCorrelations(Continuous):
    r"""Correlations along the edges of a tree of normal nodes that have variance 1.

    .. math:: p(\rho \mid T) = \prod_{ij \in T} \frac{(1 - \rho_{ij}^2)^{a - 1}}{2^{2a - 1} B(a, a)}

    ========  =========================================================================================
    Support   one number between -1 and 1 for each node, 0 for the root and for nodes that are not used
    ========  =========================================================================================

    The number of a node is its correlation with its parent. The sign of a hidden node is arbitrary; here hidden nodes have positive correlations with
    their parents, and twice the density. Correlations of columns are products along the path between them.

    Parameters
    ----------
    name : str
    tree : TensorVariable
        A :class:`bayesstruct.distributions.HiddenTree`.
    shape_parameter : float, default 1
        a, positive. With 1 correlations are uniform; larger values prefer weak ones.
    start : sequence of float, optional
        Value at which chains begin, with that of the tree; by default weak correlations.

    Raises
    ------
    TypeError
        If `tree` is no such tree.
    ValueError
        If `start` does not have one number for each node.
    """

    rv_type, rv_op = TreeCorrelationsRV, TreeCorrelationsRV.rv_op

    @classmethod
    def dist(
        cls,
        tree: "TensorVariable",
        shape_parameter: "TensorLike" = 1.0,
        start: "Sequence[float] | None" = None,
        **kwargs: Any,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        tree = pt.as_tensor_variable(tree)
        op = None if tree.owner is None else tree.owner.op
        if not isinstance(op, HiddenTreeRV):
            raise TypeError("`tree` is a bs.distributions.HiddenTree of the model")
        first = None if start is None else tuple(map(float, start))
        sizes = {"columns": op.columns, "nodes": op.columns + op.hidden, "start": first}
        if first is not None:
            _check_length(first, sizes["nodes"])
        return super().dist([tree, as_float(shape_parameter)], **sizes, **kwargs)

    def support_point(rv, size, tree, shape_parameter):
        """Return the correlations at which chains begin."""
        start = rv.owner.op.start
        point = pt.switch(pt.ge(tree, 0), 0.1 if start is None else np.array(start), 0.0)
        return point if rv_size_is_none(size) else pt.broadcast_to(point, rv.shape)


@_logprob.register(TreeCorrelationsRV)
def _correlations_logp(op, values, rng, size, tree, shape, **kwargs):
    (value,) = values
    used = pt.ge(tree, 0)
    hidden = np.arange(op.nodes) >= op.columns
    constant = (2.0 * shape - 1.0) * np.log(2.0) + 2.0 * pt.gammaln(shape) - pt.gammaln(2.0 * shape)
    inside = pt.and_(pt.lt(pt.abs(value), 1.0), pt.or_(pt.gt(value, 0.0), ~hidden))
    right = pt.switch(used, inside, pt.eq(value, 0.0)).all(axis=-1)
    rest = pt.switch(pt.and_(used, inside), 1.0 - value**2, 1.0)
    own = (shape - 1.0)[..., None] * pt.log(rest) - constant[..., None] + np.log(2.0) * hidden
    total = pt.switch(used, own, 0.0).sum(axis=-1)
    return pt.switch(right, total, -np.inf)
