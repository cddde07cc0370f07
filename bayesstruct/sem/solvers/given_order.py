r"""Modes of linear structural equations whose order, or graph, is known: one regression for each column.

With :math:`\rho = 1 / s` and :math:`\phi = b / s` the log posterior of coefficients and scales that columns share is

.. math::

    N \log \rho - \tfrac12 \sum_i \| \rho \, y_i - X_i \phi_i \|^2 - \sum_{ij} h(\phi_{ij}),

concave in both together: N counts rows, and coefficients under a prior in units of the scale. Coefficients given the scale and the scale given the
coefficients take turns, and end at the one mode. For vectors :math:`u_i` with :math:`|X_i' u_i| \le \kappa` (h being
:math:`\kappa |\phi|`), :math:`\tfrac12 \sum_i \|u_i\|^2 - N - N \log(\sum_i u_i' y_i / N)` bounds it from above.
"""

import math

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesstruct.core.solution import Solution
from bayesstruct.data.arguments import (
    choice,
    number,
    positive_by_column,
    refuse_given,
    whole_number,
)
from bayesstruct.data.errors import TableError, column_list, listing
from bayesstruct.networks.solvers.known_order import order_positions
from bayesstruct.precision.solvers.second_moments import second_moments
from bayesstruct.sem.solvers.weighted_graph import WeightedGraph

if TYPE_CHECKING:
    import networkx
    import pandas as pd

    from numpy.typing import ArrayLike

__all__ = ["LinearSEMSolution", "linear_sem"]

_PRIORS = ("flat", "normal", "laplace")


@dataclass(frozen=True, eq=False)
class LinearSEMSolution(WeightedGraph, Solution):
    """A `Solution` whose estimate is the coefficients and noise variances of linear structural equations.

    Attributes
    ----------
    names : tuple of str
        The p columns.
    weights : (p, p) numpy.ndarray
        Coefficients in the units of the table, row the child, column the parent; zero where there is no arc.
    noise_variances : (p,) numpy.ndarray
        In the units of the table.
    """

    names: tuple[str, ...]
    weights: np.ndarray
    noise_variances: np.ndarray


def linear_sem(
    data: "pd.DataFrame | ArrayLike",
    order: Sequence[str | int] | None = None,
    *,
    graph: "networkx.DiGraph | None" = None,
    variances: str = "free",
    known_variances: Any = None,
    prior: str = "flat",
    scale: float | None = None,
    n: int | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> LinearSEMSolution:
    r"""Find the mode of linear structural equations with normal noise when their order is known.

    .. math:: x_i = c_i + \sum_{j \text{ before } i} b_{ij} x_j + s_i \varepsilon_i

    Parameters
    ----------
    data : (n, p) or (p, p) DataFrame or array_like
        Rows, or a covariance matrix (with the divisor n), which is symmetric.
    order : sequence of str or int
        All columns, parents before children: names or positions. Every column has all columns before it as parents.
    graph : networkx.DiGraph
        Instead of `order`: an acyclic graph over the names of the columns, whose arcs are the coefficients.
    variances : {"free", "equal", "known"}
        Each column has a variance of the noise of its own, one for all, or known ones up to a common factor.
    known_variances : mapping or (p,) array_like, optional
        For ``variances="known"``: by name or in the order of the columns.
    prior : {"flat", "normal", "laplace"}
        Of a coefficient: none; normal with standard deviation :math:`s_i` times `scale`; or Laplace with this scale, under which some coefficients
        are exactly zero. Intercepts and the logarithms of the scales have flat priors.
    scale : float, optional
        Of a prior, 1 by default. With ``variances="free"`` for standardised columns, otherwise for columns that are divided by the root of their mean variance.
    n : int, optional
        Number of rows behind a covariance matrix.
    tol : float
        Stop when the gap of each set of columns with one scale, divided by the number of rows, is at most this.
    max_iter : int
        Maximum number of turns for each set of columns with one scale.

    Returns
    -------
    LinearSEMSolution
        ``objective`` is the log density of coefficients and log scales at the mode, in the units of `scale` and without constants; ``gap`` bounds how far it
        is from the maximum.

    Raises
    ------
    TableError
        If the table, the order or the graph cannot be used; without a prior, if a column has as many parents as there are rows less one, or
        parents that determine each other.
    TypeError, ValueError
        If an option is unknown or does not apply.

    Warns
    -----
    ConvergenceWarning
        If the gap is above `tol` after `max_iter` turns.

    See Also
    --------
    sink_removal : finds an order, if variances are equal or known.
    known_order : chooses parents along an order by their marginal likelihood.

    Notes
    -----
    The mode is the global one: given the order there are no local ones under these priors. Without a prior and with free variances it is ordinary least squares with
    residual variances of divisor n, and equal variances do not change the coefficients. Under a spike and slab the mode over arcs is another problem (`known_order`).

    References
    ----------
    Park, T. and Casella, G. (2008). The Bayesian lasso. JASA 103, 681-686 (a scale in the prior of the coefficients leaves one mode).

    Examples
    --------
    >>> from bayesstruct.solvers import linear_sem
    >>> S = [[1.0, 0.8, 0.8], [0.8, 1.64, 1.64], [0.8, 1.64, 2.64]]
    >>> linear_sem(S, [0, 1, 2], n=100).weights.round(2)
    array([[0. , 0. , 0. ],
           [0.8, 0. , 0. ],
           [0. , 1. , 0. ]])
    """
    choice("variances", variances, ("free", "equal", "known"))
    choice("prior", prior, _PRIORS)
    if prior == "flat":
        refuse_given("prior='normal' and prior='laplace'", scale=scale)
    scale = 1.0 if scale is None else number("scale", scale, above=0.0)
    tol = number("tol", tol, above=0.0)
    max_iter = whole_number("max_iter", max_iter, 1)
    moments = second_moments(data, n)
    if moments.n is None:
        raise TypeError("a covariance matrix needs `n`, the number of rows behind it")
    parents = _parents(order, graph, moments.names)
    deviations = np.sqrt(np.diag(moments.covariance))
    unit = deviations if variances == "free" else np.full_like(deviations, _mean(deviations))
    relative = _relative(variances, known_variances, moments.names)
    problem = _Problem(
        moments.n * moments.covariance / np.outer(unit, unit), moments.n, prior, scale
    )
    if prior == "flat":
        _check_determined(moments, problem.scatter, parents)
    groups = [[i] for i in range(len(unit))] if variances == "free" else [list(range(len(unit)))]
    weights, noise = np.zeros_like(moments.covariance), np.zeros(len(unit))
    value, gap, turns = 0.0, 0.0, 0
    for group in groups:
        fit = _fit(problem, [(i, parents[i], relative[i]) for i in group], tol, max_iter)
        for i, b in zip(group, fit.coefficients, strict=True):
            weights[i, parents[i]] = b
        noise[group] = fit.variance * relative[group]
        value, gap, turns = value + fit.value, gap + fit.gap, max(turns, fit.turns)
    solution = LinearSEMSolution(
        float(value),
        float(gap),
        turns,
        bool(gap <= tol * moments.n * len(groups)),
        moments.names,
        weights * unit[:, None] / unit,
        noise * unit**2,
    )
    solution.warn_unless_converged("linear_sem", "Raise max_iter or tol.")
    return solution


class _Problem(NamedTuple):
    """Sums of products of the columns in the units of the prior, number of rows, and prior."""

    scatter: np.ndarray
    n: int
    prior: str
    scale: float


class _Fit(NamedTuple):
    """Mode of columns with one scale."""

    coefficients: list[np.ndarray]
    variance: float
    value: float
    gap: float
    turns: int


def _mean(deviations):
    """Root of the mean variance."""
    return np.sqrt(np.mean(deviations**2))


def _relative(variances, known, names):
    """Variances up to a factor; ones unless they are known."""
    if (variances == "known") != (known is not None):
        raise ValueError(
            "variances='known' needs `known_variances`, one positive number for each column"
            if known is None
            else f"`known_variances` goes with variances='known', not with {variances!r}"
        )
    return (
        np.ones(len(names))
        if known is None
        else positive_by_column("known_variances", known, names)
    )


def _parents(order, graph, names):
    """Positions of the parents of each column."""
    if (order is None) == (graph is None):
        raise TypeError("give either `order` or `graph`")
    if order is not None:
        places = order_positions(order, names)
        rank = np.argsort(places)
        return [np.sort(places[: rank[i]]) for i in range(len(names))]
    import networkx as nx

    nodes = [str(node) for node in graph.nodes]
    if unknown := [node for node in nodes if node not in names]:
        raise TableError(f"`graph` has nodes that are no columns: {listing(unknown)}")
    if not graph.is_directed():
        raise TableError("`graph` must be a directed graph, of the type networkx.DiGraph")
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [str(arc[0]) for arc in nx.find_cycle(graph)]
        raise TableError(
            f"`graph` has a cycle over {column_list(cycle)}: leave out one of these arcs"
        )
    found = [[] for _ in names]
    for parent, child in graph.edges:
        found[names.index(str(child))].append(names.index(str(parent)))
    return [np.array(sorted(parents), dtype=int) for parents in found]


def _check_determined(moments, scatter, parents):
    """Raise where least squares has no unique solution, or a perfect one."""
    for i, before in enumerate(parents):
        if len(before) >= moments.n - 1:
            raise TableError(
                f"column {moments.names[i]!r} has {len(before)} parents and the table {moments.n} rows: choose prior='laplace' or 'normal', or "
                "a graph with fewer parents"
            )
        both = np.append(before, i)
        root = np.sqrt(np.diag(scatter)[both])
        if np.linalg.eigvalsh(scatter[np.ix_(both, both)] / np.outer(root, root))[0] < 1e-12:
            names = [moments.names[j] for j in both]
            raise TableError(
                f"{column_list(names)} determine each other: choose prior='laplace' or 'normal', or leave one out"
            )


def _fit(problem, columns, tol, max_iter):
    """Mode of columns that share a scale: (column, parents, relative variance) of each."""
    total = sum(problem.n + len(p) * (problem.prior != "flat") for _, p, _ in columns)
    if problem.prior != "laplace":
        return _closed_form(problem, columns, total)
    b = [np.zeros(len(parents)) for _, parents, _ in columns]
    s, gap = 0.0, math.inf
    for turn in range(1, max_iter + 1):
        s = _scale(problem, columns, b, total)
        gap = _gap(problem, columns, b, s, total)
        if gap <= tol * problem.n:
            break
        for (i, parents, v), old in zip(columns, b, strict=True):
            _lasso(problem.scatter, i, parents, s * math.sqrt(v) / problem.scale, old)
    value = _value(problem, columns, b, s, total)
    return _Fit(b, s * s, value, max(gap, 0.0), turn)


def _closed_form(problem, columns, total):
    """Least squares, with a ridge under normal priors."""
    ridge = problem.scale**-2 if problem.prior == "normal" else 0.0
    found = []
    for i, parents, _ in columns:
        Q = problem.scatter[np.ix_(parents, parents)] + ridge * np.eye(len(parents))
        found.append(np.linalg.solve(Q, problem.scatter[parents, i]))
    squares = sum(
        (_squares(problem.scatter, i, parents, b) + ridge * (b @ b)) / v
        for (i, parents, v), b in zip(columns, found, strict=True)
    )
    s = math.sqrt(squares / total)
    return _Fit(found, s * s, _value(problem, columns, found, s, total), 0.0, 1)


def _squares(scatter, i, parents, b):
    """Sum of squared residuals."""
    part = scatter[np.ix_(parents, parents)]
    return max(float(scatter[i, i] - 2 * b @ scatter[parents, i] + b @ part @ b), 0.0)


def _norm(problem, columns, b):
    """Sum of the magnitudes of coefficients in units of the noise, over their scale."""
    return (
        sum(abs(w).sum() / math.sqrt(v) for (_, _, v), w in zip(columns, b, strict=True))
        / problem.scale
    )


def _all_squares(problem, columns, b):
    return sum(
        _squares(problem.scatter, i, parents, w) / v
        for (i, parents, v), w in zip(columns, b, strict=True)
    )


def _scale(problem, columns, b, total):
    """Best common scale given coefficients with Laplace priors."""
    norm = _norm(problem, columns, b)
    return (norm + math.sqrt(norm**2 + 4 * total * _all_squares(problem, columns, b))) / (2 * total)


def _lasso(scatter, i, parents, rate, b):
    """Improve the coefficients of one column, in place, to a small part of what is left."""
    from bayesstruct.sparse.solvers.quadratic import GramModel, minimise_quadratic

    if not len(parents):
        return
    Q, q = np.ascontiguousarray(scatter[np.ix_(parents, parents)]), scatter[parents, i]
    rates = np.full(len(parents), rate)

    def residual(v, gradient):
        inside = np.maximum(abs(gradient) - rate, 0.0)
        return float(np.where(v != 0, abs(gradient + rate * np.sign(v)), inside).max())

    tol = 1e-13 * scatter[i, i]
    b[:] = minimise_quadratic(GramModel(Q, Q @ b - q), b, rates, rates, tol, residual)


def _gap(problem, columns, b, s, total):
    """Bound on the distance to the maximum, from residuals that are shrunk until they are dual feasible."""
    scatter, squares, reach, along = problem.scatter, 0.0, 0.0, 0.0
    for (i, parents, v), w in zip(columns, b, strict=True):
        unit = s * math.sqrt(v)
        slope = scatter[parents, i] - scatter[np.ix_(parents, parents)] @ w
        squares += _squares(scatter, i, parents, w) / unit**2
        reach = max(reach, abs(slope).max(initial=0.0) / unit)
        along += (scatter[i, i] - w @ scatter[parents, i]) / (unit * math.sqrt(v))
    if along <= 0 or squares <= 0:
        return math.inf
    shrink = min(math.sqrt(total / squares), 1.0 / (problem.scale * reach) if reach else math.inf)
    upper = 0.5 * shrink**2 * squares - total - total * math.log(shrink * along / total)
    lower = -total * math.log(s) - 0.5 * squares - _norm(problem, columns, b) / s
    return upper - lower


def _value(problem, columns, b, s, total):
    """Log density without constants that only depend on the table and the prior."""
    squares = _all_squares(problem, columns, b) / s**2
    value = -total * math.log(s) - 0.5 * squares
    value -= 0.5 * sum(
        (problem.n + len(parents) * (problem.prior != "flat")) * math.log(v)
        for _, parents, v in columns
    )
    if problem.prior == "laplace":
        return value - _norm(problem, columns, b) / s
    if problem.prior == "normal":
        pairs = zip(columns, b, strict=True)
        value -= 0.5 * sum(w @ w / v for (_, _, v), w in pairs) / (s * problem.scale) ** 2
    return value
