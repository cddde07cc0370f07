r"""Sample covariance matrices of normal rows, where the rows themselves are not at hand.

The scatter matrix of n rows about their means is :math:`W \sim \mathrm{Wishart}(n - 1, \Sigma)`. With
:math:`\Sigma = F F'` it is drawn as :math:`F A A' F'`, A being lower triangular with independent entries
(Bartlett 1933): standard normal below the diagonal, and the square root of a chi-squared variable with
n - k degrees of freedom as the k-th entry of the diagonal. With n - 1 < p the last columns are zero.

References
----------
Bartlett, M. S. (1933). On the theory of statistical regression. *Proceedings of the Royal Society of
Edinburgh* 53, 260-283.
"""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["SampleCovarianceStart", "draw_scatter"]


def draw_scatter(rng, n: "TensorVariable", factor: "TensorVariable") -> tuple:
    """Draw the scatter matrix of normal rows about their means.

    Parameters
    ----------
    rng : RandomGeneratorVariable
    n : TensorVariable
        Number of rows.
    factor : TensorVariable
        (p, p); its product with its transpose is the covariance matrix.

    Returns
    -------
    tuple
        The next generator, and the (p, p) matrix.
    """
    p = factor.shape[-1]
    degrees = n - 1.0 - pt.arange(p)
    some = pt.gt(degrees, 0.0)
    rng, squares = pt.random.chisquare(
        pt.switch(some, degrees, 1.0), size=(p,), rng=rng, return_next_rng=True
    )
    rng, noise = pt.random.normal(0.0, 1.0, size=(p, p), rng=rng, return_next_rng=True)
    entries = pt.tril(noise, -1) + pt.diag(pt.sqrt(squares))
    root = factor @ pt.switch(some[None, :], entries, 0.0)
    return rng, root @ root.T


class SampleCovarianceStart:
    """Start of a precision matrix: the mode given a replicated scatter matrix, another in each chain.

    Parameters
    ----------
    scatter : (p, p) ndarray
        Of the standardised rows.
    n : int
        Number of rows.
    mode : callable
        Maps a scatter matrix and a number of rows to the mode, a tensor.
    """

    def __init__(self, scatter: np.ndarray, n: int, mode):
        eigenvalues, vectors = np.linalg.eigh(scatter / (n - 1))
        self.factor = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        self.n, self.mode = float(n), mode

    def __call__(self) -> "TensorVariable":
        """Build the tensor."""
        rng = pt.random.shared_rng(seed=None)
        n, factor = pt.as_tensor_variable(self.n), pt.as_tensor_variable(self.factor)
        return self.mode(draw_scatter(rng, n, factor)[1], self.n)
