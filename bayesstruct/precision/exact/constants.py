r"""Normalising constants of the G-Wishart distribution.

.. math:: I_G(b, D) = \int_{P_G} |K|^{(b - 2) / 2} e^{-\mathrm{tr}(K D) / 2} \, dK

over the positive definite matrices with zeros off the graph G; the measure is that of the free elements, diagonal and
one for each edge. The constant of a graph is the product over its prime components, divided by that over the separators between
them. Complete parts have closed forms; the others, which have no complete separator, are estimated by Monte Carlo.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scipy.special import gammaln, logsumexp, multigammaln

from bayesstruct.data.arguments import generator, number, whole_number
from bayesstruct.data.matrices import without_labels
from bayesstruct.precision.kernels.g_wishart.completion import complete_factors, few_determined
from bayesstruct.precision.kernels.g_wishart.prime_components import is_complete, prime_components

__all__ = [
    "LogConstant",
    "adjacency_matrix",
    "complete_log_constant",
    "core_log_constant",
    "g_wishart_log_constant",
    "scale_matrix",
]

_DRAWS, _SEED = 20_000, 20050601  # fixed: equal calls give equal constants


@dataclass(frozen=True)
class LogConstant:
    """Log of a normalising constant.

    Attributes
    ----------
    value : float
    standard_error : float
        Monte Carlo standard error of `value`; 0 if the graph is decomposable and the constant exact.
    """

    value: float
    standard_error: float

    def __float__(self) -> float:
        return self.value


def g_wishart_log_constant(
    graph: Any,
    degrees_of_freedom: float = 3.0,
    scale: Any = 1.0,
    *,
    draws: int = _DRAWS,
    random_seed: int | np.random.Generator | None = _SEED,
) -> LogConstant:
    r"""Log normalising constant of a G-Wishart distribution.

    Parameters
    ----------
    graph : networkx.Graph or (p, p) array_like
        Undirected; a matrix is symmetric, and its elements that are not zero are edges. Nodes 0, ..., p - 1 are in the order of their
        numbers, others in that of ``graph.nodes``.
    degrees_of_freedom : float, default 3
        :math:`b`, more than 2.
    scale : float or (p, p) array_like, default 1
        :math:`D`, positive definite, in the order of the nodes; a number stands for that multiple of the identity.
    draws : int, default 20,000
        Monte Carlo draws for each prime component that is not complete.
    random_seed : int or numpy.random.Generator, optional
        Fixed unless given, so that equal calls give equal values.

    Returns
    -------
    LogConstant
        ``value`` and its ``standard_error``, which is 0 on decomposable graphs: no Monte Carlo is used there.

    Raises
    ------
    TypeError, ValueError
        If the graph is directed or has loops, or a parameter is out of range.

    Notes
    -----
    Monte Carlo of [1]_, on the prime components that are not complete: the mean of :math:`\exp(-\tfrac12 \sum \psi_{ij}^2)` over
    the elements of a Cholesky factor that the zeros of the graph determine. With a scale far from diagonal, or on
    components of more than some ten nodes, few of the draws have all the weight; the standard error is then large, and
    itself too small.

    References
    ----------
    .. [1] A. Atay-Kayis and H. Massam (2005). A Monte Carlo method for computing the marginal likelihood in
       nondecomposable Gaussian graphical models. Biometrika 92, 317-335.

    Examples
    --------
    >>> import networkx as nx
    >>> constant = g_wishart_log_constant(nx.path_graph(3))
    >>> round(constant.value, 4), constant.standard_error
    (5.5294, 0.0)
    >>> g_wishart_log_constant(nx.cycle_graph(4)).standard_error < 0.01
    True
    """
    adjacency = adjacency_matrix(graph)
    freedom = number("degrees_of_freedom", degrees_of_freedom, above=2)
    matrix = scale_matrix(scale, len(adjacency))
    draws = whole_number("draws", draws, 2)
    rng = generator(random_seed)
    total, variance = 0.0, 0.0
    for component, separator in prime_components(adjacency):
        block = np.ix_(component, component)
        if is_complete(adjacency[block]):
            total += complete_log_constant(freedom, matrix[block])
        else:
            core = core_log_constant(adjacency[block], freedom, matrix[block], draws, rng)
            total += core.value
            variance += core.standard_error**2
        total -= complete_log_constant(freedom, matrix[np.ix_(separator, separator)])
    return LogConstant(float(total), float(np.sqrt(variance)))


def complete_log_constant(degrees_of_freedom: float, scale: np.ndarray) -> float:
    """Log constant of a complete graph, that of a Wishart distribution; 0 without nodes."""
    size = len(scale)
    if size == 0:
        return 0.0
    half = 0.5 * (degrees_of_freedom + size - 1)
    log_det = np.linalg.slogdet(scale)[1]
    return float(half * size * np.log(2.0) + multigammaln(half, size) - half * log_det)


def core_log_constant(
    adjacency: np.ndarray, degrees_of_freedom: float, scale: np.ndarray, draws: int, rng
) -> LogConstant:
    """Monte Carlo log constant of any graph; parameters are those of `g_wishart_log_constant`."""
    order = few_determined(adjacency)
    adjacency, scale = adjacency[np.ix_(order, order)], scale[np.ix_(order, order)]
    # D^-1 = T' T with T upper triangular.
    root = np.linalg.cholesky(np.linalg.inv(scale)).T
    later, degree = np.triu(adjacency, 1).sum(axis=1), adjacency.sum(axis=1)
    freedom = degrees_of_freedom + later
    free = np.sum(
        (degrees_of_freedom + degree) * np.log(np.diag(root))
        + 0.5 * freedom * np.log(2.0)
        + gammaln(0.5 * freedom)
    ) + 0.5 * later.sum() * np.log(2.0 * np.pi)
    _, weights = complete_factors(rng, adjacency, freedom, root, draws)
    mean = logsumexp(weights) - np.log(draws)
    relative = np.exp(weights - mean)
    return LogConstant(float(free + mean), float(relative.std(ddof=1) / np.sqrt(draws)))


def adjacency_matrix(graph: Any) -> np.ndarray:
    """Adjacency matrix, (p, p) bool, of a networkx graph or a symmetric matrix.

    Nodes 0, ..., p - 1 of a graph are rows of these numbers, in whatever order its edges were given; others are in the order of
    ``graph.nodes``.

    Raises
    ------
    TypeError, ValueError
        If it is directed, has loops, is no square matrix or has no nodes.
    """
    if hasattr(graph, "nodes"):
        import networkx as nx

        if graph.is_directed():
            raise ValueError("`graph` is directed; a G-Wishart distribution has an undirected one")
        counted = set(graph.nodes) == set(range(len(graph)))
        values = nx.to_numpy_array(graph, range(len(graph)) if counted else None, weight=None)
    else:
        values = np.asarray(without_labels(graph))
        if (
            values.ndim != 2
            or values.shape[0] != values.shape[1]
            or values.dtype.kind not in "biuf"
        ):
            raise TypeError("`graph` must be a networkx graph or a (p, p) matrix of numbers")
    adjacency = values != 0
    if not len(adjacency):
        raise ValueError("`graph` has no nodes")
    if not np.isfinite(np.asarray(values, float)).all() or (adjacency != adjacency.T).any():
        raise ValueError(
            "`graph` is not symmetric, or a value is missing; an edge has no direction"
        )
    if hasattr(graph, "nodes") and adjacency.diagonal().any():
        raise ValueError("`graph` has a loop, an edge of a node with itself; remove it")
    np.fill_diagonal(adjacency, False)
    return adjacency


def scale_matrix(scale: Any, p: int) -> np.ndarray:
    """Positive definite (p, p) matrix of a number or a matrix.

    Raises
    ------
    ValueError
    """
    values = np.asarray(without_labels(scale), float)
    if values.ndim == 0:
        values = values * np.eye(p)
    if values.shape != (p, p):
        raise ValueError(f"`scale` has shape {values.shape}; give a number or a {p} x {p} matrix")
    if not np.isfinite(values).all() or not np.allclose(values, values.T):
        raise ValueError("`scale` is not symmetric, or a value is missing")
    if np.linalg.eigvalsh(values)[0] <= 0:
        raise ValueError("`scale` is not positive definite")
    return 0.5 * (values + values.T)
