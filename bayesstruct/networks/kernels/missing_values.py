r"""Missing values of the rows of a Bayesian network, given its graph and parameters.

*Gaussian*: with :math:`D = I - B`, the weights :math:`w_{ri} = 1 / v_i` of the variables that were not set in row
r, and 0 of the others, the log density of a row is :math:`-\frac12 (z - \mu)' K_r (z - \mu)` plus a constant, where

.. math:: K_r = D' \mathrm{diag}(w_r) D, \qquad \mu = D^{-1} a,

so that its missing values are jointly normal with the precision :math:`K_{r,mm}`.

*Discrete*: the distribution of one value given the rest of its row is that given its Markov blanket,

.. math:: P(x_i = s \mid \text{rest}) \propto P(x_i = s \mid x_{\mathrm{pa}_i})
    \prod_{j \text{ child of } i, \text{ not set}} P(x_j \mid x_{\mathrm{pa}_j}) .
"""

import numpy as np

from bayesstruct.core.jit import kernel

__all__ = ["conditional_numbers", "draw_missing_numbers", "draw_missing_states", "row_precisions"]


def row_precisions(coefficients, variance, free):
    """Return the matrix :math:`K_r` of each row.

    Parameters
    ----------
    coefficients : (d, d) array
        Rows are children.
    variance : (d,) array
    free : (n, d) array of bool
        Variables that were not set.

    Returns
    -------
    numpy.ndarray
        (n, d, d).
    """
    difference = np.eye(len(variance)) - coefficients
    return (difference.T * (free / variance)[:, None, :]) @ difference


def conditional_numbers(intercept, coefficients, variance, free, z, missing):
    """Means and precision matrices of the missing values of each row given its observed ones.

    Parameters
    ----------
    intercept, variance : (d,) array
    coefficients : (d, d) array
    free, missing : (n, d) array of bool
        No missing value was set.
    z : (n, d) array
        Entries of missing values are not used.

    Returns
    -------
    mean : (n, d) array
        Rows with their missing values filled in by conditional means.
    block : (n, d, d) array
        Precision of the missing values, the identity elsewhere.
    """
    centre = np.linalg.solve(np.eye(len(variance)) - coefficients, intercept)
    precision = row_precisions(coefficients, variance, free)
    residual = np.where(missing, 0.0, z - centre)
    push = np.where(missing, (precision @ residual[:, :, None])[:, :, 0], 0.0)
    both = missing[:, :, None] & missing[:, None, :]
    block = np.where(both, precision, np.eye(len(variance)))
    shift = np.linalg.solve(block, push[:, :, None])[:, :, 0]
    return np.where(missing, centre - shift, z), block


def draw_missing_numbers(rng, intercept, coefficients, variance, free, z, missing):
    """Draw the missing values of each row given its observed ones, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    intercept, coefficients, variance, free, z, missing
        As for `conditional_numbers`; `z` is changed.
    """
    mean, block = conditional_numbers(intercept, coefficients, variance, free, z, missing)
    factor = np.linalg.cholesky(block)
    noise = rng.standard_normal(z.shape)[:, :, None]
    spread = np.linalg.solve(np.swapaxes(factor, 1, 2), noise)[:, :, 0]
    z[missing] = (mean + spread)[missing]


@kernel
def draw_missing_states(rng, rows, columns, table, free, states, strides, tables):
    """Draw missing states one after the other given the rests of their rows, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    rows, columns : (missing values,) int64 arrays
    table : (n, d) int64 array, changed
    free : (n, d) bool array
        Variables that were not set.
    states : (d,) int64 array
    strides : (d, d) int64 array
        How far the state of a parent (row) moves the configuration of a child (column).
    tables : (d, cells) float64 array
        Probability of state s in configuration c at c * k + s.
    """
    d, widest = len(states), 0
    for k in states:
        widest = max(widest, k)
    weight = np.empty(widest)
    for m in range(len(rows)):
        r, i = rows[m], columns[m]
        x, total = table[r], 0.0
        for s in range(states[i]):
            x[i] = s
            product = 1.0
            for j in range(d):
                if (j == i or strides[i, j] > 0) and free[r, j]:
                    c = 0
                    for parent in range(d):
                        c += strides[parent, j] * x[parent]
                    product *= tables[j, c * states[j] + x[j]]
            weight[s] = product
            total += product
        u, chosen = rng.random() * total, states[i] - 1
        for s in range(states[i] - 1):
            u -= weight[s]
            if u < 0.0:
                chosen = s
                break
        x[i] = chosen
