r"""Rows of a table given their clusters: columns, and a response that depends on them."""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV, zeros_like_draw
from bayesstruct.core.tensors import as_float

__all__ = [
    "ClusterBinary",
    "ClusterBinaryRV",
    "ClusterCount",
    "ClusterCountRV",
    "ClusterResponse",
    "ClusterResponseRV",
    "ClusterRows",
    "ClusterRowsRV",
]

_LOG_2PI = np.log(2.0 * np.pi)


def _of_row(values, cluster):
    """Take the values of the cluster of each row from an array of shape (..., K, d)."""
    if values.type.ndim == 2:
        return values[cluster]
    # In a batch, a product with indicators broadcasts correctly.
    chosen = pt.eq(cluster[..., None], pt.arange(values.shape[-2])).astype("float64")
    return (chosen[..., None] * values).sum(axis=-2)


def _predictor(x, cluster, coefficient, centre):
    """Linear predictor of each row."""
    of_row = _of_row(coefficient, cluster)
    return of_row[..., 0] + ((x - centre) * of_row[..., 1:]).sum(axis=-1)


class ClusterRowsRV(GraphRV):
    """Rows of independent normal columns given their clusters."""

    extended_signature = "[rng],[size],(),(k,d),(k,d)->[rng],(d)"
    _print_name = ("ClusterRows", "\\operatorname{ClusterRows}")

    @classmethod
    def build(cls, rng, size, cluster, mean, variance):
        """Build the graph of a draw."""
        shape = None if rv_size_is_none(size) else (*size, mean.shape[-1])
        next_rng, draw = pt.random.normal(
            _of_row(mean, cluster),
            pt.sqrt(_of_row(variance, cluster)),
            size=shape,
            rng=rng,
            return_next_rng=True,
        )
        return next_rng, draw


class ClusterRows(Continuous):
    r"""Rows whose columns are normal and independent given the cluster of the row.

    .. math:: x_{ij} \sim N(\mu_{kj}, v_{kj}), \qquad k = c_i

    Parameters
    ----------
    name : str
    cluster : TensorVariable
        (n,) labels, a :class:`ChineseRestaurant`.
    mean, variance : (K, d) tensor_like of float
    **kwargs
        ``observed``, ``dims`` and the like.
    """

    rv_type = ClusterRowsRV
    rv_op = ClusterRowsRV.rv_op
    support_point = zeros_like_draw

    @classmethod
    def dist(cls, cluster, mean, variance, **kwargs):
        """Create the distribution without a model."""
        params = [pt.as_tensor_variable(cluster), as_float(mean), as_float(variance)]
        return super().dist(params, **kwargs)


@_logprob.register(ClusterRowsRV)
def _rows_logp(op, values, rng, size, cluster, mean, variance, **kwargs):
    (value,) = values
    spread = _of_row(variance, cluster)
    step = value - _of_row(mean, cluster)
    return -0.5 * (step**2 / spread + pt.log(spread) + _LOG_2PI).sum(axis=-1)


class ClusterResponseRV(GraphRV):
    """Normal responses given rows and their clusters."""

    extended_signature = "[rng],[size],(d),(),(k,m),(d),(k,e)->[rng],()"
    _print_name = ("ClusterResponse", "\\operatorname{ClusterResponse}")

    @classmethod
    def build(cls, rng, size, x, cluster, coefficient, centre, variance):
        """Build the graph of a draw."""
        next_rng, draw = pt.random.normal(
            _predictor(x, cluster, coefficient, centre),
            pt.sqrt(_of_row(variance, cluster)[..., 0]),
            size=None if rv_size_is_none(size) else size,
            rng=rng,
            return_next_rng=True,
        )
        return next_rng, draw


class ClusterResponse(Continuous):
    r"""Responses that are linear in the columns, with coefficients and noise of the cluster of the row.

    .. math:: y_i \sim N\bigl(\beta_{k0} + \sum_j \beta_{kj} (x_{ij} - \bar x_j), s_k\bigr), \qquad k = c_i

    Parameters
    ----------
    name : str
    x : (n, d) tensor_like of float
    cluster : TensorVariable
        (n,) labels, a :class:`ChineseRestaurant`.
    coefficient : (K, d + 1) tensor_like of float
        Intercept first.
    centre : (d,) tensor_like of float
        Subtracted from the columns.
    variance : (K, 1) tensor_like of float
    **kwargs
        ``observed``, ``dims`` and the like.
    """

    rv_type = ClusterResponseRV
    rv_op = ClusterResponseRV.rv_op
    support_point = zeros_like_draw

    @classmethod
    def dist(cls, x, cluster, coefficient, centre, variance, **kwargs):
        """Create the distribution without a model."""
        x, coefficient, centre, variance = (as_float(v) for v in (x, coefficient, centre, variance))
        cluster = pt.as_tensor_variable(cluster)
        return super().dist([x, cluster, coefficient, centre, variance], **kwargs)


@_logprob.register(ClusterResponseRV)
def _response_logp(op, values, rng, size, x, cluster, coefficient, centre, variance, **kwargs):
    (value,) = values
    spread = _of_row(variance, cluster)[..., 0]
    step = value - _predictor(x, cluster, coefficient, centre)
    return -0.5 * (step**2 / spread + pt.log(spread) + _LOG_2PI)


class ClusterBinaryRV(GraphRV):
    """Responses of 0 and 1 given rows and their clusters."""

    extended_signature = "[rng],[size],(d),(),(k,m),(d)->[rng],()"
    _print_name = ("ClusterBinary", "\\operatorname{ClusterBinary}")

    @staticmethod
    def noise(predictor, **options):
        """Draw responses given their linear predictors."""
        return pt.random.bernoulli(pt.sigmoid(predictor), **options)

    @classmethod
    def build(cls, rng, size, x, cluster, coefficient, centre):
        """Build the graph of a draw."""
        next_rng, draw = cls.noise(
            _predictor(x, cluster, coefficient, centre),
            size=None if rv_size_is_none(size) else size,
            rng=rng,
            return_next_rng=True,
        )
        return next_rng, draw


class ClusterCountRV(ClusterBinaryRV):
    """Counts given rows and their clusters."""

    _print_name = ("ClusterCount", "\\operatorname{ClusterCount}")

    @staticmethod
    def noise(predictor, **options):
        """Draw responses given their linear predictors."""
        return pt.random.poisson(pt.exp(predictor), **options)


class ClusterBinary(Discrete):
    r"""Responses of 0 and 1 by a logistic regression with the coefficients of the cluster of the row.

    .. math::

        P(y_i = 1) = 1 / (1 + e^{-\eta_i}), \qquad
        \eta_i = \beta_{k0} + \sum_j \beta_{kj} (x_{ij} - \bar x_j), \qquad k = c_i

    Parameters
    ----------
    name : str
    x, cluster, coefficient, centre
        As for :class:`ClusterResponse`.
    **kwargs
        ``observed``, ``dims`` and the like.
    """

    rv_type = ClusterBinaryRV
    rv_op = ClusterBinaryRV.rv_op
    support_point = zeros_like_draw

    @classmethod
    def dist(cls, x, cluster, coefficient, centre, **kwargs):
        """Create the distribution without a model."""
        x, coefficient, centre = (as_float(v) for v in (x, coefficient, centre))
        return super().dist([x, pt.as_tensor_variable(cluster), coefficient, centre], **kwargs)


class ClusterCount(ClusterBinary):
    r"""Counts by a Poisson regression with the coefficients of the cluster of the row.

    .. math:: y_i \sim \mathrm{Poisson}(e^{\eta_i})

    Parameters
    ----------
    name : str
    x, cluster, coefficient, centre
        As for :class:`ClusterResponse`.
    **kwargs
        ``observed``, ``dims`` and the like.
    """

    rv_type = ClusterCountRV
    rv_op = ClusterCountRV.rv_op


@_logprob.register(ClusterBinaryRV)
def _binary_logp(op, values, rng, size, x, cluster, coefficient, centre, **kwargs):
    (value,) = values
    eta = _predictor(x, cluster, coefficient, centre)
    valid = pt.or_(pt.eq(value, 0), pt.eq(value, 1))
    return pt.where(valid, value * eta - pt.softplus(eta), -np.inf)


@_logprob.register(ClusterCountRV)
def _count_logp(op, values, rng, size, x, cluster, coefficient, centre, **kwargs):
    (value,) = values
    eta = _predictor(x, cluster, coefficient, centre)
    return pt.where(pt.ge(value, 0), value * eta - pt.exp(eta) - pt.gammaln(value + 1.0), -np.inf)
