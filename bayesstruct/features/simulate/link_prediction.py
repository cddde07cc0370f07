"""Networks whose links come from hidden features of the nodes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import generator, number, whole_number
from bayesstruct.data.arguments import probability as check_probability

if TYPE_CHECKING:
    import networkx
    import pandas

__all__ = ["LinkSimulation", "link_prediction"]


@dataclass(frozen=True, eq=False, repr=False)
class LinkSimulation:
    """A simulated network with the truth behind it.

    Attributes
    ----------
    graph : networkx.Graph or networkx.DiGraph
        Nodes ``x0``, ``x1``, ...
    feature : pandas.DataFrame, shape (n, k)
        0 and 1, one row for each node.
    interaction : ndarray, shape (k, k)
        Weights between features; symmetric if the network is not directed.
    probability : pandas.DataFrame, shape (n, n)
        Of a link from the row to the column; NaN on the diagonal.
    """

    graph: "networkx.Graph"
    feature: "pandas.DataFrame"
    interaction: np.ndarray
    probability: "pandas.DataFrame"

    def __repr__(self) -> str:
        n, k = self.feature.shape
        return f"LinkSimulation({n:,} nodes, {self.graph.number_of_edges():,} links, {k} features)"


def link_prediction(
    n: int = 60,
    features: int = 3,
    *,
    membership: float = 0.35,
    within: float = 5.0,
    between: float = 1.0,
    bias: float = -3.0,
    directed: bool = False,
    random_seed: int | np.random.Generator | None = None,
) -> LinkSimulation:
    r"""Simulate a network from a logistic model of latent features.

    .. math:: \operatorname{logit} P(y_{ij} = 1) = b + \sum_{kl} z_{ik} W_{kl} z_{jl}

    Parameters
    ----------
    n : int, default 60
        Number of nodes.
    features : int, default 3
        Number of features.
    membership : float, default .35
        Probability that a node has a feature.
    within : float, default 5
        Weight of a feature that both nodes have.
    between : float, default 1
        Standard deviation of the normal weights between different features.
    bias : float, default -3
        Log odds of a link between nodes without features.
    directed : bool, default False
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    LinkSimulation

    Raises
    ------
    TypeError, ValueError
        If a number is out of range.

    Examples
    --------
    >>> link_prediction(20, 2, random_seed=1).feature.shape
    (20, 2)
    """
    import networkx as nx
    import pandas as pd

    n, features = whole_number("n", n, 2), whole_number("features", features, 1)
    membership = check_probability("membership", membership)
    between, rng = number("between", between, least=0), generator(random_seed)
    z = (rng.random((n, features)) < membership).astype(np.int64)
    weights = between * rng.standard_normal((features, features))
    if not directed:
        weights = np.tril(weights) + np.tril(weights, -1).T
    np.fill_diagonal(weights, within)
    chance = 1.0 / (1.0 + np.exp(-(bias + z @ weights @ z.T)))
    links = rng.random((n, n)) < chance
    links &= ~np.eye(n, dtype=bool) if directed else np.triu(np.ones((n, n), bool), 1)
    np.fill_diagonal(chance, np.nan)
    names = [f"x{i}" for i in range(n)]
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from((names[i], names[j]) for i, j in np.argwhere(links))
    frame = pd.DataFrame(z, index=names, columns=[f"feature{k}" for k in range(features)])
    return LinkSimulation(graph, frame, weights, pd.DataFrame(chance, index=names, columns=names))
