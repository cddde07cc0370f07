"""Spike-and-slab prior of a precision matrix whose columns are in unknown blocks."""

from functools import lru_cache
from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous, Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.distributions.transforms import _default_transform
from pymc.logprob.transforms import LogOddsTransform

from bayesstruct.core.distributions import KernelRV
from bayesstruct.core.tensors import as_float, draw_batch
from bayesstruct.precision.priors.checks import refuse_random, refuse_wrong
from bayesstruct.precision.priors.node_inclusion import NodeSpikeSlabRV
from bayesstruct.precision.priors.precision import GraphicalSpikeSlab

__all__ = [
    "BlockEdgeProbabilities",
    "BlockEdgeProbabilitiesRV",
    "BlockLabels",
    "BlockLabelsRV",
    "BlockSpikeSlab",
    "BlockSpikeSlabRV",
    "implied_block_probability",
]

_SEED = 20120801  # fixed: equal models give equal Bayes factors


class BlockEdgeProbabilitiesRV(KernelRV):
    """Random variable of `BlockEdgeProbabilities`."""

    name = "block_edge_probabilities"
    signature = "(s),(s),(),(),(),(),(),()->(s)"
    _print_name = ("BlockEdgeProbabilities", "\\operatorname{BlockEdgeProbabilities}")

    @classmethod
    def rng_fn(cls, rng, alpha, beta, p, most, concentration, spike, slab, rate, size):
        """Draw by rejection or by Gibbs sweeps over the joint prior."""
        from bayesstruct.precision.kernels.blocks import draw_prior_blocks

        def core(rng, alpha, beta, p, most, concentration, spike, slab, rate):
            shares, prior = np.empty(2), (alpha, beta, int(most), concentration)
            draw_prior_blocks(rng, int(p), shares, False, *prior, spike, slab, rate)
            return shares

        params = (alpha, beta, p, most, concentration, spike, slab, rate)
        return draw_batch(core, rng, (1, 1, 0, 0, 0, 0, 0, 0), params, size, (2,))

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.blocks import draw_prior_blocks

        def draw(rng, alpha, beta, p, most, concentration, spike, slab, rate):
            shares = np.empty(2)
            draw_prior_blocks(
                rng,
                int(p.item()),
                shares,
                False,
                alpha.copy(),
                beta.copy(),
                int(most.item()),
                concentration.item(),
                spike.item(),
                slab.item(),
                rate.item(),
            )
            return shares

        return draw


class BlockEdgeProbabilities(Continuous):
    r"""Probabilities of edges within and between unknown blocks, for :class:`BlockLabels` and :class:`BlockSpikeSlab`.

    Independent beta distributions times the probability that independent spike-and-slab elements form a positive definite
    matrix, which cancels the constant of the matrix given all else, so that neither ``logp`` contains it.

    Parameters
    ----------
    p : int
        Number of variables.
    within, between : tuple of float
        Shapes of the nominal beta distributions.
    max_blocks : int
    concentration : float
        Of the symmetric Dirichlet distribution of the shares of blocks, all blocks together.
    spike_scale, slab_scale, diagonal_rate : float
        Those of the precision matrix.
    """

    rv_op = BlockEdgeProbabilitiesRV()

    @classmethod
    def dist(
        cls,
        p,
        within=(2.0, 2.0),
        between=(1.0, 9.0),
        *,
        max_blocks=5,
        concentration=1.0,
        spike_scale=0.02,
        slab_scale=1.0,
        diagonal_rate=0.5,
        **kwargs,
    ):
        """Create the distribution without a model."""
        shapes = np.array([within, between], dtype="float64").T
        constants = {
            "concentration": as_float(concentration),
            "spike_scale": as_float(spike_scale),
            "slab_scale": as_float(slab_scale),
            "diagonal_rate": as_float(diagonal_rate),
        }
        refuse_random(**constants)
        refuse_wrong(within=as_float(shapes), **constants)
        if max_blocks < 1:
            raise ValueError(
                f"`max_blocks` must be a positive number of blocks, it is {max_blocks}"
            )
        sizes = [as_float(float(p)), as_float(float(max_blocks))]
        params = [as_float(shapes[0]), as_float(shapes[1]), *sizes, *constants.values()]
        return super().dist(params, **kwargs)

    def support_point(rv, size, alpha, beta, *_):
        """Return the nominal means."""
        mean = alpha / (alpha + beta)
        return mean if rv_size_is_none(size) else pt.full((*size, 2), mean)

    def logp(value, alpha, beta, *_):
        """Log density of the beta distributions; the constant of the cone is that of the precision matrix."""
        inside = pt.and_(value > 0.0, value < 1.0)
        safe = pt.switch(inside, value, 0.5)
        log = (alpha - 1.0) * pt.log(safe) + (beta - 1.0) * pt.log1p(-safe)
        log = log - pt.gammaln(alpha) - pt.gammaln(beta) + pt.gammaln(alpha + beta)
        total = pt.switch(inside, log, -np.inf).sum(-1)
        return check_parameters(total, alpha > 0, beta > 0, msg="alpha > 0, beta > 0")


class _VectorLogOdds(LogOddsTransform):
    """Log odds of all entries of a vector."""

    ndim_supp = 1

    def log_jac_det(self, value, *inputs):
        """Sum over the entries."""
        return super().log_jac_det(value, *inputs).sum(axis=-1)


@_default_transform.register(BlockEdgeProbabilitiesRV)
def _(op, rv):
    return _VectorLogOdds()


class BlockLabelsRV(KernelRV):
    """Random variable of `BlockLabels`."""

    name = "block_labels"
    signature = "(s),(p),(),(),(),(),()->(p)"
    dtype = "int64"
    _print_name = ("BlockLabels", "\\operatorname{BlockLabels}")

    @classmethod
    def rng_fn(cls, rng, shares, columns, most, concentration, spike, slab, rate, size):
        """Draw by rejection or by Gibbs sweeps over the joint prior given the probabilities of edges."""
        from bayesstruct.precision.kernels.blocks import draw_prior_blocks

        def core(rng, shares, columns, most, concentration, spike, slab, rate):
            own = np.array(shares, float)
            prior = (own, own, int(most), concentration, spike, slab, rate)
            return draw_prior_blocks(rng, len(columns), own, True, *prior)

        params = (shares, columns, most, concentration, spike, slab, rate)
        out = draw_batch(core, rng, (1, 1, 0, 0, 0, 0, 0), params, size, columns.shape[-1:])
        return out.astype("int64")

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.blocks import draw_prior_blocks

        def draw(rng, shares, columns, most, concentration, spike, slab, rate):
            own = shares.copy()
            return draw_prior_blocks(
                rng,
                len(columns),
                own,
                True,
                own,
                own,
                int(most.item()),
                concentration.item(),
                spike.item(),
                slab.item(),
                rate.item(),
            )

        return draw


class BlockLabels(Discrete):
    r"""Block of each column, unknown: a partition into at most ``max_blocks`` blocks, numbered in the order of first columns.

    .. math:: p(c) \propto C(c) \frac{m!}{(m - k)!} \prod_b \frac{\Gamma(n_b + \alpha / m)}{\Gamma(\alpha / m)}

    for k of at most m blocks of :math:`n_b` columns, where :math:`C(c)` is the probability that independent spike-and-slab elements
    form a positive definite matrix; it cancels the constant of the matrix, so that ``logp`` is without it.

    Parameters
    ----------
    probabilities : tensor_like
        Drawn from :class:`BlockEdgeProbabilities`, whose other parameters hold here too.
    """

    rv_op = BlockLabelsRV()

    @classmethod
    def dist(cls, probabilities: Any, **kwargs):
        """Create the distribution without a model."""
        owner = getattr(probabilities, "owner", None)
        if owner is None or not isinstance(owner.op, BlockEdgeProbabilitiesRV):
            raise ValueError("`probabilities` must be a variable drawn from BlockEdgeProbabilities")
        params: list[Any] = list(owner.op.dist_params(owner))
        _, _, p, *rest = params
        columns = as_float(np.ones(int(p.data)))
        return super().dist([probabilities, columns, *rest], **kwargs)

    def support_point(rv, size, shares, columns, *_):
        """Return one block."""
        point = pt.zeros_like(columns, dtype="int64")
        return point if rv_size_is_none(size) else pt.full((*size, columns.shape[-1]), point)

    def logp(value, shares, columns, most, concentration, *_):
        """Log probability of the partition without the constant of the cone; minus infinity for other numberings."""
        p = columns.type.shape[-1]
        member = pt.eq(value[..., :, None], np.arange(p))
        sizes = member.sum(axis=-2)
        each = concentration / most
        used = pt.gt(sizes, 0)
        terms = pt.switch(used, pt.gammaln(sizes + each) - pt.gammaln(each), 0.0)
        count = used.sum(axis=-1)
        numberings = pt.gammaln(most + 1.0) - pt.gammaln(pt.maximum(most - count, 0.0) + 1.0)
        total = terms.sum(-1) + numberings
        total = total + pt.gammaln(concentration) - pt.gammaln(concentration + p)
        so_far = pt.gt(pt.cumsum(member, axis=-2), 0).sum(axis=-1)[..., :-1] - 1
        seen = pt.concatenate([pt.full_like(value[..., :1], -1), so_far], axis=-1)
        ordered = pt.all(pt.and_(value >= 0, value <= seen + 1), axis=-1)
        return pt.switch(pt.and_(ordered, count <= most), total, -np.inf)


class BlockSpikeSlabRV(NodeSpikeSlabRV):
    """The density of a joint spike and slab, of a matrix whose edge probabilities depend on blocks."""


class BlockSpikeSlab(Continuous):
    r"""Spike-and-slab prior of a precision matrix given the unknown blocks of its columns.

    The density of :class:`bayesstruct.GraphicalSpikeSlab`, an edge having one probability within blocks and another one between
    them; all parameters are those of the labels.

    Parameters
    ----------
    labels : tensor_like of int
        Drawn from :class:`BlockLabels`.
    start : callable, optional
        Returns the (p, p) tensor that chains start from. The identity unless given.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            probabilities = bs.distributions.BlockEdgeProbabilities("block_edge_probability", 5)
            block = bs.distributions.BlockLabels("block", probabilities)
            precision = bs.distributions.BlockSpikeSlab("precision", block)
            pm.MvNormal("x", np.zeros(5), tau=precision, observed=rows)
    """

    rv_type = BlockSpikeSlabRV
    rv_op = BlockSpikeSlabRV.build

    @classmethod
    def dist(cls, labels: Any, **kwargs):
        """Create the distribution without a model."""
        owner = getattr(labels, "owner", None)
        if owner is None or not isinstance(owner.op, BlockLabelsRV):
            raise ValueError("`labels` must be a variable drawn from BlockLabels")
        params: list[Any] = list(owner.op.dist_params(owner))
        shares, _, _, _, spike, slab, rate = params
        probability = same_block(labels) * (shares[0] - shares[1]) + shares[1]
        return super().dist([probability, spike, slab, rate, as_float(1.0)], **kwargs)

    support_point = GraphicalSpikeSlab.support_point
    logp = GraphicalSpikeSlab.logp


def same_block(labels):
    """Matrix that is 1 where two columns are in one block."""
    return pt.cast(pt.eq(labels[..., :, None], labels[..., None, :]), "float64")


def implied_block_probability(
    p: int,
    within: tuple[float, float],
    between: tuple[float, float],
    *,
    max_blocks: int,
    concentration: float,
    spike_scale: float,
    slab_scale: float,
    diagonal_rate: float,
) -> np.ndarray:
    """Prior probability of an edge that positive definiteness implies; parameters are those of `BlockEdgeProbabilities`.

    Returns
    -------
    (pairs,) ndarray
        Equal values, from Gibbs draws of the prior.
    """
    scales = float(spike_scale), float(slab_scale), float(diagonal_rate)
    shapes = tuple(map(float, within)), tuple(map(float, between))
    share = _implied(p, *shapes, int(max_blocks), float(concentration), scales)
    return np.full(p * (p - 1) // 2, share)


@lru_cache(maxsize=16)
def _implied(p, within, between, most, concentration, scales):
    from bayesstruct.precision.kernels.blocks import sweep_blocks

    alpha, beta = np.array([within, between]).T.copy()
    sweeps = int(np.clip(10_000_000 // p**2, 500, 4_000))
    labels, rng = np.zeros(p, np.int64), np.random.default_rng(_SEED)
    prior = (False, alpha, beta, most, concentration)
    shares = sweep_blocks(rng, labels, np.empty(2), *prior, *scales, sweeps)
    return round(float(shares[np.triu_indices(p, 1)].mean()), 6)
