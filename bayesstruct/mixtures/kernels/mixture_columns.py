r"""Clusters of rows of independent normal columns, with means and variances summed out.

In cluster k

.. math::

    x_{ij} \sim N(\mu_{kj}, v_{kj}), \qquad \mu_{kj} \sim N(0, v_{kj} / \kappa_j), \qquad
    v_{kj} \sim \mathrm{IG}(a, b_j),

so that a further row has, given the n rows of a cluster, independent Student distributions with :math:`2 a + n` degrees
of freedom. Only counts, sums and sums of squares of a cluster are kept; columns come less their prior mean.

References
----------
Murphy, K. P. (2007). Conjugate Bayesian analysis of the Gaussian distribution. Technical report, University of
British Columbia, section 3.
"""

import math

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from numba.core import types
from numba.experimental import structref

from bayesstruct.core.jit import numpy_inner

__all__ = [
    "ColumnPrior",
    "add_row",
    "clear_cluster",
    "copy_cluster",
    "draw_moments",
    "fill_columns",
    "log_gains",
    "log_row",
    "pick",
]

_LARGE = 1e200


class ColumnPrior(NamedTuple):
    """Prior of means and variances of the columns in a cluster.

    Attributes
    ----------
    strength : (p,) float64
        Kappa: the prior of a mean counts as so many rows.
    shape : float
        a.
    rate : (p,) float64
        b.
    gains : (n + 1,) float64
        `log_gains` of the shape.
    """

    strength: np.ndarray
    shape: float
    rate: np.ndarray
    gains: np.ndarray


@dataclass
class _Columns:
    """Statistics of each of S clusters: counts, sums and squares, and the predictive distribution of a further row.

    Attributes
    ----------
    x : (n, p) float64
        The rows.
    strength, shape, rate, gains
        As in `ColumnPrior`.
    count : (S,) int64
    total, square : (S, p) float64
    mean, inverse : (S, p) float64
        Location, and 1 over (degrees of freedom times squared scale), of the Student distributions.
    constant : (S,) float64
        Sum of the logarithms of their constants.
    """

    x: np.ndarray
    strength: np.ndarray
    shape: float
    rate: np.ndarray
    gains: np.ndarray
    count: np.ndarray
    total: np.ndarray
    square: np.ndarray
    mean: np.ndarray
    inverse: np.ndarray
    constant: np.ndarray


# Compiled functions hand tuples of arrays on element by element, and each of them is compiled into its
# callers: with references they take a fraction of the time to compile.
@structref.register
class _ColumnsReference(types.StructRef):
    """Reference to `_Columns`."""


def _columns_of(*elements):
    """Make a structure of the elements of `_Columns`."""


structref.define_constructor(_columns_of, _ColumnsReference, [one.name for one in fields(_Columns)])


def log_gains(shape: float, n: int) -> np.ndarray:
    """Return log Gamma(a + m/2 + 1/2) - log Gamma(a + m/2) for m = 0, ..., n."""
    from scipy.special import gammaln

    a = shape + 0.5 * np.arange(n + 1)
    return gammaln(a + 0.5) - gammaln(a)


@numpy_inner
def _refresh(columns, k):
    """Compute the predictive distribution of a further row of a cluster."""
    p, n = columns.total.shape[1], columns.count[k]
    constant = p * columns.gains[n]
    for j in range(p):
        weight = columns.strength[j] + n
        mean = columns.total[k, j] / weight
        spread = max(columns.square[k, j] - mean * columns.total[k, j], 0.0)
        scale = (2.0 * columns.rate[j] + spread) * (weight + 1.0) / weight
        columns.mean[k, j] = mean
        columns.inverse[k, j] = 1.0 / scale
        constant -= 0.5 * math.log(math.pi * scale)
    columns.constant[k] = constant


@numpy_inner
def clear_cluster(columns: Any, k: int) -> None:
    """Empty a cluster."""
    columns.count[k] = 0
    for j in range(columns.total.shape[1]):
        columns.total[k, j] = 0.0
        columns.square[k, j] = 0.0
    _refresh(columns, k)


@numpy_inner
def copy_cluster(columns: Any, source: int, target: int) -> None:
    """Make a cluster the same as another."""
    columns.count[target] = columns.count[source]
    columns.constant[target] = columns.constant[source]
    # Assignments of slices would take far longer to compile.
    for j in range(columns.total.shape[1]):
        columns.total[target, j] = columns.total[source, j]
        columns.square[target, j] = columns.square[source, j]
        columns.mean[target, j] = columns.mean[source, j]
        columns.inverse[target, j] = columns.inverse[source, j]


@numpy_inner
def add_row(columns: Any, k: int, i: int, sign: float) -> None:
    """Put row i into a cluster (sign 1), or take it out (-1)."""
    columns.count[k] += sign
    if columns.count[k] == 0:
        clear_cluster(columns, k)
        return
    row = columns.x[i]
    for j in range(row.shape[0]):
        columns.total[k, j] += sign * row[j]
        columns.square[k, j] += sign * row[j] * row[j]
    _refresh(columns, k)


@numpy_inner
def log_row(columns: Any, k: int, i: int) -> float:
    """Log density of row i as a further row of a cluster."""
    row = columns.x[i]
    n = columns.count[k]
    power = columns.shape + 0.5 * n + 0.5
    product, logs = 1.0, 0.0
    for j in range(row.shape[0]):
        step = row[j] - columns.mean[k, j]
        product *= 1.0 + step * step * columns.inverse[k, j]
        if product > _LARGE:
            logs += math.log(product)
            product = 1.0
    return columns.constant[k] - power * (logs + math.log(product))


@numpy_inner
def fill_columns(x: np.ndarray, labels: np.ndarray, prior: ColumnPrior, size: int):
    """Make clusters from labels; those from the largest label on are empty.

    Parameters
    ----------
    x : (n, p) float64
    labels : (n,) int64
        Below `size`.
    prior : ColumnPrior
    size : int
        S.

    Returns
    -------
    reference to Columns
    """
    p = x.shape[1]
    columns = _columns_of(
        x,
        prior.strength,
        prior.shape,
        prior.rate,
        prior.gains,
        np.zeros(size, np.int64),
        np.zeros((size, p)),
        np.zeros((size, p)),
        np.zeros((size, p)),
        np.zeros((size, p)),
        np.zeros(size),
    )
    for i in range(x.shape[0]):
        k = labels[i]
        columns.count[k] += 1
        for j in range(p):
            columns.total[k, j] += x[i, j]
            columns.square[k, j] += x[i, j] * x[i, j]
    for k in range(size):
        _refresh(columns, k)
    return columns


@numpy_inner
def draw_moments(
    rng: np.random.Generator, columns: Any, k: int, mean: np.ndarray, variance: np.ndarray
) -> None:
    """Draw means and variances of the columns of a cluster into two (p,) arrays."""
    n = columns.count[k]
    for j in range(mean.shape[0]):
        weight = columns.strength[j] + n
        centre = columns.total[k, j] / weight
        spread = max(columns.square[k, j] - centre * columns.total[k, j], 0.0)
        rate = columns.rate[j] + 0.5 * spread
        variance[j] = rate / rng.standard_gamma(columns.shape + 0.5 * n)
        mean[j] = centre + math.sqrt(variance[j] / weight) * rng.standard_normal()


@numpy_inner
def pick(rng: np.random.Generator, logs: np.ndarray, count: int) -> int:
    """Draw one of the first `count` in proportion to the exponentials of their weights, which change."""
    top = -np.inf
    for a in range(count):
        top = max(top, logs[a])
    total = 0.0
    for a in range(count):
        total += math.exp(logs[a] - top)
        logs[a] = total
    level = rng.random() * total
    for a in range(count - 1):
        if level < logs[a]:
            return a
    return count - 1
