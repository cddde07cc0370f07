"""Binary tables from an Ising model with a known graph."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.random_graphs import make_graph
from bayesstruct.fields.kernels.ising import ising_rows

if TYPE_CHECKING:
    import networkx
    import pandas

__all__ = ["IsingSimulation", "check_rows", "draw_couplings", "ising"]


@dataclass(frozen=True, eq=False, repr=False)
class IsingSimulation:
    """A simulated binary table with its true graph.

    Attributes
    ----------
    data : pandas.DataFrame, shape (n, p)
        0 and 1.
    graph : networkx.Graph
        The true graph; its nodes are the columns of `data`, in order.
    couplings : pandas.DataFrame, shape (p, p)
        Symmetric: couplings off the diagonal, zero off the graph; thresholds on the diagonal.
    """

    data: "pandas.DataFrame"
    graph: "networkx.Graph"
    couplings: "pandas.DataFrame"

    def __repr__(self) -> str:
        n, p = self.data.shape
        return f"IsingSimulation({n:,} x {p:,} table, {self.graph.number_of_edges():,} edges)"


def ising(
    n: int,
    p: int = 10,
    *,
    graph: "str | networkx.Graph" = "random",
    edge_probability: float | None = None,
    coupling: tuple[float, float] = (1.0, 2.0),
    sign: str = "random",
    sweeps: int = 200,
    random_seed: int | np.random.Generator | None = None,
) -> IsingSimulation:
    r"""Simulate a binary table from an Ising model.

    .. math:: P(x) \propto \exp\Bigl(\sum_i \theta_{ii} x_i + \sum_{i<j} \theta_{ij} x_i x_j\Bigr),
        \qquad x \in \{0, 1\}^p

    Parameters
    ----------
    n : int
        Number of rows.
    p : int, default 10
        Number of variables, named ``x0``, ``x1``, ... Not used if `graph` is a networkx graph.
    graph : str or networkx.Graph, default "random"
        As in :func:`bayesstruct.simulate.gaussian_graphical`.
    edge_probability : float, optional
        As there.
    coupling : pair of float, default (1, 2)
        Smallest and largest absolute coupling; each is uniform between them. In -1/+1 coding a
        coupling is a quarter of that. Thresholds are minus half the sum of the couplings of a
        variable, so that ones and zeros are equally frequent.
    sign : {"random", "positive"}
        Of the couplings.
    sweeps : int, default 200
        Gibbs sweeps of each row. Rows are the ends of independent chains that start at fair coins: they
        follow the model up to the remaining influence of that start.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    IsingSimulation

    Raises
    ------
    ValueError
        For an unknown or unsuitable graph, or a number out of range.

    Examples
    --------
    >>> ising(100, graph="band", p=6, random_seed=1)
    IsingSimulation(100 x 6 table, 9 edges)
    """
    import networkx as nx
    import pandas as pd

    rng = np.random.default_rng(random_seed)
    check_rows(n, sweeps)
    truth = make_graph(graph, p, edge_probability, rng)
    names = list(truth.nodes)
    upper = np.triu(nx.to_numpy_array(truth, weight=None) > 0)
    theta = np.zeros(upper.shape)
    theta[upper] = draw_couplings(rng, int(upper.sum()), coupling, sign)
    theta += theta.T
    thresholds = -0.5 * theta.sum(axis=1)
    rows, columns = np.nonzero(theta)
    start = np.searchsorted(rows, np.arange(len(names) + 1))
    table = np.empty((n, len(names)), np.int64)
    ising_rows(rng, thresholds, start, columns, theta[rows, columns], int(sweeps), table)
    np.fill_diagonal(theta, thresholds)
    return IsingSimulation(
        pd.DataFrame(table, columns=names), truth, pd.DataFrame(theta, names, names)
    )


def check_rows(n: int, sweeps: int) -> None:
    """Raise if there are no rows or no sweeps."""
    if n < 1 or sweeps < 1:
        raise ValueError(f"n and sweeps must be at least 1, got {n} and {sweeps}.")


def draw_couplings(
    rng: np.random.Generator, count: int, coupling: tuple[float, float], sign: str
) -> np.ndarray:
    """Draw couplings, uniform in absolute value.

    Parameters
    ----------
    rng : numpy.random.Generator
    count : int
    coupling : pair of float
        Smallest and largest absolute value.
    sign : {"random", "positive"}

    Returns
    -------
    ndarray, shape (count,)

    Raises
    ------
    ValueError
        If the range or the sign is invalid.
    """
    low, high = coupling
    if not 0 <= low <= high < np.inf:
        raise ValueError(
            f"coupling is a range of absolute values, from low to high, got {coupling}."
        )
    if sign not in ("random", "positive"):
        raise ValueError(f"sign is 'random' or 'positive', got {sign!r}.")
    signs = rng.choice([-1.0, 1.0], count) if sign == "random" else 1.0
    return signs * rng.uniform(low, high, count)
