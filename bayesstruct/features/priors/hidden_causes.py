r"""Causes that are active in some rows, and binary variables that they bring about."""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV, zeros_like_draw
from bayesstruct.core.recognition import claim
from bayesstruct.core.tensors import as_float
from bayesstruct.data.arguments import whole_number
from bayesstruct.features.ops.columns import is_used

MISSING = -1

__all__ = ["MISSING", "CauseActivations", "CauseActivationsRV", "NoisyOr", "NoisyOrRV"]


class CauseActivationsRV(GraphRV):
    """Activities of causes, zero for those that no variable has."""

    extended_signature = "[rng],[size],(p,k),()->[rng],(n,k)"
    _print_name = ("CauseActivations", "\\operatorname{CauseActivations}")

    options = ("rows",)

    @classmethod
    def build(cls, rng, size, feature, probability, *, rows):
        """Build the graph of a draw."""
        used, chance = is_used(feature), probability[..., None]
        batch = tuple(size) if not rv_size_is_none(size) else (used * chance).shape[:-1]
        shape = (*batch, rows, feature.shape[-1])
        next_rng, draw = pt.random.bernoulli(
            chance[..., None, :] * used[..., None, :], size=shape, rng=rng, return_next_rng=True
        )
        return next_rng, draw


class CauseActivations(Discrete):
    r"""Which causes are active in each row: Bernoulli for causes that some variable has.

    .. math:: y_{tk} \sim \mathrm{Bernoulli}(q) \text{ if column k of Z is not zero}, \qquad y_{tk} = 0 \text{ if it is}

    Parameters
    ----------
    name : str
    feature : TensorVariable
        (p, K), an :class:`IndianBuffet` over variables: which causes each of them has.
    probability : tensor_like of float
        q, in (0, 1).
    observations : int
        n, rows of the table.
    **kwargs
        ``dims`` and the like.
    """

    rv_type = CauseActivationsRV
    rv_op = CauseActivationsRV.rv_op
    support_point = zeros_like_draw

    @classmethod
    def dist(cls, feature, probability, *, observations, **kwargs):
        """Create the distribution without a model."""
        feature = pt.as_tensor_variable(feature)
        # pm.sample asks steps without telling them the model: this tells which step draws these.
        claim(feature, "hidden_cause_gibbs")
        params, rows = (
            [feature, as_float(probability)],
            whole_number("observations", observations, 1),
        )
        return super().dist(params, rows=rows, **kwargs)


@_logprob.register(CauseActivationsRV)
def _activations_logp(op, values, rng, size, feature, probability, **kwargs):
    (value,) = values
    used = is_used(feature)[..., None, :]
    chance = probability[..., None, None]
    on, off = pt.eq(value, 1), pt.eq(value, 0)
    log_density = pt.switch(on, pt.log(chance), pt.log1p(-chance))
    return pt.switch(
        used,
        pt.switch(pt.or_(on, off), log_density, -np.inf),
        pt.switch(off, 0.0, -np.inf),
    ).sum(axis=(-1, -2))


class NoisyOrRV(GraphRV):
    """Rows of binary variables given the causes that are active in them."""

    extended_signature = "[rng],[size],(k),(p,k),(),()->[rng],(p)"
    _print_name = ("NoisyOr", "\\operatorname{NoisyOr}")

    options = ("floats",)

    @classmethod
    def build(cls, rng, size, cause, feature, strength, leak, *, floats):
        """Build the graph of a draw."""
        chance = -pt.expm1(_log_absent(cause, feature, strength, leak))
        shape = None if rv_size_is_none(size) else (*size, feature.shape[-2])
        next_rng, draw = pt.random.bernoulli(chance, size=shape, rng=rng, return_next_rng=True)
        return next_rng, draw.astype("float64") if floats else draw


def _log_absent(cause, feature, strength, leak):
    """Log probability of a zero."""
    z, y = feature.astype("float64"), cause.astype("float64")
    # One product of matrices if all rows have the same causes, which is so except in batches.
    active = y @ z.T if z.type.ndim == 2 else (z @ y[..., None])[..., 0]
    return pt.log1p(-leak)[..., None] + active * pt.log1p(-strength)[..., None]


class NoisyOr(Discrete):
    r"""Rows of binary variables: an active cause may bring about each variable that has it.

    .. math:: P(x_{ti} = 0) = (1 - \epsilon) (1 - \lambda)^{\sum_k z_{ik} y_{tk}}

    Parameters
    ----------
    name : str
    cause : TensorVariable
        (n, K) of 0 and 1: which causes are active in each row.
    feature : TensorVariable
        (p, K) of 0 and 1: which causes each variable has.
    strength : tensor_like of float
        :math:`\lambda` in (0, 1), the probability that an active cause brings about a variable that has it.
    leak : tensor_like of float
        :math:`\epsilon` in (0, 1), that of a one without any cause.
    floats : bool, default False
        Whether rows are floats, among which NaN can stand for a missing value.
    **kwargs
        ``observed``, ``dims`` and the like.

    Notes
    -----
    An observed value of -1, or NaN, is a missing value: values are independent given the causes, so that summing over
    a missing one leaves it out.

    References
    ----------
    Wood, F., Griffiths, T. L. and Ghahramani, Z. (2006). A non-parametric Bayesian method for inferring
    hidden causes. *UAI* 22, 536-543, equation 1.
    """

    rv_type = NoisyOrRV
    rv_op = NoisyOrRV.rv_op
    support_point = zeros_like_draw

    @classmethod
    def dist(cls, cause, feature, strength, leak, *, floats=False, **kwargs):
        """Create the distribution without a model."""
        params = [pt.as_tensor_variable(v) for v in (cause, feature)]
        params += [as_float(strength), as_float(leak)]
        return super().dist(params, floats=floats, **kwargs)


@_logprob.register(NoisyOrRV)
def _noisy_or_logp(op, values, rng, size, cause, feature, strength, leak, **kwargs):
    (value,) = values
    absent = _log_absent(cause, feature, strength, leak)
    present = pt.log(-pt.expm1(absent))
    missing = pt.eq(value, MISSING) | pt.isnan(value)
    terms = pt.switch(
        pt.eq(value, 0),
        absent,
        pt.switch(pt.eq(value, 1), present, pt.switch(missing, 0.0, -np.inf)),
    )
    return terms.sum(axis=-1)
