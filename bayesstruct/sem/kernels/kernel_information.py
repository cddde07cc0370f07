r"""Kernel mutual information of two columns: low-rank Gram matrices and the kernel generalised variance.

With the centred Gram matrices K of n values and :math:`c = n \kappa / 2`, and regularised correlation operators
:math:`R = K (K + c I)^{-1}`,

.. math::

    I = -\tfrac12 \log \frac{\det \begin{pmatrix} (K_1 + cI)^2 & K_1 K_2 \\ K_2 K_1 & (K_2 + cI)^2 \end{pmatrix}}
    {\det (K_1 + cI)^2 \det (K_2 + cI)^2} = -\tfrac12 \log \det (I - R_1^2 R_2^2),

which for factors :math:`K = G G'` of few columns is a determinant of that size.
"""

import math

from typing import NamedTuple

import numpy as np

from scipy.linalg import solve_triangular

from bayesstruct.core.jit import fused_kernel

__all__ = [
    "MOST",
    "KernelFactor",
    "gram_factor",
    "incomplete_cholesky",
    "kernel_factor",
    "kernel_information",
    "kernel_settings",
]

#: Largest rank of a factor.
MOST = 100
_LEFT = 1e-2  # trace that a factor leaves out, as a share of that of the regulariser
_LARGE = 1_000


class KernelFactor(NamedTuple):
    """Regularised low-rank Gram matrix of one column.

    Attributes
    ----------
    whitened : (m, n) numpy.ndarray
        T with :math:`T' T = K (K + c I)^{-1}`.
    square : (m, m) numpy.ndarray
        T T'.
    """

    whitened: np.ndarray
    square: np.ndarray


def kernel_settings(n: int) -> tuple[float, float]:
    """Return the regulariser and the width of the kernel that the source takes for n rows.

    References
    ----------
    Shimizu, S. et al. (2011). DirectLiNGAM. *JMLR* 12, 1225-1248, section 3.2.

    Examples
    --------
    >>> kernel_settings(1000), kernel_settings(1001)
    ((0.02, 1.0), (0.002, 0.5))
    """
    return (2e-3, 0.5) if n > _LARGE else (2e-2, 1.0)


def kernel_factor(x: np.ndarray, kappa: float, width: float) -> KernelFactor:
    """Return the factor of one column.

    Parameters
    ----------
    x : (n,) numpy.ndarray
        Standardised.
    kappa, width : float
        Regulariser, and standard deviation of the Gaussian kernel.
    """
    n = len(x)
    rows = np.empty((min(MOST, n), n))
    rank = incomplete_cholesky(np.ascontiguousarray(x), width, _LEFT * kappa * n, rows)
    G = rows[:rank]
    G -= G.mean(axis=1, keepdims=True)
    return gram_factor(G, n * kappa / 2)


def gram_factor(G: np.ndarray, c: float) -> KernelFactor:
    """Return the factor of a Gram matrix.

    Parameters
    ----------
    G : (m, n) numpy.ndarray
        With the Gram matrix G' G.
    c : float
        What is added to its diagonal.
    """
    one = np.eye(len(G))
    root = np.linalg.cholesky(G @ G.T + c * one)
    whitened = solve_triangular(root, G, lower=True, check_finite=False)
    inverse = solve_triangular(root, one, lower=True, check_finite=False)
    return KernelFactor(whitened, one - c * (inverse @ inverse.T))


def kernel_information(first: KernelFactor, second: KernelFactor) -> float:
    """Return the kernel mutual information of two columns, at least 0."""
    cross = first.whitened @ second.whitened.T
    inside = np.eye(len(cross)) - first.square @ cross @ second.square @ cross.T
    return max(0.0, -0.5 * np.linalg.slogdet(inside)[1])


@fused_kernel
def incomplete_cholesky(x, width, left, rows):
    """Pivoted Cholesky factor of the Gaussian Gram matrix of one column, until a trace of `left` remains.

    Parameters
    ----------
    x : (n,) array
    width, left : float
    rows : (most, n) array
        The factor is written here, row by row.

    Returns
    -------
    int
        Its rank.
    """
    n = x.shape[0]
    rest = np.ones(n)
    scale = -0.5 / (width * width)
    for m in range(rows.shape[0]):
        pivot = 0
        total = 0.0
        for r in range(n):
            total += rest[r]
            if rest[r] > rest[pivot]:
                pivot = r
        if total <= left:
            return m
        row = rows[m]
        for r in range(n):
            gap = x[r] - x[pivot]
            row[r] = math.exp(scale * gap * gap)
        for k in range(m):
            at = rows[k, pivot]
            for r in range(n):
                row[r] -= at * rows[k, r]
        inverse = 1.0 / math.sqrt(rest[pivot])
        for r in range(n):
            row[r] *= inverse
            rest[r] = max(0.0, rest[r] - row[r] * row[r])
        rest[pivot] = 0.0
    return rows.shape[0]
