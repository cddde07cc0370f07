r"""Split and merge moves of latent features: a few columns at once, in exchange for others.

Entry by entry the features of a linear Gaussian model hardly ever get from one basis to another: from
two features that exclude each other and a third for both, say, to the two that overlap. A move takes some columns
out and puts as many, one more or one less in their place: rows are visited in a random order, and each gets
entries in the new columns with probabilities

.. math:: q(z_i) \propto \prod_k \Bigl(\frac{m_k + 1/2}{t + 1}\Bigr)^{z_{ik}} \Bigl(\frac{t + 1/2 - m_k}{t + 1}\Bigr)^{1 - z_{ik}} \;
    p(x_i \mid z_i, \text{the t rows before}),

the loadings summed out. The density of the table given the features is the product of the last factors and needs no
further computation. With :math:`q(C)` the product of the probabilities of all rows, K columns and g as in
:mod:`bayesstruct.features.kernels.indian_buffet`, the move from columns C to C' is accepted with probability

.. math:: \min\Bigl(1, \frac{p(X \mid Z') \; \alpha^{K'} \prod_k g(m_k') \, / \, K'!}{p(X \mid Z) \; \alpha^K \prod_k g(m_k) \, / \, K!}
    \; \frac{q(C)}{q(C')}\Bigr),

that of matrices whose columns stand in a random order, for which the probabilities of the choice of the removed
columns and of the places of new ones cancel.

References
----------
Dahl, D. B. (2005). Sequentially-allocated merge-split sampler for conjugate and nonconjugate Dirichlet process
mixture models (the allocation, for partitions). -- Meeds, E., Ghahramani, Z., Neal, R. M. and Roweis, S. T. (2007).
Modeling dyadic data with binary latent factors. *NIPS* 19, section 4 (split and merge of binary features).
"""

import math

import numpy as np

from bayesstruct.core.arrays import copy_matrix, copy_vector, scaled_identity
from bayesstruct.core.jit import numpy_inner, numpy_kernel
from bayesstruct.features.kernels.feature_columns import shuffle
from bayesstruct.features.kernels.latent_features import update_rank_one

__all__ = ["exchange_columns"]

_MOST = 3  # columns that are taken out at once


@numpy_inner
def _log_predictive(z, x, inverse, mean, noise, left):
    """Log density of a row given its features and the conditional distribution of the loadings."""
    k, d = inverse.shape[0], x.shape[0]
    copy_vector(left, x)
    spread = 1.0
    for a in range(k):
        if z[a]:
            for b in range(k):
                if z[b]:
                    spread += inverse[a, b]
            for j in range(d):
                left[j] -= mean[a, j]
    square = 0.0
    for j in range(d):
        square += left[j] * left[j]
    variance = noise * noise * spread
    return -0.5 * square / variance - 0.5 * d * math.log(2.0 * math.pi * variance)


@numpy_kernel
def _allocate(rng, z, fresh, x, order, noise, ratio, forced):
    """Give rows their entries in the first columns, or find the probability of those that they have.

    Returns
    -------
    float and float
        Log density of the table, and log probability of the entries.
    """
    n, k = z.shape
    d = x.shape[1]
    inverse, mean = scaled_identity(k, 1.0 / ratio), np.zeros((k, d))
    along, left, sums = np.empty(k), np.empty(d), np.zeros(fresh)
    codes = 1 << fresh
    weight, density = np.empty(codes), np.empty(codes)
    log_table, log_chosen = 0.0, 0.0
    for t in range(n):
        i = order[t]
        row = z[i]
        own = 0
        for a in range(fresh):
            own += int(row[a]) << a
        for code in range(codes):
            weight[code] = 0.0
            for a in range(fresh):
                row[a] = (code >> a) & 1
                m = sums[a] + 0.5 if row[a] else t + 0.5 - sums[a]
                weight[code] += math.log(m / (t + 1.0))
            density[code] = _log_predictive(row, x[i], inverse, mean, noise, left)
            weight[code] += density[code]
        top = weight[0]
        for code in range(1, codes):
            top = max(top, weight[code])
        total = np.exp(weight - top).sum()
        if not forced:
            share, own = rng.random() * total, 0
            share -= math.exp(weight[0] - top)
            while share > 0.0 and own < codes - 1:
                own += 1
                share -= math.exp(weight[own] - top)
        for a in range(fresh):
            row[a] = (own >> a) & 1
            sums[a] += row[a]
        log_table += density[own]
        log_chosen += weight[own] - top - math.log(total)
        update_rank_one(inverse, mean, row, k, x[i], 1.0, along, left)
    return log_table, log_chosen


@numpy_kernel
def _log_prior(z, alpha, concentration, discount):
    """Log of alpha^K prod g(m_k) / K!, but for a constant, or -inf if a column is empty."""
    n, k = z.shape
    total = -math.lgamma(k + 1.0)
    constant = math.log(alpha) - math.lgamma(1.0 - discount) - math.lgamma(concentration + discount)
    constant += math.lgamma(1.0 + concentration) - math.lgamma(n + concentration)
    for a in range(k):
        m = 0
        for i in range(n):
            m += z[i, a]
        if m == 0:
            return -np.inf
        total += constant + math.lgamma(m - discount)
        total += math.lgamma(n - m + concentration + discount)
    return total


@numpy_kernel
def exchange_columns(
    rng: np.random.Generator,
    features: np.ndarray,
    x: np.ndarray,
    noise: float,
    scale: float,
    alpha: float,
    concentration: float,
    discount: float,
) -> bool:
    """Try one move, in place; columns are in no order afterwards.

    Parameters
    ----------
    rng : numpy.random.Generator
    features : (n, K) int8, changed
    x : (n, d) float64
    noise, scale : float
        Standard deviations of the noise and of the loadings.
    alpha, concentration, discount : float
        Of the process.

    Returns
    -------
    bool
        Whether it was accepted.
    """
    n, most = features.shape
    used = np.empty(most, np.int64)
    k = 0
    for a in range(most):
        for i in range(n):
            if features[i, a]:
                used[k] = a
                k += 1
                break
    out = 1 + int(rng.random() * _MOST)
    into = out + int(rng.random() * 3.0) - 1
    if not 1 <= into <= _MOST or out > k or k - out + into > most:
        return False
    rank, order = np.empty(k, np.int64), np.empty(n, np.int64)
    shuffle(rng, rank, k)
    shuffle(rng, order, n)
    old, new = np.empty((n, k), np.int8), np.zeros((n, k - out + into), np.int8)
    for a in range(k):
        copy_vector(old[:, a], features[:, used[rank[a]]])
    copy_matrix(new[:, into:], old[:, out:])
    ratio = (noise / scale) ** 2
    table, chosen = _allocate(rng, new, into, x, order, noise, ratio, False)
    prior = _log_prior(new, alpha, concentration, discount)
    if prior == -np.inf:
        return False
    old_table, old_chosen = _allocate(rng, old, out, x, order, noise, ratio, True)
    gain = table + prior - chosen - old_table + old_chosen
    gain -= _log_prior(old, alpha, concentration, discount)
    if math.log(1.0 - rng.random()) >= gain:
        return False
    features[:] = 0
    copy_matrix(features, new)
    return True
