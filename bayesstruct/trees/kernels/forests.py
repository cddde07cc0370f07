"""The forest of the greatest weight whose joint distribution is known from its pairs."""

import numpy as np

from bayesstruct.graphs.spanning_trees.maximum import maximum_spanning_forest

__all__ = ["maximum_decomposable_forest"]


def maximum_decomposable_forest(
    weights: np.ndarray, state: np.ndarray, least: float = -np.inf
) -> np.ndarray:
    """Return the forest with the greatest sum of ``weights - least`` without numbers between two states.

    If numbers depend on each other linearly and on states by their mean, a connected group of numbers can depend on one column of states only:
    otherwise no conditional Gaussian distribution has the given distributions of pairs.

    Parameters
    ----------
    weights : (p, p) ndarray
        Symmetric; -inf for edges that no forest has.
    state : (p,) ndarray of bool
        Which columns hold states.
    least : float
        Edges are left out whose weight is not above it; by default none is.

    Returns
    -------
    (edges, 2) ndarray of int
        Ends in increasing order, by decreasing weight.

    Notes
    -----
    Such forests are the independent sets of a matroid, so that taking edges greedily finds the best one: edges between states form a forest, and
    so do all others once all columns of states are taken for one node.
    """
    place, number = np.flatnonzero(state), np.flatnonzero(~state)
    if not len(place) or not len(number):
        return maximum_spanning_forest(weights, least)
    between = maximum_spanning_forest(weights[np.ix_(place, place)], least)
    # Node 0 stands for all columns of states.
    small = np.zeros((len(number) + 1, len(number) + 1))
    small[1:, 1:] = weights[np.ix_(number, number)]
    small[0, 1:] = small[1:, 0] = weights[np.ix_(place, number)].max(axis=0)
    best = place[weights[np.ix_(place, number)].argmax(axis=0)]
    edges = [(int(place[i]), int(place[j])) for i, j in between.tolist()]
    for i, j in maximum_spanning_forest(small, least).tolist():
        left = int(best[j - 1]) if i == 0 else int(number[i - 1])
        edges.append((left, int(number[j - 1])))
    found = np.sort(np.array(edges, int).reshape(-1, 2), axis=1)
    return found[np.argsort(-weights[found[:, 0], found[:, 1]], kind="stable")]
