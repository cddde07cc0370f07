r"""Gibbs sampling of the Ising model with 0/1 variables.

.. math::

    P(x) \propto \exp\Bigl(\sum_i \theta_{ii} x_i + \sum_{i<j} \theta_{ij} x_i x_j\Bigr), \qquad
    \operatorname{logit} P(x_i = 1 \mid x_{-i}) = \theta_{ii} + \sum_{j \ne i} \theta_{ij} x_j .
"""

import math

from bayesstruct.core.jit import kernel

__all__ = ["ising_rows"]


@kernel
def ising_rows(rng, thresholds, start, neighbours, couplings, sweeps, out):
    """Fill a table with the ends of independent Gibbs chains, each started at fair coins.

    Parameters
    ----------
    rng : numpy.random.Generator
    thresholds : (p,) float64
        Diagonal of theta.
    start : (p + 1,) int64
        Neighbours of variable i are ``neighbours[start[i]:start[i + 1]]``.
    neighbours, couplings : (2 |E|,) int64, float64
        Columns and values of the rows of theta, off the diagonal.
    sweeps : int
        Updates of each variable of each row, in the order of the columns.
    out : (n, p) int64, written
    """
    n, p = out.shape
    for row in range(n):
        x = out[row]
        for i in range(p):
            x[i] = rng.random() < 0.5
        for _ in range(sweeps):
            for i in range(p):
                log_odds = thresholds[i]
                for k in range(start[i], start[i + 1]):
                    log_odds += couplings[k] * x[neighbours[k]]
                x[i] = rng.random() * (1.0 + math.exp(-log_odds)) < 1.0
