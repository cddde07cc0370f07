r"""Draws of Polya-Gamma variables, and the sweep of a logistic regression that they make possible.

With :math:`\omega_i \sim PG(1, \eta_i)`, the logistic likelihood of 0/1 responses is normal in the
linear predictor (Polson, Scott and Windle 2013, theorem 1):

.. math::

    \frac{e^{y \eta}}{1 + e^\eta}
        = \tfrac12 e^{(y - 1/2) \eta} \int e^{-\omega \eta^2 / 2} PG(\omega; 1, 0) \, d\omega .

Given the :math:`\omega_i`, indicators and coefficients are those of a regression with weights
:math:`\omega_i`, see :func:`bayesstruct.sparse.kernels.spike_slab_regression.weighted_sweep`; the
indicators are drawn with the coefficients integrated out.

The draw is exact. :math:`PG(1, z)` is a quarter of the exponentially tilted Jacobi variable
:math:`J^*(1, |z|/2)`, whose density is an alternating series :math:`\sum_n (-1)^n a_n(x)` that
decreases in n, so that a proposal from its first term is accepted or refused after finitely many of
them (Devroye 2009; Polson et al., section 4). Below the point t = 0.64 the first term is an
inverse-Gaussian density, above it an exponential one.

References
----------
Polson, N. G., Scott, J. G. and Windle, J. (2013). Bayesian inference for logistic models using
Polya-Gamma latent variables. *JASA* 108, 1339-1349. -- Devroye, L. (2009). On exact simulation
algorithms for some distributions related to Jacobi theta functions. *Statistics & Probability
Letters* 79, 2251-2259.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.core.special import log_normal_cdf
from bayesstruct.sparse.kernels.spike_slab_regression import active_product, weighted_sweep

_CUT = 0.64  # t of Polson et al., table 1: near the best for every z
_PI2 = math.pi * math.pi


@inner
def _right_share(z):
    r"""Probability that the proposal lies above the cut; Polson et al., section 4.1.

    The masses of the two sides are :math:`\pi e^{-Kt} / (2K)` with :math:`K = \pi^2/8 + z^2/2`
    and :math:`2 e^{-z}` times the inverse-Gaussian(1/z, 1) probability of (0, t).
    """
    rate = 0.125 * _PI2 + 0.5 * z * z
    root = 1.0 / math.sqrt(_CUT)
    above = math.log(0.5 * math.pi / rate) - rate * _CUT
    first = log_normal_cdf(root * (_CUT * z - 1.0)) - z
    second = log_normal_cdf(-root * (_CUT * z + 1.0)) + z
    below = math.log(2.0) + first + math.log1p(math.exp(second - first))
    return 1.0 / (1.0 + math.exp(below - above))


@inner
def _truncated_inverse_gaussian(rng, z):
    """Draw an inverse-Gaussian variable of mean 1/z and shape 1, given that it is below t."""
    if z * _CUT < 1.0:
        # The mean is above the cut: propose z = 0 (a truncated Levy variable), then tilt.
        while True:
            # Normal tail beyond 1/sqrt(t) by exponentials (Devroye 1986, page 382).
            e, f = rng.standard_exponential(), rng.standard_exponential()
            while e * e > 2.0 * f / _CUT:
                e, f = rng.standard_exponential(), rng.standard_exponential()
            x = 1.0 + _CUT * e
            x = _CUT / (x * x)
            if rng.random() < math.exp(-0.5 * z * z * x):
                return x
    mean = 1.0 / z
    while True:
        # Michael, Schucany and Haas (1976); the smaller root without cancellation.
        y = rng.standard_normal()
        half = 0.5 * mean * y * y
        x = mean / (1.0 + half + math.sqrt(half * (half + 2.0)))
        if rng.random() * (mean + x) > mean:
            x = mean * mean / x
        if x < _CUT:
            return x


@inner
def _coefficient(n, x):
    """Term ``a_n(x)`` of the series, divided by the tilt that all terms share."""
    k = n + 0.5
    if x > _CUT:
        return math.pi * k * math.exp(-0.5 * k * k * _PI2 * x)
    return math.pi * k * (2.0 / (math.pi * x)) ** 1.5 * math.exp(-2.0 * k * k / x)


@inner
def draw_polya_gamma(rng, z):
    """Draw from the Polya-Gamma distribution PG(1, z), exactly.

    Parameters
    ----------
    rng : numpy.random.Generator
    z : float
        Tilt, finite.

    Returns
    -------
    float
    """
    z = 0.5 * abs(z)
    rate = 0.125 * _PI2 + 0.5 * z * z
    right = _right_share(z)
    while True:
        if rng.random() < right:
            x = _CUT + rng.standard_exponential() / rate
        else:
            x = _truncated_inverse_gaussian(rng, z)
        bound = _coefficient(0, x)
        level, partial, n = rng.random() * bound, bound, 0
        while True:
            n += 1
            if n % 2 == 1:
                partial -= _coefficient(n, x)
                if level <= partial:
                    return 0.25 * x
            else:
                partial += _coefficient(n, x)
                if level > partial:
                    break


@kernel
def draw_polya_gammas(rng, tilts, out):
    """Draw independent PG(1, z) variables for a vector of tilts into ``out``."""
    for i in range(tilts.shape[0]):
        out[i] = draw_polya_gamma(rng, tilts[i])


@kernel
def logistic_sweep(
    rng, coefficients, inclusion, columns, squares, response, offset, slab, log_odds, swaps
):
    """Draw all indicators and coefficients of a logistic regression, once.

    Parameters
    ----------
    rng, coefficients, inclusion, slab, log_odds, swaps
        As in :func:`bayesstruct.sparse.kernels.spike_slab_regression.gaussian_sweep`.
    columns, squares : (p, n) float64, C-contiguous
        Transpose of ``X``, and its elements squared.
    response : (n,) float64
        0 or 1.
    offset : (n,) float64
        The other terms of the linear predictor.
    """
    n = columns.shape[1]
    tilts, weights, target = np.empty(n), np.empty(n), np.empty(n)
    active_product(columns, coefficients, tilts)
    for i in range(n):
        weights[i] = draw_polya_gamma(rng, tilts[i] + offset[i])
        target[i] = response[i] - 0.5 - weights[i] * offset[i]
    weighted_sweep(
        rng, coefficients, inclusion, columns, squares, weights, target, slab, log_odds, swaps
    )
