r"""Binary matrices with any number of columns, and the loadings of the features that these are.

See :mod:`bayesstruct.features.kernels.indian_buffet` for the law.
"""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, Discrete, SymbolicRandomVariable
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pymc.pytensorf import normalize_rng_param
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.draws import SeededDraw, batch_of, seed_from
from bayesstruct.core.tensors import as_float
from bayesstruct.features.kernels.indian_buffet import check_buffet, draw_by_dishes, new_dish_rates

__all__ = [
    "FeatureLoadings",
    "FeatureLoadingsRV",
    "IndianBuffet",
    "IndianBuffetRV",
    "default_truncation",
]

SAMPLERS = ("gibbs", "accelerated", "slice")
_LOG_2PI = np.log(2.0 * np.pi)


def default_truncation(n, alpha, concentration=1.0, discount=0.0) -> int:
    """Return a number of columns that a draw of the prior exceeds with probability below 1e-6."""
    from scipy.stats import poisson

    mean = alpha * new_dish_rates(n, concentration, discount).sum()
    return int(max(poisson.isf(1e-6, mean), 5))


class _Law:
    """Draws of left-ordered matrices."""

    dtype = "int8"
    ndims = (0, 0, 0)

    def __init__(self, shape):
        self.shape = shape

    def __eq__(self, other):
        return type(other) is type(self) and other.shape == self.shape

    def __hash__(self):
        return hash((type(self), self.shape))

    def __call__(self, rng, out, alpha, concentration, discount):
        n, most = self.shape
        check_buffet(float(alpha), float(concentration), float(discount))
        for matrix in out:
            drawn = draw_by_dishes(rng, n, float(alpha), float(concentration), float(discount))
            if drawn.shape[1] > most:
                raise ValueError(
                    f"a draw of IndianBuffet has {drawn.shape[1]} features, and there is room for "
                    f"{most}: set `truncation` to more"
                )
            matrix[:, : drawn.shape[1]] = drawn


class IndianBuffetRV(SymbolicRandomVariable):
    """A left-ordered binary matrix."""

    extended_signature = "[rng],[size],(),(),()->[rng],(n,k)"
    _print_name = ("IndianBuffet", "\\operatorname{IndianBuffet}")

    def __init__(self, *args, matrix, sampler="gibbs", **kwargs):
        self.matrix, self.sampler = matrix, sampler
        super().__init__(*args, **kwargs)

    @classmethod
    def rv_op(cls, *params, matrix, sampler="gibbs", size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        next_rng, seed = seed_from(rng)
        law = _Law(matrix)
        lengths, batch = batch_of(size, params, law.ndims)
        draw = SeededDraw(law, batch)(seed, lengths, *params)
        return cls(
            inputs=[rng, size, *params], outputs=[next_rng, draw], matrix=matrix, sampler=sampler
        )(rng, size, *params)

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        return type(self).rv_op(*params, **kwargs, matrix=self.matrix, sampler=self.sampler)


class IndianBuffet(Discrete):
    r"""Binary matrix with one row for each observation and any number of columns, its features.

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
        How little rows share: towards minus `discount` all of them have the same features, for large
        values none.
    discount : tensor_like of float, default 0
        In [0, 1); above 0 the number of features grows as a power of n.
    truncation : int, optional
        K, columns that are stored. The law is not cut: a draw with more of them is an error, which says
        so. By default a draw from the prior has more with probability below 1e-6, which takes
        parameters that are numbers.
    sampler : {"gibbs", "accelerated", "slice"}
        Which step ``pm.sample`` takes for the features of a linear Gaussian model; see
        :class:`bayesstruct.steps.LatentFeatureGibbs`, of which ``"accelerated"`` is another name, and
        :class:`bayesstruct.steps.LatentFeatureSlice`.
    **kwargs
        ``dims`` and the like.

    Raises
    ------
    ValueError
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
            feature = bs.IndianBuffet("feature", alpha, observations=100, truncation=30)
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
        truncation=None,
        sampler="gibbs",
        **kwargs,
    ):
        """Create the distribution without a model."""
        if sampler not in SAMPLERS:
            raise ValueError(f"`sampler` must be one of {', '.join(SAMPLERS)}, not {sampler!r}")
        n = whole_parameter(observations, "observations")
        params = [as_float(v) for v in (alpha, concentration, discount)]
        known = [positive_number(p) for p in params]
        _check_known(*known)
        if truncation is None:
            if None in known:
                raise ValueError(
                    "`truncation`, the number of columns that are stored, must be given where alpha, "
                    "concentration or discount are random"
                )
            truncation = default_truncation(n, *known)
        matrix = (n, whole_parameter(truncation, "truncation"))
        return super().dist(params, matrix=matrix, sampler=sampler, **kwargs)

    def support_point(rv, size, *_):
        """Return one feature that all rows have."""
        return pt.set_subtensor(pt.zeros(rv.shape, dtype="int8")[..., 0], 1)


def _check_known(alpha, concentration, discount):
    """Refuse what is out of range of the parameters that are numbers."""
    both = concentration is not None and discount is not None
    check_buffet(
        1.0 if alpha is None else alpha,
        concentration if both else 1.0,
        0.0 if discount is None else discount,
    )


def whole_parameter(value, name) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"`{name}` must be a whole number above 0, not {value!r}")
    return int(value)


def positive_number(tensor):
    """Return the value of a constant, otherwise None."""
    from pytensor.graph.basic import Constant

    return float(tensor.data) if isinstance(tensor, Constant) and tensor.data.ndim == 0 else None


@_logprob.register(IndianBuffetRV)
def _buffet_logp(op, values, rng, size, alpha, c, discount, **kwargs):
    (value,) = values
    n, most = op.matrix
    value = pt.specify_shape(value, (*(None,) * (value.type.ndim - 2), n, most))
    z = value.astype("float64")
    sums = z.sum(axis=-2)
    used = pt.gt(sums, 0.0)
    m = pt.maximum(sums, 1.0)
    alpha_, c_, discount_ = (v[..., None] for v in (alpha, c, discount))
    column = (
        pt.log(alpha_)
        + pt.gammaln(m - discount_)
        - pt.gammaln(1.0 - discount_)
        + pt.gammaln(n - m + c_ + discount_)
        - pt.gammaln(c_ + discount_)
        + pt.gammaln(1.0 + c_)
        - pt.gammaln(n + c_)
        - pt.log(_rank_among_equals(z, sums, most))
    )
    before = np.arange(float(n))
    rates = pt.exp(
        pt.gammaln(1.0 + c_)
        - pt.gammaln(c_ + discount_)
        + pt.gammaln(before + c_ + discount_)
        - pt.gammaln(before + 1.0 + c_)
    )
    total = pt.where(used, column, 0.0).sum(axis=-1) - alpha * rates.sum(axis=-1)
    return pt.where(_is_left_ordered(value), total, -np.inf)


def _rank_among_equals(z, sums, most):
    """Count the columns up to each one, itself included, that are equal to it."""
    shared = pt.swapaxes(z, -1, -2) @ z
    equal = pt.eq(sums[..., :, None] + sums[..., None, :], 2.0 * shared)
    return (equal * np.tril(np.ones((most, most)))).sum(axis=-1)


def _is_left_ordered(value):
    """Whether all entries are 0 or 1 and no column is less than the next, as binary numbers."""
    binary = pt.or_(pt.eq(value, 0), pt.eq(value, 1)).all(axis=(-1, -2))
    step = value[..., :, :-1].astype("int64") - value[..., :, 1:].astype("int64")
    # The first row in which two neighbours differ decides.
    first = pt.argmax(pt.neq(step, 0), axis=-2)
    decisive = pt.take_along_axis(step, first[..., None, :], axis=-2)
    return pt.and_(binary, pt.ge(decisive, 0).all(axis=(-1, -2)))


class FeatureLoadingsRV(SymbolicRandomVariable):
    """Loadings of features, zero for those that are not used."""

    extended_signature = "[rng],[size],(n,k),()->[rng],(k,d)"
    _print_name = ("FeatureLoadings", "\\operatorname{FeatureLoadings}")

    def __init__(self, *args, columns, **kwargs):
        self.columns = columns
        super().__init__(*args, **kwargs)

    @classmethod
    def rv_op(cls, feature, scale, *, columns, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        used, deviation = _used(feature), scale[..., None, None]
        batch = tuple(size) if not rv_size_is_none(size) else (used * deviation[..., 0]).shape[:-1]
        shape = (*batch, feature.shape[-1], columns)
        next_rng, draw = pt.random.normal(0.0, deviation, size=shape, rng=rng, return_next_rng=True)
        draw = pt.where(used[..., None], draw, 0.0)
        return cls(inputs=[rng, size, feature, scale], outputs=[next_rng, draw], columns=columns)(
            rng, size, feature, scale
        )

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        return type(self).rv_op(*params, **kwargs, columns=self.columns)


def _used(feature):
    return pt.gt(feature.sum(axis=-2), 0)


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
    for the others: what is not used says nothing about :math:`\tau`.
    """

    rv_type = FeatureLoadingsRV
    rv_op = FeatureLoadingsRV.rv_op

    @classmethod
    def dist(cls, feature, scale, *, variables, **kwargs):
        """Create the distribution without a model."""
        columns = whole_parameter(variables, "variables")
        return super().dist(
            [pt.as_tensor_variable(feature), as_float(scale)], columns=columns, **kwargs
        )

    def support_point(rv, *_):
        """Return zeros."""
        return pt.zeros(rv.shape)


@_logprob.register(FeatureLoadingsRV)
def _loadings_logp(op, values, rng, size, feature, scale, **kwargs):
    (value,) = values
    deviation = scale[..., None, None]
    slab = -0.5 * (value / deviation) ** 2 - pt.log(deviation) - 0.5 * _LOG_2PI
    spike = pt.where(pt.eq(value, 0.0), 0.0, -np.inf)
    return pt.where(_used(feature)[..., None], slab, spike).sum(axis=(-1, -2))
