"""All partitions of a few objects."""

import numpy as np


def partitions(n):
    """All partitions of n objects, as tuples of labels in the order of their appearance."""
    found = [(0,)]
    for _ in range(n - 1):
        found = [(*labels, k) for labels in found for k in range(max(labels) + 2)]
    return found


def sizes(labels):
    """Sizes of the clusters."""
    return np.bincount(labels)


def posterior_of(log_density, n):
    """Probabilities in proportion to the exponential of a function of the labels.

    Parameters
    ----------
    log_density : callable
        ``log_density(labels) -> float``, prior included.
    n : int
    """
    logs = {labels: log_density(np.array(labels)) for labels in partitions(n)}
    top = max(logs.values())
    weights = {labels: np.exp(value - top) for labels, value in logs.items()}
    total = sum(weights.values())
    return {labels: weight / total for labels, weight in weights.items()}
