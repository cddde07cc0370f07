"""Starting values of chains: modes of randomly reweighted tables, different for each chain."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt

from bayesstruct.core.tensors import draw_scatter

__all__ = ["BootstrapStart", "SampleCovarianceStart", "bootstrap_scatter"]


def bootstrap_scatter(rows: Any) -> Any:
    r"""Scatter matrix of Bayesian-bootstrap resampled rows about their mean.

    .. math:: S = n \sum_i w_i (z_i - \bar z)(z_i - \bar z)', \qquad w \sim \mathrm{Dirichlet}(1_n)

    A mode computed from it is a draw near the posterior: chains that start from several such
    modes start apart, so that R-hat keeps its meaning.

    Parameters
    ----------
    rows : array_like
        (n, p), standardised; missing values are NaN and are replaced by the mean of the column, zero.

    Returns
    -------
    TensorVariable
        (p, p), drawn anew for each chain.

    References
    ----------
    Rubin, D. B. (1981). The Bayesian bootstrap. *Annals of Statistics* 9(1), 130-134.
    """
    rows = np.nan_to_num(np.asarray(rows, dtype="float64"))
    n = rows.shape[0]
    rng = pt.random.shared_rng(seed=None)
    _, weights = pt.random.dirichlet(np.ones(n), rng=rng, return_next_rng=True)
    centred = pt.as_tensor_variable(rows) - weights @ rows
    return n * (centred.T * weights) @ centred


@dataclass(frozen=True, eq=False)
class BootstrapStart:
    """Start of a precision matrix: the mode under Bayesian-bootstrap weights of the rows.

    Attributes
    ----------
    rows : array_like
        (n, p), standardised.
    mode : callable
        Maps a scatter matrix and a number of rows to the mode, a tensor.
    """

    rows: np.ndarray
    mode: Callable

    def __call__(self):
        """Build the tensor."""
        return self.mode(bootstrap_scatter(self.rows), float(len(self.rows)))


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

    def __init__(self, scatter: np.ndarray, n: int, mode: Callable):
        eigenvalues, vectors = np.linalg.eigh(scatter / (n - 1))
        self.factor = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        self.n, self.mode = float(n), mode

    def __call__(self):
        """Build the tensor."""
        rng = pt.random.shared_rng(seed=None)
        n, factor = pt.as_tensor_variable(self.n), pt.as_tensor_variable(self.factor)
        return self.mode(draw_scatter(rng, n, factor)[1], self.n)
