"""Tests of conditional independence whose distribution does not depend on parameters: of numbers and of states."""

from typing import NamedTuple

import numpy as np

__all__ = ["Tested", "holm", "independent_numbers", "independent_states"]

_SPARSE = 5.0  # expected counts of a cell below which the chi-square approximation is not used
_TABLES = 400  # random tables that take its place
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
    rng: np.random.Generator,
) -> Tested:
    """Test whether two columns of states are independent in each combination of the states of others, by G2.

    Parameters
    ----------
    x : ndarray of int, shape (n, p)
        States from 0; those that are not used may be anything.
    states : ndarray of int, shape (p,)
        Numbers of states.
    use, first, second, given
        As in `independent_numbers`.
    rng : numpy.random.Generator
        Of the random tables.

    Returns
    -------
    Tested

    Notes
    -----
    Given the counts of both columns in each combination, the distribution of the table is known (Patefield 1981). Where
    expected counts are large the chi-square distribution takes its place, otherwise the gamma distribution with mean and
    variance of the statistic in 400 random tables.

    References
    ----------
    Patefield, W. M. (1981). Algorithm AS 159: An efficient method of generating random R x C tables with given row and column
    totals. *Applied Statistics* 30, 91-97.
    """
    m = len(first)
    p_value, strength, testable = np.ones(m), np.zeros(m), np.zeros(m, bool)
    for k, (i, j) in enumerate(zip(first, second, strict=True)):
        rows = use[k if len(use) > 1 else 0]
        counts = _strata(x[rows], i, j, np.flatnonzero(given[k]), states)
        if counts:
            testable[k] = True
            p_value[k] = _p_value(counts, rng)
            n = max(int(rows.sum()), 1)
            strength[k] = np.sqrt(-np.expm1(-sum(map(_g2, counts)) / n))
    return Tested(p_value, strength, testable)


def _strata(x, i, j, given, states) -> list[np.ndarray]:
    """Tables of two columns in each combination of others, those in which both vary, without empty rows and columns."""
    _, stratum = np.unique(x[:, given], axis=0, return_inverse=True)
    shape = (int(stratum.max(initial=-1)) + 1, states[i], states[j])
    counts = np.zeros(shape, np.int64)
    np.add.at(counts, (stratum.ravel(), x[:, i], x[:, j]), 1)
    tables = [one[one.any(axis=1)][:, one.any(axis=0)] for one in counts]
    return [one for one in tables if min(one.shape) > 1]


def _g2(counts: np.ndarray) -> float:
    return float(_g2_of(counts[None], _expected(counts))[0])


def _expected(counts: np.ndarray) -> np.ndarray:
    return np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()


def _g2_of(tables: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """G2 of tables (k, rows, columns) with the same expected counts."""
    ratio = np.log(np.where(tables > 0, tables, 1)) - np.where(tables > 0, np.log(expected), 0)
    return 2 * (tables * ratio).sum(axis=(1, 2))


def _p_value(counts: list[np.ndarray], rng: np.random.Generator) -> float:
    from scipy.stats import chi2, gamma, random_table

    statistic = sum(map(_g2, counts))
    expected = [_expected(one) for one in counts]
    if min(one.min() for one in expected) >= _SPARSE:
        free = sum((one.shape[0] - 1) * (one.shape[1] - 1) for one in counts)
        return float(chi2.sf(statistic, free))
    drawn = np.zeros(_TABLES)
    for own, mean in zip(counts, expected, strict=True):
        tables = random_table(own.sum(axis=1), own.sum(axis=0)).rvs(_TABLES, random_state=rng)
        drawn += _g2_of(tables, mean)
    centre, variance = float(drawn.mean()), float(drawn.var())
    if variance <= 0:  # a single table has these counts
        return 1.0
    return float(gamma.sf(statistic, centre**2 / variance, scale=variance / centre))


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
