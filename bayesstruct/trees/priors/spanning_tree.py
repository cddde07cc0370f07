"""Spanning trees as random variables."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pytensor.gradient import disconnected_grad
from pytensor.graph.basic import Constant

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.entries import entries
from bayesstruct.core.tensors import as_float
from bayesstruct.data.arguments import numbers
from bayesstruct.graphs.spanning_trees.indicators import (
    indicators,
    node_count,
    pair_matrix,
    pair_values,
)
from bayesstruct.graphs.spanning_trees.sums import SpanningTrees, log_weight_matrix
from bayesstruct.trees.ops.spanning_trees import is_tree, log_tree_normaliser, maximum_tree

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = [
    "STEP",
    "SpanningTree",
    "SpanningTreeRV",
    "from_lower_triangle",
    "pair_weights",
    "without_common_factor",
]

STEP = "tree_draws"  # name of the step method


@dataclass(frozen=True)
class _Trees:
    """Independent draws of trees."""

    nodes: int
    dtype: ClassVar = "int8"
    ndims: ClassVar = (1,)

    @property
    def shape(self):
        return (self.nodes * (self.nodes - 1) // 2,)

    def __call__(self, rng, out, log_weights):
        trees = SpanningTrees(pair_matrix(log_weights))
        out[:] = indicators(trees.draw(len(out), rng), self.nodes)


class SpanningTreeRV(GraphRV):
    """A tree that joins all nodes."""

    extended_signature = "[rng],[size],(e)->[rng],(e)"
    _print_name = ("SpanningTree", "\\operatorname{SpanningTree}")
    options = ("nodes",)

    @classmethod
    def build(cls, rng, size, log_weights, *, nodes):
        """Build the graph of a draw."""
        return seeded_draw(_Trees(nodes), rng, size, (log_weights,))


class SpanningTree(Discrete):
    r"""A random tree that joins all nodes, with probabilities that are products over its edges.

    .. math:: P(T) = \frac1Z \prod_{ij \in T} w_{ij}, \qquad Z = \sum_T \prod_{ij \in T} w_{ij}

    ========  ============================================================================================
    Support   0/1 vectors over the p(p-1)/2 pairs of nodes, row by row of the upper triangle, that are trees
    ========  ============================================================================================

    With weights that are all equal, all :math:`p^{p - 2}` trees have the same probability. If :math:`w = q / (1 - q)`, this is the
    distribution of independent edges with probabilities q, given that they form a tree.

    Parameters
    ----------
    name : str
    log_weights : tensor_like of float
        Logarithms of the weights of the pairs: a symmetric (p, p) matrix, whose diagonal is not used, or a (pairs,) vector in the order of
        the value. -inf where there is no edge. They may depend on other variables of the model, and have derivatives, so that NUTS draws
        these: see the example.
    **kwargs
        ``dims`` and the like.

    Raises
    ------
    ValueError
        If log weights are no such array, leave no tree, or differ by more than some 1e10; at draws, if random log weights do.

    Notes
    -----
    *Draws* are exact and independent. *logp* has its constant, by elimination of nodes: it is right however much the weights differ, as are
    its derivatives with respect to `log_weights`, the probabilities of the edges. See
    :func:`bayesstruct.ops.log_tree_normaliser` and :mod:`bayesstruct.graphs.spanning_trees.elimination`.

    *Posterior draws*: :class:`bayesstruct.steps.TreeDraws` draws the tree and the parameters given it together, independently of the
    last draw, where these are the :class:`bayesstruct.distributions.TreePrecision` of normal rows or the
    :class:`bayesstruct.distributions.ProbabilityTables` of states, as in :func:`bayesstruct.models.tree`; a tree on which nothing
    depends is drawn from its prior.

    Pyro's ``SpanningTree(edge_logits)`` is the same distribution with another order of the pairs:
    ``SpanningTree(name, from_lower_triangle(edge_logits))``, with :func:`bayesstruct.distributions.from_lower_triangle`.

    References
    ----------
    Meilă, M. and Jaakkola, T. (2006). Tractable Bayesian learning of tree belief networks. *Statistics and Computing* 16,
    77-92.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> tree = SpanningTree.dist(np.zeros((4, 4)))
    >>> int(pm.draw(tree, random_seed=1).sum())
    3
    >>> float(np.exp(-pm.logp(tree, [1, 1, 1, 0, 0, 0]).eval()).round(9))
    16.0

    Weights that depend on the distance of the nodes, in a model:

    .. code-block:: python

        with pm.Model():
            slope = pm.Normal("slope", 0, 1)
            tree = bs.SpanningTree("tree", slope * distance)
    """

    rv_type, rv_op = SpanningTreeRV, SpanningTreeRV.rv_op

    @classmethod
    def dist(cls, log_weights: "TensorLike", **kwargs: Any) -> "TensorVariable":
        """Create the distribution without a model."""
        values = pair_weights(log_weights)
        return super().dist([values], nodes=node_count(values.type.shape[-1]), **kwargs)

    def support_point(rv, size, log_weights):
        """Return the most probable tree."""
        point = maximum_tree(log_weights)
        return point if rv_size_is_none(size) else pt.full((*size, *rv.shape[-1:]), point)


@_logprob.register(SpanningTreeRV)
def _logp(op, values, rng, size, log_weights, **kwargs):
    (value,) = values
    # Not a product: 0 times -inf, of a forbidden edge that is not there, is 0 here.
    log_weights = without_common_factor(log_weights)
    total = pt.switch(pt.eq(value, 1), log_weights, 0.0).sum(axis=-1)
    return pt.switch(is_tree(value), total - log_tree_normaliser(log_weights), -np.inf)


def without_common_factor(log_weights: "TensorVariable") -> "TensorVariable":
    """Log weights (..., pairs) divided by the largest: all trees keep their probabilities, which are no differences of large numbers then."""
    most = disconnected_grad(log_weights.max(axis=-1, keepdims=True))
    return log_weights - pt.switch(pt.isinf(most), 0.0, most)


def pair_weights(log_weights: Any, *, connected: bool = True) -> "TensorVariable":
    """Log weights as a vector over pairs, checked where they are numbers; `connected`: whether they have to leave a tree."""
    if isinstance(log_weights, Constant):
        log_weights = log_weights.data
    if not hasattr(log_weights, "owner"):
        values = numbers("log_weights", log_weights)
        matrix = log_weight_matrix(values if np.ndim(values) != 1 else pair_matrix(values))
        if len(matrix) < 2:
            raise ValueError("`log_weights` has one node; a tree joins two or more")
        if connected:
            SpanningTrees(matrix)  # raises if no tree is left
        return as_float(pair_values(matrix))
    weights = as_float(log_weights)
    if weights.type.ndim not in (1, 2) or None in weights.type.shape:
        raise ValueError(
            "`log_weights` is a (p, p) matrix or a vector over the p(p-1)/2 pairs, whose shape is known when the model is made; it has "
            f"shape {weights.type.shape}: use pytensor.tensor.specify_shape"
        )
    if weights.type.ndim == 1:
        return weights
    rows, columns = weights.type.shape
    if rows != columns:
        raise ValueError(
            f"`log_weights` is a square matrix, or a vector over pairs, not an array of shape {weights.type.shape}"
        )
    return entries(weights, *np.triu_indices(rows, 1))


def from_lower_triangle(edge_logits: "ArrayLike") -> np.ndarray:
    """Symmetric matrix of log weights in Pyro's order of the pairs.

    Parameters
    ----------
    edge_logits : (p(p-1)/2,) array_like of float
        Log weights of the pairs (0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3), ...: row by row of the lower triangle, as of
        ``pyro.distributions.SpanningTree``.

    Returns
    -------
    (p, p) ndarray of float
        For :class:`bayesstruct.SpanningTree`; zeros on the diagonal, which is not used.

    Raises
    ------
    ValueError
        If no number of nodes has so many pairs.

    Examples
    --------
    >>> from_lower_triangle([1.0, 2.0, 3.0]).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]]
    """
    values = np.asarray(edge_logits, float)
    if values.ndim != 1:
        raise ValueError(f"`edge_logits` is a vector over pairs, not of shape {values.shape}")
    n = node_count(len(values))
    matrix = np.zeros((n, n))
    matrix[np.tril_indices(n, -1)] = values
    return matrix + matrix.T
