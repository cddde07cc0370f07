r"""Dirichlet-process mixtures of normal regressions: labels with all parameters summed out.

Rows have columns as in :mod:`bayesstruct.mixtures.kernels.mixture_columns` and a response

.. math::

    y_i \sim N(d_i^\top \beta_k, s_k), \qquad \beta_k \sim N(0, s_k \Lambda^{-1}), \qquad
    s_k \sim \mathrm{IG}(a, b).

**One triangle for all.** With rows :math:`r_i = (d_i, y_i)`, the Cholesky factor R, upper triangular, of

.. math::

    \begin{pmatrix} \Lambda & 0 \\ 0 & 2 b \end{pmatrix} + \sum_i r_i r_i^\top
        = R^\top R, \qquad R = \begin{pmatrix} T & g \\ 0 & \rho \end{pmatrix}

contains all statistics of a cluster of n rows: the posterior mean of :math:`\beta` is :math:`T^{-1} g`, its
covariance :math:`s (T^\top T)^{-1}`, and :math:`s \sim \mathrm{IG}(a + n/2, \rho^2 / 2)`. For a further row let
:math:`R^\top w = r`, and q the sum of the squares of all but the last element of w. Then

.. math::

    p(y \mid d) = \frac{\Gamma(a_n + 1/2)}{\Gamma(a_n)} \bigl(\pi \rho^2 (1 + q)\bigr)^{-1/2}
        \Bigl(1 + \frac{w_m^2}{1 + q}\Bigr)^{-a_n - 1/2}, \qquad a_n = a + n / 2,

a Student distribution; the formula in appendix A of Hannah, Blei and Powell (2011) is not a density. Rows come and go
by updates of rank one.

**Labels.** A scan is Gibbs sampling (Neal 2000, algorithm 3). Then clusters are split and merged: two rows are
chosen; if one cluster has both, its other rows are assigned to two new ones, in random order and in
proportion to their predictive densities; if not, the two clusters are made one (Dahl 2005). Both are accepted by
the rule of Metropolis and Hastings.

References
----------
Hannah, L. A., Blei, D. M. and Powell, W. B. (2011). Dirichlet process mixtures of generalized linear models.
*JMLR* 12, 1923-1953. -- Neal, R. M. (2000). Markov chain sampling methods for Dirichlet process mixture models.
*JCGS* 9, 249-265. -- Dahl, D. B. (2005). Sequentially-allocated merge-split sampler for conjugate and
nonconjugate Dirichlet process mixture models. Technical report, Texas A&M University.
"""

import math

from typing import NamedTuple

import numpy as np

from numba.core import types
from numba.experimental import structref

from bayesstruct.core.jit import numpy_inner, numpy_kernel
from bayesstruct.mixtures.kernels.mixture_columns import (
    add_row,
    clear_cluster,
    copy_cluster,
    draw_moments,
    fill_columns,
    log_row,
    pick,
)

__all__ = ["RegressionPrior", "draw_parameters", "scan_labels"]

_TINY = 1e-300


class RegressionPrior(NamedTuple):
    """Prior of coefficients and noise in a cluster.

    Attributes
    ----------
    shape : float
        a.
    root : (m + 1,) float64
        Diagonal of the factor without rows: the roots of the diagonal of Lambda, then that of 2 b.
    gains : (n + 1,) float64
        :func:`bayesstruct.mixtures.kernels.mixture_columns.log_gains` of the shape.
    """

    shape: float
    root: np.ndarray
    gains: np.ndarray


class _Clusters(NamedTuple):
    """Statistics of each of S clusters.

    Attributes
    ----------
    columns : reference
        See :mod:`bayesstruct.mixtures.kernels.mixture_columns`.
    rows : (n, m + 1) float64
        Regressors and response.
    shape, prior, gains
        Of `RegressionPrior`; `prior` is its root.
    root : (S, m + 1, m + 1) float64
        R.
    work : (m + 1,) float64
        Workspace for a row.
    """

    columns: object
    rows: np.ndarray
    shape: float
    prior: np.ndarray
    gains: np.ndarray
    root: np.ndarray
    work: np.ndarray


@structref.register
class _ClustersReference(types.StructRef):
    """Reference to `_Clusters`."""


def _clusters_of(*elements):
    """Make a structure of the elements of `_Clusters`."""


structref.define_constructor(_clusters_of, _ClustersReference, _Clusters._fields)


@numpy_inner
def _rotate(root, row, sign, work):
    """Add the square of a row to R'R, or take it away."""
    m = root.shape[0]
    for j in range(m):
        work[j] = row[j]
    for j in range(m):
        old, v = root[j, j], work[j]
        new = math.sqrt(max(old * old + sign * v * v, _TINY))
        c, s = new / old, v / old
        root[j, j] = new
        for i in range(j + 1, m):
            root[j, i] = (root[j, i] + sign * s * work[i]) / c
            work[i] = c * work[i] - s * root[j, i]


@numpy_inner
def _clear(clusters, k):
    clear_cluster(clusters.columns, k)
    root = clusters.root[k]
    for j in range(root.shape[0]):
        for h in range(root.shape[0]):
            root[j, h] = clusters.prior[j] if j == h else 0.0


@numpy_inner
def _copy(clusters, source, target):
    copy_cluster(clusters.columns, source, target)
    old, new = clusters.root[source], clusters.root[target]
    for j in range(old.shape[0]):
        for h in range(old.shape[0]):
            new[j, h] = old[j, h]


@numpy_inner
def _move(clusters, k, i, sign):
    """Put row i into a cluster, or take it out."""
    add_row(clusters.columns, k, i, sign)
    if clusters.columns.count[k] == 0:
        _clear(clusters, k)
    else:
        _rotate(clusters.root[k], clusters.rows[i], sign, clusters.work)


@numpy_inner
def _log_predictive(clusters, k, i):
    """Log density of columns and response of row i as a further row of a cluster."""
    root, row, work = clusters.root[k], clusters.rows[i], clusters.work
    last = root.shape[0] - 1
    for j in range(last + 1):
        work[j] = row[j]
    q = 0.0
    for j in range(last):
        w = work[j] / root[j, j]
        q += w * w
        for h in range(j + 1, last + 1):
            work[h] -= root[j, h] * w
    w = work[last] / root[last, last]
    scale = root[last, last] * root[last, last] * (1.0 + q)
    n = clusters.columns.count[k]
    response = clusters.gains[n] - 0.5 * math.log(math.pi * scale)
    response -= (clusters.shape + 0.5 * n + 0.5) * math.log1p(w * w / (1.0 + q))
    return log_row(clusters.columns, k, i) + response


@numpy_inner
def _fill(labels, table, priors, size):
    """Make clusters from labels."""
    (x, rows), (column_prior, prior) = table, priors
    m = rows.shape[1]
    columns = fill_columns(x, labels, column_prior, size)
    clusters = _clusters_of(
        columns, rows, prior.shape, prior.root, prior.gains, np.zeros((size, m, m)), np.zeros(m)
    )
    for k in range(size):
        for j in range(m):
            clusters.root[k, j, j] = prior.root[j]
    for i in range(x.shape[0]):
        _rotate(clusters.root[labels[i]], rows[i], 1.0, clusters.work)
    return clusters


@numpy_inner
def _empty(count, max_clusters):
    """First empty cluster, or -1."""
    for k in range(max_clusters):
        if count[k] == 0:
            return k
    return -1


@numpy_inner
def _scan(rng, labels, order, clusters, log_alpha, max_clusters):
    """Draw the labels of rows in turn; False if there are too many clusters."""
    count = clusters.columns.count
    logs, place = np.zeros(max_clusters + 1), np.zeros(max_clusters + 1, np.int64)
    for i in order:
        _move(clusters, labels[i], i, -1)
        active = 0
        for k in range(max_clusters):
            if count[k] > 0:
                place[active] = k
                logs[active] = math.log(count[k]) + _log_predictive(clusters, k, i)
                active += 1
        # The cluster after the last is always empty: its predictive density is that of a new cluster.
        logs[active] = log_alpha + _log_predictive(clusters, max_clusters, i)
        place[active] = -1
        k = place[pick(rng, logs, active + 1)]
        if k < 0:
            k = _empty(count, max_clusters)
            if k < 0:
                return False
        labels[i] = k
        _move(clusters, k, i, 1)
    return True


@numpy_inner
def _deal(rng, labels, rest, clusters, first, second, forced):
    """Assign rows to two clusters, in proportion to their predictive densities.

    With `forced` not negative, rows that have this label go to the first cluster and others to the
    second: the same, as if it had been drawn.

    Returns
    -------
    tuple of float
        Log density of the rows as they are assigned, and log probability of assigning them so.
    """
    count = clusters.columns.count
    density, chance = 0.0, 0.0
    for i in rest:
        one = _log_predictive(clusters, first, i)
        two = _log_predictive(clusters, second, i)
        odds = math.log(count[second]) + two - math.log(count[first]) - one
        if forced >= 0:
            to_first = labels[i] == forced
        else:
            to_first = rng.random() * (1.0 + math.exp(min(odds, 700.0))) < 1.0
        density += one if to_first else two
        chance -= _log1p_exp(odds if to_first else -odds)
        _move(clusters, first if to_first else second, i, 1)
        if forced < 0:
            # Marks for the caller; the labels proper follow if the proposal is accepted.
            labels[i] = -1 if to_first else -2
    return density, chance


@numpy_inner
def _log1p_exp(v):
    return v + math.log1p(math.exp(-v)) if v > 0.0 else math.log1p(math.exp(v))


@numpy_inner
def _pool(rest, clusters, k):
    """Put rows into one cluster; the log density of them."""
    density = 0.0
    for i in rest:
        density += _log_predictive(clusters, k, i)
        _move(clusters, k, i, 1)
    return density


@numpy_inner
def _others(rng, labels, i, j):
    """Rows that share a cluster with one of two, without these, in random order."""
    rest = np.empty(labels.shape[0], np.int64)
    many = 0
    for t in range(labels.shape[0]):
        near = labels[t] == labels[i] or labels[t] == labels[j]
        if near and t not in (i, j):
            rest[many] = t
            many += 1
    for a in range(many - 1, 0, -1):
        b = int(rng.random() * (a + 1))
        rest[a], rest[b] = rest[b], rest[a]
    return rest[:many]


@numpy_inner
def _split_or_merge(rng, labels, clusters, log_alpha, max_clusters):
    """Propose to split a cluster or to merge two; False if an accepted split makes too many clusters."""
    n, count = labels.shape[0], clusters.columns.count
    i = int(rng.random() * n)
    j = int(rng.random() * (n - 1))
    j += j >= i
    old, other = labels[i], labels[j]
    split = old == other
    rest = _others(rng, labels, i, j)
    first, second, whole = max_clusters + 1, max_clusters + 2, max_clusters + 3
    for k in range(first, whole + 1):
        _clear(clusters, k)
    # The rows in the same order in both ways of seating them; row i alone is in both.
    apart = _log_predictive(clusters, second, j)
    _move(clusters, first, i, 1)
    _move(clusters, second, j, 1)
    _move(clusters, whole, i, 1)
    together = _log_predictive(clusters, whole, j)
    _move(clusters, whole, j, 1)
    together += _pool(rest, clusters, whole)
    density, chance = _deal(rng, labels, rest, clusters, first, second, -1 if split else old)
    gain = apart + density - together + log_alpha - chance
    gain += math.lgamma(count[first]) + math.lgamma(count[second]) - math.lgamma(count[whole])
    accepted = math.log(rng.random()) < (gain if split else -gain)
    if split:
        new = _empty(count, max_clusters) if accepted else old
        for t in rest:
            labels[t] = new if labels[t] == -2 else old
        if not accepted:
            return True
        if new < 0:
            return False
        labels[j] = new
        _copy(clusters, first, old)
        _copy(clusters, second, new)
    elif accepted:
        labels[j] = old
        for t in rest:
            labels[t] = old
        _copy(clusters, whole, old)
        _clear(clusters, other)
    return True


@numpy_kernel
def scan_labels(
    rng: np.random.Generator,
    labels: np.ndarray,
    order: np.ndarray,
    table: tuple,
    priors: tuple,
    alpha: float,
    max_clusters: int,
    moves: int,
) -> bool:
    """Draw the labels of all rows once, in place, then propose splits and merges.

    Parameters
    ----------
    rng : numpy.random.Generator
    labels : (n,) int64, changed
        Below `max_clusters`, in any order.
    order : (m,) int64
        Rows in the order in which they are visited.
    table : tuple of (n, p) and (n, m + 1) float64
        Columns less their prior means; regressors, the last of them the response less its prior mean.
    priors : tuple of ColumnPrior and RegressionPrior
    alpha : float
    max_clusters : int
        Maximum number of clusters.
    moves : int
        Proposals of splits and merges.

    Returns
    -------
    bool
        False if there were more clusters than the maximum number: the labels are not valid then.
    """
    # One more cluster is always empty, and three are for proposals.
    clusters = _fill(labels, table, priors, max_clusters + 4)
    log_alpha = math.log(alpha)
    if not _scan(rng, labels, order, clusters, log_alpha, max_clusters):
        return False
    for _ in range(moves if labels.shape[0] > 1 else 0):
        if not _split_or_merge(rng, labels, clusters, log_alpha, max_clusters):
            return False
    return True


@numpy_kernel
def draw_parameters(
    rng: np.random.Generator,
    labels: np.ndarray,
    table: tuple,
    priors: tuple,
    moments: np.ndarray,
    coefficients: np.ndarray,
    noise: np.ndarray,
) -> None:
    """Draw the parameters of clusters given labels, in place; those of empty ones are zero.

    Parameters
    ----------
    rng : numpy.random.Generator
    labels : (n,) int64
    table, priors : tuple
        As in :func:`scan_labels`.
    moments : (2, K, p) float64, changed
        Means, less their prior means, and variances of the columns.
    coefficients : (K, m) float64, changed
        Less their prior means.
    noise : (K,) float64, changed
        Variances of the response.
    """
    clusters = _fill(labels, table, priors, coefficients.shape[0])
    moments[:] = 0.0
    coefficients[:] = 0.0
    noise[:] = 0.0
    m = coefficients.shape[1]
    for k in range(coefficients.shape[0]):
        n = clusters.columns.count[k]
        if n == 0:
            continue
        draw_moments(rng, clusters.columns, k, moments[0, k], moments[1, k])
        root = clusters.root[k]
        noise[k] = 0.5 * root[m, m] ** 2 / rng.standard_gamma(priors[1].shape + 0.5 * n)
        deviation = math.sqrt(noise[k])
        for j in range(m - 1, -1, -1):
            value = root[j, m] + deviation * rng.standard_normal()
            for i in range(j + 1, m):
                value -= root[j, i] * coefficients[k, i]
            coefficients[k, j] = value / root[j, j]
