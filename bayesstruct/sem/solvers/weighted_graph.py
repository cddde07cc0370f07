"""Graph and table of the coefficients of linear structural equations."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import networkx
    import pandas as pd

__all__ = ["WeightedGraph"]


class WeightedGraph:
    """Base of results with one coefficient for each arc.

    Attributes
    ----------
    names : tuple of str
        The p variables.
    weights : (p, p) numpy.ndarray
        Coefficients, row the child, column the parent; exactly zero without an arc.
    """

    names: tuple[str, ...]
    weights: np.ndarray

    @property
    def graph(self) -> "networkx.DiGraph":
        """The arcs whose coefficients are not zero, as a ``networkx.DiGraph`` over the names with their ``weight``."""
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(self.names)
        for child, parent in np.argwhere(self.weights).tolist():
            weight = float(self.weights[child, parent])
            graph.add_edge(self.names[parent], self.names[child], weight=weight)
        return graph

    @property
    def coefficients(self) -> "pd.DataFrame":
        """The coefficients with names, row the child, column the parent."""
        import pandas as pd

        return pd.DataFrame(self.weights, index=list(self.names), columns=list(self.names))
