"""A test whether columns are normal."""

import numpy as np

from scipy.special import log_ndtr

__all__ = ["looks_normal"]

_CRITICAL = 1.035  # of the corrected statistic, 1 %, mean and variance estimated


def looks_normal(columns: np.ndarray) -> np.ndarray:
    """Return whether each column passes the Anderson-Darling test of normality at 1 %.

    Parameters
    ----------
    columns : (n, d) numpy.ndarray

    Returns
    -------
    (d,) bool numpy.ndarray

    References
    ----------
    Stephens, M. A. (1974). EDF statistics for goodness of fit and some comparisons. *JASA* 69, 730-737.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> looks_normal(np.column_stack([rng.normal(size=500), rng.uniform(size=500)])).tolist()
    [True, False]
    """
    n = len(columns)
    z = np.sort((columns - columns.mean(axis=0)) / columns.std(axis=0, ddof=1), axis=0)
    place = (2 * np.arange(1, n + 1) - 1)[:, None]
    statistic = -n - np.mean(place * (log_ndtr(z) + log_ndtr(-z[::-1])), axis=0)
    return statistic * (1 + 0.75 / n + 2.25 / n**2) < _CRITICAL
