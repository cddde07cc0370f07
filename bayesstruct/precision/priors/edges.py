"""Indicators of the edges of an undirected graph, given its precision matrix."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete
from pymc.distributions.shape_utils import rv_size_is_none

from bayesstruct.core.distributions import KernelRV
from bayesstruct.core.entries import entries
from bayesstruct.core.odds import slab_log_odds
from bayesstruct.core.tensors import as_float, draw_batch
from bayesstruct.precision.ops.partial_correlations import PartialCorrelations
from bayesstruct.precision.priors.precision import GraphicalSpikeSlabRV, safe_log

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["Edges", "partial_correlations"]


class EdgesRV(KernelRV):
    name = "edges"
    signature = "(p,p),(p,p),(),(),()->(e)"
    dtype = "int64"
    _print_name = ("Edges", "\\operatorname{Edges}")

    def _supp_shape_from_params(self, dist_params, param_shapes=None):
        p = dist_params[0].shape[-1] if param_shapes is None else param_shapes[0][-1]
        return [p * (p - 1) // 2]

    @classmethod
    def rng_fn(cls, rng, precision, probability, spike, slab, scale, size):
        """Draw independent Bernoulli indicators."""
        from bayesstruct.precision.kernels.prior import draw_edges

        def core(rng, precision, probability, spike, slab, scale):
            return draw_edges(rng, precision / scale, probability, spike, slab)

        p = precision.shape[-1]
        params = (precision, probability, spike, slab, scale)
        out = draw_batch(core, rng, (2, 2, 0, 0, 0), params, size, (p * (p - 1) // 2,))
        return out.astype("int64")

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.prior import draw_edges

        def draw(rng, precision, probability, spike, slab, scale):
            return draw_edges(
                rng, precision / scale.item(), probability.copy(), spike.item(), slab.item()
            )

        return draw


def _edge_log_odds(precision, probability, spike, slab, scale):
    """Log odds of each edge given the precision matrix, as a (p, p) tensor."""
    value, spike, slab = (
        precision / scale[..., None, None],
        spike[..., None, None],
        slab[..., None, None],
    )
    prior = safe_log(probability) - safe_log(1.0 - probability)
    return slab_log_odds(value, prior, spike, slab)


def upper(matrix) -> "TensorVariable":
    """Upper triangle of a (..., p, p) tensor as a vector, row by row."""
    p = matrix.type.shape[-1]
    if p is None:
        return matrix[..., *pt.triu_indices(matrix.shape[-1], 1)]
    return entries(matrix, *np.triu_indices(p, 1))


class Edges(Discrete):
    r"""Indicators of the edges under a spike-and-slab prior, given the precision matrix.

    .. math::

        P(z_{ij} = 1 \mid K) = \frac{\pi_{ij} N(k_{ij}; 0, v_1^2)}
            {\pi_{ij} N(k_{ij}; 0, v_1^2) + (1 - \pi_{ij}) N(k_{ij}; 0, v_0^2)}

    ========  ==========================================
    Support   0/1 vectors of length p(p-1)/2, row-major
    ========  ==========================================

    The parameters are those of the prior of the matrix. :func:`bayesstruct.edges` adds these indicators and what else readers
    need.

    Parameters
    ----------
    precision : tensor_like of float
        (p, p) matrix drawn from :class:`GraphicalSpikeSlab`.
    """

    rv_op = EdgesRV()

    @classmethod
    def dist(cls, precision, **kwargs):
        """Create the distribution without a model."""
        owner = getattr(precision, "owner", None)
        if owner is None or not isinstance(owner.op, GraphicalSpikeSlabRV):
            raise ValueError(
                "`Edges` needs a precision matrix with the GraphicalSpikeSlab prior; other priors "
                "have no indicators"
            )
        probability, spike, slab, _, scale = owner.op.dist_params(owner)
        return super().dist([precision, probability, spike, slab, scale], **kwargs)

    def support_point(rv, size, precision, probability, spike, slab, scale):
        """Return the more probable value of each indicator."""
        point = pt.gt(upper(_edge_log_odds(precision, probability, spike, slab, scale)), 0.0)
        point = point.astype("int64")
        return point if rv_size_is_none(size) else pt.full((*size, point.shape[-1]), point)

    def logp(value, precision, probability, spike, slab, scale):
        """Sum of the Bernoulli log probabilities; minus infinity off 0 and 1."""
        log_odds = upper(_edge_log_odds(precision, probability, spike, slab, scale))
        binary = pt.or_(pt.eq(value, 0), pt.eq(value, 1))
        # An impossible value of a required or forbidden edge has an infinite log odds.
        logp = -pt.softplus(pt.switch(pt.eq(value, 1), -log_odds, log_odds))
        return pt.switch(binary, logp, -np.inf).sum(-1)


def partial_correlations(precision: Any) -> "TensorVariable":
    r"""Partial correlations of a precision matrix as a vector, upper triangle row by row.

    .. math:: \rho_{ij} = -k_{ij} / \sqrt{k_{ii} k_{jj}}
    """
    precision = as_float(precision)
    if precision.type.ndim == 2 and precision.type.shape[0] is not None:
        return PartialCorrelations().make_node(precision).outputs[0]
    root = pt.sqrt(pt.diagonal(precision, axis1=-2, axis2=-1))
    return upper(-precision / (root[..., :, None] * root[..., None, :]))
