r"""Binary features by least squares with a price for each feature: the limit of little noise.

.. math:: \min_{K, Z, A} \; \|X - Z A\|_F^2 + \lambda K, \qquad Z \in \{0, 1\}^{n \times K}

In the linear Gaussian model with features from an Indian buffet process of mass
:math:`\alpha = \exp(-\lambda / 2 \sigma^2)`, minus twice :math:`\sigma^2` times the log of the joint density of table
and features tends to this, up to a constant, as the noise :math:`\sigma` goes to zero.

References
----------
Broderick, T., Kulis, B. and Jordan, M. I. (2013). MAD-Bayes: MAP-based asymptotic derivations from Bayes. *ICML*
30, section 3 (the objective is their equation 8, the passes are those of their algorithm BP-means).
"""

import warnings

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesstruct.data.arguments import generator, number, whole_number

__all__ = ["BPMeans", "bp_means"]


@dataclass(frozen=True)
class BPMeans:
    """Result of a search.

    Attributes
    ----------
    feature : (n, k) int8 ndarray
        Left-ordered.
    loading : (k, d) ndarray
        Least squares given the features.
    objective : float
    passes : int
        Over all rows, of the search that was best.
    converged : bool
        Whether the last pass, with the least squares after it, lowers the objective by no more than 1e-12 of it. That
        pass visits rows in one order: another order might find a feature that pays.
    """

    feature: np.ndarray
    loading: np.ndarray
    objective: float
    passes: int
    converged: bool


def bp_means(
    x: Any,
    penalty: float,
    *,
    max_features: int = 50,
    restarts: int = 10,
    max_iter: int = 500,
    random_seed: int | np.random.Generator | None = None,
) -> BPMeans:
    """Find features and loadings with a small sum of squared residuals and few features.

    Parameters
    ----------
    x : (n, d) array_like
        Table, less the mean of a row without features.
    penalty : float
        Price of a feature, in squared units of the table, above 0.
    max_features : int
    restarts : int
        Searches, in which rows are visited in other orders; the best one is returned.
    max_iter : int
        Most passes of one search.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    BPMeans

    Raises
    ------
    TypeError, ValueError
        If the table is not one of finite numbers, or an option is out of range.

    Warns
    -----
    RuntimeWarning
        If the best search has not converged.

    Notes
    -----
    Passes, least squares and the removal of features that are not worth their price alternate; each lowers the
    objective, or leaves it. A local minimum: there is no certificate.

    Examples
    --------
    >>> found = bp_means([[0.0, 2.0], [3.0, 2.1], [3.0, 0.1]], 1.0, random_seed=0)
    >>> found.feature.shape[1]
    2
    """
    x = np.array(x, float, order="C")
    if x.ndim != 2 or not np.isfinite(x).all():
        raise ValueError("the table must have two dimensions and finite numbers")
    penalty = number("penalty", penalty, above=0)
    max_features = whole_number("max_features", max_features, 1)
    restarts, max_iter = (
        whole_number("restarts", restarts, 1),
        whole_number("max_iter", max_iter, 1),
    )
    rng = generator(random_seed)
    found = [_search(rng, x, penalty, max_features, max_iter) for _ in range(restarts)]
    best = min(found, key=lambda solution: solution.objective)
    if not best.converged:
        warnings.warn(
            f"the search has not converged in {max_iter} passes: set `max_iter` to more",
            RuntimeWarning,
            stacklevel=2,
        )
    return best


def _search(rng, x, penalty, most, max_iter):
    """One search, from no features."""
    from bayesstruct.features.kernels.bp_means import assign_rows
    from bayesstruct.features.kernels.indian_buffet import left_order

    n, d = x.shape
    feature, loading = np.zeros((n, most), np.int8), np.zeros((most, d))
    used, best, passes, converged = 0, float((x**2).sum()), 0, False
    kept = feature[:, :0].copy(), loading[:0].copy()
    while passes < max_iter and not converged:
        used, _ = assign_rows(feature, used, loading, x, penalty, rng.permutation(n))
        passes += 1
        z, a, value = _settled(feature[:, :used], x, penalty)
        if value < best * (1.0 - 1e-12):
            kept, best = (z, a), value
        else:
            converged = True
        used = kept[0].shape[1]
        feature[:], loading[:] = 0, 0.0
        feature[:, :used], loading[:used] = kept
    z, a = kept
    order = left_order(z)
    return BPMeans(z[:, order], a[order], best, passes, converged)


def _settled(z, x, penalty):
    """Fit loadings by least squares, without the features that are not worth their price."""
    z = np.array(z[:, z.any(axis=0)])
    loading, value = _least_squares(z, x, penalty)
    for a in range(z.shape[1] - 1, -1, -1):
        fewer = np.delete(z, a, axis=1)
        other, less = _least_squares(fewer, x, penalty)
        if less <= value:
            z, loading, value = fewer, other, less
    return z, loading, value


def _least_squares(z, x, penalty):
    loading = np.linalg.lstsq(z.astype(float), x)[0]
    return loading, float(((x - z @ loading) ** 2).sum() + penalty * z.shape[1])
