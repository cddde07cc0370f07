r"""Log likelihoods of the linear predictor :math:`\eta` of a pair of objects, of four kinds.

==============  =============================================  ======================
likelihood      density                                        response
==============  =============================================  ======================
``logistic``    :math:`p = 1 / (1 + e^{-\eta})`                0 or 1
``probit``      :math:`p = \Phi(\eta)`                         0 or 1
``noisy_or``    :math:`p = 1 - e^{-\eta}`, :math:`\eta \ge 0`  0 or 1
``normal``      :math:`N(\eta, \sigma^2)`                      a number
==============  =============================================  ======================

The third is that of independent causes: with :math:`\eta` the sum of the weights of those that are present,
each of weight w fails to act with probability :math:`e^{-w}`.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import kernel, numpy_kernel
from bayesstruct.core.special import log_normal_cdf

__all__ = ["Likelihood", "ObservedPairs", "log_densities", "log_density"]

# A predictor that is maintained by additions is zero up to rounding.
_ZERO = 1e-13


class Likelihood(NamedTuple):
    """Likelihood of the responses.

    Attributes
    ----------
    code : int
        Position in :data:`bayesstruct.features.kernels.link_codes.LIKELIHOODS`.
    noise : float
        Standard deviation of the normal likelihood; 1 for the others.
    """

    code: int
    noise: float


class ObservedPairs(NamedTuple):
    """Observed pairs of objects.

    Attributes
    ----------
    source, target : (d,) int64
        Positions of the two objects of each pair.
    y : (d,) float64
        Responses.
    eta : (d,) float64
        Linear predictors.
    density : (d,) float64
        Log densities.
    """

    source: np.ndarray
    target: np.ndarray
    y: np.ndarray
    eta: np.ndarray
    density: np.ndarray


@numpy_kernel
def log_density(likelihood: Likelihood, y: float, eta: float) -> float:
    """Log density of one response up to a constant."""
    if likelihood.code == 3:
        left = (y - eta) / likelihood.noise
        return -0.5 * left * left
    if likelihood.code == 2:
        if y < 0.5:
            return -eta
        return math.log(-math.expm1(-eta)) if eta > _ZERO else -np.inf
    margin = eta if y > 0.5 else -eta
    if likelihood.code == 1:
        return log_normal_cdf(margin)
    if margin > 0.0:
        return -math.log1p(math.exp(-margin))
    return margin - math.log1p(math.exp(margin))


@kernel
def log_densities(likelihood: Likelihood, observed: ObservedPairs) -> None:
    """Set the log densities from the linear predictors.

    Parameters
    ----------
    likelihood : Likelihood
    observed : ObservedPairs
        Its ``density`` is changed.
    """
    for d in range(observed.y.shape[0]):
        observed.density[d] = log_density(likelihood, observed.y[d], observed.eta[d])
