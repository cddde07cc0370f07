r"""Binary matrices with a given number of columns, and the ordered probabilities of all features.

Both lead to the Indian buffet process (:class:`bayesstruct.IndianBuffet`): the first in the limit of many columns,
the second as it stands, if entries are independent given the probabilities of their columns.
"""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.distributions.transforms import _default_transform
from pymc.logprob.abstract import _logprob
from pymc.logprob.transforms import Transform

from bayesstruct.core.distributions import GraphRV, zeros_like_draw
from bayesstruct.core.tensors import as_float
from bayesstruct.data.arguments import whole_number
from bayesstruct.features.kernels.indian_buffet import check_buffet
from bayesstruct.features.priors.indian_buffet import constant_number

__all__ = [
    "FiniteFeatures",
    "FiniteFeaturesRV",
    "StickBreakingProbabilities",
    "StickBreakingProbabilitiesRV",
]


def _batch(size, *params):
    """Dimensions before those of an element."""
    return tuple(size) if not rv_size_is_none(size) else tuple(sum(params).shape)


class FiniteFeaturesRV(GraphRV):
    """A binary matrix whose columns have independent probabilities."""

    extended_signature = "[rng],[size],(),()->[rng],(n,k)"
    _print_name = ("FiniteFeatures", "\\operatorname{FiniteFeatures}")

    options = ("matrix",)

    @classmethod
    def build(cls, rng, size, alpha, concentration, *, matrix):
        """Build the graph of a draw."""
        n, k = matrix
        batch = _batch(size, alpha, concentration)
        a, b = (v[..., None] for v in (alpha * concentration / k, concentration))
        middle, probability = pt.random.beta(a, b, size=(*batch, k), rng=rng, return_next_rng=True)
        next_rng, uniform = pt.random.uniform(size=(*batch, n, k), rng=middle, return_next_rng=True)
        draw = pt.lt(uniform, probability[..., None, :]).astype("int8")
        return next_rng, draw


class FiniteFeatures(Discrete):
    r"""Binary matrix with K columns, each of which has a probability of its own, summed out.

    .. math:: \pi_k \sim \mathrm{Beta}(\alpha c / K, c), \qquad z_{ik} \sim \mathrm{Bernoulli}(\pi_k)

    ========  =====================================================================================
    Support   (n, K) matrices of 0 and 1, in any order of the columns
    Mean      a row has :math:`\alpha / (1 + \alpha / K)` features
    ========  =====================================================================================

    Parameters
    ----------
    name : str
    alpha : tensor_like of float
        Above 0; may be a random variable.
    observations : int
        n.
    columns : int
        K.
    concentration : tensor_like of float, default 1
        c, above 0: the larger, the fewer features rows share.
    **kwargs
        ``dims`` and the like.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    With :math:`m_k` the sum of column k,

    .. math:: p(Z) = \prod_k \frac{B(m_k + \alpha c / K, \; n - m_k + c)}{B(\alpha c / K, \; c)},

    and the probability of a class of matrices that differ by the order of their columns goes to that of an
    :class:`bayesstruct.IndianBuffet` with the same `alpha` and `concentration` as K grows.

    References
    ----------
    Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review.
    *JMLR* 12, 1185-1224, equations 9 to 11. -- Ghahramani, Z., Griffiths, T. L. and Sollich, P. (2007). Bayesian
    nonparametric latent feature models. *Bayesian Statistics* 8 (two parameters).

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            feature = bs.distributions.FiniteFeatures("feature", 2.0, observations=100, columns=10)
    """

    rv_type = FiniteFeaturesRV
    rv_op = FiniteFeaturesRV.rv_op
    support_point = zeros_like_draw

    @classmethod
    def dist(cls, alpha, *, observations, columns, concentration=1.0, **kwargs):
        """Create the distribution without a model."""
        matrix = (
            whole_number("observations", observations, 1),
            whole_number("columns", columns, 1),
        )
        params = [as_float(v) for v in (alpha, concentration)]
        alpha_, c = (1.0 if v is None else v for v in map(constant_number, params))
        check_buffet(alpha_, c)
        return super().dist(params, matrix=matrix, **kwargs)


@_logprob.register(FiniteFeaturesRV)
def _finite_logp(op, values, rng, size, alpha, concentration, **kwargs):
    (value,) = values
    n, k = op.matrix
    value = pt.specify_shape(value, (*(None,) * (value.type.ndim - 2), n, k))
    m = value.astype("float64").sum(axis=-2)
    a, c = (v[..., None] for v in (alpha * concentration / k, concentration))
    column = (
        pt.gammaln(m + a)
        - pt.gammaln(a)
        + pt.gammaln(n - m + c)
        - pt.gammaln(c)
        + pt.gammaln(a + c)
        - pt.gammaln(n + a + c)
    )
    binary = pt.or_(pt.eq(value, 0), pt.eq(value, 1)).all(axis=(-1, -2))
    return pt.where(binary, column.sum(axis=-1), -np.inf)


class StickBreakingProbabilitiesRV(GraphRV):
    """Products of independent ratios below one."""

    extended_signature = "[rng],[size],()->[rng],(k)"
    _print_name = ("StickBreakingProbabilities", "\\operatorname{StickBreakingProbabilities}")

    options = ("columns",)

    @classmethod
    def build(cls, rng, size, alpha, *, columns):
        """Build the graph of a draw."""
        shape = (*_batch(size, alpha), columns)
        next_rng, ratio = pt.random.beta(
            alpha[..., None], 1.0, size=shape, rng=rng, return_next_rng=True
        )
        draw = pt.cumprod(ratio, axis=-1)
        return next_rng, draw


class StickBreakingProbabilities(Continuous):
    r"""The largest probabilities of the features of an Indian buffet process, in decreasing order.

    .. math:: \pi_{(k)} = \prod_{j \le k} \nu_j, \qquad \nu_j \sim \mathrm{Beta}(\alpha, 1)

    ========  =====================================================================================
    Support   :math:`1 > \pi_{(1)} > \dots > \pi_{(K)} > 0`
    Mean      :math:`E \, \pi_{(k)} = (\alpha / (1 + \alpha))^k`, which add up to :math:`\alpha` over all k
    ========  =====================================================================================

    Parameters
    ----------
    name : str
    alpha : tensor_like of float
        Above 0; may be a random variable.
    columns : int
        K, after which the process is truncated: on average a row has :math:`\alpha (\alpha / (1 + \alpha))^K`
        features that are left out.
    **kwargs
        ``dims`` and the like.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The density is :math:`\alpha^K \pi_{(K)}^\alpha \prod_k \pi_{(k)}^{-1}`. Samplers see the log-odds of the ratios
    :math:`\nu_j`.

    References
    ----------
    Teh, Y. W., Gorur, D. and Ghahramani, Z. (2007). Stick-breaking construction for the Indian buffet process.
    *AISTATS* 11, section 3.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            probability = bs.distributions.StickBreakingProbabilities(
                "probability", 2.0, columns=15
            )
            feature = pm.Bernoulli("feature", probability, shape=(100, 15))
    """

    rv_type = StickBreakingProbabilitiesRV
    rv_op = StickBreakingProbabilitiesRV.rv_op

    @classmethod
    def dist(cls, alpha, *, columns, **kwargs):
        """Create the distribution without a model."""
        columns, alpha = whole_number("columns", columns, 1), as_float(alpha)
        known = constant_number(alpha)
        check_buffet(1.0 if known is None else known)
        return super().dist([alpha], columns=columns, **kwargs)

    def support_point(rv, size, alpha):
        """Return the means."""
        mean = (alpha / (1.0 + alpha))[..., None] ** pt.arange(1, rv.shape[-1] + 1)
        return pt.broadcast_to(mean, rv.shape)


@_logprob.register(StickBreakingProbabilitiesRV)
def _stick_logp(op, values, rng, size, alpha, **kwargs):
    (value,) = values
    value = pt.specify_shape(value, (*(None,) * (value.type.ndim - 1), op.columns))
    total = op.columns * pt.log(alpha) + alpha * pt.log(value[..., -1])
    total -= pt.log(value).sum(axis=-1)
    ordered = pt.ge(value[..., :-1], value[..., 1:]).all(axis=-1)
    inside = pt.and_(pt.gt(value[..., -1], 0.0), pt.le(value[..., 0], 1.0))
    return pt.where(pt.and_(ordered, inside), total, -np.inf)


class StickRatios(Transform):
    """Log-odds of the ratios of neighbouring probabilities."""

    name = "stickratios"
    ndim_supp = 1

    def backward(self, value, *inputs):
        """Probabilities from log-odds."""
        return pt.exp(pt.cumsum(-pt.softplus(-value), axis=-1))

    def forward(self, value, *inputs):
        """Log-odds from probabilities."""
        before = pt.concatenate([pt.ones_like(value[..., :1]), value[..., :-1]], axis=-1)
        return pt.log(value) - pt.log(before - value)

    def log_jac_det(self, value, *inputs):
        """Log determinant of the derivatives of the probabilities."""
        logs = pt.cumsum(-pt.softplus(-value), axis=-1)
        return (logs - pt.softplus(value)).sum(axis=-1)


@_default_transform.register(StickBreakingProbabilitiesRV)
def _stick_transform(op, rv):
    return StickRatios()
