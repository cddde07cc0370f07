r"""Binary matrices with any number of columns, the latent features of rows, and the loadings of these.

See :mod:`bayesstruct.features.kernels.indian_buffet` for the distribution.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV, zeros_like_draw
from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.tails import poisson_quantile
from bayesstruct.core.tensors import as_float
from bayesstruct.data.arguments import choice, whole_number
from bayesstruct.features.kernels.indian_buffet import check_buffet, draw_by_dishes, new_dish_rates
from bayesstruct.features.ops.columns import columns_of, is_used

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = [
    "FeatureLoadings",
    "FeatureLoadingsRV",
    "IndianBuffet",
    "IndianBuffetRV",
    "constant_number",
    "default_max_features",
]

#: Names of the steps that the samplers of linear Gaussian models are.
SAMPLERS = {
    "gibbs": "latent_feature_gibbs",
    "accelerated": "latent_feature_gibbs",
    "slice": "latent_feature_slice",
}
_LOG_2PI = np.log(2.0 * np.pi)


def default_max_features(
    n: int, alpha: float, concentration: float = 1.0, discount: float = 0.0
) -> int:
    """Return a number of columns that a draw of the prior exceeds with probability below 1e-8, at least 20."""
    mean = alpha * new_dish_rates(n, concentration, discount).sum()
    return max(poisson_quantile(mean, 1e-8), 20)


@dataclass(frozen=True)
class _Matrices:
    """Draws of left-ordered matrices with so many rows and columns."""

    shape: tuple[int, int]
    dtype: ClassVar = "int8"
    ndims: ClassVar = (0, 0, 0)

    def __call__(self, rng, out, alpha, concentration, discount):
        n, most = self.shape
        check_buffet(float(alpha), float(concentration), float(discount))
        for matrix in out:
            drawn = draw_by_dishes(rng, n, float(alpha), float(concentration), float(discount))
            if drawn.shape[1] > most:
                raise ValueError(
                    f"a draw of IndianBuffet has {drawn.shape[1]} features, more than the maximum number {most}: "
                    "set `max_features` to more"
                )
            matrix[:, : drawn.shape[1]] = drawn


class IndianBuffetRV(GraphRV):
    """A left-ordered binary matrix."""

    extended_signature = "[rng],[size],(),(),()->[rng],(n,k)"
    _print_name = ("IndianBuffet", "\\operatorname{IndianBuffet}")

    options = ("matrix", "sampler")

    @classmethod
    def build(cls, rng, size, *params, matrix, sampler):
        """Build the graph of a draw."""
        return seeded_draw(_Matrices(matrix), rng, size, params)


class IndianBuffet(Discrete):
    r"""Binary matrix with one row for each observation and any number of columns, the features.

    ========  =====================================================================================
    Support   (n, K) matrices of 0 and 1 whose columns, read as binary numbers from the first row on, do
              not increase; columns that are not used are zero and come last
    Mean      each row has :math:`\alpha` features
    ========  =====================================================================================

    The number of columns that are used is Poisson with mean :math:`\alpha \sum_i r_i`, which for
    concentration 1 and discount 0 is :math:`\alpha (1 + 1/2 + \dots + 1/n)`.

    Parameters
    ----------
    name : str
    alpha : tensor_like of float
        Mass, above 0; may be a random variable.
    observations : int
        n.
    concentration : tensor_like of float, default 1
        The larger, the fewer features rows share: towards minus `discount` all rows have the same features, for
        large values no two rows share one.
    discount : tensor_like of float, default 0
        In [0, 1); above 0 the number of features grows as a power of n.
    max_features : int, optional
        K, number of columns that are stored. The distribution is not truncated: a draw with more features
        raises an error. By default at least 20, and so many that a draw from the prior has more with probability
        below 1e-8, which requires parameters that are numbers.
    sampler : {"gibbs", "accelerated", "slice"}
        Step that ``pm.sample`` assigns to the features of a linear Gaussian model: for ``"gibbs"``, of which
        ``"accelerated"`` is another name, :class:`bayesstruct.steps.LatentFeatureGibbs`, for ``"slice"``
        :class:`bayesstruct.steps.LatentFeatureSlice`.
    **kwargs
        ``dims`` and the like.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range, or a draw has more than K features.

    References
    ----------
    Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review.
    *JMLR* 12, 1185-1224, equation 14. -- Teh, Y. W. and Gorur, D. (2009). Indian buffet processes with
    power-law behavior. *NIPS* 22.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            alpha = pm.Gamma("alpha", 1, 1)
            feature = bs.IndianBuffet("feature", alpha, observations=100, max_features=30)
    """

    rv_type = IndianBuffetRV
    rv_op = IndianBuffetRV.rv_op

    @classmethod
    def dist(
        cls,
        alpha,
        *,
        observations,
        concentration=1.0,
        discount=0.0,
        max_features=None,
        sampler="gibbs",
        **kwargs,
    ):
        """Create the distribution without a model."""
        choice("sampler", sampler, SAMPLERS)
        n = whole_number("observations", observations, 1)
        params = [as_float(v) for v in (alpha, concentration, discount)]
        known = [constant_number(p) for p in params]
        _check_known(*known)
        if max_features is None:
            if None in known:
                raise ValueError(
                    "`max_features`, the number of columns that are stored, must be given where alpha, "
                    "concentration or discount are random"
                )
            max_features = default_max_features(n, *known)
        matrix = (n, whole_number("max_features", max_features, 1))
        return super().dist(params, matrix=matrix, sampler=sampler, **kwargs)

    def support_point(rv, size, *_):
        """Return one feature that all rows have."""
        return pt.set_subtensor(pt.zeros(rv.shape, dtype="int8")[..., 0], 1)


def _check_known(alpha, concentration, discount):
    """Refuse parameters out of range, as far as they are numbers."""
    both = concentration is not None and discount is not None
    check_buffet(
        1.0 if alpha is None else alpha,
        concentration if both else 1.0,
        0.0 if discount is None else discount,
    )


def constant_number(tensor: "TensorVariable") -> float | None:
    """Return the value of a constant, otherwise None."""
    from pytensor.graph.basic import Constant

    return float(tensor.data) if isinstance(tensor, Constant) and tensor.data.ndim == 0 else None


@_logprob.register(IndianBuffetRV)
def _buffet_logp(op, values, rng, size, alpha, c, discount, **kwargs):
    (value,) = values
    n, most = op.matrix
    value = pt.specify_shape(value, (*(None,) * (value.type.ndim - 2), n, most))
    columns = columns_of(value)
    used = pt.gt(columns.sums, 0.0)
    m = pt.maximum(columns.sums, 1.0)
    alpha_, c_, discount_ = (v[..., None] for v in (alpha, c, discount))
    column = (
        pt.log(alpha_)
        + pt.gammaln(m - discount_)
        - pt.gammaln(1.0 - discount_)
        + pt.gammaln(n - m + c_ + discount_)
        - pt.gammaln(c_ + discount_)
        + pt.gammaln(1.0 + c_)
        - pt.gammaln(n + c_)
        - pt.log(columns.rank)
    )
    before = np.arange(float(n))
    rates = pt.exp(
        pt.gammaln(1.0 + c_)
        - pt.gammaln(c_ + discount_)
        + pt.gammaln(before + c_ + discount_)
        - pt.gammaln(before + 1.0 + c_)
    )
    total = pt.where(used, column, 0.0).sum(axis=-1) - alpha * rates.sum(axis=-1)
    return pt.where(columns.ordered, total, -np.inf)


class FeatureLoadingsRV(GraphRV):
    """Loadings of features, zero for those that are not used."""

    extended_signature = "[rng],[size],(n,k),()->[rng],(k,d)"
    _print_name = ("FeatureLoadings", "\\operatorname{FeatureLoadings}")

    options = ("columns",)

    @classmethod
    def build(cls, rng, size, feature, scale, *, columns):
        """Build the graph of a draw."""
        used, deviation = is_used(feature), scale[..., None, None]
        batch = tuple(size) if not rv_size_is_none(size) else (used * deviation[..., 0]).shape[:-1]
        shape = (*batch, feature.shape[-1], columns)
        next_rng, draw = pt.random.normal(0.0, deviation, size=shape, rng=rng, return_next_rng=True)
        draw = pt.where(used[..., None], draw, 0.0)
        return next_rng, draw


class FeatureLoadings(Continuous):
    r"""Weights of latent features on the variables, normal for features that some row has.

    .. math:: A_{kd} \sim N(0, \tau^2) \text{ if column k of Z is not zero}, \qquad A_{kd} = 0 \text{ if it is}

    Parameters
    ----------
    name : str
    feature : TensorVariable
        (n, K), an :class:`IndianBuffet`.
    scale : tensor_like of float
        :math:`\tau`, above 0.
    variables : int
        d.
    **kwargs
        ``dims`` and the like.

    Notes
    -----
    The density is relative to Lebesgue measure for features that are used, and to a unit mass at zero
    for the others, which carry no information about :math:`\tau`.
    """

    rv_type = FeatureLoadingsRV
    rv_op = FeatureLoadingsRV.rv_op
    support_point = zeros_like_draw

    @classmethod
    def dist(cls, feature, scale, *, variables, **kwargs):
        """Create the distribution without a model."""
        columns = whole_number("variables", variables, 1)
        return super().dist(
            [pt.as_tensor_variable(feature), as_float(scale)], columns=columns, **kwargs
        )


@_logprob.register(FeatureLoadingsRV)
def _loadings_logp(op, values, rng, size, feature, scale, **kwargs):
    (value,) = values
    deviation = scale[..., None, None]
    slab = -0.5 * (value / deviation) ** 2 - pt.log(deviation) - 0.5 * _LOG_2PI
    spike = pt.where(pt.eq(value, 0.0), 0.0, -np.inf)
    used = is_used(feature)
    return pt.where(used[..., None], slab, spike).sum(axis=(-1, -2))
