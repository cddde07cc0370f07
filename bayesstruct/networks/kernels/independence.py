"""Tests of conditional independence whose distribution does not depend on parameters: of numbers and of states."""

from typing import NamedTuple

import numpy as np

__all__ = ["Tested", "conditional_moments", "holm", "independent_numbers", "independent_states"]

_LEAST = 1e-300
_SINGULAR = 1e-10  # eigenvalue of correlations, some column being a function of the others


class Tested(NamedTuple):
    """Result of tests.

    Attributes
    ----------
    p_value : ndarray, shape (m,)
        1 where nothing can be tested.
    strength : ndarray, shape (m,)
        Absolute partial correlation, or for states the correlation of normal variables with as much information.
    testable : ndarray of bool, shape (m,)
    """

    p_value: np.ndarray
    strength: np.ndarray
    testable: np.ndarray


def independent_numbers(
    x: np.ndarray, use: np.ndarray, first: np.ndarray, second: np.ndarray, given: np.ndarray
) -> Tested:
    """Test whether partial correlations are zero.

    Parameters
    ----------
    x : ndarray, shape (n, p)
        Values that are not used may be anything.
    use : ndarray of bool, shape (m, n)
        Rows of each test; or (1, n), the same for all.
    first, second : ndarray of int, shape (m,)
        Columns.
    given : ndarray of bool, shape (m, p)
        Columns to condition on.

    Returns
    -------
    Tested

    Notes
    -----
    If the first column is a linear function of the given ones and normal noise that is independent of the second,
    the partial correlation has the distribution of Fisher (1924), whatever the coefficients are. Other noise makes it
    an approximation that large tables make right.
    """
    from scipy.stats import t

    m = len(first)
    r, free, testable = np.zeros(m), np.zeros(m), np.zeros(m, bool)
    sizes = given.sum(axis=1)
    for own in _alike(use, sizes):
        rows = use[own[0] if len(use) > 1 else 0]
        n, k = int(rows.sum()), int(sizes[own[0]])
        free[own] = n - 2 - k
        if n < 3 + k:
            continue
        at = np.column_stack(
            [first[own], second[own], np.nonzero(given[own])[1].reshape(len(own), k)]
        )
        columns = np.unique(at)
        z = x[np.ix_(rows, columns)]
        spread = z.std(axis=0)
        z = (z - z.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        covariance = z.T @ z / n
        place = np.searchsorted(columns, at)
        values, vectors = np.linalg.eigh(covariance[place[:, :, None], place[:, None, :]])
        known = values[:, 0] > _SINGULAR
        values[~known] = 1.0
        ends = vectors[:, :2] / np.sqrt(values[:, None])
        precision = ends @ ends.mT  # of the two columns given the others
        partial = -precision[:, 0, 1] / np.sqrt(precision[:, 0, 0] * precision[:, 1, 1])
        r[own], testable[own] = np.where(known, np.clip(partial, -1, 1), 0.0), known
    free = np.maximum(free, 1)
    statistic = np.abs(r) * np.sqrt(free / np.maximum(1 - r**2, _LEAST))
    p_value = np.where(testable, 2 * t.sf(statistic, free), 1.0)
    return Tested(p_value, np.abs(r), testable)


def _alike(use: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """Positions of tests with the same rows and numbers of given columns."""
    groups: dict[bytes, list[int]] = {}
    rows = np.packbits(use, axis=1) if len(use) > 1 else None
    for k, size in enumerate(sizes):
        key = (b"" if rows is None else rows[k].tobytes()) + int(size).to_bytes(4)
        groups.setdefault(key, []).append(k)
    return [np.array(own) for own in groups.values()]


def independent_states(
    x: np.ndarray,
    states: np.ndarray,
    use: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    given: np.ndarray,
) -> Tested:
    r"""Test whether two columns of states are independent in each combination of the states of others.

    Parameters
    ----------
    x : ndarray of int, shape (n, p)
        States from 0; those that are not used may be anything.
    states : ndarray of int, shape (p,)
        Numbers of states.
    use, first, second, given
        As in `independent_numbers`.

    Returns
    -------
    Tested

    Notes
    -----
    The statistic is the sum of Pearson's :math:`X^2` over the combinations. Given the counts of both columns in each
    combination, its mean and variance are known exactly [1]_, and its distribution is near the gamma distribution that has
    them: the chi-square distribution where counts are large, and another one where they are small.

    References
    ----------
    .. [1] Haldane, J. B. S. (1940). The mean and variance of chi-squared, when used as a test of homogeneity, when
       expectations are small. *Biometrika* 31, 346-355.
    """
    from scipy.stats import gamma

    m = len(first)
    p_value, strength, testable = np.ones(m), np.zeros(m), np.zeros(m, bool)
    for k, (i, j) in enumerate(zip(first, second, strict=True)):
        rows = x[use[k if len(use) > 1 else 0]]
        counts = _strata(rows, i, j, np.flatnonzero(given[k]), states)
        mean, variance = conditional_moments(counts)
        testable[k] = variance.sum() > 0
        if testable[k]:
            centre, spread = float(mean.sum()), float(variance.sum())
            statistic = float(_pearson(counts).sum())
            p_value[k] = gamma.sf(statistic, centre**2 / spread, scale=spread / centre)
            strength[k] = np.sqrt(max(-np.expm1(-_g2(counts) / len(rows)), 0.0))
    return Tested(p_value, strength, testable)


def _strata(x, i, j, given, states) -> np.ndarray:
    """Tables of two columns in each combination of others, those in which both vary."""
    _, stratum = np.unique(x[:, given], axis=0, return_inverse=True)
    shape = (int(stratum.max(initial=-1)) + 1, states[i], states[j])
    cell = (stratum.ravel() * states[i] + x[:, i]) * states[j] + x[:, j]
    counts = np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)
    both = [(counts.sum(axis=axis) > 0).sum(axis=1) > 1 for axis in (1, 2)]
    return counts[both[0] & both[1]]


def conditional_moments(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of Pearson's statistic of tables with the sums of rows and columns of these.

    Parameters
    ----------
    counts : ndarray of int, shape (k, rows, columns)
        Two rows and two columns of each are not empty.

    Returns
    -------
    mean, variance : ndarray, shape (k,)
    """
    n = counts.sum(axis=(1, 2)).astype(float)
    (r, v, w), (c, v_, w_) = (_margin(counts.sum(axis=axis), n) for axis in (2, 1))
    mean = n / (n - 1) * (r - 1) * (c - 1)
    first = np.where(n > 3, 2 * n / np.maximum(n - 3, 1) * (v - w) * (v_ - w_), 0.0)
    return mean, np.maximum(first + n**2 / (n - 1) * w * w_, 0.0)


def _margin(sums: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the sums that are not zero, and return the two terms of them in Haldane's variance."""
    filled = sums > 0
    r = filled.sum(axis=1)
    inverse = np.where(filled, 1 / np.maximum(sums, 1), 0.0).sum(axis=1)
    return r, (r - 1) * (n - r) / (n - 1), (n * inverse - r**2) / np.maximum(n - 2, 1)


def _pearson(counts: np.ndarray) -> np.ndarray:
    """Pearson's statistic of each table."""
    rows, columns = counts.sum(axis=2), counts.sum(axis=1)
    products = rows[:, :, None] * columns[:, None, :]
    shares = np.divide(counts**2, products, out=np.zeros(counts.shape), where=products > 0)
    return counts.sum(axis=(1, 2)) * (shares.sum(axis=(1, 2)) - 1)


def _g2(counts: np.ndarray) -> float:
    """Twice the logarithm of the likelihood ratio of dependence, summed over tables."""
    from scipy.special import xlogy

    sums = counts.sum(axis=2), counts.sum(axis=1), counts.sum(axis=(1, 2))
    rows, columns, whole = (float(xlogy(own, own).sum()) for own in sums)
    return 2 * (float(xlogy(counts, counts).sum()) + whole - rows - columns)


def holm(p_values: np.ndarray) -> np.ndarray:
    """Adjust p-values for their number, by the method of Holm (1979).

    To reject those up to alpha is wrong for one or more of them with at most this probability.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    left = np.arange(len(p_values), 0, -1)
    out = np.empty(len(p_values))
    out[order] = np.minimum(np.maximum.accumulate(left * p_values[order]), 1.0)
    return out
