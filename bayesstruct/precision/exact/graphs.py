r"""The exact posterior over the undirected graphs of a few normal columns.

.. math::

    p(G \mid X) \propto p(G) \, (2 \pi)^{-n p / 2} \, I_G(b + n, D + S) / I_G(b, D),

with the G-Wishart constants I of :mod:`bayesstruct.precision.exact.constants`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scipy.special import logsumexp

from bayesstruct.data.arguments import generator, number, whole_number
from bayesstruct.data.covariance import CovarianceTable, given_rows_or_covariance
from bayesstruct.data.edge_priors import edge_probability_matrix
from bayesstruct.data.table import Table, TableError
from bayesstruct.precision.exact.constants import (
    LogConstant,
    complete_log_constant,
    core_log_constant,
    scale_matrix,
)
from bayesstruct.precision.kernels.g_wishart.prime_components import is_complete, prime_components

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["MAX_COLUMNS", "GraphPosterior", "gaussian_graphs", "graph_posterior"]

#: Number of columns up to which all graphs are enumerated: 1,024 graphs of 5.
MAX_COLUMNS = 5
_DRAWS, _SEED = 20_000, 20050601  # fixed: equal calls give equal probabilities


@dataclass(frozen=True, eq=False, repr=False)
class GraphPosterior:
    """Posterior over all graphs of a few columns; made by :func:`gaussian_graphs`.

    Attributes
    ----------
    names : tuple of str
        The p columns.
    graphs : pandas.DataFrame
        One row for each graph, the most probable first: ``edges`` (text), ``n_edges``, ``decomposable``,
        ``log_likelihood`` (of the table given the graph), its Monte Carlo ``standard_error`` (0 if decomposable) and
        ``probability``.
    edge_probabilities : pandas.DataFrame
        (p, p) posterior probabilities of the edges; the diagonal is 0.
    standard_errors : pandas.DataFrame
        (p, p) Monte Carlo standard errors of `edge_probabilities`, from the constants of graphs that are not decomposable.
    log_evidence : float
        Log of the average likelihood over the prior of the graphs.
    """

    names: tuple[str, ...]
    graphs: pd.DataFrame
    edge_probabilities: pd.DataFrame
    standard_errors: pd.DataFrame
    log_evidence: float

    def __repr__(self) -> str:
        return f"GraphPosterior({len(self.names)} variables, {len(self.graphs):,} graphs)"


def gaussian_graphs(
    data: "TableLike" = None,
    *,
    cov: "TableLike" = None,
    n: int | None = None,
    edge_probability: Any = 0.5,
    required: Iterable[tuple[str, str]] = (),
    forbidden: Iterable[tuple[str, str]] = (),
    degrees_of_freedom: float = 3.0,
    scale: Any = 1.0,
    standardize: bool = True,
    draws: int = _DRAWS,
    random_seed: int | np.random.Generator | None = _SEED,
) -> GraphPosterior:
    r"""Exact posterior over all undirected graphs of up to 5 normal columns.

    Given a graph, the precision matrix is G-Wishart(b, D) and the rows are normal; both the matrix and the column means,
    which have a flat prior, are integrated out.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table of numbers without missing values, p at most 5.
    cov : DataFrame or (p, p) array_like, optional
        Instead of a table, its sample covariances (divisor n - 1) or correlations.
    n : int, optional
        Number of rows that `cov` was computed from.
    edge_probability : float or (p, p) array_like, default 0.5
        Prior probability of an edge; edges are independent a priori.
    required, forbidden : iterable of pairs of column names
        Edges known to be present or absent.
    degrees_of_freedom : float, default 3
        :math:`b`, more than 2.
    scale : float or (p, p) array_like, default 1
        :math:`D`; a number stands for that multiple of the identity.
    standardize : bool, default True
        Divide columns by their standard deviations first, so that `scale` is in units of them.
    draws : int, default 20,000
        Monte Carlo draws for the constant of each prime component that is not complete.
    random_seed : int or numpy.random.Generator, optional
        Fixed unless given, so that equal calls give equal probabilities.

    Returns
    -------
    GraphPosterior

    Raises
    ------
    TableError
        If the table cannot be used, has missing values or more than 5 columns.
    TypeError, ValueError
        If another argument is out of range.

    Notes
    -----
    Means with a flat prior cost one row: the likelihood of n rows is that of their scatter matrix with n - 1 degrees of
    freedom. ``bs.models.gaussian_graphical(prior="g_wishart")`` gives the means of standardised columns Normal(0, 1) priors
    instead, which makes a difference of the order of 1 / n.

    Constants of decomposable graphs are exact. Of the 64 graphs of four columns 3 are not decomposable, of the 1,024 of five
    202; their constants have the Monte Carlo error that the result reports.

    References
    ----------
    A. Roverato (2002). Hyper inverse Wishart distribution for non-decomposable graphs and its application to Bayesian
    inference for Gaussian graphical models. Scandinavian Journal of Statistics 29, 391-411.

    A. Atay-Kayis and H. Massam (2005). A Monte Carlo method for computing the marginal likelihood in nondecomposable
    Gaussian graphical models. Biometrika 92, 317-335.

    Examples
    --------
    >>> posterior = gaussian_graphs(cov=[[1, 0.6, 0.3], [0.6, 1, 0.5], [0.3, 0.5, 1]], n=80)
    >>> posterior
    GraphPosterior(3 variables, 8 graphs)
    >>> posterior.graphs["edges"].iloc[0]
    'x0 -- x1, x1 -- x2'
    """
    if given_rows_or_covariance(data, cov, n):
        table: Any = Table.continuous(data, standardize=standardize)
        if table.missing.any():
            raise TableError(
                "the exact posterior needs a table without missing values; "
                'bs.models.gaussian_graphical(data, prior="g_wishart") imputes them'
            )
        rows = table.standardized - table.standardized.mean(axis=0)
        scatter = rows.T @ rows
    else:
        table = CovarianceTable.read(cov, n)
        scatter = table.scatter if standardize else (table.n - 1) * table.covariance
    if table.p > MAX_COLUMNS:
        raise TableError(
            f"all graphs of {table.p} columns are too many, at most {MAX_COLUMNS} columns are possible; "
            'bs.models.gaussian_graphical(data, prior="g_wishart") samples graphs'
        )
    prior = edge_probability_matrix(
        table.names, edge_probability, required, forbidden, learned=False
    )
    freedom = number("degrees_of_freedom", degrees_of_freedom, above=2)
    draws = whole_number("draws", draws, 2)
    constants = (freedom, scale_matrix(scale, table.p), draws, random_seed)
    posterior = graph_posterior(table.names, scatter, table.n - 1, prior, *constants)
    mean_term = -0.5 * table.p * np.log(table.n)
    posterior.graphs["log_likelihood"] += mean_term
    evidence = posterior.log_evidence + mean_term
    return GraphPosterior(
        table.names,
        posterior.graphs,
        posterior.edge_probabilities,
        posterior.standard_errors,
        float(evidence),
    )


def graph_posterior(
    names,
    scatter: np.ndarray,
    n: float,
    probability: np.ndarray,
    freedom,
    scale,
    draws,
    random_seed,
) -> GraphPosterior:
    """Posterior over all graphs given the scatter matrix of n rows about known means.

    Parameters
    ----------
    names : sequence of str
    scatter : (p, p) ndarray
    n : float
    probability : (p, p) ndarray
        Prior probability of each edge.
    freedom, scale, draws, random_seed
        As `degrees_of_freedom` and so on of :func:`gaussian_graphs`.
    """
    p = len(names)
    source, target = np.triu_indices(p, 1)
    chances = probability[source, target]
    edges = np.array(list(np.ndindex(*(2,) * len(source))), int).reshape(-1, len(source))
    edges = edges[((edges == 1) | (chances < 1)).all(1) & ((edges == 0) | (chances > 0)).all(1)]
    rng = generator(random_seed)
    before = _Constants(freedom, scale, draws, rng)
    after = _Constants(freedom + n, scale + scatter, draws, rng)
    logs, cores = [], []
    for indicators in edges:
        adjacency = np.zeros((p, p), bool)
        adjacency[source, target] = indicators
        (top, used), (bottom, _) = (c.of(adjacency | adjacency.T) for c in (after, before))
        logs.append(top - bottom - 0.5 * n * p * np.log(2.0 * np.pi))
        cores.append(used)
    prior = np.where(edges == 1, chances, 1.0 - chances).prod(axis=1)
    weights = np.array(logs) + np.log(prior)
    evidence = logsumexp(weights)
    posterior = np.exp(weights - evidence)
    # Errors of a core are shared by the graphs that contain it.
    keys = sorted({key for used in cores for key in used})
    contains = np.array([[key in used for key in keys] for used in cores], float).reshape(
        len(edges), len(keys)
    )
    variance = np.array(
        [after.cores[k].standard_error ** 2 + before.cores[k].standard_error ** 2 for k in keys]
    )
    share = posterior @ edges
    slope = (edges - share).T @ (posterior[:, None] * contains)
    frame = pd.DataFrame(
        {
            "edges": [_edge_text(names, source, target, row) for row in edges],
            "n_edges": edges.sum(axis=1),
            "decomposable": [not used for used in cores],
            "log_likelihood": logs,
            "standard_error": np.sqrt(contains @ variance),
            "probability": posterior,
        }
    ).sort_values("probability", ascending=False, ignore_index=True)
    error = np.sqrt(slope**2 @ variance)
    probabilities, errors = (_symmetric(names, source, target, v) for v in (share, error))
    return GraphPosterior(tuple(names), frame, probabilities, errors, float(evidence))


class _Constants:
    """Log constants of graphs with the same degrees of freedom and scale; each core is estimated once."""

    def __init__(self, freedom: float, scale: np.ndarray, draws: int, rng):
        self.freedom, self.scale, self.draws, self.rng = freedom, scale, draws, rng
        self.cores: dict[tuple, LogConstant] = {}
        self._complete: dict[tuple, float] = {}

    def of(self, adjacency: np.ndarray) -> tuple[float, set]:
        """Return the log constant of a graph, and the keys of the cores that it contains."""
        total, used = 0.0, set()
        for component, separator in prime_components(adjacency):
            block = np.ix_(component, component)
            if is_complete(adjacency[block]):
                total += self._whole(component)
            else:
                key = (tuple(component), adjacency[block].tobytes())
                if key not in self.cores:
                    self.cores[key] = core_log_constant(
                        adjacency[block], self.freedom, self.scale[block], self.draws, self.rng
                    )
                total += self.cores[key].value
                used.add(key)
            total -= self._whole(separator)
        return total, used

    def _whole(self, nodes: np.ndarray) -> float:
        key = tuple(nodes)
        if key not in self._complete:
            scale = self.scale[np.ix_(nodes, nodes)]
            self._complete[key] = complete_log_constant(self.freedom, scale)
        return self._complete[key]


def _edge_text(names, source, target, indicators) -> str:
    return ", ".join(
        f"{names[i]} -- {names[j]}"
        for i, j, edge in zip(source, target, indicators, strict=True)
        if edge
    )


def _symmetric(names, source, target, values) -> pd.DataFrame:
    out = np.zeros((len(names), len(names)))
    out[source, target] = out[target, source] = values
    return pd.DataFrame(out, list(names), list(names))
