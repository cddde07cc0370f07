"""Forests as random variables: trees on the nodes and one more, the ground, that is left out afterwards."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pytensor.graph.basic import Constant

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.tensors import as_float
from bayesstruct.data.arguments import numbers
from bayesstruct.graphs.spanning_trees.indicators import indicators, node_count, pair_matrix
from bayesstruct.graphs.spanning_trees.sums import DisconnectedError, SpanningTrees
from bayesstruct.trees.ops.spanning_trees import components_of, log_tree_normaliser, maximum_tree
from bayesstruct.trees.priors.spanning_tree import pair_weights, without_common_factor

if TYPE_CHECKING:
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = ["SpanningForest", "SpanningForestRV"]


@dataclass(frozen=True)
class _Forests:
    """Independent draws of forests."""

    nodes: int
    dtype: ClassVar = "int8"
    ndims: ClassVar = (1, 1)

    @property
    def shape(self):
        return (self.nodes * (self.nodes - 1) // 2,)

    def __call__(self, rng, out, log_weights, log_root_weights):
        # Pairs with the ground, node 0, come first in the upper triangle.
        trees = SpanningTrees(pair_matrix(np.append(log_root_weights, log_weights)))
        out[:] = indicators(trees.draw(len(out), rng), self.nodes + 1)[:, self.nodes :]


class SpanningForestRV(GraphRV):
    """A forest on all nodes."""

    extended_signature = "[rng],[size],(e),(p)->[rng],(e)"
    _print_name = ("SpanningForest", "\\operatorname{SpanningForest}")
    options = ("nodes",)

    @classmethod
    def build(cls, rng, size, log_weights, log_root_weights, *, nodes):
        """Build the graph of a draw."""
        return seeded_draw(_Forests(nodes), rng, size, (log_weights, log_root_weights))


class SpanningForest(Discrete):
    r"""A random forest: a graph without cycles, of any number of components, single nodes among them.

    .. math::

        P(F) = \frac1Z \prod_{ij \in F} w_{ij} \prod_{C} \sum_{i \in C} q_i, \qquad Z = \det(\mathrm{diag}(q) + L),

    the second product being over the components C, and L the Laplacian matrix of the weights w.

    ========  ==========================================================================================
    Support   0/1 vectors over the p(p-1)/2 pairs of nodes, row by row of the upper triangle, without cycles
    ========  ==========================================================================================

    This is the distribution of *rooted* forests, in which each component has a root i of weight :math:`q_i`, with the roots summed out. With equal
    root weights a component counts in proportion to its size: sums over forests without roots, in which it would not, are no determinants.
    The number of components is that of successes among p independent trials with the probabilities :math:`q / (q + \lambda_k)`, where
    :math:`\lambda_k` are the eigenvalues of L and q is the common root weight; one of them is 0, so that there is at least one component. It
    increases with q.

    Parameters
    ----------
    name : str
    log_weights : tensor_like of float
        Logarithms of the weights of the pairs, as of :class:`bayesstruct.SpanningTree`; -inf where there is no edge.
    log_root_weights : tensor_like of float, default 0
        Logarithms of the root weights, one number or one for each of the p nodes. -inf: the node is in a component with another root.
    **kwargs
        ``dims`` and the like.

    Raises
    ------
    ValueError
        If log weights are no such array, leave no forest, or differ by more than some 1e10; at draws, if random log weights do.

    Notes
    -----
    Draws are exact and independent; *logp* has its constant and is differentiable with respect to both kinds of weights, so that NUTS
    draws variables on which these depend, such as a common root weight. :class:`bayesstruct.steps.TreeDraws` draws a forest on which
    nothing depends, and one with parameters of normal rows or of rows of states, as in :func:`bayesstruct.models.forest`.

    References
    ----------
    Kirchhoff, G. (1847). Ueber die Auflösung der Gleichungen, auf welche man bei der Untersuchung der linearen
    Vertheilung galvanischer Ströme geführt wird. *Annalen der Physik* 148, 497-508.

    Avena, L. and Gaudillière, A. (2018). Two applications of random spanning forests. *Journal of Theoretical Probability*
    31, 1975-2004.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> forest = SpanningForest.dist(np.zeros((3, 3)))
    >>> float(
    ...     np.exp(pm.logp(forest, [0, 0, 0]).eval()).round(9)
    ... )  # of 16 rooted forests on three nodes
    0.0625
    """

    rv_type, rv_op = SpanningForestRV, SpanningForestRV.rv_op

    @classmethod
    def dist(
        cls, log_weights: "TensorLike", log_root_weights: "TensorLike" = 0.0, **kwargs: Any
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        weights = pair_weights(log_weights, connected=False)
        nodes = node_count(weights.type.shape[-1])
        roots = _root_weights(log_root_weights, nodes)
        if isinstance(weights, Constant) and isinstance(roots, Constant):
            _check_some(np.append(roots.data, weights.data))
        return super().dist([weights, roots], nodes=nodes, **kwargs)

    def support_point(rv, size, log_weights, log_root_weights):
        """Return the forest of the most probable rooted one."""
        nodes = rv.owner.op.nodes
        whole = pt.concatenate([log_root_weights, log_weights], axis=-1)
        point = maximum_tree(whole)[..., nodes:]
        return point if rv_size_is_none(size) else pt.full((*size, *rv.shape[-1:]), point)


@_logprob.register(SpanningForestRV)
def _logp(op, values, rng, size, log_weights, log_root_weights, **kwargs):
    (value,) = values
    whole = without_common_factor(pt.concatenate([log_root_weights, log_weights], axis=-1))
    log_root_weights, log_weights = whole[..., : op.nodes], whole[..., op.nodes :]
    # Not a product: 0 times -inf, of a forbidden edge that is not there, is 0 here.
    total = pt.switch(pt.eq(value, 1), log_weights, 0.0).sum(axis=-1)
    members = components_of(value, op.nodes)
    most = log_root_weights.max(axis=-1, keepdims=True)
    roots = pt.exp(log_root_weights - most)[..., None, :]
    sums = (pt.eq(members, 1) * roots).sum(axis=-1)
    there = members.any(axis=-1)
    logs = pt.switch(there, pt.log(pt.switch(there, sums, 1.0)) + most, 0.0).sum(axis=-1)
    return pt.switch(there.any(axis=-1), total + logs - log_tree_normaliser(whole), -np.inf)


def _root_weights(log_root_weights, nodes) -> "TensorVariable":
    """Log root weights as a vector over the nodes."""
    if isinstance(log_root_weights, Constant):
        log_root_weights = log_root_weights.data
    if hasattr(log_root_weights, "owner"):
        values = as_float(log_root_weights)
        if values.type.ndim > 1 or (values.type.ndim and values.type.shape[0] not in (1, nodes)):
            raise ValueError(
                f"`log_root_weights` is one number or a vector of {nodes}, not of shape {values.type.shape}"
            )
        return values + pt.zeros(nodes)
    found = numbers("log_root_weights", log_root_weights)
    if found.shape not in ((), (nodes,)):
        raise ValueError(
            f"`log_root_weights` is one number or a vector of {nodes}, not of shape {found.shape}"
        )
    if np.isnan(found).any() or (found == np.inf).any():
        raise ValueError("a root weight is NaN or infinite; -inf, the logarithm of 0, is allowed")
    return as_float(np.broadcast_to(found, nodes).copy())


def _check_some(whole) -> None:
    try:
        SpanningTrees(pair_matrix(whole))
    except DisconnectedError:
        raise ValueError(
            "no forest is left: a node has the root weight 0, and no edges join it to one that may be a root"
        ) from None
