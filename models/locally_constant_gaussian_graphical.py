"""Gaussian graphical model in space or time: neighbouring columns have similar dependences on the others.

x = location + scale * z                    the table in its units, and standardised
z_i | mean, K ~ Normal(mean, K^-1)          one row of the table
K             ~ GraphicalFusedLasso         positive definite; elements of neighbouring columns differ little
edge          = |weight| > negligible
weight        = partial correlations of K
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from bayesstruct.core.recorded import register
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.arguments import is_number
from bayesstruct.data.neighbours import neighbour_matrix
from bayesstruct.precision.model_parts.edges import check_negligible, negligible_edges
from bayesstruct.precision.model_parts.matrices import start_of
from bayesstruct.precision.model_parts.rows import column_means
from bayesstruct.precision.model_parts.structured import observe_table, read_table
from bayesstruct.precision.ops.graphical_lasso_mode import graphical_lasso_mode
from bayesstruct.precision.priors.fused import GraphicalFusedLasso, implied_fused_probability

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["locally_constant_gaussian_graphical"]


def locally_constant_gaussian_graphical(
    data: "TableLike" = None,
    *,
    cov: "TableLike" = None,
    n: int | None = None,
    neighbours: Any = "chain",
    rate: Any = 1.0,
    smoothness: float = 1.0,
    diagonal_rate: float | None = None,
    negligible: float = 0.1,
    covariates: "TableLike" = None,
    standardize: bool = True,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn which columns depend on each other where the columns are places or times.

    Each row is multivariate normal. Columns that are next to each other, such as points of a contour, pixels, or
    hours of a day, have similar conditional dependence on every third column. Missing values are imputed inside the model.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table of numbers, one row for each observation; NaN marks a missing value.
    cov : DataFrame or (p, p) array_like, optional
        Instead of a table, its sample covariances (divisor n - 1, as of ``DataFrame.cov``) or correlations, as in
        :func:`gaussian_graphical`.
    n : int, optional
        Number of rows that `cov` was computed from.
    neighbours : "chain", tuple of int, networkx.Graph or iterable of pairs of column names, default "chain"
        Which columns are next to each other: ``"chain"`` in the order of the table; a tuple is the shape of a grid whose places
        are the columns, row by row, as ``(3, 4)``; or a graph of columns, whose weights are not used.
    rate : float or unregistered distribution, default 1
        Laplace rate of the off-diagonal elements, the penalty :math:`\lambda` of a summed log likelihood; ``pm.Gamma.dist(1, 0.1)``
        makes it a random variable.
    smoothness : float, default 1
        Rate of the differences between neighbours in multiples of `rate`; 0 is ``gaussian_graphical(prior="laplace")``.
    diagonal_rate : float, optional
        Exponential rate of the diagonal elements; ``rate / 2`` unless given.
    negligible : float, default 0.1
        Absolute partial correlation up to which a pair counts as not connected.
    covariates : DataFrame or array_like, optional
        (n, q) table without missing values, of columns that are not in `data`; the mean of a row is
        then a linear function of it.
    standardize : bool, default True
        Put the prior on the scale of standardised columns, as in :func:`gaussian_graphical`.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so.

    Returns
    -------
    pymc.Model
        With ``precision`` and ``mean`` of the *standardised* columns, ``coefficients`` (covariate, node), ``weight`` (partial
        correlations), ``edge``, ``x`` (the table) and, where values are missing, ``x_missing``; with `cov` there is ``covariance``
        instead of ``x``.

    Raises
    ------
    TableError
        If the table or the neighbours cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        For an option out of range.

    Notes
    -----
    ``pm.sample`` draws every element of the matrix from its exact conditional distribution, a normal density with breaks at zero and
    at the elements of neighbouring columns. ``bs.find_MAP`` has the certified mode, in which elements of neighbours are equal.
    Draws are never exactly equal or zero.

    References
    ----------
    Honorio, J., Ortiz, L., Samaras, D., Paragios, N., Goldstein, R. (2009). Sparse and locally constant Gaussian graphical models.
    *NIPS* 22.

    Wang, H. (2012). Bayesian graphical lasso models and efficient posterior computation. *Bayesian
    Analysis* 7(4), 867-886.

    Examples
    --------
    .. code-block:: python

        with bs.models.locally_constant_gaussian_graphical(hourly, neighbours="chain"):
            idata = pm.sample()
        bs.edge_table(idata)
    """
    check_negligible(negligible)
    if not (is_number(smoothness) and 0 <= smoothness < np.inf):
        raise ValueError(f"`smoothness` must be a number from 0 up, it is {smoothness!r}")
    table, data, covariates = read_table(
        data,
        covariates,
        cov,
        n,
        standardize=standardize,
        missing_codes=missing_codes,
        row_counts=row_counts,
    )
    differences = smoothness * neighbour_matrix(table.names, neighbours)
    learned = hasattr(rate, "owner")
    first = 1.0 if learned else rate
    mode = partial(graphical_lasso_mode, rate=first, diagonal_rate=diagonal_rate, tol=1e-4)
    with pm.Model(coords=table.coords) as model:
        record_codes(missing_codes)
        mean = column_means(table, data, covariates)
        precision = GraphicalFusedLasso(
            "precision",
            differences,
            register("rate", rate) if learned else rate,
            diagonal_rate=diagonal_rate,
            dims=("node", "node_"),
            start=start_of(table, mode),
        )
        implied = implied_fused_probability(differences, negligible, first, diagonal_rate)
        negligible_edges(table, precision, negligible, implied)
        observe_table(table, mean, precision)
    return model
