"""Links of pairs of objects: 0 or 1 with a probability that depends on a linear predictor."""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV, zeros_like_draw
from bayesstruct.core.tensors import as_float
from bayesstruct.data.arguments import choice
from bayesstruct.features.kernels.link_codes import LINKS

__all__ = ["FeatureLinks", "FeatureLinksRV"]


class FeatureLinksRV(GraphRV):
    """Zeros and ones, given linear predictors."""

    extended_signature = "[rng],[size],()->[rng],()"
    _print_name = ("FeatureLinks", "\\operatorname{FeatureLinks}")

    options = ("link",)

    @classmethod
    def build(cls, rng, size, eta, *, link):
        """Build the graph of a draw."""
        shape = tuple(eta.shape) if rv_size_is_none(size) else tuple(size)
        next_rng, draw = pt.random.bernoulli(
            pt.exp(_log_one(eta, link)), size=shape, rng=rng, return_next_rng=True
        )
        return next_rng, draw


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
    # The scaled function is accurate where the other underflows.
    low = pt.minimum(x, 0.0)
    tail = pt.log(0.5 * pt.erfcx(-low / np.sqrt(2.0))) - 0.5 * low**2
    return pt.where(
        pt.lt(x, 0.0), tail, pt.log1p(-0.5 * pt.erfc(pt.maximum(x, 0.0) / np.sqrt(2.0)))
    )


class FeatureLinks(Discrete):
    r"""Links between pairs of objects.

    ========  ====================================================================================
    Support   0 and 1
    P(1)      :math:`1 / (1 + e^{-\eta})` for ``"logistic"``, :math:`\Phi(\eta)` for ``"probit"``,
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
    A Bernoulli distribution whose log probabilities are accurate for any predictor.
    """

    rv_type = FeatureLinksRV
    rv_op = FeatureLinksRV.rv_op
    support_point = zeros_like_draw

    @classmethod
    def dist(cls, eta, *, link="logistic", **kwargs):
        """Create the distribution without a model."""
        choice("link", link, LINKS)
        return super().dist([as_float(eta)], link=link, **kwargs)


@_logprob.register(FeatureLinksRV)
def _links_logp(op, values, rng, size, eta, **kwargs):
    (value,) = values
    one = pt.eq(value, 1)
    logp = pt.where(one, _log_one(eta, op.link), _log_zero(eta, op.link))
    return pt.where(pt.or_(one, pt.eq(value, 0)), logp, -np.inf)
