"""Links of pairs of objects: 0 or 1 with a probability that a linear predictor gives."""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete, SymbolicRandomVariable
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pymc.pytensorf import normalize_rng_param
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.tensors import as_float
from bayesstruct.features.kernels.link_codes import LINKS

__all__ = ["FeatureLinks", "FeatureLinksRV"]


class FeatureLinksRV(SymbolicRandomVariable):
    """Zeros and ones, given linear predictors."""

    extended_signature = "[rng],[size],()->[rng],()"
    _print_name = ("FeatureLinks", "\\operatorname{FeatureLinks}")

    def __init__(self, *args, link, **kwargs):
        self.link = link
        super().__init__(*args, **kwargs)

    @classmethod
    def rv_op(cls, eta, *, link, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        shape = tuple(eta.shape) if rv_size_is_none(size) else tuple(size)
        next_rng, draw = pt.random.bernoulli(
            pt.exp(_log_one(eta, link)), size=shape, rng=rng, return_next_rng=True
        )
        return cls(inputs=[rng, size, eta], outputs=[next_rng, draw], link=link)(rng, size, eta)

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        return type(self).rv_op(*params, **kwargs, link=self.link)


def _log_one(eta, link):
    """Log probability of a one."""
    if link == "logistic":
        return -pt.softplus(-eta)
    if link == "probit":
        return _log_normal_cdf(eta)
    return pt.log(-pt.expm1(-eta))


def _log_zero(eta, link):
    """Log probability of a zero."""
    return -eta if link == "noisy_or" else _log_one(-eta, link)


def _log_normal_cdf(x):
    # The scaled function keeps its digits where the other is zero.
    low = pt.minimum(x, 0.0)
    tail = pt.log(0.5 * pt.erfcx(-low / np.sqrt(2.0))) - 0.5 * low**2
    return pt.where(
        pt.lt(x, 0.0), tail, pt.log1p(-0.5 * pt.erfc(pt.maximum(x, 0.0) / np.sqrt(2.0)))
    )


class FeatureLinks(Discrete):
    r"""Links between pairs of objects.

    ========  ====================================================================================
    Support   0 and 1
    Law       P(1) is :math:`1 / (1 + e^{-\eta})` for ``"logistic"``, :math:`\Phi(\eta)` for ``"probit"``,
              :math:`1 - e^{-\eta}` with :math:`\eta \ge 0` for ``"noisy_or"``
    ========  ====================================================================================

    Parameters
    ----------
    name : str
    eta : tensor_like of float
        Linear predictors, such as ``bias + bs.distributions.feature_pairs(...)``.
    link : {"logistic", "probit", "noisy_or"}
    **kwargs
        ``observed``, ``dims`` and the like.

    Raises
    ------
    ValueError
        For an unknown link.

    Notes
    -----
    A Bernoulli law whose log probabilities keep their digits for any predictor.
    """

    rv_type = FeatureLinksRV
    rv_op = FeatureLinksRV.rv_op

    @classmethod
    def dist(cls, eta, *, link="logistic", **kwargs):
        """Create the distribution without a model."""
        if link not in LINKS:
            raise ValueError(f"`link` is one of {', '.join(map(repr, LINKS))}, not {link!r}")
        return super().dist([as_float(eta)], link=link, **kwargs)

    def support_point(rv, size, eta):
        """Return zeros."""
        return pt.zeros(rv.shape, dtype="int64")


@_logprob.register(FeatureLinksRV)
def _links_logp(op, values, rng, size, eta, **kwargs):
    (value,) = values
    one = pt.eq(value, 1)
    logp = pt.where(one, _log_one(eta, op.link), _log_zero(eta, op.link))
    return pt.where(pt.or_(one, pt.eq(value, 0)), logp, -np.inf)
