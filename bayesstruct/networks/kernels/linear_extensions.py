r"""Numbers of topological orders of a directed acyclic graph.

Orders are counted over the sets of variables that may come first, from the empty one,

.. math:: N(\emptyset) = 1, \qquad N(S) = \sum_{i \in S, \; i \text{ may come last in } S} N(S \setminus i),

each connected component on its own: orders of separate components can be interleaved in any way.
"""

import math

import numpy as np

from bayesstruct.core.jit import kernel

__all__ = ["MAX_CONNECTED", "log_orders"]

#: Maximum number of variables in a connected component: 2**22 counts take 32 MiB.
MAX_CONNECTED = 22


def log_orders(dag) -> float:
    """Log number of topological orders of an acyclic graph.

    Parameters
    ----------
    dag : (d, d) array_like
        1 at (parent, child); without cycles.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a connected component has more than `MAX_CONNECTED` variables.
    """
    from scipy.sparse.csgraph import connected_components

    dag = np.asarray(dag) != 0
    count, part = connected_components(dag, directed=True, connection="weak")
    total = math.lgamma(len(dag) + 1)
    for c in range(count):
        at = np.flatnonzero(part == c)
        if len(at) > MAX_CONNECTED:
            raise ValueError(
                f"{len(at)} variables of the graph are connected, and its topological orders are counted for at "
                f"most {MAX_CONNECTED}: evaluate or start from a graph with fewer arcs, or use another prior "
                "than 'order'"
            )
        power = np.int64(1) << np.arange(len(at))
        parents = power @ dag[np.ix_(at, at)]
        total += math.log(_orders(parents)) - math.lgamma(len(at) + 1)
    return total


@kernel
def _orders(parents):
    """Count the orders from the parents of each variable as bits."""
    k = len(parents)
    counts = np.zeros(1 << k)
    counts[0] = 1.0
    for first in range((1 << k) - 1):
        if counts[first] > 0.0:
            for i in range(k):
                if not first >> i & 1 and not parents[i] & ~first:
                    counts[first | 1 << i] += counts[first]
    return counts[-1]
