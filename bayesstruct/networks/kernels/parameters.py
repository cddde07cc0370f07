r"""Draws of the parameters of a Bayesian network given its graph and the table.

Both families are conjugate, so that the draws are exact and independent.

*Gaussian*: a child with parents :math:`\pi` follows the regression of
:class:`bayesstruct.networks.kernels.scores.gaussian.BGe`; with the rows :math:`D = (1, x_\pi)` in which it was not set,
prior precision :math:`\Lambda = \mathrm{diag}(\alpha_\mu, t, \dots, t)` and
:math:`P = D'D + \Lambda`,

.. math::

    v \sim \mathrm{InvGamma}\Bigl(\frac{\alpha_w - d + |\pi| + 1 + n}{2},
        \frac{t + x'x - x'D P^{-1} D'x}{2}\Bigr), \qquad
    (a, b) \mid v \sim N(P^{-1} D'x, \, v P^{-1}).

*Discrete*: the distribution of a child given a configuration of its parents is Dirichlet with the counts added.

References
----------
Geiger, D. and Heckerman, D. (2002). Parameter priors for directed acyclic graphical models and the
characterization of several probability distributions. *Annals of Statistics* 30, 1412-1440.

Heckerman, D., Geiger, D. and Chickering, D. M. (1995). Learning Bayesian networks: the combination of
knowledge and statistical data. *Machine Learning* 20, 197-243.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = [
    "GaussianPrior",
    "draw_regressions",
    "draw_tables",
    "expected_regressions",
    "regression_distributions",
    "row_patterns",
    "rows_times_rows",
]


class GaussianPrior(NamedTuple):
    """Hyperparameters of the regressions."""

    alpha_mu: float
    alpha_w: float
    scale: float  # t


def row_patterns(kept):
    """Different columns of a table of which rows are kept, and the column of each variable.

    Parameters
    ----------
    kept : (n, d) bool array
        Rows that carry information about the distribution of each variable.

    Returns
    -------
    patterns : (groups, n) bool
    group : (d,) int64
    """
    patterns, group = np.unique(np.asarray(kept, bool), axis=1, return_inverse=True)
    return patterns.T, group.reshape(-1).astype(np.int64)


def rows_times_rows(rows, kept, patterns=None):
    """Products of the columns (1, x), summed over the rows in which each child was not set.

    Parameters
    ----------
    rows : (n, d) float array
    kept : (n, d) bool array
        Rows that carry information about the distribution of each variable.
    patterns : tuple, optional
        Result of `row_patterns` for `kept`, if it is known.

    Returns
    -------
    moments : (groups, d + 1, d + 1) float64
        One matrix for all children with the same rows.
    group : (d,) int64
    """
    patterns, group = row_patterns(kept) if patterns is None else patterns
    design = np.column_stack([np.ones(len(rows)), rows])
    return np.array([design[keep].T @ design[keep] for keep in patterns]), group


@inner
def _cholesky(a, k):
    """Replace the lower triangle of the leading block by its factor."""
    for i in range(k):
        for j in range(i + 1):
            total = a[i, j]
            for m in range(j):
                total -= a[i, m] * a[j, m]
            a[i, j] = math.sqrt(total) if i == j else total / a[j, j]


@inner
def _solve_lower(a, x, k):
    for i in range(k):
        for m in range(i):
            x[i] -= a[i, m] * x[m]
        x[i] /= a[i, i]


@inner
def _solve_upper(a, x, k):
    for i in range(k - 1, -1, -1):
        for m in range(i + 1, k):
            x[i] -= a[m, i] * x[m]
        x[i] /= a[i, i]


@kernel
def draw_regressions(rng, adjacency, moments, group, prior, intercept, weight, variance):
    """Draw intercept, coefficients and noise variance of every variable.

    Parameters
    ----------
    rng : numpy.random.Generator
    adjacency : (d, d) int8 array
        1 at (parent, child).
    moments, group
        See `rows_times_rows`.
    prior : GaussianPrior
    intercept, variance : (d,) float64, written
    weight : (d, d) float64, written
        Row of a child, column of a parent; zero without an arc.
    """
    d = len(adjacency)
    parents = np.empty(d + 1, np.int64)
    a, x = np.empty((d + 1, d + 1)), np.empty(d + 1)
    for child in range(d):
        products = moments[group[child]]
        parents[0], k = 0, 1  # the intercept is column 0
        for j in range(d):
            weight[child, j] = 0.0
            if adjacency[j, child]:
                parents[k] = j + 1
                k += 1
        for i in range(k):
            for j in range(i + 1):
                a[i, j] = products[parents[i], parents[j]]
            a[i, i] += prior.alpha_mu if i == 0 else prior.scale
            x[i] = products[parents[i], child + 1]
        _cholesky(a, k)
        _solve_lower(a, x, k)
        left = prior.scale + products[child + 1, child + 1]
        for i in range(k):
            left -= x[i] * x[i]
        shape = 0.5 * (prior.alpha_w - d + k + products[0, 0])
        variance[child] = 0.5 * left / rng.standard_gamma(shape)
        deviation = math.sqrt(variance[child])
        for i in range(k):
            x[i] += deviation * rng.standard_normal()
        _solve_upper(a, x, k)
        intercept[child] = x[0]
        for i in range(1, k):
            weight[child, parents[i] - 1] = x[i]


def regression_distributions(adjacency, moments, group, prior):
    """Yield the distribution of the parameters of each child given the graph and the sums over the rows.

    Parameters
    ----------
    adjacency : (d, d) array
        1 at (parent, child).
    moments, group
        From `rows_times_rows`.
    prior : GaussianPrior

    Yields
    ------
    parents : int array
    mean : (1 + parents,) array
        Of intercept and coefficients.
    inverse : matrix
        Their covariance, over the noise variance.
    shape, rate : float
        Of the inverse gamma distribution of the noise variance.
    """
    for child in range(len(adjacency)):
        products, parents = moments[group[child]], np.flatnonzero(adjacency[:, child])
        at = np.append(0, 1 + parents)
        shrinkage = np.append(prior.alpha_mu, np.full(len(parents), prior.scale))
        inverse = np.linalg.inv(products[np.ix_(at, at)] + np.diag(shrinkage))
        right = products[at, child + 1]
        mean = inverse @ right
        left = prior.scale + products[child + 1, child + 1] - right @ mean
        shape = 0.5 * (prior.alpha_w - len(adjacency) + len(at) + products[0, 0])
        yield parents, mean, inverse, shape, 0.5 * left


def expected_regressions(adjacency, moments, group, prior):
    """Return the means of intercepts (d,), coefficients (d, d), children as rows, and variances (d,).

    See `regression_distributions`. The shape less one, by which the rate of a variance is divided,
    counts as one half at least.
    """
    d = len(adjacency)
    intercept, weight, variance = np.zeros(d), np.zeros((d, d)), np.zeros(d)
    regressions = regression_distributions(adjacency, moments, group, prior)
    for child, (parents, mean, _, shape, rate) in enumerate(regressions):
        intercept[child], weight[child, parents] = mean[0], mean[1:]
        variance[child] = rate / max(shape - 1.0, 0.5)
    return intercept, weight, variance


@kernel
def draw_tables(rng, adjacency, rows, kept, states, sample_size, out, constant=False):
    """Draw the conditional probability tables of every variable.

    Parameters
    ----------
    rng : numpy.random.Generator
    adjacency : (d, d) int8 array
        1 at (parent, child).
    rows : (d, n) int array
        States, one row for each variable.
    kept : (d, n) bool array
    states : (d,) int64 array
    sample_size : float
        Equivalent sample size: each cell of a table of q configurations and k states has the prior
        weight sample_size / (q k).
    out : (d, cells) float64, written
        Probability of state s in configuration c at c * k + s, zero beyond. The first parent in the
        order of the table changes fastest in c.
    constant : bool
        Whether `sample_size` is the prior weight of each cell instead.

    Returns
    -------
    bool
        Whether all tables fit.
    """
    d, n = rows.shape
    code = np.empty(n, np.int64)
    for child in range(d):
        k, q = states[child], 1
        code[:] = 0
        for j in range(d):
            if adjacency[j, child]:
                if q * k * states[j] > out.shape[1]:
                    return False
                for r in range(n):
                    code[r] += q * rows[j, r]
                q *= states[j]
        cells = out[child]
        cells[: q * k] = sample_size if constant else sample_size / (q * k)
        cells[q * k :] = 0.0
        for r in range(n):
            if kept[child, r]:
                cells[code[r] * k + rows[child, r]] += 1.0
        for c in range(q):
            _dirichlet(rng, cells[c * k : (c + 1) * k])
    return True


@inner
def _dirichlet(rng, x):
    """Replace the parameters of a Dirichlet distribution by a draw from it."""
    top = -np.inf
    for s in range(len(x)):
        # Small parameters: the logarithm of a gamma draw, lest all of them underflow.
        x[s] = math.log(rng.standard_gamma(x[s] + 1.0)) - rng.standard_exponential() / x[s]
        top = max(top, x[s])
    total = 0.0
    for s in range(len(x)):
        x[s] = math.exp(x[s] - top)
        total += x[s]
    for s in range(len(x)):
        x[s] /= total
