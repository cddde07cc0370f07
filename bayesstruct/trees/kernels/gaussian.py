r"""Normal rows whose dependences form a tree: weights of trees and draws of the parameters given one.

The precision matrix has the G-Wishart distribution of its tree, with the density
:math:`|K|^{(b - 2) / 2} e^{-\mathrm{tr}(K D) / 2} / I_T(b, D)`, and the means are :math:`N(0, (\alpha K)^{-1})`. Both are conjugate: after n rows
with the mean :math:`\bar z` and the scatter matrix S about it

.. math:: b' = b + n, \qquad D' = D + S + \frac{\alpha n}{\alpha + n} \bar z \bar z', \qquad
    \mu \mid K \sim N\Bigl(\frac{n \bar z}{\alpha + n}, \frac{K^{-1}}{\alpha + n}\Bigr) .

The constant of a tree is a product, :math:`I_T = \prod_{ij \in T} I_{ij} \prod_i I_i^{1 - \deg i}`, so that the marginal likelihood of T is one over
edges with the factors :math:`I_{ij} / (I_i I_j)` of D' and b' over those of D and b.
"""

import numpy as np

from scipy.special import gammaln

from bayesstruct.graphs.spanning_trees.sums import rooted_forest

__all__ = ["draw_means", "draw_precision", "edge_factors", "expected_precision", "posterior_scale"]


def posterior_scale(
    scale: float, rows: float, n: int, total: np.ndarray, cross: np.ndarray
) -> np.ndarray:
    """Scale matrix D' after n rows.

    Parameters
    ----------
    scale : float
        D is this multiple of the identity.
    rows : float
        Rows that the prior of the means is worth.
    n : int
    total : (p,) ndarray
        Sum of the rows.
    cross : (p, p) ndarray
        Sum of their outer products.
    """
    matrix = cross - np.outer(total, total) / (rows + n)
    matrix[np.diag_indices(len(total))] += scale
    return matrix


def edge_factors(degrees_of_freedom: float, matrix: np.ndarray, floor: float) -> np.ndarray:
    """Logarithm of the constant of each pair of columns over those of the two alone, (p, p).

    Parameters
    ----------
    degrees_of_freedom : float
    matrix : (p, p) ndarray
        Scale matrix.
    floor : float
        Smallest variance that a column has given another one; rounding may say less.
    """
    b, own = degrees_of_freedom, np.diag(matrix)
    left = np.maximum(own[None, :] - matrix**2 / own[:, None], floor)
    # Both directions are the same number but for rounding.
    log_left = np.log(left) - np.log(own)[None, :]
    log_left = 0.5 * (log_left + log_left.T)
    constant = np.log(2.0) + 0.5 * np.log(np.pi) + gammaln(0.5 * (b + 1.0)) - gammaln(0.5 * b)
    factors = constant - 0.5 * np.add.outer(np.log(own), np.log(own)) - 0.5 * (b + 1.0) * log_left
    np.fill_diagonal(factors, 0.0)
    return factors


def draw_precision(
    rng: np.random.Generator,
    lines: np.ndarray,
    degrees_of_freedom: float,
    matrix: np.ndarray,
    floor: float = 0.0,
) -> np.ndarray:
    """Draw the precision matrix of a tree or forest, column by column away from roots.

    Parameters
    ----------
    rng : numpy.random.Generator
    lines : (edges, 2) ndarray of int
    degrees_of_freedom : float
    matrix : (p, p) ndarray
        Scale matrix, of which the diagonal and the entries at edges are used.
    floor : float
        As of `edge_factors`.

    Returns
    -------
    (p, p) ndarray
        Zero where there is no edge.
    """
    p = len(matrix)
    parent, child, above, line, rate, shape = _regressions(lines, degrees_of_freedom, matrix, floor)
    noise = rate / rng.standard_gamma(shape)
    slope = line + np.sqrt(noise[child] / above) * rng.standard_normal(len(child))
    return _assembled(p, parent, child, slope / noise[child], slope**2 / noise[child], 1.0 / noise)


def expected_precision(
    lines: np.ndarray, degrees_of_freedom: float, matrix: np.ndarray, floor: float = 0.0
) -> np.ndarray:
    """Mean of the precision matrix of a tree or forest; parameters are those of `draw_precision`."""
    parent, child, above, line, rate, shape = _regressions(lines, degrees_of_freedom, matrix, floor)
    weight = shape / rate
    squares = line**2 * weight[child] + 1.0 / above
    return _assembled(len(matrix), parent, child, line * weight[child], squares, weight)


def _regressions(lines, degrees_of_freedom, matrix, floor):
    """Columns given their parents: parents, children, sums of squares and slopes of the former, rates and shapes of all."""
    p = len(matrix)
    parent = rooted_forest(lines, p)
    child = np.flatnonzero(parent >= 0)
    parent = parent[child]
    above, both = matrix[parent, parent], matrix[parent, child]
    left, shape = np.diag(matrix).copy(), np.full(p, 0.5 * degrees_of_freedom)
    left[child] = np.maximum(left[child] - both**2 / above, floor)
    shape[child] += 0.5
    return parent, child, above, both / above, 0.5 * left, shape


def _assembled(p, parent, child, pulls, squares, diagonal):
    """Precision matrix of regressions."""
    precision, diagonal = np.zeros((p, p)), diagonal.copy()
    precision[parent, child] = precision[child, parent] = -pulls
    np.add.at(diagonal, parent, squares)
    precision[np.diag_indices(p)] = diagonal
    return precision


def draw_means(
    rng: np.random.Generator, precision: np.ndarray, rows: float, n: int, total: np.ndarray
) -> np.ndarray:
    """Draw the means of the columns given their precision matrix and the sum of n rows."""
    factor = np.linalg.cholesky((rows + n) * precision)
    return total / (rows + n) + np.linalg.solve(factor.T, rng.standard_normal(len(total)))
