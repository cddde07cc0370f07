"""Tables from a Bayesian network with a known directed acyclic graph."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import networkx
    import pandas

__all__ = [
    "BayesianNetworkSimulation",
    "bayesian_network",
    "own_dag",
    "random_dag",
    "set_from_outside",
]

KINDS = ("gaussian", "logistic", "discrete")


@dataclass(frozen=True, eq=False, repr=False)
class BayesianNetworkSimulation:
    """A simulated table with the truth behind it.

    Attributes
    ----------
    data : pandas.DataFrame, shape (n, p)
        Floats for ``"gaussian"``, 0 and 1 for ``"logistic"``, 0, 1, ... for ``"discrete"``.
    graph : networkx.DiGraph
        The true graph; its nodes are the columns of `data`, in order.
    coefficients : pandas.DataFrame, shape (p, p), or None
        Row the child, column the parent, exactly zero without an arc; None for ``"discrete"``.
    noise : float or None
        Standard deviation of the noise; None unless ``"gaussian"``.
    tables : dict of str to ndarray
        ``"discrete"`` only: for each variable the conditional probabilities, shape (states of its
        first parent, ..., of its last parent, states), parents in the order of the columns.
    interventions : pandas.DataFrame of bool, shape (n, p)
        Where a value was set from outside.
    """

    data: "pandas.DataFrame"
    graph: "networkx.DiGraph"
    coefficients: "pandas.DataFrame | None"
    noise: float | None
    interventions: "pandas.DataFrame"
    tables: dict[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        n, p = self.data.shape
        arcs = self.graph.number_of_edges()
        return f"BayesianNetworkSimulation({n:,} x {p:,} table, {arcs:,} arcs)"


def bayesian_network(
    n: int,
    p: int = 10,
    *,
    kind: str = "gaussian",
    graph: "networkx.DiGraph | None" = None,
    expected_neighbours: float = 4.0,
    max_parents: int = 5,
    weights: tuple[float, float] | None = None,
    noise: float = 1.0,
    states: int | tuple[int, int] = 3,
    interventions: float = 0.0,
    random_seed: int | np.random.Generator | None = None,
) -> BayesianNetworkSimulation:
    r"""Simulate a table from a Bayesian network.

    A directed acyclic graph is drawn, then the distribution of each variable given its parents, then n rows,
    parents before children.

    Parameters
    ----------
    n : int
        Number of rows.
    p : int, default 10
        Number of variables, named ``x0``, ``x1``, ... Not used if `graph` is given.
    kind : {"gaussian", "logistic", "discrete"}
        ``"gaussian"``
            :math:`x_i = \sum_j w_{ij} x_j + \varepsilon_i`, j over the parents.
        ``"logistic"``
            Zeros and ones. With :math:`z = 2 x - 1`, which is -1 or +1,
            :math:`P(x_i = 1) = 1 / \{1 + \exp(-\sum_j w_{ij} z_j)\}`, without bias: all
            variables without parents are fair coins. `coefficients` are those :math:`w_{ij}` of the
            -1/+1 coding; of the parents as 0 and 1 the slopes are twice that, the
            intercept :math:`-\sum_j w_{ij}`.
        ``"discrete"``
            A table of conditional probabilities for each variable; the row of each configuration of
            its parents is drawn from Dirichlet(1, ..., 1).
    graph : networkx.DiGraph, optional
        The graph, in place of a random one; its nodes give the names.
    expected_neighbours : float, default 4
        Of the random graph: an order of the variables is drawn, and each pair is an arc along it
        with probability ``expected_neighbours / (p - 1)``, at most 1 (Erdős and Rényi).
    max_parents : int, default 5
        Of the random graph: a variable with more parents keeps a random choice of so many, which
        lowers the number of neighbours.
    weights : pair of float, optional
        Smallest and largest absolute coefficient; each is uniform between them, its sign a fair
        coin. Default (0.25, 1) for ``"gaussian"``. For ``"logistic"`` the default is
        :math:`\mathrm{sign}(u) + v / 4` with standard normal u and v, as in [1]_.
    noise : float, default 1
        Standard deviation of the Gaussian noise.
    states : int or pair of int, default 3
        Number of states of the discrete variables, or smallest and largest: uniform between them.
    interventions : float, default 0
        Probability that in a row one variable, each equally likely, is set from outside: to a
        standard normal value, or to one of its states with equal probabilities, whatever its
        parents are. ``p / (p + 1)`` draws uniformly from "none" and the p variables, as in [1]_.
    random_seed : int or numpy.random.Generator, optional
        The same seed gives the same simulation.

    Returns
    -------
    BayesianNetworkSimulation

    Raises
    ------
    TypeError
        If `graph` is not a networkx.DiGraph.
    ValueError
        If `graph` has a cycle or fewer than 2 nodes, an option does not fit the kind, or a number
        is out of range.

    Notes
    -----
    In Gaussian tables variances grow along the arcs, so that sorting the columns by variance nearly
    tells the order [2]_. Standardise the columns before learning from them, or the
    benchmark is too easy.

    References
    ----------
    .. [1] M. Schmidt (2010). Graphical Model Structure Learning with L1-Regularization. PhD thesis,
       University of British Columbia, section 4.6.1.
    .. [2] A. Reisach, C. Seiler and S. Weichwald (2021). Beware of the simulated DAG! Causal discovery
       benchmarks may be easy to game. NeurIPS 34, 27772-27784.

    Examples
    --------
    >>> simulation = bayesian_network(100, p=6, expected_neighbours=2, random_seed=1)
    >>> simulation.data.shape
    (100, 6)
    """
    import networkx as nx
    import pandas as pd

    rng = np.random.default_rng(random_seed)
    _check(n, kind, weights, noise, interventions)
    truth = (
        random_dag(p, expected_neighbours, max_parents, rng) if graph is None else own_dag(graph)
    )
    names = list(truth.nodes)
    parents = [np.flatnonzero(column) for column in nx.to_numpy_array(truth, weight=None).T]
    order = [names.index(name) for name in nx.topological_sort(truth)]
    mask = set_from_outside(n, len(names), interventions, rng)
    simulate = {"gaussian": _gaussian, "logistic": _logistic, "discrete": _discrete}[kind]
    option = {"gaussian": noise, "logistic": None, "discrete": states}[kind]
    values, parameters = simulate(rng, parents, order, mask, weights, option)
    discrete = kind == "discrete"
    return BayesianNetworkSimulation(
        data=pd.DataFrame(values, columns=names),
        graph=truth,
        coefficients=None if discrete else pd.DataFrame(parameters, names, names),
        noise=float(noise) if kind == "gaussian" else None,
        interventions=pd.DataFrame(mask, columns=names),
        tables=dict(zip(names, parameters, strict=True)) if discrete else {},
    )


def _check(n: int, kind: str, weights, noise: float, interventions: float) -> None:
    if n < 1:
        raise ValueError(f"n must be at least 1 row, got {n}.")
    if kind not in KINDS:
        raise ValueError(f"kind is 'gaussian', 'logistic' or 'discrete', got {kind!r}.")
    if weights is not None:
        if kind == "discrete":
            raise ValueError("weights are for 'gaussian' and 'logistic': leave them out.")
        low, high = weights
        if not 0 <= low <= high < np.inf:
            raise ValueError(
                f"weights is a range of absolute values, from low to high, got {weights}."
            )
    if not 0 < noise < np.inf:
        raise ValueError(f"noise is a standard deviation, more than 0, got {noise}.")
    if not 0 <= interventions <= 1:
        raise ValueError(f"interventions is a probability, from 0 to 1, got {interventions}.")


def random_dag(p: int, expected_neighbours: float, max_parents: int, rng) -> "networkx.DiGraph":
    """Draw a directed acyclic graph over ``x0``, ``x1``, ...; see `bayesian_network` for the options."""
    import networkx as nx

    if p < 2:
        raise ValueError(f"p must be at least 2 variables to have an arc, got {p}.")
    if not 0 <= expected_neighbours < np.inf or max_parents < 0:
        raise ValueError(
            "expected_neighbours and max_parents must not be negative, got "
            f"{expected_neighbours} and {max_parents}."
        )
    order = rng.permutation(p)
    truth = nx.DiGraph()
    truth.add_nodes_from(f"x{i}" for i in range(p))
    for place, child in enumerate(order):
        chosen = order[:place][rng.random(place) < expected_neighbours / (p - 1)]
        kept = rng.permutation(chosen)[:max_parents]
        truth.add_edges_from((f"x{parent}", f"x{child}") for parent in np.sort(kept))
    return truth


def own_dag(graph) -> "networkx.DiGraph":
    """Return a user's graph with names as text.

    Raises
    ------
    TypeError
        If it is not a networkx.DiGraph.
    ValueError
        If it has a cycle, fewer than 2 nodes, or two nodes of the same name.
    """
    import networkx as nx

    if not isinstance(graph, nx.DiGraph) or graph.is_multigraph():
        raise TypeError(f"The graph must be a networkx.DiGraph, got {type(graph).__name__}.")
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [a for a, *_ in nx.find_cycle(graph)]
        shown = " -> ".join(map(str, [*cycle, cycle[0]]))
        raise ValueError(f"The graph must be acyclic; it has the cycle {shown}.")
    if len(graph) < 2:
        raise ValueError(f"The graph must have at least 2 nodes, it has {len(graph)}.")
    names = {node: str(node) for node in graph}
    if len(set(names.values())) < len(names):
        raise ValueError("Two nodes of the graph have the same name as text: rename one.")
    truth = nx.DiGraph()
    truth.add_nodes_from(names.values())
    truth.add_edges_from((names[a], names[b]) for a, b in graph.edges)
    return truth


def set_from_outside(n: int, p: int, share: float, rng) -> np.ndarray:
    """Where values are set from outside: in at most one column of a row."""
    mask = np.zeros((n, p), bool)
    rows = np.flatnonzero(rng.random(n) < share)
    mask[rows, rng.integers(p, size=len(rows))] = True
    return mask


def _coefficients(rng, parents: list[np.ndarray], weights) -> np.ndarray:
    """Coefficients with children as rows; without a range, from the distribution of Schmidt (2010)."""
    out = np.zeros((len(parents), len(parents)))
    for child, of_child in enumerate(parents):
        signs = rng.choice([-1.0, 1.0], len(of_child))
        if weights is None:
            out[child, of_child] = signs + rng.standard_normal(len(of_child)) / 4
        else:
            out[child, of_child] = signs * rng.uniform(*weights, len(of_child))
    return out


def _gaussian(rng, parents, order, mask, weights, noise):
    coefficients = _coefficients(rng, parents, (0.25, 1.0) if weights is None else weights)
    values = noise * rng.standard_normal(mask.shape)
    outside = rng.standard_normal(mask.shape)
    for i in order:
        values[:, i] += values[:, parents[i]] @ coefficients[i, parents[i]]
        values[mask[:, i], i] = outside[mask[:, i], i]
    return values, coefficients


def _logistic(rng, parents, order, mask, weights, _):
    from scipy.special import expit

    coefficients = _coefficients(rng, parents, weights)
    values = np.zeros(mask.shape, np.int64)
    uniform = rng.random(mask.shape)
    for i in order:
        drive = (2 * values[:, parents[i]] - 1) @ coefficients[i, parents[i]]
        values[:, i] = uniform[:, i] < np.where(mask[:, i], 0.5, expit(drive))
    return values, coefficients


def _discrete(rng, parents, order, mask, _, states):
    low, high = (states, states) if np.ndim(states) == 0 else states
    if not 2 <= low <= high:
        raise ValueError(f"states must be 2 or more, or a range from low to high, got {states}.")
    sizes = rng.integers(low, high + 1, len(parents))
    tables = [
        rng.dirichlet(np.ones(sizes[i]), tuple(sizes[of_child]))
        for i, of_child in enumerate(parents)
    ]
    values = np.zeros(mask.shape, np.int64)
    for i in order:
        probability = np.broadcast_to(
            tables[i][tuple(values[:, parents[i]].T)], (len(mask), sizes[i])
        )
        probability = np.where(mask[:, i, None], 1 / sizes[i], probability)
        below = np.cumsum(probability, axis=1)[:, :-1] < rng.random(len(mask))[:, None]
        values[:, i] = below.sum(axis=1)
    return values, tables
