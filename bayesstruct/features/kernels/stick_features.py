r"""Slice draws of binary features, given loadings and with the probabilities of features made explicit.

The probabilities of the features of a process with mass :math:`\alpha`, concentration c and discount
:math:`\sigma` are the points of a Poisson process on (0, 1) with intensity

.. math:: \alpha \frac{\Gamma(1 + c)}{\Gamma(1 - \sigma) \, \Gamma(c + \sigma)} \pi^{-1 - \sigma} (1 - \pi)^{c + \sigma - 1}.

Given n rows, the feature that m of them have has the probability
:math:`\mathrm{Beta}(m - \sigma, n - m + c + \sigma)`, and those that no row has are the points of the process
whose intensity is :math:`(1 - \pi)^n` times this one. A *slice* s, uniform between zero and the least
probability of a feature that some row has, leaves a finite number of them to be looked at: those above s. Then
every entry is drawn from its conditional distribution, :math:`\pi_k^z (1 - \pi_k)^{1 - z}` times the likelihood,
times the density of s, which changes when a feature gains its first row or loses its last one.

The likelihood need not be one whose loadings can be summed out, but a feature that no row has comes with loadings
drawn from their prior: with many variables these rarely fit, and the number of features moves slowly.

**Discount.** A slice below s leaves some :math:`s^{-\sigma}` features to be looked at, and the probability of a
feature that one row has alone has a density that goes as :math:`\pi^{-\sigma}` towards zero: the mean number is
finite for :math:`\sigma < 1/2` only. From there on a chain meets slices that leave more than any memory holds, so
that this sampler takes smaller discounts, and stops, with a code, at slices that leave more than `MOST_UNSEEN`.

In Teh, Gorur and Ghahramani (2007) the points that no row has are drawn one after the other, the largest first
(their semi-ordered stick-breaking representation); here those above the slice are drawn together, by
thinning, which gives the same distribution.

References
----------
Teh, Y. W., Gorur, D. and Ghahramani, Z. (2007). Stick-breaking construction for the Indian buffet process.
*AISTATS* 11, section 5. -- Teh, Y. W. and Gorur, D. (2009). Indian buffet processes with power-law behavior.
*NIPS* 22, section 2 (the intensity).
"""

import math

import numpy as np

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import numpy_kernel

__all__ = ["MOST_UNSEEN", "slice_features", "unseen_probabilities"]

#: Expected number of features above a slice, those that no row has, beyond which it is not drawn.
MOST_UNSEEN = 200_000


@numpy_kernel
def _proposals(least, alpha, concentration, discount):
    """Mean number of points above a least one, and their integral of a power without the constant."""
    constant = math.exp(
        math.lgamma(1.0 + concentration)
        - math.lgamma(1.0 - discount)
        - math.lgamma(concentration + discount)
    )
    if discount > 0.0:
        mass = (least**-discount - 1.0) / discount
    else:
        mass = -math.log(least)
    return alpha * constant * mass, mass


@numpy_kernel
def unseen_probabilities(
    rng: np.random.Generator,
    n: int,
    least: float,
    alpha: float,
    concentration: float,
    discount: float,
) -> np.ndarray:
    """Draw the probabilities, above a least one, of the features that none of n rows has.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Number of rows.
    least : float
        Above 0, at most 1.
    alpha, concentration, discount : float
        Of the process.

    Returns
    -------
    float64 array
        In no order; often empty.
    """
    power = n + concentration + discount - 1.0
    mean, mass = _proposals(least, alpha, concentration, discount)
    points = np.empty(rng.poisson(mean))
    kept = 0
    for _ in range(len(points)):
        share = rng.random()
        if discount > 0.0:
            point = (1.0 + share * discount * mass) ** (-1.0 / discount)
        else:
            point = math.exp(-share * mass)
        if rng.random() < (1.0 - point) ** power:
            points[kept] = point
            kept += 1
    return points[:kept]


@numpy_kernel
def _least_active(probability, sums, but):
    """Least probability of the features that some row has, one of them left out."""
    least = 1.0
    for a in range(len(sums)):
        if sums[a] > 0 and a != but:
            least = min(least, probability[a])
    return least


@numpy_kernel
def _draw_entries(rng, z, sums, probability, loading, x, noise, left):
    """Draw all entries, in place; columns are visited in the order in which they stand."""
    n, d = x.shape
    least = _least_active(probability, sums, -1)
    for i in range(n):
        copy_vector(left, x[i])
        for a in range(len(sums)):
            if z[i, a]:
                for j in range(d):
                    left[j] -= loading[a, j]
        for a in range(len(sums)):
            sign = 1.0 if z[i, a] else 0.0
            gain = 0.0
            for j in range(d):
                with_none = left[j] + sign * loading[a, j]
                gain += loading[a, j] * (with_none - 0.5 * loading[a, j])
            log_odds = gain / (noise * noise)
            log_odds += math.log(probability[a]) - math.log1p(-probability[a])
            others = sums[a] - z[i, a]
            without = least
            if others == 0:
                # Most features are such: that nobody has them leaves the least as it is.
                if z[i, a]:
                    without = _least_active(probability, sums, a)
                log_odds += math.log(without) - math.log(min(without, probability[a]))
            chosen = rng.random() * (1.0 + math.exp(min(-log_odds, 700.0))) < 1.0
            if chosen != (z[i, a] == 1):
                change = 1.0 if chosen else -1.0
                for j in range(d):
                    left[j] -= change * loading[a, j]
            z[i, a] = chosen
            sums[a] = others + z[i, a]
            if others == 0:
                least = min(without, probability[a]) if chosen else without


@numpy_kernel
def slice_features(
    rng: np.random.Generator,
    features: np.ndarray,
    loadings: np.ndarray,
    x: np.ndarray,
    noise: float,
    scale: float,
    alpha: float,
    concentration: float,
    discount: float,
) -> int:
    """Draw the features of all rows once, in place; the columns are in no order afterwards.

    Parameters
    ----------
    rng : numpy.random.Generator
    features : (n, K) int8, changed
    loadings : (K, d) float64
        Of the features that some row has. They do not belong to the columns afterwards.
    x : (n, d) float64
    noise, scale : float
        Standard deviations of the noise and of the loadings.
    alpha, concentration, discount : float
        Of the process; the discount below one half.

    Returns
    -------
    int
        Number of columns that are used afterwards, which come first; -1 if K of them were not enough, -2 if the
        slice leaves too many features to be looked at.
    """
    n, most = features.shape
    d = x.shape[1]
    totals = np.zeros(most, np.int64)
    for i in range(n):
        for a in range(most):
            totals[a] += features[i, a]
    active = np.flatnonzero(totals)
    known = np.empty(len(active))
    for a in range(len(active)):
        m = totals[active[a]]
        known[a] = rng.beta(m - discount, n - m + concentration + discount)
    least = rng.random() * (known.min() if len(known) else 1.0)
    if not _proposals(least, alpha, concentration, discount)[0] <= MOST_UNSEEN:
        return -2
    unseen = unseen_probabilities(rng, n, least, alpha, concentration, discount)
    k = len(active) + len(unseen)
    z, loading = np.zeros((n, k), np.int8), np.empty((k, d))
    probability, sums = np.empty(k), np.zeros(k, np.int64)
    # A random order, so that it does not depend on the entries that are drawn.
    for a, place in enumerate(rng.permutation(np.arange(k))):
        if a < len(active):
            probability[place], sums[place] = known[a], totals[active[a]]
            copy_vector(loading[place], loadings[active[a]])
            copy_vector(z[:, place], features[:, active[a]])
        else:
            probability[place] = unseen[a - len(active)]
            for j in range(d):
                loading[place, j] = scale * rng.standard_normal()
    _draw_entries(rng, z, sums, probability, loading, x, noise, np.empty(d))
    chosen = np.flatnonzero(sums)
    if len(chosen) > most:
        return -1
    features[:] = 0
    for a in range(len(chosen)):
        copy_vector(features[:, a], z[:, chosen[a]])
    return len(chosen)
