"""Edge vectors as matrices over variables, made on demand."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.edges import SAMPLE_DIMS, EdgePosterior, read_posterior
from bayesstruct.graphs.probabilities import inclusion_probabilities

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["as_matrix", "inclusion_matrix", "partial_correlations"]


def as_matrix(values, idata, *, diagonal: float = 0.0) -> "xr.DataArray":
    """View an edge vector as a symmetric matrix over variables.

    Parameters
    ----------
    values : xarray.DataArray over edges, or array of shape (..., n_edges)
        Any quantity of the edges: one draw of the weights, probabilities, Bayes factors.
    idata : xarray.DataTree
        The result whose edges these are.
    diagonal : float
        Value for the diagonal, which the edges do not hold.

    Returns
    -------
    xarray.DataArray, dims (..., node, node_)

    Raises
    ------
    ValueError
        When the last axis is not one value an edge.

    Notes
    -----
    A p x p matrix for every draw costs twice the memory of the edges: take the draws you need
    (`idata.posterior.weight.isel(draw=...)`) before, or a mean.

    Examples
    --------
    >>> as_matrix(idata.posterior["weight"].isel(chain=0, draw=-1), idata)  # doctest: +SKIP
    """
    import xarray as xr

    posterior = read_posterior(idata)
    dims, coords = None, {}
    if isinstance(values, xr.DataArray):
        values = values.transpose(..., posterior.dim)
        dims = values.dims[:-1]
        coords = {name: values.coords[name] for name in dims if name in values.coords}
    matrix = fill_matrix(np.asarray(values), posterior, diagonal)
    dims = dims or tuple(f"dim_{axis}" for axis in range(matrix.ndim - 2))
    names = posterior.variables
    return xr.DataArray(
        matrix,
        dims=(*dims, "node", "node_"),
        coords={**coords, "node": names, "node_": names},
    )


def partial_correlations(idata, *, group: str = "posterior") -> "pd.DataFrame":
    """Posterior mean of the partial correlations, as a p x p table.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    pandas.DataFrame, shape (p, p)
        Symmetric, ones on the diagonal, names of the variables on both sides.

    Examples
    --------
    >>> partial_correlations(idata).loc["praf", "pmek"]  # doctest: +SKIP
    """
    posterior = read_posterior(idata, group)
    return frame(posterior.weights.mean(SAMPLE_DIMS).values, posterior, diagonal=1.0)


def inclusion_matrix(idata, *, group: str = "posterior") -> "pd.DataFrame":
    """Inclusion probabilities as a p x p table with zeros on the diagonal.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    pandas.DataFrame, shape (p, p)
    """
    probability = inclusion_probabilities(idata, group=group)
    return frame(probability.values, read_posterior(idata, group), diagonal=0.0)


def frame(values: np.ndarray, posterior: EdgePosterior, diagonal: float) -> "pd.DataFrame":
    """Label the matrix of an edge vector."""
    import pandas as pd

    matrix = fill_matrix(values, posterior, diagonal)
    return pd.DataFrame(matrix, index=posterior.variables, columns=posterior.variables)


def fill_matrix(values: np.ndarray, posterior: EdgePosterior, diagonal: float) -> np.ndarray:
    """Spread (..., n_edges) over (..., p, p)."""
    n_edges, p = len(posterior.source), len(posterior.variables)
    if values.ndim == 0 or values.shape[-1] != n_edges:
        raise ValueError(f"Expected {n_edges} values, one an edge, got shape {values.shape}.")
    matrix = np.zeros((*values.shape[:-1], p, p), dtype=np.result_type(values, float))
    matrix[..., posterior.source, posterior.target] = values
    matrix[..., posterior.target, posterior.source] = values
    matrix[..., np.arange(p), np.arange(p)] = diagonal
    return matrix
