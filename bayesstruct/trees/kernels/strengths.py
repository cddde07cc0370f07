r"""How strong the dependence along each edge of a tree of numbers and states is, given the parameters.

Of two numbers their correlation; of states and numbers the correlation ratio, the root of the share of the variance of the numbers that is
between states; of two states :math:`\sqrt{1 - e^{-2 I}}` with their mutual information I, the correlation of two normal columns with as much
information. All are 0 for independent columns and at most 1.
"""

import math

import numpy as np

from scipy.special import log_softmax

from bayesstruct.networks.kernels.mixed_layout import MixedLayout
from bayesstruct.trees.kernels.mixed import state_values

__all__ = ["edge_strengths"]


def edge_strengths(layout: MixedLayout, parent: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Strength of the edge between each column and its parent, (p,); 0 for a root.

    Parameters
    ----------
    layout : MixedLayout
        Of normal columns and columns of states without an order.
    parent : (p,) ndarray of int
        -1 for a root; parents of states are states.
    vector : (parameters,) ndarray
    """
    out = np.zeros(layout.d)
    shares: dict[int, np.ndarray] = {}  # probabilities of the states of each column
    variance = np.zeros(layout.d)
    for child in _downwards(parent):
        above = int(parent[child])
        values = state_values(layout, child, above, vector)
        if layout.states[child]:
            logs = log_softmax(np.pad(values, ((0, 0), (1, 0))), axis=1)
            joint = (shares[above][:, None] if above >= 0 else 1.0) * np.exp(logs)
            shares[child] = joint.sum(axis=0)
            if above >= 0:
                with np.errstate(divide="ignore", invalid="ignore"):
                    information = np.nansum(joint * (logs - np.log(shares[child])))
                out[child] = math.sqrt(-math.expm1(-2.0 * max(information, 0.0)))
            continue
        noise = vector[layout.extras[child][0]] ** 2
        if above < 0:
            variance[child] = noise
        elif layout.states[above]:
            means, p = values[:, 0], shares[above]
            between = p @ (means - p @ means) ** 2
            variance[child] = between + noise
            out[child] = math.sqrt(between / variance[child])
        else:
            slope = values[1, 0]
            variance[child] = slope**2 * variance[above] + noise
            out[child] = slope * math.sqrt(variance[above] / variance[child])
    return out


def _downwards(parent) -> list[int]:
    """All columns, each after its parent."""
    order = np.flatnonzero(parent < 0).tolist()
    for node in order:
        order.extend(np.flatnonzero(parent == node).tolist())
    return order
