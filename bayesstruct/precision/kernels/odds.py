"""Odds of edges under the spike-and-slab prior of a precision matrix."""

import math

import numpy as np

from bayesstruct.core.jit import kernel
from bayesstruct.core.odds import slab_log_odds

#: Log odds that an off-diagonal element came from the slab, given its value and its prior log odds.
edge_log_odds = kernel(slab_log_odds)


@kernel
def log_odds_matrix(probability):
    """Log odds of a matrix of probabilities; zero gives ``-inf`` and one ``inf``."""
    out = np.empty_like(probability)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            q = probability[i, j]
            if q <= 0.0:
                out[i, j] = -np.inf
            elif q >= 1.0:
                out[i, j] = np.inf
            else:
                out[i, j] = math.log(q) - math.log1p(-q)
    return out


@kernel
def fill_free(probability, share):
    """Matrix of edge probabilities in which every entry strictly between 0 and 1 is ``share``."""
    out = probability.copy()
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            if 0.0 < out[i, j] < 1.0:
                out[i, j] = share
    return out


@kernel
def edge_probabilities(precision, log_odds, spike, slab):
    """Probability of each edge given the precision matrix, (p, p) with a zero diagonal."""
    p = precision.shape[0]
    out = np.zeros((p, p))
    for i in range(p):
        for j in range(p):
            if i != j:
                odds = edge_log_odds(precision[i, j], log_odds[i, j], spike, slab)
                out[i, j] = 1.0 / (1.0 + math.exp(-odds))
    return out
