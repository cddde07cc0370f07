"""Precision matrices given drawn graphs."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import generator, whole_number
from bayesstruct.graphs.groups import CONSTANTS, SAMPLE_DIMS
from bayesstruct.graphs.posteriors.reading import read_edges
from bayesstruct.graphs.records import ImputedTables, is_nodewise
from bayesstruct.precision.kernels.g_wishart.draws import g_wishart

if TYPE_CHECKING:
    import xarray as xr

    from numpy.random import Generator

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["precision_draws"]

_DEGREES = 3.0  # of freedom of the G-Wishart prior, whose scale matrix is the identity


def precision_draws(
    idata: "xr.DataTree",
    *,
    draws: int = 50,
    random_seed: "int | Generator | None" = None,
) -> "xr.DataTree":
    r"""Draw precision matrices given graphs that were drawn by themselves.

    Given its graph, the precision matrix K of the standardised columns has the prior G-Wishart(3, I), so that its posterior is

    .. math:: K \mid G, x \sim \text{G-Wishart}(n + 2, I + (n - 1) R),

    R the correlations, with the zeros of the graph; one matrix is drawn given each graph. Where the table had missing values, R are the
    covariances of the completed table that the graph belongs to, in units of the observed standard deviations.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.gaussian_graphical` with ``prior="pseudo_likelihood"``.
    draws : int, default 50
        Maximum number of graphs of each chain, spread evenly. At p = 200 a matrix takes some tenths of a second.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    xarray.DataTree
        A result with ``precision``, ``mean`` (standardised, under a flat prior), ``weight`` (partial correlations) and ``edge``, which all
        readers of Gaussian graphs take: :func:`bayesstruct.edge_table`, :func:`bayesstruct.precision_matrix`, ...

    Raises
    ------
    TypeError, ValueError
        When `idata` is not such a result.

    Notes
    -----
    Draws of a matrix given its graph are exact if the graph is decomposable, and as a rule otherwise; where rejection gives up they are
    ends of a short Markov chain, see `bayesstruct.precision.kernels.g_wishart.draws`. The graphs are those of the pseudo-likelihood; the matrices given them are those of
    the likelihood.

    References
    ----------
    Atay-Kayis, A. and Massam, H. (2005). A Monte Carlo method for computing the marginal likelihood in nondecomposable
    Gaussian graphical models. *Biometrika* 92(2), 317-335.

    Examples
    --------
    >>> with_weights = precision_draws(idata, random_seed=1)  # doctest: +SKIP
    >>> bs.edge_table(with_weights).query("probability > 0.5")  # doctest: +SKIP
    """
    posterior = read_edges(idata)
    if not is_nodewise(posterior.constants) or "correlation" not in idata["observed_data"]:
        raise ValueError(
            "precision matrices are drawn given the graphs of bs.models.gaussian_graphical(..., "
            'prior="pseudo_likelihood"); other results have their own: bs.precision_matrix(idata)'
        )
    rng, size = generator(random_seed), posterior.draws.sizes["draw"]
    most = min(size, whole_number("draws", draws, 1))
    kept = np.unique(np.linspace(0, size - 1, most).astype(int))
    n = float(posterior.constants["rows"].item())
    correlation = np.asarray(idata["observed_data"]["correlation"].values)
    graphs = posterior.matrix(posterior.indicators[:, kept]) > 0
    numbers = centres = None
    if ImputedTables.is_in(posterior.constants):
        numbers = _numbers(idata, kept)
        centres = ImputedTables.read(posterior.constants).means
    precision, mean = _draw(rng, graphs, correlation, n, numbers, centres)
    return _tree(idata, posterior, kept, precision, mean)


def _numbers(idata, kept) -> np.ndarray:
    """Numbers of the completed tables that the graphs of some draws belong to, (chain, draw)."""
    if "imputation" not in idata["posterior"]:
        raise ValueError(
            "`imputation` is not in the result: it says which of the completed tables a graph belongs to. Keep it: "
            'pm.sample(var_names=["edge", "imputation", "x_missing"])'
        )
    return idata["posterior"]["imputation"].transpose(*SAMPLE_DIMS).values[:, kept]


def _draw(rng, graphs, correlation, n: float, numbers=None, centres=None):
    """Precision matrices and means given graphs, (chain, draw, p, p)."""
    p = correlation.shape[-1]
    precision, mean = np.empty(graphs.shape), np.zeros(graphs.shape[:-1])
    for at in np.ndindex(graphs.shape[:2]):
        table = correlation if numbers is None else correlation[numbers[at]]
        scale = np.eye(p) + (n - 1.0) * table
        precision[at] = g_wishart(rng, _DEGREES + n - 1.0, scale, graphs[at])
        root = np.linalg.cholesky(precision[at])
        mean[at] = np.linalg.solve(root.T, rng.standard_normal(p)) / np.sqrt(n)
        if numbers is not None:
            mean[at] += centres[numbers[at]]
    return precision, mean


def _tree(idata, posterior: "GraphPosterior", kept, precision, mean) -> "xr.DataTree":
    import xarray as xr

    from bayesstruct.precision.kernels.partial_correlations import partial_correlations

    weight = np.array([[partial_correlations(k) for k in chain] for chain in precision])
    weight = weight.reshape(*precision.shape[:2], posterior.n_lines)
    chosen = posterior.draws.isel(draw=kept)
    matrix = (*SAMPLE_DIMS, "node", "node_")
    names = {"node": posterior.variables, "node_": posterior.variables}
    drawn = chosen.assign_coords(names).assign(
        precision=(matrix, precision),
        mean=((*SAMPLE_DIMS, "node"), mean),
        weight=((*SAMPLE_DIMS, posterior.dim), weight),
    )
    groups = {
        "posterior": drawn,
        CONSTANTS: posterior.constants,
        "observed_data": idata["observed_data"].to_dataset(),
    }
    if "sample_stats" in idata.children:
        groups["sample_stats"] = idata["sample_stats"].to_dataset().isel(draw=kept)
    return xr.DataTree.from_dict(groups)
