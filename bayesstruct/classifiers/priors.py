"""Tree-augmented naive Bayes structures as a random variable."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pytensor.graph.basic import Apply

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.ops import InterpretedOp
from bayesstruct.data.arguments import whole_number

__all__ = ["AugmentedTree", "AugmentedTreeRV"]


@dataclass(frozen=True)
class _Trees:
    """Draws with equal probabilities."""

    columns: int
    target: int
    dtype: ClassVar = "int8"
    ndims: ClassVar = ()

    @property
    def shape(self):
        return self.columns, self.columns

    def __call__(self, rng, out):
        from bayesstruct.classifiers.solvers.structures import tree_dag
        from bayesstruct.graphs.spanning_trees.sums import SpanningTrees, rooted

        m = self.columns - 1
        trees = SpanningTrees(np.zeros((m, m))).draw(len(out), rng)
        for dag, lines in zip(out, trees, strict=True):
            dag[:] = tree_dag(rooted(lines, int(rng.integers(m))), self.target)


def _is_augmented_tree(dag, target) -> bool:
    from bayesstruct.networks.kernels.dags import is_acyclic

    features = np.delete(np.arange(len(dag)), target)
    inner = dag[np.ix_(features, features)]
    return bool(
        ((dag == 0) | (dag == 1)).all()
        and not dag[:, target].any()
        and dag[target, features].all()
        and sorted(inner.sum(axis=0)) == [0] + [1] * (len(features) - 1)
        and is_acyclic(dag)
    )


class _LogPrior(InterpretedOp):
    """Log probability of a structure, the same for all; minus infinity for what is none."""

    __props__ = ("target", "batch")

    def __init__(self, target, batch):
        self.target, self.batch = target, batch

    def make_node(self, dag):
        """Apply the Op to a (..., d, d) matrix."""
        self.register()
        dag = pt.as_tensor_variable(dag)
        return Apply(self, [dag], [pt.tensor(dtype="float64", shape=dag.type.shape[:-2])])

    def infer_shape(self, node, input_shapes):
        """Shape of the batch."""
        return [input_shapes[0][:-2]]

    def compute(self, dag):
        """Compute from an array."""
        out, m = np.full(dag.shape[:-2], -np.inf), dag.shape[-1] - 1
        for index in np.ndindex(*out.shape):
            if _is_augmented_tree(dag[index], self.target):
                out[index] = -(m - 1) * np.log(m)
        return out

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False]]


class AugmentedTreeRV(GraphRV):
    """A structure of tree-augmented naive Bayes."""

    extended_signature = "[rng],[size]->[rng],(d,d)"
    _print_name = ("AugmentedTree", "\\operatorname{AugmentedTree}")
    options = ("columns", "target")

    @classmethod
    def build(cls, rng, size, *, columns, target):
        """Build the graph of a draw."""
        return seeded_draw(_Trees(columns, target), rng, size, ())


class AugmentedTree(Discrete):
    r"""Structure of a tree-augmented naive Bayes classifier: the target is a parent of all features, which form a tree.

    ========  =============================================================================
    Support   (d, d) matrices of 0 and 1, rows as parents: arcs from the target to all other
              columns, and a tree over these that is directed away from one of them, its root
    ========  =============================================================================

    All :math:`m^{m - 1}` rooted trees over the m features have the same probability: all trees, and each feature as
    the root of each.

    Parameters
    ----------
    name : str
    columns : int
        d, the features and the target, at least 3.
    target : int
        Column of the target.
    **kwargs
        ``dims`` and the like.

    Raises
    ------
    TypeError, ValueError
        If a number is out of range.

    Notes
    -----
    ``pm.sample`` draws it by :class:`bayesstruct.steps.ClassifierDraws` if it is the graph of a
    :class:`bayesstruct.distributions.DiscreteNetwork` and its tables. Prior draws are exact.

    References
    ----------
    Friedman, N., Geiger, D. and Goldszmidt, M. (1997). Bayesian network classifiers. *Machine Learning* 29, 131-163.

    Examples
    --------
    >>> import pymc as pm
    >>> pm.draw(AugmentedTree.dist(4, 0), random_seed=1).sum(axis=0).tolist()[0]
    0
    """

    rv_type, rv_op = AugmentedTreeRV, AugmentedTreeRV.rv_op

    @classmethod
    def dist(cls, columns, target, **kwargs):
        """Create the distribution without a model."""
        columns = whole_number("columns", columns, 3)
        target = whole_number("target", target, 0, columns - 1)
        return super().dist([], columns=columns, target=target, **kwargs)

    def support_point(rv, size, *_):
        """Return the structure in which the first feature is the parent of all others."""
        from bayesstruct.classifiers.solvers.structures import tree_dag

        op = rv.owner.op
        parent = np.zeros(op.columns - 1, int)
        parent[0] = -1
        point = pt.constant(tree_dag(parent, op.target))
        return point if rv_size_is_none(size) else pt.full((*size, *rv.shape[-2:]), point)


@_logprob.register(AugmentedTreeRV)
def _logp(op, values, rng, size, **kwargs):
    (value,) = values
    return _LogPrior(op.target, value.type.ndim - 2)(value)
