r"""Prior of the precision matrices of several groups with an edge indicator of each pair in each group.

A pair has an edge in no group with probability 1 - p, in all groups with probability p (1 - q), and in some of them with probability p q, each of
the :math:`2^G - 2` patterns being equally probable. Given the indicators elements are independent: normal with the standard deviation of
the slab where there is an edge, of the spike elsewhere. Groups share which pairs are connected, and not how strongly; compare
:mod:`bayesstruct.precision.priors.groups`. Matrices are conditioned on being positive definite, all of them, as there.
"""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous, Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.distributions.transforms import _default_transform

from bayesstruct.core.distributions import KernelRV
from bayesstruct.core.odds import slab_log_odds
from bayesstruct.core.tensors import draw_batch
from bayesstruct.precision.priors.edges import upper
from bayesstruct.precision.priors.groups import (
    INDICATOR_SCALES,
    GroupedCholesky,
    checked_parameters,
    log_density,
    log_sum,
    matrices_shape,
    matrices_start,
    normal,
    with_probabilities,
)
from bayesstruct.precision.priors.precision import PrecisionRV, safe_log

__all__ = ["GroupEdges", "GroupIndicatorSpikeSlab"]


class GroupIndicatorSpikeSlabRV(PrecisionRV):
    name = "group_indicator_spike_slab"
    signature = "(p,p),(p,p),(),(),(g)->(g,p,p)"
    _print_name = ("GroupIndicatorSpikeSlab", "\\operatorname{GroupIndicatorSpikeSlab}")

    def _supp_shape_from_params(self, dist_params, param_shapes=None):
        return matrices_shape(dist_params, param_shapes)

    @classmethod
    def rng_fn(cls, rng, edge, difference, spike, slab, rates, size):
        """Draw by rejection or by Gibbs sweeps without data."""
        from bayesstruct.precision.kernels.row_groups.prior import draw_groups, log_relations
        from bayesstruct.precision.kernels.row_groups.sweep import INDICATORS

        def core(rng, edge, difference, spike, slab, rates):
            log_prior = log_relations(edge, difference)
            return draw_groups(rng, log_prior, (spike, slab, 0.0, 0.0), rates, INDICATORS)

        params = (edge, difference, spike, slab, rates)
        shape = (rates.shape[-1], *edge.shape[-2:])
        return draw_batch(core, rng, (2, 2, 0, 0, 1), params, size, shape)

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.row_groups.prior import draw_groups, log_relations
        from bayesstruct.precision.kernels.row_groups.sweep import INDICATORS

        def draw(rng, edge, difference, spike, slab, rates):
            log_prior = log_relations(edge.copy(), difference.copy())
            scales = (spike.item(), slab.item(), 0.0, 0.0)
            return draw_groups(rng, log_prior, scales, rates.copy(), INDICATORS)

        return draw


def _pattern_log_weights(precision, edge, difference, spike, slab) -> list:
    """Log of probability times density of the elements of each pair: absent, equal, different; (p, p) each."""
    groups = precision.type.shape[-3]
    absent = [normal(pt.square(precision[..., g, :, :]), spike) for g in range(groups)]
    present = [normal(pt.square(precision[..., g, :, :]), slab) for g in range(groups)]
    mixed, none, every = None, absent[0], present[0]
    for low, high in zip(absent[1:], present[1:], strict=True):
        new = pt.logaddexp(none + high, every + low)
        mixed = new if mixed is None else pt.logaddexp(mixed + pt.logaddexp(low, high), new)
        none, every = none + low, every + high
    patterns = np.log(2.0**groups - 2.0)
    return [
        safe_log(1.0 - edge) + none,
        safe_log(edge) + safe_log(1.0 - difference) + every,
        safe_log(edge) + safe_log(difference) + mixed - patterns,
    ]


class GroupIndicatorSpikeSlab(Continuous):
    """Spike-and-slab prior of the precision matrices of several groups, with an edge indicator in each group.

    See the top of this module; indicators are summed out. Given the matrices they have the distribution :class:`GroupEdges`.

    ========  ==========================================
    Support   (G, p, p), each symmetric positive definite
    ========  ==========================================

    Parameters
    ----------
    groups : int
        Number G of groups, at least 2.
    p : int
        Number of variables.
    edge_probability, difference_probability : float, (p, p) array_like or ``pm.Beta.dist``, default 0.5
        Nominal probability of an edge in some group, and that a pair with an edge has none in some other group. A beta
        distribution makes a variable of the model, which is drawn with the matrices.
    fixed : (p, p) array_like, optional
        Zeros forbid and ones require edges, if ``edge_probability`` is a beta distribution.
    spike_scale, slab_scale : float
        Standard deviations of an element without and with an edge.
    diagonal_rate : float, default 0.5
        Rate of the exponential distribution of the diagonals.
    start : callable, optional
        Returns the (G, p, p) tensor that chains start from. Unit matrices unless given.

    References
    ----------
    Peterson, C., Stingo, F. C. and Vannucci, M. (2015). Bayesian inference of multiple Gaussian graphical models. *Journal of the American
    Statistical Association* 110, 159-174, for edges of groups that support each other.
    """

    rv_type = GroupIndicatorSpikeSlabRV
    rv_op = GroupIndicatorSpikeSlabRV.build

    def __new__(cls, name, groups, p, *probabilities, fixed=None, **kwargs):
        """Register the prior, and those of probabilities that have one."""
        probabilities = with_probabilities(
            name, groups, p, probabilities, fixed, kwargs, INDICATOR_SCALES
        )
        return super().__new__(cls, name, groups, p, *probabilities, **kwargs)

    @classmethod
    def dist(
        cls,
        groups,
        p,
        edge_probability=0.5,
        difference_probability=0.5,
        *,
        spike_scale=0.02,
        slab_scale=1.0,
        diagonal_rate=0.5,
        **kwargs,
    ):
        """Create the distribution without a model."""
        probabilities = {
            "edge_probability": edge_probability,
            "difference_probability": difference_probability,
        }
        scales = {"spike_scale": spike_scale, "slab_scale": slab_scale}
        params = checked_parameters(groups, p, probabilities, scales, diagonal_rate)
        return super().dist(params, **kwargs)

    def support_point(rv, size, edge, difference, spike, slab, rates):
        """Return the start if it was given, else unit matrices."""
        return matrices_start(rv, size, edge, rates)

    def logp(value, edge, difference, spike, slab, rates):
        """Log density up to the constant of the cones."""
        parts = _pattern_log_weights(value, edge, difference, spike, slab)
        return check_parameters(
            log_density(value, parts, rates),
            spike > 0,
            slab > spike,
            pt.all(rates > 0, axis=-1),
            msg="0 < spike_scale < slab_scale, diagonal_rate > 0",
        )


@_default_transform.register(GroupIndicatorSpikeSlabRV)
def _(op, rv):
    return GroupedCholesky(rv.type.shape[-3], rv.type.shape[-1])


class GroupEdgesRV(KernelRV):
    name = "group_edges"
    signature = "(g,p,p),(p,p),(p,p),(),()->(g,e)"
    dtype = "int64"
    _print_name = ("GroupEdges", "\\operatorname{GroupEdges}")

    def _supp_shape_from_params(self, dist_params, param_shapes=None):
        shape = dist_params[0].shape if param_shapes is None else param_shapes[0]
        return [shape[-3], shape[-1] * (shape[-1] - 1) // 2]

    @classmethod
    def rng_fn(cls, rng, precision, edge, difference, spike, slab, size):
        """Draw the indicators of each pair."""
        from bayesstruct.precision.kernels.row_groups.prior import draw_group_edges, log_relations

        def core(rng, precision, edge, difference, spike, slab):
            return draw_group_edges(rng, precision, log_relations(edge, difference), spike, slab)

        groups, p = precision.shape[-3], precision.shape[-1]
        params = (precision, edge, difference, spike, slab)
        shape = (groups, p * (p - 1) // 2)
        return draw_batch(core, rng, (3, 2, 2, 0, 0), params, size, shape).astype("int64")

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.row_groups.prior import draw_group_edges, log_relations

        def draw(rng, precision, edge, difference, spike, slab):
            log_prior = log_relations(edge.copy(), difference.copy())
            return draw_group_edges(rng, precision.copy(), log_prior, spike.item(), slab.item())

        return draw


class GroupEdges(Discrete):
    """Edge indicators of each group and pair given the precision matrices of the groups.

    ========  ==================================================
    Support   (G, p(p-1)/2) arrays of 0 and 1, pairs row-major
    ========  ==================================================

    Parameters
    ----------
    precision : TensorVariable
        (G, p, p) matrices drawn from :class:`GroupIndicatorSpikeSlab`.
    """

    rv_op = GroupEdgesRV()

    @classmethod
    def dist(cls, precision, **kwargs):
        """Create the distribution without a model."""
        owner = getattr(precision, "owner", None)
        if owner is None or not isinstance(owner.op, GroupIndicatorSpikeSlabRV):
            raise ValueError(
                "`GroupEdges` needs precision matrices with the GroupIndicatorSpikeSlab prior"
            )
        *params, _ = owner.op.dist_params(owner)
        return super().dist([precision, *params], **kwargs)

    def support_point(rv, size, precision, edge, difference, spike, slab):
        """Return the edges whose elements are nearer to the slab, by themselves."""
        point = pt.stack([upper(odds) for odds in _log_odds(precision, spike, slab)]) > 0
        point = point.astype("int64")
        return point if rv_size_is_none(size) else pt.full((*size, *point.shape), point)

    def logp(value, precision, edge, difference, spike, slab):
        """Sum of the log probabilities of the patterns; minus infinity off 0 and 1."""
        parts = _pattern_log_weights(precision, edge, difference, spike, slab)
        total, groups = upper(log_sum(parts)), precision.type.shape[-3]
        count = value.sum(-2)
        patterns = np.log(2.0**groups - 2.0)
        prior = safe_log(upper(edge)) + safe_log(upper(difference)) - patterns
        equal = safe_log(upper(edge)) + safe_log(1.0 - upper(difference))
        prior = pt.switch(pt.eq(count, groups), equal, prior)
        prior = pt.switch(pt.eq(count, 0), safe_log(1.0 - upper(edge)), prior)
        fit = 0.0
        for g in range(groups):
            square = pt.square(precision[..., g, :, :])
            present, absent = upper(normal(square, slab)), upper(normal(square, spike))
            fit = fit + pt.switch(pt.eq(value[..., g, :], 1), present, absent)
        binary = pt.all(pt.or_(pt.eq(value, 0), pt.eq(value, 1)), axis=(-2, -1))
        return pt.switch(binary, (prior + fit - total).sum(-1), -np.inf)


def _log_odds(precision, spike, slab) -> list:
    groups = precision.type.shape[-3]
    scales = spike[..., None, None], slab[..., None, None]
    return [slab_log_odds(precision[..., g, :, :], 0.0, *scales) for g in range(groups)]
