"""Tables from a Gaussian graphical model with a known graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.random_graphs import hide_values, make_graph
from bayesstruct.data.arguments import whole_number
from bayesstruct.precision.kernels.g_wishart.draws import g_wishart

if TYPE_CHECKING:
    import networkx
    import pandas

__all__ = [
    "GroupedSimulation",
    "Simulation",
    "gaussian_graphical",
    "grouped_gaussian_graphical",
]


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """A simulated table with the truth behind it.

    Attributes
    ----------
    data : pandas.DataFrame, shape (n, p)
        The table; NaN where a value was made missing.
    graph : networkx.Graph
        The true graph; its nodes are the columns of `data`, in order.
    precision : pandas.DataFrame, shape (p, p)
        The true precision matrix, exactly zero off the graph.
    """

    data: "pandas.DataFrame"
    graph: "networkx.Graph"
    precision: "pandas.DataFrame"

    def __repr__(self) -> str:
        n, p = self.data.shape
        return f"Simulation({n:,} x {p:,} table, {self.graph.number_of_edges():,} edges)"

    @property
    def partial_correlations(self) -> "pandas.DataFrame":
        """``-K_ij / sqrt(K_ii K_jj)``, with ones on the diagonal; shape (p, p)."""
        scale = np.sqrt(np.diag(self.precision))
        partial = -self.precision / np.outer(scale, scale)
        return partial.mask(np.eye(len(scale), dtype=bool), 1.0) + 0.0  # no -0.0


def gaussian_graphical(
    n: int,
    p: int = 10,
    *,
    graph: "str | networkx.Graph" = "random",
    edge_probability: float | None = None,
    degrees_of_freedom: float = 3.0,
    missing: float = 0.0,
    random_seed: int | np.random.Generator | None = None,
) -> Simulation:
    """Simulate a table from a Gaussian graphical model.

    A graph is drawn, then a precision matrix K with its zeros, then n rows of Normal(0, K^-1).

    Parameters
    ----------
    n : int
        Number of rows.
    p : int, default 10
        Number of variables, named ``x0``, ``x1``, ... Not used if `graph` is a networkx graph.
    graph : str or networkx.Graph, default "random"
        ``"random"``
            Each pair is an edge with probability `edge_probability`.
        ``"cluster"``
            max(2, p // 20) blocks of nearly equal size, without edges between them and with
            probability `edge_probability` within.
        ``"scale-free"``
            A tree by preferential attachment (Barabasi and Albert).
        ``"hub"``
            max(2, p // 20) stars of nearly equal size.
        ``"band"``
            ``|i - j| <= 2``.
        ``"grid"``
            Neighbours on a nearly square grid, filled row by row.
        A networkx graph is taken as it is; its nodes give the names.
    edge_probability : float, optional
        For ``"random"`` and ``"cluster"``. The default is that of the recipe [1]_: 0.2 up to p = 10,
        0.05 at p = 50, 0.02 at p = 100, 0.01 at p = 200, log-linear in between and 2 / p beyond.
    degrees_of_freedom : float, default 3
        b of the G-Wishart(b, I) distribution of K; more than 2. Partial correlations are smaller
        with a larger b.
    missing : float, default 0
        Share of values to make missing, completely at random except that each row keeps one.
    random_seed : int or numpy.random.Generator, optional
        The same seed gives the same simulation.

    Returns
    -------
    Simulation

    Raises
    ------
    ValueError
        If `graph` is not one of the above or is directed, has loops or fewer than 2 nodes, or a
        number is out of range.

    Notes
    -----
    K has density proportional to ``|K|^((b - 2) / 2) exp(-tr(K) / 2)`` on the matrices with the
    zeros of the graph. It is drawn exactly, or, on large dense graphs, by a short Markov chain, see
    `bayesstruct.precision.kernels.g_wishart.draws`; BDgraph, with which [1]_ simulate, has an approximation
    instead.

    References
    ----------
    .. [1] L. Vogels, R. Mohammadi, M. Schoonhoven and S. I. Birbil (2024). Bayesian structure
       learning in undirected Gaussian graphical models: literature review with empirical
       comparison. Journal of the American Statistical Association 119, 3164-3182.

    Examples
    --------
    >>> simulation = gaussian_graphical(100, p=6, graph="band", random_seed=1)
    >>> simulation
    Simulation(100 x 6 table, 9 edges)
    >>> float(simulation.precision.loc["x0", "x5"])
    0.0
    """
    import networkx as nx
    import pandas as pd

    rng = np.random.default_rng(random_seed)
    _check(n, degrees_of_freedom, missing)
    truth = make_graph(graph, p, edge_probability, rng)
    names = list(truth.nodes)
    adjacency = nx.to_numpy_array(truth, weight=None) > 0
    precision = g_wishart(rng, degrees_of_freedom, np.eye(len(names)), adjacency)
    # K = L L', so that L'^-1 z has covariance K^-1.
    noise = rng.standard_normal((len(names), n))
    values = np.linalg.solve(np.linalg.cholesky(precision).T, noise).T
    hide_values(values, missing, rng)
    return Simulation(
        pd.DataFrame(values, columns=names), truth, pd.DataFrame(precision, names, names)
    )


@dataclass(frozen=True, eq=False, repr=False)
class GroupedSimulation:
    """A simulated table of several groups of rows with the truth behind it.

    Attributes
    ----------
    data : pandas.DataFrame, shape (n, p + 1)
        The table, NaN where a value was made missing; its last column ``group`` holds the labels "g0", "g1", ...
    graph : networkx.Graph
        Pairs that are connected in some group; its nodes are the p columns, in order. The attribute ``different`` of an edge says
        whether its element differs between groups.
    precision : dict of pandas.DataFrame
        The true (p, p) precision matrix of each group, by its label.
    """

    data: "pandas.DataFrame"
    graph: "networkx.Graph"
    precision: "dict[str, pandas.DataFrame]"

    def __repr__(self) -> str:
        n, p = self.data.shape
        edges = (
            f"{self.graph.number_of_edges():,} edges, {len(self.differences):,} of them different"
        )
        return f"GroupedSimulation({n:,} x {p - 1:,} table, {len(self.precision)} groups, {edges})"

    @property
    def differences(self) -> list[tuple[str, str]]:
        """Pairs whose elements differ between groups."""
        return [(i, j) for i, j, different in self.graph.edges(data="different") if different]


def grouped_gaussian_graphical(
    n: int | Sequence[int],
    p: int = 10,
    *,
    groups: int = 2,
    graph: "str | networkx.Graph" = "random",
    edge_probability: float | None = None,
    difference_probability: float = 0.3,
    strength: tuple[float, float] = (0.2, 0.6),
    missing: float = 0.0,
    random_seed: int | np.random.Generator | None = None,
) -> GroupedSimulation:
    """Simulate a table of several groups of rows, some of whose dependences differ between the groups.

    Off-diagonal elements of the precision matrices are drawn for the edges of one graph, with random signs. An edge that
    differs has another element in some of the groups: none, or the opposite one. All diagonals are alike, and large
    enough that every matrix is positive definite.

    Parameters
    ----------
    n : int or sequence of int
        Number of rows of each group.
    p : int, default 10
        Number of variables, named ``x0``, ``x1``, ... Not used if `graph` is a networkx graph.
    groups : int, default 2
        Number of groups.
    graph, edge_probability
        As of :func:`bayesstruct.simulate.gaussian_graphical`: the pairs that are connected in some group.
    difference_probability : float, default 0.3
        Probability that an edge differs.
    strength : pair of float, default (0.2, 0.6)
        Absolute elements are uniform between these.
    missing : float, default 0
        Share of values to make missing, completely at random except that each row keeps one.
    random_seed : int or numpy.random.Generator, optional
        The same seed gives the same simulation.

    Returns
    -------
    GroupedSimulation

    Raises
    ------
    ValueError
        As :func:`bayesstruct.simulate.gaussian_graphical`; if there are fewer than two groups, or numbers of rows do not match them.

    Examples
    --------
    >>> simulation = grouped_gaussian_graphical(100, p=6, graph="band", random_seed=1)
    >>> simulation
    GroupedSimulation(200 x 6 table, 2 groups, 9 edges, 4 of them different)
    >>> sorted(simulation.precision)
    ['g0', 'g1']
    """
    import networkx as nx
    import pandas as pd

    sizes = _sizes(n, groups)
    low, high = strength
    if not 0 < low <= high:
        raise ValueError(f"strength must be two numbers, 0 < low <= high, got {strength!r}.")
    if not 0 <= difference_probability <= 1:
        raise ValueError(
            f"difference_probability must be between 0 and 1, got {difference_probability}."
        )
    rng = np.random.default_rng(random_seed)
    truth = make_graph(graph, p, edge_probability, rng)
    names, (source, target) = list(truth.nodes), np.array([*_places(truth)], int).reshape(-1, 2).T
    elements, differs = _elements(rng, len(source), groups, difference_probability, low, high)
    nx.set_edge_attributes(
        truth, dict(zip(truth.edges, differs.tolist(), strict=True)), "different"
    )
    matrices = np.zeros((groups, len(names), len(names)))
    matrices[:, source, target] = matrices[:, target, source] = elements
    lowest = np.linalg.eigvalsh(matrices).min()
    matrices += max(0.5, 0.2 - lowest) * np.eye(len(names))
    rows = []
    for matrix, size in zip(matrices, sizes, strict=True):
        noise = rng.standard_normal((len(names), size))
        rows.append(np.linalg.solve(np.linalg.cholesky(matrix).T, noise).T)
    values, labels = np.vstack(rows), [f"g{g}" for g in range(groups)]
    hide_values(values, missing, rng)
    data = pd.DataFrame(values, columns=names).assign(group=np.repeat(labels, sizes))
    frames = [pd.DataFrame(matrix, names, names) for matrix in matrices]
    return GroupedSimulation(data, truth, dict(zip(labels, frames, strict=True)))


def _places(graph):
    place = {node: k for k, node in enumerate(graph)}
    return ((place[i], place[j]) for i, j in graph.edges)


def _sizes(n, groups: int) -> list[int]:
    """Numbers of rows of the groups."""
    whole_number("groups", groups, 2)
    sizes = [n] * groups if np.ndim(n) == 0 else list(n)
    if len(sizes) != groups:
        raise ValueError(f"n has {len(sizes)} numbers of rows, and there are {groups} groups.")
    return [whole_number("n", size, 1) for size in sizes]


def _elements(rng, edges, groups, difference_probability, low, high):
    """Elements of the edges in each group, (groups, edges), and which differ."""
    first = rng.uniform(low, high, edges) * rng.choice([-1.0, 1.0], edges)
    elements, differs = np.tile(first, (groups, 1)), rng.random(edges) < difference_probability
    for k in np.flatnonzero(differs):
        other = rng.permutation(groups)[: rng.integers(1, groups)]  # in some groups and not in all
        elements[other, k] *= rng.choice([0.0, -1.0])
    return elements, differs


def _check(n: int, degrees_of_freedom: float, missing: float) -> None:
    if n < 1:
        raise ValueError(f"n must be at least 1 row, got {n}.")
    if not degrees_of_freedom > 2:
        raise ValueError(f"degrees_of_freedom must be more than 2, got {degrees_of_freedom}.")
    if not 0 <= missing < 1:
        raise ValueError(f"missing is a share of values, from 0 to below 1, got {missing}.")
