"""Spike-and-slab prior of a precision matrix in which whole nodes may be without edges."""

from functools import lru_cache
from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous, Discrete
from pymc.distributions.shape_utils import rv_size_is_none

from bayesstruct.core.distributions import KernelRV
from bayesstruct.core.tensors import as_float, as_square, draw_batch
from bayesstruct.graphs.records import with_fixed
from bayesstruct.precision.kernels.odds import log_odds_matrix
from bayesstruct.precision.priors.checks import refuse_random, refuse_wrong
from bayesstruct.precision.priors.precision import (
    GraphicalSpikeSlab,
    GraphicalSpikeSlabRV,
    JointSpikeSlabRV,
    safe_log,
)

__all__ = [
    "NodeInclusion",
    "NodeInclusionRV",
    "NodeSpikeSlab",
    "NodeSpikeSlabRV",
    "implied_node_probabilities",
]

_SEED, _SWEEPS, _LEAST = 20120701, 4_000, 1e-6


class NodeInclusionRV(KernelRV):
    """Random variable of `NodeInclusion`."""

    name = "node_inclusion"
    signature = "(p),(p,p),(),(),()->(p)"
    dtype = "int64"
    _print_name = ("NodeInclusion", "\\operatorname{NodeInclusion}")

    @classmethod
    def rng_fn(cls, rng, nodes, probability, spike, slab, diagonal_rate, size):
        """Draw by rejection or by Gibbs sweeps over the joint prior."""
        from bayesstruct.precision.kernels.node_inclusion import draw_prior_included

        def core(rng, nodes, probability, spike, slab, diagonal_rate):
            odds = log_odds_matrix(probability)
            return draw_prior_included(rng, nodes, probability, odds, spike, slab, diagonal_rate)

        params = (nodes, probability, spike, slab, diagonal_rate)
        return draw_batch(core, rng, (1, 2, 0, 0, 0), params, size, nodes.shape[-1:]).astype(int)

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.node_inclusion import draw_prior_included

        def draw(rng, nodes, probability, spike, slab, diagonal_rate):
            own = probability.copy()
            scales = spike.item(), slab.item(), diagonal_rate.item()
            return draw_prior_included(rng, nodes.copy(), own, log_odds_matrix(own), *scales)

        return draw


class NodeInclusion(Discrete):
    r"""Indicators of the nodes that may have edges, for a precision matrix :class:`NodeSpikeSlab`.

    .. math:: p(z) \propto C(z) \prod_i \rho_i^{z_i} (1 - \rho_i)^{1 - z_i}

    where :math:`C(z)` is the probability that independent spike-and-slab elements form a positive definite matrix. The factor
    cancels the constant :math:`1/C(z)` of the matrix given the indicators, so that neither ``logp`` contains it; use the two
    together only.

    ========  ==========================================
    Support   0/1 vectors of length p
    ========  ==========================================

    Parameters
    ----------
    p : int
        Number of variables.
    node_probability : float or (p,) array_like, default 0.5
        Nominal probability :math:`\rho` of each node, between 0 and 1.
    edge_probability : float or (p, p) array_like, default 0.5
        Nominal probability of an edge between two included nodes; 0 forbids it.
    spike_scale, slab_scale, diagonal_rate : float
        Those of the precision matrix.
    """

    rv_op = NodeInclusionRV()

    @classmethod
    def dist(
        cls,
        p,
        node_probability=0.5,
        edge_probability=0.5,
        *,
        spike_scale=0.02,
        slab_scale=1.0,
        diagonal_rate=0.5,
        **kwargs,
    ):
        """Create the distribution without a model."""
        nodes = as_float(np.broadcast_to(np.asarray(node_probability, dtype="float64"), (p,)) * 1.0)
        probability = as_square(edge_probability, p)
        scales = {
            "spike_scale": as_float(spike_scale),
            "slab_scale": as_float(slab_scale),
            "diagonal_rate": as_float(diagonal_rate),
        }
        refuse_random(edge_probability=probability, **scales)
        refuse_wrong(**scales)
        if not ((nodes.data > 0) & (nodes.data < 1)).all():
            raise ValueError("`node_probability` must be between 0 and 1")
        matrix = probability.eval(mode="FAST_COMPILE")
        off = ~np.eye(p, dtype=bool)
        if not ((matrix[off] >= 0) & (matrix[off] < 1) & (matrix[off] == matrix.T[off])).all():
            raise ValueError(
                "`edge_probability` must be symmetric, not negative and below 1: an edge that is required would "
                "include its nodes, which is what a node probability near 1 is for"
            )
        return super().dist([nodes, probability, *scales.values()], **kwargs)

    def support_point(rv, size, nodes, *_):
        """Return ones: a node that is included may still have no edge."""
        point = pt.ones_like(nodes, dtype="int64")
        return point if rv_size_is_none(size) else pt.full((*size, nodes.shape[-1]), point)

    def logp(value, nodes, *_):
        """Sum of the Bernoulli log probabilities; the constant of the cone is that of the precision matrix."""
        log = pt.switch(pt.eq(value, 1), safe_log(nodes), pt.log1p(-nodes))
        binary = pt.or_(pt.eq(value, 0), pt.eq(value, 1))
        return check_parameters(
            pt.switch(binary, log, -np.inf).sum(-1), nodes > 0, nodes < 1, msg="0 < nodes < 1"
        )


class NodeSpikeSlabRV(JointSpikeSlabRV):
    """The same density as a joint spike and slab; its parameters can be drawn from the joint prior, and the matrix given them."""

    @classmethod
    def rng_fn(cls, rng, *params):
        """Draw the matrix given the included nodes."""
        return GraphicalSpikeSlabRV.rng_fn.__func__(cls, rng, *params)

    def numba_draw(self):
        """Return the draw for Numba."""
        return GraphicalSpikeSlabRV.numba_draw(self)


class NodeSpikeSlab(Continuous):
    r"""Spike-and-slab prior of a precision matrix given which nodes may have edges.

    The density of :class:`bayesstruct.GraphicalSpikeSlab` with the edge probabilities :math:`\pi_{ij} z_i z_j`; all its parameters
    are those of the indicators.

    ========  ==========================================
    Support   symmetric positive definite (p, p)
    ========  ==========================================

    Parameters
    ----------
    included : tensor_like of int
        Indicators, drawn from :class:`NodeInclusion`.
    start : callable, optional
        Returns the (p, p) tensor that chains start from. The identity unless given.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            included = bs.distributions.NodeInclusion("included", 5)
            precision = bs.distributions.NodeSpikeSlab("precision", included)
            pm.MvNormal("x", np.zeros(5), tau=precision, observed=rows)
    """

    rv_type = NodeSpikeSlabRV
    rv_op = NodeSpikeSlabRV.build

    @classmethod
    def dist(cls, included: Any, **kwargs):
        """Create the distribution without a model."""
        owner = getattr(included, "owner", None)
        if owner is None or not isinstance(owner.op, NodeInclusionRV):
            raise ValueError("`included` must be a variable drawn from NodeInclusion")
        _, probability, spike, slab, diagonal_rate = owner.op.dist_params(owner)
        z = pt.cast(included, "float64")
        both = probability * z[..., :, None] * z[..., None, :]
        return super().dist([both, spike, slab, diagonal_rate, as_float(1.0)], **kwargs)

    support_point = GraphicalSpikeSlab.support_point
    logp = GraphicalSpikeSlab.logp


def implied_node_probabilities(
    node_probability: np.ndarray,
    edge_probability: np.ndarray,
    *,
    spike_scale: float,
    slab_scale: float,
    diagonal_rate: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Prior probabilities of edges and of included nodes that positive definiteness implies.

    Parameters
    ----------
    node_probability : (p,) ndarray
    edge_probability : (p, p) ndarray
        Of edges between included nodes.
    spike_scale, slab_scale, diagonal_rate : float

    Returns
    -------
    edges : (pairs,) ndarray
        Upper triangle row by row.
    nodes : (p,) ndarray
        From Gibbs draws of the prior, with a Monte Carlo error near .03 for ten nodes; averages where all nodes and pairs have equal priors.
    """
    nodes = np.ascontiguousarray(node_probability, dtype="float64")
    matrix = np.ascontiguousarray(edge_probability, dtype="float64")
    scales = float(spike_scale), float(slab_scale), float(diagonal_rate)
    shares = np.array(_implied(nodes.tobytes(), matrix.tobytes(), scales))
    upper = np.triu_indices(len(nodes), 1)
    forbidden = matrix[upper] == 0
    required = np.zeros_like(forbidden)
    return with_fixed(shares[upper], required, forbidden, _LEAST), shares.diagonal()


@lru_cache(maxsize=16)
def _implied(nodes, probability, scales):
    from bayesstruct.precision.kernels.node_inclusion import sweep_node_prior

    rho = np.frombuffer(nodes)
    p, sweeps = len(rho), int(np.clip(10_000_000 // len(rho) ** 2, 500, _SWEEPS))
    matrix = np.frombuffer(probability).reshape(p, p).copy()
    odds = log_odds_matrix(matrix)
    rng, node_odds = np.random.default_rng(_SEED), np.log(rho) - np.log1p(-rho)
    shares = sweep_node_prior(rng, node_odds, odds, *scales, sweeps)[1]
    off = ~np.eye(p, dtype=bool)
    if np.ptp(rho) == 0 and np.ptp(matrix[off]) == 0:  # nodes and pairs are exchangeable
        shares = np.where(off, shares[off].mean(), shares.diagonal().mean())
    return np.round(np.clip(shares, 0.5 / sweeps, 1.0), 6)
