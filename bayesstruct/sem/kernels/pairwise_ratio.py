r"""Likelihood ratios of pairs of columns, to first order in their correlation.

For standardised x and y with correlation :math:`\rho` and log densities with derivatives g, the log likelihood of
x -> y less that of y -> x is :math:`\rho \{E\, y\, g_x(x) - E\, x\, g_y(y)\}` to first order (Hyvärinen and Smith
2013). Here :math:`g(u) = -u - k \tanh u` with k = 1 for tails heavier than normal ones and k = -1 for lighter
ones (Lee, Girolami and Sejnowski 1999), so that with k = 1 for both it is
:math:`\rho \{E\, x \tanh y - E\, y \tanh x\}`.
"""

import numpy as np

__all__ = ["pairwise_ratios"]


def pairwise_ratios(rows: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Return the log-likelihood ratios, for one row of the table, of i -> j against j -> i.

    Parameters
    ----------
    rows : (k, n) numpy.ndarray
        Standardised variables, one a row.
    correlation : (k, k) numpy.ndarray

    Returns
    -------
    (k, k) numpy.ndarray
        Antisymmetric.
    """
    bent = np.tanh(rows)
    curvature = 1 - np.mean(bent**2, axis=1)
    heavy = np.sign(curvature - np.mean(rows * bent, axis=1))
    cross = rows @ (heavy[:, None] * bent).T / rows.shape[1]  # E x_i k_j tanh x_j
    return correlation * (cross - cross.T)
