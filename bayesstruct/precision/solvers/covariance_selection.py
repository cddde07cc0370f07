"""The likeliest precision matrix with the zeros of a known graph, and the log marginal likelihood of a graph from it."""

import math

from typing import Any

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.core.solution import PrecisionSolution
from bayesstruct.precision.exact.constants import adjacency_matrix
from bayesstruct.precision.solvers.graphical_lasso import as_covariance, graphical_lasso

__all__ = ["common_when_added", "covariance_selection", "laplace_log_constant"]


def covariance_selection(
    S: ArrayLike,
    graph: Any,
    *,
    tol: float = 1e-10,
    max_iter: int = 100,
    init: ArrayLike | PrecisionSolution | None = None,
) -> PrecisionSolution:
    r"""Maximise the Gaussian log-likelihood over the precision matrices with the zeros of a graph.

    .. math::

        \max_{K \succ 0} \; \log\det K - \operatorname{tr}(S K), \qquad K_{ij} = 0 \text{ for every pair that is no edge}

    Parameters
    ----------
    S : (p, p) array_like
        Symmetric covariance or correlation matrix, positive definite on every clique of the graph.
    graph : networkx.Graph or (p, p) array_like
        Undirected; a matrix is symmetric, and its elements that are not zero are edges. Nodes 0, ..., p - 1 of a graph are in the
        order of their numbers, others in that of ``graph.nodes``.
    tol : float
        Stop when the duality gap divided by p is at most this.
    max_iter : int
        Most Newton steps.
    init : (p, p) array_like or PrecisionSolution, optional
        Precision matrix to start from.

    Returns
    -------
    PrecisionSolution
        ``precision``, ``covariance``, which is equal to `S` on the diagonal and the edges, ``objective`` (the maximum above) and ``gap``,
        a bound on how far it is from the maximum, from a dual feasible point.

    Raises
    ------
    TypeError, ValueError
        If an argument is malformed, or the problem is unbounded.

    Warns
    -----
    ConvergenceWarning
        If the gap is above `tol` after `max_iter` steps.

    Notes
    -----
    This is a graphical lasso without a penalty on the edges, and on the other pairs with one of twice the largest covariance that
    a positive definite matrix allows: no element there can differ from zero.

    References
    ----------
    A. P. Dempster (1972). Covariance selection. Biometrics 28(1), 157-175.

    Examples
    --------
    >>> S = np.array([[1.0, 0.5, 0.4], [0.5, 1.0, 0.6], [0.4, 0.6, 1.0]])
    >>> chain = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> covariance_selection(S, chain).covariance.round(3)
    array([[1. , 0.5, 0.3],
           [0.5, 1. , 0.6],
           [0.3, 0.6, 1. ]])
    """
    S, adjacency = as_covariance(S), adjacency_matrix(graph)
    if adjacency.shape != S.shape:
        raise ValueError(f"`graph` has {len(adjacency)} nodes, but S has shape {S.shape}")
    root = np.sqrt(S.diagonal())
    penalty = np.where(adjacency, 0.0, 2.0 * np.outer(root, root))
    np.fill_diagonal(penalty, 0.0)
    return graphical_lasso(S, penalty, tol=tol, max_iter=max_iter, init=init)


def laplace_log_constant(
    adjacency: np.ndarray, degrees_of_freedom: float, scale: np.ndarray, precision: np.ndarray
) -> float:
    r"""Log constant of a G-Wishart distribution by Laplace's method, corrected to be exact on decomposable graphs.

    Parameters
    ----------
    adjacency : (p, p) bool ndarray
    degrees_of_freedom : float
        :math:`b`, more than 2.
    scale : (p, p) ndarray
        :math:`D`, positive definite.
    precision : (p, p) ndarray
        The mode: that of `covariance_selection` for ``D / (b - 2)``.

    Returns
    -------
    float

    Notes
    -----
    The second derivatives at the mode are the Isserlis matrix of its inverse [1]_. Both the constant and its approximation factorise over cliques and separators
    where a graph is decomposable, so that the error of the approximation is a sum over nodes and edges that does
    not depend on the scale. It is known there from the ratio of constants with one edge more, a function of the number
    of common neighbours of its ends, when edges are added in a perfect order. On other graphs this correction is itself
    approximate, in the way of [2]_: common neighbours count, and longer ways around do not.

    References
    ----------
    .. [1] A. Roverato and J. Whittaker (1998). The Isserlis matrix and its application to non-decomposable graphical Gaussian models.
       Biometrika 85(3), 711-725.
    .. [2] R. Mohammadi, H. Massam and G. Letac (2023). Accelerating Bayesian structure learning in sparse Gaussian graphical models. Journal
       of the American Statistical Association 118, 1345-1358.
    """
    p, b = len(scale), degrees_of_freedom
    half, covariance = 0.5 * (b - 2.0), np.linalg.inv(precision)
    i, j = (np.append(np.arange(p), ends) for ends in np.nonzero(np.triu(adjacency, 1)))
    hessian = covariance[np.ix_(i, i)] * covariance[np.ix_(j, j)]
    hessian += covariance[np.ix_(i, j)] * covariance[np.ix_(j, i)]
    # An element of a pair has two places in the matrix, one of the diagonal has one.
    weight = np.sqrt(np.append(np.full(p, 0.5), np.full(len(i) - p, 2.0)))
    hessian *= half * weight * weight[:, None]
    top = half * np.linalg.slogdet(precision)[1] - 0.5 * np.sum(precision * scale)
    laplace = top + 0.5 * len(i) * np.log(2.0 * np.pi) - 0.5 * np.linalg.slogdet(hessian)[1]
    return float(laplace + _correction(adjacency, b))


def _correction(adjacency: np.ndarray, b: float) -> float:
    """Error of Laplace's method with a unit scale, edges being added in an order that is perfect if there is one."""
    from bayesstruct.precision.kernels.g_wishart.constant_ratios import log_constant_ratio

    p, c = len(adjacency), b - 2.0
    node = 0.5 * b * math.log(2.0) + math.lgamma(0.5 * b)
    node -= 0.5 * c * math.log(c) - 0.5 * c + 0.5 * math.log(4.0 * math.pi * c)
    ratio = np.array([log_constant_ratio(b, float(d)) for d in range(p)])
    ratio -= 0.5 * math.log(2.0 * math.pi * c)
    return p * node + ratio[common_when_added(adjacency)].sum()


def common_when_added(adjacency: np.ndarray) -> np.ndarray:
    """Count the common neighbours of the ends of each edge when it is added, in the order of maximum cardinality search."""
    weight, left = np.zeros(len(adjacency), int), np.ones(len(adjacency), bool)
    counts = []
    while left.any():
        v = int(np.where(left, weight, -1).argmax())
        near = np.flatnonzero(adjacency[v] & ~left)
        counts.append(np.tril(adjacency[np.ix_(near, near)], -1).sum(axis=1))
        left[v] = False
        weight += adjacency[v]
    return np.concatenate(counts).astype(int)
