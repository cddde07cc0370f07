r"""Causes that are active or not, and binary variables that they bring about."""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete, SymbolicRandomVariable
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pymc.pytensorf import normalize_rng_param
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.recognition import claim
from bayesstruct.core.tensors import as_float

MISSING = -1

__all__ = ["MISSING", "CauseActivations", "CauseActivationsRV", "NoisyOr", "NoisyOrRV"]


class CauseActivationsRV(SymbolicRandomVariable):
    """Activities of causes, zero for those that nothing depends on."""

    extended_signature = "[rng],[size],(p,k),()->[rng],(n,k)"
    _print_name = ("CauseActivations", "\\operatorname{CauseActivations}")

    def __init__(self, *args, rows, **kwargs):
        self.rows = rows
        super().__init__(*args, **kwargs)

    @classmethod
    def rv_op(cls, feature, probability, *, rows, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        used, chance = pt.gt(feature.sum(axis=-2), 0), probability[..., None]
        batch = tuple(size) if not rv_size_is_none(size) else (used * chance).shape[:-1]
        shape = (*batch, rows, feature.shape[-1])
        next_rng, draw = pt.random.bernoulli(
            chance[..., None, :] * used[..., None, :], size=shape, rng=rng, return_next_rng=True
        )
        return cls(inputs=[rng, size, feature, probability], outputs=[next_rng, draw], rows=rows)(
            rng, size, feature, probability
        )

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        return type(self).rv_op(*params, **kwargs, rows=self.rows)


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

    @classmethod
    def dist(cls, feature, probability, *, observations, **kwargs):
        """Create the distribution without a model."""
        if isinstance(observations, bool) or not isinstance(observations, int | np.integer):
            raise ValueError(f"`observations` must be a whole number, not {observations!r}")
        feature = pt.as_tensor_variable(feature)
        # pm.sample asks steps without telling them the model: this tells whose features they are.
        claim(feature, "hidden_cause_gibbs")
        params = [feature, as_float(probability)]
        return super().dist(params, rows=int(observations), **kwargs)

    def support_point(rv, *_):
        """Return zeros: nothing is active."""
        return pt.zeros(rv.shape, dtype=rv.dtype)


@_logprob.register(CauseActivationsRV)
def _activations_logp(op, values, rng, size, feature, probability, **kwargs):
    (value,) = values
    used = pt.gt(feature.sum(axis=-2), 0)[..., None, :]
    chance = probability[..., None, None]
    on, off = pt.eq(value, 1), pt.eq(value, 0)
    log_density = pt.switch(on, pt.log(chance), pt.log1p(-chance))
    return pt.switch(
        used,
        pt.switch(pt.or_(on, off), log_density, -np.inf),
        pt.switch(off, 0.0, -np.inf),
    ).sum(axis=(-1, -2))


class NoisyOrRV(SymbolicRandomVariable):
    """Rows of binary variables given the causes that are active in them."""

    extended_signature = "[rng],[size],(k),(p,k),(),()->[rng],(p)"
    _print_name = ("NoisyOr", "\\operatorname{NoisyOr}")

    @classmethod
    def rv_op(cls, cause, feature, strength, leak, *, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        chance = -pt.expm1(_log_absent(cause, feature, strength, leak))
        shape = None if rv_size_is_none(size) else (*size, feature.shape[-2])
        next_rng, draw = pt.random.bernoulli(chance, size=shape, rng=rng, return_next_rng=True)
        inputs = [rng, size, cause, feature, strength, leak]
        return cls(inputs=inputs, outputs=[next_rng, draw])(*inputs)


def _log_absent(cause, feature, strength, leak):
    """Log probability of a zero."""
    z, y = feature.astype("float64"), cause.astype("float64")
    # One product of matrices where all rows have the same links, as they have but for batches.
    active = y @ z.T if z.type.ndim == 2 else (z @ y[..., None])[..., 0]
    return pt.log1p(-leak)[..., None] + active * pt.log1p(-strength)[..., None]


class NoisyOr(Discrete):
    r"""Rows of binary variables, each of which any active cause that it has may bring about.

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
    **kwargs
        ``observed``, ``dims`` and the like.

    Notes
    -----
    An observed value of -1 is a missing cell: cells are independent given the causes, so that summing over it
    leaves it out.

    References
    ----------
    Wood, F., Griffiths, T. L. and Ghahramani, Z. (2006). A non-parametric Bayesian method for inferring
    hidden causes. *UAI* 22, 536-543, equation 1.
    """

    rv_type = NoisyOrRV
    rv_op = NoisyOrRV.rv_op

    @classmethod
    def dist(cls, cause, feature, strength, leak, **kwargs):
        """Create the distribution without a model."""
        params = [pt.as_tensor_variable(v) for v in (cause, feature)]
        return super().dist([*params, as_float(strength), as_float(leak)], **kwargs)

    def support_point(rv, *_):
        """Return zeros."""
        return pt.zeros(rv.shape, dtype=rv.dtype)


@_logprob.register(NoisyOrRV)
def _noisy_or_logp(op, values, rng, size, cause, feature, strength, leak, **kwargs):
    (value,) = values
    absent = _log_absent(cause, feature, strength, leak)
    present = pt.log(-pt.expm1(absent))
    cells = pt.switch(
        pt.eq(value, 0),
        absent,
        pt.switch(pt.eq(value, 1), present, pt.switch(pt.eq(value, MISSING), 0.0, -np.inf)),
    )
    return cells.sum(axis=-1)
