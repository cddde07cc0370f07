"""Edge vectors as matrices over variables, made on demand."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.graphs.posteriors.edges import EdgePosterior
from bayesstruct.graphs.posteriors.reading import read_edges

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["as_matrix", "inclusion_matrix", "partial_correlations"]


def as_matrix(
    values: Any, idata: "xr.DataTree | GraphPosterior", *, diagonal: float = 0.0
) -> "xr.DataArray":
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

    posterior = read_edges(idata)
    dims, coords = None, {}
    if isinstance(values, xr.DataArray):
        values = values.transpose(..., posterior.dim)
        dims = values.dims[:-1]
        coords = {name: values.coords[name] for name in dims if name in values.coords}
    matrix = posterior.matrix(np.asarray(values), diagonal)
    dims = dims or tuple(f"dim_{axis}" for axis in range(matrix.ndim - 2))
    names = posterior.variables
    return xr.DataArray(
        matrix,
        dims=(*dims, "node", "node_"),
        coords={**coords, "node": names, "node_": names},
    )


def partial_correlations(
    idata: "xr.DataTree | GraphPosterior", *, group: str = "posterior"
) -> "pd.DataFrame":
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
    posterior = read_edges(idata, group)
    mean = posterior.weights.mean(SAMPLE_DIMS).values
    return frame(mean, posterior, diagonal=1.0)


def inclusion_matrix(
    idata: "xr.DataTree | GraphPosterior", *, group: str = "posterior"
) -> "pd.DataFrame":
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
    posterior = read_edges(idata, group)
    return frame(posterior.probability, posterior, diagonal=0.0)


def frame(values: np.ndarray, posterior: EdgePosterior, diagonal: float) -> "pd.DataFrame":
    """Label the matrix of an edge vector."""
    import pandas as pd

    matrix = posterior.matrix(values, diagonal)
    return pd.DataFrame(matrix, index=posterior.variables, columns=posterior.variables)
