"""Precision matrix and means of normal rows whose dependences form a tree, with the conjugate prior of the BGe score."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.tensors import as_float
from bayesstruct.graphs.spanning_trees.indicators import lines_of
from bayesstruct.trees.kernels.gaussian import draw_precision

if TYPE_CHECKING:
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = ["TreeMeans", "TreeMeansRV", "TreePrecision", "TreePrecisionRV"]

_LOG_2PI = np.log(2.0 * np.pi)


@dataclass(frozen=True)
class _Precisions:
    """Draws of precision matrices given a tree."""

    nodes: int
    dtype: ClassVar = "float64"
    ndims: ClassVar = (1, 0, 0)

    @property
    def shape(self):
        return self.nodes, self.nodes

    def __call__(self, rng, out, tree, degrees_of_freedom, scale):
        lines, matrix = lines_of(tree), float(scale) * np.eye(self.nodes)
        for precision in out:
            precision[:] = draw_precision(rng, lines, float(degrees_of_freedom), matrix)


class TreePrecisionRV(GraphRV):
    """Precision matrix of a tree."""

    extended_signature = "[rng],[size],(e),(),()->[rng],(p,p)"
    _print_name = ("TreePrecision", "\\operatorname{TreePrecision}")
    options = ("nodes",)

    @classmethod
    def build(cls, rng, size, tree, degrees_of_freedom, scale, *, nodes):
        """Build the graph of a draw."""
        return seeded_draw(_Precisions(nodes), rng, size, (tree, degrees_of_freedom, scale))


class TreePrecision(Continuous):
    r"""Precision matrix of normal columns that depend on each other along a tree.

    .. math:: p(K \mid T) \propto |K|^{(b - 2) / 2} \, e^{-t \, \mathrm{tr}(K) / 2}, \qquad K_{ij} = 0 \text{ where } T \text{ has no edge}

    ========  ===========================================================
    Support   symmetric positive definite (p, p) matrices, zero off a tree
    ========  ===========================================================

    The G-Wishart distribution of a tree or forest (hyper-inverse Wishart for the covariance matrix; Dawid and Lauritzen 1993). Its constant is the same
    for all trees with as many edges. Given the tree, the covariance matrix of the two ends of an edge is inverse Wishart, in the same way for all edges.

    Parameters
    ----------
    name : str
    tree : TensorVariable
        (pairs,), a :class:`bayesstruct.SpanningTree` or :class:`bayesstruct.SpanningForest`.
    degrees_of_freedom : float, default 3
        b, positive.
    scale : float, default 0.5
        t, positive. With the defaults this is the prior of the score ``"bge"`` for an equivalent sample size of 1.

    Notes
    -----
    The matrix has exact zeros, so that it has no transform: :class:`bayesstruct.steps.TreeDraws` draws it, together with its tree.

    References
    ----------
    Dawid, A. P. and Lauritzen, S. L. (1993). Hyper Markov laws in the statistical analysis of decomposable graphical models.
    *Annals of Statistics* 21, 1272-1317.
    """

    rv_type, rv_op = TreePrecisionRV, TreePrecisionRV.rv_op

    @classmethod
    def dist(
        cls,
        tree: "TensorVariable",
        degrees_of_freedom: "TensorLike" = 3.0,
        scale: "TensorLike" = 0.5,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        tree = pt.as_tensor_variable(tree)
        nodes = getattr(tree.owner.op, "nodes", None) if tree.owner is not None else None
        if nodes is None:
            raise TypeError("`tree` is a bs.SpanningTree or bs.SpanningForest of the model")
        params = [tree, as_float(degrees_of_freedom), as_float(scale)]
        return super().dist(params, nodes=nodes, **kwargs)

    def support_point(rv, size, tree, degrees_of_freedom, scale):
        """Return a diagonal matrix, which every tree allows."""
        point = (degrees_of_freedom / scale)[..., None, None] * pt.eye(rv.owner.op.nodes)
        return pt.broadcast_to(point, rv.shape) if not rv_size_is_none(size) else point


@_logprob.register(TreePrecisionRV)
def _precision_logp(op, values, rng, size, tree, degrees_of_freedom, scale, **kwargs):
    (value,), p = values, op.nodes
    first, second = np.triu_indices(p, 1)
    zero = pt.all(pt.or_(pt.eq(tree, 1), pt.eq(value[..., first, second], 0.0)), axis=-1)
    factor = pt.linalg.cholesky(value, on_error="nan")
    log_det = 2.0 * pt.log(pt.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    trace = pt.diagonal(value, axis1=-2, axis2=-1).sum(axis=-1)
    b = degrees_of_freedom
    total = (
        0.5 * (b - 2.0) * log_det
        - 0.5 * scale * trace
        - _log_constant(p, tree.sum(axis=-1), b, scale)
    )
    inside = zero & pt.eq(value, value.mT).all(axis=(-2, -1)) & ~pt.isnan(log_det)
    return pt.switch(inside, total, -np.inf)


def _log_constant(p, edges, b, scale):
    """Log constant of the density: an edge multiplies by its own over those of its two columns."""
    column = 0.5 * b * (np.log(2.0) - pt.log(scale)) + pt.gammaln(0.5 * b)
    half = 0.5 * (b + 1.0)
    edge = 2.0 * half * (np.log(2.0) - pt.log(scale)) + 0.5 * np.log(np.pi)
    edge = edge + pt.gammaln(half) + pt.gammaln(half - 0.5)
    return p * column + edges * (edge - 2.0 * column)


class TreeMeansRV(GraphRV):
    """Means of normal columns given their precision matrix."""

    extended_signature = "[rng],[size],(p,p),()->[rng],(p)"
    _print_name = ("TreeMeans", "\\operatorname{TreeMeans}")

    @classmethod
    def build(cls, rng, size, precision, rows):
        """Build the graph of a draw."""
        shape = precision.shape[:-1] if rv_size_is_none(size) else (*size, precision.shape[-1])
        rng, noise = pt.random.normal(0.0, 1.0, size=shape, rng=rng, return_next_rng=True)
        factor = pt.linalg.cholesky(precision)
        drawn = pt.linalg.solve_triangular(factor.mT, noise, lower=False, b_ndim=1)
        return rng, drawn / pt.sqrt(rows)[..., None]


class TreeMeans(Continuous):
    r"""Means of normal columns given their precision matrix, conjugate.

    .. math:: \mu \mid K \sim N(0, (\alpha K)^{-1})

    Parameters
    ----------
    name : str
    precision : TensorVariable
        K, (p, p).
    rows : float, default 1
        :math:`\alpha`, rows that the prior is worth.
    """

    rv_type, rv_op = TreeMeansRV, TreeMeansRV.rv_op

    @classmethod
    def dist(
        cls, precision: "TensorVariable", rows: "TensorLike" = 1.0, **kwargs
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        return super().dist([pt.as_tensor_variable(precision), as_float(rows)], **kwargs)

    def support_point(rv, size, precision, rows):
        """Return zeros."""
        return pt.zeros(rv.shape)


@_logprob.register(TreeMeansRV)
def _means_logp(op, values, rng, size, precision, rows, **kwargs):
    (value,) = values
    p = value.shape[-1]
    factor = pt.linalg.cholesky(precision)
    log_det = 2.0 * pt.log(pt.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    square = ((value[..., None, :] @ precision)[..., 0, :] * value).sum(axis=-1)
    return 0.5 * (log_det + p * (pt.log(rows) - _LOG_2PI) - rows * square)
