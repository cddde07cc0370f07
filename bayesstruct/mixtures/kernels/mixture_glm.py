r"""Dirichlet-process mixtures of logistic and Poisson regressions, coefficients kept.

Rows have columns as in :mod:`bayesstruct.mixtures.kernels.mixture_columns`, of which the parameters are summed out, and
a response whose log density depends on a linear predictor :math:`\eta_i = d_i^\top \beta_k` with normal
:math:`\beta_k`, which cannot be.

**Labels** (Neal 2000, algorithm 8): while a row is without a cluster, there are some empty ones with
coefficients from the prior; if the row was alone in its cluster, this is one of them. The row joins a cluster
in proportion to its size, an empty one in proportion to an equal part of :math:`\alpha`, times the
predictive density of the row in the cluster.

**Coefficients** (Murray, Adams and MacKay 2010): the present coefficients and a draw of their prior span an
ellipse; points of it are proposed, closer and closer to the present coefficients, until the likelihood of one is
above a level drawn below the present likelihood.

References
----------
Neal, R. M. (2000). Markov chain sampling methods for Dirichlet process mixture models. *JCGS* 9, 249-265. --
Murray, I., Adams, R. P. and MacKay, D. J. C. (2010). Elliptical slice sampling. *AISTATS* 9, 541-548.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.arrays import copy_matrix
from bayesstruct.core.jit import numpy_inner, numpy_kernel
from bayesstruct.mixtures.kernels.mixture_columns import (
    ColumnPrior,
    add_row,
    draw_moments,
    fill_columns,
    log_row,
    pick,
)

__all__ = ["LOGISTIC", "POISSON", "Responses", "draw_columns", "scan_glm"]

LOGISTIC, POISSON = 0, 1
_MOST = 700.0


class Responses(NamedTuple):
    """Responses and their regressors.

    Attributes
    ----------
    family : int
        LOGISTIC or POISSON.
    design : (n, m) float64
        Regressors, the first of them 1.
    response : (n,) float64
    offset : (n,) float64
        Linear predictor for the prior means of the coefficients, which are drawn less these.
    deviation : (m,) float64
        Prior standard deviations of the coefficients.
    """

    family: int
    design: np.ndarray
    response: np.ndarray
    offset: np.ndarray
    deviation: np.ndarray


@numpy_inner
def _log_response(family, y, eta):
    """Log density of a response, without what does not depend on the predictor."""
    if family == POISSON:
        return y * eta - math.exp(min(eta, _MOST))
    if eta > 0.0:
        return (y - 1.0) * eta - math.log1p(math.exp(-eta))
    return y * eta - math.log1p(math.exp(eta))


@numpy_inner
def _predictor(row, coefficient):
    total = 0.0
    for j in range(row.shape[0]):
        total += row[j] * coefficient[j]
    return total


@numpy_inner
def _draw_prior(rng, deviation, out):
    for j in range(out.shape[0]):
        out[j] = deviation[j] * rng.standard_normal()


@numpy_inner
def _fresh(rng, coefficients, first, alone, deviation):
    """Give the empty clusters coefficients; the first takes those of a cluster that is emptied."""
    for a in range(first, coefficients.shape[0]):
        if a == first and alone >= 0:
            for j in range(deviation.shape[0]):
                coefficients[a, j] = coefficients[alone, j]
                coefficients[alone, j] = 0.0
        else:
            _draw_prior(rng, deviation, coefficients[a])


@numpy_inner
def _scan(rng, labels, order, data, columns, coefficients, log_alpha):
    """Draw the labels of rows in turn; False if there are too many clusters.

    ``coefficients`` are those of clusters, then of those that are always empty.
    """
    family, design, response, offset, deviation = data
    size = coefficients.shape[0]
    max_clusters = columns.count.shape[0] - 1
    share = log_alpha - math.log(size - max_clusters)
    logs, place = np.zeros(size), np.zeros(size, np.int64)
    for i in order:
        old = labels[i]
        add_row(columns, old, i, -1)
        _fresh(rng, coefficients, max_clusters, old if columns.count[old] == 0 else -1, deviation)
        active = 0
        new = log_row(columns, max_clusters, i) + share
        for k in range(size):
            if k < max_clusters and columns.count[k] == 0:
                continue
            weight = (
                math.log(columns.count[k]) + log_row(columns, k, i) if k < max_clusters else new
            )
            eta = offset[i] + _predictor(design[i], coefficients[k])
            logs[active] = weight + _log_response(family, response[i], eta)
            place[active] = k
            active += 1
        k = place[pick(rng, logs, active)]
        if k >= max_clusters:
            chosen, k = k, 0
            while k < max_clusters and columns.count[k] > 0:
                k += 1
            if k == max_clusters:
                return False
            for j in range(deviation.shape[0]):
                coefficients[k, j] = coefficients[chosen, j]
        labels[i] = k
        add_row(columns, k, i, 1)
    return True


@numpy_inner
def _log_members(data, members, along, across, angle):
    """Log likelihood of the responses of a cluster at a point of an ellipse."""
    total, c, s = 0.0, math.cos(angle), math.sin(angle)
    for a in range(members.shape[0]):
        i = members[a]
        eta = data.offset[i] + c * along[a] + s * across[a]
        total += _log_response(data.family, data.response[i], eta)
    return total


@numpy_inner
def _move_coefficients(rng, data, members, coefficient):
    """Draw the coefficients of a cluster from an ellipse, in place."""
    m = coefficient.shape[0]
    other = np.empty(m)
    _draw_prior(rng, data.deviation, other)
    along, across = np.empty(members.shape[0]), np.empty(members.shape[0])
    for a in range(members.shape[0]):
        along[a] = _predictor(data.design[members[a]], coefficient)
        across[a] = _predictor(data.design[members[a]], other)
    level = _log_members(data, members, along, across, 0.0) - rng.standard_exponential()
    angle = 2.0 * math.pi * rng.random()
    low, high = angle - 2.0 * math.pi, angle
    while _log_members(data, members, along, across, angle) < level:
        if angle < 0.0:
            low = angle
        else:
            high = angle
        angle = low + (high - low) * rng.random()
    c, s = math.cos(angle), math.sin(angle)
    for j in range(m):
        coefficient[j] = c * coefficient[j] + s * other[j]


@numpy_kernel
def scan_glm(
    rng: np.random.Generator,
    labels: np.ndarray,
    order: np.ndarray,
    x: np.ndarray,
    prior: ColumnPrior,
    data: Responses,
    alpha: float,
    coefficients: np.ndarray,
    empty: int,
    moves: int,
) -> bool:
    """Draw the labels of all rows once, then the coefficients of clusters, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    labels : (n,) int64, changed
        Below K, in any order.
    order : (r,) int64
        Rows in the order in which they are visited.
    x : (n, p) float64
        Columns less their prior means.
    prior : ColumnPrior
    data : Responses
    alpha : float
    coefficients : (K, m) float64, changed
        Less their prior means.
    empty : int
        Empty clusters of algorithm 8.
    moves : int
        Draws of the coefficients of each cluster.

    Returns
    -------
    bool
        False if there were more clusters than the maximum number: labels and coefficients are not valid then.
    """
    max_clusters, m = coefficients.shape
    columns = fill_columns(x, labels, prior, max_clusters + 1)
    every = np.zeros((max_clusters + empty, m))
    copy_matrix(every, coefficients)
    if not _scan(rng, labels, order, data, columns, every, math.log(alpha)):
        return False
    members = np.empty(labels.shape[0], np.int64)
    for k in range(max_clusters):
        count = 0
        for i in range(labels.shape[0]):
            if labels[i] == k:
                members[count] = i
                count += 1
        for j in range(m):
            coefficients[k, j] = every[k, j] if count else 0.0
        for _ in range(moves if count else 0):
            _move_coefficients(rng, data, members[:count], coefficients[k])
    return True


@numpy_kernel
def draw_columns(
    rng: np.random.Generator,
    labels: np.ndarray,
    x: np.ndarray,
    prior: ColumnPrior,
    moments: np.ndarray,
) -> None:
    """Draw means and variances of the columns given labels, in place; those of empty clusters are zero.

    Parameters
    ----------
    rng : numpy.random.Generator
    labels : (n,) int64
    x : (n, p) float64
    prior : ColumnPrior
    moments : (2, K, p) float64, changed
    """
    moments[:] = 0.0
    columns = fill_columns(x, labels, prior, moments.shape[1])
    for k in range(moments.shape[1]):
        if columns.count[k] > 0:
            draw_moments(rng, columns, k, moments[0, k], moments[1, k])
