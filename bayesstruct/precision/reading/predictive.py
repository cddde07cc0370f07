"""Posterior predictive check of the dependence between columns."""

from typing import TYPE_CHECKING

import numpy as np

import bayesstruct.graphs.tables.differences  # noqa: F401 (is asked before what is registered here)

from bayesstruct.core.readers import register_summary, variables
from bayesstruct.graphs.groups import CONSTANTS
from bayesstruct.graphs.posteriors.reading import is_acyclic
from bayesstruct.graphs.records import ArcEnds
from bayesstruct.graphs.replicates import (
    constants_of,
    ends_of,
    replicated_covariances,
    replicated_tables,
)
from bayesstruct.graphs.tables.edges import EDGE_READERS, edge_table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["NORMAL_READERS", "correlations", "predictive_correlations"]


def predictive_correlations(
    idata: "xr.DataTree | GraphPosterior",
    *,
    prob: float = 0.95,
    draws: int = 500,
    group: str = "posterior_predictive",
) -> "pd.DataFrame":
    r"""Compare the correlations of the table with those of replicated tables.

    A model that fits gives replicated tables whose correlations lie around the observed ones:
    about ``prob`` of the intervals should hold the observed value. A pair whose observed
    correlation lies outside is one whose dependence the graph, or the normal distribution, misses.

    Parameters
    ----------
    idata : xarray.DataTree
        With ``posterior_predictive`` from ``pm.sample_posterior_predictive``.
    prob : float
        Probability of the central interval.
    draws : int
        Number of replicated tables used, spread evenly over the draws.
    group : str
        Group of the replicated tables.

    Returns
    -------
    pandas.DataFrame
        One row for each pair: ``source, target, observed, mean, low, high, p_value`` (share of
        replications at least as large, two-sided), ``inside``. For neighbourhood models, symmetrised or
        not, one row for each ordered pair, ``target`` being the replicated column.

    Raises
    ------
    ValueError
        If the result has no replicated tables.

    Notes
    -----
    Missing values are left out of the observed and of the replicated tables. If the data of the model are a
    covariance matrix (``cov=``), its correlations are compared with those of replicated matrices.

    A neighbourhood model predicts each value from the observed rest of its row. Two replicated
    values of a row are then independent, so its replicated columns are correlated with the *observed*
    other columns.

    References
    ----------
    Gelman, A., Meng, X.-L. and Stern, H. (1996). Posterior predictive assessment of model fitness.
    *Statistica Sinica* 6, 733-760.

    Examples
    --------
    >>> table = predictive_correlations(idata)  # doctest: +SKIP
    >>> table.inside.mean()  # doctest: +SKIP
    """
    if matrices := replicated_covariances(idata, group, draws):
        observed, replicated, names = matrices
        source, target = np.triu_indices(len(names), 1)
        simulated = np.array([_scaled(matrix)[source, target] for matrix in replicated])
        return _compared(names, source, target, _scaled(observed)[source, target], simulated, prob)
    table, replicated, names = replicated_tables(idata, group, draws)
    if _is_dependency_network(idata):
        source, target = np.nonzero(~np.eye(len(names), dtype=bool))
        values = [_cross_correlations(table, t)[source, target] for t in replicated]
    else:
        source, target = np.triu_indices(len(names), 1)
        tables = (np.where(np.isnan(table), np.nan, t) for t in replicated)
        values = [correlations(t)[source, target] for t in tables]
    simulated = np.array(values)
    actual = correlations(table)[source, target]
    return _compared(names, source, target, actual, simulated, prob)


def _compared(names, source, target, actual, simulated, prob):
    """Table of observed correlations beside their replicates."""
    import pandas as pd

    low, high = np.quantile(simulated, ends_of(prob), axis=0)
    tail = (simulated >= actual).mean(axis=0)
    return pd.DataFrame(
        {
            "source": names[source],
            "target": names[target],
            "observed": actual,
            "mean": simulated.mean(axis=0),
            "low": low,
            "high": high,
            "p_value": 2.0 * np.minimum(tail, 1.0 - tail),
            "inside": (low <= actual) & (actual <= high),
        }
    )


def _scaled(covariance: np.ndarray) -> np.ndarray:
    """Correlations of a covariance matrix."""
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


def _is_dependency_network(idata) -> bool:
    """Whether values are replicated given the observed rest of their row."""
    if ArcEnds.is_in(constants_of(idata)):
        return not is_acyclic(idata)
    posterior = idata["posterior"].attrs if "posterior" in idata.children else {}
    return "dependency_network" in posterior  # symmetrised


def _cross_correlations(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Correlations of the columns of `a` with those of `b`, both complete; NaN for constants."""
    a, b = (x - x.mean(axis=0) for x in (a, b))
    with np.errstate(divide="ignore", invalid="ignore"):
        return a.T @ b / np.sqrt(np.outer((a * a).sum(axis=0), (b * b).sum(axis=0)))


def correlations(values: np.ndarray) -> np.ndarray:
    """Correlations over the rows in which both columns are known (not NaN), (p, p)."""
    seen = ~np.isnan(values)
    x = np.where(seen, values - np.nanmean(values, axis=0), 0.0)
    m = seen.astype("float64")
    count, total, square = m.T @ m, x.T @ m, (x * x).T @ m
    with np.errstate(divide="ignore", invalid="ignore"):
        product = x.T @ x - total * total.T / count
        variance = square - total**2 / count
        return product / np.sqrt(variance * variance.T)


def _is_graphical_normal(idata) -> bool:
    return {"edge", "precision"} <= variables(idata)


_READERS = (*EDGE_READERS, "predictability")

#: Readers of Gaussian graphical models with normal rows, beside the table of edges.
NORMAL_READERS = (
    *_READERS,
    "covariance",
    "precision_matrix",
    "coefficients",
    "predict",
    "pointwise",
    "predictive_correlations",
    "plot_correlations",
)

register_summary(
    "Gaussian graphical models",
    _is_graphical_normal,
    edge_table,
    NORMAL_READERS,
    before="undirected graphs",
)


def _counts_by_order(idata) -> bool:
    return _is_graphical_normal(idata) and "column_by_order" in variables(idata, CONSTANTS)


def _has_t_rows(idata) -> bool:
    found = variables(idata) | variables(idata, CONSTANTS)
    return _is_graphical_normal(idata) and "degrees" in found


def _has_states(idata) -> bool:
    return _is_graphical_normal(idata) and "state_block" in variables(idata, CONSTANTS)


register_summary(
    "Gaussian graphical models of columns by their order",
    _counts_by_order,
    edge_table,
    (*_READERS, "predictive_correlations", "plot_correlations"),
    before="Gaussian graphical models",
)
register_summary(
    "Gaussian graphical models of columns without an order",
    _has_states,
    edge_table,
    (*_READERS, "variable_edges", "predictive_correlations", "plot_correlations"),
    before="Gaussian graphical models of columns by their order",
)
register_summary(
    "graphical models of t rows",
    _has_t_rows,
    edge_table,
    (
        *_READERS,
        "covariance",
        "precision_matrix",
        "coefficients",
        "predictive_correlations",
        "plot_correlations",
    ),
    before="Gaussian graphical models",
)
