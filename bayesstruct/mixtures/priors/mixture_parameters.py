r"""Parameters of the clusters of a partition, zero for empty clusters."""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.tensors import as_drawn, as_float
from bayesstruct.data.arguments import whole_number
from bayesstruct.mixtures.ops import clusters_of

__all__ = ["ClusterNormals", "ClusterNormalsRV", "ClusterVariances", "ClusterVariancesRV"]

_LOG_2PI = np.log(2.0 * np.pi)


def _used(cluster, components):
    """Whether each cluster has an object, (..., K)."""
    return pt.gt(clusters_of(cluster, components).counts, 0.0)


class ClusterVariancesRV(GraphRV):
    """Variances of clusters, zero for those that are not used."""

    extended_signature = "[rng],[size],(n),(),(d)->[rng],(k,d)"
    _print_name = ("ClusterVariances", "\\operatorname{ClusterVariances}")

    options = ("components",)

    @classmethod
    def build(cls, rng, size, cluster, shape, rate, *, components):
        """Build the graph of a draw."""
        used = _used(cluster, components)[..., None]
        power = shape[..., None, None]
        scale = rate[..., None, :]
        full = (used * power * scale).shape
        lengths = full if rv_size_is_none(size) else (*size, components, rate.shape[-1])
        next_rng, gamma = pt.random.gamma(
            power, scale=1.0, size=lengths, rng=rng, return_next_rng=True
        )
        draw = pt.where(used, scale / gamma, 0.0)
        return next_rng, draw


class ClusterVariances(Continuous):
    r"""Variances in each cluster, inverse-gamma for clusters that are used.

    .. math:: v_{kj} \sim \mathrm{IG}(a, b_j) \text{ if cluster k is used}, \qquad v_{kj} = 0 \text{ if not}

    Parameters
    ----------
    name : str
    cluster : TensorVariable
        (n,) labels, a :class:`ChineseRestaurant`.
    alpha : tensor_like of float
        a, above 0, the shape.
    beta : (d,) tensor_like of float
        b, above 0, the scale: the mean of a variance is b / (a - 1).
    components : int
        K, maximum number of clusters.
    **kwargs
        ``dims`` and the like.

    Notes
    -----
    The density is relative to Lebesgue measure for clusters that are used, and to a unit mass at zero for the
    others.
    """

    rv_type = ClusterVariancesRV
    rv_op = ClusterVariancesRV.rv_op

    @classmethod
    def dist(cls, cluster, alpha, beta, *, components, **kwargs):
        """Create the distribution without a model."""
        components = whole_number("components", components, 1)
        params = [pt.as_tensor_variable(cluster), as_float(alpha), as_float(beta)]
        return super().dist(params, components=components, **kwargs)

    def support_point(rv, size, cluster, shape, rate):
        """Return the modes, for clusters that are used."""
        used = _used(cluster, rv.owner.op.components)[..., None]
        mode = rate[..., None, :] / (shape[..., None, None] + 1.0)
        return as_drawn(pt.where(used, mode, 0.0), rv, size)


@_logprob.register(ClusterVariancesRV)
def _variances_logp(op, values, rng, size, cluster, shape, rate, **kwargs):
    (value,) = values
    used = _used(cluster, op.components)[..., None]
    a, b = shape[..., None, None], rate[..., None, :]
    valid = pt.gt(value, 0.0)
    v = pt.where(valid, value, 1.0)
    density = a * pt.log(b) - pt.gammaln(a) - (a + 1.0) * pt.log(v) - b / v
    slab = pt.where(valid, density, -np.inf)
    spike = pt.where(pt.eq(value, 0.0), 0.0, -np.inf)
    return pt.where(used, slab, spike).sum(axis=(-1, -2))


class ClusterNormalsRV(GraphRV):
    """Normal parameters of clusters, zero for those that are not used."""

    extended_signature = "[rng],[size],(n),(k,e),(d),(d)->[rng],(k,d)"
    _print_name = ("ClusterNormals", "\\operatorname{ClusterNormals}")

    @classmethod
    def build(cls, rng, size, cluster, variance, location, strength):
        """Build the graph of a draw."""
        k = variance.shape[-2]
        used = _used(cluster, k)[..., None]
        mean = location[..., None, :]
        deviation = pt.sqrt(variance / strength[..., None, :])
        full = (used * mean * deviation).shape
        lengths = full if rv_size_is_none(size) else (*size, k, location.shape[-1])
        next_rng, normal = pt.random.normal(0.0, 1.0, size=lengths, rng=rng, return_next_rng=True)
        draw = pt.where(used, mean + deviation * normal, 0.0)
        return next_rng, draw


class ClusterNormals(Continuous):
    r"""Means or coefficients in each cluster, normal for clusters that are used.

    .. math::

        \theta_{kj} \sim N(m_j, v_{kj} / \kappa_j) \text{ if cluster k is used}, \qquad
        \theta_{kj} = 0 \text{ if not}

    Parameters
    ----------
    name : str
    cluster : TensorVariable
        (n,) labels, a :class:`ChineseRestaurant`.
    variance : (K, d) or (K, 1) tensor_like of float
        v; only the rows of clusters that are used matter.
    location : (d,) tensor_like of float
        m.
    strength : (d,) tensor_like of float
        :math:`\kappa`, above 0: number of rows that the prior of a mean counts as.
    **kwargs
        ``dims`` and the like.

    Notes
    -----
    The density is relative to Lebesgue measure for clusters that are used, and to a unit mass at zero for the
    others.
    """

    rv_type = ClusterNormalsRV
    rv_op = ClusterNormalsRV.rv_op

    @classmethod
    def dist(cls, cluster, variance, location, strength, **kwargs):
        """Create the distribution without a model."""
        params = [as_float(v) for v in (variance, location, strength)]
        return super().dist([pt.as_tensor_variable(cluster), *params], **kwargs)

    def support_point(rv, size, cluster, variance, location, strength):
        """Return the prior means, for clusters that are used."""
        used = _used(cluster, variance.shape[-2])[..., None]
        return as_drawn(pt.where(used, location[..., None, :], 0.0), rv, size)


@_logprob.register(ClusterNormalsRV)
def _normals_logp(op, values, rng, size, cluster, variance, location, strength, **kwargs):
    (value,) = values
    used = _used(cluster, variance.shape[-2])[..., None]
    spread = pt.where(used, variance, 1.0) / strength[..., None, :]
    step = value - location[..., None, :]
    slab = -0.5 * (step**2 / spread + pt.log(spread) + _LOG_2PI)
    spike = pt.where(pt.eq(value, 0.0), 0.0, -np.inf)
    return pt.where(used, slab, spike).sum(axis=(-1, -2))
