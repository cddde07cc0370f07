"""Tests whether columns are normal, or have lighter tails."""

import numpy as np

from scipy.special import log_ndtr

__all__ = ["light_tailed", "looks_normal"]

_FEWEST = 20  # rows from which the distribution of the kurtosis is known
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


def light_tailed(columns: np.ndarray, level: float = 0.001) -> np.ndarray:
    """Return whether each column has a smaller kurtosis than normal numbers.

    Parameters
    ----------
    columns : (n, d) numpy.ndarray
    level : float
        Probability, at most, that any of the columns is said to if all of them are normal.

    Returns
    -------
    (d,) bool numpy.ndarray
        False with fewer than 20 rows.

    Notes
    -----
    Cumulants of independent errors add up: a linear combination of errors whose excess kurtosis is not negative has none that is.
    The graph and the coefficients need not be known.

    References
    ----------
    Anscombe, F. J. and Glynn, W. J. (1983). Distribution of the kurtosis statistic for normal statistics. *Biometrika* 70,
    227-234.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> light_tailed(np.column_stack([rng.laplace(size=500), rng.uniform(size=500)])).tolist()
    [False, True]
    """
    from scipy.stats import kurtosistest

    n, d = columns.shape
    if n < _FEWEST:
        return np.zeros(d, bool)
    return kurtosistest(columns, alternative="less").pvalue < level / d
