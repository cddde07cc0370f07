"""Loadings of sparse factors given the scores, and the scale that both share.

See :mod:`bayesstruct.features.kernels.sparse_factors` for the model.
"""

import numpy as np

__all__ = ["draw_factor_loadings", "normal_equations", "rescale_factors"]


def draw_factor_loadings(
    rng: np.random.Generator, w: np.ndarray, x: np.ndarray, precision: np.ndarray, scale: float
) -> np.ndarray:
    """Draw the loadings given the scores.

    Parameters
    ----------
    rng : numpy.random.Generator
    w : (n, k) float64
        Scores of the factors that are used.
    x : (n, d) float64
    precision : (n, d) float64
        Of each value, zero where it is missing.
    scale : float

    Returns
    -------
    (k, d) ndarray
    """
    weighted, slope = normal_equations(w, x, precision, scale)
    factor = np.linalg.cholesky(weighted)
    half = np.linalg.solve(factor, slope)[..., 0]
    half += rng.standard_normal(half.shape)
    return np.linalg.solve(factor.swapaxes(-1, -2), half[..., None])[..., 0].T


def normal_equations(
    w: np.ndarray, x: np.ndarray, precision: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Precisions of the loadings of each column, (d, k, k), and their slopes, (d, k, 1)."""
    weighted = np.einsum("nk,nj,nl->jkl", w, precision, w, optimize=True)
    weighted += np.eye(w.shape[1]) / scale**2
    return weighted, ((precision * x).T @ w)[..., None]


def rescale_factors(
    rng: np.random.Generator, w: np.ndarray, a: np.ndarray, scale: float, laplace: bool
) -> None:
    """Move the scale of each factor between its scores and its loadings, in place; then fix its sign.

    Multiplying scores by c and dividing loadings by it changes nothing but their priors: c is proposed
    log-normal, and the ratio has the Jacobian :math:`c^{m - d}` for m scores and d loadings. Scores and
    loadings with the opposite sign are as probable; the sum of the cubes of the loadings is made positive.
    """
    m, d = np.count_nonzero(w, axis=0), a.shape[1]
    step = rng.normal(0.0, 1.5 / np.sqrt(m + d))
    c = np.exp(step)
    squares = (a**2).sum(axis=1) / scale**2
    if laplace:
        change = -(c - 1.0) * np.abs(w).sum(axis=0)
    else:
        change = -0.5 * (c**2 - 1.0) * (w**2).sum(axis=0)
    change += (m - d) * step - 0.5 * (c**-2.0 - 1.0) * squares
    c = np.where(np.log(rng.random(len(c))) < change, c, 1.0)
    c = np.where((a**3).sum(axis=1) < 0, -c, c)
    w *= c
    a /= c[:, None]
